-- Gives back whatever an owner has of some locks, to the next one where somebody waits. (hand_over.lua stands before it.)
-- KEYS: each lock and who waits for it.
-- ARGV: the owner, its channel, '1' to free a lock whoever has it.
-- Answers how many were freed or handed over.
local blind = ARGV[3] == '1'
local freed = 0
for i = 1, #KEYS, 2 do
  freed = freed + leave(i, blind)
end
return freed
