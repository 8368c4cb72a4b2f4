// Sorts n records by three orders with one sorting function, which is given how to compare, and adds up what
// shapes say through pointers to their functions.
// default-size: 400
// bench-size: 60000
//
// Shows: `call_indirect` in inner loops, copies of structures.

#include "env.h"

enum { N_MAX = 200000 };

typedef struct {
    char name[8];
    i32 number;
    f64 weight;
} Record;

typedef i32 (*Compare)(const Record *, const Record *);

static Record records[N_MAX];

static i32 by_name(const Record *a, const Record *b) {
    for (i32 i = 0; i < 8; i++) {
        if (a->name[i] != b->name[i]) return a->name[i] - b->name[i];
    }
    return 0;
}

static i32 by_weight(const Record *a, const Record *b) {
    return (a->weight > b->weight) - (a->weight < b->weight);
}

static i32 by_number_downwards(const Record *a, const Record *b) {
    return (b->number > a->number) - (b->number < a->number);
}

// Moves a record down the heap of the first n to where no child is greater.
static void sift(Record *a, i32 i, i32 n, Compare compare) {
    Record moved = a[i];
    for (;;) {
        i32 child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && compare(&a[child], &a[child + 1]) < 0) child++;
        if (compare(&moved, &a[child]) >= 0) break;
        a[i] = a[child];
        i = child;
    }
    a[i] = moved;
}

static void heap_sort(Record *a, i32 n, Compare compare) {
    for (i32 i = n / 2 - 1; i >= 0; i--) sift(a, i, n, compare);
    for (i32 last = n - 1; last > 0; last--) {
        Record greatest = a[0];
        a[0] = a[last];
        a[last] = greatest;
        sift(a, 0, last, compare);
    }
}

typedef struct Shape Shape;

typedef struct {
    f64 (*area)(const Shape *);
    void (*grow)(Shape *, f64);
} Methods;

struct Shape {
    const Methods *methods;
    f64 width, height;
};

static f64 rectangle_area(const Shape *shape) { return shape->width * shape->height; }
static f64 triangle_area(const Shape *shape) { return shape->width * shape->height / 2; }
static void grow_both(Shape *shape, f64 by) { shape->width += by, shape->height += by; }
static void grow_width(Shape *shape, f64 by) { shape->width += by; }

static const Methods rectangle = {rectangle_area, grow_both};
static const Methods triangle = {triangle_area, grow_both};
static const Methods strip = {rectangle_area, grow_width};

static f64 total_area(i32 n_rounds) {
    Shape shapes[] = {{&rectangle, 2, 3}, {&triangle, 4, 5}, {&strip, 6, 0.5}, {&triangle, 1, 1}};
    f64 total = 0;
    for (i32 i = 0; i < n_rounds; i++) {
        Shape *shape = &shapes[(i ^ i >> 3) & 3];
        shape->methods->grow(shape, 0.25);
        total += shape->methods->area(shape);
    }
    return total;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    u32 state = 314159265;
    for (i32 i = 0; i < n; i++) {
        u32 r = random_word(&state);
        for (i32 j = 0; j < 8; j++) records[i].name[j] = (char)('a' + (r >> 4 * j & 15));
        records[i].number = i;
        records[i].weight = random_word(&state) / 4096.0;
    }
    const Compare orders[] = {by_name, by_weight, by_number_downwards};
    i32 n_unsorted = 0;
    for (i32 order = 0; order < 3; order++) {
        heap_sort(records, n, orders[order]);
        u32 sum = 0;
        for (i32 i = 0; i < n; i++) {
            if (i > 0) n_unsorted += orders[order](&records[i - 1], &records[i]) > 0;
            sum = sum * 31 + (u32)records[i].number;
        }
        print_str(records[0].name, 8);
        print_char(' ');
        print_f64(records[n - 1].weight);
        print_line(" sum", sum);
    }
    print_text("area ");
    print_f64(total_area(10 * n));
    print_char('\n');
    print_line("unsorted", n_unsorted);
    return n_unsorted != 0;
}
