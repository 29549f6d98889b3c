-- with: conversations answers responses tables files
-- Checks and purges everything under the prefix in pieces, because a script blocks all hosts.

-- Redis types of the keys, by the first word after the prefix.
local types = {conversation = 'hash', turns = 'list', list = 'zset', all = 'zset', clients = 'zset', usage = 'hash',
  ['usage-models'] = 'hash',
  ['usage-batch'] = 'string', answer = 'hash', answers = 'zset', response = 'hash',
  responses = 'zset', rate = 'string', probe = 'string', job = 'hash',
  ['job-text'] = 'string', ['job-answer'] = 'string', ['made-keys'] = 'hash', file = 'hash', ['file-data'] = 'string', batch = 'hash', batches = 'zset'}
local typesOfFiles = {of = 'zset', ends = 'zset', broken = 'zset', used = 'hash', number = 'string'}
local typesOfJobs = {of = 'zset', all = 'zset', run = 'set', waiting = 'zset', ended = 'zset', hosts = 'zset',
  ['waiting-of'] = 'hash', ['bytes-of'] = 'hash', open = 'hash', ['open-of'] = 'hash', bytes = 'string', number = 'string'}

local function typeOf(kind, rest)
  if kind == 'files' then return typesOfFiles[string.match(rest, '^[^:]*')] end
  if kind == 'jobs' then return typesOfJobs[string.match(rest, '^[^:]*')] end
  if (kind == 'answers' or kind == 'responses') and rest == 'bytes' then return 'string' end
  return types[kind]
end

local function isThere(name) return redis.call('EXISTS', keyOf(name)) == 1 end
local function isIn(list, member) return redis.pcall('ZSCORE', keyOf(list), member) end

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

-- Calls `visit` with each key of a page, its kind, the rest of its name and its type. Returns the next cursor.
local function visitPage(visit)
  local page = redis.call('SCAN', args.cursor, 'MATCH', prefix .. ':*', 'COUNT', args.count)
  for _, key in ipairs(page[2]) do
    local kind, rest = string.match(string.sub(key, #prefix + 2), '^([^:]*):?(.*)$')
    visit(key, kind, rest, redis.call('TYPE', key).ok)
  end
  return page[1]
end

-- Removes conversations in the list of a client, and dangling entries. last: entries up to this time; '' for now.
-- Returns the number of removed conversations, the number of remaining entries, and the time used.
function scripts.purgeList()
  local client, last = args.client, args.last
  local fault = checkConversationLists(client)
  if fault then return fault end
  if last == '' then last = exact(now) end
  local removed = 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', listOf(client), '-inf', last, 'LIMIT', 0, args.count)) do
    removed = removed + redis.call('EXISTS', metaOf(id))
    dropConversation(id, client)
  end
  local left = redis.call('ZCOUNT', listOf(client), '-inf', last)
  if redis.call('ZCARD', listOf(client)) == 0 then redis.call('ZREM', clients, client) end
  return {'ok', now, removed, left, last}
end

local purges = {}
function purges.conversation(key, id)
  if redis.call('HGET', key, 'client') ~= args.client then return end
  dropConversation(id, args.client)
  count('conversations')
end
function purges.answer(key)
  local known = redis.call('HMGET', key, 'client', 'member')
  if known[1] ~= args.client then return end
  if known[2] then dropAnswer(known[2]) else redis.call('UNLINK', key) end
  count('idempotency')
end
function purges.response(key)
  local known = redis.call('HMGET', key, 'client', 'member')
  if known[1] ~= args.client then return end
  if known[2] then dropResponse(known[2]) else redis.call('UNLINK', key) end
  count('responses')
end
function purges.file(key, id)
  if redis.call('HGET', key, 'client') ~= args.client then return end
  dropFile(id)
  count('files')
end
function purges.batch(key, id)
  if redis.call('HGET', key, 'client') ~= args.client then return end
  dropBatch(id)
  count('batches')
end
function purges.usage(key)
  local removed = 0
  for thing in string.gmatch(args.things, '%S+') do removed = removed + redis.call('HDEL', key, thing .. ' ' .. args.client) end
  if removed > 0 then count('usage') end
end
purges['usage-models'] = function(key, day)
  local removed = 0
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.match(field, '^%S+ %S* %S* (.*)$') == args.client then removed = removed + redis.call('HDEL', key, field) end
  end
  if removed > 0 and #day == 7 then count('usage') end -- the sums by client of a day are counted
end
function purges.rate(key, name)
  if string.sub(name, -#args.client - 1) == ':' .. args.client then count('rate_windows', redis.call('UNLINK', key)) end
end

-- Returns the tables that features declare. args.tables: names of a table and of its rows, separated by commas.
local function declaredTables()
  local found = {}
  for name, row in string.gmatch(args.tables, '([^%s,]+) ([^%s,]+)') do
    types[name], types[row] = 'zset', 'hash'
    found[#found + 1] = tableOf(name, row)
  end
  return found
end

-- Removes the data of a client in one page of keys. things: names of the usage amounts. Returns the next cursor, and
-- the number of removed keys by kind.
function scripts.purgePage()
  local fault = checkConversationLists(args.client) or checkType(answers, 'zset') or checkType(shares, 'zset')
    or checkResponseLists() or checkFileLists()
  for _, tbl in ipairs(declaredTables()) do
    fault = fault or checkRowLists(tbl)
    purges[tbl.row] = function(key, id)
      if redis.call('HGET', key, 'client') ~= args.client then return end
      dropRow(tbl, id)
      count(tbl.name)
    end
  end
  if fault then return fault end
  local cursor = visitPage(function(key, kind, rest, found)
    if purges[kind] and found == typeOf(kind, rest) then purges[kind](key, rest) end
  end)
  return {'ok', now, cursor, counted()}
end

-- Returns the next cursor, and the clients of one page of keys that are `client`, or whose texts begin with it and a slash.
function scripts.clientsPage()
  for _, tbl in ipairs(declaredTables()) do purges[tbl.row] = true end
  local found = {}
  local cursor = visitPage(function(key, kind, rest, type)
    if type ~= 'hash' or (kind ~= 'job' and not purges[kind]) or type ~= typeOf(kind, rest) then return end
    local client = redis.call('HGET', key, 'client')
    if not client then return end
    if client == args.client or string.sub(client, 1, #args.client + 1) == args.client .. '/' then found[#found + 1] = client end
  end)
  return {'ok', now, cursor, found}
end

-- Returns the next cursor, and the ids of the responses or recorded answers of a client in one page of keys.
function scripts.idsPage()
  local found = {}
  local cursor = visitPage(function(key, kind, id, type)
    if kind == args.kind and type == 'hash' and redis.call('HGET', key, 'client') == args.client then found[#found + 1] = id end
  end)
  return {'ok', now, cursor, found}
end

local faults, lists = {}, {}
local function fault(...) faults[#faults + 1] = table.concat({...}, ' ') end
local function addList(key) lists[#lists + 1] = key end

local checks = {list = addList, all = addList}
function checks.conversation(key, id)
  local known = redis.call('HMGET', key, 'client', 'count')
  local turns = redis.pcall('LLEN', turnsOf(id))
  count('conversations')
  if type(turns) == 'number' then count('turns', turns) end
  if turns ~= (tonumber(known[2]) or 1) / 2 then fault('the text of conversation', id, 'is not whole') end
  if not known[1] or not isIn('list:' .. known[1], id) or not isIn('all', id .. ' ' .. known[1]) then
    fault('conversation', id, 'is missing in a list')
  end
end
function checks.turns(key, id)
  if not isThere('conversation:' .. id) then fault(key, 'belongs to no conversation') end
end
function checks.answer(key)
  local known = redis.call('HMGET', key, 'head', 'member')
  if not known[1] then return end
  count('idempotency')
  if not known[2] or not isIn('answers', known[2]) then fault(key, 'is missing in a list') end
end
function checks.answers(key, rest) if rest == '' then addList(key) end end
function checks.response(key, id)
  local known = redis.call('HMGET', key, 'previous', 'member')
  count('responses')
  if not known[2] or not isIn('responses', known[2]) then fault('response', id, 'is missing in a list') end
  if known[1] ~= '' and not isThere('response:' .. (known[1] or '')) then
    fault('the text of response', id, 'is not whole')
  end
end
checks.responses = checks.answers
function checks.usage() count('usage_days') end
checks['usage-models'] = function(_, day) if #day == 7 then count('usage_months') end end
function checks.rate() count('rate_windows') end
function checks.file() count('files') end
function checks.batch() count('batches') end
checks['file-data'] = function(key, rest)
  if not isThere('file:' .. string.match(rest, '^[^:]*')) then fault(key, 'belongs to no file') end
end
function checks.job(key, id)
  count('jobs')
  if redis.call('HGET', key, 'status') == 'queued' and not isIn('jobs:waiting', id) then
    fault('job', id, 'waits and is missing in a list')
  end
end
checks['job-text'] = function(key, id) if not isThere('job:' .. id) then fault(key, 'belongs to no job') end end
checks['job-answer'] = checks['job-text']
function checks.jobs(key, rest) if rest == 'waiting' then addList(key) end end

-- Checks one page of keys without a change. Returns the next cursor, the number of keys by kind, the faults, and the
-- lists for checkList.
function scripts.checkPage()
  for _, tbl in ipairs(declaredTables()) do checks[tbl.row] = function() count(tbl.name) end end
  local cursor = visitPage(function(key, kind, rest, found)
    local wanted = typeOf(kind, rest)
    if wanted and found ~= wanted then
      if found ~= 'none' then fault(key, 'is a ' .. found .. ', and has to be a ' .. wanted) end
    elseif checks[kind] then
      checks[kind](key, rest)
    end
  end)
  return {'ok', now, cursor, counted(), faults, lists}
end

-- Checks one page of a list without a change. Entries point to keys that begin with `target`. ttlMs: time to live of
-- the entries; '' for no limit. Returns the next cursor, the number of unexpired dangling entries, and the number of
-- expired ones.
function scripts.checkList()
  local missing, old, ttl = 0, 0, tonumber(args.ttlMs)
  local oldest = ttl and now - ttl * 100 + 100000 or -math.huge -- an entry that is about to expire may point to nothing
  local page = redis.call('ZSCAN', args.list, args.cursor, 'COUNT', args.count)
  for index = 1, #page[2], 2 do
    if redis.call('EXISTS', args.target .. string.match(page[2][index], '^%S+')) == 0 then
      if tonumber(page[2][index + 1]) <= oldest then old = old + 1 else missing = missing + 1 end
    end
  end
  return {'ok', now, page[1], missing, old}
end
