// A calculator with integers of any length: + - * / % ^ !, brackets, variables, one expression in a line.
//
// usage: big
// stdin: big.in
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BASE = 1000000000, DIGITS_MAX = 2000 };

struct number {
    int is_negative;
    size_t len; // of digits to BASE, lowest first; no leading zeros
    uint32_t *digits;
};

static const char *at;
static const char *error;
static struct number variables[26];

static struct number zeros(size_t len)
{
    if (len > DIGITS_MAX) {
        error = "too long a number";
        len = 1;
    }
    struct number n = {0, len, calloc(len + 1, sizeof *n.digits)};
    if (!n.digits) {
        fputs("big: out of memory\n", stderr);
        exit(1);
    }
    return n;
}

static struct number small(uint64_t n)
{
    struct number r = zeros(3);
    for (size_t i = 0; i < 3; i++, n /= BASE) {
        r.digits[i] = (uint32_t)(n % BASE);
    }
    return r;
}

static struct number trimmed(struct number n)
{
    while (n.len && !n.digits[n.len - 1]) {
        n.len--;
    }
    n.is_negative &= n.len > 0;
    return n;
}

static struct number copy(struct number n)
{
    struct number r = zeros(n.len);
    memcpy(r.digits, n.digits, r.len * sizeof *r.digits);
    r.is_negative = n.is_negative;
    return r;
}

static int by_size(struct number a, struct number b)
{
    if (a.len != b.len) {
        return a.len < b.len ? -1 : 1;
    }
    for (size_t i = a.len; i--;) {
        if (a.digits[i] != b.digits[i]) {
            return a.digits[i] < b.digits[i] ? -1 : 1;
        }
    }
    return 0;
}

static struct number add(struct number a, struct number b)
{
    if (a.is_negative == b.is_negative) {
        size_t len = a.len > b.len ? a.len : b.len;
        struct number r = zeros(len + 1);
        uint32_t carry = 0;
        for (size_t i = 0; i < r.len; i++) {
            carry += (i < a.len ? a.digits[i] : 0) + (i < b.len ? b.digits[i] : 0);
            r.digits[i] = carry % BASE;
            carry /= BASE;
        }
        r.is_negative = a.is_negative;
        return trimmed(r);
    }
    if (by_size(a, b) < 0) {
        struct number swap = a;
        a = b;
        b = swap;
    }
    struct number r = zeros(a.len);
    uint32_t borrow = 0;
    for (size_t i = 0; i < r.len; i++) {
        uint32_t less = borrow + (i < b.len ? b.digits[i] : 0);
        borrow = a.digits[i] < less;
        r.digits[i] = a.digits[i] + (borrow ? BASE : 0) - less;
    }
    r.is_negative = a.is_negative;
    return trimmed(r);
}

static struct number multiply(struct number a, struct number b)
{
    struct number r = zeros(a.len + b.len + 1);
    for (size_t i = 0; i < a.len && !error; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b.len || carry; k++) {
            carry += r.digits[i + k] + (k < b.len ? (uint64_t)a.digits[i] * b.digits[k] : 0);
            r.digits[i + k] = (uint32_t)(carry % BASE);
            carry /= BASE;
        }
    }
    r.is_negative = a.is_negative != b.is_negative;
    return trimmed(r);
}

/// Knuth's algorithm D; the quotient is rounded towards zero.
static struct number divide(struct number a, struct number b, struct number *rest)
{
    if (!b.len) {
        error = "division by zero";
    }
    if (!b.len || by_size(a, b) < 0) {
        *rest = copy(a);
        return zeros(0);
    }
    uint32_t scale = BASE / (b.digits[b.len - 1] + 1);
    struct number factor = small(scale);
    factor = trimmed(factor);
    struct number u = multiply(a, factor), v = multiply(b, factor);
    u.is_negative = v.is_negative = 0;
    struct number w = zeros(u.len + 1);
    memcpy(w.digits, u.digits, u.len * sizeof *u.digits);
    struct number q = zeros(w.len - v.len);
    for (size_t i = q.len; i--;) {
        uint64_t top = (uint64_t)w.digits[i + v.len] * BASE + w.digits[i + v.len - 1];
        uint64_t digit = top / v.digits[v.len - 1], left = top % v.digits[v.len - 1];
        uint64_t second = v.len > 1 ? v.digits[v.len - 2] : 0;
        uint64_t below = v.len > 1 ? w.digits[i + v.len - 2] : 0;
        while (digit >= BASE || (left < BASE && digit * second > left * BASE + below)) {
            digit--;
            left += v.digits[v.len - 1];
        }
        int64_t borrow = 0;
        for (size_t k = 0; k <= v.len; k++) {
            int64_t d = (int64_t)w.digits[i + k] - borrow - (int64_t)(digit * (k < v.len ? v.digits[k] : 0));
            borrow = d < 0 ? (-d + BASE - 1) / BASE : 0;
            w.digits[i + k] = (uint32_t)(d + borrow * BASE);
        }
        if (borrow) { // one too many
            digit--;
            uint32_t carry = 0;
            for (size_t k = 0; k <= v.len; k++) {
                carry += w.digits[i + k] + (k < v.len ? v.digits[k] : 0);
                w.digits[i + k] = carry % BASE;
                carry /= BASE;
            }
        }
        q.digits[i] = (uint32_t)digit;
    }
    uint64_t carry = 0;
    for (size_t i = w.len; i--;) {
        carry = carry * BASE + w.digits[i];
        w.digits[i] = (uint32_t)(carry / scale);
        carry %= scale;
    }
    free(factor.digits);
    free(u.digits);
    free(v.digits);
    w.is_negative = a.is_negative;
    q.is_negative = a.is_negative != b.is_negative;
    *rest = trimmed(w);
    return trimmed(q);
}

static struct number power(struct number base, struct number exponent)
{
    if (exponent.is_negative || exponent.len > 1) {
        error = "no such power";
        return zeros(0);
    }
    struct number r = trimmed(small(1)), square = copy(base);
    for (uint32_t n = exponent.len ? exponent.digits[0] : 0; n && !error; n /= 2) {
        if (n & 1) {
            struct number next = multiply(r, square);
            free(r.digits);
            r = next;
        }
        if (n > 1) {
            struct number next = multiply(square, square);
            free(square.digits);
            square = next;
        }
    }
    free(square.digits);
    return r;
}

static struct number factorial(struct number of)
{
    if (of.is_negative || of.len > 1) {
        error = "no such factorial";
        return zeros(0);
    }
    struct number r = trimmed(small(1));
    for (uint32_t n = of.len ? of.digits[0] : 0; n > 1 && !error; n--) {
        struct number factor = trimmed(small(n)), next = multiply(r, factor);
        free(factor.digits);
        free(r.digits);
        r = next;
    }
    return r;
}

static struct number expression(int level);

static void blanks(void)
{
    while (*at == ' ') {
        at++;
    }
}

static struct number operand(void)
{
    struct number r = zeros(0);
    blanks();
    if (isdigit((unsigned char)*at)) {
        const char *end = at;
        while (isdigit((unsigned char)*end)) {
            end++;
        }
        free(r.digits);
        r = zeros((size_t)(end - at) / 9 + 1);
        size_t i = 0;
        for (const char *p = end; p > at && !error; i++) {
            uint32_t digit = 0, unit = 1;
            for (int k = 0; k < 9 && p > at; k++, unit *= 10) {
                digit += (uint32_t)(*--p - '0') * unit;
            }
            r.digits[i] = digit;
        }
        at = end;
        r = trimmed(r);
    } else if (*at == '(') {
        at++;
        free(r.digits);
        r = expression(0);
        if (*at != ')') {
            error = error ? error : "`)` is missing";
            return r;
        }
        at++;
    } else if (islower((unsigned char)*at)) {
        free(r.digits);
        r = copy(variables[*at++ - 'a']);
    } else if (*at == '-') {
        at++;
        free(r.digits);
        r = expression(2);
        r.is_negative = r.len && !r.is_negative;
    } else {
        error = error ? error : "a number is missing";
        return r;
    }
    for (blanks(); *at == '!'; blanks()) {
        at++;
        struct number next = factorial(r);
        free(r.digits);
        r = next;
    }
    return r;
}

/// Operators of a level or higher: 0 for sums, 1 for products, 2 for powers.
static struct number expression(int level)
{
    struct number left = operand();
    while (!error) {
        blanks();
        char op = *at;
        int its_level = op == '+' || op == '-' ? 0 : op == '*' || op == '/' || op == '%' ? 1 : op == '^' ? 2 : -1;
        if (its_level < level || op == 0) {
            break;
        }
        at++;
        struct number right = expression(op == '^' ? 2 : its_level + 1), result, rest = {0};
        switch (op) {
        case '-':
            right.is_negative = right.len && !right.is_negative;
            result = add(left, right);
            break;
        case '+':
            result = add(left, right);
            break;
        case '*':
            result = multiply(left, right);
            break;
        case '^':
            result = power(left, right);
            break;
        default:
            result = divide(left, right, &rest);
            if (op == '%') {
                struct number swap = result;
                result = rest;
                rest = swap;
            }
        }
        free(rest.digits);
        free(left.digits);
        free(right.digits);
        left = result;
    }
    return left;
}

static void print(struct number n)
{
    printf("%s%u", n.is_negative ? "-" : "", n.len ? n.digits[n.len - 1] : 0);
    for (size_t i = n.len; i-- > 1;) {
        printf("%09u", n.digits[i - 1]);
    }
    putchar('\n');
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, stdin) >= 0) {
        line[strcspn(line, "\n")] = 0;
        at = line;
        error = NULL;
        int variable = -1;
        if (islower((unsigned char)line[0]) && line[1] == ' ' && line[2] == '=') {
            variable = line[0] - 'a';
            at = line + 3;
        }
        struct number n = expression(0);
        if (!error && *at) {
            error = "something follows";
        }
        if (error) {
            printf("error at %zu: %s\n", (size_t)(at - line) + 1, error);
        } else if (variable < 0) {
            print(n);
        } else {
            free(variables[variable].digits);
            variables[variable] = copy(n);
        }
        free(n.digits);
    }
    for (int i = 0; i < 26; i++) {
        free(variables[i].digits);
    }
    free(line);
    return 0;
}
