-- Stored responses. `response:ID` has `client`, `previous` ('' for none), `messages`, `head`, `followers`, `member`,
-- and `body` until it is removed: then it exists only for its followers. `member` names it in the lists: 'ID bytes
-- weight holder'. `responses` orders all by the time of the last response that continues them. `responses:of:<holder>`
-- orders them by use, each behind its followers, so that the first one has no follower and can be evicted.

local responses, responseShares, responseBytes = keyOf('responses'), keyOf('responses:shares'), keyOf('responses:bytes')
local function responseOf(id) return keyOf('response:' .. id) end
local function responsesOf(holder) return keyOf('responses:of:' .. holder) end

local function checkResponseLists()
  return checkType(responses, 'zset') or checkType(responseShares, 'zset') or checkType(responseBytes, 'string')
end

local function responseCounts()
  return redis.call('ZCARD', responses), redis.call('GET', responseBytes) or '0'
end

-- Removes a response. Returns the member of the previous response if that one was removed before and has no other
-- follower.
local function dropResponse(member)
  local id, bytes, weight, holder = string.match(member, '^(%S+) (%d+) (%d+) (.*)$')
  local previous = redis.call('HGET', responseOf(id), 'previous')
  redis.call('UNLINK', responseOf(id))
  redis.call('ZREM', responsesOf(holder), member)
  if redis.call('ZREM', responses, member) == 1 then
    redis.call('ZINCRBY', responseShares, -weight, holder)
    redis.call('ZREMRANGEBYSCORE', responseShares, '-inf', 0)
    redis.call('DECRBY', responseBytes, bytes)
  end
  if not previous or redis.call('EXISTS', responseOf(previous)) == 0 then return nil end
  local followers = redis.call('HINCRBY', responseOf(previous), 'followers', -1)
  local known = redis.call('HMGET', responseOf(previous), 'member', 'body')
  return followers <= 0 and not known[2] and known[1] or nil
end

local function dropLastResponse(member)
  while member do member = dropResponse(member) end
end

-- Removes up to 50 expired responses. Returns their number.
local function dropOldResponses()
  local oldest = exact(now - args.ttlMs * 100)
  local old = redis.call('ZRANGEBYSCORE', responses, '-inf', oldest, 'LIMIT', 0, 50)
  for _, member in ipairs(old) do dropResponse(member) end
  return #old
end

-- Returns the ids and members from the response back to the first one; nil if one of them is missing.
local function chainOf(id)
  local ids, members = {}, {}
  while id ~= '' do
    local known = redis.call('HMGET', responseOf(id), 'previous', 'member')
    if not known[2] then return nil end
    ids[#ids + 1] = id
    members[#members + 1] = known[2]
    id = known[1]
  end
  return ids, members
end

local function useChain(members, holder)
  for index, member in ipairs(members) do
    redis.call('ZADD', responsesOf(holder), 'GT', exact(now + index), member)
  end
end

-- Evicts responses until the limits are met. Returns whether there is then room for this member.
local function evictResponses(member)
  for _ = 1, 1000 do
    local count, bytes = responseCounts()
    if count <= tonumber(args.maxResponses) and tonumber(bytes) <= tonumber(args.maxBytes) then return true end
    local largest = redis.call('ZREVRANGE', responseShares, 0, 0)[1]
    local oldest = largest and redis.call('ZRANGE', responsesOf(largest), 0, 0)[1]
    if not oldest or oldest == member then return false end
    dropLastResponse(oldest)
  end
  return true
end

local function isOwnResponse(id)
  local known = redis.call('HMGET', responseOf(id), 'client', 'body')
  return known[1] == args.client and known[2]
end

-- Stores a response. previous: '' for none. Returns the number of responses afterwards, and their bytes.
function scripts.put()
  local key, holder, previous = responseOf(args.id), args.holder, args.previous
  local fault = checkResponseLists() or checkType(responsesOf(holder), 'zset')
  if fault then return fault end
  dropOldResponses()
  if previous ~= '' and not isOwnResponse(previous) then return {'gone', now, responseCounts()} end
  local ids, members = chainOf(previous)
  if not ids then return {'gone', now, responseCounts()} end
  local member = table.concat({args.id, args.bytes, args.weight, holder}, ' ')
  redis.call('HSET', key, 'client', args.client, 'previous', previous, 'messages', args.messages, 'body', args.body,
    'head', args.head, 'followers', 0, 'member', member)
  redis.call('INCRBY', responseBytes, args.bytes)
  redis.call('ZINCRBY', responseShares, args.weight, holder)
  if previous ~= '' then redis.call('HINCRBY', responseOf(previous), 'followers', 1) end
  table.insert(ids, 1, args.id)
  table.insert(members, 1, member)
  useChain(members, holder)
  for index, id in ipairs(ids) do
    redis.call('ZADD', responses, 'GT', exact(now), members[index])
    redis.call('PEXPIRE', responseOf(id), args.ttlMs)
  end
  local hasRoom = evictResponses(member)
  if not hasRoom then dropResponse(member) end
  return {hasRoom and 'stored' or 'full', now, responseCounts()}
end

-- Returns the ids of the chain of a response, the last one first.
function scripts.chain()
  if not isOwnResponse(args.id) then return {'gone', now} end
  local ids, members = chainOf(args.id)
  if not ids then return {'gone', now} end
  useChain(members, args.holder)
  return {'ok', now, ids}
end

-- Returns the head of a response; '' if an earlier version stored it.
function scripts.head()
  local reply = scripts.chain()
  if reply[1] ~= 'ok' then return reply end
  return {'ok', now, redis.call('HGET', responseOf(args.id), 'head') or ''}
end

-- Reads `pieceBytes` bytes of a part from byte `from`. Returns the piece, and the size of the part.
function scripts.read()
  if not isOwnResponse(args.id) then return {'gone', now} end
  local body = redis.call('HGET', responseOf(args.id), args.part)
  return {'ok', now, string.sub(body, args.from + 1, args.from + args.pieceBytes), #body}
end

-- Removes a response. Returns the totals as `put` does.
function scripts.remove()
  local key = responseOf(args.id)
  if not isOwnResponse(args.id) then return {'gone', now, responseCounts()} end
  local fault = checkResponseLists()
  if fault then return fault end
  local known = redis.call('HMGET', key, 'followers', 'member')
  if tonumber(known[1]) > 0 then redis.call('HDEL', key, 'body') else dropLastResponse(known[2]) end
  return {'ok', now, responseCounts()}
end

-- Removes up to 50 expired responses. Returns the totals as `put` does, then the number of removed ones: if it is 50,
-- more may follow.
function scripts.expire()
  local fault = checkResponseLists()
  if fault then return fault end
  local old = dropOldResponses()
  local count, bytes = responseCounts()
  return {'ok', now, count, bytes, old}
end
