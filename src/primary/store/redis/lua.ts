import { answerLists, answerScripts } from './answer-scripts.js';
import { jobScripts } from './job-lua.js';
import { begin } from './lua-begin.js';
import { upkeepScripts } from './upkeep-scripts.js';

/**
 * What Redis does in one piece, in Lua. A script that changes something looks at everything first, or begins with what
 * may fail: an error in the middle would leave half of it. Times are ticks of 10 microseconds since the epoch, by the
 * clock of Redis: the highest number that a cursor of a page can hold. `late` is what was asked for by a host that has
 * given it up by now.
 */

/** KEYS: the lists that go by client come after those of one conversation. ARGV: 2 the prefix, 3 the time to live in ms. */
const lists = `
local prefix, ttl = ARGV[2], tonumber(ARGV[3])
local all, clients = prefix .. ':all', prefix .. ':clients'
local function listOf(client) return prefix .. ':list:' .. client end
local function metaOf(id) return prefix .. ':conversation:' .. id end
local function turnsOf(id) return prefix .. ':turns:' .. id end
local function checkLists(client)
  return checkType(all, 'zset') or checkType(clients, 'zset') or checkType(listOf(client), 'zset')
end
local function drop(id, client)
  redis.call('UNLINK', metaOf(id), turnsOf(id))
  redis.call('ZREM', listOf(client), id)
  if redis.call('ZREM', all, id .. ' ' .. client) == 1 then redis.call('ZINCRBY', clients, -1, client) end
  redis.call('ZREMRANGEBYSCORE', clients, '-inf', 0)
end
local function prune()
  local expired = redis.call('ZRANGEBYSCORE', all, '-inf', exact(now - ttl * 100), 'LIMIT', 0, 50)
  for _, member in ipairs(expired) do
    local at = string.find(member, ' ', 1, true)
    drop(string.sub(member, 1, at - 1), string.sub(member, at + 1))
  end
end
local function touch(id, client)
  local last = redis.call('ZREVRANGE', listOf(client), 0, 0, 'WITHSCORES')
  local at = math.max(now, tonumber(last[2] or '0') + 1)
  redis.call('ZADD', listOf(client), exact(at), id)
  if redis.call('ZADD', all, exact(at), id .. ' ' .. client) == 1 then redis.call('ZINCRBY', clients, 1, client) end
  redis.call('PEXPIRE', metaOf(id), ttl)
  redis.call('PEXPIRE', turnsOf(id), ttl)
  for _, key in ipairs({listOf(client), all, clients}) do redis.call('PEXPIRE', key, ttl) end
end
local function isIdle(id)
  return tonumber(redis.call('HGET', metaOf(id), 'until') or '0') <= now
end
local function firstIdleOf(client, but)
  for _, id in ipairs(redis.call('ZRANGE', listOf(client), 0, 99)) do
    if id ~= but and isIdle(id) then return id, client end
  end
end
local function firstIdle(but)
  for _, member in ipairs(redis.call('ZRANGE', all, 0, 99)) do
    local at = string.find(member, ' ', 1, true)
    local id = string.sub(member, 1, at - 1)
    if id ~= but and isIdle(id) then return id, string.sub(member, at + 1) end
  end
end
local function makeRoom(most, share, but)
  for _ = 1, 10 do
    if redis.call('ZCARD', all) <= most then return end
    local greediest = redis.call('ZREVRANGE', clients, 0, 0, 'WITHSCORES')
    local id, client
    if tonumber(greediest[2] or '0') > share then id, client = firstIdleOf(greediest[1], but) end
    if not id then id, client = firstIdle(but) end
    if not id then return end
    drop(id, client)
  end
end
`;

/** ARGV: 2 client, 3 whether the turn lock is wanted, 4 how long it is to hold, ticks. Answers with messages and token (0: none). */
const enter = `${begin}
local held = redis.call('HMGET', KEYS[1], 'client', 'count', 'until')
if held[1] ~= ARGV[2] then return {'gone', now} end
local token, left = 0, tonumber(held[3] or '0') - now
if ARGV[3] == '1' and (left <= 0 or left > tonumber(ARGV[4])) then -- more than that is left of a clock that was wrong
  token = redis.call('HINCRBY', KEYS[1], 'fence', 1)
  redis.call('HSET', KEYS[1], 'until', exact(now + tonumber(ARGV[4])))
end
return {'ok', now, tonumber(held[2]), token}
`;

/** ARGV: 2 token, 3 how much longer the lock is to hold, ticks; 0 gives it up. */
const renew = `${begin}
local held = redis.call('HMGET', KEYS[1], 'client', 'fence')
if not held[1] then return {'gone', now} end
if held[2] ~= ARGV[2] then return {'stale', now} end
redis.call('HSET', KEYS[1], 'until', exact(now + tonumber(ARGV[3])))
return {'ok', now}
`;

/**
 * ARGV: 4 id, 5 client, 6 messages before, 7 token (0: none), 8 the turn, 9 tokens in all, 10 when it was, 11 most
 * conversations, 12 share of a client, 13 a name of this commit, and with the first turn 14 when it began, 15 title,
 * 16 system text ('-': none; else it follows a '+').
 */
const commit = `${begin}${lists}
local id, client, before = ARGV[4], ARGV[5], tonumber(ARGV[6])
local fault = checkLists(client)
if fault then return fault end
local held = redis.call('HMGET', KEYS[1], 'client', 'count', 'fence')
if before == 0 then
  if held[1] or redis.call('EXISTS', KEYS[2]) == 1 then return {'stale', now} end
else
  if held[1] ~= client then return {'gone', now} end
  if held[3] ~= ARGV[7] or tonumber(held[2]) ~= before then return {'stale', now} end
end
redis.call('RPUSH', KEYS[2], ARGV[8])
redis.call('HSET', KEYS[1], 'count', before + 2, 'tokens', ARGV[9], 'active', ARGV[10], 'commit', ARGV[13], 'until', 0)
if before == 0 then
  redis.call('HSET', KEYS[1], 'client', client, 'fence', 0, 'created', ARGV[14], 'title', ARGV[15], 'system', ARGV[16])
end
touch(id, client)
if before == 0 then
  prune()
  makeRoom(tonumber(ARGV[11]), tonumber(ARGV[12]), id)
end
return {'ok', now}
`;

/** Takes back a commit of which nobody knows whether it has been done. ARGV: 4 id, 5 client, 6 messages before it, 7 its name. */
const withdraw = `${begin}${lists}
local held = redis.call('HMGET', KEYS[1], 'count', 'commit')
local before = tonumber(ARGV[6])
if held[2] ~= ARGV[7] or tonumber(held[1]) ~= before + 2 then return {'ok', now} end
if before == 0 then
  drop(ARGV[4], ARGV[5])
else
  redis.call('RPOP', KEYS[2])
  local tokens = string.match(redis.call('LINDEX', KEYS[2], -1), '^%d+')
  redis.call('HSET', KEYS[1], 'count', before, 'tokens', tokens, 'commit', '', 'until', 0)
end
return {'ok', now}
`;

/** ARGV: 4 client, 5 id, 6 id of the origin, 7 messages ('': all), 8 when it was, 9 most conversations, 10 share of a client. */
const fork = `${begin}${lists}
local client, id = ARGV[4], ARGV[5]
local fault = checkType(KEYS[1], 'hash') or checkType(KEYS[2], 'list') or checkLists(client)
if fault then return fault end
local held = redis.call('HMGET', KEYS[1], 'client', 'count', 'title', 'system')
if held[1] ~= client then return {'gone', now} end
local count = tonumber(held[2])
local wanted = tonumber(ARGV[7]) or count
if wanted > count or wanted < 2 or wanted % 2 ~= 0 then return {'range', now, count} end
if redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then return {'stale', now} end
redis.call('COPY', KEYS[2], KEYS[4])
redis.call('LTRIM', KEYS[4], 0, wanted / 2 - 1)
local tokens = string.match(redis.call('LINDEX', KEYS[4], -1), '^%d+')
redis.call('HSET', KEYS[3], 'client', client, 'count', wanted, 'tokens', tokens, 'fence', 0, 'until', 0,
  'created', ARGV[8], 'active', ARGV[8], 'title', held[3], 'system', held[4], 'commit', '')
touch(id, client)
prune()
makeRoom(tonumber(ARGV[9]), tonumber(ARGV[10]), id)
return {'ok', now, wanted, tonumber(tokens)}
`;

/** ARGV: 4 id, 5 client. */
const remove = `${begin}${lists}
local fault = checkType(KEYS[1], 'hash') or checkLists(ARGV[5])
if fault then return fault end
if redis.call('HGET', KEYS[1], 'client') ~= ARGV[5] then return {'gone', now} end
drop(ARGV[4], ARGV[5])
return {'ok', now}
`;

/** Changes nothing. ARGV: 4 client, 5 before ('+inf': all), 6 how many. Answers with five values for each. */
const list = `${begin}${lists}
local found, before = {}, ARGV[5]
local after = '(' .. exact(now - ttl * 100)
for _ = 1, 20 do
  local page = redis.call('ZREVRANGEBYSCORE', listOf(ARGV[4]), before, after, 'WITHSCORES', 'LIMIT', 0, ARGV[6])
  for index = 1, #page, 2 do
    before = '(' .. page[index + 1]
    local held = redis.call('HMGET', metaOf(page[index]), 'count', 'tokens', 'created', 'active', 'title')
    if held[1] then found[#found + 1] = {page[index], page[index + 1], unpack(held)} end
    if #found == tonumber(ARGV[6]) then break end
  end
  if #page == 0 or #found == tonumber(ARGV[6]) then break end
end
return {'ok', now, found}
`;

/** Whether a write goes, and a message to other hosts: without that right jobs could not be cancelled. ARGV: 2 the channel. */
const probe = `${begin}
redis.call('SET', KEYS[1], exact(now), 'PX', 60000)
redis.call('PUBLISH', ARGV[2], 'probe')
return {'ok', now}
`;

/** KEYS: 1 the batch, then the day of each row. ARGV: 2 how long days are kept, ms, then the rows. */
const addUsage = `${begin}
for index = 2, #KEYS do
  local fault = checkType(KEYS[index], 'hash')
  if fault then return fault end
end
if not redis.call('SET', KEYS[1], 1, 'NX', 'PX', 86400000) then return {'ok', now} end
for index = 2, #KEYS do
  local row = cjson.decode(ARGV[index + 1])
  for field, more in pairs(row.more) do
    redis.call('HINCRBYFLOAT', KEYS[index], field .. ' ' .. row.client, more)
  end
  redis.call('PEXPIRE', KEYS[index], ARGV[2])
end
return {'ok', now}
`;

/** ARGV: 2 how many, 3 how long a window lasts, ms. Answers with how many there are, and how long it lasts yet. */
const countInWindow = `${begin}
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
local left = redis.call('PTTL', KEYS[1])
if left < 0 then
  left = tonumber(ARGV[3])
  redis.call('PEXPIRE', KEYS[1], left)
end
return {'ok', now, count, left}
`;

/** By name. Every reply is a list: a verdict, the time, and what else there is to tell. */
export const scripts = {
  enter,
  renew,
  commit,
  withdraw,
  fork,
  remove,
  list,
  probe,
  addUsage,
  countInWindow,
  ...answerScripts(begin),
  ...jobScripts,
  ...upkeepScripts({ conversations: lists, answers: answerLists }),
} as const;
export type ScriptName = keyof typeof scripts;
