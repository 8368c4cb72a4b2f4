// Runs a number of rounds of so many runs of a program each, and prints what a run printed, then the least time of a
// round in nanoseconds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char out[1 << 20];
static size_t used;

void host_print_i32(int32_t v) { used += snprintf(out + used, sizeof out - used, "%d", v); }
void host_print_char(int32_t c) { out[used++] = (char)c; }
void host_print_str(const char *text, int32_t n) { memcpy(out + used, text, n); used += n; }

void wend_reset(void);
void wend_main(void);

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv) {
    long long least = -1;
    int in_round = argc > 2 ? atoi(argv[2]) : 1;
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--) {
        long long start = now();
        for (int k = 0; k < in_round; k++) {
            used = 0;
            wend_reset();
            wend_main();
        }
        long long taken = now() - start;
        if (least < 0 || taken < least) least = taken;
    }
    fwrite(out, 1, used, stdout);
    fprintf(stderr, "%lld\n", least);
    return 0;
}
