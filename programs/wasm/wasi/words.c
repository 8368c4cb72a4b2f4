// Counts the words of its input: the most frequent ones, most frequent first, words of equal counts in
// the order of their bytes.
//
// usage: words [N]
// stdin: json.c
// arg: 12
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
    struct word *next;
    unsigned long count;
    size_t len;
    char text[];
};

static struct word **buckets;
static size_t n_buckets, n_words;

static size_t hash(const char *text, size_t len)
{
    size_t h = 2166136261u;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)text[i]) * 16777619u;
    }
    return h;
}

static void *check(void *p)
{
    if (!p) {
        fputs("words: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static void grow(void)
{
    size_t n = n_buckets ? 2 * n_buckets : 64;
    struct word **table = check(calloc(n, sizeof *table));
    for (size_t i = 0; i < n_buckets; i++) {
        for (struct word *w = buckets[i], *next; w; w = next) {
            next = w->next;
            size_t at = hash(w->text, w->len) & (n - 1);
            w->next = table[at];
            table[at] = w;
        }
    }
    free(buckets);
    buckets = table;
    n_buckets = n;
}

static void add(const char *text, size_t len)
{
    if (n_words >= n_buckets) {
        grow();
    }
    struct word **at = &buckets[hash(text, len) & (n_buckets - 1)];
    for (struct word *w = *at; w; w = w->next) {
        if (w->len == len && memcmp(w->text, text, len) == 0) {
            w->count++;
            return;
        }
    }
    struct word *w = check(malloc(sizeof *w + len + 1));
    memcpy(w->text, text, len);
    w->text[len] = 0;
    w->len = len;
    w->count = 1;
    w->next = *at;
    *at = w;
    n_words++;
}

static int by_count(const void *a, const void *b)
{
    const struct word *x = *(struct word *const *)a, *y = *(struct word *const *)b;
    if (x->count != y->count) {
        return x->count < y->count ? 1 : -1;
    }
    return strcmp(x->text, y->text);
}

int main(int argc, char **argv)
{
    size_t n_shown = argc > 1 ? strtoul(argv[1], NULL, 10) : (size_t)-1;
    char *line = NULL;
    size_t capacity = 0, n_lines = 0, n_bytes = 0, n_all = 0;
    ssize_t len;
    while ((len = getline(&line, &capacity, stdin)) >= 0) {
        n_lines++;
        n_bytes += (size_t)len;
        for (char *p = line, *end = line + len; p < end;) {
            if (!isalpha((unsigned char)*p)) {
                p++;
                continue;
            }
            char *start = p;
            while (p < end && (isalnum((unsigned char)*p) || *p == '\'')) {
                *p = (char)tolower((unsigned char)*p);
                p++;
            }
            add(start, (size_t)(p - start));
            n_all++;
        }
    }
    free(line);
    if (ferror(stdin)) {
        perror("words");
        return 1;
    }
    struct word **all = check(malloc((n_words + 1) * sizeof *all));
    size_t n = 0;
    for (size_t i = 0; i < n_buckets; i++) {
        for (struct word *w = buckets[i]; w; w = w->next) {
            all[n++] = w;
        }
    }
    qsort(all, n, sizeof *all, by_count);
    printf("%zu lines, %zu bytes, %zu words, %zu different ones\n", n_lines, n_bytes, n_all, n);
    for (size_t i = 0; i < n && i < n_shown; i++) {
        printf("%7lu %5.2f%% %s\n", all[i]->count, 100.0 * (double)all[i]->count / (double)n_all,
               all[i]->text);
    }
    for (size_t i = 0; i < n; i++) {
        free(all[i]);
    }
    free(all);
    free(buckets);
    return 0;
}
