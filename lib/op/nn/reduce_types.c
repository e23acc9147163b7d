/* SPDX-License-Identifier: MIT */
/* One output of a reduction, for every type and kind. */
#include "op/nn/reduce_axes.h"

#include "kernel/elementary.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

#include <math.h>

/* The reduced elements as `count` rows of `inner` elements that are `step` apart. */
typedef struct rows {
    size_t count, inner, step;
} rows;

static rows rows_of(const qs_reduce *p) {
    if (p->reduced == 0)
        return (rows){p->count ? 1 : 0, p->count, 1};
    const size_t inner = p->dims[p->reduced - 1];
    return (rows){p->count / inner, inner, p->strides[p->reduced - 1]};
}

static size_t row_at(const qs_reduce *p, size_t row) {
    return p->reduced ? qs_reduce_offset(row, p->reduced - 1, p->dims, p->strides) : 0;
}

/* ---- float ---- */

/* qs_tree_sum in pieces. */
static float tree_sum(const qsim_ctx *ctx, const float *x, size_t n, size_t step) {
    float lanes[16] = {0};
    for (size_t at = 0, count; (count = qs_piece(ctx, at, n)); at += count)
        qs_tree_add(x + at * step, count, step, lanes);
    return qs_reduce_fold(lanes);
}

static float sum_f32(const qs_reduce *p, const qsim_ctx *ctx, const float *x) {
    const rows r = rows_of(p);
    float lanes[16] = {0};
    size_t lane = 0;
    if (p->reduced <= 1)
        return tree_sum(ctx, x, p->count, r.step);
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, lane); i++, lane++)
            lanes[lane % 16] += row[i * r.step];
    }
    return qs_reduce_fold(lanes);
}

/* Sum of |x| or of x². */
__attribute__((always_inline)) static inline float sum_terms(const qs_reduce *p,
                                                             const qsim_ctx *ctx, const float *x,
                                                             bool squares) {
    const rows r = rows_of(p);
    float lanes[16] = {0};
    size_t lane = 0;
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + row_at(p, o);
        size_t i = 0;
        if (r.step == 1 && lane % 16 == 0)
            for (; i + 16 <= r.inner && !(lane % QS_PIECE == 0 && qs_stopped(ctx));
                 i += 16, lane += 16)
                for (size_t k = 0; k < 16; k++)
                    lanes[k] += squares ? row[i + k] * row[i + k] : qk_abs(row[i + k]);
        for (; i < r.inner && !qs_stopped_at(ctx, lane); i++, lane++) {
            const float v = row[i * r.step];
            lanes[lane % 16] += squares ? v * v : qk_abs(v);
        }
    }
    return qs_reduce_fold(lanes);
}

/* The least value as minus the greatest of the negated ones: a maximum alone needs no branch. */
static float extreme_f32(const qs_reduce *p, const qsim_ctx *ctx, const float *x, bool max) {
    const rows r = rows_of(p);
    const float sign = max ? 1.0f : -1.0f;
    float best = -INFINITY;
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++) {
            const float v = sign * row[i * r.step];
            if (v != v)
                return v;
            best = v > best ? v : best;
        }
    }
    return sign * best;
}

/* A sum of exponentials: its lanes, and terms that are not added yet. */
typedef struct exponentials {
    float lanes[16], part[64];
    size_t n;
} exponentials;

static void add_exponentials(exponentials *e, const qk_ew *k, float top) {
    k->exp_shifted(e->part, top, e->part, e->n);
    for (size_t i = 0; i < e->n; i++)
        e->lanes[i % 16] += e->part[i];
    e->n = 0;
}

/* The greatest plus the logarithm of the sum of exp(x - greatest), which cannot overflow. */
static float log_sum_exp_f32(const qs_reduce *p, const qsim_ctx *ctx, const float *x) {
    const rows r = rows_of(p);
    const qk_ew *k = ctx->kernels->ew;
    const float top = extreme_f32(p, ctx, x, true);
    exponentials e = {.n = 0};
    if (!(qk_abs(top) < INFINITY))
        return top;
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++) {
            e.part[e.n++] = row[i * r.step];
            if (e.n == QS_COUNT(e.part))
                add_exponentials(&e, k, top);
        }
    }
    if (e.n)
        add_exponentials(&e, k, top);
    return (float)((double)top + qk_log64((double)qs_reduce_fold(e.lanes)));
}

static float product_f32(const qs_reduce *p, const qsim_ctx *ctx, const float *x) {
    const rows r = rows_of(p);
    float product = 1;
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + row_at(p, o);
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++)
            product *= row[i * r.step];
    }
    return product;
}

void qs_reduce_f32(const qs_reduce *p, const qsim_ctx *ctx, const void *vx, void *vy) {
    const float *x = vx;
    float *y = vy;
    switch (p->kind) {
    case QS_REDUCE_SUM: *y = sum_f32(p, ctx, x); break;
    case QS_REDUCE_MEAN: *y = sum_f32(p, ctx, x) / (float)p->count; break;
    case QS_REDUCE_L1: *y = sum_terms(p, ctx, x, false); break;
    case QS_REDUCE_SUM_SQUARE: *y = sum_terms(p, ctx, x, true); break;
    case QS_REDUCE_L2: *y = sqrtf(sum_terms(p, ctx, x, true)); break;
    case QS_REDUCE_LOG_SUM: *y = (float)qk_log64((double)sum_f32(p, ctx, x)); break;
    case QS_REDUCE_LOG_SUM_EXP: *y = log_sum_exp_f32(p, ctx, x); break;
    case QS_REDUCE_PROD: *y = product_f32(p, ctx, x); break;
    default: *y = extreme_f32(p, ctx, x, p->kind == QS_REDUCE_MAX);
    }
}

/* ---- double ---- */

QS_COLD static double fold_f64(const qs_reduce *p, const qsim_ctx *ctx, const double *x,
                               qs_reduce_kind kind, double top) {
    const rows r = rows_of(p);
    double y = kind == QS_REDUCE_PROD  ? 1
               : kind == QS_REDUCE_MAX ? -(double)INFINITY
               : kind == QS_REDUCE_MIN ? (double)INFINITY
                                       : 0;
    for (size_t o = 0; o < r.count; o++) {
        const double *row = x + row_at(p, o);
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

QS_COLD void qs_reduce_f64(const qs_reduce *p, const qsim_ctx *ctx, const void *vx, void *vy) {
    const bool stable = p->kind == QS_REDUCE_LOG_SUM_EXP;
    const double top = stable ? fold_f64(p, ctx, vx, QS_REDUCE_MAX, 0) : 0;
    double y = top;
    if (!stable || fabs(top) < (double)INFINITY)
        y = fold_f64(p, ctx, vx, p->kind, top);
    switch (p->kind) {
    case QS_REDUCE_MEAN: y /= (double)p->count; break;
    case QS_REDUCE_L2: y = sqrt(y); break;
    case QS_REDUCE_LOG_SUM: y = qk_log64(y); break;
    case QS_REDUCE_LOG_SUM_EXP: y = fabs(top) < (double)INFINITY ? top + qk_log64(y) : top; break;
    default: break;
    }
    *(double *)vy = y;
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
    const rows r = rows_of(p);
    const uint64_t flip =
        is_signed(p->dtype) ? (uint64_t)1 << 63 : 0; /* makes the order that of unsigned numbers */
    const bool extreme = p->kind >= QS_REDUCE_MAX;
    uint64_t y = extreme ? empty_extreme(p, flip) : p->kind == QS_REDUCE_PROD ? 1 : 0;
    for (size_t o = 0; o < r.count; o++) {
        const size_t at = row_at(p, o);
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
    const rows r = rows_of(p);
    qs_reduce max = *p;
    double sum = 0;
    max.kind = QS_REDUCE_MAX;
    const double top = as_double(fold_int(&max, ctx, x), p->dtype);
    for (size_t o = 0; o < r.count; o++)
        for (size_t i = 0; i < r.inner && !qs_stopped_at(ctx, o + i); i++)
            sum +=
                qk_exp64(as_double(load(x, p->dtype, row_at(p, o) + i * r.step), p->dtype) - top);
    return p->count ? top + qk_log64(sum) : -(double)INFINITY;
}

QS_COLD void qs_reduce_int(const qs_reduce *p, const qsim_ctx *ctx, const void *x, void *y) {
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
}
