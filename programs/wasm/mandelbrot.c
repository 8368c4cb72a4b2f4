// The Mandelbrot set: how many of n by n points are in it after 200 steps, and a picture if it is small.
// default-size: 40
// bench-size: 600
//
// Shows: a loop over f64 locals that touches no memory where locals are registers.

#include "env.h"

enum { STEPS = 200, PICTURE_MAX = 64 };

static i32 steps(f64 cx, f64 cy) {
    f64 x = 0, y = 0;
    i32 i = 0;
    for (; i < STEPS && x * x + y * y <= 4; i++) {
        f64 next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
    }
    return i;
}

i32 run(i32 n) {
    i32 n_inside = 0;
    i64 sum = 0;
    for (i32 row = 0; row < n; row++) {
        for (i32 column = 0; column < n; column++) {
            i32 i = steps(-2.0 + 3.0 * column / n, -1.5 + 3.0 * row / n);
            n_inside += i == STEPS;
            sum += i;
            if (n <= PICTURE_MAX) print_char(i == STEPS ? '#' : " .:-=+*%@"[i < 9 ? i : 8]);
        }
        if (n <= PICTURE_MAX) print_char('\n');
    }
    print_line("inside", n_inside);
    print_line("steps", sum);
    return 0;
}
