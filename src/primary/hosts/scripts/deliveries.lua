-- Deliveries of notices. `delivery:ID` has `client`, `share` and `record`, a JSON text that only the hosts read.
-- `deliveries` and `deliveries:of:<share>` order them by the time of their creation, `deliveries:due` the pending ones by
-- the time of their next attempt. The share is the holder of the client for notices about jobs, and empty for all others.
-- An earlier version has stored no share: it was the client. Times are milliseconds since the epoch by the clocks of the
-- hosts.

local deliveries, dueDeliveries = keyOf('deliveries'), keyOf('deliveries:due')
local function deliveryOf(id) return keyOf('delivery:' .. id) end
local function deliveriesOf(share) return keyOf('deliveries:of:' .. share) end

local function checkDeliveryLists()
  return checkType(deliveries, 'zset') or checkType(dueDeliveries, 'zset')
end

-- Removes a delivery. Returns 1 if it was pending, else 0.
local function dropDelivery(id)
  local known = redis.call('HMGET', deliveryOf(id), 'share', 'client')
  local share = known[1] or known[2]
  redis.call('UNLINK', deliveryOf(id))
  redis.call('ZREM', deliveries, id)
  if share then redis.call('ZREM', deliveriesOf(share), id) end
  return redis.call('ZREM', dueDeliveries, id)
end

-- Removes one delivery of a list that has `max`: the oldest that has ended, else the oldest about a client. Returns the
-- number of pending ones that it removes. `except`: part of the list whose deliveries neither count nor are removed, or nil.
local function makeRoomForDelivery(list, max, except)
  local count = redis.call('ZCARD', list) - (except and redis.call('ZCARD', except) or 0)
  if count < tonumber(max) then return 0 end
  local ids, aboutClient = {}, nil
  for _, id in ipairs(redis.call('ZRANGE', list, 0, -1)) do
    if not except or not redis.call('ZSCORE', except, id) then ids[#ids + 1] = id end
  end
  for _, id in ipairs(ids) do
    if not redis.call('ZSCORE', dueDeliveries, id) then return dropDelivery(id) end
    if not aboutClient and redis.call('HGET', deliveryOf(id), 'client') ~= '' then aboutClient = id end
  end
  return dropDelivery(aboutClient or ids[1])
end

-- Adds a delivery unless its id is known. Returns whether it is new, and the number of removed pending ones. before:
-- time before which an ended delivery is too old.
function scripts.addDelivery()
  local fault = checkDeliveryLists() or checkType(deliveriesOf(args.share), 'zset') or checkType(deliveriesOf(''), 'zset')
  if fault then return fault end
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', deliveries, '-inf', '(' .. args.before, 'LIMIT', 0, 50)) do
    if not redis.call('ZSCORE', dueDeliveries, id) then dropDelivery(id) end
  end
  if redis.call('EXISTS', deliveryOf(args.id)) == 1 then return {'ok', now, 0, 0} end
  local dropped
  if args.share == '' then
    dropped = makeRoomForDelivery(deliveriesOf(''), args.max)
  else
    dropped = makeRoomForDelivery(deliveriesOf(args.share), args.maxOfClient)
    dropped = dropped + makeRoomForDelivery(deliveries, args.max, deliveriesOf(''))
  end
  redis.call('HSET', deliveryOf(args.id), 'client', args.client, 'share', args.share, 'record', args.record)
  redis.call('ZADD', deliveries, args.createdAt, args.id)
  redis.call('ZADD', deliveriesOf(args.share), args.createdAt, args.id)
  redis.call('ZADD', dueDeliveries, args.nextAt, args.id)
  return {'ok', now, 1, dropped}
end

-- Returns the records of deliveries that are due at the time `at`, and makes them due again at the time `untilTime`.
function scripts.takeDeliveries()
  local fault = checkDeliveryLists()
  if fault then return fault end
  local records = {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', dueDeliveries, '-inf', args.at, 'LIMIT', 0, args.limit)) do
    local record = redis.call('HGET', deliveryOf(id), 'record')
    if record then
      redis.call('ZADD', dueDeliveries, args.untilTime, id)
      records[#records + 1] = record
    else
      redis.call('ZREM', dueDeliveries, id)
    end
  end
  return {'ok', now, records}
end

-- Replaces a delivery unless it was removed. nextAt: '' if it has ended.
function scripts.updateDelivery()
  local fault = checkDeliveryLists()
  if fault then return fault end
  if redis.call('EXISTS', deliveryOf(args.id)) == 0 then return {'ok', now} end
  redis.call('HSET', deliveryOf(args.id), 'record', args.record)
  if args.nextAt == '' then redis.call('ZREM', dueDeliveries, args.id)
  else redis.call('ZADD', dueDeliveries, args.nextAt, args.id) end
  return {'ok', now}
end

-- Returns the records of the newest deliveries, the newest first.
function scripts.listDeliveries()
  local records = {}
  for _, id in ipairs(redis.call('ZREVRANGE', deliveries, 0, args.limit - 1)) do
    records[#records + 1] = redis.call('HGET', deliveryOf(id), 'record') or nil
  end
  return {'ok', now, records}
end
