local function words(n)
  local words = {}
  local seed = 42
  for i = 0, n - 1 do
    seed = (seed * 3877 + 29573) % 139968
    words[#words + 1] = "word" .. seed % 1000
  end
  return words
end

local function frequencies(words, rounds)
  local counts = {}
  for round = 1, rounds do
    for i = 1, #words do
      local n = counts[words[i]]
      if n == nil then n = 0 end
      counts[words[i]] = n + 1
    end
  end
  return counts
end

local function most(counts)
  local best = 0
  for name, n in pairs(counts) do
    if n > best then best = n end
  end
  return best
end

local function squares(n)
  local table = {}
  for i = 0, n - 1 do table[i * 7] = i * i % 1009 end
  local sum = 0
  for round = 1, 30 do
    for i = 0, n - 1 do sum = sum + table[i * 7] end
  end
  return sum
end

print(most(frequencies(words(100000), 100)))
print(squares(200000))
