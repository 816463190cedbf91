-- Grants all locks or none.
-- KEYS: the counter, then the locks.  ARGV: the owner, the lease time in ms.
-- Answers {'granted', token, …}, or {'refused', which lock (from 0), its rest in ms or -1}.
local counter, owner, ttl = KEYS[1], ARGV[1], ARGV[2]

-- One counter for all locks: it rises for each of them, and leaves nothing behind for a lock that is never used
-- again. The server's time in ms × 32 seeds it, so that it goes on rising after Redis has lost its memory.
-- Lua numbers are doubles, exact up to 2^53; '%.0f' prints all digits where tostring would round to 14.
local function next_token()
  local time = redis.call('TIME')
  local seed = (time[1] * 1000 + math.floor(time[2] / 1000)) * 32
  local last = tonumber(redis.call('GET', counter) or '0')
  local token = string.format('%.0f', math.max(last + 1, seed))
  redis.call('SET', counter, token)
  return token
end

-- A write that changes nothing: a read-only replica, which may be behind, must not even say "taken".
redis.call('PERSIST', counter)

-- What the owner has already, because the answer to an earlier ask was lost, keeps its token.
local tokens = {}
for i = 2, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  if value then
    local holder, token
    if type(value) == 'string' then holder, token = value:match('^(%x+)|(%d+)$') end
    if not holder then
      return redis.error_reply('NOLOCK the key ' .. KEYS[i] .. ' holds something that is no lock')
    end
    if holder ~= owner then
      return {'refused', tostring(i - 2), tostring(redis.call('PTTL', KEYS[i]))}
    end
    tokens[i] = token
  end
end

local fresh
local answer = {'granted'}
for i = 2, #KEYS do
  if not tokens[i] then
    fresh = fresh or next_token()
    tokens[i] = fresh
  end
  redis.call('SET', KEYS[i], owner .. '|' .. tokens[i], 'PX', ttl)
  answer[i] = tokens[i]
end
return answer
