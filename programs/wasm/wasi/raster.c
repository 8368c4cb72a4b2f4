// Draws a torus with smooth shading into a depth buffer and writes it as a PPM picture.
//
// usage: raster WIDTH HEIGHT
// arg: 64
// arg: 48
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { RINGS = 36, SIDES = 18 };

struct vec {
    float x, y, z;
};

struct vertex {
    struct vec place, normal;
};

static int width, height;
static uint8_t *pixels;
static float *depths;

static struct vec scaled(struct vec a, float s)
{
    return (struct vec){a.x * s, a.y * s, a.z * s};
}

static struct vec sum(struct vec a, struct vec b)
{
    return (struct vec){a.x + b.x, a.y + b.y, a.z + b.z};
}

static float dot(struct vec a, struct vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

/// Turned around two axes, then moved away from the eye.
static struct vec turned(struct vec a)
{
    const float s = 0.8f, c = 0.6f, s2 = 0.28f, c2 = 0.96f;
    struct vec b = {a.x, c * a.y - s * a.z, s * a.y + c * a.z};
    return (struct vec){c2 * b.x - s2 * b.y, s2 * b.x + c2 * b.y, b.z};
}

static struct vertex torus(int ring, int side)
{
    float a = 6.2831853f * (float)ring / RINGS, b = 6.2831853f * (float)side / SIDES;
    struct vec out = {cosf(a), sinf(a), 0}, up = {0, 0, 1};
    struct vec normal = sum(scaled(out, cosf(b)), scaled(up, sinf(b)));
    struct vec place = sum(out, scaled(normal, 0.45f));
    struct vertex v = {turned(place), turned(normal)};
    v.place.z += 3.2f;
    return v;
}

static void shade(int x, int y, float z, struct vec normal, int is_light)
{
    int at = y * width + x;
    if (z >= depths[at]) {
        return;
    }
    depths[at] = z;
    const struct vec light = {-0.48f, 0.6f, -0.64f};
    normal = scaled(normal, 1 / sqrtf(dot(normal, normal)));
    float diffuse = fmaxf(0, dot(normal, light));
    float half = fmaxf(0, dot(normal, (struct vec){-0.265f, 0.331f, -0.906f}));
    float gloss = powf(half, 40);
    const float color[2][3] = {{0.85f, 0.35f, 0.2f}, {0.95f, 0.8f, 0.55f}};
    for (int i = 0; i < 3; i++) {
        float value = color[is_light][i] * (0.15f + 0.85f * diffuse) + 0.6f * gloss;
        pixels[3 * at + i] = (uint8_t)(255 * sqrtf(fminf(1, value)));
    }
}

static void triangle(const struct vertex *v, int is_light)
{
    float px[3], py[3];
    for (int i = 0; i < 3; i++) {
        float scale = (float)height * 1.1f / v[i].place.z;
        px[i] = (float)width * 0.5f + v[i].place.x * scale;
        py[i] = (float)height * 0.5f - v[i].place.y * scale;
    }
    float area = (px[1] - px[0]) * (py[2] - py[0]) - (px[2] - px[0]) * (py[1] - py[0]);
    if (area >= 0) {
        return; // seen from behind
    }
    float low_x = fminf(px[0], fminf(px[1], px[2])), high_x = fmaxf(px[0], fmaxf(px[1], px[2]));
    float low_y = fminf(py[0], fminf(py[1], py[2])), high_y = fmaxf(py[0], fmaxf(py[1], py[2]));
    int x_end = (int)fminf((float)width - 1, high_x), y_end = (int)fminf((float)height - 1, high_y);
    for (int y = (int)fmaxf(0, low_y); y <= y_end; y++) {
        for (int x = (int)fmaxf(0, low_x); x <= x_end; x++) {
            float w[3], cx = (float)x + 0.5f, cy = (float)y + 0.5f;
            for (int i = 0; i < 3; i++) {
                int a = (i + 1) % 3, b = (i + 2) % 3;
                w[i] = ((px[b] - px[a]) * (cy - py[a]) - (py[b] - py[a]) * (cx - px[a])) / area;
            }
            if (w[0] < 0 || w[1] < 0 || w[2] < 0) {
                continue;
            }
            float z = 0;
            struct vec normal = {0, 0, 0};
            for (int i = 0; i < 3; i++) {
                z += w[i] * v[i].place.z;
                normal = sum(normal, scaled(v[i].normal, w[i]));
            }
            shade(x, y, z, normal, is_light);
        }
    }
}

int main(int argc, char **argv)
{
    width = argc > 1 ? atoi(argv[1]) : 64;
    height = argc > 2 ? atoi(argv[2]) : 48;
    if (width < 1 || height < 1 || width > 4096 || height > 4096) {
        fputs("usage: raster WIDTH HEIGHT\n", stderr);
        return 2;
    }
    size_t n = (size_t)width * (size_t)height;
    pixels = malloc(3 * n);
    depths = malloc(n * sizeof *depths);
    if (!pixels || !depths) {
        return 1;
    }
    for (size_t i = 0; i < n; i++) {
        depths[i] = INFINITY;
        uint8_t shade = (uint8_t)(40 + 60 * (i / (size_t)width) / (size_t)height);
        pixels[3 * i] = shade / 2;
        pixels[3 * i + 1] = shade / 2 + 10;
        pixels[3 * i + 2] = shade;
    }
    for (int ring = 0; ring < RINGS; ring++) {
        for (int side = 0; side < SIDES; side++) {
            struct vertex a = torus(ring, side), b = torus(ring + 1, side);
            struct vertex c = torus(ring + 1, side + 1), d = torus(ring, side + 1);
            int is_light = (ring / 3 + side / 3) % 2;
            triangle((struct vertex[]){a, b, c}, is_light);
            triangle((struct vertex[]){a, c, d}, is_light);
        }
    }
    printf("P6\n%d %d\n255\n", width, height);
    fwrite(pixels, 3, n, stdout);
    free(pixels);
    free(depths);
    return 0;
}
