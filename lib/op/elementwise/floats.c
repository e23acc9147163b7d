/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "op/elementwise/floats.h"

/*
 * Blocks have a multiple of UNIT elements, so that compilers make no loop for a remainder, and up
 * to MOST where one number stands for all elements of an operand.
 */
#define MOST ((size_t)256)
#define UNIT ((size_t)16)

/* A block of m elements x[i * stride], of which n >= 1 exist: at x, or else copied to `room`. */
static const float *block_of(const float *x, size_t stride, size_t n, size_t m, float *room) {
    assert(m >= UNIT && (m & ~(UNIT - 1)) > 0);
    if (stride && n >= m)
        return x;
    uint32_t first; /* not a float, whose copy may have other bits */
    memcpy(&first, x, sizeof(first));
    for (size_t k = 0; k < (m & ~(UNIT - 1)); k++)
        memcpy(room + k, &first, sizeof(first));
    if (stride)
        memcpy(room, x, n * sizeof(*x));
    return room;
}

/* The size of the next block, of n elements that are left; UNIT if there are fewer. */
static size_t block_size(size_t n, bool dense) {
    return n < UNIT ? UNIT : !dense && n > MOST ? MOST : n & ~(UNIT - 1);
}

#define EACH(type, expression)                                                                     \
    QS_IVDEP                                                                                       \
    for (size_t k = 0; k < (m & ~(UNIT - 1)); k++) {                                               \
        const float p = a[k], q = b[k];                                                            \
        y[k] = (type)(expression);                                                                 \
    }                                                                                              \
    break;

static void compare(qs_comparison how, const float *a, const float *b, uint8_t *y, size_t m) {
    switch (how) {
    case QS_LESS: EACH(uint8_t, p < q)
    case QS_LESS_OR_EQUAL: EACH(uint8_t, p <= q)
    case QS_SAME: EACH(uint8_t, p == q)
    case QS_SAME_BITS:
        QS_IVDEP
        for (size_t k = 0; k < (m & ~(UNIT - 1)); k++) {
            uint32_t p, q;
            memcpy(&p, a + k, sizeof(p));
            memcpy(&q, b + k, sizeof(q));
            y[k] = p == q;
        }
    }
}

void qs_compare_floats(qs_comparison how, const float *a, size_t sa, const float *b, size_t sb,
                       uint8_t *y, size_t n) {
    float room_a[MOST], room_b[MOST];
    uint8_t last[UNIT];
    const float *pa = a, *pb = b;
    for (size_t i = 0, m; i < n; i += m) {
        const size_t left = n - i;
        m = block_size(left, sa && sb);
        if (i == 0 || sa)
            pa = block_of(a + i * sa, sa, left, m, room_a);
        if (i == 0 || sb)
            pb = block_of(b + i * sb, sb, left, m, room_b);
        compare(how, pa, pb, left < m ? last : y + i, m);
        if (left < m)
            memcpy(y + i, last, left);
    }
}

static void fold(qs_fold how, const float *a, const float *b, float *y, size_t m) {
    switch (how) {
    case QS_GREATEST: EACH(float, p != p ? p : p > q ? p : q)
    case QS_LEAST: EACH(float, p != p ? p : p < q ? p : q)
    case QS_SUM: EACH(float, p + q)
    case QS_SLOPE: EACH(float, p *(p < 0 ? q : 1.0f))
    }
}

void qs_fold_floats(qs_fold how, const float *a, const float *b, size_t sb, float *y, size_t n) {
    float room_a[UNIT], room_b[MOST];
    const float *pb = b;
    for (size_t i = 0, m; i < n; i += m) {
        const size_t left = n - i;
        m = block_size(left, sb != 0);
        const float *pa = block_of(a + i, 1, left, m, room_a);
        if (i == 0 || sb)
            pb = block_of(b + i * sb, sb, left, m, room_b);
        fold(how, pa, pb, left < m ? room_a : y + i, m);
        if (left < m)
            memcpy(y + i, room_a, left * sizeof(*y));
    }
}
