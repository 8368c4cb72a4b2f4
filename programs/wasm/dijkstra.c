// Shortest paths from one of n nodes by Dijkstra's algorithm with a binary heap. That no edge offers a
// shorter way, and each node is reached by an edge of a shortest one, shows that the distances are right.
// default-size: 2000
// bench-size: 100000
//
// Shows: a heap of structures in an array, adjacency lists, comparisons that depend on loads.

#include "env.h"

enum { N_MAX = 200000, DEGREE = 5, UNREACHED = 0x7fffffff };

typedef struct {
    i32 target, length;
} Edge;

typedef struct {
    i32 distance, node;
} Entry;

static Edge edges[N_MAX][DEGREE];
static i32 distances[N_MAX];
static i32 parents[N_MAX];
static Entry heap[N_MAX * DEGREE + 1];
static i32 n_entries;

static void push(Entry entry) {
    i32 i = n_entries++;
    while (i > 0 && heap[(i - 1) / 2].distance > entry.distance) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = entry;
}

static Entry pop(void) {
    Entry first = heap[0], last = heap[--n_entries];
    i32 i = 0;
    for (;;) {
        i32 child = 2 * i + 1;
        if (child >= n_entries) break;
        if (child + 1 < n_entries && heap[child + 1].distance < heap[child].distance) child++;
        if (heap[child].distance >= last.distance) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return first;
}

// A ring, so that each node can be reached, and random edges.
static void make_graph(i32 n) {
    u32 state = 123456789;
    for (i32 i = 0; i < n; i++) {
        edges[i][0] = (Edge){(i + 1) % n, 1000};
        for (i32 j = 1; j < DEGREE; j++) {
            i32 target = (i32)(random_word(&state) % (u32)n);
            edges[i][j] = (Edge){target, 1 + (i32)(random_word(&state) % 999)};
        }
    }
}

static i32 search(i32 n, i32 start) {
    for (i32 i = 0; i < n; i++) distances[i] = UNREACHED;
    i32 n_settled = 0;
    distances[start] = 0;
    parents[start] = start;
    push((Entry){0, start});
    while (n_entries > 0) {
        Entry entry = pop();
        if (entry.distance != distances[entry.node]) continue;
        n_settled++;
        for (i32 j = 0; j < DEGREE; j++) {
            Edge edge = edges[entry.node][j];
            i32 distance = entry.distance + edge.length;
            if (distance >= distances[edge.target]) continue;
            distances[edge.target] = distance;
            parents[edge.target] = entry.node;
            push((Entry){distance, edge.target});
        }
    }
    return n_settled;
}

static i32 n_wrong_distances(i32 n, i32 start) {
    i32 n_wrong = distances[start] != 0;
    for (i32 i = 0; i < n; i++) {
        i32 is_reached = i == start;
        for (i32 j = 0; j < DEGREE; j++) {
            n_wrong += distances[edges[i][j].target] > distances[i] + edges[i][j].length;
            Edge edge = edges[parents[i]][j];
            is_reached |= edge.target == i && distances[parents[i]] + edge.length == distances[i];
        }
        n_wrong += !is_reached;
    }
    return n_wrong;
}

i32 run(i32 n) {
    if (n < 1 || n > N_MAX) return 1;
    make_graph(n);
    i32 n_settled = search(n, 0), n_wrong = n_wrong_distances(n, 0), farthest = 0;
    i64 sum = 0;
    for (i32 i = 0; i < n; i++) {
        sum += distances[i];
        if (distances[i] > distances[farthest]) farthest = i;
    }
    print_line("settled", n_settled);
    print_line("farthest", farthest);
    print_line("distance", distances[farthest]);
    print_line("sum", sum);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
