// The shortest list of lines to remove and insert that makes one file of another, by Myers's algorithm.
//
// usage: diff OLD NEW
// arg: work/old.txt
// arg: work/new.txt
// exit: 1
// dir: work
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
    char **at;
    size_t *lens;
    int n;
};

static void *check(void *p)
{
    if (!p) {
        fputs("diff: out of memory\n", stderr);
        exit(2);
    }
    return p;
}

static struct lines read_lines(const char *name)
{
    FILE *f = fopen(name, "r");
    if (!f) {
        perror(name);
        exit(2);
    }
    struct lines lines = {0};
    char *line = NULL;
    size_t capacity = 0, room = 0;
    ssize_t len;
    while ((len = getline(&line, &capacity, f)) >= 0) {
        if ((size_t)lines.n == room) {
            room = 2 * room + 16;
            lines.at = check(realloc(lines.at, room * sizeof *lines.at));
            lines.lens = check(realloc(lines.lens, room * sizeof *lines.lens));
        }
        len -= len && line[len - 1] == '\n';
        lines.at[lines.n] = check(malloc((size_t)len + 1));
        memcpy(lines.at[lines.n], line, (size_t)len);
        lines.lens[lines.n++] = (size_t)len;
    }
    free(line);
    fclose(f);
    return lines;
}

static int is_same(const struct lines *a, int i, const struct lines *b, int k)
{
    return a->lens[i] == b->lens[k] && memcmp(a->at[i], b->at[k], a->lens[i]) == 0;
}

static void show(char sign, const struct lines *lines, int i)
{
    printf("%c%.*s\n", sign, (int)lines->lens[i], lines->at[i]);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: diff OLD NEW\n", stderr);
        return 2;
    }
    struct lines a = read_lines(argv[1]), b = read_lines(argv[2]);
    int max = a.n + b.n, d, width = 2 * max + 3;
    // Row d has how far d changes lead on each diagonal.
    int **rows = check(calloc((size_t)max + 1, sizeof *rows));
    int *furthest = check(calloc((size_t)width, sizeof *furthest));
    furthest += max + 1;
    int is_done = 0;
    for (d = 0; !is_done; d++) {
        int *row = rows[d] = check(malloc((size_t)(2 * d + 1) * sizeof *row));
        for (int k = -d; k <= d; k += 2) {
            int goes_down = k == -d || (k != d && furthest[k - 1] < furthest[k + 1]);
            int x = goes_down ? furthest[k + 1] : furthest[k - 1] + 1, y = x - k;
            while (x < a.n && y < b.n && is_same(&a, x, &b, y)) {
                x++;
                y++;
            }
            furthest[k] = x;
            row[k + d] = x;
            if (x >= a.n && y >= b.n) {
                is_done = 1;
                break;
            }
        }
    }
    int n_changes = --d;
    // Backwards from the end, then shown forwards.
    struct step {
        char sign;
        int line;
    } *steps = check(malloc(((size_t)max + 1) * sizeof *steps));
    int n = 0, x = a.n, y = b.n;
    for (; d > 0; d--) {
        int k = x - y, *before = rows[d - 1] + (d - 1);
        int low = k - 1 < -(d - 1) ? -1 : before[k - 1], high = k + 1 > d - 1 ? -1 : before[k + 1];
        int goes_down = k == -d || (k != d && low < high);
        int from_x = goes_down ? high : low, from_k = goes_down ? k + 1 : k - 1, from_y = from_x - from_k;
        for (; x > from_x + !goes_down; x--, y--) {
            steps[n++] = (struct step){' ', x - 1};
        }
        steps[n++] = goes_down ? (struct step){'+', from_y} : (struct step){'-', from_x};
        x = from_x;
        y = from_y;
    }
    for (; x > 0; x--) {
        steps[n++] = (struct step){' ', x - 1};
    }
    while (n--) {
        show(steps[n].sign, steps[n].sign == '+' ? &b : &a, steps[n].line);
    }
    printf("%d changes\n", n_changes);
    return n_changes != 0;
}
