// Draws the Mandelbrot set two points at a time, softens it sixteen bytes at a time, and compares the lanes of
// all kinds of vectors with sums of single numbers.
//
// usage: vectors WIDTH HEIGHT
// arg: 64
// arg: 24
// feature: simd128
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef int8_t i8x16 __attribute__((vector_size(16)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef int16_t i16x8 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef int64_t i64x2 __attribute__((vector_size(16)));
typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));

enum { STEPS_MAX = 200 };

static int width, height;
static uint32_t state = 1;

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

// How many steps each of two points stays near the origin.
static i64x2 steps(f64x2 x0, f64x2 y0)
{
    f64x2 x = x0, y = y0;
    i64x2 n = {0, 0};
    for (int i = 0; i < STEPS_MAX; i++) {
        f64x2 xx = x * x, yy = y * y;
        i64x2 is_near = xx + yy <= 4.0;
        if (!(is_near[0] | is_near[1]))
            break;
        n -= is_near;
        f64x2 xy = x * y;
        x = xx - yy + x0;
        y = xy + xy + y0;
    }
    return n;
}

static void draw(uint8_t *pixels)
{
    for (int row = 0; row < height; row++) {
        double y = -1.25 + 2.5 * row / height;
        for (int column = 0; column < width; column += 2) {
            f64x2 x = {-2.0 + 2.75 * column / width, -2.0 + 2.75 * (column + 1) / width};
            i64x2 n = steps(x, (f64x2){y, y});
            for (int i = 0; i < 2; i++)
                pixels[row * width + column + i] = (uint8_t)(n[i] * 255 / STEPS_MAX);
        }
    }
}

static u8x16 load(const uint8_t *from)
{
    u8x16 bytes;
    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

// The mean of two numbers, rounded down, without a ninth bit.
static u8x16 mean(u8x16 a, u8x16 b)
{
    return (a & b) + ((a ^ b) >> 1);
}

// Each row becomes the mean of itself, and of the rows above and below.
static void soften(uint8_t *to, const uint8_t *from)
{
    for (int row = 0; row < height; row++) {
        const uint8_t *above = from + (row > 0 ? row - 1 : row) * width;
        const uint8_t *below = from + (row + 1 < height ? row + 1 : row) * width;
        for (int column = 0; column < width; column += 16) {
            u8x16 around = mean(load(above + column), load(below + column));
            u8x16 soft = mean(around, load(from + row * width + column));
            memcpy(to + row * width + column, &soft, sizeof soft);
        }
    }
}

static void show(const uint8_t *pixels)
{
    static const char shades[] = " .:-=+*#%@";
    for (int row = 0; row < height; row++) {
        for (int column = 0; column < width; column++)
            putchar(shades[pixels[row * width + column] * 10 / 256]);
        putchar('\n');
    }
}

static uint32_t checksum(const void *bytes, size_t n)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = sum * 31 + ((const uint8_t *)bytes)[i];
    return sum;
}

static void random_bytes(void *vector)
{
    uint32_t words[] = {next_random(), next_random(), next_random(), next_random()};
    memcpy(vector, words, sizeof words);
}

static int n_wrong;

static void check(const char *what, int is_right)
{
    n_wrong += !is_right;
    if (!is_right)
        printf("%s: wrong\n", what);
}

// Vectors of random lanes, and the same with single numbers. Only numbers without signs may overflow.
#define COMPARE(vector, lane, n)                                                                               \
    static void compare_##vector(void)                                                                         \
    {                                                                                                          \
        vector a, b;                                                                                           \
        random_bytes(&a);                                                                                      \
        random_bytes(&b);                                                                                      \
        int by = next_random() % (8 * sizeof(lane));                                                           \
        vector right = a >> by, differs = (vector)(a != b), less = (vector)(a < b);                            \
        vector least = (less & a) | (~less & b);                                                               \
        for (int i = 0; i < n; i++) {                                                                          \
            check(#vector " >>", right[i] == (lane)(a[i] >> by));                                              \
            check(#vector " !=", differs[i] == (lane)(a[i] != b[i] ? -1 : 0));                                 \
            check(#vector " least", least[i] == (a[i] < b[i] ? a[i] : b[i]));                                  \
        }                                                                                                      \
    }

#define COMPUTE(vector, lane, n)                                                                               \
    static void compute_##vector(void)                                                                         \
    {                                                                                                          \
        vector a, b;                                                                                           \
        random_bytes(&a);                                                                                      \
        random_bytes(&b);                                                                                      \
        int by = next_random() % (8 * sizeof(lane));                                                           \
        vector sum = a + b, difference = a - b, product = a * b, left = a << by;                               \
        for (int i = 0; i < n; i++) {                                                                          \
            check(#vector " +", sum[i] == (lane)((uint64_t)a[i] + b[i]));                                      \
            check(#vector " -", difference[i] == (lane)((uint64_t)a[i] - b[i]));                               \
            check(#vector " *", product[i] == (lane)((uint64_t)a[i] * b[i]));                                  \
            check(#vector " <<", left[i] == (lane)((uint64_t)a[i] << by));                                     \
        }                                                                                                      \
    }

COMPARE(u8x16, uint8_t, 16)
COMPARE(i8x16, int8_t, 16)
COMPARE(u16x8, uint16_t, 8)
COMPARE(i16x8, int16_t, 8)
COMPARE(u32x4, uint32_t, 4)
COMPARE(i32x4, int32_t, 4)
COMPARE(i64x2, int64_t, 2)
COMPUTE(u8x16, uint8_t, 16)
COMPUTE(u16x8, uint16_t, 8)
COMPUTE(u32x4, uint32_t, 4)
COMPUTE(u64x2, uint64_t, 2)

static void compare_floats(void)
{
    f32x4 a, b;
    for (int i = 0; i < 4; i++) {
        a[i] = (float)(int32_t)next_random() / 1024;
        b[i] = (float)(next_random() % 1000 + 1) / 8;
    }
    f32x4 quotient = a / b, difference = a - b;
    i32x4 whole = __builtin_convertvector(quotient, i32x4);
    f32x4 back = __builtin_convertvector(whole, f32x4);
    f32x4 reversed = __builtin_shufflevector(a, b, 3, 6, 1, 4);
    for (int i = 0; i < 4; i++) {
        check("f32x4 /", quotient[i] == a[i] / b[i]);
        check("f32x4 -", difference[i] == a[i] - b[i]);
        check("to i32x4", whole[i] == (int32_t)(a[i] / b[i]));
        check("to f32x4", back[i] == (float)whole[i]);
        check("shuffle", reversed[i] == (i % 2 ? b : a)[3 - i]);
    }
}

// Loops that the compiler makes vectors of itself.
static double products(void)
{
    enum { N = 1000 };
    static float a[N], b[N], c[N];
    static int16_t counts[N];
    for (int i = 0; i < N; i++) {
        a[i] = (float)(i % 17) / 4;
        b[i] = (float)(i % 23) / 2;
    }
    for (int i = 0; i < N; i++)
        c[i] = a[i] * b[i] - a[i];
    for (int i = 0; i < N; i++)
        counts[i] = (int16_t)(c[i] > 10 ? 300 : -7);
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += c[i] + counts[i];
    return sum;
}

int main(int argc, char **argv)
{
    width = argc > 2 ? atoi(argv[1]) : 0;
    height = argc > 2 ? atoi(argv[2]) : 0;
    if (width < 16 || width > 16384 || width % 16 || height < 1 || height > 16384) {
        fprintf(stderr, "usage: vectors WIDTH HEIGHT; the width is a multiple of 16\n");
        return 2;
    }
    size_t n = (size_t)width * height;
    uint8_t *sharp = malloc(n), *soft = malloc(n);
    if (!sharp || !soft)
        return 1;
    draw(sharp);
    soften(soft, sharp);
    if (n <= 10000)
        show(soft);
    printf("%08x %08x\n", (unsigned)checksum(sharp, n), (unsigned)checksum(soft, n));
    for (int i = 0; i < 1000; i++) {
        compare_u8x16();
        compare_i8x16();
        compare_u16x8();
        compare_i16x8();
        compare_u32x4();
        compare_i32x4();
        compare_i64x2();
        compute_u8x16();
        compute_u16x8();
        compute_u32x4();
        compute_u64x2();
        compare_floats();
    }
    printf("%d wrong, %.3f\n", n_wrong, products());
    free(sharp);
    free(soft);
    return n_wrong != 0;
}
