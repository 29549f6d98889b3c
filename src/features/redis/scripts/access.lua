-- Keys that were made over HTTP. `made-keys` has `text`, which only the hosts read, and `version`, a new id for each text.

local madeKeys = keyOf('made-keys')

-- Returns the version, and the text unless the host knows this version. known: '' if the host has no keys.
function scripts.readMadeKeys()
  local fault = checkType(madeKeys, 'hash')
  if fault then return fault end
  local version = redis.call('HGET', madeKeys, 'version') or ''
  if version == args.known then return {'ok', now, version, ''} end
  return {'ok', now, version, redis.call('HGET', madeKeys, 'text') or ''}
end

-- Replaces the text unless another host has replaced it since the version `known`.
function scripts.writeMadeKeys()
  local fault = checkType(madeKeys, 'hash')
  if fault then return fault end
  if (redis.call('HGET', madeKeys, 'version') or '') ~= args.known then return {'changed', now} end
  redis.call('HSET', madeKeys, 'version', args.version, 'text', args.text)
  return {'ok', now}
end
