// Compresses its input, decompresses that, and compares: LZ77 with hash chains, lengths and distances in
// a byte format of its own.
//
// usage: lz [-c | -d]    (-c: write compressed, -d: decompress to the output)
// stdin: chess.c
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 1 << 16, HASH_BITS = 14, CHAIN_MAX = 64, MATCH_MIN = 4, MATCH_MAX = 1 << 16 };

struct bytes {
    uint8_t *data;
    size_t len, capacity;
};

static void push(struct bytes *b, const uint8_t *data, size_t len)
{
    if (b->len + len > b->capacity) {
        while (b->len + len > b->capacity) {
            b->capacity = 2 * b->capacity + 256;
        }
        b->data = realloc(b->data, b->capacity);
        if (!b->data) {
            fputs("lz: out of memory\n", stderr);
            exit(1);
        }
    }
    if (len) {
        memcpy(b->data + b->len, data, len);
    }
    b->len += len;
}

static void push_number(struct bytes *b, size_t n)
{
    do {
        uint8_t byte = n & 0x7f;
        n >>= 7;
        byte |= n ? 0x80 : 0;
        push(b, &byte, 1);
    } while (n);
}

static uint32_t hash(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, 4);
    return word * 2654435761u >> (32 - HASH_BITS);
}

/// Pieces of literals, each followed by a match: number of literals, literals, length, distance. The last
/// match has length 0.
static struct bytes compress(const uint8_t *in, size_t len)
{
    struct bytes out = {0};
    int32_t *head = malloc(sizeof *head << HASH_BITS), *chain = malloc(sizeof *chain * WINDOW);
    if (!head || !chain) {
        exit(1);
    }
    memset(head, -1, sizeof *head << HASH_BITS);
    size_t literals = 0, i = 0;
    while (i < len) {
        size_t best = 0, distance = 0;
        if (i + MATCH_MIN <= len) {
            int32_t at = head[hash(in + i)];
            for (int n = 0; n < CHAIN_MAX && at >= 0 && i - (size_t)at < WINDOW; n++) {
                size_t max = len - i < MATCH_MAX ? len - i : MATCH_MAX, l = 0;
                while (l < max && in[(size_t)at + l] == in[i + l]) {
                    l++;
                }
                if (l > best) {
                    best = l;
                    distance = i - (size_t)at;
                }
                at = chain[at & (WINDOW - 1)];
            }
        }
        size_t step = best >= MATCH_MIN ? best : 1;
        if (best >= MATCH_MIN) {
            push_number(&out, i - literals);
            push(&out, in + literals, i - literals);
            push_number(&out, best);
            push_number(&out, distance);
            literals = i + best;
        }
        for (size_t end = i + step; i < end; i++) {
            if (i + MATCH_MIN <= len) {
                uint32_t h = hash(in + i);
                chain[i & (WINDOW - 1)] = head[h];
                head[h] = (int32_t)i;
            }
        }
    }
    push_number(&out, len - literals);
    push(&out, in + literals, len - literals);
    push_number(&out, 0);
    free(head);
    free(chain);
    return out;
}

static int take_number(const struct bytes *in, size_t *at, size_t *n)
{
    *n = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        if (*at == in->len) {
            return 0;
        }
        uint8_t byte = in->data[(*at)++];
        *n |= (size_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return 1;
        }
    }
    return 0;
}

/// Whether it was written by `compress`.
static int decompress(const struct bytes *in, struct bytes *out)
{
    for (size_t at = 0;;) {
        size_t n, len, distance;
        if (!take_number(in, &at, &n) || in->len - at < n) {
            return 0;
        }
        push(out, in->data + at, n);
        at += n;
        if (!take_number(in, &at, &len)) {
            return 0;
        }
        if (len == 0) {
            return at == in->len;
        }
        if (!take_number(in, &at, &distance) || distance == 0 || distance > out->len) {
            return 0;
        }
        for (; len; len--) {
            uint8_t byte = out->data[out->len - distance];
            push(out, &byte, 1);
        }
    }
}

static uint32_t adler(const struct bytes *b)
{
    uint32_t s = 1, t = 0;
    for (size_t i = 0; i < b->len; i++) {
        s = (s + b->data[i]) % 65521;
        t = (t + s) % 65521;
    }
    return t << 16 | s;
}

int main(int argc, char **argv)
{
    struct bytes in = {0};
    uint8_t buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
        push(&in, buffer, n);
    }
    if (argc > 1 && strcmp(argv[1], "-d") == 0) {
        struct bytes out = {0};
        if (!decompress(&in, &out)) {
            fputs("lz: the input is damaged\n", stderr);
            return 1;
        }
        fwrite(out.data, 1, out.len, stdout);
        free(out.data);
        free(in.data);
        return 0;
    }
    struct bytes packed = compress(in.data, in.len);
    if (argc > 1 && strcmp(argv[1], "-c") == 0) {
        fwrite(packed.data, 1, packed.len, stdout);
        free(packed.data);
        free(in.data);
        return 0;
    }
    struct bytes back = {0};
    int is_same = decompress(&packed, &back) && back.len == in.len
               && (in.len == 0 || memcmp(back.data, in.data, in.len) == 0);
    printf("%zu bytes, adler %08x\n", in.len, (unsigned)adler(&in));
    printf("%zu compressed, adler %08x\n", packed.len, (unsigned)adler(&packed));
    puts(is_same ? "decompressed it is the same" : "decompressed it differs");
    // Damage is noticed, or gives something else; it harms nothing.
    unsigned n_noticed = 0, n_tried = 0;
    for (size_t i = 0; i < packed.len; i += 1 + packed.len / 50) {
        struct bytes damaged = {0};
        packed.data[i] ^= 0x55;
        n_tried++;
        n_noticed += !decompress(&packed, &damaged);
        packed.data[i] ^= 0x55;
        free(damaged.data);
    }
    printf("damage noticed: %u of %u\n", n_noticed, n_tried);
    free(in.data);
    free(packed.data);
    free(back.data);
    return !is_same;
}
