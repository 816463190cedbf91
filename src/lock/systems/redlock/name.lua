-- The name that the nodes of a Redlock have in common, for whoever wants to know whether they are the same ones.
-- ARGV 2: the name to take or '', '1' to take it even if there is another.
-- Answers {'name', the name or ''}.
if ARGV[2] ~= '' and (ARGV[3] == '1' or not redis.call('HGET', record, 'name')) then
  redis.call('HSET', record, 'name', ARGV[2])
end
return {'name', redis.call('HGET', record, 'name') or ''}
