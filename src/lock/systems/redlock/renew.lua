-- Makes the locks of an owner last longer: all or none. Never creates one.
-- ARGV 2: the owner, the lease time in ms.
-- Answers {'yes'} if all were the owner's, else {'no'}.
local mine, ttl = ARGV[2] .. '|', ARGV[3]
for i = 3, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) ~= 'string' or value:sub(1, #mine) ~= mine then return {'no'} end
end
remember_lease(ttl)
for i = 3, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ttl)
end
return {'yes'}
