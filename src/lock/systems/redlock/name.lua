-- The name that the nodes of a Redlock have in common, for whoever wants to know whether they are the same ones.
-- ARGV 2: the name to take or '', '1' to take it (or to have none) even if there is another.
-- Answers {'name', the name or ''}.
local name, anyhow = ARGV[2], ARGV[3] == '1'
if anyhow then redis.call('HDEL', record, 'name') end
if name ~= '' then redis.call('HSETNX', record, 'name', name) end
return {'name', redis.call('HGET', record, 'name') or ''}
