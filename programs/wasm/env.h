// The host functions of `vmrun` that the kernels call, and how a kernel exports its `main`. There is no
// C library: what a kernel needs beyond this it does itself.

#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int i32;
typedef long long i64;
typedef double f64;

#ifdef __wasm__
#define IMPORT(name) __attribute__((import_module("env"), import_name(name)))
#define EXPORT_MAIN __attribute__((export_name("main")))
#else
#define IMPORT(name)
#define EXPORT_MAIN
#endif

IMPORT("print_i32") void print_i32(i32 value);
IMPORT("print_i64") void print_i64(i64 value);
IMPORT("print_f64") void print_f64(f64 value);
IMPORT("print_char") void print_char(i32 code_point);
IMPORT("print_str") void print_str(const char *bytes, i32 len);

// Runs the kernel with a size; the result is the exit code.
EXPORT_MAIN i32 run(i32 n);

static inline i32 text_len(const char *text) {
    i32 len = 0;
    while (text[len] != 0) len++;
    return len;
}

static inline void print_text(const char *text) { print_str(text, text_len(text)); }

// A labelled number on a line of its own.
static inline void print_line(const char *label, i64 value) {
    print_text(label);
    print_char(' ');
    print_i64(value);
    print_char('\n');
}

// A pseudo-random word: Marsaglia's xorshift of 32 bits. The state is never 0.
static inline u32 random_word(u32 *state) {
    u32 x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}
