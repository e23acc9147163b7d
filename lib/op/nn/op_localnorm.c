/* SPDX-License-Identifier: MIT */
/* LpNormalization: divides by the norm along an axis. LRN: by a sum over neighbouring channels. */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

#include <math.h>

#define COLUMNS ((size_t)256) /* adjacent ones that a task computes together */

/* Tensor (outer, count, inner): sums run over count, inner is contiguous. */
typedef struct local_params {
    size_t outer, count, inner, bytes;
    bool squares; /* LpNormalization: p is 2 */
    size_t before, after;
    double alpha, beta, bias;
    void (*block)(const qsim_ctx *ctx, const struct local_params *p, const void *x, void *y,
                  size_t n);
} local_params;

typedef struct local_job {
    const qsim_ctx *ctx;
    const local_params *p;
    const char *x;
    char *y;
} local_job;

/* Number of blocks of COLUMNS elements in `inner`. */
static size_t blocks(const local_params *p) {
    return (p->inner + COLUMNS - 1) / COLUMNS;
}

static void local_range(const void *arg, size_t begin, size_t end) {
    const local_job *j = arg;
    const local_params *p = j->p;
    for (size_t i = begin; i < end; i++) {
        const size_t first = i % blocks(p) * COLUMNS, left = p->inner - first;
        const size_t at = (i / blocks(p) * p->count * p->inner + first) * p->bytes;
        p->block(j->ctx, p, j->x + at, j->y + at, left < COLUMNS ? left : COLUMNS);
    }
}

static void run_local(const qs_step *s, const qs_frame *f) {
    const local_params *p = s->params;
    const local_job j = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    const size_t n = p->inner < COLUMNS ? p->inner : COLUMNS;
    if (p->count && n)
        qs_ranges(f->ctx, p->outer * blocks(p), QS_GRAIN / 4 / (p->count * n) + 1, local_range, &j);
}

QS_COLD static local_params *local_params_of(qs_lower *l, int32_t axis) {
    const qs_value *x = qs_lower_in(l, 0);
    local_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return NULL;
    p->outer = (size_t)qs_dims_product(x->dims, 0, axis);
    p->count = (size_t)x->dims[axis].size;
    p->inner = (size_t)qs_dims_product(x->dims, axis + 1, x->rank);
    p->bytes = qs_dtype_bytes(x->dtype);
    l->step->run = run_local;
    return p;
}

/* ---- LpNormalization ---- */

/* n norms over count rows, sums in order; a norm of 0 gives results of 0. */
#define LP(suffix, T, root)                                                                        \
    QS_COLD static void lp_##suffix(const qsim_ctx *ctx, const local_params *p, const void *vx,    \
                                    void *vy, size_t n) {                                          \
        const T *x = vx;                                                                           \
        T *y = vy, norm[COLUMNS] = {0};                                                            \
        for (size_t t = 0; t < p->count && !qs_stopped_at(ctx, t); t++)                            \
            for (size_t i = 0; i < n; i++) {                                                       \
                const T v = x[t * p->inner + i];                                                   \
                norm[i] += p->squares ? v * v : v < 0 ? -v : v;                                    \
            }                                                                                      \
        for (size_t i = 0; i < n && p->squares; i++)                                               \
            norm[i] = root(norm[i]);                                                               \
        for (size_t t = 0; t < p->count && !qs_stopped_at(ctx, t); t++)                            \
            for (size_t i = 0; i < n; i++)                                                         \
                y[t * p->inner + i] = norm[i] == 0 ? 0 : x[t * p->inner + i] / norm[i];            \
    }
LP(f32, float, sqrtf)
LP(f64, double, sqrt)

/* Floats end to end, p 2: the sum is the tree of reduce.h. */
static void lp_row(const qsim_ctx *ctx, const local_params *p, const void *vx, void *vy, size_t n) {
    const float *x = vx, norm = sqrtf(qs_row_squares(ctx, x, 0.0f, p->count));
    float *y = vy;
    (void)n;
    for (size_t at = 0, count; (count = qs_piece(ctx, at, p->count)); at += count)
        if (norm == 0.0f)
            memset(y + at, 0, count * sizeof(*y));
        else
            ctx->kernels->ew->divide(x + at, norm, y + at, count);
}

QS_COLD static int lp_axis(const qs_infer *x, int32_t *axis) {
    return qs_infer_axis(x, qs_node_int(x->node, "axis", -1), x->in[0]->rank, axis);
}

QS_COLD static int infer_lp(qs_infer *x) {
    const int64_t p = qs_node_int(x->node, "p", 2);
    int32_t axis;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code && p != 1 && p != 2)
        code = qs_infer_fail(x, QSIM_E_VALUE, "p is %lld, neither 1 nor 2", (long long)p);
    if (!code && x->in[0]->rank >= 0)
        code = lp_axis(x, &axis);
    return code ? code : qs_infer_like(x, 0, 0);
}

QS_COLD static int lower_lp(qs_lower *l) {
    qs_infer rules;
    int32_t axis = 0;
    qs_lower_infer(l, &rules);
    int code = lp_axis(&rules, &axis);
    if (code)
        return code;
    local_params *p = local_params_of(l, axis);
    if (!p)
        return QSIM_E_NOMEM;
    p->squares = qs_node_int(l->node, "p", 2) == 2;
    p->block = qs_lower_in(l, 0)->dtype == QSIM_DOUBLE ? lp_f64
               : p->squares && p->inner == 1           ? lp_row
                                                       : lp_f32;
    return QSIM_OK;
}

static const qs_attr_rule lp_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0}, {"p", QSIM_ATTR_INT, 1, 0}};

QS_OP(lp_normalization, .name = "LpNormalization", .min_in = 1, QS_ATTRS(lp_attrs),
      .traits = QS_READS_EXACTLY, .kernel = QS_KERNEL_LP_NORMALIZATION, .infer = infer_lp,
      .lower = lower_lp);

/* ---- LRN ---- */

/* v^beta; 0.75, as nearly all networks have it, by square roots, which take far less time. */
static double power(double v, double beta) {
    const double root = sqrt(v);
    return beta == 0.75 ? root * sqrt(root) : qk_pow64(v, beta);
}

/* x / (bias + alpha / size * sum of squares)^beta; the power in double for either type. */
#define LRN(suffix, T)                                                                             \
    QS_COLD static void lrn_##suffix(const qsim_ctx *ctx, const local_params *p, const void *vx,   \
                                     void *vy, size_t n) {                                         \
        const T *x = vx;                                                                           \
        T *y = vy, sum[COLUMNS];                                                                   \
        for (size_t c = 0, rows = 0; c < p->count; c++) {                                          \
            const size_t first = c < p->before ? 0 : c - p->before;                                \
            const size_t last = p->count - 1 - c < p->after ? p->count - 1 : c + p->after;         \
            memset(sum, 0, sizeof(sum));                                                           \
            for (size_t k = first; k <= last; k++) {                                               \
                if (qs_stopped_at(ctx, rows++))                                                    \
                    return;                                                                        \
                for (size_t i = 0; i < n; i++)                                                     \
                    sum[i] += x[k * p->inner + i] * x[k * p->inner + i];                           \
            }                                                                                      \
            for (size_t i = 0; i < n; i++)                                                         \
                y[c * p->inner + i] = (T)((double)x[c * p->inner + i] /                            \
                                          power(p->bias + p->alpha * (double)sum[i], p->beta));    \
        }                                                                                          \
    }
LRN(f32, float)
LRN(f64, double)

QS_COLD static int infer_lrn(qs_infer *x) {
    const int64_t size = qs_node_int(x->node, "size", 0);
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code && size < 1)
        code = qs_infer_fail(x, QSIM_E_VALUE, "size is %lld", (long long)size);
    if (!code)
        code = qs_infer_least_rank(x, 0, 2);
    return code ? code : qs_infer_like(x, 0, 0);
}

QS_COLD static int lower_lrn(qs_lower *l) {
    const int64_t size = qs_node_int(l->node, "size", 1);
    local_params *p = local_params_of(l, 1);
    if (!p)
        return QSIM_E_NOMEM;
    p->before = (size_t)(size - 1) / 2;
    p->after = (size_t)size - 1 - p->before;
    p->alpha = (double)qs_node_float(l->node, "alpha", 1e-4f) / (double)size;
    p->beta = (double)qs_node_float(l->node, "beta", 0.75f);
    p->bias = (double)qs_node_float(l->node, "bias", 1.0f);
    p->block = qs_lower_in(l, 0)->dtype == QSIM_DOUBLE ? lrn_f64 : lrn_f32;
    return QSIM_OK;
}

static const qs_attr_rule lrn_attrs[] = {{"alpha", QSIM_ATTR_FLOAT, 1, 0},
                                         {"beta", QSIM_ATTR_FLOAT, 1, 0},
                                         {"bias", QSIM_ATTR_FLOAT, 1, 0},
                                         {"size", QSIM_ATTR_INT, 1, 0}};

QS_OP(lrn, .name = "LRN", .min_in = 1, QS_ATTRS(lrn_attrs), .traits = QS_READS_EXACTLY,
      .kernel = QS_KERNEL_LRN, .infer = infer_lrn, .lower = lower_lrn);
