-- Files and batches. `file:ID` has `client`, `holder`, `purpose`, `record` (JSON that only the hosts read), `bytes`,
-- `lines`, `whole` and `expiresAt`. Its bytes are in `file-data:ID:0`, `file-data:ID:1` and so on, each of the same size
-- except the last one, so that no value is large. `batch:ID` has `client`, `holder`, `api`, `record`, `progress`,
-- `status`, `cancelAt`, and `run` with `until` (in ticks) for the host that runs it. `files:of:<client>` and
-- `batches:of:<client>` order both by number, `batches:by:<holder>` the batches of a key holder, `batches:open` the batches that have not ended. `files:ends`,
-- `files:broken` and `batches:ends` order them by the time of their removal. `files:used:<holder>` has the sums of a
-- key holder. Other times are milliseconds since the epoch by the clocks of the hosts.

local pieceBytes = 192 * 1024
local fileEnds, brokenFiles = keyOf('files:ends'), keyOf('files:broken')
local openBatches, batchEnds = keyOf('batches:open'), keyOf('batches:ends')
local function fileOf(id) return keyOf('file:' .. id) end
local function dataOf(id, index) return keyOf('file-data:' .. id .. ':' .. exact(index)) end
local function filesOf(client) return keyOf('files:of:' .. client) end
local function usedBy(holder) return keyOf('files:used:' .. holder) end
local function batchOf(id) return keyOf('batch:' .. id) end
local function batchesOf(client) return keyOf('batches:of:' .. client) end
local function batchesBy(holder) return keyOf('batches:by:' .. holder) end

local function checkFileLists()
  return checkType(fileEnds, 'zset') or checkType(brokenFiles, 'zset') or checkType(openBatches, 'zset')
    or checkType(batchEnds, 'zset')
end

local function dropFile(id)
  local known = redis.call('HMGET', fileOf(id), 'client', 'holder', 'bytes')
  redis.call('ZREM', fileEnds, id)
  redis.call('ZREM', brokenFiles, id)
  if not known[1] then return end
  for index = 0, math.floor(tonumber(known[3]) / pieceBytes) do redis.call('UNLINK', dataOf(id, index)) end
  redis.call('UNLINK', fileOf(id))
  redis.call('ZREM', filesOf(known[1]), id)
  redis.call('HINCRBY', usedBy(known[2]), 'bytes', exact(0 - known[3]))
  if redis.call('HINCRBY', usedBy(known[2]), 'files', -1) <= 0 then redis.call('UNLINK', usedBy(known[2])) end
end

local function dropBatch(id)
  local known = redis.call('HMGET', batchOf(id), 'client', 'holder')
  redis.call('UNLINK', batchOf(id))
  redis.call('ZREM', openBatches, id)
  redis.call('ZREM', batchEnds, id)
  if known[1] then redis.call('ZREM', batchesOf(known[1]), id) end
  if known[2] then redis.call('ZREM', batchesBy(known[2]), id) end
end

-- Adds bytes to a file. Returns whether there is such a file.
local function addBytes(id, data)
  local known = redis.call('HMGET', fileOf(id), 'bytes', 'holder')
  if not known[1] then return false end
  local bytes, from = tonumber(known[1]), 1
  while from <= #data do
    local room = pieceBytes - bytes % pieceBytes
    redis.call('APPEND', dataOf(id, math.floor(bytes / pieceBytes)), string.sub(data, from, from + room - 1))
    local added = math.min(room, #data - from + 1)
    bytes, from = bytes + added, from + added
  end
  redis.call('HINCRBY', fileOf(id), 'bytes', #data)
  redis.call('HINCRBY', usedBy(known[2]), 'bytes', #data)
  return true
end

-- Entries of a list that are read at once.
local idsAtOnce = 50

-- Returns the values of the fields of a page: args.after '' for the first page, args.filter the accepted values of
-- the first field, each between spaces, or '*' for all, args.ascending '1' or '0'. Skips entries whose second field is '0'.
local function pageOf(list, keyFor, ...)
  local found, last = {}, nil
  local limit = tonumber(args.limit)
  if args.after ~= '' then
    last = redis.call('ZSCORE', list, args.after)
    if not last then return {'ok', now, found, 0} end
  end
  local read, first, final = 'ZREVRANGEBYSCORE', '+inf', '-inf'
  if args.ascending == '1' then read, first, final = 'ZRANGEBYSCORE', '-inf', '+inf' end
  if last then first = '(' .. last end
  while true do
    local page = redis.call(read, list, first, final, 'WITHSCORES', 'LIMIT', 0, idsAtOnce)
    for index = 1, #page, 2 do
      local fields = redis.call('HMGET', keyFor(page[index]), ...)
      local isAccepted = fields[1] and (args.filter == '*' or string.find(args.filter, ' ' .. fields[1] .. ' ', 1, true))
      if isAccepted and fields[2] ~= '0' then
        if #found == limit then return {'ok', now, found, 1} end
        found[#found + 1] = fields
      end
    end
    if #page < 2 * idsAtOnce then return {'ok', now, found, 0} end
    first = '(' .. page[#page]
  end
end

function scripts.usage()
  local used = redis.call('HMGET', usedBy(args.holder), 'files', 'bytes')
  return {'ok', now, used[1] or '0', used[2] or '0'}
end

function scripts.create()
  local fault = checkFileLists() or checkType(filesOf(args.client), 'zset') or checkType(usedBy(args.holder), 'hash')
  if fault then return fault end
  local number = redis.call('INCR', keyOf('files:number'))
  redis.call('HSET', fileOf(args.id), 'client', args.client, 'holder', args.holder, 'purpose', args.purpose,
    'record', args.record, 'bytes', 0, 'lines', 0, 'whole', 0, 'expiresAt', args.expiresAt)
  redis.call('ZADD', filesOf(args.client), number, args.id)
  redis.call('ZADD', fileEnds, args.expiresAt, args.id)
  redis.call('ZADD', brokenFiles, args.createdAt, args.id)
  redis.call('HINCRBY', usedBy(args.holder), 'files', 1)
  redis.call('HINCRBY', usedBy(args.holder), 'bytes', 0)
  return {'ok', now}
end

function scripts.append()
  addBytes(args.id, args.data)
  return {'ok', now}
end

function scripts.complete()
  if redis.call('EXISTS', fileOf(args.id)) == 0 then return {'gone', now} end
  redis.call('HSET', fileOf(args.id), 'whole', 1, 'purpose', args.purpose, 'lines', args.lines, 'expiresAt', args.expiresAt)
  redis.call('ZADD', fileEnds, args.expiresAt, args.id)
  redis.call('ZREM', brokenFiles, args.id)
  return {'ok', now}
end

function scripts.find()
  local fields = redis.call('HMGET', fileOf(args.id), 'purpose', 'whole', 'record', 'bytes', 'lines', 'expiresAt', 'client')
  if fields[7] ~= args.client then return {'gone', now} end
  return {'ok', now, fields}
end

-- Returns the bytes from the position args.from to the end of their piece.
function scripts.read()
  local from = tonumber(args.from)
  return {'ok', now, redis.call('GETRANGE', dataOf(args.id, math.floor(from / pieceBytes)), exact(from % pieceBytes), -1)}
end

function scripts.list()
  return pageOf(filesOf(args.client), fileOf, 'purpose', 'whole', 'record', 'bytes', 'lines', 'expiresAt')
end

function scripts.remove()
  local fault = checkFileLists()
  if fault then return fault end
  dropFile(args.id)
  return {'ok', now}
end

-- Returns the files of open batches.
local function filesInUse()
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', openBatches, 0, -1)) do
    local record = redis.call('HGET', batchOf(id), 'record')
    local batch = record and cjson.decode(record) or {}
    for _, name in ipairs({'inputFile', 'outputFile', 'errorFile'}) do
      if type(batch[name]) == 'string' then found[batch[name]] = true end
    end
  end
  return found
end

-- Time after which an expired entry that an open batch needs is looked at again, milliseconds.
local postponedMs = 60000

-- Removes what has expired, some at a time. before: time before which a file that is not whole is too old. Entries that
-- open batches need are looked at later, so that they do not hide others. Returns the number of entries it has seen.
function scripts.expire()
  local fault = checkFileLists()
  if fault then return fault end
  local ended = redis.call('ZRANGEBYSCORE', fileEnds, '-inf', args.at, 'LIMIT', 0, 20)
  local broken = redis.call('ZRANGEBYSCORE', brokenFiles, '-inf', '(' .. args.before, 'LIMIT', 0, 20)
  local inUse = #ended + #broken > 0 and filesInUse() or {}
  for _, id in ipairs(broken) do
    if inUse[id] then redis.call('ZREM', brokenFiles, id) else dropFile(id) end
  end
  for _, id in ipairs(ended) do
    if inUse[id] then redis.call('ZADD', fileEnds, exact(args.at + postponedMs), id) else dropFile(id) end
  end
  local batches = redis.call('ZRANGEBYSCORE', batchEnds, '-inf', args.at, 'LIMIT', 0, 50)
  for _, id in ipairs(batches) do
    if redis.call('ZSCORE', openBatches, id) then redis.call('ZADD', batchEnds, exact(args.at + postponedMs), id)
    else dropBatch(id) end
  end
  return {'ok', now, #ended + #broken + #batches}
end

-- Adds a batch. The files of its results become whole when it ends, and do not count as broken until then.
function scripts.addBatch()
  local fault = checkFileLists() or checkType(batchesOf(args.client), 'zset') or checkType(batchesBy(args.holder), 'zset')
  if fault then return fault end
  local number = redis.call('INCR', keyOf('files:number'))
  redis.call('HSET', batchOf(args.id), 'client', args.client, 'holder', args.holder, 'api', args.api,
    'record', args.record, 'progress', args.progress, 'status', args.status)
  redis.call('ZADD', batchesOf(args.client), number, args.id)
  redis.call('ZADD', batchesBy(args.holder), number, args.id)
  redis.call('ZADD', openBatches, number, args.id)
  redis.call('ZADD', batchEnds, args.removeAt, args.id)
  for id in string.gmatch(args.files, '%S+') do redis.call('ZREM', brokenFiles, id) end
  return {'ok', now}
end

local function batchFields(id)
  return redis.call('HMGET', batchOf(id), 'record', 'progress', 'cancelAt', 'client', 'holder')
end

function scripts.findBatch()
  local fields = batchFields(args.id)
  if fields[4] ~= args.client then return {'gone', now} end
  return {'ok', now, fields}
end

function scripts.listBatches()
  return pageOf(batchesOf(args.client), batchOf, 'api', 'status', 'record', 'progress', 'cancelAt')
end

function scripts.openBatches()
  local found = {}
  for _, id in ipairs(redis.call('ZRANGE', openBatches, 0, -1)) do
    if redis.call('HGET', batchOf(id), 'holder') == args.holder then found[#found + 1] = batchFields(id) end
  end
  return {'ok', now, found}
end

-- Returns ended batches that are not among the newest args.count of a key holder: args.limit at most, oldest first.
function scripts.endedBeyond()
  local found = {}
  local older = redis.call('ZCARD', batchesBy(args.holder)) - tonumber(args.count)
  if older <= 0 then return {'ok', now, found} end
  for _, id in ipairs(redis.call('ZRANGE', batchesBy(args.holder), 0, older - 1)) do
    if #found == tonumber(args.limit) then break end
    if not redis.call('ZSCORE', openBatches, id) then found[#found + 1] = batchFields(id) end
  end
  return {'ok', now, found}
end

function scripts.cancelBatch()
  if redis.call('ZSCORE', openBatches, args.id) then redis.call('HSETNX', batchOf(args.id), 'cancelAt', args.at) end
  return {'ok', now}
end

function scripts.removeBatch()
  local fault = checkFileLists()
  if fault then return fault end
  dropBatch(args.id)
  return {'ok', now}
end

-- Returns the open batches that this host may run, and gives them to it until args.ticks have passed. All batches of a
-- key holder are run by one host, because they run one after the other.
function scripts.lease()
  local found, owners = {}, {}
  local ids = redis.call('ZRANGE', openBatches, 0, -1)
  for _, id in ipairs(ids) do
    local known = redis.call('HMGET', batchOf(id), 'holder', 'run', 'until')
    if known[2] and tonumber(known[3]) > now and known[1] then owners[known[1]] = known[2] end
  end
  for _, id in ipairs(ids) do
    local holder = redis.call('HGET', batchOf(id), 'holder')
    if not holder then
      redis.call('ZREM', openBatches, id)
    elseif (owners[holder] or args.run) == args.run then
      redis.call('HSET', batchOf(id), 'run', args.run, 'until', exact(now + args.ticks))
      found[#found + 1] = batchFields(id)
    end
  end
  return {'ok', now, found}
end

-- Stores the progress of a batch with new results: args.file1 and args.data1, args.file2 and args.data2, for
-- args.count files.
function scripts.advance()
  local fault = checkFileLists()
  if fault then return fault end
  local known = redis.call('HMGET', batchOf(args.id), 'run', 'cancelAt')
  if known[1] ~= args.run then return {'lost', now} end
  for index = 1, tonumber(args.count) do addBytes(args['file' .. index], args['data' .. index]) end
  redis.call('HSET', batchOf(args.id), 'progress', args.progress, 'status', args.status)
  if args.isOpen == '0' then redis.call('ZREM', openBatches, args.id) end
  if args.removeAt ~= '' then redis.call('ZADD', batchEnds, args.removeAt, args.id) end
  return {'ok', now, known[2] or ''}
end
