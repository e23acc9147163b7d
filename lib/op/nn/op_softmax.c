/* SPDX-License-Identifier: MIT */
/* Softmax, LogSoftmax and Hardmax. */
#include "op/rules.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"
#include "op/nn/reduce_axes.h"

/* ---- Softmax ---- */

/* Before version 13 all axes from `axis` on count as one. */
QS_COLD static int softmax_axis(const qs_infer *x, int32_t *axis) {
    int32_t rank = x->in[0]->rank;
    int64_t given = qs_node_int(x->node, "axis", x->node->version < 13 ? 1 : -1);
    if (rank == 1 && x->node->version < 13 && given == 1)
        given = 0; /* the default of old versions, as other runtimes treat it */
    return qs_infer_axis(x, given, rank, axis);
}

QS_COLD static int infer_softmax(qs_infer *x) {
    int32_t axis;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code && x->in[0]->rank >= 0)
        code = softmax_axis(x, &axis);
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct softmax_job {
    const qs_softmax_shape *p;
    const float *x;
    float *y;
    const qsim_ctx *ctx;
} softmax_job;

qs_softmax_shape qs_softmax_split(const qs_value *x, int32_t axis, int32_t last) {
    return (qs_softmax_shape){(size_t)qs_dims_product(x->dims, 0, axis),
                              (size_t)qs_dims_product(x->dims, axis, last + 1),
                              (size_t)qs_dims_product(x->dims, last + 1, x->rank)};
}

void qs_softmax_row(const qsim_ctx *ctx, const float *x, float *y, size_t n) {
    ctx->kernels->ew->softmax(x, y, n, 1);
}

/* Elements of a row between two checks for a stop: a multiple of 16. */
#define PIECE    ((size_t)1 << 15)
#define LONG_ROW ((size_t)1 << 19)

/* Sets y = exp(x - greatest), elements `step` apart, and their sum; returns the greatest. */
static float exponentials(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t step,
                          float *sum) {
    float top = x[0], part[64], lanes[16] = {0};
    for (size_t i = 1; i < n && !qs_stopped_at(ctx, i); i++)
        top = x[i * step] > top ? x[i * step] : top;
    for (size_t i = 0, count; i < n && !(i % PIECE == 0 && qs_stopped(ctx)); i += count) {
        count = n - i < QS_COUNT(part) ? n - i : QS_COUNT(part);
        for (size_t k = 0; k < count; k++)
            part[k] = x[(i + k) * step];
        ctx->kernels->ew->exp_shifted(part, top, part, count);
        qs_tree_add(part, count, lanes);
        for (size_t k = 0; k < count; k++)
            y[(i + k) * step] = part[k];
    }
    *sum = qs_reduce_fold(lanes);
    return top;
}

static void softmax_strided(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t step) {
    float sum;
    (void)exponentials(ctx, x, y, n, step, &sum);
    for (size_t i = 0; i < n && !qs_stopped_at(ctx, i); i++)
        y[i * step] = y[i * step] / sum;
}

/* A long row: what the kernel does, in pieces. */
static void softmax_long(const qsim_ctx *ctx, const float *x, float *y, size_t n) {
    const qk_ew *k = ctx->kernels->ew;
    float top = -INFINITY, lanes[16] = {0};
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE) {
        const float here = k->greatest(x + i, n - i < PIECE ? n - i : PIECE);
        top = here > top ? here : top;
    }
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE) {
        const size_t count = n - i < PIECE ? n - i : PIECE;
        k->exp_shifted(x + i, top, y + i, count);
        qs_tree_add(y + i, count, lanes);
    }
    const float sum = qs_reduce_fold(lanes);
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE)
        k->divide(y + i, sum, y + i, n - i < PIECE ? n - i : PIECE);
}

/* The tree of n < 16 numbers, none negative: unused lanes add +0. */
static float sum_short(const float *x, size_t n) {
    float part[16] = {0};
    size_t half = n > 4 ? 8 : 2;
    for (size_t i = 0; i < n; i++)
        part[i] = x[i];
    for (; half; half /= 2)
        for (size_t k = 0; k < half; k++)
            part[k] += part[k + half];
    return part[0];
}

/* Rows of two, as detectors' scores are: the tree's other lanes add +0. */
static void softmax_pairs(const qsim_ctx *ctx, const float *x, float *y, size_t rows) {
    for (size_t r = 0; r < 2 * rows; r += 2) {
        const float a = x[r], b = x[r + 1], top = b > a ? b : a;
        y[r] = a - top;
        y[r + 1] = b - top;
    }
    ctx->kernels->ew->exp(y, y, 2 * rows);
    for (size_t r = 0; r < 2 * rows; r += 2) {
        const float a = y[r], b = y[r + 1], sum = a + b;
        y[r] = a / sum;
        y[r + 1] = b / sum;
    }
}

/* Short rows: exponentials of many rows in one call, with the same bits. */
static void softmax_short(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows) {
    for (size_t r = 0; r < rows; r++) {
        float top = x[r * n];
        for (size_t i = 1; i < n; i++)
            top = x[r * n + i] > top ? x[r * n + i] : top;
        for (size_t i = 0; i < n; i++)
            y[r * n + i] = x[r * n + i] - top;
    }
    ctx->kernels->ew->exp(y, y, n * rows);
    for (size_t r = 0; r < rows; r++) {
        float sum = sum_short(y + r * n, n);
        for (size_t i = 0; i < n; i++)
            y[r * n + i] = y[r * n + i] / sum;
    }
}

void qs_softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows) {
    if (n == 2) {
        softmax_pairs(ctx, x, y, rows);
        return;
    }
    if (n < 16) {
        softmax_short(ctx, x, y, n, rows);
        return;
    }
    if (n <= LONG_ROW)
        ctx->kernels->ew->softmax(x, y, n, rows);
    for (size_t r = 0; n > LONG_ROW && r < rows; r++)
        softmax_long(ctx, x + r * n, y + r * n, n);
}

static void softmax_range(const void *arg, size_t begin, size_t end) {
    const softmax_job *job = arg;
    const qs_softmax_shape *p = job->p;
    if (p->inner == 1) {
        qs_softmax_rows(job->ctx, job->x + begin * p->count, job->y + begin * p->count, p->count,
                        end - begin);
        return;
    }
    for (size_t r = begin; r < end; r++) {
        size_t at = r / p->inner * p->count * p->inner + r % p->inner;
        softmax_strided(job->ctx, job->x + at, job->y + at, p->count, p->inner);
    }
}

static void run_softmax(const qs_step *s, const qs_frame *f) {
    const qs_softmax_shape *p = s->params;
    softmax_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), f->ctx};
    if (p->count)
        qs_ranges(f->ctx, p->outer * p->inner, QS_GRAIN / 8 / p->count + 1, softmax_range, &job);
}

/* x - greatest - log(sum of exp(x - greatest)); the sum is the tree sum of softmax. */
static void log_softmax_range(const void *arg, size_t begin, size_t end) {
    const softmax_job *job = arg;
    const size_t n = job->p->count, step = job->p->inner;
    for (size_t r = begin; r < end; r++) {
        const size_t at = r / step * n * step + r % step;
        const float *x = job->x + at;
        float *y = job->y + at, sum;
        const float top = exponentials(job->ctx, x, y, n, step, &sum);
        const float log_sum = (float)qk_log64((double)sum);
        for (size_t i = 0; i < n && !qs_stopped_at(job->ctx, i); i++)
            y[i * step] = (x[i * step] - top) - log_sum;
    }
}

static void run_log_softmax(const qs_step *s, const qs_frame *f) {
    const qs_softmax_shape *p = s->params;
    softmax_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), f->ctx};
    if (p->count)
        qs_ranges(f->ctx, p->outer * p->inner, QS_GRAIN / 8 / p->count + 1, log_softmax_range,
                  &job);
}

/* Softmax or LogSoftmax of doubles, sums in order. */
QS_COLD static void softmax_f64(const qsim_ctx *ctx, const qs_softmax_shape *p, const double *x,
                                double *y, bool logs) {
    for (size_t r = 0; p->count && r < p->outer * p->inner; r++) {
        const size_t at = r / p->inner * p->count * p->inner + r % p->inner;
        double top = x[at], sum = 0;
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            top = x[i] > top ? x[i] : top;
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            sum += qk_exp64(x[i] - top);
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            y[i] = logs ? x[i] - top - qk_log64(sum) : qk_exp64(x[i] - top) / sum;
    }
}

QS_COLD static void run_softmax_f64(const qs_step *s, const qs_frame *f) {
    softmax_f64(f->ctx, s->params, qs_step_in(s, f, 0), qs_step_out(s, f, 0), false);
}

QS_COLD static void run_log_softmax_f64(const qs_step *s, const qs_frame *f) {
    softmax_f64(f->ctx, s->params, qs_step_in(s, f, 0), qs_step_out(s, f, 0), true);
}

QS_COLD static int lower_softmax(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t axis;
    qs_infer rules;
    qs_lower_infer(l, &rules);
    int code = softmax_axis(&rules, &axis);
    if (code)
        return code;
    qs_softmax_shape *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = qs_softmax_split(x, axis, l->node->version < 13 ? x->rank - 1 : axis);
    l->step->run = x->dtype == QSIM_DOUBLE ? run_softmax_f64 : run_softmax;
    return QSIM_OK;
}

QS_COLD static int lower_log_softmax(qs_lower *l) {
    const int code = lower_softmax(l);
    l->step->run = qs_lower_in(l, 0)->dtype == QSIM_DOUBLE ? run_log_softmax_f64 : run_log_softmax;
    return code;
}

/*
 * To version 13: if the flattened part is one axis (others of size 1), it becomes the axis; else
 * Flatten -> the same operator -> Reshape(Shape).
 */
QS_COLD static int upgrade_softmax(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    if (n->version >= 13 || to < 13)
        return QSIM_OK;
    qs_id x = n->inputs[0];
    const qs_value *v = &g->values[x];
    int64_t axis = qs_node_int(n, "axis", 1);
    int64_t at = axis < 0 && v->rank >= 0 ? axis + v->rank : axis;
    bool single = v->rank >= 0;
    for (int32_t i = (int32_t)at + 1; i < v->rank; i++)
        single = single && v->dims[i].size == 1;
    if (v->rank == 1 && at == 1)
        axis = 0;
    if (single)
        return qs_node_set_int(g, node, "axis", axis) ? qs_op_no_memory(error) : QSIM_OK;
    qs_id flat = qs_upgrade_add(g, "Flatten", "flat", x, QS_NONE);
    qs_id shape = flat < 0 ? flat : qs_upgrade_add(g, "Shape", "shape", x, QS_NONE);
    const char *name = shape < 0 ? NULL : qs_graph_fresh_name(g, "softmax");
    qs_id soft = name ? qs_graph_add_value(g, name) : QSIM_E_NOMEM;
    if (soft < 0)
        return qs_op_no_memory(error);
    qs_id flatten = g->values[flat].producer;
    if (flatten != QS_NONE && qs_node_set_int(g, flatten, "axis", axis) != QSIM_OK)
        return qs_op_no_memory(error);
    /* the old node becomes the Reshape, which keeps the output's name */
    qs_id in[1] = {flat}, out[1] = {soft};
    const char *op_type = g->nodes[node].op_type;
    qs_id inner = qs_graph_add_node(g, "", op_type, g->nodes[node].name, in, 1, out, 1);
    if (inner < 0 || qs_node_set_int(g, inner, "axis", -1) != QSIM_OK ||
        qs_node_grow_inputs(g, node, 2) != QSIM_OK)
        return qs_op_no_memory(error);
    qs_node_drop_attr(g, node, "axis");
    qs_node_set_input(g, node, 0, soft);
    qs_node_set_input(g, node, 1, shape);
    g->nodes[node].op_type = "Reshape";
    g->nodes[node].changed = true;
    return QSIM_OK;
}

static const qs_attr_rule softmax_attrs[] = {{"axis", QS_ATTR_INT, 1, 0}};

QS_OP(log_softmax, .name = "LogSoftmax", .min_in = 1, QS_ATTRS(softmax_attrs), .traits = QS_PLAIN,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_log_softmax);
QS_OP(softmax, .name = "Softmax", .min_in = 1, QS_ATTRS(softmax_attrs), .traits = QS_SOFTMAX,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_softmax);

/* ---- Hardmax ---- */

/* 1 for the first of the greatest elements, 0 for the others. */
#define HARDMAX(T)                                                                                 \
    QS_COLD static void run_hardmax_##T(const qs_step *s, const qs_frame *f) {                     \
        const qs_softmax_shape *p = s->params;                                                     \
        const T *x = qs_step_in(s, f, 0);                                                          \
        T *y = qs_step_out(s, f, 0);                                                               \
        for (size_t r = 0; p->count && r < p->outer * p->inner; r++) {                             \
            const size_t at = r / p->inner * p->count * p->inner + r % p->inner;                   \
            size_t top = 0;                                                                        \
            for (size_t i = 0; i < p->count && !qs_stopped_at(f->ctx, at + i); i++) {              \
                top = x[at + i * p->inner] > x[at + top * p->inner] ? i : top;                     \
                y[at + i * p->inner] = 0;                                                          \
            }                                                                                      \
            y[at + top * p->inner] = 1;                                                            \
        }                                                                                          \
    }
HARDMAX(float)
HARDMAX(double)

QS_COLD static int lower_hardmax(qs_lower *l) {
    const int code = lower_softmax(l);
    l->step->run = qs_lower_in(l, 0)->dtype == QSIM_DOUBLE ? run_hardmax_double : run_hardmax_float;
    return code;
}

QS_OP(hardmax, .name = "Hardmax", .min_in = 1, QS_ATTRS(softmax_attrs), .traits = QS_JUMPS,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_HARDMAX, .infer = infer_softmax, .lower = lower_hardmax);
