local function mandelbrot(size, most)
  local inside = 0
  for row = 0, size - 1 do
    local ci = 2.0 * row / size - 1.0
    for column = 0, size - 1 do
      local cr = 2.0 * column / size - 1.5
      local zr, zi, n = 0.0, 0.0, 0
      while n < most and zr * zr + zi * zi <= 4.0 do
        zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
        n = n + 1
      end
      if n == most then inside = inside + 1 end
    end
  end
  return inside
end

local function element(i, j)
  return 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1)
end

local function multiply(vector, transposed)
  local product = {}
  for i = 0, #vector - 1 do
    local sum = 0.0
    for j = 0, #vector - 1 do
      if transposed then sum = sum + element(j, i) * vector[j + 1] else sum = sum + element(i, j) * vector[j + 1] end
    end
    product[#product + 1] = sum
  end
  return product
end

local function norm(n)
  local u, v = {}, {}
  for i = 1, n do u[i] = 1.0 end
  for round = 1, 10 do
    v = multiply(multiply(u, false), true)
    u = multiply(multiply(v, false), true)
  end
  local uv, vv = 0.0, 0.0
  for i = 1, n do
    uv = uv + u[i] * v[i]
    vv = vv + v[i] * v[i]
  end
  return math.sqrt(uv / vv)
end

print(mandelbrot(500, 100))
print(math.floor(norm(300) * 1000000000))
