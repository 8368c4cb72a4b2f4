// The task of this name by Anderson and Rettig: how often the first p numbers of a permutation, p being the
// first of them, must be reversed until it is 1; at most, and as a sum with alternating signs. For n = 7
// they are published: 16 and 228; for n = 10, 38 and 73196.
// default-size: 7
// bench-size: 9
//
// Shows: small arrays and many short loops.

#include "env.h"

enum { N_MAX = 12 };

static i32 flips(const i32 *permutation, i32 n) {
    i32 p[N_MAX];
    for (i32 i = 0; i < n; i++) p[i] = permutation[i];
    i32 count = 0;
    for (; p[0] != 0; count++) {
        for (i32 low = 0, high = p[0]; low < high; low++, high--) {
            i32 old = p[low];
            p[low] = p[high];
            p[high] = old;
        }
    }
    return count;
}

// Makes the next permutation by turning the first few numbers; `turns` says how often each length has
// been turned. There is none left if all have been turned all the way.
static i32 advance(i32 *permutation, i32 *turns, i32 n) {
    for (i32 len = 2; len <= n; len++) {
        i32 first = permutation[0];
        for (i32 i = 0; i + 1 < len; i++) permutation[i] = permutation[i + 1];
        permutation[len - 1] = first;
        if (++turns[len - 1] < len) return 1;
        turns[len - 1] = 0;
    }
    return 0;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    i32 permutation[N_MAX], turns[N_MAX];
    for (i32 i = 0; i < n; i++) {
        permutation[i] = i;
        turns[i] = 0;
    }
    i32 most = 0, checksum = 0, sign = 1;
    do {
        i32 count = flips(permutation, n);
        if (count > most) most = count;
        checksum += sign * count;
        sign = -sign;
    } while (advance(permutation, turns, n));
    print_line("checksum", checksum);
    print_line("flips", most);
    return 0;
}
