-- Background jobs of all hosts, with the live hosts and the jobs that each runs. BullMQ orders the waiting jobs;
-- `waiting` lists them by age, which BullMQ cannot. Times named `at` are milliseconds since the epoch by the clock of a
-- host. queueKey: prefix of BullMQ's keys.

local function key(name) return keyOf('jobs:' .. name) end
local function jobOf(id) return keyOf('job:' .. id) end
local function textOf(id) return keyOf('job-text:' .. id) end
local function answerOf(id) return keyOf('job-answer:' .. id) end
local function listOf(client) return key('of:' .. client) end
local function runningOf(run) return key('run:' .. run) end
local channel = key('told')

-- Returns the holder of a client, as `holderOf` in shared/client.ts does: the key of a sub-client, the person who has made
-- a key, and any other client itself. A slash in the name of a user or an address is a part of the name.
local hasParts = {key = true, made = true, sso = true}
local function holderOf(client)
  local at = hasParts[string.match(client, '^%a+')] and string.find(client, '/', 1, true)
  return at and string.sub(client, 1, at - 1) or client
end
local function openOf(client) return 'open-of:' .. holderOf(client) end

local types = {all = 'zset', waiting = 'zset', ended = 'zset', hosts = 'zset', bytes = 'string', number = 'string',
  open = 'hash', ['waiting-of'] = 'hash', ['bytes-of'] = 'hash'}
local function checkLists(client)
  for name, wanted in pairs(types) do
    local fault = checkType(key(name), wanted)
    if fault then return fault end
  end
  return checkType(listOf(client), 'zset') or checkType(key(openOf(client)), 'hash')
end

-- Returns the name for counts. The name of a key holder stands for the sum of its sub-clients, so a request of the
-- holder without a sub-client counts under the name followed by '/'.
local function nameOf(client) return client == holderOf(client) and client .. '/' or client end

local function count(name, client, by)
  if redis.call('HINCRBY', key(name), client, by) <= 0 then redis.call('HDEL', key(name), client) end
end

local function countWaiting(client, jobs, bytes)
  for _, each in ipairs({holderOf(client), nameOf(client)}) do
    count('waiting-of', each, jobs)
    count('bytes-of', each, bytes)
  end
end

local function leaveOpen(client)
  count('open', holderOf(client), -1)
  count(openOf(client), client, -1)
end

local function leaveWaiting(id, client, bytes)
  if redis.call('ZREM', key('waiting'), id) == 0 then return end
  redis.pcall('ZREM', key('since'), id) -- written by hosts of version 0.2
  redis.call('DECRBY', key('bytes'), bytes)
  countWaiting(client, -1, -bytes)
  if redis.call('EXISTS', key('waiting')) == 0 then redis.call('DEL', key('waiting-of'), key('bytes-of')) end
end

local function isOpen(status) return status == 'queued' or status == 'running' end

local function finish(id, run, status, at, jobEnd)
  local known = redis.call('HMGET', jobOf(id), 'client', 'bytes', 'run')
  redis.call('HSET', jobOf(id), 'status', status, 'endedAt', at, 'end', jobEnd, 'run', run)
  redis.call('HDEL', jobOf(id), 'request')
  leaveWaiting(id, known[1], known[2])
  if known[3] then redis.call('SREM', runningOf(known[3]), id) end
  leaveOpen(known[1])
  redis.call('ZADD', key('ended'), at, id .. ' ' .. known[1])
  for _, each in ipairs({jobOf(id), textOf(id), answerOf(id)}) do redis.call('PEXPIRE', each, args.ttlMs) end
end

local function drop(id, client)
  local known = redis.call('HMGET', jobOf(id), 'status', 'bytes', 'run')
  if isOpen(known[1]) then
    redis.call('PUBLISH', channel, 'cancel ' .. id)
    leaveWaiting(id, client, known[2])
    if known[3] then redis.call('SREM', runningOf(known[3]), id) end
    leaveOpen(client)
  end
  redis.call('ZREM', key('ended'), id .. ' ' .. client)
  for _, list in ipairs({listOf(client), key('all')}) do redis.call('ZREM', list, id) end
  redis.call('DEL', jobOf(id), textOf(id), answerOf(id))
end

-- Returns whether one more job of this size fits into a share.
local function hasRoom(each, bytes, maxJobs, maxBytes)
  local waiting = tonumber(redis.call('HGET', key('waiting-of'), each) or '0')
  local waitingBytes = tonumber(redis.call('HGET', key('bytes-of'), each) or '0')
  return waiting < tonumber(maxJobs) and (waiting == 0 or waitingBytes + bytes <= tonumber(maxBytes)), waiting
end

-- Stores a job. batch: the batch that the job is a line of; '' for another job. If this run no longer has the batch, another
-- host may have run the line, and removed its job. Returns the priority in BullMQ: the rank among the open jobs of the holder, as if its sub-clients took
-- turns.
function scripts.accept()
  local id, client, bytes = args.id, args.client, tonumber(args.bytes)
  local fault = checkLists(client)
  if fault then return fault end
  if redis.call('EXISTS', jobOf(id)) == 1 then return {'exists', now} end
  if args.batch ~= '' then
    local lease = redis.call('HMGET', keyOf('batch:' .. args.batch), 'run', 'until')
    if lease[1] ~= args.run or tonumber(lease[2]) <= now then return {'lost', now} end
  end
  local waitingBytes = tonumber(redis.call('GET', key('bytes')) or '0')
  if redis.call('ZCARD', key('waiting')) >= tonumber(args.maxJobs) or waitingBytes + bytes > tonumber(args.maxBytes) then
    return {'full', now}
  end
  local holder = holderOf(client)
  local hasHolderRoom, ofHolder = hasRoom(holder, bytes, args.maxJobsOfHolder, args.maxBytesOfHolder)
  if not hasHolderRoom then return {'share', now} end
  local hasNameRoom, ofName = hasRoom(nameOf(client), bytes, args.maxJobsOfName, args.maxBytesOfName)
  if not hasNameRoom and (holder ~= client or ofName < ofHolder) then return {'name', now} end
  local number = redis.call('INCR', key('number'))
  local own = redis.call('HINCRBY', key(openOf(client)), client, 1)
  local others = redis.call('HINCRBY', key('open'), holder, 1) - own
  local names = redis.call('HLEN', key(openOf(client)))
  local priority = math.min(own + math.min(others, (names - 1) * own), 2000000)
  redis.call('HSET', jobOf(id), 'number', number, 'client', client, 'status', 'queued', 'createdAt', args.createdAt,
    'form', args.form, 'operation', args.operation, 'requestId', args.requestId, 'request', args.request,
    'bytes', bytes, 'priority', priority, 'title', args.title)
  redis.call('ZADD', key('waiting'), args.createdAt, id)
  redis.call('INCRBY', key('bytes'), bytes)
  countWaiting(client, 1, bytes)
  for _, list in ipairs({listOf(client), key('all')}) do redis.call('ZADD', list, number, id) end
  return {'ok', now, priority}
end

-- Marks a job as running. leaseTicks: time that a host counts as alive after a sign of life. A run may repeat the call.
function scripts.start()
  local id, run = args.id, args.run
  local known = redis.call('HMGET', jobOf(id), 'status', 'run', 'client', 'bytes')
  if known[1] == 'running' and known[2] == run then return {'ok', now} end
  if known[1] ~= 'queued' then return {'gone', now} end
  local fault = checkLists(known[3]) or checkType(runningOf(run), 'set')
  if fault then return fault end
  redis.call('HSET', jobOf(id), 'status', 'running', 'startedAt', args.at, 'run', run)
  redis.call('HDEL', jobOf(id), 'request')
  leaveWaiting(id, known[3], known[4])
  redis.call('SADD', runningOf(run), id)
  redis.call('ZADD', key('hosts'), 'NX', exact(now + tonumber(args.leaseTicks)), run)
  return {'ok', now}
end

-- Writes a piece of the text from byte `from`. isAnswer '1': a piece of the final answer, which replaces the streamed
-- text. Returns the bytes that are then stored.
function scripts.write()
  local id, from = args.id, tonumber(args.from)
  local known = redis.call('HMGET', jobOf(id), 'status', 'run')
  if known[1] ~= 'queued' and not (known[1] == 'running' and known[2] == args.run) then return {'gone', now, 0} end
  local text = args.isAnswer == '1' and answerOf(id) or textOf(id)
  local length = redis.call('STRLEN', text)
  if from > length then return {'short', now, length} end
  return {'ok', now, redis.call('SETRANGE', text, from, args.piece)}
end

-- Ends a job. isReplaced '1': the final answer replaces the streamed text.
function scripts.finish()
  local id, run = args.id, args.run
  local known = redis.call('HMGET', jobOf(id), 'status', 'run', 'endedAt', 'client')
  if not known[1] then return {'ok', now} end
  if not isOpen(known[1]) then return {known[2] == run and known[3] == args.at and 'ok' or 'gone', now} end
  if known[1] == 'running' and known[2] ~= run then return {'gone', now} end
  local fault = checkLists(known[4])
  if fault then return fault end
  if args.isReplaced == '1' then
    redis.call('HSET', jobOf(id), 'isReplaced', 1)
    redis.call('DEL', textOf(id))
  end
  finish(id, run, args.status, args.at, args.jobEnd)
  return {'ok', now}
end

-- Cancels a job: ends a waiting one and returns its request, or asks the host of a running one to end it. by: an
-- administrator; '' for the client of the job.
function scripts.cancel()
  local id = args.id
  local known = redis.call('HMGET', jobOf(id), 'status', 'request', 'client')
  if not isOpen(known[1]) then return {'gone', now} end
  local fault = checkLists(known[3])
  if fault then return fault end
  redis.call('PUBLISH', channel, args.by == '' and 'cancel ' .. id or 'cancel ' .. id .. ' ' .. args.by)
  if known[1] == 'running' then return {'running', now} end
  finish(id, '', 'cancelled', args.at, args.jobEnd)
  return {'ok', now, known[2]}
end

-- Reads text. first, last: bytes, both included.
function scripts.readText()
  local isReplaced = redis.call('HGET', jobOf(args.id), 'isReplaced')
  return {'ok', now, redis.call('GETRANGE', isReplaced and answerOf(args.id) or textOf(args.id), args.first, args.last)}
end

-- Lists jobs. client, status: '' for any. Returns the number before which the next page begins ('' on the last page),
-- then the fields of each job. The number of entries read is limited, because a script blocks all hosts.
function scripts.list()
  local list, before, limit = args.client == '' and key('all') or listOf(args.client), args.before, tonumber(args.limit)
  local found = {}
  for _ = 1, 50 do
    local page = redis.call('ZREVRANGEBYSCORE', list, before, '-inf', 'WITHSCORES', 'LIMIT', 0, 200)
    for index = 1, #page, 2 do
      local known = redis.call('HMGET', jobOf(page[index]), 'client', 'form', 'operation', 'requestId', 'status',
        'createdAt', 'startedAt', 'endedAt', 'end', 'isReplaced', 'title')
      if not known[1] then
        redis.call('ZREM', list, page[index])
      elseif args.status == '' or args.status == known[5] then
        if #found == limit then return {'ok', now, string.sub(before, 2), found} end
        found[#found + 1] = {page[index], unpack(known, 1, 11)}
      end
      before = '(' .. page[index + 1]
    end
    if #page < 400 then return {'ok', now, '', found} end
  end
  return {'ok', now, string.sub(before, 2), found}
end

function scripts.remove()
  local client = redis.call('HGET', jobOf(args.id), 'client')
  local fault = client and checkLists(client)
  if fault then return fault end
  if client then drop(args.id, client) end
  return {'ok', now}
end

-- Removes up to 100 jobs that ended before this time. Returns their number: if it is 100, more may follow.
function scripts.expire()
  local old = redis.call('ZRANGEBYSCORE', key('ended'), '-inf', '(' .. args.before, 'LIMIT', 0, 100)
  for _, member in ipairs(old) do drop(splitAtSpace(member)) end
  return {'ok', now, #old}
end

-- Ends jobs of a dead host, and adds their ids to `lost`. lostEnd: the end of these jobs, without times.
local function endJobsOf(host, lost)
  local at = tonumber(args.at)
  for _, id in ipairs(redis.call('SRANDMEMBER', runningOf(host), 100)) do
    local known = redis.call('HMGET', jobOf(id), 'status', 'run', 'createdAt', 'startedAt')
    if known[1] == 'running' and known[2] == host then
      local jobEnd = cjson.decode(args.lostEnd)
      jobEnd.queueMs = math.max(0, tonumber(known[4]) - tonumber(known[3]))
      jobEnd.executionMs = math.max(0, at - tonumber(known[4]))
      finish(id, host, 'failed', at, cjson.encode(jobEnd))
      lost[#lost + 1] = id
    end
    redis.call('SREM', runningOf(host), id)
  end
  if redis.call('SCARD', runningOf(host)) == 0 then redis.call('ZREM', key('hosts'), host) end
end

-- Renews the sign of life of a host, and ends jobs of dead hosts. If no host has renewed for half a lease, Redis was
-- down: then all hosts get a full lease. A host with time 0 has announced its end. Returns the id of the job that has
-- waited longest, the time since which it waits, the number of waiting jobs, and the ids of the ended jobs.
function scripts.renewHost()
  local lease = tonumber(args.leaseTicks)
  local last = tonumber(redis.call('GET', key('renewed')) or '0')
  if now - last > lease / 2 then
    for _, host in ipairs(redis.call('ZRANGEBYSCORE', key('hosts'), '(0', '+inf')) do
      redis.call('ZADD', key('hosts'), exact(now + lease), host)
    end
  end
  redis.call('SET', key('renewed'), exact(now))
  redis.call('ZADD', key('hosts'), exact(now + lease), args.run)
  local lost = {}
  for _, host in ipairs(redis.call('ZRANGEBYSCORE', key('hosts'), '-inf', exact(now))) do endJobsOf(host, lost) end
  local oldest = redis.call('ZRANGE', key('waiting'), 0, 0, 'WITHSCORES')
  return {'ok', now, oldest, redis.call('ZCARD', key('waiting')), lost}
end

-- Finds waiting jobs that BullMQ lacks. Returns the next cursor, then their ids and priorities.
function scripts.orphans()
  local found = {}
  local page = redis.call('ZSCAN', key('waiting'), args.cursor, 'COUNT', 500)
  for index = 1, #page[2], 2 do
    local id = page[2][index]
    if redis.call('EXISTS', args.queueKey .. id) == 0 then
      found[#found + 1] = id
      found[#found + 1] = redis.call('HGET', jobOf(id), 'priority') or '1'
    end
  end
  return {'ok', now, page[1], found}
end

-- Returns the position of a job in BullMQ's order. A taken or delayed job counts as first of its priority.
function scripts.position()
  local prioritized = args.queueKey .. 'prioritized'
  local before = redis.call('ZRANK', prioritized, args.id)
  if not before then
    local priority = tonumber(redis.call('HGET', args.queueKey .. args.id, 'priority') or '0')
    before = redis.call('ZCOUNT', prioritized, '-inf', '(' .. exact(priority * 4294967296))
  end
  return {'ok', now, redis.call('LLEN', args.queueKey .. 'wait') + before + 1}
end

-- Announces the end of a host, so that its running jobs count as lost.
function scripts.leave()
  redis.call('ZADD', key('hosts'), 'XX', 0, args.run)
  return {'ok', now}
end
