local function body(x, y, z, vx, vy, vz, mass)
  return {x = x, y = y, z = z, vx = vx, vy = vy, vz = vz, mass = mass}
end

local function advance(bodies, dt)
  for i = 1, #bodies do
    local a = bodies[i]
    for j = i + 1, #bodies do
      local b = bodies[j]
      local dx = a.x - b.x
      local dy = a.y - b.y
      local dz = a.z - b.z
      local square = dx * dx + dy * dy + dz * dz
      local factor = dt / (square * math.sqrt(square))
      a.vx = a.vx - dx * b.mass * factor
      a.vy = a.vy - dy * b.mass * factor
      a.vz = a.vz - dz * b.mass * factor
      b.vx = b.vx + dx * a.mass * factor
      b.vy = b.vy + dy * a.mass * factor
      b.vz = b.vz + dz * a.mass * factor
    end
  end
  for i = 1, #bodies do
    local a = bodies[i]
    a.x = a.x + dt * a.vx
    a.y = a.y + dt * a.vy
    a.z = a.z + dt * a.vz
  end
end

local function energy(bodies)
  local sum = 0.0
  for i = 1, #bodies do
    local a = bodies[i]
    sum = sum + a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz) / 2
    for j = i + 1, #bodies do
      local b = bodies[j]
      local dx = a.x - b.x
      local dy = a.y - b.y
      local dz = a.z - b.z
      sum = sum - a.mass * b.mass / math.sqrt(dx * dx + dy * dy + dz * dz)
    end
  end
  return sum
end

local function account(owner)
  local self = {owner = owner, balance = 0, moves = 0}
  self.deposit = function(amount)
    self.balance = self.balance + amount
    self.moves = self.moves + 1
  end
  return self
end

local function deposits(n)
  local accounts = {account("a"), account("b"), account("c")}
  for i = 0, n - 1 do accounts[i % 3 + 1].deposit(i % 7) end
  return accounts[1].balance + accounts[2].balance + accounts[3].moves
end

local bodies = {
  body(0, 0, 0, 0, 0, 0, 39.47),
  body(4.84, -1.16, -0.1, 0.6, 2.81, -0.02, 0.037),
  body(8.34, 4.12, -0.4, -1.01, 1.82, 0.008, 0.011),
  body(12.89, -15.11, -0.22, 1.08, 0.86, -0.01, 0.0017),
  body(15.37, -25.9, 0.17, 0.97, 0.59, -0.03, 0.002),
}
local function run(n)
  for i = 1, n do advance(bodies, 0.01) end
end

run(500000)
print(math.floor(energy(bodies) * 1000000))
print(deposits(5000000))
