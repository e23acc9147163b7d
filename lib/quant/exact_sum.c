/* SPDX-License-Identifier: MIT */
#include "quant/exact_sum.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "quant/observer_loops.h"

#define BITS (64 * QS_EXACT_LIMBS)

/* Adds `low` and `high` at a limb, and the sign of `high` above. */
static void add_at(qs_exact *sum, size_t at, uint64_t low, uint64_t high) {
    const uint64_t sign = high >> 63 ? UINT64_MAX : 0, least = sum->limb[at] + low;
    unsigned carry = least < low;
    sum->limb[at] = least;
    for (size_t i = at + 1; i < QS_EXACT_LIMBS; i++, high = sign) {
        const uint64_t partial = sum->limb[i] + high, total = partial + carry;
        carry = (partial < high) | (total < partial);
        sum->limb[i] = total;
        if (carry == (sign & 1))
            break; /* higher limbs do not change */
    }
}

/* Adds x to the limbs. */
static void add_to_limbs(qs_exact *sum, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if (x == 0)
        return;
    /* A multiple of 2^-149 other than 0 is a normal double. */
    const uint64_t whole = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    int64_t mantissa = x < 0 ? -(int64_t)whole : (int64_t)whole;
    int shift = (int)(bits >> 52 & 0x7ff) - 1075 - QS_EXACT_EXPONENT;
    if (shift < 0) { /* the bits that fall off are zeros */
        mantissa /= (int64_t)1 << -shift;
        shift = 0;
    }
    const uint64_t m = (uint64_t)mantissa, sign = mantissa < 0 ? UINT64_MAX : 0;
    const unsigned by = (unsigned)shift % 64;
    add_at(sum, (size_t)shift / 64, m << by, by ? m >> (64 - by) | sign << by : sign);
}

/* Adds `high` and `low` to the limbs. */
static void settle(qs_exact *sum) {
    add_to_limbs(sum, sum->high);
    add_to_limbs(sum, sum->low);
    sum->high = sum->low = 0;
}

/* Errors are added up in `low`; the limbs take over what it cannot hold. */
void qs_exact_add(qs_exact *sum, double x) {
    double high = sum->high, low = sum->low;
    const double lost = qs_add_exactly(&low, qs_add_exactly(&high, x));
    if (FLT_EVAL_METHOD != 0 || lost != 0) {
        settle(sum);
        add_to_limbs(sum, x);
        return;
    }
    sum->high = high;
    sum->low = low;
}

/* Adds x to *high + *low if those can hold it, else all to the sum, and returns false. */
static bool add_aside(qs_exact *sum, double *high, double *low, double x) {
    double h = *high, l = *low;
    const double lost = qs_add_exactly(&l, qs_add_exactly(&h, x));
    const bool aside = FLT_EVAL_METHOD == 0 && lost == 0;
    if (!aside) {
        qs_exact_add(sum, *high);
        qs_exact_add(sum, *low);
        qs_exact_add(sum, x);
        h = l = 0;
    }
    *high = h;
    *low = l;
    return aside;
}

bool qs_exact_add_each(qs_exact *sum, double *recent, const double *x, size_t count,
                       qs_exact_add_fn add) {
    double *low = recent + count;
    bool aside = true;
    for (size_t i = 0; i < count;) {
        i += add(recent + i, low + i, x + i, count - i);
        for (size_t k = 0; k < QS_EXACT_TOGETHER && i < count; k++, i++)
            aside &= add_aside(&sum[i], &recent[i], &low[i], x[i]);
    }
    return aside;
}

void qs_exact_merge(qs_exact *into, const qs_exact *from, size_t count) {
    for (size_t k = 0; k < count; k++) {
        uint64_t carry = 0;
        qs_exact_add(&into[k], from[k].high);
        qs_exact_add(&into[k], from[k].low);
        for (size_t i = 0; i < QS_EXACT_LIMBS; i++) {
            const uint64_t more = from[k].limb[i] + carry;
            if (more == 0) /* most limbs: nothing, or a sign that the carry takes back */
                continue;
            into[k].limb[i] += more;
            carry = into[k].limb[i] < more;
        }
    }
}

/* The sum in limbs alone. */
static qs_exact settled(const qs_exact *sum) {
    qs_exact s = *sum;
    settle(&s);
    return s;
}

static bool is_negative(const qs_exact *sum) {
    return sum->limb[QS_EXACT_LIMBS - 1] >> 63;
}

static qs_exact negated(const qs_exact *sum) {
    qs_exact r = {.high = 0};
    unsigned carry = 1;
    for (size_t i = 0; i < QS_EXACT_LIMBS; i++) {
        r.limb[i] = ~sum->limb[i] + carry;
        carry = carry && r.limb[i] == 0;
    }
    return r;
}

QS_COLD double qs_exact_mean(const qs_exact *sum, uint64_t count) {
    const qs_exact s = settled(sum), m = is_negative(&s) ? negated(&s) : s;
    double value = 0;
    for (size_t i = QS_EXACT_LIMBS; i-- > 0;)
        value += ldexp((double)m.limb[i], (int)(64 * i) + QS_EXACT_EXPONENT);
    value = count ? value / (double)count : 0;
    return is_negative(&s) ? -value : value;
}

/* ---- text ---- */

static unsigned bit_at(const qs_exact *m, unsigned i) {
    return i < BITS ? (unsigned)(m->limb[i / 64] >> (i % 64)) & 1 : 0;
}

/* The hexadecimal digit whose lowest bit is bit `i`. */
static unsigned digit_at(const qs_exact *m, unsigned i) {
    return bit_at(m, i) | bit_at(m, i + 1) << 1 | bit_at(m, i + 2) << 2 | bit_at(m, i + 3) << 3;
}

QS_COLD void qs_exact_write(const qs_exact *sum, char text[QS_EXACT_TEXT]) {
    const qs_exact s = settled(sum);
    const bool negative = is_negative(&s);
    const qs_exact m = negative ? negated(&s) : s;
    unsigned first = 0, last = BITS;
    while (first < BITS && !bit_at(&m, first))
        first++;
    while (last > first && !bit_at(&m, last - 1))
        last--;
    char *p = text;
    if (first == BITS) {
        memcpy(text, "0", 2);
        return;
    }
    if (negative)
        *p++ = '-';
    for (unsigned digits = (last - first + 3) / 4; digits-- > 0;)
        *p++ = "0123456789abcdef"[digit_at(&m, first + 4 * digits)];
    snprintf(p, QS_EXACT_TEXT - (size_t)(p - text), "p%d", (int)first + QS_EXACT_EXPONENT);
}

static bool read_digits(qs_exact *m, const char **p, const char *end) {
    const char *start = *p;
    for (; *p < end && **p != 'p'; (*p)++) {
        const char c = **p;
        const unsigned d = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                  : 16;
        if (d > 15 || m->limb[QS_EXACT_LIMBS - 1] >> 60)
            return false;
        for (size_t i = QS_EXACT_LIMBS; i-- > 0;)
            m->limb[i] = m->limb[i] << 4 | (i > 0 ? m->limb[i - 1] >> 60 : d);
    }
    return *p > start && *p < end;
}

static void shift_left(qs_exact *m, unsigned by) {
    const size_t whole = by / 64;
    const unsigned part = by % 64;
    for (size_t i = QS_EXACT_LIMBS; i-- > 0;) {
        const uint64_t high = i >= whole ? m->limb[i - whole] : 0;
        const uint64_t low = i > whole ? m->limb[i - whole - 1] : 0;
        m->limb[i] = part ? high << part | low >> (64 - part) : high;
    }
}

QS_COLD bool qs_exact_read(qs_exact *sum, const char *text, size_t size) {
    char again[QS_EXACT_TEXT];
    const char *p = text, *end = text + size;
    qs_exact m = {.high = 0};
    int exponent = 0;
    const bool negative = p < end && *p == '-';
    *sum = m;
    if (size == 1 && *text == '0')
        return true;
    p += negative;
    if (!read_digits(&m, &p, end))
        return false;
    p++;
    const bool down = p < end && *p == '-';
    for (p += down; p < end && *p >= '0' && *p <= '9' && exponent < BITS; p++)
        exponent = exponent * 10 + (*p - '0');
    exponent = (down ? -exponent : exponent) - QS_EXACT_EXPONENT;
    if (p != end || exponent < 0 || exponent >= BITS)
        return false;
    shift_left(&m, (unsigned)exponent);
    *sum = negative ? negated(&m) : m;
    /* A number that does not fit, or is written in another way, gives another text. */
    qs_exact_write(sum, again);
    return strlen(again) == size && memcmp(again, text, size) == 0;
}
