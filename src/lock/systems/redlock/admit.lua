-- Lets an empty node vote, with all that the others remember, except their name: that is for who knows what a majority
-- is called.
-- KEYS: the mark, the record, when it was found empty.
-- ARGV: of which Redlock, what it is called, then the records of the others: field, value, …
-- Answers {'yes'}, or {'no'} if it is no longer the empty node that it was.
if redis.call('EXISTS', KEYS[1]) == 1 then return {'no'} end
local found = redis.call('GET', KEYS[3])
if not found or found:match('^(.*)|%d+$') ~= ARGV[2] then return {'no'} end
for i = 3, #ARGV, 2 do
  local field, value = ARGV[i], ARGV[i + 1]
  local old = redis.call('HGET', KEYS[2], field)
  if field ~= 'name' and (not old or tonumber(old) < tonumber(value)) then
    redis.call('HSET', KEYS[2], field, value)
  end
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[3])
return {'yes'}
