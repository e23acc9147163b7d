/* SPDX-License-Identifier: MIT */
/* Sums in a defined order, and reductions of floats. */
#include "op/nn/reduce.h"

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/nn/reduce_axes.h"

/* ---- sums ---- */

typedef float four __attribute__((vector_size(16)));

QK_INLINE four load(const float *x) {
    four v;
    memcpy(&v, x, sizeof(v));
    return v;
}

float qs_reduce_fold(const float lanes[16]) {
    const four low = load(lanes) + load(lanes + 8), high = load(lanes + 4) + load(lanes + 12);
    const four v = low + high;
    return (v[0] + v[2]) + (v[1] + v[3]);
}

/* Lanes are four variables: compilers keep no array and no longer vector in registers. */
void qs_tree_add(const float *x, size_t n, float lanes[16]) {
    four a = load(lanes), b = load(lanes + 4), c = load(lanes + 8), d = load(lanes + 12);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        a += load(x + i);
        b += load(x + i + 4);
        c += load(x + i + 8);
        d += load(x + i + 12);
    }
    memcpy(lanes, &a, sizeof(a));
    memcpy(lanes + 4, &b, sizeof(b));
    memcpy(lanes + 8, &c, sizeof(c));
    memcpy(lanes + 12, &d, sizeof(d));
    for (; i < n; i++)
        lanes[i % 16] += x[i];
}

static float in_blocks(const qsim_ctx *ctx, float (*sum)(const float *, float, size_t),
                       const float *x, float shift, size_t n) {
    float total = sum(x, shift, n < QS_SUM_BLOCK ? n : QS_SUM_BLOCK);
    for (size_t at = QS_SUM_BLOCK; at < n && !qs_stopped(ctx); at += QS_SUM_BLOCK)
        total += sum(x + at, shift, n - at < QS_SUM_BLOCK ? n - at : QS_SUM_BLOCK);
    return total;
}

float qs_row_sum(const qsim_ctx *ctx, const float *x, size_t n) {
    return in_blocks(ctx, ctx->kernels->ew->sum, x, 0, n);
}

float qs_row_squares(const qsim_ctx *ctx, const float *x, float mean, size_t n) {
    return in_blocks(ctx, ctx->kernels->ew->sum_squares, x, mean, n);
}

/* y = (x - mean) * inverse * scale + bias */
static void normalize_piece(const float *x, float mean, float inverse, const float *scale,
                            const float *bias, float *y, size_t n) {
    QS_IVDEP
    for (size_t i = 0; i < n; i++) {
        const float v = (x[i] - mean) * inverse * scale[i];
        y[i] = bias ? v + bias[i] : v;
    }
}

static void normalize_long(const qsim_ctx *ctx, const qk_norm *how, const float *x, float *y,
                           size_t n, size_t rows) {
    for (size_t r = 0; r < rows; r++, x += n, y += n) {
        const float mean = how->centred ? qs_row_sum(ctx, x, n) / (float)qs_real(n) : 0.0f;
        const float squares = qs_row_squares(ctx, x, mean, n);
        const float inverse = 1.0f / sqrtf(squares / (float)qs_real(n) + how->epsilon);
        for (size_t at = 0, count; (count = qs_piece(ctx, at, n)); at += count)
            normalize_piece(x + at, mean, inverse, how->scale + at,
                            how->bias ? how->bias + at : NULL, y + at, count);
        if (how->mean)
            how->mean[r] = mean;
        if (how->inverse)
            how->inverse[r] = inverse;
    }
}

void qs_normalize(const qsim_ctx *ctx, const qk_norm *how, const float *x, float *y, size_t n,
                  size_t rows) {
    if (n <= QS_SUM_BLOCK)
        ctx->kernels->ew->normalize(how, x, y, n, rows);
    else
        normalize_long(ctx, how, x, y, n, rows);
}

/* ---- outputs side by side ---- */

/* Outputs that are computed together: a row of them is in a few lines of the cache. */
#define COLUMNS ((size_t)256)

/* Adds n elements of a row to y: to sums, products or extremes. */
static void take_row(qs_reduce_kind kind, const float *restrict x, float *restrict y, size_t n) {
#define EACH(value)                                                                                \
    for (size_t c = 0; c < n; c++)                                                                 \
        y[c] = value;                                                                              \
    break;
    switch (kind) {
    case QS_REDUCE_L1: EACH(y[c] + qk_abs(x[c]))
    case QS_REDUCE_L2:
    case QS_REDUCE_SUM_SQUARE: EACH(y[c] + x[c] * x[c])
    case QS_REDUCE_PROD: EACH(y[c] * x[c])
    /* A NaN is not less or equal: it is taken, and then kept. */
    case QS_REDUCE_MAX: EACH(((x[c] <= y[c]) | (y[c] != y[c])) ? y[c] : x[c])
    case QS_REDUCE_MIN: EACH(((x[c] >= y[c]) | (y[c] != y[c])) ? y[c] : x[c])
    default: EACH(y[c] + x[c])
    }
#undef EACH
}

static float start_of(qs_reduce_kind kind) {
    return kind == QS_REDUCE_PROD  ? 1.0f
           : kind == QS_REDUCE_MAX ? -INFINITY
           : kind == QS_REDUCE_MIN ? INFINITY
                                   : 0.0f;
}

/* The result of a sum, product or extreme. */
static float finished(const qs_reduce *p, float v) {
    return p->kind == QS_REDUCE_MEAN      ? v / (float)qs_real(p->count)
           : p->kind == QS_REDUCE_L2      ? sqrtf(v)
           : p->kind == QS_REDUCE_LOG_SUM ? (float)qk_log64((double)v)
                                          : v;
}

/* Adds n elements of rows to y, as take_row. */
static void take_rows(qs_reduce_kind kind, const qk_ew *k, const float *x, float *y, size_t n) {
    if (kind == QS_REDUCE_SUM || kind == QS_REDUCE_MEAN || kind == QS_REDUCE_LOG_SUM)
        k->bound(y, x, -INFINITY, INFINITY, y, n);
    else if (kind == QS_REDUCE_SUM_SQUARE || kind == QS_REDUCE_L2)
        k->muladd(x, x, y, -INFINITY, INFINITY, y, n);
    else
        take_row(kind, x, y, n);
}

static void start_lanes(float *lanes, float start, size_t n) {
    for (size_t i = 0; i < n; i++)
        lanes[i] = start;
}

/* Folds the lanes of a block, and adds them to those of earlier blocks. */
static void fold_lanes(qs_reduce_kind kind, const qk_ew *k, float *lanes, size_t used, bool first,
                       float *y, size_t n) {
    kind = kind < QS_REDUCE_PROD ? QS_REDUCE_SUM : kind;
    for (size_t half = used / 2; half; half /= 2)
        take_rows(kind, k, lanes + half * n, lanes, half * n);
    if (first)
        memcpy(y, lanes, n * sizeof(*y));
    else
        take_rows(kind, k, lanes, y, n);
}

/* The first zero of an output's elements, -0 or +0. */
QS_COLD static float first_zero(const qs_reduce *p, qs_reduce_rows r, const float *x) {
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + qs_reduce_row_at(p, o);
        for (size_t i = 0; i < r.inner; i++)
            if (row[i * r.step] == 0)
                return row[i * r.step];
    }
    return 0;
}

/* Outputs up to which extremes have lanes, too, if their elements lie end to end. */
#define FEW ((size_t)32)

static void reduce_columns(const qs_reduce *p, qs_reduce_rows r, const qsim_ctx *ctx,
                           const float *x, float *y, size_t n) {
    _Alignas(64) float lanes[16 * COLUMNS]; /* loaded soon after they are stored */
    const float start = start_of(p->kind);
    const qk_ew *k = ctx->kernels->ew;
    const bool sums = p->kind < QS_REDUCE_PROD, dense = r.step == n;
    const bool lanes_of_extremes = p->kind > QS_REDUCE_PROD && dense && n <= FEW;
    size_t used = 1, terms = 0, blocks = 0;
    while ((sums || lanes_of_extremes) && used < 16 && used < p->count)
        used *= 2; /* sums are trees: of the 16 lanes those that are not 0 */
    start_lanes(lanes, start, used * n);
    for (size_t o = 0; o < r.count; o++) {
        const float *row = x + qs_reduce_row_at(p, o);
        for (size_t i = 0, lane, count; i < r.inner; i += count, terms += count) {
            if (terms == QS_SUM_BLOCK) {
                if (qs_stopped(ctx))
                    return;
                if (sums) {
                    fold_lanes(p->kind, k, lanes, used, !blocks++, y, n);
                    start_lanes(lanes, start, used * n);
                }
                terms = 0;
            }
            lane = terms & (used - 1);
            count = !dense ? 1 : used - lane < r.inner - i ? used - lane : r.inner - i;
            take_rows(p->kind, k, row + i * r.step, lanes + lane * n, count * n);
        }
    }
    fold_lanes(p->kind, k, lanes, used, !blocks, y, n);
    for (size_t c = 0; c < n; c++)
        y[c] = y[c] == 0 && lanes_of_extremes ? first_zero(p, r, x + c) : finished(p, y[c]);
}

/* ---- an output by itself ---- */

#define PART ((size_t)1024) /* elements of an output that are handled together */

/* What has been read of an output's elements. */
typedef struct reader {
    const qs_reduce *p;
    const qsim_ctx *ctx;
    const float *x;
    qs_reduce_rows r;
    size_t row, at, n, parts;
    float part[PART];
} reader;

static void start_reading(reader *e, const qs_reduce *p, const qsim_ctx *ctx, const float *x) {
    e->p = p;
    e->ctx = ctx;
    e->x = x;
    e->r = p->rows;
    e->row = e->at = e->parts = 0;
}

/* Copies elements to e->part until it is full; 0: there are no more. */
QS_COLD QS_NOINLINE static size_t collect(reader *e) {
    size_t n = 0;
    while (e->row < e->r.count && n < PART) {
        const float *x = e->x + qs_reduce_row_at(e->p, e->row) + e->at * e->r.step;
        const size_t left = e->r.inner - e->at, count = left < PART - n ? left : PART - n;
        if (e->r.step == 1)
            memcpy(e->part + n, x, count * sizeof(*x));
        else
            for (size_t i = 0; i < count; i++)
                e->part[n + i] = x[i * e->r.step];
        n += count;
        e->at = count < left ? e->at + count : 0;
        e->row += count == left;
    }
    return n;
}

/*
 * The next elements, in order, where they lie or copied to e->part: e->n = PART of them, or the
 * last ones. NULL: there are no more, or the run is stopped.
 */
static const float *next_part(reader *e) {
    const float *x = e->x + e->at;
    if (qs_stopped_at(e->ctx, e->parts++ * PART + PART - 1))
        return NULL;
    if (e->r.count != 1 || e->r.step != 1)
        return (e->n = collect(e)) ? e->part : NULL;
    e->n = e->r.inner - e->at < PART ? e->r.inner - e->at : PART;
    e->at += e->n;
    return e->n ? x : NULL;
}

static void magnitudes(const float *x, float *y, size_t n) {
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = qk_abs(x[i]);
}

static void squares(const float *x, float *y, size_t n) {
    QS_IVDEP
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * x[i];
}

/* The next elements as terms of a sum; top: the greatest element. */
static const float *next_terms(reader *e, float top) {
    const float *x = next_part(e);
    if (!x)
        return NULL;
    switch (e->p->kind) {
    case QS_REDUCE_L1: magnitudes(x, e->part, e->n); return e->part;
    case QS_REDUCE_L2:
    case QS_REDUCE_SUM_SQUARE: squares(x, e->part, e->n); return e->part;
    case QS_REDUCE_LOG_SUM_EXP:
        e->ctx->kernels->ew->exp_shifted(x, top, e->part, e->n);
        return e->part;
    default: return x;
    }
}

static float sum_of(const qs_reduce *p, const qsim_ctx *ctx, const float *x, float top) {
    reader e;
    float lanes[16] = {0}, total = 0;
    start_reading(&e, p, ctx, x);
    for (const float *terms; (terms = next_terms(&e, top));) {
        qs_tree_add(terms, e.n, lanes);
        if (e.parts % (QS_SUM_BLOCK / PART) == 0) {
            total += qs_reduce_fold(lanes);
            memset(lanes, 0, sizeof(lanes));
        }
    }
    return total + qs_reduce_fold(lanes);
}

static float product_of(const qs_reduce *p, const qsim_ctx *ctx, const float *x) {
    reader e;
    float product = 1;
    start_reading(&e, p, ctx, x);
    for (const float *part; (part = next_part(&e));)
        for (size_t i = 0; i < e.n; i++)
            product *= part[i];
    return product;
}

/* The greatest element, or with QK_LEAST the least one. */
static float extreme_of(const qs_reduce *p, const qsim_ctx *ctx, const float *x, uint32_t sign) {
    float best = -INFINITY;
    reader e;
    start_reading(&e, p, ctx, x);
    for (const float *part; best == best && (part = next_part(&e));) {
        float top = ctx->kernels->ew->greatest(part, e.n, sign);
        if (top <= best)
            continue;
        for (size_t i = 0; top == 0; i++) /* the first of zeros: -0 or +0 */
            if (part[i] == 0) {
                top = qk_flip(part[i], sign);
                break;
            }
        best = top;
    }
    return qk_flip(best, sign);
}

/* An output; run: its elements lie end to end. */
static float reduce_one(const qs_reduce *p, const qsim_ctx *ctx, const float *x, bool run) {
    const uint32_t sign = p->kind == QS_REDUCE_MIN ? QK_LEAST : 0;
    float top = 0;
    if (run && p->kind <= QS_REDUCE_SUM)
        return finished(p, qs_row_sum(ctx, x, p->count));
    if (run && p->kind >= QS_REDUCE_MAX && p->count <= PART) {
        top = ctx->kernels->ew->greatest(x, p->count, sign);
        if (top != 0) /* of zeros the first counts */
            return qk_flip(top, sign);
    }
    if (p->kind >= QS_REDUCE_MAX || p->kind == QS_REDUCE_LOG_SUM_EXP)
        top = extreme_of(p, ctx, x, sign);
    if (p->kind == QS_REDUCE_PROD)
        return product_of(p, ctx, x);
    if (p->kind < QS_REDUCE_LOG_SUM_EXP)
        return finished(p, sum_of(p, ctx, x, 0));
    if (p->kind == QS_REDUCE_LOG_SUM_EXP && qk_abs(top) < INFINITY) /* cannot overflow */
        return (float)((double)top + qk_log64((double)sum_of(p, ctx, x, top)));
    return top;
}

/* Many runs of few elements are transposed, so that they lie side by side, too. */
#define SHORT       ((size_t)16)
#define LEAST_SHORT ((size_t)16)

size_t qs_reduce_f32(const qs_reduce *p, const qsim_ctx *ctx, const void *vx, void *vy, size_t n) {
    const bool run = qs_reduce_is_run(p);
    const float *x = vx;
    float *y = vy;
    if (n > 1 && !run && p->kind != QS_REDUCE_LOG_SUM_EXP) {
        n = n < COLUMNS ? n : COLUMNS;
        reduce_columns(p, p->rows, ctx, x, y, n);
        return n;
    }
    if (n >= LEAST_SHORT && run && p->count <= SHORT && p->kind != QS_REDUCE_LOG_SUM_EXP) {
        float beside[SHORT * COLUMNS];
        n = n < COLUMNS ? n : COLUMNS;
        ctx->kernels->u8->transpose32(x, p->count, beside, p->count, n);
        reduce_columns(p, (qs_reduce_rows){1, p->count, n}, ctx, beside, y, n);
        return n;
    }
    n = run ? n : 1;
    for (size_t i = 0; i < n; i++)
        y[i] = reduce_one(p, ctx, x + i * p->count, run);
    return n;
}
