// The host functions on the machine itself, for the expected outputs: they are what a C compiler makes
// of the kernels without WebAssembly and without slotvm.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"

void print_i32(i32 value) { printf("%d", value); }
void print_i64(i64 value) { printf("%lld", value); }
void print_str(const char *bytes, i32 len) { fwrite(bytes, 1, (size_t)len, stdout); }

// The kernels print ASCII only.
void print_char(i32 code_point) { putchar(code_point); }

// The shortest decimal that reads back as the same number, without an exponent.
void print_f64(f64 value) {
    if (isnan(value)) {
        printf("NaN");
        return;
    }
    if (isinf(value)) {
        printf(value < 0 ? "-inf" : "inf");
        return;
    }
    char text[32];
    int n_digits = 1;
    do {
        snprintf(text, sizeof text, "%.*e", n_digits - 1, value);
    } while (strtod(text, NULL) != value && ++n_digits <= 17);
    char digits[32];
    int n = 0;
    for (const char *p = text; *p != 'e'; p++) {
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    }
    digits[n] = 0;
    int point = 1 + atoi(strchr(text, 'e') + 1);
    if (signbit(value)) putchar('-');
    if (value == 0) {
        putchar('0');
    } else if (point <= 0) {
        printf("0.");
        for (int i = point; i < 0; i++) putchar('0');
        printf("%s", digits);
    } else {
        for (int i = 0; i < n || i < point; i++) {
            if (i == point) putchar('.');
            putchar(i < n ? digits[i] : '0');
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    return run(atoi(argv[1]));
}
