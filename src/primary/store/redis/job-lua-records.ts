import { begin } from './lua-begin.js';

/**
 * What every script of background jobs begins with. ARGV: 2 the prefix. A job that waits is in four places; `acceptJob` puts
 * it there, and only these functions take it away.
 */
export const records = `${begin}
local prefix = ARGV[2]
local function key(name) return prefix .. ':jobs:' .. name end
local function jobOf(id) return prefix .. ':job:' .. id end
local function textOf(id) return prefix .. ':job-text:' .. id end
local function answerOf(id) return prefix .. ':job-answer:' .. id end
local function listOf(client) return key('of:' .. client) end
local function runningOf(run) return key('run:' .. run) end
local channel = key('told')
local types = {waiting = 'zset', since = 'zset', ended = 'zset', hosts = 'zset', bytes = 'string', number = 'string',
  open = 'hash', ['waiting-of'] = 'hash', ['bytes-of'] = 'hash'}
local function holderOf(client)
  local at = string.sub(client, 1, 4) == 'key ' and string.find(client, '/', 1, true)
  return at and string.sub(client, 1, at - 1) or client
end
local function openOf(client) return 'open-of:' .. holderOf(client) end
local function checkLists(client)
  for name, wanted in pairs(types) do
    local fault = checkType(key(name), wanted)
    if fault then return fault end
  end
  return checkType(listOf(client), 'zset') or checkType(key(openOf(client)), 'hash')
end
-- Beside the sum of its names, under its own name, a holder has what it asks for itself.
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
  redis.call('ZREM', key('since'), id)
  redis.call('DECRBY', key('bytes'), bytes)
  countWaiting(client, -1, -bytes)
  if redis.call('EXISTS', key('waiting')) == 0 then redis.call('DEL', key('waiting-of'), key('bytes-of')) end
end
local function isOpen(status) return status == 'queued' or status == 'running' end
local function finish(id, run, status, at, told, ttl)
  local held = redis.call('HMGET', jobOf(id), 'client', 'bytes', 'run')
  redis.call('HSET', jobOf(id), 'status', status, 'endedAt', at, 'end', told, 'run', run)
  redis.call('HDEL', jobOf(id), 'request')
  leaveWaiting(id, held[1], held[2])
  if held[3] then redis.call('SREM', runningOf(held[3]), id) end
  leaveOpen(held[1])
  redis.call('ZADD', key('ended'), at, id .. ' ' .. held[1])
  for _, each in ipairs({jobOf(id), textOf(id), answerOf(id)}) do redis.call('PEXPIRE', each, ttl) end
end
local function drop(id, client)
  local held = redis.call('HMGET', jobOf(id), 'status', 'bytes', 'run', 'number')
  if isOpen(held[1]) then
    redis.call('PUBLISH', channel, 'cancel ' .. id)
    leaveWaiting(id, client, held[2])
    if held[3] then redis.call('SREM', runningOf(held[3]), id) end
    leaveOpen(client)
  end
  redis.call('ZREM', key('ended'), id .. ' ' .. client)
  redis.call('ZREM', listOf(client), id)
  redis.call('DEL', jobOf(id), textOf(id), answerOf(id))
end
`;
