-- Usage by day and client, rate windows, and the probe of a connection.

-- Whether Redis accepts a write, and a message to other hosts: without that right no job could be cancelled.
function scripts.probe()
  redis.call('SET', keyOf('probe'), exact(now), 'PX', 60000)
  redis.call('PUBLISH', keyOf('jobs:told'), 'probe')
  return {'ok', now}
end

-- rows: JSON, each with day, client and `more`, an amount for each thing. A batch is added once, however often it comes.
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

-- Returns how many points the window has, and how much longer it lasts, ms.
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
