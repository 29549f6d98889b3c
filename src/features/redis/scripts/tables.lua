-- Rows of the tables that features declare, such as the table `deliveries` with rows `delivery`. `delivery:ID` has
-- `client`, `share` and `record`, a JSON text that only the hosts read. `deliveries` and `deliveries:of:<share>` order
-- the rows by the time of their creation, `deliveries:due` those that have not ended by the time from which a host may
-- take them. The share is the holder of the client for rows that clients cause, and empty for all others. An earlier
-- version has stored no share: it was the client. Times are milliseconds since the epoch by the clocks of the hosts.

local function tableOf(name, row) return {name = name, row = row, list = keyOf(name), due = keyOf(name .. ':due')} end
local function rowKey(tbl, id) return keyOf(tbl.row .. ':' .. id) end
local function listOfShare(tbl, share) return keyOf(tbl.name .. ':of:' .. share) end

local function checkRowLists(tbl)
  return checkType(tbl.list, 'zset') or checkType(tbl.due, 'zset')
end

-- Removes a row. Returns 1 if it had not ended, else 0.
local function dropRow(tbl, id)
  local known = redis.call('HMGET', rowKey(tbl, id), 'share', 'client')
  local share = known[1] or known[2]
  redis.call('UNLINK', rowKey(tbl, id))
  redis.call('ZREM', tbl.list, id)
  if share then redis.call('ZREM', listOfShare(tbl, share), id) end
  return redis.call('ZREM', tbl.due, id)
end

-- Removes one row of a list that has `max`: the oldest that has ended, else the oldest about a client. Returns the number
-- of removed rows that had not ended. `except`: part of the list whose rows neither count nor are removed, or nil.
local function makeRoomForRow(tbl, list, max, except)
  local count = redis.call('ZCARD', list) - (except and redis.call('ZCARD', except) or 0)
  if count < tonumber(max) then return 0 end
  local ids, aboutClient = {}, nil
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if not except or not redis.call('ZSCORE', except, id) then ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    if not redis.call('ZSCORE', tbl.due, id) then return dropRow(tbl, id) end
    if not aboutClient and redis.call('HGET', rowKey(tbl, id), 'client') ~= '' then aboutClient = id end
  end
  return dropRow(tbl, aboutClient or ids[1])
end

-- Removes some of the oldest rows if they have ended. before: time before which an ended row is too old.
local function expireOld(tbl)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', tbl.list, '-inf', '(' .. args.before, 'LIMIT', 0, 50)) do
    if not redis.call('ZSCORE', tbl.due, id) then dropRow(tbl, id) end
  end
end

-- Lets a row and its lists expire if no feature removes them any more. ttlMs: much longer than a row of a feature stays.
local function stay(tbl, id, share)
  for _, key in ipairs({rowKey(tbl, id), tbl.list, tbl.due, listOfShare(tbl, share)}) do
    redis.call('PEXPIRE', key, args.ttlMs)
  end
end

function scripts.expireRows()
  local tbl = tableOf(args.table, args.row)
  local fault = checkRowLists(tbl)
  if fault then return fault end
  expireOld(tbl)
  return {'ok', now}
end

-- Adds a row unless its id is known. Returns whether it is new, and the number of removed rows that had not ended.
-- before: time before which an ended row is too old.
function scripts.addRow()
  local tbl = tableOf(args.table, args.row)
  local fault = checkRowLists(tbl) or checkType(listOfShare(tbl, args.share), 'zset')
    or checkType(listOfShare(tbl, ''), 'zset')
  if fault then return fault end
  expireOld(tbl)
  if redis.call('EXISTS', rowKey(tbl, args.id)) == 1 then return {'ok', now, 0, 0} end
  local dropped
  if args.share == '' then
    dropped = makeRoomForRow(tbl, listOfShare(tbl, ''), args.max)
  else
    dropped = makeRoomForRow(tbl, listOfShare(tbl, args.share), args.maxOfHolder)
    dropped = dropped + makeRoomForRow(tbl, tbl.list, args.max, listOfShare(tbl, ''))
  end
  redis.call('HSET', rowKey(tbl, args.id), 'client', args.client, 'share', args.share, 'record', args.record)
  redis.call('ZADD', tbl.list, args.createdAt, args.id)
  redis.call('ZADD', listOfShare(tbl, args.share), args.createdAt, args.id)
  if args.nextAt ~= '' then redis.call('ZADD', tbl.due, args.nextAt, args.id) end
  stay(tbl, args.id, args.share)
  return {'ok', now, 1, dropped}
end

-- Returns the records of rows that are due at the time `at`, and makes them due again at the time `untilTime`.
function scripts.takeRows()
  local tbl = tableOf(args.table, args.row)
  local fault = checkRowLists(tbl)
  if fault then return fault end
  local records = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', tbl.due, '-inf', args.at, 'LIMIT', 0, args.limit)) do
    local record = redis.call('HGET', rowKey(tbl, id), 'record')
    if record then
      redis.call('ZADD', tbl.due, args.untilTime, id)
      records[#records + 1] = record
    else
      redis.call('ZREM', tbl.due, id)
    end
  end
  return {'ok', now, records}
end

-- Replaces a row unless it was removed. nextAt: '' if it has ended.
function scripts.updateRow()
  local tbl = tableOf(args.table, args.row)
  local fault = checkRowLists(tbl)
  if fault then return fault end
  if redis.call('EXISTS', rowKey(tbl, args.id)) == 0 then return {'ok', now} end
  redis.call('HSET', rowKey(tbl, args.id), 'record', args.record)
  if args.nextAt == '' then redis.call('ZREM', tbl.due, args.id)
  else redis.call('ZADD', tbl.due, args.nextAt, args.id) end
  local known = redis.call('HMGET', rowKey(tbl, args.id), 'share', 'client')
  stay(tbl, args.id, known[1] or known[2])
  return {'ok', now}
end

-- Returns the records of the newest rows, the newest first.
function scripts.listRows()
  local tbl = tableOf(args.table, args.row)
  local records = {}
  for _, id in ipairs(redis.call('ZREVRANGE', tbl.list, 0, args.limit - 1)) do
    records[#records + 1] = redis.call('HGET', rowKey(tbl, id), 'record') or nil
  end
  return {'ok', now, records}
end
