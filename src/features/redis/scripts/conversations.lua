-- Conversations: a hash and a list of turns each. The sorted sets `all` and `list:<client>` order them by their last
-- change; `clients` counts the conversations of each client.

local all, clients = keyOf('all'), keyOf('clients')
local function listOf(client) return keyOf('list:' .. client) end
local function metaOf(id) return keyOf('conversation:' .. id) end
local function turnsOf(id) return keyOf('turns:' .. id) end

local function checkConversationLists(client)
  return checkType(all, 'zset') or checkType(clients, 'zset') or checkType(listOf(client), 'zset')
end

local function dropConversation(id, client)
  redis.call('UNLINK', metaOf(id), turnsOf(id))
  redis.call('ZREM', listOf(client), id)
  if redis.call('ZREM', all, id .. ' ' .. client) == 1 then redis.call('ZINCRBY', clients, -1, client) end
  redis.call('ZREMRANGEBYSCORE', clients, '-inf', 0)
end

local function dropExpired()
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', all, '-inf', exact(now - args.ttlMs * 100), 'LIMIT', 0, 50)) do
    dropConversation(splitAtSpace(member))
  end
end

local function touch(id, client)
  local last = redis.call('ZREVRANGE', listOf(client), 0, 0, 'WITHSCORES')
  local at = math.max(now, tonumber(last[2] or '0') + 1)
  redis.call('ZADD', listOf(client), exact(at), id)
  if redis.call('ZADD', all, exact(at), id .. ' ' .. client) == 1 then redis.call('ZINCRBY', clients, 1, client) end
  for _, key in ipairs({metaOf(id), turnsOf(id), listOf(client), all, clients}) do
    redis.call('PEXPIRE', key, args.ttlMs)
  end
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
    local id, client = splitAtSpace(member)
    if id ~= but and isIdle(id) then return id, client end
  end
end

-- Evicts idle conversations beyond the limit, first from the client with the most, never the conversation `but`.
local function evict(but)
  for _ = 1, 10 do
    if redis.call('ZCARD', all) <= tonumber(args.maxConversations) then return end
    local greediest = redis.call('ZREVRANGE', clients, 0, 0, 'WITHSCORES')
    local id, client
    if tonumber(greediest[2] or '0') > tonumber(args.clientShare) then id, client = firstIdleOf(greediest[1], but) end
    if not id then id, client = firstIdle(but) end
    if not id then return end
    dropConversation(id, client)
  end
end

-- Returns the number of messages, and the token of the turn lock if it was wanted and is free, otherwise 0.
function scripts.enter()
  local known = redis.call('HMGET', metaOf(args.id), 'client', 'count', 'until')
  if known[1] ~= args.client then return {'gone', now} end
  local token, left, lockTicks = 0, tonumber(known[3] or '0') - now, tonumber(args.lockTicks)
  if args.wantsLock == '1' and (left <= 0 or left > lockTicks) then -- a longer time comes from a clock that was wrong
    token = redis.call('HINCRBY', metaOf(args.id), 'fence', 1)
    redis.call('HSET', metaOf(args.id), 'until', exact(now + lockTicks))
  end
  return {'ok', now, tonumber(known[2]), token}
end

-- Renews a turn lock. lockTicks: time until it expires; 0 releases it.
function scripts.renew()
  local known = redis.call('HMGET', metaOf(args.id), 'client', 'fence')
  if not known[1] then return {'gone', now} end
  if known[2] ~= args.token then return {'stale', now} end
  redis.call('HSET', metaOf(args.id), 'until', exact(now + tonumber(args.lockTicks)))
  return {'ok', now}
end

-- Appends a turn. before: messages before this turn; token: 0 without a lock; name: name of this commit. The first turn
-- has createdAt, title, named and origins ('' for none) and system too ('-' for none, otherwise '+' and the text).
function scripts.commit()
  local id, client, before = args.id, args.client, tonumber(args.before)
  local fault = checkConversationLists(client)
  if fault then return fault end
  local meta, turns = metaOf(id), turnsOf(id)
  local known = redis.call('HMGET', meta, 'client', 'count', 'fence', 'active')
  if before == 0 then
    if known[1] or redis.call('EXISTS', turns) == 1 then return {'stale', now} end
  else
    if known[1] ~= client then return {'gone', now} end
    if known[3] ~= args.token or tonumber(known[2]) ~= before then return {'stale', now} end
  end
  redis.call('RPUSH', turns, args.turn)
  -- A host clock that was set back makes no conversation older.
  local active = tonumber(known[4] or '') or 0
  redis.call('HSET', meta, 'count', before + 2, 'tokens', args.totalTokens, 'active', exact(math.max(active, args.at)),
    'commit', args.name, 'until', 0)
  if before == 0 then
    redis.call('HSET', meta, 'client', client, 'fence', 0, 'created', args.createdAt, 'title', args.title,
      'system', args.system)
    if args.named ~= '' then redis.call('HSET', meta, 'named', args.named) end
    if args.origins ~= '' then redis.call('HSET', meta, 'origins', args.origins) end
  end
  touch(id, client)
  if before == 0 then
    dropExpired()
    evict(id)
  end
  return {'ok', now}
end

-- Undoes the commit with this name, if it was done.
function scripts.withdraw()
  local id, before = args.id, tonumber(args.before)
  local known = redis.call('HMGET', metaOf(id), 'count', 'commit')
  if known[2] ~= args.name or tonumber(known[1]) ~= before + 2 then return {'ok', now} end
  if before == 0 then
    dropConversation(id, args.client)
  else
    redis.call('RPOP', turnsOf(id))
    local tokens = string.match(redis.call('LINDEX', turnsOf(id), -1), '^%d+')
    redis.call('HSET', metaOf(id), 'count', before, 'tokens', tokens, 'commit', '', 'until', 0)
  end
  return {'ok', now}
end

-- Returns the origins of a version that shares the first `count` messages with a conversation, like `originsOf` in the
-- service.
local function originsOf(id, origins, count)
  local found = {}
  for origin, shared in string.gmatch(origins or '', '(%S+) (%d+)') do
    if tonumber(shared) >= count then
      id = origin
      break
    end
    found[#found + 1] = origin .. ' ' .. shared
  end
  found[#found + 1] = id .. ' ' .. exact(count)
  return table.concat(found, ' ')
end

-- Forks a conversation. messages: number of messages to copy; '' for all.
function scripts.fork()
  local client, meta, turns = args.client, metaOf(args.origin), turnsOf(args.origin)
  local fault = checkType(meta, 'hash') or checkType(turns, 'list') or checkConversationLists(client)
  if fault then return fault end
  local known = redis.call('HMGET', meta, 'client', 'count', 'title', 'system', 'named', 'origins')
  if known[1] ~= client then return {'gone', now} end
  local count = tonumber(known[2])
  local wanted = tonumber(args.messages) or count
  if wanted > count or wanted < 2 or wanted % 2 ~= 0 then return {'range', now, count} end
  local newMeta, newTurns = metaOf(args.id), turnsOf(args.id)
  if redis.call('EXISTS', newMeta, newTurns) > 0 then return {'stale', now} end
  redis.call('COPY', turns, newTurns)
  redis.call('LTRIM', newTurns, 0, wanted / 2 - 1)
  local tokens = string.match(redis.call('LINDEX', newTurns, -1), '^%d+')
  local origins = originsOf(args.origin, known[6], wanted)
  redis.call('HSET', newMeta, 'client', client, 'count', wanted, 'tokens', tokens, 'fence', 0, 'until', 0,
    'created', args.at, 'active', args.at, 'title', known[3], 'system', known[4], 'commit', '', 'origins', origins)
  if known[5] then redis.call('HSET', newMeta, 'named', known[5]) end
  touch(args.id, client)
  dropExpired()
  evict(args.id)
  return {'ok', now, wanted, tonumber(tokens), known[5] or known[3], origins}
end

-- Sets the title; '' restores the first words. A rename is not an activity: the time to live stays.
function scripts.rename()
  local meta = metaOf(args.id)
  local fault = checkType(meta, 'hash')
  if fault then return fault end
  if redis.call('HGET', meta, 'client') ~= args.client then return {'gone', now} end
  if args.title == '' then redis.call('HDEL', meta, 'named') else redis.call('HSET', meta, 'named', args.title) end
  return {'ok', now}
end

function scripts.remove()
  local fault = checkType(metaOf(args.id), 'hash') or checkConversationLists(args.client)
  if fault then return fault end
  if redis.call('HGET', metaOf(args.id), 'client') ~= args.client then return {'gone', now} end
  dropConversation(args.id, args.client)
  return {'ok', now}
end

-- Lists conversations without a change. before: '+inf' for the first page. Returns eight values per conversation.
function scripts.list()
  local found, before, limit = {}, args.before, tonumber(args.limit)
  local after = '(' .. exact(now - args.ttlMs * 100)
  for _ = 1, 20 do
    local page = redis.call('ZREVRANGEBYSCORE', listOf(args.client), before, after, 'WITHSCORES', 'LIMIT', 0, limit)
    for index = 1, #page, 2 do
      before = '(' .. page[index + 1]
      local known = redis.call('HMGET', metaOf(page[index]), 'count', 'tokens', 'created', 'active', 'title', 'named', 'origins')
      known[5], known[6], known[7] = known[6] or known[5], known[7] or '', nil
      if known[1] then found[#found + 1] = {page[index], page[index + 1], unpack(known)} end
      if #found == limit then break end
    end
    if #page == 0 or #found == limit then break end
  end
  return {'ok', now, found}
end
