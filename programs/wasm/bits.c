// Bits of n words: counted, reversed, interleaved, turned and divided by in several ways which must agree;
// their CRC-32 by bits and by table. That of "123456789" is published: cbf43926.
// default-size: 2000
// bench-size: 600000
//
// Shows: shifts, masks and rotations of 32 and 64 bits; `popcnt`, `clz` and `ctz`.

#include "env.h"

static const u32 polynomial = 0xedb88320;

static u32 table[256];
static u8 n_ones[256];

static void make_tables(void) {
    for (u32 i = 0; i < 256; i++) {
        u32 c = i;
        for (i32 bit = 0; bit < 8; bit++) c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
        table[i] = c;
        n_ones[i] = (u8)(n_ones[i / 2] + (i & 1));
    }
}

static u32 crc_by_table(u32 c, u8 byte) { return table[(c ^ byte) & 255] ^ c >> 8; }

static u32 crc_by_bits(u32 c, u8 byte) {
    c ^= byte;
    for (i32 bit = 0; bit < 8; bit++) c = c >> 1 ^ (polynomial & (0 - (c & 1)));
    return c;
}

static i32 ones_by_table(u32 x) {
    return n_ones[x & 255] + n_ones[x >> 8 & 255] + n_ones[x >> 16 & 255] + n_ones[x >> 24];
}

// Adds neighbours: bits, then pairs, then fours, then all bytes by a multiplication.
static i32 ones_by_sums(u32 x) {
    x = x - (x >> 1 & 0x55555555);
    x = (x & 0x33333333) + (x >> 2 & 0x33333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f;
    return (i32)(x * 0x01010101 >> 24);
}

static i32 ones_one_by_one(u32 x) {
    i32 n = 0;
    for (; x != 0; x &= x - 1) n++;
    return n;
}

static u32 reversed(u32 x) {
    x = x >> 1 & 0x55555555 | (x & 0x55555555) << 1;
    x = x >> 2 & 0x33333333 | (x & 0x33333333) << 2;
    x = x >> 4 & 0x0f0f0f0f | (x & 0x0f0f0f0f) << 4;
    x = x >> 8 & 0x00ff00ff | (x & 0x00ff00ff) << 8;
    return x >> 16 | x << 16;
}

// Puts a 0 above each bit.
static u64 spread(u32 bits) {
    u64 x = bits;
    x = (x | x << 16) & 0x0000ffff0000ffffULL;
    x = (x | x << 8) & 0x00ff00ff00ff00ffULL;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fULL;
    x = (x | x << 2) & 0x3333333333333333ULL;
    return (x | x << 1) & 0x5555555555555555ULL;
}

static u64 rotated(u64 x, i32 by) { return x << (by & 63) | x >> (-by & 63); }

// The greatest common divisor by shifts and subtractions.
static u32 gcd(u32 x, u32 y) {
    if (x == 0 || y == 0) return x | y;
    i32 shift = __builtin_ctz(x | y);
    x >>= __builtin_ctz(x);
    while (y != 0) {
        y >>= __builtin_ctz(y);
        if (x > y) {
            u32 old = x;
            x = y;
            y = old;
        }
        y -= x;
    }
    return x << shift;
}

static u32 gcd_by_division(u32 x, u32 y) {
    while (y != 0) {
        u32 rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

i32 run(i32 n) {
    make_tables();
    u32 c = ~0u;
    for (const char *p = "123456789"; *p != 0; p++) c = crc_by_table(c, (u8)*p);
    print_line("crc of 123456789", ~c);
    i32 n_wrong = ~c != 0xcbf43926;
    u32 state = 2463534242u, by_table = ~0u, by_bits = ~0u;
    i64 ones = 0, zeros = 0;
    u64 mixed = 0, divisors = 0;
    for (i32 i = 0; i < n; i++) {
        u32 x = random_word(&state), y = random_word(&state) >> (i & 31);
        for (i32 at = 0; at < 32; at += 8) {
            by_table = crc_by_table(by_table, (u8)(x >> at));
            by_bits = crc_by_bits(by_bits, (u8)(x >> at));
        }
        i32 count = __builtin_popcount(x);
        n_wrong += count != ones_by_table(x) || count != ones_by_sums(x);
        n_wrong += count != ones_one_by_one(x);
        ones += count;
        n_wrong += y != 0 && __builtin_clz(y) != __builtin_ctz(reversed(y));
        zeros += y != 0 ? __builtin_clz(y) : 32;
        u64 both = spread(x) | spread(y) << 1;
        n_wrong += __builtin_popcountll(both) != count + __builtin_popcount(y);
        mixed = rotated(mixed, (i32)(y & 63)) ^ both;
        u32 divisor = gcd(x, y);
        n_wrong += divisor != gcd_by_division(x, y);
        divisors += divisor;
    }
    n_wrong += by_table != by_bits;
    print_line("crc", ~by_table);
    print_line("ones", ones);
    print_line("zeros", zeros);
    print_line("mixed", (i64)mixed);
    print_line("divisors", (i64)divisors);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
