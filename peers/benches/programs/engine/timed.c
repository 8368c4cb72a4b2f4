// Runs a kernel, and prints the nanoseconds of CPU time that it took as an error.

#include <stdio.h>
#include <time.h>

int kernel_main(int argc, char **argv);

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}

int main(int argc, char **argv) {
    long long before = now();
    int code = kernel_main(argc, argv);
    fprintf(stderr, "%lld\n", now() - before);
    return code;
}
