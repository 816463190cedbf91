-- What all scripts begin with.
-- KEYS: the mark of a member, the record of this node, then perhaps locks.  ARGV: which Redlock the asker means.
-- A node that lost its memory, or belongs to another Redlock, does not vote.
local mark, record = KEYS[1], KEYS[2]
local member = redis.call('GET', mark)
if member ~= ARGV[1] then return {member and 'foreign' or 'empty'} end
-- A write that changes nothing: a read-only replica, which may be behind, does not vote either.
redis.call('PERSIST', mark)

-- A fixed number of counters for all locks: one for each lock would leave garbage behind, one for all of them would
-- make unrelated claims outrun each other.
local function counter_of(lock)
  return tonumber(redis.sha1hex(lock):sub(1, 8), 16) % 1024
end

local function last_token()
  local last = 0
  for i = 3, #KEYS do
    last = math.max(last, tonumber(redis.call('HGET', record, counter_of(KEYS[i])) or '0'))
  end
  return last
end

-- The smallest token that this node would take. Its time in ms × 32 seeds it, so that tokens go on rising when a
-- majority has lost its memory. Lua numbers are doubles, exact up to 2^53; '%.0f' prints all digits.
local function floor()
  local time = redis.call('TIME')
  local seed = (time[1] * 1000 + math.floor(time[2] / 1000)) * 32
  return string.format('%.0f', math.max(last_token() + 1, seed))
end

-- Remembers the longest lease: a node that lost its memory keeps silent for as long.
local function remember_lease(ttl)
  if tonumber(redis.call('HGET', record, 'longest') or '0') < tonumber(ttl) then
    redis.call('HSET', record, 'longest', ttl)
  end
end
