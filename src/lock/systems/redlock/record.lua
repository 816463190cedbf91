-- All that a node must not forget. Answers {'record', field, value, …}.
local answer = {'record'}
for _, one in ipairs(redis.call('HGETALL', record)) do
  answer[#answer + 1] = one
end
return answer
