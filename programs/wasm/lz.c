// Compresses n bytes of made-up text with a Lempel-Ziv code, decompresses them and compares. Matches are
// found by chains of positions with the same hash. A token is a literal run or a match.
// default-size: 20000
// bench-size: 4000000
//
// Shows: byte loads and stores, data-dependent loops, copies that overlap.

#include "env.h"

enum {
    N_MAX = 8000000,
    HASH_BITS = 14,
    WINDOW = 1 << 16,
    MATCH_MIN = 4,
    MATCH_MAX = 131,
    RUN_MAX = 128,
    STEPS_MAX = 16,
};

static u8 text[N_MAX + MATCH_MAX], packed[N_MAX + N_MAX / RUN_MAX + 16], unpacked[N_MAX + MATCH_MAX];
static i32 head[1 << HASH_BITS], previous[WINDOW];

static const char *const words[16] = {
    "the ", "stack ", "machine ", "has ", "local ", "slots ", "and ", "a ",
    "frame, ", "promotion ", "moves ", "them ", "to ", "registers.\n", "of ", "values ",
};

// Words in random order; now and then random letters.
static void write_text(i32 n) {
    u32 state = 88172645;
    i32 at = 0;
    while (at < n) {
        u32 r = random_word(&state) >> 8;
        if (r % 23 == 0) {
            text[at++] = (u8)('a' + r / 23 % 26);
            continue;
        }
        // The smaller of two numbers, so that some words come more often.
        u32 i = r & 15, j = r >> 4 & 15;
        for (const char *p = words[i < j ? i : j]; *p != 0 && at < n; p++) text[at++] = (u8)*p;
    }
}

static u32 hash(const u8 *p) {
    u32 word = (u32)p[0] | (u32)p[1] << 8 | (u32)p[2] << 16 | (u32)p[3] << 24;
    return word * 2654435761u >> (32 - HASH_BITS);
}

static i32 match_len(const u8 *p, const u8 *q, i32 max) {
    i32 len = 0;
    while (len < max && p[len] == q[len]) len++;
    return len;
}

static void insert(i32 at) {
    u32 h = hash(text + at);
    previous[at & (WINDOW - 1)] = head[h];
    head[h] = at;
}

static i32 longest_match(i32 at, i32 n, i32 *distance) {
    i32 best = 0, max = n - at < MATCH_MAX ? n - at : MATCH_MAX;
    i32 candidate = head[hash(text + at)];
    for (i32 step = 0; step < STEPS_MAX; step++) {
        if (candidate < 0 || at - candidate >= WINDOW) break;
        i32 len = match_len(text + candidate, text + at, max);
        if (len > best) {
            best = len;
            *distance = at - candidate;
        }
        candidate = previous[candidate & (WINDOW - 1)];
    }
    return best;
}

static i32 write_run(i32 to, i32 from, i32 end) {
    while (from < end) {
        i32 len = end - from < RUN_MAX ? end - from : RUN_MAX;
        packed[to++] = (u8)(len - 1);
        for (i32 i = 0; i < len; i++) packed[to++] = text[from++];
    }
    return to;
}

static i32 compress(i32 n) {
    for (i32 i = 0; i < 1 << HASH_BITS; i++) head[i] = -1;
    i32 to = 0, run_start = 0, at = 0;
    while (at + MATCH_MIN <= n) {
        i32 distance = 0, len = longest_match(at, n, &distance);
        if (len < MATCH_MIN) {
            insert(at++);
            continue;
        }
        to = write_run(to, run_start, at);
        packed[to++] = (u8)(0x80 | (len - MATCH_MIN));
        packed[to++] = (u8)distance;
        packed[to++] = (u8)(distance >> 8);
        for (i32 end = at + len; at < end; at++) {
            if (at + MATCH_MIN <= n) insert(at);
        }
        run_start = at;
    }
    return write_run(to, run_start, n);
}

static i32 decompress(i32 n_packed) {
    i32 to = 0;
    for (i32 at = 0; at < n_packed;) {
        i32 token = packed[at++];
        if (token < 0x80) {
            for (i32 i = 0; i <= token; i++) unpacked[to++] = packed[at++];
        } else {
            i32 len = (token & 0x7f) + MATCH_MIN, distance = packed[at] | packed[at + 1] << 8;
            at += 2;
            for (i32 i = 0; i < len; i++, to++) unpacked[to] = unpacked[to - distance];
        }
    }
    return to;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    write_text(n);
    i32 n_packed = compress(n);
    i32 n_unpacked = decompress(n_packed);
    i32 n_different = n_unpacked != n;
    for (i32 i = 0; i < n; i++) n_different += text[i] != unpacked[i];
    u32 sum = 0;
    for (i32 i = 0; i < n_packed; i++) sum = sum * 31 + packed[i];
    print_line("bytes", n);
    print_line("packed", n_packed);
    print_line("sum", sum);
    print_line("different", n_different);
    return n_different != 0;
}
