// What a program learns of its host: arguments, variables of the environment, clocks, random numbers, and what
// its streams are. Prints only what is the same everywhere, and ends with the code it is told.
//
// usage: host CODE [ARGUMENT]...
// arg: 7
// arg: a
// arg: b c
// arg:
// arg: ü
// env: NAME=value
// env: EMPTY=
// env: PATH_TO=/a=b
// exit: 7
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void at_end(void)
{
    puts("the end");
}

static int64_t now(clockid_t clock)
{
    struct timespec t;
    if (clock_gettime(clock, &t) < 0) {
        perror("clock");
        exit(1);
    }
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv)
{
    atexit(at_end);
    for (int i = 1; i < argc; i++) {
        printf("argument %d: `%s`\n", i, argv[i]);
    }
    static const char *const names[] = {"NAME", "EMPTY", "PATH_TO", "MISSING"};
    for (int i = 0; i < 4; i++) {
        const char *value = getenv(names[i]);
        printf("%s: %s%s%s\n", names[i], value ? "`" : "none", value ? value : "", value ? "`" : "");
    }
    int64_t start = now(CLOCK_MONOTONIC), wall = now(CLOCK_REALTIME);
    struct timespec pause = {0, 20000000};
    printf("sleep: %d\n", nanosleep(&pause, NULL));
    int64_t slept = now(CLOCK_MONOTONIC) - start;
    printf("slept long enough: %s\n", slept >= 15000000 ? "yes" : "no");
    printf("the year is possible: %s\n", wall / 1000000000 > 1700000000 ? "yes" : "no");
    struct timespec resolution;
    printf("resolution: %s\n", clock_getres(CLOCK_MONOTONIC, &resolution) == 0 ? "known" : "unknown");
    uint8_t random[64];
    unsigned n_bits = 0;
    if (getentropy(random, sizeof random) < 0) {
        perror("random");
        return 1;
    }
    for (size_t i = 0; i < sizeof random; i++) {
        n_bits += (unsigned)__builtin_popcount(random[i]);
    }
    printf("random: %s\n", n_bits > 150 && n_bits < 362 ? "it seems" : "no");
    struct stat s;
    printf("descriptors: %d %d %d %s\n", fstat(0, &s), fstat(1, &s), fstat(2, &s),
           fstat(99, &s) < 0 && errno == EBADF ? "and no more" : "and more");
    int c = getchar();
    printf("input: %s\n", c == EOF ? "none" : "some");
    fflush(stdout);
    fputs("this is an error message\n", stderr);
    exit(argc > 1 ? atoi(argv[1]) : 0);
}
