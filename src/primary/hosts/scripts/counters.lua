-- Usage by day and client, rate windows, and the probe of a connection.

-- Tests whether Redis accepts a write, and a message to other hosts, without which no job could be cancelled.
function scripts.probe()
  redis.call('SET', keyOf('probe'), exact(now), 'PX', 60000)
  redis.call('PUBLISH', keyOf('jobs:told'), 'probe')
  return {'ok', now}
end

-- Adds usage. rows: JSON, each row with day, client and `more`, the amounts by name. A batch is added only once.
function scripts.addUsage()
  local rows = cjson.decode(args.rows)
  for _, row in ipairs(rows) do
    local fault = checkType(keyOf('usage:' .. row.day), 'hash')
    if fault then return fault end
  end
  if not redis.call('SET', keyOf('usage-batch:' .. args.batch), 1, 'NX', 'PX', 86400000) then return {'ok', now} end
  for _, row in ipairs(rows) do
    local key = keyOf('usage:' .. row.day)
    for thing, more in pairs(row.more) do redis.call('HINCRBYFLOAT', key, thing .. ' ' .. row.client, more) end
    redis.call('PEXPIRE', key, args.keepMs)
  end
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
