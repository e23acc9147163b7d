/* SPDX-License-Identifier: MIT */
#include "op/elementwise/dense.h"

#include "op/rules.h"

/* Elements of a block where an operand is copied. */
#define MOST ((size_t)256)
#define UNIT QS_DENSE_UNIT

/* ---- operands that are no such arrays ---- */

/* Copies m elements of a narrow type to int64; their low bits back again. */
QS_COLD static void widen(int32_t dtype, const void *x, size_t m, int64_t *y) {
    for (size_t k = 0; k < m; k++)
        switch (dtype) {
        case QSIM_INT8: y[k] = ((const int8_t *)x)[k]; break;
        case QSIM_UINT8: y[k] = ((const uint8_t *)x)[k]; break;
        case QSIM_INT16: y[k] = ((const int16_t *)x)[k]; break;
        case QSIM_UINT16: y[k] = ((const uint16_t *)x)[k]; break;
        case QSIM_INT32: y[k] = ((const int32_t *)x)[k]; break;
        default: y[k] = ((const uint32_t *)x)[k];
        }
}

QS_COLD static void narrow(const int64_t *x, size_t m, size_t bytes, void *y) {
    for (size_t k = 0; k < m; k++)
        if (bytes == 1)
            ((uint8_t *)y)[k] = (uint8_t)x[k];
        else if (bytes == 2)
            ((uint16_t *)y)[k] = (uint16_t)x[k];
        else
            ((uint32_t *)y)[k] = (uint32_t)x[k];
}

void qs_spread(const void *x, size_t size, void *to, size_t bytes) {
    uint64_t first = 0;
    uint8_t *y = to;
    memcpy(&first, x, size);
    for (size_t bits = 8 * size; bits < 64; bits *= 2)
        first |= first << bits;
    QS_IVDEP
    for (size_t k = 0; k < (bytes + 15) / 16; k++) {
        memcpy(y + 16 * k, &first, sizeof(first));
        memcpy(y + 16 * k + 8, &first, sizeof(first));
    }
}

/* m elements x[k * stride] with room for whole units: at x, or else copied to `room`. */
static const void *operand(const qs_dense *d, const char *x, size_t stride, size_t m, void *room) {
    const size_t all = (m + UNIT - 1) & ~(UNIT - 1);
    int64_t first;
    if (stride && m == all && !d->narrow)
        return x;
    if (d->narrow)
        widen(d->narrow, x, 1, &first);
    qs_spread(d->narrow ? (const void *)&first : x, d->x, room, all * d->x);
    if (stride && d->narrow)
        widen(d->narrow, x, m, room);
    else if (stride)
        memcpy(room, x, m * d->x);
    return room;
}

void qs_dense_run(const qs_dense *d, const void *va, size_t sa, const void *vb, size_t sb, void *vy,
                  size_t n) {
    _Alignas(32) uint64_t room_a[MOST], room_b[MOST], room_y[MOST];
    const char *a = va, *b = vb;
    char *y = vy;
    const void *pa = a, *pb = b;
    const bool copies = !sa || !sb || d->narrow, narrows = d->to != d->y;
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i;
        m = m < UNIT ? m : copies && m > MOST ? MOST : m & ~(UNIT - 1);
        if (i == 0 || sa)
            pa = operand(d, a + i * sa * d->from, sa, m, room_a);
        if (i == 0 || sb)
            pb = operand(d, b + i * sb * d->from, sb, m, room_b);
        const bool direct = m >= UNIT && !narrows;
        d->fn(pa, pb, direct ? (void *)(y + i * d->to) : room_y, m);
        if (narrows)
            narrow((const void *)room_y, m, d->to, y + i * d->to);
        else if (!direct)
            memcpy(y + i * d->to, room_y, m * d->to);
    }
}

QS_COLD qs_dense qs_dense_of(const qs_dense_fns *f, int32_t dtype) {
    const size_t bytes = qs_dtype_bytes(dtype);
    qs_dense d = {NULL, bytes, bytes, 0, bytes, f->truths ? 1 : bytes};
    d.fn = dtype == QSIM_FLOAT    ? f->f32
           : dtype == QSIM_DOUBLE ? f->f64
           : dtype == QSIM_INT32  ? f->s32
           : dtype == QSIM_UINT64 ? f->u64
           : dtype == QSIM_BOOL   ? f->b8
           : dtype == QSIM_INT64  ? f->s64
                                  : NULL;
    if (!d.fn) {
        d.fn = f->s64;
        d.x = d.y = sizeof(int64_t);
        d.narrow = dtype;
    }
    d.y = f->truths ? 1 : d.y;
    return d;
}

/* ---- loops ---- */

QS_DENSE(less_f32, float, uint8_t, a < b)
QS_DENSE_RARE(less_f64, double, uint8_t, a < b)
QS_DENSE(less_s32, int32_t, uint8_t, a < b)
QS_DENSE_RARE(less_s64, int64_t, uint8_t, a < b)
QS_DENSE_RARE(less_u64, uint64_t, uint8_t, a < b)
const qs_dense_fns qs_dense_less = {less_f32, less_f64, less_s32, less_s64, less_u64, NULL, true};

QS_DENSE(most_f32, float, uint8_t, a <= b)
QS_DENSE_RARE(most_f64, double, uint8_t, a <= b)
QS_DENSE(most_s32, int32_t, uint8_t, a <= b)
QS_DENSE_RARE(most_s64, int64_t, uint8_t, a <= b)
QS_DENSE_RARE(most_u64, uint64_t, uint8_t, a <= b)
const qs_dense_fns qs_dense_less_or_equal = {most_f32, most_f64, most_s32, most_s64,
                                             most_u64, NULL,     true};

QS_DENSE(same_f32, float, uint8_t, a == b)
QS_DENSE_RARE(same_f64, double, uint8_t, a == b)
QS_DENSE(same_s32, int32_t, uint8_t, a == b)
QS_DENSE_RARE(same_s64, uint64_t, uint8_t, a == b) /* in vectors of SSE2 eight times the code */
QS_DENSE_RARE(same_b8, uint8_t, uint8_t, !a == !b)
const qs_dense_fns qs_dense_same = {same_f32, same_f64, same_s32, same_s64,
                                    same_s64, same_b8,  true};

/* NaN on either side gives NaN. */
#define GREATER a != a ? a : a > b ? a : b
#define LESS    a != a ? a : a < b ? a : b
QS_DENSE(greatest_f32, float, float, GREATER)
QS_DENSE_RARE(greatest_f64, double, double, GREATER)
QS_DENSE(greatest_s32, int32_t, int32_t, GREATER)
QS_DENSE_RARE(greatest_s64, int64_t, int64_t, GREATER)
QS_DENSE_RARE(greatest_u64, uint64_t, uint64_t, GREATER)
const qs_dense_fns qs_dense_greatest = {greatest_f32, greatest_f64, greatest_s32, greatest_s64,
                                        greatest_u64, NULL,         false};
QS_DENSE(least_f32, float, float, LESS)
QS_DENSE_RARE(least_f64, double, double, LESS)
QS_DENSE(least_s32, int32_t, int32_t, LESS)
QS_DENSE_RARE(least_s64, int64_t, int64_t, LESS)
QS_DENSE_RARE(least_u64, uint64_t, uint64_t, LESS)
const qs_dense_fns qs_dense_least = {least_f32, least_f64, least_s32, least_s64,
                                     least_u64, NULL,      false};

QS_DENSE(slope_f32, float, float, a *(a < 0 ? b : 1.0f)) /* as LeakyRelu */
QS_DENSE_RARE(slope_f64, double, double, a < 0 ? a * b : a)
QS_DENSE_RARE(slope_s64, int64_t, uint64_t, a < 0 ? (uint64_t)a * (uint64_t)b : (uint64_t)a)
QS_DENSE_RARE(slope_u64, uint64_t, uint64_t, a + 0 * b)
const qs_dense_fns qs_dense_slope = {slope_f32, slope_f64, NULL, slope_s64, slope_u64, NULL, false};

/* Unsigned functions give the bits of signed ones. */
QS_DENSE(plus_f32, float, float, a + b)
QS_DENSE_RARE(plus_f64, double, double, a + b)
QS_DENSE(plus_32, uint32_t, uint32_t, a + b)
QS_DENSE(plus_64, uint64_t, uint64_t, a + b)
const qs_dense_fns qs_dense_plus = {plus_f32, plus_f64, plus_32, plus_64, plus_64, NULL, false};
QS_DENSE_RARE(minus_f64, double, double, a - b)
QS_DENSE(minus_32, uint32_t, uint32_t, a - b)
QS_DENSE(minus_64, uint64_t, uint64_t, a - b)
const qs_dense_fns qs_dense_minus = {NULL, minus_f64, minus_32, minus_64, minus_64, NULL, false};
QS_DENSE_RARE(times_f64, double, double, a *b)
QS_DENSE(times_32, uint32_t, uint32_t, a *b)
QS_DENSE(times_64, uint64_t, uint64_t, a *b)
const qs_dense_fns qs_dense_times = {NULL, times_f64, times_32, times_64, times_64, NULL, false};

QS_DENSE(both_b8, uint8_t, uint8_t, (a != 0) & (b != 0))
const qs_dense_fns qs_dense_both = {.b8 = both_b8, .truths = true};
QS_DENSE(either_b8, uint8_t, uint8_t, (a | b) != 0)
const qs_dense_fns qs_dense_either = {.b8 = either_b8, .truths = true};
QS_DENSE(one_b8, uint8_t, uint8_t, (a != 0) != (b != 0))
const qs_dense_fns qs_dense_one_of = {.b8 = one_b8, .truths = true};
