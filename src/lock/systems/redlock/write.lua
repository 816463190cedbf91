-- Second phase of a claim: takes a token, if the locks are still the owner's and the counters are smaller.
-- ARGV 2: the owner, the token.
-- Answers {'written'}, {'lapsed'}, or {'outrun', floor}.
local owner, token = ARGV[2], ARGV[3]

local asks, written = {}, true
for i = 3, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  if type(value) ~= 'string' then return {'lapsed'} end
  local holder, ask, last = value:match('^(%x+)|(%d+)|(%d*)$')
  if holder ~= owner then return {'lapsed'} end
  asks[i], written = ask, written and last == token
end
-- The answer to an earlier request was lost.
if written then return {'written'} end
if last_token() >= tonumber(token) then return {'outrun', floor()} end

for i = 3, #KEYS do
  redis.call('HSET', record, counter_of(KEYS[i]), token)
  redis.call('SET', KEYS[i], owner .. '|' .. asks[i] .. '|' .. token, 'KEEPTTL')
end
return {'written'}
