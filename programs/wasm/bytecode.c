// An interpreter of a stack machine, dispatched by a switch, with programs for it: the sum of squares, the
// lengths of the Collatz sequences of all numbers below n, and a Fibonacci number by recursion.
// default-size: 300
// bench-size: 12000
//
// Shows: `br_table` dispatch, the state of a machine in locals that live round the loop.

#include "env.h"

typedef enum {
    PUSH, // arg
    GET, // local arg
    SET, // local arg
    ADD,
    SUB,
    MUL,
    HALF,
    ODD,
    LESS,
    JUMP, // to arg
    UNLESS, // to arg if there is a 0
    CALL, // arg, with one value
    RETURN,
    PRINT,
    HALT,
} Op;

typedef struct {
    Op op;
    i32 arg;
} Inst;

enum { STACK_MAX = 1000, LOCALS = 4 };

static i64 stack[STACK_MAX], locals[STACK_MAX];
static i32 returns[STACK_MAX];

// The number of steps until the machine halts. Each call has locals of its own; the value that it takes is
// the first of them.
static i64 interpret(const Inst *code) {
    i64 *top = stack, *frame = locals;
    i32 pc = 0, n_calls = 0;
    for (i64 steps = 1;; steps++) {
        Inst inst = code[pc++];
        switch (inst.op) {
        case PUSH: *++top = inst.arg; break;
        case GET: *++top = frame[inst.arg]; break;
        case SET: frame[inst.arg] = *top--; break;
        case ADD: top--, top[0] += top[1]; break;
        case SUB: top--, top[0] -= top[1]; break;
        case MUL: top--, top[0] *= top[1]; break;
        case HALF: top[0] /= 2; break;
        case ODD: top[0] &= 1; break;
        case LESS: top--, top[0] = top[0] < top[1]; break;
        case JUMP: pc = inst.arg; break;
        case UNLESS:
            if (*top-- == 0) pc = inst.arg;
            break;
        case CALL:
            returns[n_calls++] = pc;
            frame += LOCALS;
            frame[0] = *top--;
            pc = inst.arg;
            break;
        case RETURN:
            frame -= LOCALS;
            pc = returns[--n_calls];
            break;
        case PRINT:
            print_i64(*top--);
            print_char('\n');
            break;
        case HALT: return steps;
        }
    }
}

static i64 sum_of_squares(i32 n) {
    const Inst code[] = {
        // 0: sum = 0, i = 0
        {PUSH, 0}, {SET, 0}, {PUSH, 0}, {SET, 1},
        // 4: while i < n
        {GET, 1}, {PUSH, n}, {LESS, 0}, {UNLESS, 19},
        // 8: sum += i * i
        {GET, 1}, {GET, 1}, {MUL, 0}, {GET, 0}, {ADD, 0}, {SET, 0},
        // 14: i += 1
        {GET, 1}, {PUSH, 1}, {ADD, 0}, {SET, 1}, {JUMP, 4},
        // 19:
        {GET, 0}, {PRINT, 0}, {HALT, 0},
    };
    return interpret(code);
}

static i64 collatz(i32 n) {
    const Inst code[] = {
        // 0: steps = 0, start = 1
        {PUSH, 0}, {SET, 0}, {PUSH, 1}, {SET, 1},
        // 4: while start < n: x = start
        {GET, 1}, {PUSH, n}, {LESS, 0}, {UNLESS, 37}, {GET, 1}, {SET, 2},
        // 10: while 1 < x: steps += 1
        {PUSH, 1}, {GET, 2}, {LESS, 0}, {UNLESS, 32}, {GET, 0}, {PUSH, 1}, {ADD, 0}, {SET, 0},
        // 18: if x is odd: x = x * 3 + 1
        {GET, 2}, {ODD, 0}, {UNLESS, 28},
        {GET, 2}, {PUSH, 3}, {MUL, 0}, {PUSH, 1}, {ADD, 0}, {SET, 2}, {JUMP, 10},
        // 28: else: x = x / 2
        {GET, 2}, {HALF, 0}, {SET, 2}, {JUMP, 10},
        // 32: start += 1
        {GET, 1}, {PUSH, 1}, {ADD, 0}, {SET, 1}, {JUMP, 4},
        // 37:
        {GET, 0}, {PRINT, 0}, {HALT, 0},
    };
    return interpret(code);
}

static i64 fibonacci(i32 i) {
    const Inst code[] = {
        {PUSH, i}, {CALL, 4}, {PRINT, 0}, {HALT, 0},
        // 4: if k < 2: return k
        {GET, 0}, {PUSH, 2}, {LESS, 0}, {UNLESS, 10}, {GET, 0}, {RETURN, 0},
        // 10: return fibonacci(k - 1) + fibonacci(k - 2)
        {GET, 0}, {PUSH, 1}, {SUB, 0}, {CALL, 4},
        {GET, 0}, {PUSH, 2}, {SUB, 0}, {CALL, 4}, {ADD, 0}, {RETURN, 0},
    };
    return interpret(code);
}

i32 run(i32 n) {
    i64 steps = sum_of_squares(n);
    steps += collatz(n);
    // The first Fibonacci number that is not less than n takes about as many calls.
    i32 i = 0;
    for (i64 x = 0, y = 1; x < n; i++) {
        i64 next = x + y;
        x = y;
        y = next;
    }
    steps += fibonacci(i);
    print_line("steps", steps);
    return 0;
}
