// Prints numbers with the fewest decimal digits that read back as the same number, after Burger and Dybvig
// (Printing Floating-Point Numbers Quickly and Accurately, 1996), and reads them with correct rounding,
// with integers of any length: up to n of the numbers are known, and n have random bits.
// default-size: 60
// bench-size: 6000
//
// Shows: carries through arrays of words, large structures passed by pointer, casts between bits and f64.

#include "env.h"

enum { WORDS = 80, DIGITS_MAX = 17 };

// A number of `len` words, the last of which is not 0.
typedef struct {
    i32 len;
    u32 words[WORDS];
} Big;

// The number 0.d1d2d3… times a power of ten.
typedef struct {
    i32 n_digits, exponent;
    u8 digits[DIGITS_MAX + 1];
} Decimal;

typedef union {
    f64 number;
    u64 bits;
} Float;

static void set(Big *a, u64 x) {
    a->len = 0;
    for (; x != 0; x >>= 32) a->words[a->len++] = (u32)x;
}

static void copy(Big *a, const Big *b) {
    a->len = b->len;
    for (i32 i = 0; i < b->len; i++) a->words[i] = b->words[i];
}

static void multiply(Big *a, u32 by) {
    u64 carry = 0;
    for (i32 i = 0; i < a->len; i++) {
        carry += (u64)a->words[i] * by;
        a->words[i] = (u32)carry;
        carry >>= 32;
    }
    if (carry != 0) a->words[a->len++] = (u32)carry;
}

static void multiply_by_power_of_ten(Big *a, i32 power) {
    for (; power >= 9; power -= 9) multiply(a, 1000000000);
    for (; power > 0; power--) multiply(a, 10);
}

static void shift_left(Big *a, i32 by) {
    if (a->len == 0) return;
    i32 n_words = by / 32, n_bits = by % 32;
    for (i32 i = a->len - 1; i >= 0; i--) a->words[i + n_words] = a->words[i];
    for (i32 i = 0; i < n_words; i++) a->words[i] = 0;
    a->len += n_words;
    if (n_bits != 0) multiply(a, 1u << n_bits);
}

static i32 n_bits(const Big *a) {
    return a->len == 0 ? 0 : 32 * a->len - __builtin_clz(a->words[a->len - 1]);
}

static i32 compare(const Big *a, const Big *b) {
    if (a->len != b->len) return a->len < b->len ? -1 : 1;
    for (i32 i = a->len - 1; i >= 0; i--) {
        if (a->words[i] != b->words[i]) return a->words[i] < b->words[i] ? -1 : 1;
    }
    return 0;
}

// a += b
static void add(Big *a, const Big *b) {
    u64 carry = 0;
    for (i32 i = 0; i < a->len || i < b->len || carry != 0; i++) {
        carry += (u64)(i < a->len ? a->words[i] : 0) + (i < b->len ? b->words[i] : 0);
        if (i >= a->len) a->len = i + 1;
        a->words[i] = (u32)carry;
        carry >>= 32;
    }
}

// a -= b, which is not greater.
static void subtract(Big *a, const Big *b) {
    u32 borrow = 0;
    for (i32 i = 0; i < a->len; i++) {
        u64 less = (u64)(i < b->len ? b->words[i] : 0) + borrow;
        borrow = a->words[i] < less;
        a->words[i] = (u32)(a->words[i] - less);
    }
    while (a->len > 0 && a->words[a->len - 1] == 0) a->len--;
}

// Whether a + b reaches c: is above it, or the same where that will do.
static i32 sum_reaches(const Big *a, const Big *b, const Big *c, i32 same_will_do) {
    static Big sum;
    copy(&sum, a);
    add(&sum, b);
    return compare(&sum, c) >= !same_will_do;
}

// The shortest decimal of a positive number. It is r / s; what lies less than m_low / s below it and
// m_high / s above it reads back as the same number, and so do the ends if the mantissa is even.
static void print_shortest(f64 number, Decimal *decimal) {
    static Big r, s, m_low, m_high;
    Float value = {.number = number};
    i32 biased = (i32)(value.bits >> 52);
    u64 mantissa = value.bits & 0xfffffffffffffULL;
    if (biased == 0) biased = 1;
    else mantissa |= 1ULL << 52;
    i32 exponent = biased - 1075, is_even = (mantissa & 1) == 0;
    // Below a power of two, numbers are twice as close.
    i32 is_uneven = mantissa == 1ULL << 52 && biased > 1;
    set(&r, mantissa << (1 + is_uneven));
    set(&s, 2ULL << is_uneven);
    set(&m_low, 1);
    set(&m_high, 1ULL << is_uneven);
    if (exponent >= 0) {
        shift_left(&r, exponent);
        shift_left(&m_low, exponent);
        shift_left(&m_high, exponent);
    } else {
        shift_left(&s, -exponent);
    }
    // Divides by a power of ten that is about right, then by the right one, so that 0.1 <= r / s < 1.
    i32 power = (i32)((n_bits(&r) - n_bits(&s)) * 1233 / 4096);
    if (power > 0) multiply_by_power_of_ten(&s, power);
    multiply_by_power_of_ten(&r, -power);
    multiply_by_power_of_ten(&m_low, -power);
    multiply_by_power_of_ten(&m_high, -power);
    while (sum_reaches(&r, &m_high, &s, is_even)) {
        multiply(&s, 10);
        power++;
    }
    decimal->n_digits = 0;
    i32 is_low, is_high, digit;
    do {
        multiply(&r, 10);
        multiply(&m_low, 10);
        multiply(&m_high, 10);
        // No decimal begins with a 0.
        if (decimal->n_digits == 0 && !sum_reaches(&r, &m_high, &s, is_even)) {
            power--;
            is_low = is_high = 0;
            continue;
        }
        for (digit = 0; compare(&r, &s) >= 0; digit++) subtract(&r, &s);
        is_low = compare(&r, &m_low) < is_even;
        is_high = sum_reaches(&r, &m_high, &s, is_even);
        if (is_high && (!is_low || sum_reaches(&r, &r, &s, 1))) digit++;
        decimal->digits[decimal->n_digits++] = (u8)digit;
    } while (!is_low && !is_high);
    decimal->exponent = power;
}

// The number nearest to a decimal that is not as small as the numbers with fewer than 53 bits.
static f64 read(const Decimal *decimal) {
    static Big numerator, denominator;
    u64 digits = 0;
    for (i32 i = 0; i < decimal->n_digits; i++) digits = 10 * digits + decimal->digits[i];
    i32 power = decimal->exponent - decimal->n_digits;
    set(&numerator, digits);
    set(&denominator, 1);
    multiply_by_power_of_ten(&numerator, power);
    multiply_by_power_of_ten(&denominator, -power);
    // Scales by a power of two, so that the quotient has 54 or 55 bits.
    i32 shift = 54 - (n_bits(&numerator) - n_bits(&denominator));
    shift_left(&numerator, shift > 0 ? shift : 0);
    shift_left(&denominator, (shift < 0 ? -shift : 0) + 54);
    u64 quotient = 0;
    for (i32 bit = 0; bit < 55; bit++) {
        quotient <<= 1;
        if (compare(&numerator, &denominator) >= 0) {
            subtract(&numerator, &denominator);
            quotient |= 1;
        }
        shift_left(&numerator, 1);
    }
    i32 has_rest = numerator.len > 0;
    if (quotient >> 54 != 0) {
        has_rest |= quotient & 1;
        quotient >>= 1;
        shift--;
    }
    u64 mantissa = quotient >> 1;
    if ((quotient & 1) != 0 && (has_rest || (mantissa & 1) != 0)) mantissa++;
    // The bit above the mantissa, which is always set, adds the missing 1 to the exponent.
    Float value = {.bits = ((u64)(1075 - shift) << 52) + mantissa};
    return value.number;
}

static u32 digits_sum(const Decimal *decimal) {
    u32 sum = (u32)decimal->exponent;
    for (i32 i = 0; i < decimal->n_digits; i++) sum = sum * 31 + decimal->digits[i];
    return sum;
}

static i32 reads_back(f64 number, const Decimal *decimal) {
    Float before = {.number = number}, after = {.number = read(decimal)};
    return before.bits == after.bits;
}

typedef struct {
    f64 number;
    const char *digits;
    i32 exponent;
} Known;

static const Known known[] = {
    {9007199254740992.0, "9007199254740992", 16},
    {0.1 + 0.2, "30000000000000004", 0},
    {1e23, "1", 24},
    {5e-324, "5", -323},
    {2.2250738585072014e-308, "22250738585072014", -307},
    {1.7976931348623157e308, "17976931348623157", 309},
};

static i32 check(const Known *k) {
    Decimal decimal;
    print_shortest(k->number, &decimal);
    i32 n_wrong = decimal.n_digits != text_len(k->digits) || decimal.exponent != k->exponent;
    print_text("0.");
    for (i32 i = 0; i < decimal.n_digits; i++) {
        n_wrong += k->digits[i] != '0' + decimal.digits[i];
        print_char('0' + decimal.digits[i]);
    }
    print_line("e", decimal.exponent);
    return n_wrong;
}

static void print_both(f64 number) {
    Decimal decimal;
    print_shortest(number, &decimal);
    print_f64(number);
    print_text(" 0.");
    for (i32 i = 0; i < decimal.n_digits; i++) print_char('0' + decimal.digits[i]);
    print_line("e", decimal.exponent);
}

i32 run(i32 n) {
    i32 n_wrong = 0;
    for (i32 i = 0; i < n && i < (i32)(sizeof known / sizeof known[0]); i++) n_wrong += check(&known[i]);
    print_both(1.0 / 3);
    print_both(123456.789);
    print_both(0.00001);
    u32 state = 2463534242u, sum = 0;
    i32 n_digits = 0;
    for (i32 i = 0; i < n; i++) {
        u64 mantissa = (u64)random_word(&state) << 20 ^ random_word(&state);
        u64 biased = 1 + random_word(&state) % 2046;
        Float value = {.bits = biased << 52 | (mantissa & 0xfffffffffffffULL)};
        Decimal decimal;
        print_shortest(value.number, &decimal);
        n_wrong += !reads_back(value.number, &decimal);
        n_digits += decimal.n_digits;
        sum = sum * 31 + digits_sum(&decimal);
    }
    print_line("digits", n_digits);
    print_line("sum", sum);
    print_line("wrong", n_wrong);
    return n_wrong != 0;
}
