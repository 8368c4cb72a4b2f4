// Allocates and frees: blocks of all sizes in random order, whose contents are checked; arrays that grow and
// shrink; trees and lists of small nodes.
//
// usage: heap ROUNDS
// arg: 2000
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1000 };

static uint64_t state = 88172645463325252u;

static uint32_t random_below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 32) * n >> 32);
}

static void *check(void *p)
{
    if (!p) {
        fputs("heap: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

struct block {
    uint8_t *data;
    size_t len;
    uint8_t byte;
};

static unsigned long n_damaged;

static void verify(const struct block *b)
{
    for (size_t i = 0; i < b->len; i++) {
        n_damaged += b->data[i] != b->byte;
    }
}

static size_t random_size(void)
{
    return random_below(1u << (1 + random_below(random_below(8) ? 9 : 15)));
}

static unsigned long blocks(unsigned long rounds)
{
    static struct block slots[SLOTS];
    unsigned long n_bytes = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        struct block *b = &slots[random_below(SLOTS)];
        verify(b);
        size_t len = random_size();
        switch (random_below(4)) {
        case 0: // to be made anew
            free(b->data);
            b->data = check(calloc(len + 1, 1));
            b->byte = 0;
            b->len = len;
            verify(b);
            break;
        case 1:
            free(b->data);
            *b = (struct block){0};
            break;
        case 2: // as aligned as is asked for
            free(b->data);
            b->data = check(aligned_alloc(256, (len / 256 + 1) * 256));
            n_damaged += (uintptr_t)b->data % 256 != 0;
            break;
        default:
            b->data = check(realloc(b->data, len + 1));
            if (b->len > len) {
                b->len = len;
            }
            verify(b);
        }
        if (b->data) {
            b->byte = (uint8_t)i;
            b->len = len;
            memset(b->data, b->byte, len);
            n_bytes += len;
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        verify(&slots[i]);
        free(slots[i].data);
    }
    return n_bytes;
}

struct tree {
    struct tree *left, *right;
    uint32_t key, priority;
};

static struct tree *insert(struct tree *t, uint32_t key)
{
    if (!t) {
        t = check(malloc(sizeof *t));
        *t = (struct tree){.key = key, .priority = random_below(UINT32_MAX)};
        return t;
    }
    if (key == t->key) {
        return t;
    }
    struct tree **side = key < t->key ? &t->left : &t->right, *up;
    up = *side = insert(*side, key);
    if (up->priority <= t->priority) {
        return t;
    }
    struct tree **inner = key < t->key ? &up->right : &up->left;
    *side = *inner;
    *inner = t;
    return up;
}

static struct tree *without(struct tree *t, uint32_t key)
{
    if (!t) {
        return NULL;
    }
    if (key != t->key) {
        struct tree **side = key < t->key ? &t->left : &t->right;
        *side = without(*side, key);
        return t;
    }
    struct tree *joined = NULL, **at = &joined, *a = t->left, *b = t->right;
    free(t);
    while (a && b) {
        if (a->priority > b->priority) {
            *at = a;
            at = &a->right;
            a = a->right;
        } else {
            *at = b;
            at = &b->left;
            b = b->left;
        }
    }
    *at = a ? a : b;
    return joined;
}

static void walk(const struct tree *t, uint32_t *n, uint32_t *sum, uint32_t *last)
{
    for (; t; t = t->right) {
        walk(t->left, n, sum, last);
        n_damaged += *n && t->key <= *last;
        *last = t->key;
        *sum = *sum * 31 + t->key;
        ++*n;
    }
}

static void trees(unsigned long rounds)
{
    struct tree *root = NULL;
    for (unsigned long i = 0; i < rounds; i++) {
        uint32_t key = random_below(5000);
        root = random_below(5) < 3 ? insert(root, key) : without(root, key);
    }
    uint32_t n = 0, sum = 0, last = 0;
    walk(root, &n, &sum, &last);
    printf("tree: %u keys, sum %08x\n", n, sum);
    while (root) {
        root = without(root, root->key);
    }
}

struct node {
    struct node *next;
    char text[];
};

static void lists(unsigned long rounds)
{
    struct node *first = NULL;
    for (unsigned long i = 0; i < rounds; i++) {
        char text[32];
        int len = snprintf(text, sizeof text, "%lu:%x", i, random_below(1u << 30));
        struct node *node = check(malloc(sizeof *node + (size_t)len + 1));
        memcpy(node->text, text, (size_t)len + 1);
        node->next = first;
        first = node;
        struct node *gone = first->next;
        if (gone && random_below(3) == 0) {
            first->next = gone->next;
            free(gone);
        }
    }
    unsigned long n = 0;
    uint64_t sum = 0;
    while (first) {
        struct node *next = first->next;
        for (const char *p = first->text; *p; p++) {
            sum = (sum * 31 + (unsigned char)*p) % 1000000007;
        }
        free(first);
        first = next;
        n++;
    }
    printf("list: %lu nodes, sum %llu\n", n, (unsigned long long)sum);
}

int main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    printf("blocks: %lu bytes written\n", blocks(rounds));
    trees(rounds);
    lists(rounds);
    size_t len = 0;
    uint32_t *array = NULL, sum = 0;
    for (uint32_t i = 0; i < rounds * 10; i++) {
        if ((len & (len - 1)) == 0) {
            array = check(realloc(array, (len ? 2 * len : 1) * sizeof *array));
        }
        array[len++] = i;
    }
    for (size_t i = 0; i < len; i++) {
        sum += array[i];
    }
    free(array);
    printf("array: %zu items, sum %u\n", len, sum);
    // More than there can be is refused.
    volatile size_t too_much = SIZE_MAX - 4096;
    void *volatile p = malloc(too_much);
    printf("too much: %s\n", p ? "was given" : "refused");
    free(p);
    printf("damaged: %lu\n", n_damaged);
    return n_damaged != 0;
}
