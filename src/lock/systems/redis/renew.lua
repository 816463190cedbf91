-- Makes the locks of an owner last longer: all or none. Never creates one, and a reservation is none.
-- KEYS: the locks.  ARGV: the owner, the lease time in ms.
-- Answers 1 if all were the owner's, else 0.
local mine = ARGV[1] .. '|'
for _, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  if type(value) ~= 'string' or value:sub(1, #mine) ~= mine then return 0 end
end
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, ARGV[2])
end
return 1
