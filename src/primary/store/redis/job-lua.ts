import { records } from './job-lua-records.js';
import type { LuaScript } from './lua-begin.js';

/**
 * Background jobs of all hosts, in Lua: what is told of a job, who has started it, and which hosts live. As in `lua.ts`, a
 * script looks before it changes something. Times named `at` are milliseconds since the epoch by the clock of a host.
 */

/**
 * ARGV: 3 id, 4 client, 5 createdAt, 6 form, 7 operation, 8 request id, 9 request, 10 its bytes, 11 most jobs that wait,
 * 12 most bytes that wait, 13 and 14 the same of one holder, 15 and 16 of one name of it. Answers with its priority: after how
 * many of its holder's it comes, where names take turns.
 */
const acceptJob = `${records}
local id, client, bytes = ARGV[3], ARGV[4], tonumber(ARGV[10])
local fault = checkLists(client)
if fault then return fault end
local waiting = redis.call('ZCARD', key('waiting'))
local waitingBytes = tonumber(redis.call('GET', key('bytes')) or '0')
if waiting >= tonumber(ARGV[11]) or waitingBytes + bytes > tonumber(ARGV[12]) then return {'full', now} end
local function waitingOf(each)
  local held = tonumber(redis.call('HGET', key('waiting-of'), each) or '0')
  return held, tonumber(redis.call('HGET', key('bytes-of'), each) or '0')
end
local function hasRoom(held, heldBytes, most, mostBytes)
  return held < tonumber(most) and (held == 0 or heldBytes + bytes <= tonumber(mostBytes))
end
local holder = holderOf(client)
local ofHolder, bytesOfHolder = waitingOf(holder)
local ofName, bytesOfName = waitingOf(nameOf(client))
if not hasRoom(ofHolder, bytesOfHolder, ARGV[13], ARGV[14]) then return {'share', now} end
local isOneOfMany = holder ~= client or ofName < ofHolder
if isOneOfMany and not hasRoom(ofName, bytesOfName, ARGV[15], ARGV[16]) then return {'name', now} end
local number = redis.call('INCR', key('number'))
local own = redis.call('HINCRBY', key(openOf(client)), client, 1)
local others = redis.call('HINCRBY', key('open'), holder, 1) - own
local names = redis.call('HLEN', key(openOf(client)))
local priority = math.min(own + math.min(others, (names - 1) * own), 2000000)
redis.call('HSET', jobOf(id), 'number', number, 'client', client, 'status', 'queued', 'createdAt', ARGV[5],
  'form', ARGV[6], 'operation', ARGV[7], 'requestId', ARGV[8], 'request', ARGV[9], 'bytes', bytes, 'priority', priority)
redis.call('ZADD', key('waiting'), exact(priority * 4294967296 + number), id)
redis.call('ZADD', key('since'), ARGV[5], id)
redis.call('INCRBY', key('bytes'), bytes)
countWaiting(client, 1, bytes)
redis.call('ZADD', listOf(client), number, id)
return {'ok', now, priority}
`;

/** ARGV: 3 id, 4 at, 5 run, 6 how long a host is taken to live without a word, ticks. The same run may repeat it. */
const startJob = `${records}
local id, run = ARGV[3], ARGV[5]
local held = redis.call('HMGET', jobOf(id), 'status', 'run', 'client', 'bytes')
if held[1] == 'running' and held[2] == run then return {'ok', now} end
if held[1] ~= 'queued' then return {'gone', now} end
local fault = checkLists(held[3]) or checkType(runningOf(run), 'set')
if fault then return fault end
redis.call('HSET', jobOf(id), 'status', 'running', 'startedAt', ARGV[4], 'run', run)
redis.call('HDEL', jobOf(id), 'request')
leaveWaiting(id, held[3], held[4])
redis.call('SADD', runningOf(run), id)
redis.call('ZADD', key('hosts'), 'NX', exact(now + tonumber(ARGV[6])), run)
return {'ok', now}
`;

/** ARGV: 3 id, 4 run, 5 bytes before it, 6 the piece, 7 'answer' where it replaces what was told. Answers with what is there. */
const tellJob = `${records}
local id, from = ARGV[3], tonumber(ARGV[5])
local held = redis.call('HMGET', jobOf(id), 'status', 'run')
if held[1] ~= 'queued' and not (held[1] == 'running' and held[2] == ARGV[4]) then return {'gone', now, 0} end
local text = ARGV[7] == 'answer' and answerOf(id) or textOf(id)
local length = redis.call('STRLEN', text)
if from > length then return {'short', now, length} end
return {'ok', now, redis.call('SETRANGE', text, from, ARGV[6])}
`;

/** ARGV: 3 id, 4 run, 5 status, 6 at, 7 the end, 8 how long it is kept, ms, 9 '1' where the answer replaces what was told. */
const endJob = `${records}
local id, run = ARGV[3], ARGV[4]
local held = redis.call('HMGET', jobOf(id), 'status', 'run', 'endedAt', 'client')
if not held[1] then return {'ok', now} end
if not isOpen(held[1]) then return {held[2] == run and held[3] == ARGV[6] and 'ok' or 'gone', now} end
if held[1] == 'running' and held[2] ~= run then return {'gone', now} end
local fault = checkLists(held[4])
if fault then return fault end
if ARGV[9] == '1' then
  redis.call('HSET', jobOf(id), 'isReplaced', 1)
  redis.call('DEL', textOf(id))
end
finish(id, run, ARGV[5], ARGV[6], ARGV[7], ARGV[8])
return {'ok', now}
`;

/** ARGV: 3 id, 4 at, 5 the end, 6 how long it is kept, ms. Answers with the request of one that waited. */
const cancelJob = `${records}
local id = ARGV[3]
local held = redis.call('HMGET', jobOf(id), 'status', 'request', 'client')
if not isOpen(held[1]) then return {'gone', now} end
local fault = checkLists(held[3])
if fault then return fault end
redis.call('PUBLISH', channel, 'cancel ' .. id)
if held[1] == 'running' then return {'running', now} end
finish(id, '', 'cancelled', ARGV[4], ARGV[5], ARGV[6])
return {'ok', now, held[2]}
`;

/** ARGV: 3 id, 4 from, 5 to, bytes. */
const readJobText = `${records}
local isReplaced = redis.call('HGET', jobOf(ARGV[3]), 'isReplaced')
return {'ok', now, redis.call('GETRANGE', isReplaced and answerOf(ARGV[3]) or textOf(ARGV[3]), ARGV[4], ARGV[5])}
`;

/**
 * ARGV: 3 client, 4 before, 5 status ('': any), 6 how many. Answers with the number to go on before ('': that was all),
 * and then with the fields of each. It looks at so many only, for a script holds up everybody.
 */
const listJobs = `${records}
local client, before, limit = ARGV[3], ARGV[4], tonumber(ARGV[6])
local found = {}
for _ = 1, 50 do
  local page = redis.call('ZREVRANGEBYSCORE', listOf(client), before, '-inf', 'WITHSCORES', 'LIMIT', 0, 200)
  for index = 1, #page, 2 do
    local held = redis.call('HMGET', jobOf(page[index]), 'client', 'form', 'operation', 'requestId', 'status',
      'createdAt', 'startedAt', 'endedAt', 'end', 'isReplaced')
    if not held[1] then
      redis.call('ZREM', listOf(client), page[index])
    elseif ARGV[5] == '' or ARGV[5] == held[5] then
      if #found == limit then return {'ok', now, string.sub(before, 2), found} end
      found[#found + 1] = {page[index], unpack(held, 1, 10)}
    end
    before = '(' .. page[index + 1]
  end
  if #page < 400 then return {'ok', now, '', found} end
end
return {'ok', now, string.sub(before, 2), found}
`;

/** ARGV: 3 id. */
const removeJob = `${records}
local client = redis.call('HGET', jobOf(ARGV[3]), 'client')
local fault = client and checkLists(client)
if fault then return fault end
if client then drop(ARGV[3], client) end
return {'ok', now}
`;

/** ARGV: 3 before when they ended. Answers with how many they were: a hundred is not all. */
const expireJobs = `${records}
local old = redis.call('ZRANGEBYSCORE', key('ended'), '-inf', '(' .. ARGV[3], 'LIMIT', 0, 100)
for _, member in ipairs(old) do
  local gap = string.find(member, ' ', 1, true)
  drop(string.sub(member, 1, gap - 1), string.sub(member, gap + 1))
end
return {'ok', now, #old}
`;

/**
 * A host says that it lives, and looks after what is left of others. ARGV: 3 run, 4 how long that is believed, ticks, 5 at,
 * 6 the end of a job whose host died, without its times, 7 how long it is kept, ms, 8 what the keys of the queue begin
 * with. Where no host could say so for a while, Redis was away and not they: nobody is judged before they all had time to
 * say it. A host whose time is 0 has said that it ends. Answers with the id of the one that has waited longest and since
 * when, with the ids and priorities of those that wait and are not in the queue, and with how many wait.
 */
const renewHost = `${records}
local run, lease, at = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local last = tonumber(redis.call('GET', key('renewed')) or '0')
if now - last > lease / 2 then
  for _, host in ipairs(redis.call('ZRANGEBYSCORE', key('hosts'), '(0', '+inf')) do
    redis.call('ZADD', key('hosts'), exact(now + lease), host)
  end
end
redis.call('SET', key('renewed'), exact(now))
redis.call('ZADD', key('hosts'), exact(now + lease), run)
for _, host in ipairs(redis.call('ZRANGEBYSCORE', key('hosts'), '-inf', exact(now))) do
  for _, id in ipairs(redis.call('SRANDMEMBER', runningOf(host), 100)) do
    local held = redis.call('HMGET', jobOf(id), 'status', 'run', 'createdAt', 'startedAt')
    if held[1] == 'running' and held[2] == host then
      local told = cjson.decode(ARGV[6])
      told.queueMs = math.max(0, tonumber(held[4]) - tonumber(held[3]))
      told.executionMs = math.max(0, at - tonumber(held[4]))
      finish(id, host, 'failed', at, cjson.encode(told), ARGV[7])
    end
    redis.call('SREM', runningOf(host), id)
  end
  if redis.call('SCARD', runningOf(host)) == 0 then redis.call('ZREM', key('hosts'), host) end
end
local missing = {}
if redis.call('SET', key('looked'), 1, 'NX', 'PX', 3000) then
  for _, id in ipairs(redis.call('ZRANGE', key('since'), 0, 999)) do
    if redis.call('EXISTS', ARGV[8] .. id) == 0 then
      missing[#missing + 1] = id
      missing[#missing + 1] = redis.call('HGET', jobOf(id), 'priority')
    end
  end
end
return {'ok', now, redis.call('ZRANGE', key('since'), 0, 0, 'WITHSCORES'), missing, redis.call('ZCARD', key('since'))}
`;

/** ARGV: 3 run. What it still runs is lost. */
const leaveHosts = `${records}
redis.call('ZADD', key('hosts'), 'XX', 0, ARGV[3])
return {'ok', now}
`;

export const jobScripts = {
  acceptJob,
  startJob,
  tellJob,
  endJob,
  cancelJob,
  readJobText,
  listJobs,
  removeJob,
  expireJobs,
  renewHost,
  leaveHosts,
} as const satisfies Readonly<Record<string, LuaScript>>;
