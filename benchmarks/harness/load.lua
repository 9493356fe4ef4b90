-- Requests from a file, one body a line, for wrk: wrk -s load.lua URL -- BODIES TYPE
-- Afterwards it prints what harness/load.py does, as a line of JSON.
local threads = {}
local requests, at = {}, 0
statuses = {}

function setup(thread) threads[#threads + 1] = thread end

function init(arguments)
  local headers = { ["Content-Type"] = arguments[2] }
  for line in io.lines(arguments[1]) do
    requests[#requests + 1] = wrk.format("POST", nil, headers, line)
  end
end

function request()
  at = at % #requests + 1
  return requests[at]
end

function response(status) statuses[status] = (statuses[status] or 0) + 1 end

function done(summary, latency)
  local counted, errors = {}, summary.errors
  for _, thread in ipairs(threads) do
    for status, n in pairs(thread:get("statuses")) do counted[status] = (counted[status] or 0) + n end
  end
  local told = {}
  for status, n in pairs(counted) do told[#told + 1] = string.format('"%d": %d', status, n) end
  local broken = errors.connect + errors.read + errors.write
  print(string.format(
    '{"per_second": %.1f, "p50": %.2f, "p99": %.2f, "worst": %.1f, "statuses": {%s}, "broken": {%s}, "stuck": %d}',
    (counted[200] or 0) / (summary.duration / 1e6), latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, table.concat(told, ", "), broken > 0 and string.format('"connections": %d', broken) or "",
    errors.timeout))
end
