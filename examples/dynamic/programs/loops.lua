local function chain(n)
  local steps = 0
  while n ~= 1 do
    if n % 2 == 0 then n = n // 2 else n = 3 * n + 1 end
    steps = steps + 1
  end
  return steps
end

local function longest(limit)
  local best, most = 0, 0
  for n = 1, limit - 1 do
    local steps = chain(n)
    if steps > most then
      most = steps
      best = n
    end
  end
  return best
end

local function random(n)
  local seed, sum = 42, 0
  for i = 0, n - 1 do
    seed = (seed * 3877 + 29573) % 139968
    if seed % 3 == 0 then sum = sum + seed % 10 end
  end
  return sum
end

print(longest(500000))
print(random(20000000))
