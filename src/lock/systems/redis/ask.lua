-- Grants all locks or none. (hand_over.lua stands before it.)
-- KEYS: each lock and who waits for it, then the counter.
-- ARGV: the owner, its channel, the lease time in ms, '1' to wait when it is refused.
-- Answers {'granted', token, …}, or {'refused', which lock (from 0), its rest in ms or -1}.
local counter, ttl, waits = KEYS[#KEYS], ARGV[3], ARGV[4] == '1'

-- How many may wait for one lock. A process has one waiter for each; beyond this they only ask again by themselves.
local MOST_WAITERS = 1000

-- How long in ms it is remembered who waits. Each of them asks again several times a second.
local REMEMBERED = 10000

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

-- Whatever the owner has of the other locks goes on to the next one, and it waits for this one only.
local function refuse(i)
  -- A write that changes nothing: a read-only replica, which may be behind, must not even say "taken".
  redis.call('PERSIST', counter)
  for other = 1, #KEYS - 1, 2 do
    if other ~= i then leave(other) end
  end
  if waits then
    local time = redis.call('TIME')
    redis.call('ZADD', KEYS[i + 1], 'NX', time[1] * 1000000 + time[2], waiter)
    redis.call('ZREMRANGEBYRANK', KEYS[i + 1], MOST_WAITERS, -1)
    redis.call('PEXPIRE', KEYS[i + 1], REMEMBERED)
  end
  return {'refused', tostring((i - 1) / 2), tostring(redis.call('PTTL', KEYS[i]))}
end

-- What the owner has already, because the answer to an earlier ask was lost, keeps its token.
local tokens = {}
for i = 1, #KEYS - 1, 2 do
  local value = redis.pcall('GET', KEYS[i])
  if value then
    local holder, token
    if type(value) == 'string' then holder, token = value:match('^(%x+)|?(%d*)$') end
    if not holder then
      return redis.error_reply('NOLOCK the key ' .. KEYS[i] .. ' holds something that is no lock')
    end
    if holder ~= owner then return refuse(i) end
    if token ~= '' then tokens[i] = token end
  end
end

local fresh
local answer = {'granted'}
for i = 1, #KEYS - 1, 2 do
  if not tokens[i] then
    fresh = fresh or next_token()
    tokens[i] = fresh
  end
  redis.call('SET', KEYS[i], owner .. '|' .. tokens[i], 'PX', ttl)
  redis.call('ZREM', KEYS[i + 1], waiter)
  answer[#answer + 1] = tokens[i]
end
return answer
