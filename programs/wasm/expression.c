// A recursive-descent parser that evaluates arithmetic with five levels of precedence, variables and calls:
// some expressions with known values, then n made-up ones, written out from a tree whose value is known.
// default-size: 500
// bench-size: 25000
//
// Shows: mutual recursion with a parser's state behind a pointer, tests of characters.

#include "env.h"

typedef struct {
    const char *at;
    i32 n_errors;
} Parser;

static i64 variables[26];

static i64 parse_choice(Parser *p);

static void skip_spaces(Parser *p) {
    while (*p->at == ' ') p->at++;
}

static i32 accept(Parser *p, char c) {
    skip_spaces(p);
    if (*p->at != c) return 0;
    p->at++;
    return 1;
}

static void expect(Parser *p, char c) {
    if (!accept(p, c)) p->n_errors++;
}

static i32 is_letter(char c) { return c >= 'a' && c <= 'z'; }

static i32 is_digit(char c) { return c >= '0' && c <= '9'; }

// Wrapping arithmetic, which C has for unsigned numbers only.
static i64 plus(i64 x, i64 y) { return (i64)((u64)x + (u64)y); }
static i64 minus(i64 x, i64 y) { return (i64)((u64)x - (u64)y); }
static i64 times(i64 x, i64 y) { return (i64)((u64)x * (u64)y); }

static i64 call_min_max(Parser *p, i32 is_max) {
    i64 best = parse_choice(p);
    while (accept(p, ',')) {
        i64 x = parse_choice(p);
        if (is_max ? x > best : x < best) best = x;
    }
    expect(p, ')');
    return best;
}

// A variable is one letter; a call is `min(…)` or `max(…)`.
static i64 parse_name(Parser *p) {
    const char *start = p->at;
    while (is_letter(*p->at)) p->at++;
    i32 len = (i32)(p->at - start);
    if (len == 1) return variables[*start - 'a'];
    i32 is_max = len == 3 && start[0] == 'm' && start[1] == 'a' && start[2] == 'x';
    i32 is_min = len == 3 && start[0] == 'm' && start[1] == 'i' && start[2] == 'n';
    if ((is_max || is_min) && accept(p, '(')) return call_min_max(p, is_max);
    p->n_errors++;
    return 0;
}

static i64 parse_primary(Parser *p) {
    skip_spaces(p);
    if (accept(p, '(')) {
        i64 x = parse_choice(p);
        expect(p, ')');
        return x;
    }
    if (accept(p, '-')) return minus(0, parse_primary(p));
    if (is_letter(*p->at)) return parse_name(p);
    if (!is_digit(*p->at)) p->n_errors++;
    i64 x = 0;
    while (is_digit(*p->at)) x = plus(times(x, 10), *p->at++ - '0');
    return x;
}

// `^` is a power, and groups from the right.
static i64 parse_power(Parser *p) {
    i64 base = parse_primary(p);
    if (!accept(p, '^')) return base;
    i64 result = 1;
    for (i64 i = parse_power(p) & 63; i > 0; i--) result = times(result, base);
    return result;
}

static i64 parse_product(Parser *p) {
    i64 x = parse_power(p);
    for (;;) {
        if (accept(p, '*')) {
            x = times(x, parse_power(p));
        } else if (accept(p, '/')) {
            i64 y = parse_power(p);
            // -1 is left to subtraction, since the least number has no opposite.
            x = y == 0 ? 0 : y == -1 ? minus(0, x) : x / y;
        } else {
            return x;
        }
    }
}

static i64 parse_sum(Parser *p) {
    i64 x = parse_product(p);
    for (;;) {
        if (accept(p, '+')) x = plus(x, parse_product(p));
        else if (accept(p, '-')) x = minus(x, parse_product(p));
        else return x;
    }
}

static i64 parse_comparison(Parser *p) {
    i64 x = parse_sum(p);
    if (accept(p, '<')) return x < parse_sum(p);
    if (accept(p, '=')) return x == parse_sum(p);
    return x;
}

// `condition ? this : that`.
static i64 parse_choice(Parser *p) {
    i64 condition = parse_comparison(p);
    if (!accept(p, '?')) return condition;
    i64 this = parse_choice(p);
    expect(p, ':');
    i64 that = parse_choice(p);
    return condition != 0 ? this : that;
}

static i64 evaluate(const char *text, i32 *n_errors) {
    Parser parser = {text, 0};
    i64 x = parse_choice(&parser);
    skip_spaces(&parser);
    *n_errors += parser.n_errors + (*parser.at != 0);
    return x;
}

// Writes expressions together with their values.
typedef struct {
    char text[4096];
    i32 len;
    u32 state;
} Writer;

static void put(Writer *w, const char *text) {
    while (*text != 0) w->text[w->len++] = *text++;
}

static i64 put_number(Writer *w, u32 x) {
    char digits[12];
    i32 n = 0;
    u32 rest = x;
    do digits[n++] = (char)('0' + rest % 10);
    while ((rest /= 10) != 0);
    while (n > 0) w->text[w->len++] = digits[--n];
    return x;
}

static i64 put_expression(Writer *w, i32 depth) {
    u32 r = random_word(&w->state) >> 4;
    if (depth == 0 || r % 9 == 0) {
        if (r & 16) return put_number(w, r >> 12);
        w->text[w->len++] = (char)('a' + r / 32 % 26);
        return variables[r / 32 % 26];
    }
    static const char *const open[] = {"(", "(", "(", "(", "max(", "-("};
    static const char *const middle[] = {" + ", " - ", "*", " < ", ", ", " - "};
    u32 kind = r / 16 % 6;
    put(w, open[kind]);
    i64 x = put_expression(w, depth - 1);
    put(w, middle[kind]);
    i64 y = put_expression(w, depth - 1);
    put(w, ")");
    switch (kind) {
    case 0: return plus(x, y);
    case 1: return minus(x, y);
    case 2: return times(x, y);
    case 3: return x < y;
    case 4: return x > y ? x : y;
    default: return minus(y, x);
    }
}

static i32 check(const char *text, i64 expected) {
    i32 n_errors = 0;
    i64 x = evaluate(text, &n_errors);
    print_text(text);
    print_text(" = ");
    print_i64(x);
    print_char('\n');
    return n_errors + (x != expected);
}

i32 run(i32 n) {
    for (i32 i = 0; i < 26; i++) variables[i] = (i64)i * i - 100;
    i32 n_wrong = check("1 + 2*3 - 8/2/2", 5) + check("2^3^2 - -(3 - 10)", 505);
    n_wrong += check("max(1, min(7, a), 3 < 4 ? k : z)", 1) + check("(1 = 2 ? 3 : 4 < 5 ? 6 : 7)*10", 60);
    i32 n_errors = 0;
    evaluate("(1 + ", &n_errors);
    n_wrong += n_errors == 0;
    Writer w = {.state = 362436069};
    u64 sum = 0;
    i64 n_bytes = 0;
    for (i32 i = 0; i < n; i++) {
        w.len = 0;
        i64 expected = put_expression(&w, 6);
        w.text[w.len] = 0;
        n_bytes += w.len;
        i64 x = evaluate(w.text, &n_wrong);
        n_wrong += x != expected;
        sum = sum * 31 + (u64)x;
    }
    print_line("bytes", n_bytes);
    print_line("sum", (i64)sum);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
