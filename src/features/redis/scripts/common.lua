-- Precedes each of the other files, which add their functions to `scripts`. ARGV: 1 the function to call, 2 the prefix
-- of all keys, 3 the time after which the caller no longer waits, then pairs of argument name and value. A function
-- returns a verdict, the time, and its results. A writing function checks everything first, or begins with the steps
-- that may fail: an error in the middle would leave half a change. Times are ticks of 10 microseconds since the epoch
-- by the clock of Redis, the finest unit that fits into the 15 digits of a page cursor.

local prefix = ARGV[2]
local args = setmetatable({}, {__index = function(_, name) error('the argument ' .. name .. ' is missing') end})
for index = 4, #ARGV, 2 do args[ARGV[index]] = ARGV[index + 1] end

local function exact(number) return string.format('%.0f', number) end
local function keyOf(name) return prefix .. ':' .. name end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 100000 + math.floor(tonumber(time[2]) / 10)
if now > tonumber(ARGV[3]) then return {'late', now} end

local function checkType(key, wanted)
  local found = redis.call('TYPE', key).ok
  if found == 'none' or found == wanted then return nil end
  return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. found .. ', and has to be a ' .. wanted)
end

-- Splits at the first space.
local function splitAtSpace(member)
  local gap = string.find(member, ' ', 1, true)
  return string.sub(member, 1, gap - 1), string.sub(member, gap + 1)
end

local scripts = {}
