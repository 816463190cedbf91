-- The id of this server. KEYS: where it is kept.  ARGV: the id to take if it has none.
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
