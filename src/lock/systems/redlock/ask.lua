-- First phase of a claim: sets all locks or none.
-- ARGV 2: the owner, the number of its ask, the lease time in ms.
-- Answers {'granted', floor, the token it has already or ''}, or {'taken', floor, which lock (from 0), its rest in ms}.
local owner, ask, ttl = ARGV[2], tonumber(ARGV[3]), ARGV[4]
remember_lease(ttl)

local asks, tokens = {}, {}
for i = 3, #KEYS do
  asks[i], tokens[i] = ask, ''
  local value = redis.pcall('GET', KEYS[i])
  if value then
    local holder, last, token
    if type(value) == 'string' then holder, last, token = value:match('^(%x+)|(%d+)|(%d*)$') end
    if not holder then
      return redis.error_reply('NOLOCK the key ' .. KEYS[i] .. ' holds something that is no lock')
    end
    if holder ~= owner then
      return {'taken', floor(), tostring(i - 3), tostring(redis.call('PTTL', KEYS[i]))}
    end
    asks[i], tokens[i] = math.max(ask, tonumber(last)), token
  end
end

-- Requests overtake each other. The number of the last ask stays, so that the end of an earlier one does not free what
-- the later one got.
local token = tokens[3]
for i = 3, #KEYS do
  redis.call('SET', KEYS[i], owner .. '|' .. string.format('%.0f', asks[i]) .. '|' .. tokens[i], 'PX', ttl)
  if tokens[i] ~= token then token = '' end
end
return {'granted', floor(), token}
