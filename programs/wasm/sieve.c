// Primes below n by the sieve of Eratosthenes with a bit for each odd number. Of 78498 primes below a
// million, 8169 have a twin two above them.
// default-size: 200000
// bench-size: 30000000
//
// Shows: shifts and masks to reach bits in words, an inner loop of one store.

#include "env.h"

enum { N_MAX = 32000000 };

// The bit of the odd number 2 i + 1 is set if it is composite.
static u32 composite[N_MAX / 64 + 1];

static i32 is_composite(i32 i) { return composite[i >> 5] >> (i & 31) & 1; }

static void mark(i32 n_odd) {
    composite[0] |= 1;
    for (i32 i = 1; 2 * i * (i + 1) < n_odd; i++) {
        if (is_composite(i)) continue;
        i32 prime = 2 * i + 1;
        for (i32 j = 2 * i * (i + 1); j < n_odd; j += prime) composite[j >> 5] |= 1u << (j & 31);
    }
}

i32 run(i32 n) {
    if (n < 3 || n > N_MAX) return 1;
    i32 n_odd = n / 2;
    mark(n_odd);
    i32 n_primes = 1, n_twins = 0, last = 2;
    for (i32 i = 0; i < n_odd; i++) {
        if (is_composite(i)) continue;
        n_primes++;
        n_twins += 2 * i + 1 - last == 2;
        last = 2 * i + 1;
    }
    print_line("primes", n_primes);
    print_line("twins", n_twins);
    print_line("last", last);
    return 0;
}
