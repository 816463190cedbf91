-- Frees the locks of an owner, and tells who listens.
-- KEYS: the locks.  ARGV: the owner, '1' to free a lock whoever has it, the channel, then the name of each lock.
-- Answers how many were freed.
local mine, blind, channel = ARGV[1] .. '|', ARGV[2] == '1', ARGV[3]
local freed = 0
for i, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if type(value) == 'string' and (blind or value:sub(1, #mine) == mine) then
    redis.call('DEL', key)
    redis.call('PUBLISH', channel, ARGV[3 + i])
    freed = freed + 1
  end
end
return freed
