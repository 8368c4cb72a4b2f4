// SHA-256 (FIPS 180-4): the published digests of three messages, and a chain of n digests, each of the one
// before it.
// default-size: 200
// bench-size: 100000
//
// Shows: eight working variables that rotate, words put together from bytes.

#include "env.h"

static const u32 k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static u32 rotated(u32 x, i32 by) { return x >> by | x << (32 - by); }

static void add_block(u32 state[8], const u8 *block) {
    u32 w[64];
    for (i32 i = 0; i < 16; i++) {
        const u8 *p = block + 4 * i;
        w[i] = (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
    }
    for (i32 i = 16; i < 64; i++) {
        u32 x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + w[i - 7] + (rotated(x, 7) ^ rotated(x, 18) ^ x >> 3) +
               (rotated(y, 17) ^ rotated(y, 19) ^ y >> 10);
    }
    u32 a = state[0], b = state[1], c = state[2], d = state[3];
    u32 e = state[4], f = state[5], g = state[6], h = state[7];
    for (i32 i = 0; i < 64; i++) {
        u32 choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        u32 t1 = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + choice + k[i] + w[i];
        u32 t2 = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + majority;
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void sha256(const u8 *message, i32 len, u8 digest[32]) {
    u32 state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    i32 at = 0;
    for (; at + 64 <= len; at += 64) add_block(state, message + at);
    // The rest, a one, zeros, and the length in bits: in one block or in two.
    u8 last[128] = {0};
    i32 n = 0;
    for (; at < len; at++) last[n++] = message[at];
    last[n] = 0x80;
    i32 end = n < 56 ? 64 : 128;
    u64 bits = 8 * (u64)len;
    for (i32 i = 1; i <= 8; i++, bits >>= 8) last[end - i] = (u8)bits;
    for (i32 i = 0; i < end; i += 64) add_block(state, last + i);
    for (i32 i = 0; i < 32; i++) digest[i] = (u8)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static void print_digest(const u8 digest[32]) {
    for (i32 i = 0; i < 32; i++) {
        print_char("0123456789abcdef"[digest[i] >> 4]);
        print_char("0123456789abcdef"[digest[i] & 15]);
    }
    print_char('\n');
}

static i32 check(const char *message, const char *digest_text) {
    u8 digest[32];
    sha256((const u8 *)message, text_len(message), digest);
    print_digest(digest);
    i32 n_wrong = 0;
    for (i32 i = 0; i < 64; i++) {
        n_wrong += digest_text[i] != "0123456789abcdef"[digest[i / 2] >> 4 * (1 - i % 2) & 15];
    }
    return n_wrong;
}

i32 run(i32 n) {
    i32 n_wrong = check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    n_wrong += check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    n_wrong += check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    u8 digest[32] = {0};
    for (i32 i = 0; i < n; i++) sha256(digest, 32, digest);
    print_digest(digest);
    return n_wrong != 0;
}
