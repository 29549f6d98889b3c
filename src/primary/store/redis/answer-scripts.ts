/**
 * What is done with the answers to keys, each a hash: `digest`, and `holder` while a host answers the request, then `head`,
 * `body`, `client` and `member`. That is the name of the answer in the lists by age, of all and of each holder of an API key:
 * '<hash of the key> <bytes> <token> <holder>'.
 */

/** ARGV: 2 the prefix. */
export const answerLists = `
local prefix = ARGV[2]
local all, shares, total = prefix .. ':answers', prefix .. ':answers:shares', prefix .. ':answers:bytes'
local function listOf(holder) return prefix .. ':answers:of:' .. holder end
local function drop(member)
  local name, bytes, holder = string.match(member, '^(%S+) (%d+) %S+ (.*)$')
  local key = prefix .. ':answer:' .. name
  if redis.call('HGET', key, 'member') == member then redis.call('DEL', key) end
  redis.call('ZREM', all, member)
  redis.call('ZREM', listOf(holder), member)
  redis.call('ZINCRBY', shares, -bytes, holder)
  redis.call('ZREMRANGEBYSCORE', shares, '-inf', 0)
  redis.call('DECRBY', total, bytes)
end
local function prune(ttl)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', all, '-inf', exact(now - ttl * 100), 'LIMIT', 0, 50)) do
    drop(member)
  end
end
local function makeRoom(most)
  for _ = 1, 1000 do
    if tonumber(redis.call('GET', total) or '0') <= most then return end
    local largest = redis.call('ZREVRANGE', shares, 0, 0)[1]
    local oldest = largest and redis.call('ZRANGE', listOf(largest), 0, 0)[1]
    if not oldest then return end
    drop(oldest)
  end
end
`;

/** ARGV: 2 token, 3 how much longer the key is held, ms; 0 gives it up. 4 digest, for a key that nobody has any more. */
const holdAnswer = `
local isWanted = ARGV[3] ~= '0'
if isWanted and redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'digest', ARGV[4], 'holder', ARGV[2])
end
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[2] then return {'stale', now} end
if isWanted then redis.call('PEXPIRE', KEYS[1], ARGV[3]) else redis.call('DEL', KEYS[1]) end
return {'ok', now}
`;

/** ARGV: 2 digest, 3 bytes before those that are wanted, 4 how many. */
const readAnswer = `
local fault = checkType(KEYS[1], 'hash')
if fault then return fault end
local held = redis.call('HMGET', KEYS[1], 'digest', 'body')
if held[1] ~= ARGV[2] or not held[2] then return {'gone', now, ''} end
return {'ok', now, string.sub(held[2], ARGV[3] + 1, ARGV[3] + ARGV[4])}
`;

/** `begin` stands before each script. */
export function answerScripts(begin: string) {
  return {
    /** ARGV: 2 digest, 3 token, 4 how long the key is held, ms, 5 bytes of the body that are wanted. */
    takeAnswer: `${begin}
local fault = checkType(KEYS[1], 'hash')
if fault then return fault end
local held = redis.call('HMGET', KEYS[1], 'digest', 'head', 'body')
if held[2] then return {'answered', now, held[1], held[2], #held[3], string.sub(held[3], 1, tonumber(ARGV[5]))} end
if held[1] then return {'held', now, held[1]} end
redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'holder', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {'free', now}
`,
    readAnswer: begin + readAnswer,
    holdAnswer: begin + holdAnswer,
    /** ARGV: 3 hash of the key, 4 holder, 5 token, 6 digest, 7 head, 8 body, 9 bytes, 10 time to live in ms, 11 most bytes, 12 client. */
    keepAnswer: `${begin}${answerLists}
local fault = checkType(KEYS[1], 'hash') or checkType(all, 'zset') or checkType(shares, 'zset')
if fault then return fault end
local held = redis.call('HMGET', KEYS[1], 'digest', 'holder')
if held[1] and held[2] ~= ARGV[5] then return {'stale', now} end
local member = ARGV[3] .. ' ' .. ARGV[9] .. ' ' .. ARGV[5] .. ' ' .. ARGV[4]
prune(tonumber(ARGV[10]))
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'digest', ARGV[6], 'head', ARGV[7], 'body', ARGV[8], 'client', ARGV[12], 'member', member)
redis.call('PEXPIRE', KEYS[1], ARGV[10])
redis.call('ZADD', all, exact(now), member)
redis.call('ZADD', listOf(ARGV[4]), exact(now), member)
redis.call('ZINCRBY', shares, ARGV[9], ARGV[4])
redis.call('INCRBY', total, ARGV[9])
makeRoom(tonumber(ARGV[11]))
return {'ok', now}
`,
  } as const;
}
