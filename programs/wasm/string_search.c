// Counts where patterns of many lengths occur in n bytes: by trying every place, by Knuth, Morris and Pratt's
// failure function, and by Horspool's skip table. All three find the same places.
// default-size: 10000
// bench-size: 800000
//
// Shows: comparisons of bytes at two moving indices, loops with several exits.

#include "env.h"

enum { N_MAX = 4000000, PATTERN_MAX = 24 };

typedef struct {
    i32 count;
    u32 sum;
} Found;

static u8 text[N_MAX];

static void found_at(Found *found, i32 at) {
    found->count++;
    found->sum = found->sum * 31 + (u32)at;
}

static Found search_everywhere(i32 n, const u8 *pattern, i32 len) {
    Found found = {0, 0};
    for (i32 at = 0; at + len <= n; at++) {
        i32 i = 0;
        while (i < len && text[at + i] == pattern[i]) i++;
        if (i == len) found_at(&found, at);
    }
    return found;
}

static Found knuth_morris_pratt(i32 n, const u8 *pattern, i32 len) {
    // The longest proper prefix of the first i bytes that is also their suffix.
    i32 border[PATTERN_MAX + 1];
    border[0] = -1;
    for (i32 i = 0, j = -1; i < len;) {
        while (j >= 0 && pattern[i] != pattern[j]) j = border[j];
        border[++i] = ++j;
    }
    Found found = {0, 0};
    i32 j = 0;
    for (i32 i = 0; i < n; i++) {
        while (j >= 0 && (j == len || text[i] != pattern[j])) j = border[j];
        if (++j == len) found_at(&found, i + 1 - len);
    }
    return found;
}

static Found horspool(i32 n, const u8 *pattern, i32 len) {
    i32 skip[256];
    for (i32 c = 0; c < 256; c++) skip[c] = len;
    for (i32 i = 0; i < len - 1; i++) skip[pattern[i]] = len - 1 - i;
    Found found = {0, 0};
    for (i32 at = 0; at + len <= n; at += skip[text[at + len - 1]]) {
        i32 i = len - 1;
        while (i >= 0 && text[at + i] == pattern[i]) i--;
        if (i < 0) found_at(&found, at);
    }
    return found;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    u32 state = 777767777;
    for (i32 i = 0; i < n; i++) {
        // Few letters and many repetitions, so that prefixes match often.
        u32 r = random_word(&state);
        text[i] = r & 7 && i >= 16 ? text[i - 1 - (i32)(r >> 20 & 15)] : (u8)('a' + (r >> 16 & 3));
    }
    i32 n_found = 0, n_wrong = 0;
    u32 sum = 0;
    for (i32 len = 1; len <= PATTERN_MAX && len <= n; len += 4) {
        u8 pattern[PATTERN_MAX];
        i32 start = (i32)(random_word(&state) % (u32)(n - len + 1));
        for (i32 i = 0; i < len; i++) pattern[i] = text[start + i];
        Found a = search_everywhere(n, pattern, len);
        Found b = knuth_morris_pratt(n, pattern, len);
        Found c = horspool(n, pattern, len);
        n_wrong += a.count == 0 || b.count != a.count || b.sum != a.sum;
        n_wrong += c.count != a.count || c.sum != a.sum;
        n_found += a.count;
        sum += a.sum;
    }
    print_line("found", n_found);
    print_line("sum", sum);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
