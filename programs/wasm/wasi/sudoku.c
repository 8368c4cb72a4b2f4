// Solves sudokus, one on each line of 81 characters: the cell with the fewest candidates first, found out by
// elimination. Says how many solutions there are, up to two, and how many guesses it took.
//
// usage: sudoku
// stdin: sudoku.in
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct grid {
    uint16_t candidates[81]; // bits 1..9
};

static uint8_t peers[81][20];
static unsigned long n_guesses;

static void find_peers(void)
{
    for (int a = 0; a < 81; a++) {
        int n = 0;
        for (int b = 0; b < 81; b++) {
            int same_box = a / 27 == b / 27 && a % 9 / 3 == b % 9 / 3;
            if (a != b && (a / 9 == b / 9 || a % 9 == b % 9 || same_box)) {
                peers[a][n++] = (uint8_t)b;
            }
        }
    }
}

/// Leaves one candidate in a cell; 0 if another cell then has none.
static int assign(struct grid *grid, int cell, uint16_t digit)
{
    uint8_t queue[81];
    int n = 0;
    if (!(grid->candidates[cell] & digit)) {
        return 0;
    }
    if (grid->candidates[cell] != digit) {
        grid->candidates[cell] = digit;
    }
    queue[n++] = (uint8_t)cell;
    for (int i = 0; i < n; i++) {
        uint16_t known = grid->candidates[queue[i]];
        for (int k = 0; k < 20; k++) {
            uint16_t *c = &grid->candidates[peers[queue[i]][k]];
            if (!(*c & known)) {
                continue;
            }
            *c &= (uint16_t)~known;
            if (!*c) {
                return 0;
            }
            if (!(*c & (*c - 1))) {
                queue[n++] = peers[queue[i]][k];
            }
        }
    }
    return 1;
}

/// Counts solutions up to two, and leaves the first one.
static int solve(const struct grid *grid, struct grid *solution, int n_found)
{
    int best = -1, fewest = 10;
    for (int cell = 0; cell < 81; cell++) {
        int n = __builtin_popcount(grid->candidates[cell]);
        if (n > 1 && n < fewest) {
            fewest = n;
            best = cell;
        }
    }
    if (best < 0) {
        if (!n_found) {
            *solution = *grid;
        }
        return n_found + 1;
    }
    for (int digit = 1; digit <= 9 && n_found < 2; digit++) {
        struct grid next = *grid;
        if (grid->candidates[best] >> digit & 1) {
            n_guesses++;
            if (assign(&next, best, (uint16_t)(1 << digit))) {
                n_found = solve(&next, solution, n_found);
            }
        }
    }
    return n_found;
}

static void print(const struct grid *grid)
{
    for (int cell = 0; cell < 81; cell++) {
        putchar('0' + __builtin_ctz(grid->candidates[cell]));
        if (cell % 9 == 8) {
            putchar('\n');
        } else if (cell % 3 == 2) {
            putchar(' ');
        }
    }
}

int main(void)
{
    char line[256];
    find_peers();
    for (int number = 1; fgets(line, sizeof line, stdin); number++) {
        line[strcspn(line, "\r\n")] = 0;
        if (strlen(line) != 81) {
            printf("%d: not 81 cells\n", number);
            continue;
        }
        struct grid grid, solution;
        for (int cell = 0; cell < 81; cell++) {
            grid.candidates[cell] = 0x3fe;
        }
        int is_possible = 1;
        for (int cell = 0; cell < 81 && is_possible; cell++) {
            if (line[cell] >= '1' && line[cell] <= '9') {
                is_possible = assign(&grid, cell, (uint16_t)(1 << (line[cell] - '0')));
            }
        }
        n_guesses = 0;
        int n = is_possible ? solve(&grid, &solution, 0) : 0;
        static const char *const results[] = {"no solution", "one solution", "several solutions"};
        printf("%d: %s, %lu guesses\n", number, results[n], n_guesses);
        if (n) {
            print(&solution);
        }
    }
    return 0;
}
