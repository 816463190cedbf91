-- The name that the nodes of a Redlock have in common, for whoever wants to know whether they are the same ones.
-- ARGV 2: 'look'; 'forget'; or 'take', a name, and the one that it replaces ('' for none). Whoever saw another name there
-- does not replace this one: it may be what a majority has by now.
-- Answers {'name', the name or ''}.
local what, name, over = ARGV[2], ARGV[3], ARGV[4]
local has = redis.call('HGET', record, 'name') or ''
if what == 'forget' then
  redis.call('HDEL', record, 'name')
  has = ''
elseif what == 'take' and has == over then
  redis.call('HSET', record, 'name', name)
  has = name
end
return {'name', has}
