-- What ask.lua and release.lua share; it stands before both.
-- KEYS: for each lock, the lock and who waits for it.  ARGV: the owner, the channel on which its process listens.
--
-- The value of a lock is 'owner|token', or the owner alone while it is only reserved. Who waits is a sorted set of
-- 'owner channel' by the time at which each came.
local owner = ARGV[1]
local waiter = owner .. ' ' .. ARGV[2]

-- How long in ms a lock is reserved for a waiter that was told. A round trip between continents fits; a replica that
-- is frozen, which looks alive to Redis, stands in everybody's way for this long, once.
local CLAIM_TIME = 300

-- Reserves a lock for the first waiter that is told of it, or frees it.
local function hand_over(lock, waiters)
  local first = redis.call('ZPOPMIN', waiters)[1]
  while first do
    local next_owner, next_channel = first:match('^(%x+) (.+)$')
    -- Nobody listens on the channel of a process that is dead.
    if redis.call('PUBLISH', next_channel, lock) > 0 then
      redis.call('SET', lock, next_owner, 'PX', CLAIM_TIME)
      return
    end
    first = redis.call('ZPOPMIN', waiters)[1]
  end
  redis.call('DEL', lock)
end

-- Ends what the owner has of a lock: a grant, a reservation, or its place among those who wait. Blind, it ends
-- whoever's grant it is. Answers 1 if the lock was handed over or freed, else 0.
local function leave(i, blind)
  local value = redis.pcall('GET', KEYS[i])
  if type(value) == 'string' and (blind or value:sub(1, #owner) == owner) then
    hand_over(KEYS[i], KEYS[i + 1])
    return 1
  end
  redis.call('ZREM', KEYS[i + 1], waiter)
  return 0
end

