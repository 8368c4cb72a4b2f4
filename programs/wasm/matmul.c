// Products of f64 matrices: the triple loop by rows and columns, and the same by blocks.
// default-size: 48
// bench-size: 256
//
// Shows: loads and stores of f64 behind address arithmetic in deep loops.

#include "env.h"

enum { N_MAX = 512, BLOCK = 16 };

static f64 a[N_MAX][N_MAX], b[N_MAX][N_MAX], c[N_MAX][N_MAX], d[N_MAX][N_MAX];

static void fill(i32 n) {
    for (i32 i = 0; i < n; i++) {
        for (i32 j = 0; j < n; j++) {
            a[i][j] = (f64)(i + 2 * j) / n;
            b[i][j] = (f64)(i - j) / (j + 1);
            c[i][j] = d[i][j] = 0;
        }
    }
}

static void multiply(i32 n) {
    for (i32 i = 0; i < n; i++) {
        for (i32 j = 0; j < n; j++) {
            f64 sum = 0;
            for (i32 k = 0; k < n; k++) sum += a[i][k] * b[k][j];
            c[i][j] = sum;
        }
    }
}

static i32 smaller(i32 x, i32 y) { return x < y ? x : y; }

// Adds up each element in the same order as `multiply`, so that the sums are the same to the bit.
static void multiply_by_blocks(i32 n) {
    for (i32 k0 = 0; k0 < n; k0 += BLOCK) {
        for (i32 j0 = 0; j0 < n; j0 += BLOCK) {
            i32 k1 = smaller(k0 + BLOCK, n), j1 = smaller(j0 + BLOCK, n);
            for (i32 i = 0; i < n; i++) {
                for (i32 k = k0; k < k1; k++) {
                    for (i32 j = j0; j < j1; j++) d[i][j] += a[i][k] * b[k][j];
                }
            }
        }
    }
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    fill(n);
    multiply(n);
    multiply_by_blocks(n);
    f64 trace = 0;
    i32 n_different = 0;
    for (i32 i = 0; i < n; i++) {
        trace += c[i][i];
        for (i32 j = 0; j < n; j++) n_different += c[i][j] != d[i][j];
    }
    print_text("trace ");
    print_f64(trace);
    print_text("\ncorner ");
    print_f64(c[n - 1][0]);
    print_char('\n');
    print_line("different", n_different);
    return n_different != 0;
}
