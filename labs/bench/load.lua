-- The requests that wrk sends. labs/bench/load.py sets the environment variables.
--
-- One thread generates all requests, so the same seed generates the same purchases with the same
-- idempotency keys.

local kind = os.getenv("BENCH_KIND")
local rate = tonumber(os.getenv("BENCH_RATE") or 0)
local cycle = tonumber(os.getenv("BENCH_CYCLE") or 0)
local data = dofile(os.getenv("BENCH_DATA"))

local function one_of(list) return list[math.random(#list)] end

local function get(path) return function()
    return wrk.format("GET", path, { Authorization = one_of(data.bearers) })
end end

-- A random UUID, as merchants send. Ordered keys would make the index faster.
local function idempotency_key()
    return string.format("%08x-%04x-4%03x-8%03x-%08x%04x", math.random(0, 0x7fffffff),
        math.random(0, 0xffff), math.random(0, 0xfff), math.random(0, 0xfff),
        math.random(0, 0x7fffffff), math.random(0, 0xffff))
end

local function post(bearer, body)
    return wrk.format("POST", "/api/v1/orders", {
        ["Authorization"] = bearer, ["Content-Type"] = "application/json",
        ["Idempotency-Key"] = idempotency_key(),
    }, body)
end

local function voucher(bearer, product)
    return post(bearer, '{"product_id": ' .. product .. ', "quantity": 1}')
end

local kinds = {
    ping = get("/api/v1/ping"),
    products = get("/api/v1/products"),
    voucher = function() return voucher(one_of(data.bearers), one_of(data.products)) end,
    hot_wallet = function() return voucher(data.bearers[1], one_of(data.products)) end,
    hot_shelf = function() return voucher(one_of(data.bearers), data.products[1]) end,
    topup = function()
        local product = one_of(data.topups)
        return post(one_of(data.bearers), '{"delivery_type": "top_up", "system_product_id": '
            .. product.id .. ', "player_id": "0012345678", "fields": {"' .. product.field
            .. '": "eu"}}')
    end,
    order = function()
        local order = one_of(data.orders)
        return wrk.format("GET", "/api/v1/orders/" .. order[2], { Authorization = order[1] })
    end,
    orders = function()
        return wrk.format("GET", "/api/v1/orders?page=" .. os.getenv("BENCH_PAGE")
            .. "&per_page=" .. (os.getenv("BENCH_PER_PAGE") or 25),
            { Authorization = data.collector })
    end,
}

local ffi = require("ffi")
ffi.cdef [[
    struct bench_time { long seconds; long nanoseconds; };
    int clock_gettime(int clock, struct bench_time *now);
]]
local time = ffi.new("struct bench_time")

local function milliseconds()
    ffi.C.clock_gettime(1, time)
    return tonumber(time.seconds) * 1e3 + tonumber(time.nanoseconds) / 1e6
end

function init()
    math.randomseed(tonumber(os.getenv("BENCH_SEED")))
    local remembered, next = {}, 0
    request = kinds[kind]
    if cycle > 0 then
        for place = 1, cycle do remembered[place] = request() end
        request = function()
            next = next % cycle + 1
            return remembered[next]
        end
    end
end

-- A paced run sends requests at fixed times. A slow response does not delay later requests.
if rate > 0 then
    local due
    function delay()
        local now = milliseconds()
        due = (due or now) + 1000 / rate
        return math.max(0, math.floor(due - now))
    end
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        '{"requests": %d, "seconds": %f, "errors": %d, "p50": %f, "p95": %f, "p99": %f}',
        summary.requests, summary.duration / 1e6,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        latency:percentile(50) / 1e3, latency:percentile(95) / 1e3, latency:percentile(99) / 1e3))
end
