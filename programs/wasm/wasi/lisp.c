// A Lisp: numbers, symbols, lists, closures, tail calls without growing the stack, and a collector that marks
// and sweeps. Evaluates the expressions of its input and writes their values.
//
// usage: lisp
// stdin: lisp.in
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 40000, ROOTS_MAX = 20000 };
enum tag { FREE, NUMBER, SYMBOL, PAIR, CLOSURE, MACRO, BUILTIN };

typedef struct cell *value;

struct cell {
    enum tag tag;
    bool is_marked;
    union {
        int64_t number;
        struct {
            value head, tail; // pairs; of closures: (parameters . body) and the environment
        };
        struct {
            const char *name;
            value definition;
        };
        value (*call)(value args);
    };
};

static struct cell cells[CELLS];
static value free_cells, symbols, nil, truth, quote, lambda, macro, if_, define, let, begin, set;
static value *roots[ROOTS_MAX];
static int n_roots;
static unsigned long n_collections, n_made;
static bool is_failed;

static value eval(value expression, value environment);

static value fail(const char *message, const char *what)
{
    if (!is_failed) {
        printf("error: %s%s%s\n", message, *what ? ": " : "", what);
    }
    is_failed = true;
    return nil;
}

static void mark(value v)
{
    while (v && !v->is_marked) {
        v->is_marked = true;
        if (v->tag == SYMBOL) {
            v = v->definition;
        } else if (v->tag == PAIR || v->tag == CLOSURE || v->tag == MACRO) {
            mark(v->head);
            v = v->tail;
        }
    }
}

static void collect(void)
{
    n_collections++;
    mark(symbols);
    for (int i = 0; i < n_roots; i++) {
        mark(*roots[i]);
    }
    for (int i = CELLS; i--;) {
        value v = &cells[i];
        if (!v->is_marked) {
            *v = (struct cell){.tag = FREE, .head = free_cells};
            free_cells = v;
        }
        v->is_marked = false;
    }
}

static void root(value *v)
{
    if (n_roots == ROOTS_MAX) {
        puts("error: nested too deeply");
        exit(1);
    }
    roots[n_roots++] = v;
}

static value make(enum tag tag, value head, value tail)
{
    if (!free_cells) {
        root(&head);
        root(&tail);
        collect();
        n_roots -= 2;
        if (!free_cells) {
            puts("error: out of memory");
            exit(1);
        }
    }
    value v = free_cells;
    free_cells = v->head;
    *v = (struct cell){.tag = tag, .head = head, .tail = tail};
    n_made++;
    return v;
}

static value cons(value head, value tail)
{
    return make(PAIR, head, tail);
}

static value number(int64_t n)
{
    value v = make(NUMBER, NULL, NULL);
    v->number = n;
    return v;
}

static value symbol(const char *name)
{
    for (value v = symbols; v; v = v->tail) {
        if (strcmp(v->head->name, name) == 0) {
            return v->head;
        }
    }
    value v = make(SYMBOL, NULL, NULL);
    v->name = strdup(name);
    root(&v);
    symbols = cons(v, symbols);
    n_roots--;
    return v;
}

static bool is_pair(value v)
{
    return v->tag == PAIR;
}

static value head(value v)
{
    return is_pair(v) ? v->head : fail("no pair", "");
}

static value tail(value v)
{
    return is_pair(v) ? v->tail : fail("no pair", "");
}

static int64_t integer(value v)
{
    return v->tag == NUMBER ? v->number : (fail("no number", ""), 0);
}

static int next(void)
{
    int c = getchar();
    if (c == ';') {
        while (c != '\n' && c != EOF) {
            c = getchar();
        }
    }
    return c;
}

static bool at_end;

static value read(void)
{
    int c = next();
    while (isspace(c)) {
        c = next();
    }
    if (c == EOF) {
        at_end = true;
        return nil;
    }
    if (c == '\'') {
        value v = read();
        root(&v);
        v = cons(v, nil);
        v = cons(quote, v);
        n_roots--;
        return v;
    }
    if (c == '(') {
        value list = nil, *end = &list;
        root(&list);
        for (;;) {
            c = next();
            while (isspace(c)) {
                c = next();
            }
            if (c == EOF || c == ')') {
                at_end |= c == EOF;
                break;
            }
            ungetc(c, stdin);
            value v = read();
            root(&v);
            v = cons(v, nil);
            n_roots--;
            *end = v;
            end = &v->tail;
        }
        n_roots--;
        return list;
    }
    char name[64];
    size_t n = 0;
    while (c != EOF && !isspace(c) && c != '(' && c != ')' && n < sizeof name - 1) {
        name[n++] = (char)c;
        c = getchar();
    }
    name[n] = 0;
    ungetc(c, stdin);
    char *end;
    long long parsed = strtoll(name, &end, 10);
    return *end ? symbol(name) : number(parsed);
}

static void print(value v)
{
    switch (v->tag) {
    case NUMBER:
        printf("%lld", (long long)v->number);
        break;
    case SYMBOL:
        fputs(v->name, stdout);
        break;
    case PAIR:
        for (char before = '('; is_pair(v); v = v->tail, before = ' ') {
            putchar(before);
            print(v->head);
        }
        if (v != nil) {
            fputs(" . ", stdout);
            print(v);
        }
        putchar(')');
        break;
    default:
        fputs(v->tag == BUILTIN ? "#builtin" : v->tag == MACRO ? "#macro" : "#closure", stdout);
    }
}

/// The place of a variable's value, in a list of pairs or in the symbol; NULL if there is none.
static value *place(value name, value environment)
{
    for (; is_pair(environment); environment = environment->tail) {
        if (environment->head->head == name) {
            return &environment->head->tail;
        }
    }
    return name->definition ? &name->definition : NULL;
}

static value bound(value names, value values, value environment)
{
    root(&environment);
    root(&values);
    for (; is_pair(names) && is_pair(values); names = names->tail, values = values->tail) {
        value pair = cons(names->head, values->head);
        environment = cons(pair, environment);
    }
    if (names != nil && names->tag == SYMBOL) { // the rest
        value pair = cons(names, values);
        environment = cons(pair, environment);
    } else if (is_pair(names) != is_pair(values)) {
        fail("wrong number of arguments", "");
    }
    n_roots -= 2;
    return environment;
}

static value evaluated(value list, value environment)
{
    value result = nil, *end = &result;
    root(&result);
    root(&list);
    root(&environment);
    for (; is_pair(list) && !is_failed; list = list->tail) {
        value v = eval(list->head, environment);
        v = cons(v, nil);
        *end = v;
        end = &v->tail;
    }
    n_roots -= 3;
    return result;
}

static value eval(value x, value environment)
{
    value f = nil, args = nil;
    int n = n_roots;
    root(&x);
    root(&environment);
    root(&f);
    root(&args);
    while (!is_failed) {
        if (x->tag == SYMBOL) {
            value *found = x == nil || x == truth ? &x : place(x, environment);
            x = found ? *found : fail("unknown", x->name);
            break;
        }
        if (!is_pair(x)) {
            break;
        }
        value form = x->head;
        args = x->tail;
        if (form == quote) {
            x = head(args);
            break;
        }
        if (form == if_) {
            bool holds = eval(head(args), environment) != nil;
            args = tail(args);
            x = holds ? head(args) : tail(args) == nil ? nil : head(tail(args));
            continue;
        }
        if (form == lambda || form == macro) {
            x = make(form == lambda ? CLOSURE : MACRO, args, environment);
            break;
        }
        if (form == define || form == set) {
            value name = head(args);
            value v = eval(head(tail(args)), environment);
            value *at = form == define ? &name->definition : place(name, environment);
            if (!at || name->tag != SYMBOL) {
                fail("unknown", name->tag == SYMBOL ? name->name : "");
            } else {
                *at = v;
            }
            x = name;
            break;
        }
        if (form == let) { // (let ((name value) …) body …)
            value inner = environment;
            root(&inner);
            for (value list = head(args); is_pair(list) && !is_failed; list = list->tail) {
                value v = eval(head(tail(head(list))), environment);
                v = cons(head(head(list)), v);
                inner = cons(v, inner);
            }
            n_roots--;
            environment = inner;
            args = tail(args);
            form = begin;
        }
        if (form == begin) {
            for (; is_pair(args) && args->tail != nil; args = args->tail) {
                eval(args->head, environment);
            }
            x = is_pair(args) ? args->head : nil;
            continue;
        }
        f = eval(form, environment);
        if (f->tag == MACRO) {
            value inner = bound(head(f->head), args, f->tail);
            x = eval(head(tail(f->head)), inner);
            continue;
        }
        args = evaluated(args, environment);
        if (is_failed) {
            break;
        }
        if (f->tag == BUILTIN) {
            x = f->call(args);
            break;
        }
        if (f->tag != CLOSURE) {
            fail("cannot be called", "");
            break;
        }
        environment = bound(head(f->head), args, f->tail);
        x = f->head->tail;
        for (; is_pair(x) && x->tail != nil; x = x->tail) {
            eval(x->head, environment);
        }
        x = head(x);
    }
    n_roots = n;
    return is_failed ? nil : x;
}

static value add(value args)
{
    int64_t n = 0;
    for (; is_pair(args); args = args->tail) {
        n = (int64_t)((uint64_t)n + (uint64_t)integer(args->head));
    }
    return number(n);
}

static value subtract(value args)
{
    uint64_t n = (uint64_t)integer(head(args));
    args = tail(args);
    if (args == nil) {
        return number((int64_t)-n);
    }
    for (; is_pair(args); args = args->tail) {
        n -= (uint64_t)integer(args->head);
    }
    return number((int64_t)n);
}

static value multiply(value args)
{
    uint64_t n = 1;
    for (; is_pair(args); args = args->tail) {
        n *= (uint64_t)integer(args->head);
    }
    return number((int64_t)n);
}

static value divided(value args, bool is_rest)
{
    int64_t a = integer(head(args)), b = integer(head(tail(args)));
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        return fail("cannot divide", "");
    }
    return number(is_rest ? a % b : a / b);
}

static value quotient(value args) { return divided(args, false); }
static value rest(value args) { return divided(args, true); }
static value less(value args) { return integer(head(args)) < integer(head(tail(args))) ? truth : nil; }
static value make_pair(value args) { return cons(head(args), head(tail(args))); }
static value first(value args) { return head(head(args)); }
static value second(value args) { return tail(head(args)); }
static value list(value args) { return args; }
static value pairs(value args) { return is_pair(head(args)) ? truth : nil; }

static value equal(value args)
{
    value a = head(args), b = head(tail(args));
    bool same = a == b || (a->tag == NUMBER && b->tag == NUMBER && a->number == b->number);
    return same ? truth : nil;
}

static void builtin(const char *name, value (*call)(value))
{
    value v = make(BUILTIN, NULL, NULL);
    v->call = call;
    root(&v);
    symbol(name)->definition = v;
    n_roots--;
}

int main(void)
{
    for (int i = CELLS; i--;) {
        cells[i].head = free_cells;
        free_cells = &cells[i];
    }
    nil = symbol("nil");
    truth = symbol("t");
    quote = symbol("quote");
    lambda = symbol("lambda");
    macro = symbol("macro");
    if_ = symbol("if");
    define = symbol("define");
    let = symbol("let");
    begin = symbol("begin");
    set = symbol("set");
    builtin("+", add);
    builtin("-", subtract);
    builtin("*", multiply);
    builtin("/", quotient);
    builtin("%", rest);
    builtin("<", less);
    builtin("=", equal);
    builtin("cons", make_pair);
    builtin("head", first);
    builtin("tail", second);
    builtin("list", list);
    builtin("pair?", pairs);
    for (;;) {
        n_roots = 0;
        value v = read();
        if (at_end) {
            break;
        }
        is_failed = false;
        root(&v);
        v = eval(v, nil);
        if (!is_failed) {
            print(v);
            putchar('\n');
        }
    }
    printf("%lu cells made, %s\n", n_made, n_collections ? "and collected" : "none collected");
    return 0;
}
