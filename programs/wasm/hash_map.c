// A hash map with open addressing: n insertions, look-ups and removals of keys from a small range, checked
// against an array that is indexed by the key.
// default-size: 20000
// bench-size: 2000000
//
// Shows: structures of 64-bit fields, probing, early exits from loops, a table that grows.

#include "env.h"

enum { SLOTS_MAX = 1 << 12, KEYS = 2000 };

typedef struct {
    u64 key;
    i64 value;
    // Whether there is an entry here.
    i32 is_used;
} Slot;

typedef struct {
    Slot *slots;
    u32 mask;
    i32 n_used;
} Map;

static Slot space[2][SLOTS_MAX];
static i64 expected[KEYS];

static u64 hash(u64 x) {
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdULL;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

// The slot of a key, or the free slot where it belongs.
static Slot *find(const Map *map, u64 key) {
    u32 i = (u32)hash(key) & map->mask;
    while (map->slots[i].is_used && map->slots[i].key != key) i = (i + 1) & map->mask;
    return &map->slots[i];
}

static void add(Map *map, u64 key, i64 value);

static void grow(Map *map) {
    Map old = *map;
    map->slots = old.slots == space[0] ? space[1] : space[0];
    map->mask = 2 * old.mask + 1;
    map->n_used = 0;
    for (u32 i = 0; i <= map->mask; i++) map->slots[i] = (Slot){0};
    for (u32 i = 0; i <= old.mask; i++) {
        if (old.slots[i].is_used) add(map, old.slots[i].key, old.slots[i].value);
    }
}

// Adds to the value of a key, which is 0 if it is not there.
static void add(Map *map, u64 key, i64 value) {
    Slot *slot = find(map, key);
    if (slot->is_used) {
        slot->value += value;
        return;
    }
    if (4 * (u32)(map->n_used + 1) > 3 * (map->mask + 1)) {
        grow(map);
        slot = find(map, key);
    }
    *slot = (Slot){key, value, 1};
    map->n_used++;
}

// Removes a key and closes the gap, so that each entry can be reached from where it belongs.
static void remove_key(Map *map, u64 key) {
    Slot *slot = find(map, key);
    if (!slot->is_used) return;
    map->n_used--;
    u32 gap = (u32)(slot - map->slots);
    for (u32 i = (gap + 1) & map->mask; map->slots[i].is_used; i = (i + 1) & map->mask) {
        u32 home = (u32)hash(map->slots[i].key) & map->mask;
        if (((i - home) & map->mask) >= ((i - gap) & map->mask)) {
            map->slots[gap] = map->slots[i];
            gap = i;
        }
    }
    map->slots[gap].is_used = 0;
}

i32 run(i32 n) {
    Map map = {space[0], 15, 0};
    u32 state = 521288629;
    i32 n_wrong = 0;
    for (i32 i = 0; i < n; i++) {
        u32 r = random_word(&state);
        u64 key = r % KEYS;
        i32 what = r / KEYS % 8;
        if (what < 5) {
            i64 value = (i64)(r >> 16) - 30000;
            add(&map, key, value);
            expected[key] += value;
        } else if (what < 7) {
            remove_key(&map, key);
            expected[key] = 0;
        } else {
            Slot *slot = find(&map, key);
            n_wrong += (slot->is_used ? slot->value : 0) != expected[key];
        }
    }
    u64 sum = 0;
    i32 n_found = 0;
    for (u64 key = 0; key < KEYS; key++) {
        Slot *slot = find(&map, key);
        n_found += slot->is_used;
        n_wrong += (slot->is_used ? slot->value : 0) != expected[key];
        sum = sum * 1000003 + (u64)expected[key];
    }
    n_wrong += n_found != map.n_used;
    print_line("entries", map.n_used);
    print_line("slots", map.mask + 1);
    print_line("sum", (i64)sum);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
