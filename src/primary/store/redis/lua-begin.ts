export type LuaScript = string;

/** Every script begins with it. ARGV: 1 the time after which nobody waits for it any more. */
export const begin = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 100000 + math.floor(tonumber(time[2]) / 10)
local function exact(number) return string.format('%.0f', number) end
if now > tonumber(ARGV[1]) then return {'late', now} end
local function checkType(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found == 'none' or found == wanted then return nil end
  return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', and has to be a ' .. wanted)
end
`;
