// Sorts n pseudo-random numbers by quicksort with insertion sort below it, and finds each of them, and what
// lies between them, by binary search.
// default-size: 5000
// bench-size: 150000
//
// Shows: two scanning indices, recursion, branches that cannot be foreseen.

#include "env.h"

enum { N_MAX = 2000000, SHORT = 12 };

static u32 numbers[N_MAX];

static void insertion_sort(u32 *a, i32 low, i32 high) {
    for (i32 i = low + 1; i <= high; i++) {
        u32 x = a[i];
        i32 j = i;
        for (; j > low && a[j - 1] > x; j--) a[j] = a[j - 1];
        a[j] = x;
    }
}

static void swap(u32 *x, u32 *y) {
    u32 old = *x;
    *x = *y;
    *y = old;
}

// The median of the first, the middle and the last, moved to the middle.
static u32 pivot(u32 *a, i32 low, i32 high) {
    i32 middle = low + (high - low) / 2;
    if (a[middle] < a[low]) swap(&a[middle], &a[low]);
    if (a[high] < a[low]) swap(&a[high], &a[low]);
    if (a[high] < a[middle]) swap(&a[high], &a[middle]);
    return a[middle];
}

// Recurses into the shorter part, so that the stack stays short.
static void quicksort(u32 *a, i32 low, i32 high) {
    while (high - low >= SHORT) {
        u32 x = pivot(a, low, high);
        i32 i = low, j = high;
        while (i <= j) {
            while (a[i] < x) i++;
            while (x < a[j]) j--;
            if (i <= j) swap(&a[i++], &a[j--]);
        }
        if (j - low < high - i) {
            quicksort(a, low, j);
            low = i;
        } else {
            quicksort(a, i, high);
            high = j;
        }
    }
    insertion_sort(a, low, high);
}

// The index of the first number that is not less than x.
static i32 lower_bound(const u32 *a, i32 n, u32 x) {
    i32 low = 0, high = n;
    while (low < high) {
        i32 middle = low + (high - low) / 2;
        if (a[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    u32 state = 2463534242u, sum = 0;
    for (i32 i = 0; i < n; i++) sum += numbers[i] = random_word(&state);
    quicksort(numbers, 0, n - 1);
    i32 n_unsorted = 0;
    u32 sorted_sum = numbers[0];
    for (i32 i = 1; i < n; i++) {
        n_unsorted += numbers[i - 1] > numbers[i];
        sorted_sum += numbers[i];
    }
    state = 2463534242u;
    i32 n_found = 0;
    i64 ranks = 0;
    for (i32 i = 0; i < n; i++) {
        u32 x = random_word(&state);
        n_found += numbers[lower_bound(numbers, n, x)] == x;
        ranks += lower_bound(numbers, n, x * 2654435761u);
    }
    print_line("smallest", numbers[0]);
    print_line("median", numbers[n / 2]);
    print_line("largest", numbers[n - 1]);
    print_line("found", n_found);
    print_line("ranks", ranks);
    print_line("unsorted", n_unsorted);
    return n_unsorted != 0 || sum != sorted_sum || n_found != n;
}
