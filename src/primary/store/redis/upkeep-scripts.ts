import { begin } from './lua-begin.js';

/** What is done with all that is there, in Lua, a piece at a time: each script holds up everybody for a moment only. */

/** The parts that other scripts begin with. */
export interface ScriptParts {
  /** As ARGV: 2 the prefix, 3 the time to live in ms. */
  readonly conversations: string;
  /** As ARGV: 2 the prefix. */
  readonly answers: string;
}

/** ARGV: 2 the prefix. Types of keys by what comes after the prefix. */
const kinds = `
local prefix = ARGV[2]
local types = {conversation = 'hash', turns = 'list', list = 'zset', all = 'zset', clients = 'zset', usage = 'hash',
  ['usage-batch'] = 'string', answer = 'hash', answers = 'zset', rate = 'string', probe = 'string', job = 'hash',
  ['job-text'] = 'string', ['job-answer'] = 'string'}
local typesOfJobs = {of = 'zset', run = 'set', waiting = 'zset', since = 'zset', ended = 'zset', hosts = 'zset',
  ['waiting-of'] = 'hash', ['bytes-of'] = 'hash', open = 'hash', ['open-of'] = 'hash', bytes = 'string', number = 'string'}
local function split(key) return string.match(string.sub(key, #prefix + 2), '^([^:]*):?(.*)$') end
local function typeOf(kind, rest)
  if kind == 'jobs' then return typesOfJobs[string.match(rest, '^[^:]*')] end
  if kind == 'answers' and rest == 'bytes' then return 'string' end
  return types[kind]
end
local function isThere(key) return redis.call('EXISTS', prefix .. ':' .. key) == 1 end
local function isIn(list, member) return redis.pcall('ZSCORE', prefix .. ':' .. list, member) end
local counts = {}
local function count(what, more) counts[what] = (counts[what] or 0) + (more or 1) end
local function counted()
  local flat = {}
  for what, number in pairs(counts) do
    flat[#flat + 1] = what
    flat[#flat + 1] = number
  end
  return flat
end
local function scan(cursor, many) return redis.call('SCAN', cursor, 'MATCH', prefix .. ':*', 'COUNT', many) end
`;

/**
 * ARGV: 4 client, 5 the time until which they count ('': now), 6 how many. Answers with how many were there, how many
 * are left, and that time: an entry that points to nothing goes too.
 */
const purgeList = `
local client, last = ARGV[4], ARGV[5]
local fault = checkLists(client)
if fault then return fault end
if last == '' then last = exact(now) end
local gone = 0
for _, id in ipairs(redis.call('ZRANGEBYSCORE', listOf(client), '-inf', last, 'LIMIT', 0, ARGV[6])) do
  gone = gone + redis.call('EXISTS', metaOf(id))
  drop(id, client)
end
local left = redis.call('ZCOUNT', listOf(client), '-inf', last)
if redis.call('ZCARD', listOf(client)) == 0 then redis.call('ZREM', clients, client) end
return {'ok', now, gone, left, last}
`;

/** ARGV: 4 client, 5 cursor, 6 how many, then what usage has names for. Answers with the next cursor, and what is gone. */
const purgePage = `
local client = ARGV[4]
local fault = checkAll(client) or checkType(prefix .. ':answers', 'zset') or checkType(prefix .. ':answers:shares', 'zset')
if fault then return fault end
local purges = {}
function purges.conversation(key, id)
  if redis.call('HGET', key, 'client') ~= client then return end
  dropConversation(id, client)
  count('conversations')
end
function purges.answer(key)
  local held = redis.call('HMGET', key, 'client', 'member')
  if held[1] ~= client then return end
  if held[2] then dropAnswer(held[2]) else redis.call('UNLINK', key) end
  count('idempotency')
end
function purges.usage(key)
  local gone = 0
  for index = 7, #ARGV do gone = gone + redis.call('HDEL', key, ARGV[index] .. ' ' .. client) end
  if gone > 0 then count('usage') end
end
function purges.rate(key, name)
  if string.sub(name, -#client - 1) == ':' .. client then count('rate_windows', redis.call('UNLINK', key)) end
end
local page = scan(ARGV[5], ARGV[6])
for _, key in ipairs(page[2]) do
  local kind, rest = split(key)
  if purges[kind] and redis.call('TYPE', key).ok == typeOf(kind, rest) then purges[kind](key, rest) end
end
return {'ok', now, page[1], counted()}
`;

/** Changes nothing. ARGV: 3 cursor, 4 how many. Answers with the next cursor, what is there, what is wrong, and lists. */
const surveyPage = `
local faults, lists, looks = {}, {}, {}
local function fault(...) faults[#faults + 1] = table.concat({...}, ' ') end
local function list(key) lists[#lists + 1] = key end
looks.list, looks.all = list, list
function looks.conversation(key, id)
  local held = redis.call('HMGET', key, 'client', 'count')
  local turns = redis.pcall('LLEN', prefix .. ':turns:' .. id)
  count('conversations')
  if type(turns) == 'number' then count('turns', turns) end
  if turns ~= (tonumber(held[2]) or 1) / 2 then fault('the text of conversation', id, 'is not whole') end
  if not held[1] or not isIn('list:' .. held[1], id) or not isIn('all', id .. ' ' .. held[1]) then
    fault('conversation', id, 'is missing in a list')
  end
end
function looks.turns(key, id)
  if not isThere('conversation:' .. id) then fault(key, 'belongs to no conversation') end
end
function looks.answer(key)
  local held = redis.call('HMGET', key, 'head', 'member')
  if not held[1] then return end
  count('idempotency')
  if not held[2] or not isIn('answers', held[2]) then fault(key, 'is missing in a list') end
end
function looks.answers(key, rest) if rest == '' then list(key) end end
function looks.usage() count('usage_days') end
function looks.rate() count('rate_windows') end
function looks.job(key, id)
  count('jobs')
  if redis.call('HGET', key, 'status') == 'queued' and not isIn('jobs:waiting', id) then
    fault('job', id, 'waits and is missing in a list')
  end
end
looks['job-text'] = function(key, id) if not isThere('job:' .. id) then fault(key, 'belongs to no job') end end
looks['job-answer'] = looks['job-text']
function looks.jobs(key, rest) if rest == 'waiting' then list(key) end end
local page = scan(ARGV[3], ARGV[4])
for _, key in ipairs(page[2]) do
  local kind, rest = split(key)
  local found, wanted = redis.call('TYPE', key).ok, typeOf(kind, rest)
  if wanted and found ~= wanted then
    if found ~= 'none' then fault(key, 'is a ' .. found .. ', and has to be a ' .. wanted) end
  elseif looks[kind] then
    looks[kind](key, rest)
  end
end
return {'ok', now, page[1], counted(), faults, lists}
`;

/**
 * Changes nothing. ARGV: 2 what the keys begin with that the entries point to, 3 how old they get, ms ('': no matter),
 * 4 cursor, 5 how many. Answers with the next cursor, how many point to nothing, and how many because they are too old.
 */
const surveyList = `
local missing, old, ttl = 0, 0, tonumber(ARGV[3])
local oldest = ttl and now - ttl * 100 + 100000 or -math.huge -- one that is about to go may be gone
local page = redis.call('ZSCAN', KEYS[1], ARGV[4], 'COUNT', ARGV[5])
for index = 1, #page[2], 2 do
  if redis.call('EXISTS', ARGV[2] .. string.match(page[2][index], '^%S+')) == 0 then
    if tonumber(page[2][index + 1]) <= oldest then old = old + 1 else missing = missing + 1 end
  end
end
return {'ok', now, page[1], missing, old}
`;

export function upkeepScripts({ conversations, answers }: ScriptParts) {
  const both = `
local dropConversation, dropAnswer, checkAll
do ${conversations} dropConversation, checkAll = drop, checkLists end
do ${answers} dropAnswer = drop end
`;
  return {
    purgeList: begin + conversations + purgeList,
    purgePage: begin + both + kinds + purgePage,
    surveyPage: begin + kinds + surveyPage,
    surveyList: begin + surveyList,
  } as const;
}
