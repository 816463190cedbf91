-- Frees the locks of an owner.
-- ARGV 2: the owner, its last ask that this is the end of ('' for whichever), '1' to free a lock whoever has it.
-- Answers {'yes'} if all were freed, else {'no'}.
local owner, last, blind = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local answer = 'yes'
for i = 3, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  local holder, ask
  if type(value) == 'string' then holder, ask = value:match('^(%x+)|(%d+)|%d*$') end
  local mine = holder == owner and (not last or tonumber(ask) <= last)
  if holder and (blind or mine) then
    redis.call('DEL', KEYS[i])
  else
    answer = 'no'
  end
end
return {answer}
