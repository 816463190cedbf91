-- What a node remembers. Unlike the others, this script is for nodes without a mark as well.
-- KEYS: the mark, the record, when it was found empty.  ARGV: what to call it if it is.
-- Answers {'member', of which Redlock, the longest lease in ms}, or {'empty', what it is called, for how many ms}.
local member = redis.call('GET', KEYS[1])
if member then return {'member', member, redis.call('HGET', KEYS[2], 'longest') or '0'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', KEYS[3], ARGV[1] .. '|' .. string.format('%.0f', now), 'NX')
local name, since = redis.call('GET', KEYS[3]):match('^(.*)|(%d+)$')
return {'empty', name, string.format('%.0f', math.max(now - since, 0))}
