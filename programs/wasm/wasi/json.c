// Reads JSON, complains about what is not, and writes it with the members of objects sorted.
//
// usage: json [-c]    (-c: compact)
// stdin: json.in
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT };
enum { DEPTH_MAX = 512 };

struct value {
    enum kind kind;
    double number;
    char *text; // of strings
    size_t len;
    struct value *items; // of arrays and objects
    char **keys;
    size_t *key_lens;
    size_t n_items;
};

static const char *input, *at, *end;
static int depth;
static bool is_compact;

static _Noreturn void fail(const char *format, ...)
{
    unsigned line = 1, column = 1;
    for (const char *p = input; p < at; p++) {
        column++;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    va_list args;
    va_start(args, format);
    fprintf(stderr, "json: %u:%u: ", line, column);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(2);
}

static void *resized(void *p, size_t n, size_t size)
{
    if (n && size > SIZE_MAX / n) {
        fail("too large");
    }
    p = realloc(p, n * size + 1);
    if (!p) {
        fail("out of memory");
    }
    return p;
}

static void blanks(void)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')) {
        at++;
    }
}

static bool take(char c)
{
    if (at < end && *at == c) {
        at++;
        return true;
    }
    return false;
}

static unsigned hex4(void)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++, at++) {
        if (at == end) {
            fail("the text ends in an escape");
        }
        char c = *at;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                       : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10) : 16;
        if (digit == 16) {
            fail("`%c` is no hexadecimal digit", c);
        }
        code = code << 4 | digit;
    }
    return code;
}

static size_t put_utf8(char *out, unsigned c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i; c >>= 6) {
        out[i] = (char)(0x80 | (c & 0x3f));
    }
    out[0] = (char)((0xf00u >> n & 0xff) | c);
    return n;
}

static char *string(size_t *len)
{
    size_t capacity = 0, n = 0;
    char *out = NULL;
    for (;;) {
        if (at == end) {
            fail("a string does not end");
        }
        if (n + 4 > capacity) {
            out = resized(out, capacity = 2 * capacity + 16, 1);
        }
        unsigned char c = (unsigned char)*at++;
        if (c == '"') {
            break;
        }
        if (c < 0x20) {
            at--;
            fail("a control character in a string");
        }
        if (c != '\\') {
            out[n++] = (char)c;
            continue;
        }
        if (at == end) {
            fail("a string does not end");
        }
        static const char escapes[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
        const char *found = *at ? strchr(escapes, *at) : NULL;
        if (found) {
            out[n++] = meanings[found - escapes];
            at++;
        } else if (take('u')) {
            unsigned code = hex4();
            if (code >= 0xd800 && code < 0xdc00) {
                unsigned low = take('\\') && take('u') ? hex4() : 0;
                if (low < 0xdc00 || low >= 0xe000) {
                    fail("half of a surrogate pair");
                }
                code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
            }
            n += put_utf8(out + n, code);
        } else {
            fail("there is no escape `\\%c`", *at);
        }
    }
    out[n] = 0;
    *len = n;
    return out;
}

static double number(void)
{
    const char *start = at;
    take('-');
    if (!take('0')) {
        const char *digits = at;
        while (at < end && *at >= '0' && *at <= '9') {
            at++;
        }
        if (at == digits) {
            fail("a value is missing");
        }
    }
    for (int part = 0; part < 2; part++) {
        if (part ? take('e') || take('E') : take('.')) {
            if (part && !take('+')) {
                take('-');
            }
            const char *digits = at;
            while (at < end && *at >= '0' && *at <= '9') {
                at++;
            }
            if (at == digits) {
                fail("digits are missing");
            }
        }
    }
    errno = 0;
    double x = strtod(start, NULL);
    if (isinf(x)) {
        fail("the number is too large");
    }
    return x;
}

static bool word(const char *name)
{
    size_t len = strlen(name);
    if ((size_t)(end - at) < len || memcmp(at, name, len) != 0) {
        return false;
    }
    at += len;
    return true;
}

static struct value value(void)
{
    struct value v = {0};
    size_t capacity = 0;
    blanks();
    if (++depth > DEPTH_MAX) {
        fail("more than %d levels", DEPTH_MAX);
    }
    if (take('"')) {
        v.kind = STRING;
        v.text = string(&v.len);
    } else if (take('[') || take('{')) {
        bool is_object = at[-1] == '{';
        char close = is_object ? '}' : ']';
        v.kind = is_object ? OBJECT : ARRAY;
        blanks();
        bool is_empty = take(close);
        while (!is_empty) {
            if (v.n_items == capacity) {
                capacity = 2 * capacity + 4;
                v.items = resized(v.items, capacity, sizeof *v.items);
                v.keys = resized(v.keys, capacity, sizeof *v.keys);
                v.key_lens = resized(v.key_lens, capacity, sizeof *v.key_lens);
            }
            if (is_object) {
                blanks();
                if (!take('"')) {
                    fail("a name in quotes is missing");
                }
                v.keys[v.n_items] = string(&v.key_lens[v.n_items]);
                blanks();
                if (!take(':')) {
                    fail("`:` is missing");
                }
            }
            v.items[v.n_items++] = value();
            blanks();
            if (take(close)) {
                break;
            }
            if (!take(',')) {
                fail("`,` or `%c` is missing", close);
            }
        }
    } else if (word("null")) {
        v.kind = NUL;
    } else if (word("true")) {
        v.kind = TRUE;
    } else if (word("false")) {
        v.kind = FALSE;
    } else {
        v.kind = NUMBER;
        v.number = number();
    }
    depth--;
    return v;
}

static void write_string(const char *text, size_t len)
{
    putchar('"');
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c == '\n') {
            fputs("\\n", stdout);
        } else if (c < 0x20) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

/// The shortest of `%g` that reads as the same number.
static void write_number(double x)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x) {
            break;
        }
    }
    fputs(text, stdout);
}

static void new_line(int level)
{
    if (!is_compact) {
        printf("\n%*s", 2 * level, "");
    }
}

static int by_key(const struct value *v, size_t a, size_t b)
{
    size_t n = v->key_lens[a] < v->key_lens[b] ? v->key_lens[a] : v->key_lens[b];
    int order = memcmp(v->keys[a], v->keys[b], n);
    return order ? order : (v->key_lens[a] > v->key_lens[b]) - (v->key_lens[a] < v->key_lens[b]);
}

static void write(const struct value *v, int level)
{
    static const char *const names[] = {"null", "false", "true"};
    if (v->kind <= TRUE) {
        fputs(names[v->kind], stdout);
    } else if (v->kind == NUMBER) {
        write_number(v->number);
    } else if (v->kind == STRING) {
        write_string(v->text, v->len);
    } else {
        size_t *order = resized(NULL, v->n_items, sizeof *order);
        for (size_t i = 0; i < v->n_items; i++) {
            size_t j = i; // insertion keeps equal names in their order
            for (; v->kind == OBJECT && j && by_key(v, order[j - 1], i) > 0; j--) {
                order[j] = order[j - 1];
            }
            order[j] = i;
        }
        putchar(v->kind == OBJECT ? '{' : '[');
        for (size_t i = 0; i < v->n_items; i++) {
            if (i) {
                putchar(',');
            }
            new_line(level + 1);
            if (v->kind == OBJECT) {
                write_string(v->keys[order[i]], v->key_lens[order[i]]);
                fputs(is_compact ? ":" : ": ", stdout);
            }
            write(&v->items[order[i]], level + 1);
        }
        if (v->n_items) {
            new_line(level);
        }
        putchar(v->kind == OBJECT ? '}' : ']');
        free(order);
    }
}

static void release(struct value *v)
{
    for (size_t i = 0; i < v->n_items; i++) {
        release(&v->items[i]);
        if (v->kind == OBJECT) {
            free(v->keys[i]);
        }
    }
    free(v->text);
    free(v->items);
    free(v->keys);
    free(v->key_lens);
}

int main(int argc, char **argv)
{
    is_compact = argc > 1 && strcmp(argv[1], "-c") == 0;
    size_t len = 0, capacity = 4096;
    char *text = resized(NULL, capacity, 1);
    for (size_t n; (n = fread(text + len, 1, capacity - len, stdin)) > 0;) {
        len += n;
        if (len == capacity) {
            text = resized(text, capacity *= 2, 1);
        }
    }
    text[len] = 0;
    input = at = text;
    end = text + len;
    struct value v = value();
    blanks();
    if (at != end) {
        fail("something follows the value");
    }
    write(&v, 0);
    putchar('\n');
    release(&v);
    free(text);
    return 0;
}
