/* SPDX-License-Identifier: MIT */
/* ArgMax and ArgMin. */
#include <assert.h>

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/rules.h"

QS_COLD static int arg_axis(const qs_infer *x, int32_t *axis) {
    return qs_infer_axis(x, qs_node_int(x->node, "axis", 0), x->in[0]->rank, axis);
}

QS_COLD static int infer_arg(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t axis = 0, rank = 0;
    int code = qs_infer_type(x, 0, QS_T_ARITH);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, QSIM_INT64);
    code = arg_axis(x, &axis);
    if (code)
        return code;
    if (v->dims[axis].size == 0)
        return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d is empty", (int)axis);
    for (int32_t i = 0; i < v->rank; i++) {
        if (i != axis)
            dims[rank++] = v->dims[i];
        else if (qs_node_int(x->node, "keepdims", 1))
            dims[rank++] = (qs_dim){1, NULL};
    }
    return qs_infer_out(x, 0, QSIM_INT64, rank, dims);
}

typedef struct arg_params {
    int32_t dtype;
    size_t outer, count, inner, element;
    /* The greatest sign * x is searched; of integers the greatest x ^ flip as unsigned numbers. */
    float sign;
    uint64_t flip;
    bool last;
} arg_params;

/*
 * Returns the index of the extreme among element `best` and elements [from, end) of a row, which
 * are p->inner apart. A NaN is skipped unless it is element `best`.
 */
#define ARG(T, order)                                                                              \
    QS_COLD static size_t arg_##T(const arg_params *p, const void *vx, size_t best, size_t from,   \
                                  size_t end) {                                                    \
        const T *x = vx;                                                                           \
        T top = (T)(x[best * p->inner] order);                                                     \
        for (size_t i = from; i < end; i++) {                                                      \
            const T v = (T)(x[i * p->inner] order);                                                \
            if (v > top || (v == top && p->last))                                                  \
                top = v, best = i;                                                                 \
        }                                                                                          \
        return best;                                                                               \
    }
ARG(float, *p->sign)
ARG(double, *(double)p->sign)
ARG(uint8_t, ^p->flip)
ARG(uint16_t, ^p->flip)
ARG(uint32_t, ^p->flip)
ARG(uint64_t, ^p->flip)

QS_COLD static size_t arg_piece(const arg_params *p, const void *x, size_t best, size_t from,
                                size_t end) {
    if (p->dtype == QSIM_FLOAT)
        return arg_float(p, x, best, from, end);
    if (p->dtype == QSIM_DOUBLE)
        return arg_double(p, x, best, from, end);
    switch (p->element) {
    case 1: return arg_uint8_t(p, x, best, from, end);
    case 2: return arg_uint16_t(p, x, best, from, end);
    case 4: return arg_uint32_t(p, x, best, from, end);
    default: return arg_uint64_t(p, x, best, from, end);
    }
}

#define CANCEL_INTERVAL ((size_t)1 << 18)

QS_COLD static size_t arg_row(const qsim_ctx *ctx, const arg_params *p, const char *x) {
    size_t best = 0;
    for (size_t at = 0, n; (n = qs_piece(ctx, at, p->count)); at += n)
        best = arg_piece(p, x, best, at, at + n);
    return best;
}

QS_COLD static void run_rows(const qs_step *s, const qs_frame *f) {
    const arg_params *p = s->params;
    const char *x = qs_step_in(s, f, 0);
    int64_t *y = qs_step_out(s, f, 0);
    size_t done = 0; /* elements since the last check for a stop */
    for (size_t o = 0; o < p->outer; o++)
        for (size_t i = 0; i < p->inner; i++) {
            done += p->count;
            if (done > CANCEL_INTERVAL) {
                done = 0;
                if (qs_stopped(f->ctx))
                    return;
            }
            assert(x && y);
            *y++ = (int64_t)arg_row(f->ctx, p, x + (o * p->count * p->inner + i) * p->element);
        }
}

/* ---- floats end to end: the extreme, then its place ---- */

#define BLOCK ((size_t)16)

/* The first of n elements, or with `last` the last, that is v; there is one. */
static size_t place_of(const float *x, float v, size_t n, bool last) {
    size_t i = 0;
    int32_t found = 0;
    while (last && x[n - 1] != v)
        n--;
    if (last)
        return n - 1;
    for (; i + BLOCK <= n; i += BLOCK) {
        for (size_t k = 0; k < BLOCK; k++)
            found |= x[i + k] == v;
        if (found)
            break;
    }
    while (x[i] != v)
        i++;
    return i;
}

static size_t arg_floats(const qsim_ctx *ctx, const arg_params *p, const float *x) {
    const uint32_t sign = p->sign < 0 ? QK_LEAST : 0;
    float top = -INFINITY;
    size_t from = 0, length = 0; /* of the piece that has it */
    for (size_t at = 0, n; (n = qs_piece(ctx, at, p->count)); at += n) {
        const float here = ctx->kernels->ew->greatest(x + at, n, sign);
        if (here != here)
            return arg_row(ctx, p, (const char *)x);
        if (at == 0 || here > top || (here == top && p->last))
            top = here, from = at, length = n;
    }
    return from + place_of(x + from, qk_flip(top, sign), length, p->last);
}

/* ---- floats, several rows at a time ---- */

#define COLUMNS ((size_t)256)
#define SHORT   ((size_t)32) /* elements of a row up to which rows are transposed to columns */
#define TURNED  ((size_t)4096)

/*
 * n <= COLUMNS adjacent results: the extremes of x + c, x + inner + c, … for each c. Of negated
 * numbers the greatest is the least.
 */
static void arg_columns(const qsim_ctx *ctx, const arg_params *p, const float *x, int64_t *y,
                        size_t n) {
    const int32_t count = (int32_t)p->count, last = p->last;
    const float sign = p->sign;
    float best[COLUMNS];
    int32_t at[COLUMNS] = {0};
    for (size_t c = 0; c < n; c++)
        best[c] = x[c] * sign;
    for (int32_t i = 1; i < count && !qs_stopped_at(ctx, (size_t)i); i++) {
        x += p->inner;
        for (size_t c = 0; c < n; c++) {
            const float v = x[c] * sign;
            const int32_t better = (v > best[c]) | ((v == best[c]) & last);
            best[c] = better ? v : best[c];
            at[c] = better ? i : at[c];
        }
    }
    for (size_t c = 0; c < n; c++)
        y[c] = at[c];
}

typedef struct arg_job {
    const qsim_ctx *ctx;
    const arg_params *p;
    const float *x;
    int64_t *y;
} arg_job;

/* Computes n results of short rows that lie end to end; n <= COLUMNS, and they fit. */
static void arg_short(const arg_job *j, size_t first, size_t n) {
    float turned[TURNED];
    arg_params p = *j->p;
    p.inner = n;
    j->ctx->kernels->u8->transpose32(j->x + first * p.count, p.count, turned, p.count, n);
    arg_columns(j->ctx, &p, turned, j->y + first, n);
}

/* Computes results [begin, end). */
static void column_range(const void *arg, size_t begin, size_t end) {
    const arg_job *j = arg;
    const size_t inner = j->p->inner;
    for (size_t i = begin, n; i < end; i += n) {
        const size_t left = inner - i % inner;
        if (inner == 1 && j->p->count > SHORT) {
            j->y[i] = (int64_t)arg_floats(j->ctx, j->p, j->x + i * j->p->count);
            n = 1;
            continue;
        }
        n = left < end - i && inner > 1 ? left : end - i;
        n = n < COLUMNS ? n : COLUMNS;
        if (inner == 1) {
            n = n * j->p->count > TURNED ? TURNED / j->p->count : n;
            arg_short(j, i, n);
            continue;
        }
        const float *x = j->x + i / inner * j->p->count * inner + i % inner;
        arg_columns(j->ctx, j->p, x, j->y + i, n);
    }
}

static void run_floats(const qs_step *s, const qs_frame *f) {
    const arg_params *p = s->params;
    const arg_job job = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    const size_t each = p->count + (p->inner == 1 ? 16 : 0); /* a short row takes longer to begin */
    qs_ranges(f->ctx, p->outer * p->inner, QS_GRAIN / each + 1, column_range, &job);
}

QS_COLD static int lower_arg(qs_lower *l) {
    const bool least = strcmp(l->node->op_type, "ArgMin") == 0;
    const qs_value *x = qs_lower_in(l, 0);
    qs_infer rules;
    int32_t axis = 0;
    qs_lower_infer(l, &rules);
    int code = arg_axis(&rules, &axis);
    if (code)
        return code;
    arg_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->dtype = x->dtype;
    p->outer = (size_t)qs_dims_product(x->dims, 0, axis);
    p->count = (size_t)x->dims[axis].size;
    p->inner = (size_t)qs_dims_product(x->dims, axis + 1, x->rank);
    p->element = qs_dtype_bytes(x->dtype);
    p->sign = least ? -1.0f : 1.0f;
    p->flip = QS_T_SIGNED & QS_T(x->dtype) ? (uint64_t)1 << (8 * p->element - 1) : 0;
    p->flip ^= least ? UINT64_MAX : 0;
    p->last = qs_node_int(l->node, "select_last_index", 0) != 0;
    const bool floats = x->dtype == QSIM_FLOAT && p->count <= INT32_MAX;
    l->step->run = floats ? run_floats : run_rows;
    return QSIM_OK;
}

static const qs_attr_rule arg_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                         {"keepdims", QSIM_ATTR_INT, 1, 0},
                                         {"select_last_index", QSIM_ATTR_INT, 12, 0}};

QS_OP(argmax, .name = "ArgMax", .min_in = 1, QS_ATTRS(arg_attrs), .traits = QS_READS_EXACTLY,
      .kernel = QS_KERNEL_ARG, .infer = infer_arg, .lower = lower_arg);
QS_OP(argmin, .name = "ArgMin", .min_in = 1, QS_ATTRS(arg_attrs), .traits = QS_READS_EXACTLY,
      .kernel = QS_KERNEL_ARG, .infer = infer_arg, .lower = lower_arg);
