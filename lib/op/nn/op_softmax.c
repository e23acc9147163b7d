/* SPDX-License-Identifier: MIT */
/* Softmax, LogSoftmax and Hardmax. */
#include "op/rules.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/elementary.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "kernel/u8.h"
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

extern const qs_op qs_op_log_softmax;

typedef struct softmax_params {
    qs_softmax_shape shape;
    bool logs, doubles;
} softmax_params;

typedef struct softmax_job {
    const softmax_params *p;
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
    ctx->kernels->ew->softmax(x, y, n, 1, false);
}

/* x - greatest - log(sum of exp(x - greatest)); the sum is the tree sum of softmax. */
static float log_of(float sum) {
    return (float)qk_log64((double)sum);
}

/* Elements of a row between two checks for a stop: a multiple of 16. */
#define PIECE    ((size_t)1 << 15)
#define LONG_ROW ((size_t)1 << 19)

/* A long row, for LogSoftmax from PIECE on: what the kernel does, in pieces. */
static void softmax_long(const qsim_ctx *ctx, const float *x, float *y, size_t n, bool logs) {
    const qk_ew *k = ctx->kernels->ew;
    float top = -INFINITY, lanes[16] = {0};
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE) {
        const float here = k->greatest(x + i, n - i < PIECE ? n - i : PIECE, 0);
        top = here > top ? here : top;
    }
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE) {
        const size_t count = n - i < PIECE ? n - i : PIECE;
        k->exp_shifted(x + i, top, y + i, count);
        qs_tree_add(y + i, count, lanes);
    }
    const float sum = qs_reduce_fold(lanes), log_sum = log_of(sum);
    for (size_t i = 0; i < n && !qs_stopped(ctx); i += PIECE) {
        const size_t count = n - i < PIECE ? n - i : PIECE;
        if (logs)
            k->subtract(x + i, top, log_sum, y + i, count);
        else
            k->divide(y + i, sum, y + i, count);
    }
}

/* ---- short rows, and rows whose elements lie apart: up to BESIDE rows side by side ---- */

#define BESIDE ((size_t)64)
#define UNIT   ((size_t)16)
#define PART   ((size_t)1024) /* elements that are handled together */

/*
 * Rows of n elements that are `step` apart. If `step` is 1, the rows lie end to end; else they
 * begin one element apart.
 */
typedef struct side_rows {
    const qsim_ctx *ctx;
    size_t n, step;
    bool logs;
    size_t rows, width; /* width: rows, rounded up to a multiple of UNIT */
} side_rows;

/* part[k * width + r] = element k of row r. */
QS_NOINLINE static void get(const side_rows *s, const float *x, size_t n, float *part) {
    const size_t step = s->step, rows = s->rows, width = s->width;
    if (step == 1 && rows == width) {
        s->ctx->kernels->u8->transpose32(x, s->n, part, n, rows);
        return;
    }
    for (size_t k = 0; k < n; k++, x += step, part += width)
        if (step == 1)
            for (size_t r = 0; r < rows; r++)
                part[r] = x[r * s->n];
        else
            memcpy(part, x, rows * sizeof(*x));
}

QS_NOINLINE static void put(const side_rows *s, const float *part, size_t n, float *y) {
    if (s->step == 1) {
        s->ctx->kernels->u8->transpose32(part, s->width, y, s->rows, n);
        return;
    }
    for (size_t k = 0; k < n; k++, y += s->step, part += s->width)
        memcpy(y, part, s->rows * sizeof(*y));
}

/* Vectors by hand: of loops of any width compilers make ten times the code. */
typedef float four __attribute__((vector_size(16)));
typedef int32_t masks __attribute__((vector_size(16)));

/* Sets each of n lines of a, `stride` apart, to a value of it and of a line of b. */
#define LINES(name, value)                                                                         \
    QS_NOINLINE static void name(float *a, size_t stride, const float *b, size_t b_stride,         \
                                 size_t n, size_t width) {                                         \
        for (; n > 0; n--, a += stride, b += b_stride)                                             \
            for (size_t r = 0; r < width; r += 4) {                                                \
                four v, w;                                                                         \
                memcpy(&v, a + r, sizeof(v));                                                      \
                memcpy(&w, b + r, sizeof(w));                                                      \
                v = value;                                                                         \
                memcpy(a + r, &v, sizeof(v));                                                      \
            }                                                                                      \
    }
LINES(add, v + w)
LINES(subtract, v - w)
LINES(divide, v / w)
LINES(raise, (four)(((masks)w & (w > v)) | ((masks)v & ~(w > v))))

/* Sums up the lanes, but not unused ones, which would add 0: no lane is negative, nor -0. */
static void fold(const side_rows *s, float *lanes) {
    const size_t w = s->width;
    for (size_t half = s->n > 8 ? 8 : s->n > 4 ? 4 : s->n > 2 ? 2 : 1; half; half /= 2)
        add(lanes, w, lanes + half * w, w, half, w);
    for (size_t r = 0; s->logs && r < w; r++)
        lanes[r] = log_of(lanes[r]);
}

/*
 * Computes the first of `left` rows, at most BESIDE, in the passes of softmax_long: greatest
 * elements; sums of exponentials; quotients. Rows that fit stay in `part` from pass to pass. For
 * longer ones, y holds the exponentials from one pass to the next; for LogSoftmax it holds
 * x - greatest, for short rows, too.
 */
static void softmax_beside(side_rows *s, const float *x, float *y, size_t left) {
    float part[PART] = {0}, lanes[16 * BESIDE] = {0}, top[BESIDE];
    s->rows = left < BESIDE ? left : BESIDE;
    const size_t n = s->n, w = s->width = (s->rows + UNIT - 1) & ~(UNIT - 1), most = PART / w;
    for (size_t pass = 0; pass < 3; pass++)
        for (size_t at = 0, count; at < n && (at % PIECE >= most || !qs_stopped(s->ctx));
             at += count) {
            float *to = y + at * s->step;
            count = n - at < most ? n - at : most;
            if (pass == 0 || n > most || (pass == 2 && s->logs))
                get(s, pass < 2 ? x + at * s->step : to, count, part);
            if (pass == 0) {
                if (at == 0)
                    memcpy(top, part, sizeof(top));
                raise(top, 0, part, w, count, w);
                continue;
            }
            subtract(part, w, pass == 1 ? top : lanes, 0, pass == 1 || s->logs ? count : 0, w);
            if (pass == 2 && !s->logs)
                divide(part, w, lanes, 0, count, w);
            if (pass == 2 || s->logs)
                put(s, part, count, to);
            if (pass == 2)
                continue;
            s->ctx->kernels->ew->exp(part, part, count * w);
            for (size_t k = 0; k < count; k++)
                add(lanes + (at + k) % 16 * w, 0, part + k * w, 0, 1, w);
            if (!s->logs && n > most)
                put(s, part, count, to);
            if (at + count == n)
                fold(s, lanes);
        }
}

static void softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows,
                         bool logs) {
    side_rows s = {ctx, n, 1, logs, 1, 0};
    if (n >= 16 && n <= (logs ? PIECE : LONG_ROW)) {
        ctx->kernels->ew->softmax(x, y, n, rows, logs);
        return;
    }
    for (size_t r = 0; r < rows; r += s.rows)
        if (n < 16)
            softmax_beside(&s, x + r * n, y + r * n, rows - r);
        else
            softmax_long(ctx, x + r * n, y + r * n, n, logs);
}

void qs_softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows) {
    softmax_rows(ctx, x, y, n, rows, false);
}

static void softmax_range(const void *arg, size_t begin, size_t end) {
    const softmax_job *job = arg;
    const size_t n = job->p->shape.count, inner = job->p->shape.inner;
    const float *x = job->x;
    side_rows s = {job->ctx, n, inner, job->p->logs, 0, 0};
    void (*const turn)(const void *, size_t, void *, size_t, size_t) =
        job->ctx->kernels->u8->transpose32;
    float turned[8 * PART]; /* few columns, as rows: side by side they would fill few lanes */
    if (inner == 1) {
        softmax_rows(job->ctx, x + begin * n, job->y + begin * n, n, end - begin, job->p->logs);
        return;
    }
    for (size_t r = begin; r < end; r += s.rows) {
        const size_t at = r / inner * n * inner + r % inner, left = inner - r % inner;
        const size_t size = n * inner, again = s.logs ? size : 0; /* logs read x once more */
        if (inner < BESIDE && left == inner && left <= end - r &&
            size + again <= QS_COUNT(turned)) {
            turn(x + at, inner, turned, inner, n);
            softmax_rows(job->ctx, turned, turned + again, n, inner, s.logs);
            turn(turned + again, n, job->y + at, n, inner);
            s.rows = inner;
            continue;
        }
        softmax_beside(&s, x + at, job->y + at, left < end - r ? left : end - r);
    }
}

/* Of doubles, sums in order. */
QS_COLD static void softmax_f64(const softmax_job *job, const double *x, double *y) {
    const qs_softmax_shape *p = &job->p->shape;
    const qsim_ctx *ctx = job->ctx;
    for (size_t r = 0; r < p->outer * p->inner; r++) {
        const size_t at = r / p->inner * p->count * p->inner + r % p->inner;
        double top = x[at], sum = 0;
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            top = x[i] > top ? x[i] : top;
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            sum += qk_exp64(x[i] - top);
        for (size_t k = 0, i = at; k < p->count && !qs_stopped_at(ctx, r + k); k++, i += p->inner)
            y[i] = job->p->logs ? x[i] - top - qk_log64(sum) : qk_exp64(x[i] - top) / sum;
    }
}

static void run_softmax(const qs_step *s, const qs_frame *f) {
    const softmax_params *p = s->params;
    const softmax_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), f->ctx};
    if (!p->shape.count)
        return;
    if (p->doubles)
        softmax_f64(&job, (const void *)job.x, (void *)job.y);
    else
        qs_ranges(f->ctx, p->shape.outer * p->shape.inner, QS_GRAIN / 8 / p->shape.count + 1,
                  softmax_range, &job);
}

QS_COLD static int lower_softmax(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t axis;
    qs_infer rules;
    qs_lower_infer(l, &rules);
    int code = softmax_axis(&rules, &axis);
    if (code)
        return code;
    softmax_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->shape = qs_softmax_split(x, axis, l->node->version < 13 ? x->rank - 1 : axis);
    p->logs = l->node->op == &qs_op_log_softmax;
    p->doubles = x->dtype == QSIM_DOUBLE;
    l->step->run = run_softmax;
    return QSIM_OK;
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

static const qs_attr_rule softmax_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0}};

QS_OP(log_softmax, .name = "LogSoftmax", .min_in = 1, QS_ATTRS(softmax_attrs),
      .traits = QS_READS_EXACTLY,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_softmax);
QS_OP(softmax, .name = "Softmax", .min_in = 1, QS_ATTRS(softmax_attrs),
      .traits = QS_SOFTMAX | QS_READS_EXACTLY,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_softmax);

/* ---- Hardmax ---- */

/* 1 for the first of the greatest elements, 0 for the others. */
static void run_hardmax(const qs_step *s, const qs_frame *f) {
    const softmax_params *p = s->params;
    const size_t n = p->shape.count, inner = p->shape.inner;
    const void *x = qs_step_in(s, f, 0);
    const double one = 1;
    const float single = 1;
    const size_t bytes = p->doubles ? sizeof(one) : sizeof(single);
    char *y = qs_step_out(s, f, 0);
    for (size_t r = 0; n && r < p->shape.outer * inner; r++) {
        size_t at = r / inner * n * inner + r % inner, top = at;
        double most = 0;
        for (size_t i = 0; i < n && !qs_stopped_at(f->ctx, at); i++, at += inner) {
            const double v = p->doubles ? ((const double *)x)[at] : (double)((const float *)x)[at];
            top = i == 0 || v > most ? at : top;
            most = top == at ? v : most;
            memset(y + at * bytes, 0, bytes);
        }
        memcpy(y + top * bytes, p->doubles ? (const void *)&one : &single, bytes);
    }
}

QS_COLD static int lower_hardmax(qs_lower *l) {
    const int code = lower_softmax(l);
    l->step->run = run_hardmax;
    return code;
}

QS_OP(hardmax, .name = "Hardmax", .min_in = 1, QS_ATTRS(softmax_attrs), .traits = QS_JUMPS,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_HARDMAX, .infer = infer_softmax, .lower = lower_hardmax);
