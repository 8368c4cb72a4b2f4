local function sieve(limit)
  local composite = {}
  for i = 0, limit - 1 do composite[#composite + 1] = false end
  local n = 0
  for i = 2, limit - 1 do
    if not composite[i + 1] then
      n = n + 1
      local multiple = i * i
      while multiple < limit do
        composite[multiple + 1] = true
        multiple = multiple + i
      end
    end
  end
  return n
end

local function merge(from, into, start, middle, stop)
  local left, right = start, middle
  for i = start, stop - 1 do
    if left < middle and (right >= stop or from[left] <= from[right]) then
      into[i] = from[left]
      left = left + 1
    else
      into[i] = from[right]
      right = right + 1
    end
  end
end

local function sort(items)
  local from, into = items, {}
  for i = 1, #items do into[#into + 1] = 0 end
  local width = 1
  while width < #items do
    local start = 1
    while start <= #items do
      local middle = start + width
      if middle > #items + 1 then middle = #items + 1 end
      local stop = middle + width
      if stop > #items + 1 then stop = #items + 1 end
      merge(from, into, start, middle, stop)
      start = stop
    end
    from, into = into, from
    width = width * 2
  end
  return from
end

local function numbers(n)
  local items = {}
  local seed = 42
  for i = 0, n - 1 do
    seed = (seed * 3877 + 29573) % 139968
    items[#items + 1] = seed
  end
  return items
end

for round = 1, 4 do print(sieve(2000000)) end
local sorted = sort(numbers(1000000))
print(sorted[1])
print(sorted[500001])
print(sorted[1000000])
