local function counter(step)
  local n = 0
  return function()
    n = n + step
    return n
  end
end

local function compose(f, g)
  return function(x) return f(g(x)) end
end

local function apply(f, n)
  local x = 0
  for i = 1, n do x = f(x) % 1000003 end
  return x
end

local function each(items, f)
  for i = 1, #items do f(items[i]) end
end

local function sum_of(items)
  local sum = 0
  each(items, function(item) sum = sum + item end)
  return sum
end

local by_one = counter(1)
local by_two = counter(2)
local function count(n)
  local last = 0
  for i = 1, n do last = by_one() + by_two() end
  return last
end

local items = {}
for i = 0, 999 do items[#items + 1] = i end

local function sums(n)
  local total = 0
  for i = 1, n do total = total + sum_of(items) % 7 end
  return total
end

local function makers(n)
  local total = 0
  for i = 0, n - 1 do
    local f = compose(function(x) return x + i end, function(x) return x * 2 end)
    total = (total + f(i)) % 1000003
  end
  return total
end

print(count(10000000))
print(apply(compose(function(x) return x + 7 end, function(x) return x * 3 end), 10000000))
print(sums(10000))
print(makers(3000000))
