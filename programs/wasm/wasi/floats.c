// Numbers as text and back: printf's formats of doubles, strtod, and what <math.h> makes of them.
//
// usage: floats
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static const double numbers[] = {
    0.0, -0.0, 1, -1, 0.1, 2.5, 3.5, 1e15, 1e16, 123456.789, 1.0 / 3, 2e-5, 1e100, 5e-324, DBL_MAX,
    DBL_MIN, DBL_EPSILON, 9007199254740993.0, 0.5, 1.5, 99999.95, 0.0001, 1e21, 1e-7, INFINITY,
    -INFINITY, 4.35, 2.675, 1e22, 1e23, 8.41e21,
};

static const char *const texts[] = {
    "0", "1e5", "1e-400", "1e400", "-1.7976931348623157e308", "2.2250738585072011e-308", ".5", "5.", "+7",
    "0x1.8p3", "0x.1p-4", "1e", "1e+", "inf", "-Infinity", "1_000", "  42 rest", "",
    "9007199254740993", "0.1000000000000000055511151231257827021181583404541015625",
    "179769313486231580793728971405301e276", "4.9406564584124654e-324", "2.4703282292062327e-324",
    "2.4703282292062328e-324",
};

int main(void)
{
    static const char *const formats[] = {"%g", "%.17g", "%f", "%.3f", "%e", "%.0e", "%+012.4f",
                                          "%-12.2e|", "%#.0f", "%G"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
            char text[512];
#pragma clang diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof text, formats[k], numbers[i]);
            printf(k ? "  %s" : "%s", text);
        }
        putchar('\n');
    }
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *end;
        double x = strtod(texts[i], &end);
        printf("strtod %-30s %016" PRIx64 " %.17g, rest `%s`\n", texts[i], bits_of(x), x, end);
    }
    printf("%a %a %.3a %A\n", 1.0, 0.1, -3.14159, DBL_MAX);
    uint64_t state = 42;
    unsigned n = 0, n_short = 0;
    for (int i = 0; i < 400; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double x = of_bits(state ^ state >> 29);
        if (!isfinite(x)) {
            continue;
        }
        char text[40];
        snprintf(text, sizeof text, "%.17g", x);
        n += bits_of(strtod(text, NULL)) == bits_of(x);
        snprintf(text, sizeof text, "%.15g", x);
        n_short += bits_of(strtod(text, NULL)) == bits_of(x);
    }
    printf("back with 17 digits: %u, with 15: %u\n", n, n_short);
    for (double x = -3.25; x < 3.5; x += 0.75) {
        int exponent;
        double whole, part = modf(x, &whole), fraction = frexp(x, &exponent);
        printf("%5.2f floor %g ceil %g trunc %g round %g rint %g fmod %g rest %g", x, floor(x), ceil(x),
               trunc(x), round(x), rint(x), fmod(x, 2), remainder(x, 2));
        printf(" modf %g %g frexp %g %d ldexp %g sign %d\n", whole, part, fraction, exponent,
               ldexp(x, 10), signbit(x) != 0);
    }
    // Rounded so far that the last bits of different libraries do not show.
    for (double x = 0.25; x < 5; x *= 1.7) {
        printf("%.4f: exp %.10g log %.10g sin %.10g cos %.10g atan %.10g pow %.10g sqrt %.10g cbrt %.10g\n", x,
               exp(x), log(x), sin(x), cos(x), atan(x), pow(x, 2.5), sqrt(x), cbrt(x));
    }
    printf("%d %d %d %.10f\n", (int)lround(2.5), (int)lrint(2.5), ilogb(1e10), hypot(3e200, 4e200) / 1e200);
    return 0;
}
