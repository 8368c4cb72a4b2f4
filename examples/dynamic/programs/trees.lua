local function make(depth)
  if depth == 0 then return {left = nil, right = nil} end
  return {left = make(depth - 1), right = make(depth - 1)}
end

local function count(tree)
  if tree.left == nil then return 1 end
  return 1 + count(tree.left) + count(tree.right)
end

local function all(most)
  local long_lived = make(most)
  local depth = 4
  while depth <= most do
    local rounds = 1
    for i = depth, most - 1 do rounds = rounds * 2 end
    local nodes = 0
    for i = 1, rounds * 8 do nodes = nodes + count(make(depth)) end
    print(nodes)
    depth = depth + 4
  end
  print(count(long_lived))
end

all(16)
