-- Recorded answers to requests with an Idempotency-Key. The hash `answer:<hash of the key>` has `digest`, and `holder`
-- while a host answers the request; later `head`, `body`, `client` and `member`. `member` names the answer in the lists
-- by age, of all answers and of each key holder: '<hash of the key> <bytes> <token> <holder>'.

local answers, shares, totalBytes = keyOf('answers'), keyOf('answers:shares'), keyOf('answers:bytes')
local function answersOf(holder) return keyOf('answers:of:' .. holder) end
local function answerOf(hash) return keyOf('answer:' .. hash) end

local function dropAnswer(member)
  local hash, bytes, holder = string.match(member, '^(%S+) (%d+) %S+ (.*)$')
  if redis.call('HGET', answerOf(hash), 'member') == member then redis.call('DEL', answerOf(hash)) end
  redis.call('ZREM', answers, member)
  redis.call('ZREM', answersOf(holder), member)
  redis.call('ZINCRBY', shares, -bytes, holder)
  redis.call('ZREMRANGEBYSCORE', shares, '-inf', 0)
  redis.call('DECRBY', totalBytes, bytes)
end

local function dropOldAnswers()
  local oldest = exact(now - args.ttlMs * 100)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', answers, '-inf', oldest, 'LIMIT', 0, 50)) do dropAnswer(member) end
end

local function evictAnswers()
  for _ = 1, 1000 do
    if tonumber(redis.call('GET', totalBytes) or '0') <= tonumber(args.maxBytes) then return end
    local largest = redis.call('ZREVRANGE', shares, 0, 0)[1]
    local oldest = largest and redis.call('ZRANGE', answersOf(largest), 0, 0)[1]
    if not oldest then return end
    dropAnswer(oldest)
  end
end

-- Reserves a key, or returns its recorded answer. pieceBytes: size of the first piece of the body.
function scripts.take()
  local key = answerOf(args.hash)
  local fault = checkType(key, 'hash')
  if fault then return fault end
  local known = redis.call('HMGET', key, 'digest', 'head', 'body')
  if known[2] then
    return {'answered', now, known[1], known[2], #known[3], string.sub(known[3], 1, tonumber(args.pieceBytes))}
  end
  if known[1] then return {'held', now, known[1]} end
  redis.call('HSET', key, 'digest', args.digest, 'holder', args.token)
  redis.call('PEXPIRE', key, args.holdMs)
  return {'free', now}
end

-- Renews a reservation. holdMs: time until it expires; 0 releases it. An expired reservation is made again.
function scripts.hold()
  local key, isWanted = answerOf(args.hash), args.holdMs ~= '0'
  if isWanted and redis.call('EXISTS', key) == 0 then
    redis.call('HSET', key, 'digest', args.digest, 'holder', args.token)
  end
  if redis.call('HGET', key, 'holder') ~= args.token then return {'stale', now} end
  if isWanted then redis.call('PEXPIRE', key, args.holdMs) else redis.call('DEL', key) end
  return {'ok', now}
end

function scripts.read()
  local fault = checkType(answerOf(args.hash), 'hash')
  if fault then return fault end
  local known = redis.call('HMGET', answerOf(args.hash), 'digest', 'body')
  if known[1] ~= args.digest or not known[2] then return {'gone', now, ''} end
  return {'ok', now, string.sub(known[2], args.from + 1, args.from + args.pieceBytes)}
end

function scripts.readById()
  local fault = checkType(answerOf(args.hash), 'hash')
  if fault then return fault end
  local known = redis.call('HMGET', answerOf(args.hash), 'client', 'head', 'body')
  if known[1] ~= args.client or not known[3] then return {'gone', now} end
  return {'ok', now, known[2], #known[3], string.sub(known[3], args.from + 1, args.from + args.pieceBytes)}
end

function scripts.store()
  local key, holder = answerOf(args.hash), args.holder
  local fault = checkType(key, 'hash') or checkType(answers, 'zset') or checkType(shares, 'zset')
  if fault then return fault end
  local known = redis.call('HMGET', key, 'digest', 'holder')
  if known[1] and known[2] ~= args.token then return {'stale', now} end
  local member = table.concat({args.hash, args.bytes, args.token, holder}, ' ')
  dropOldAnswers()
  redis.call('DEL', key)
  redis.call('HSET', key, 'digest', args.digest, 'head', args.head, 'body', args.body, 'client', args.client,
    'member', member)
  redis.call('PEXPIRE', key, args.ttlMs)
  redis.call('ZADD', answers, exact(now), member)
  redis.call('ZADD', answersOf(holder), exact(now), member)
  redis.call('ZINCRBY', shares, args.bytes, holder)
  redis.call('INCRBY', totalBytes, args.bytes)
  evictAnswers()
  return {'ok', now}
end
