// The Sun and four planets, n steps of a hundredth of a year: energy before and after.
// The data and the energies -0.169075164 and, after 1000 steps, -0.169087605 are published with the task
// of this name in the Computer Language Benchmarks Game.
// default-size: 1000
// bench-size: 300000
//
// Shows: structures in memory, chains of f64 arithmetic, square roots.

#include "env.h"

#define PI 3.141592653589793
#define SOLAR_MASS (4 * PI * PI)
#define DAYS 365.24

enum { N_BODIES = 5 };

typedef struct {
    f64 x, y, z, vx, vy, vz, mass;
} Body;

static Body bodies[N_BODIES] = {
    {0, 0, 0, 0, 0, 0, SOLAR_MASS},
    {4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01,
     1.66007664274403694e-03 * DAYS, 7.69901118419740425e-03 * DAYS, -6.90460016972063023e-05 * DAYS,
     9.54791938424326609e-04 * SOLAR_MASS},
    {8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01,
     -2.76742510726411857e-03 * DAYS, 4.99852801234917238e-03 * DAYS, 2.30417297573763929e-05 * DAYS,
     2.85885980666130812e-04 * SOLAR_MASS},
    {1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01,
     2.96460137564761618e-03 * DAYS, 2.37847173959480950e-03 * DAYS, -2.96589568540237556e-05 * DAYS,
     4.36624404335156298e-05 * SOLAR_MASS},
    {1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01,
     2.68067772490389322e-03 * DAYS, 1.62824170038242295e-03 * DAYS, -9.51592254519715870e-05 * DAYS,
     5.15138902046611451e-05 * SOLAR_MASS},
};

// Gives the Sun the velocity with which all momenta add up to nothing.
static void rest(void) {
    f64 px = 0, py = 0, pz = 0;
    for (i32 i = 0; i < N_BODIES; i++) {
        px += bodies[i].vx * bodies[i].mass;
        py += bodies[i].vy * bodies[i].mass;
        pz += bodies[i].vz * bodies[i].mass;
    }
    bodies[0].vx = -px / SOLAR_MASS;
    bodies[0].vy = -py / SOLAR_MASS;
    bodies[0].vz = -pz / SOLAR_MASS;
}

static f64 energy(void) {
    f64 sum = 0;
    for (i32 i = 0; i < N_BODIES; i++) {
        Body *p = &bodies[i];
        sum += 0.5 * p->mass * (p->vx * p->vx + p->vy * p->vy + p->vz * p->vz);
        for (i32 j = i + 1; j < N_BODIES; j++) {
            Body *q = &bodies[j];
            f64 dx = p->x - q->x, dy = p->y - q->y, dz = p->z - q->z;
            sum -= p->mass * q->mass / __builtin_sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return sum;
}

static void pull(Body *p, Body *q, f64 dt) {
    f64 dx = p->x - q->x, dy = p->y - q->y, dz = p->z - q->z;
    f64 square = dx * dx + dy * dy + dz * dz;
    f64 magnitude = dt / (square * __builtin_sqrt(square));
    p->vx -= dx * q->mass * magnitude;
    p->vy -= dy * q->mass * magnitude;
    p->vz -= dz * q->mass * magnitude;
    q->vx += dx * p->mass * magnitude;
    q->vy += dy * p->mass * magnitude;
    q->vz += dz * p->mass * magnitude;
}

static void advance(f64 dt) {
    for (i32 i = 0; i < N_BODIES; i++) {
        for (i32 j = i + 1; j < N_BODIES; j++) pull(&bodies[i], &bodies[j], dt);
    }
    for (i32 i = 0; i < N_BODIES; i++) {
        Body *p = &bodies[i];
        p->x += dt * p->vx;
        p->y += dt * p->vy;
        p->z += dt * p->vz;
    }
}

i32 run(i32 n) {
    rest();
    print_f64(energy());
    print_char('\n');
    for (i32 i = 0; i < n; i++) advance(0.01);
    print_f64(energy());
    print_char('\n');
    return 0;
}
