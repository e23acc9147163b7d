/* SPDX-License-Identifier: MIT */
/* One output of a reduction of doubles, integers or bool. */
#include "op/nn/reduce_axes.h"

#include "kernel/elementary.h"

#include <math.h>

/* ---- double ---- */

QS_COLD static double fold_f64(const qs_reduce *p, const qsim_ctx *ctx, const double *x,
                               qs_reduce_kind kind, double top) {
    const qs_reduce_rows r = p->rows;
    double y = kind == QS_REDUCE_PROD  ? 1
               : kind == QS_REDUCE_MAX ? -(double)INFINITY
               : kind == QS_REDUCE_MIN ? (double)INFINITY
                                       : 0;
    for (size_t o = 0; o < r.count; o++) {
        const double *row = x + qs_reduce_row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++) {
            const double v = row[i * r.step];
            switch (kind) {
            case QS_REDUCE_PROD: y *= v; break;
            case QS_REDUCE_MAX: y = y != y || y > v ? y : v; break;
            case QS_REDUCE_MIN: y = y != y || y < v ? y : v; break;
            case QS_REDUCE_L1: y += fabs(v); break;
            case QS_REDUCE_L2:
            case QS_REDUCE_SUM_SQUARE: y += v * v; break;
            case QS_REDUCE_LOG_SUM_EXP: y += qk_exp64(v - top); break;
            default: y += v;
            }
        }
    }
    return y;
}

QS_COLD size_t qs_reduce_f64(const qs_reduce *p, const qsim_ctx *ctx, const void *vx, void *vy,
                             size_t n) {
    (void)n;
    const bool stable = p->kind == QS_REDUCE_LOG_SUM_EXP;
    const double top = stable ? fold_f64(p, ctx, vx, QS_REDUCE_MAX, 0) : 0;
    double y = top;
    if (!stable || fabs(top) < (double)INFINITY)
        y = fold_f64(p, ctx, vx, p->kind, top);
    switch (p->kind) {
    case QS_REDUCE_MEAN: y /= qs_real(p->count); break;
    case QS_REDUCE_L2: y = sqrt(y); break;
    case QS_REDUCE_LOG_SUM: y = qk_log64(y); break;
    case QS_REDUCE_LOG_SUM_EXP: y = fabs(top) < (double)INFINITY ? top + qk_log64(y) : top; break;
    default: break;
    }
    *(double *)vy = y;
    return 1;
}

/* ---- integers ---- */

/* Loads an element, sign-extended if its type is signed. */
static uint64_t load(const void *x, int32_t dtype, size_t i) {
    switch (dtype) {
    case QSIM_INT32: return (uint64_t)(int64_t)((const int32_t *)x)[i];
    case QSIM_UINT32: return ((const uint32_t *)x)[i];
    case QSIM_INT8: return (uint64_t)(int64_t)((const int8_t *)x)[i];
    case QSIM_UINT8: return ((const uint8_t *)x)[i];
    case QSIM_BOOL: return ((const uint8_t *)x)[i] != 0;
    default: return ((const uint64_t *)x)[i];
    }
}

static bool is_signed(int32_t dtype) {
    return (QS_T_SIGNED & QS_T(dtype)) != 0;
}

static double as_double(uint64_t v, int32_t dtype) {
    return is_signed(dtype) ? (double)(int64_t)v : (double)v;
}

/* Rounds `v` towards 0 and clamps it to the type's range; NaN gives 0. */
static uint64_t truncated(double v, int32_t dtype) {
    const double least = is_signed(dtype) ? -9223372036854775808.0 : 0;
    const double most = is_signed(dtype) ? 9223372036854775808.0 : 18446744073709551616.0;
    const uint64_t bits = dtype == QSIM_INT32 || dtype == QSIM_UINT32 ? 32 : 64;
    const double scale = bits == 32 ? 4294967296.0 : 1.0;
    if (v != v)
        return 0;
    if (v <= least / scale)
        return is_signed(dtype) ? (uint64_t)1 << (bits - 1) : 0;
    if (v >= most / scale)
        return UINT64_MAX >> (64 - bits + (is_signed(dtype) ? 1 : 0));
    return v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v;
}

/* The extreme of an empty set: the type's bound at the other end. */
static uint64_t empty_extreme(const qs_reduce *p, uint64_t flip) {
    const uint64_t most =
        p->dtype == QSIM_BOOL ? 1 : UINT64_MAX >> (64 - 8 * p->bytes + (flip ? 1 : 0));
    return (p->kind == QS_REDUCE_MIN ? most : flip ? ~most : 0) ^ flip;
}

QS_COLD static uint64_t fold_int(const qs_reduce *p, const qsim_ctx *ctx, const void *x) {
    const qs_reduce_rows r = p->rows;
    const uint64_t flip =
        is_signed(p->dtype) ? (uint64_t)1 << 63 : 0; /* makes the order that of unsigned numbers */
    const bool extreme = p->kind >= QS_REDUCE_MAX;
    uint64_t y = extreme ? empty_extreme(p, flip) : p->kind == QS_REDUCE_PROD ? 1 : 0;
    for (size_t o = 0; o < r.count; o++) {
        const size_t at = qs_reduce_row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++) {
            const uint64_t v = load(x, p->dtype, at + i * r.step), key = v ^ flip;
            switch (p->kind) {
            case QS_REDUCE_PROD: y *= v; break;
            case QS_REDUCE_MAX: y = key > y ? key : y; break;
            case QS_REDUCE_MIN: y = key < y ? key : y; break;
            case QS_REDUCE_L1: y += flip && v >> 63 ? 0 - v : v; break;
            case QS_REDUCE_L2:
            case QS_REDUCE_SUM_SQUARE: y += v * v; break;
            default: y += v;
            }
        }
    }
    return extreme ? y ^ flip : y;
}

/* Log of the sum of exp(x), in order. */
QS_COLD static double log_sum_exp_int(const qs_reduce *p, const qsim_ctx *ctx, const void *x) {
    const qs_reduce_rows r = p->rows;
    qs_reduce max = *p;
    double sum = 0;
    max.kind = QS_REDUCE_MAX;
    const double top = as_double(fold_int(&max, ctx, x), p->dtype);
    for (size_t o = 0; o < r.count; o++)
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++)
            sum += qk_exp64(
                as_double(load(x, p->dtype, qs_reduce_row_at(p, o) + i * r.step), p->dtype) - top);
    return p->count ? top + qk_log64(sum) : -(double)INFINITY;
}

QS_COLD size_t qs_reduce_int(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y,
                             size_t n) {
    (void)n;
    uint64_t v = p->kind == QS_REDUCE_LOG_SUM_EXP ? 0 : fold_int(p, ctx, x);
    switch (p->kind) {
    case QS_REDUCE_MEAN:
        if (p->count == 0)
            v = 0;
        else if (is_signed(p->dtype))
            v = (uint64_t)((int64_t)v / (int64_t)p->count);
        else
            v /= p->count;
        break;
    case QS_REDUCE_L2: v = truncated(sqrt(as_double(v, p->dtype)), p->dtype); break;
    case QS_REDUCE_LOG_SUM: v = truncated(qk_log64(as_double(v, p->dtype)), p->dtype); break;
    case QS_REDUCE_LOG_SUM_EXP: v = truncated(log_sum_exp_int(p, ctx, x), p->dtype); break;
    default: break;
    }
    switch (p->bytes) {
    case 1: *(uint8_t *)y = (uint8_t)v; break;
    case 4: *(uint32_t *)y = (uint32_t)v; break;
    default: *(uint64_t *)y = v;
    }
    return 1;
}
