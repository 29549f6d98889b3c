-- Texts that hosts share, such as `made-keys`. Each has `text`, which only the hosts read, and `version`, a new id for each text.

-- Returns the version, and the text unless the host knows this version. known: '' if the host has no text.
function scripts.readText()
  local key = keyOf(args.name)
  local fault = checkType(key, 'hash')
  if fault then return fault end
  local version = redis.call('HGET', key, 'version') or ''
  if version == args.known then return {'ok', now, version, ''} end
  return {'ok', now, version, redis.call('HGET', key, 'text') or ''}
end

-- Replaces the text unless another host has replaced it since the version `known`.
function scripts.writeText()
  local key = keyOf(args.name)
  local fault = checkType(key, 'hash')
  if fault then return fault end
  if (redis.call('HGET', key, 'version') or '') ~= args.known then return {'changed', now} end
  redis.call('HSET', key, 'version', args.version, 'text', args.text)
  return {'ok', now}
end
