// Writes the lines of its input in which a regular expression is found, with what was found in brackets:
// `.`, `[a-z]`, `[^…]`, `*`, `+`, `?`, `|`, `(…)`, `^`, `$`, `\d`, `\w`, `\s`, leftmost and by priority, in
// time linear in the line (Thompson's simulation with the places of groups, as Pike's).
//
// usage: match PATTERN
// stdin: big.c
// arg: (\w+)\s*=\s*(\w+|'.')\s*[;,]
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTS_MAX = 2000, GROUPS_MAX = 10 };
enum op { CHAR, ANY, SET, SPLIT, JUMP, SAVE, START, END, FOUND };

struct inst {
    enum op op;
    int x, y;
    unsigned char set[32];
};

static struct inst program[INSTS_MAX];
static int n_insts, n_groups = 1;
static const char *pattern;

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "match: %s before `%s`\n", message, pattern);
    exit(2);
}

static int emit(enum op op, int x, int y)
{
    if (n_insts == INSTS_MAX) {
        fail("too large a pattern");
    }
    program[n_insts] = (struct inst){.op = op, .x = x, .y = y};
    return n_insts++;
}

/// Makes room for an instruction before those from `at` on.
static void insert(int at, enum op op, int x, int y)
{
    emit(op, 0, 0);
    for (int i = n_insts - 1; i > at; i--) {
        program[i] = program[i - 1];
        if (program[i].op == SPLIT || program[i].op == JUMP) {
            program[i].x += program[i].x >= at;
            program[i].y += program[i].op == SPLIT && program[i].y >= at;
        }
    }
    program[at] = (struct inst){.op = op, .x = x, .y = y};
}

static void include(unsigned char *set, int low, int high)
{
    for (int c = low; c <= high; c++) {
        set[c >> 3] |= (unsigned char)(1 << (c & 7));
    }
}

/// The set of `\d` and the like; false if there is none.
static bool class(unsigned char *set, char name)
{
    switch (name) {
    case 'd':
        include(set, '0', '9');
        return true;
    case 'w':
        include(set, '0', '9');
        include(set, 'a', 'z');
        include(set, 'A', 'Z');
        include(set, '_', '_');
        return true;
    case 's':
        include(set, '\t', '\r');
        include(set, ' ', ' ');
        return true;
    default:
        return false;
    }
}

static void alternatives(void);

static void atom(void)
{
    unsigned char c = (unsigned char)*pattern++;
    switch (c) {
    case 0:
        pattern--;
        fail("something is missing");
    case '(': {
        int group = n_groups++;
        if (group == GROUPS_MAX) {
            fail("too many groups");
        }
        emit(SAVE, 2 * group, 0);
        alternatives();
        if (*pattern++ != ')') {
            pattern--;
            fail("`)` is missing");
        }
        emit(SAVE, 2 * group + 1, 0);
        return;
    }
    case '[': {
        int at = emit(SET, 0, 0);
        unsigned char *set = program[at].set;
        bool is_inverted = *pattern == '^';
        pattern += is_inverted;
        for (bool is_first = true; *pattern != ']' || is_first; is_first = false) {
            int low = (unsigned char)*pattern++;
            if (!low) {
                pattern--;
                fail("`]` is missing");
            }
            if (low == '\\') {
                if (class(set, *pattern)) {
                    pattern++;
                    continue;
                }
                low = (unsigned char)*pattern++;
            }
            int high = low;
            if (pattern[0] == '-' && pattern[1] && pattern[1] != ']') {
                high = (unsigned char)pattern[1];
                pattern += 2;
            }
            include(set, low, high);
        }
        pattern++;
        for (int i = 0; is_inverted && i < 32; i++) {
            set[i] = (unsigned char)~set[i];
        }
        return;
    }
    case '.':
        emit(ANY, 0, 0);
        return;
    case '^':
        emit(START, 0, 0);
        return;
    case '$':
        emit(END, 0, 0);
        return;
    case '*':
    case '+':
    case '?':
        pattern--;
        fail("nothing to repeat");
    case '\\': {
        int at = emit(SET, 0, 0);
        if (!*pattern) {
            fail("something is missing");
        }
        if (!class(program[at].set, *pattern)) {
            include(program[at].set, (unsigned char)*pattern, (unsigned char)*pattern);
        }
        pattern++;
        return;
    }
    default:
        emit(CHAR, c, 0);
    }
}

static void repeated(void)
{
    int start = n_insts;
    atom();
    for (;; pattern++) {
        if (*pattern == '*') {
            insert(start, SPLIT, start + 1, n_insts + 2);
            emit(JUMP, start, 0);
        } else if (*pattern == '+') {
            emit(SPLIT, start, n_insts + 1);
        } else if (*pattern == '?') {
            insert(start, SPLIT, start + 1, n_insts + 1);
        } else {
            return;
        }
    }
}

static void alternatives(void)
{
    int start = n_insts;
    while (*pattern && *pattern != '|' && *pattern != ')') {
        repeated();
    }
    if (*pattern == '|') {
        pattern++;
        insert(start, SPLIT, start + 1, n_insts + 2);
        int jump = emit(JUMP, 0, 0);
        alternatives();
        program[jump].x = n_insts;
    }
}

struct thread {
    int pc;
    int places[2 * GROUPS_MAX];
};

struct threads {
    int n;
    struct thread at[INSTS_MAX];
};

static int last_seen[INSTS_MAX];

/// Adds a thread, or all that it becomes without reading.
static void add(struct threads *list, struct thread thread, const char *line, int i, int n, int mark)
{
    if (last_seen[thread.pc] == mark) {
        return;
    }
    last_seen[thread.pc] = mark;
    const struct inst *inst = &program[thread.pc];
    struct thread next = thread;
    switch (inst->op) {
    case JUMP:
        next.pc = inst->x;
        add(list, next, line, i, n, mark);
        break;
    case SPLIT:
        next.pc = inst->x;
        add(list, next, line, i, n, mark);
        next.pc = inst->y;
        add(list, next, line, i, n, mark);
        break;
    case SAVE:
        next.places[inst->x] = i;
        next.pc++;
        add(list, next, line, i, n, mark);
        break;
    case START:
    case END:
        if (inst->op == START ? i == 0 : i == n) {
            next.pc++;
            add(list, next, line, i, n, mark);
        }
        break;
    default:
        list->at[list->n++] = thread;
    }
}

static bool find(const char *line, int n, int *places)
{
    static struct threads lists[2];
    static int mark;
    struct threads *now = &lists[0], *then = &lists[1];
    now->n = 0;
    bool is_found = false;
    mark++;
    for (int i = 0;; i++) {
        if (!is_found) {
            struct thread start = {.pc = 0};
            memset(start.places, -1, sizeof start.places);
            add(now, start, line, i, n, mark);
        }
        mark++;
        then->n = 0;
        for (int t = 0; t < now->n; t++) {
            struct thread thread = now->at[t];
            const struct inst *inst = &program[thread.pc];
            if (inst->op == FOUND) {
                memcpy(places, thread.places, sizeof thread.places);
                is_found = true;
                break; // the others have lower priority
            }
            unsigned char c = i < n ? (unsigned char)line[i] : 0;
            bool goes_on = inst->op == ANY || (inst->op == CHAR && inst->x == c)
                        || (inst->op == SET && inst->set[c >> 3] >> (c & 7) & 1);
            if (i < n && goes_on) {
                thread.pc++;
                add(then, thread, line, i + 1, n, mark);
            }
        }
        struct threads *swap = now;
        now = then;
        then = swap;
        if (i == n || (is_found && now->n == 0)) {
            return is_found;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: match PATTERN\n", stderr);
        return 2;
    }
    pattern = argv[1];
    emit(SAVE, 0, 0);
    alternatives();
    if (*pattern) {
        fail("`)` without `(`");
    }
    emit(SAVE, 1, 0);
    emit(FOUND, 0, 0);
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    unsigned long number = 0, n_found = 0;
    while ((len = getline(&line, &capacity, stdin)) >= 0) {
        number++;
        if (len && line[len - 1] == '\n') {
            line[--len] = 0;
        }
        int places[2 * GROUPS_MAX];
        if (!find(line, (int)len, places)) {
            continue;
        }
        n_found++;
        printf("%lu:%.*s[%.*s]%s", number, places[0], line, places[1] - places[0], line + places[0],
               line + places[1]);
        for (int group = 1; group < n_groups; group++) {
            int from = places[2 * group], to = places[2 * group + 1];
            if (from >= 0) {
                printf(" \\%d=%.*s", group, to - from, line + from);
            }
        }
        putchar('\n');
    }
    free(line);
    printf("%lu of %lu lines\n", n_found, number);
    return n_found ? 0 : 1;
}
