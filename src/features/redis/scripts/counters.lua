-- Usage by day and client, rate windows, and the probe of a connection.

-- Tests whether Redis accepts a write, and a message to other hosts, without which no job could be cancelled.
function scripts.probe()
  redis.call('SET', keyOf('probe'), exact(now), 'PX', 60000)
  redis.call('PUBLISH', keyOf('jobs:told'), 'probe')
  return {'ok', now}
end

-- Checks the hashes of a day or month: sums by client, and sums by model, account and client.
local function checkUsage(day)
  return checkType(keyOf('usage:' .. day), 'hash') or checkType(keyOf('usage-models:' .. day), 'hash')
end

-- Adds amounts to a hash. names: names of the row. more: amounts by name.
local function addAmounts(key, names, more)
  for thing, amount in pairs(more) do redis.call('HINCRBYFLOAT', key, thing .. ' ' .. names, amount) end
end

-- Adds usage. rows: JSON, each row with day, client, `names` (model, account and client) and `more`, the amounts by
-- name. A batch is added only once. Hosts of earlier versions know the sums by client only.
function scripts.addUsage()
  local rows = cjson.decode(args.rows)
  for _, row in ipairs(rows) do
    local fault = checkUsage(row.day)
    if fault then return fault end
  end
  if not redis.call('SET', keyOf('usage-batch:' .. args.batch), 1, 'NX', 'PX', 86400000) then return {'ok', now} end
  for _, row in ipairs(rows) do
    for key, names in pairs({usage = row.client, ['usage-models'] = row.names}) do
      addAmounts(keyOf(key .. ':' .. row.day), names, row.more)
      redis.call('PEXPIRE', keyOf(key .. ':' .. row.day), args.keepMs)
    end
  end
  return {'ok', now}
end

-- Removes a day and adds its usage to its month, unless another host has done it. rows: as in addUsage.
function scripts.foldUsage()
  local fault = checkUsage(args.day) or checkUsage(args.month)
  if fault then return fault end
  if redis.call('UNLINK', keyOf('usage:' .. args.day), keyOf('usage-models:' .. args.day)) == 0 then return {'ok', now} end
  local key = keyOf('usage-models:' .. args.month)
  for _, row in ipairs(cjson.decode(args.rows)) do addAmounts(key, row.names, row.more) end
  redis.call('PEXPIRE', key, args.keepMs)
  return {'ok', now}
end

-- Adds points to a window. Returns its points, and the milliseconds until it ends.
function scripts.countInWindow()
  local key = keyOf('rate:' .. args.name)
  local count = redis.call('INCRBY', key, args.points)
  local left = redis.call('PTTL', key)
  if left < 0 then
    left = tonumber(args.windowMs)
    redis.call('PEXPIRE', key, left)
  end
  return {'ok', now, count, left}
end
