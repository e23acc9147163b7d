/* SPDX-License-Identifier: MIT */
/* Softmax, LogSoftmax and Hardmax. */
#include "op/rules.h"

#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
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

typedef enum softmax_kind { SOFTMAX, LOGARITHMS, HARDMAX } softmax_kind;

typedef struct softmax_params {
    qs_softmax_shape shape;
    softmax_kind kind;
    bool doubles;
    size_t rows, slices; /* rows of a block */
    size_t floats;       /* of scratch memory of a slice */
} softmax_params;

typedef struct softmax_job {
    const softmax_params *p;
    const float *x;
    float *y, *scratch;
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

/* ---- short rows: up to BESIDE of them side by side ---- */

#define BESIDE ((size_t)64)
#define UNIT   ((size_t)16)
#define SHORT  ((size_t)15) /* elements of a row */

/*
 * Rows of n <= SHORT elements that are `step` apart. If `step` is 1, the rows lie end to end; else
 * they begin one element apart.
 */
typedef struct side_rows {
    const qsim_ctx *ctx;
    size_t n, step;
    bool logs;
    size_t rows, width; /* width: rows, rounded up to a multiple of UNIT */
} side_rows;

/* part[k * width + r] = element k of row r. */
QS_NOINLINE static void get(const side_rows *s, const float *x, float *part) {
    const size_t step = s->step, rows = s->rows, width = s->width;
    if (step == 1 && rows == width) {
        s->ctx->kernels->u8->transpose32(x, s->n, part, s->n, rows);
        return;
    }
    for (size_t k = 0; k < s->n; k++, x += step, part += width)
        if (step == 1)
            for (size_t r = 0; r < rows; r++)
                part[r] = x[r * s->n];
        else
            memcpy(part, x, rows * sizeof(*x));
}

QS_NOINLINE static void put(const side_rows *s, const float *part, float *y) {
    if (s->step == 1) {
        s->ctx->kernels->u8->transpose32(part, s->width, y, s->rows, s->n);
        return;
    }
    for (size_t k = 0; k < s->n; k++, y += s->step, part += s->width)
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

/* Computes the first of `left` rows, at most BESIDE. Each element has a lane of its own. */
static void softmax_beside(side_rows *s, const float *x, float *y, size_t left) {
    float part[SHORT * BESIDE] = {0}, lanes[16 * BESIDE] = {0}, top[BESIDE];
    s->rows = left < BESIDE ? left : BESIDE;
    const size_t n = s->n, w = s->width = (s->rows + UNIT - 1) & ~(UNIT - 1);
    get(s, x, part);
    memcpy(top, part, sizeof(top));
    raise(top, 0, part, w, n, w);
    subtract(part, w, top, 0, n, w);
    s->ctx->kernels->ew->exp(part, lanes, n * w);
    if (!s->logs)
        memcpy(part, lanes, n * w * sizeof(*part));
    fold(s, lanes);
    (s->logs ? subtract : divide)(part, w, lanes, 0, n, w);
    put(s, part, y);
}

/* 1 for the first of the greatest elements, 0 for the others; no NaN is greater than another. */
static void hardmax_row(const qsim_ctx *ctx, const float *x, float *y, size_t n) {
    size_t top = 0;
    for (size_t at = 0, count; (count = qs_piece(ctx, at, n)); at += count) {
        /* A call takes longer than to look at a few, as where there is a NaN. */
        const float here = count > SHORT ? ctx->kernels->ew->greatest(x + at, count, 0) : NAN;
        size_t i = at;
        memset(y + at, 0, count * sizeof(*y));
        if (here != here)
            for (; i < at + count; i++)
                top = x[i] > x[top] ? i : top;
        if (here > x[top]) {
            while (x[i] != here)
                i++;
            top = i;
        }
    }
    y[top] = 1.0f;
}

static void softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows,
                         softmax_kind kind) {
    const bool logs = kind == LOGARITHMS;
    side_rows s = {ctx, n, 1, logs, 1, 0};
    if (kind != HARDMAX && n > SHORT && n <= (logs ? PIECE : LONG_ROW)) {
        ctx->kernels->ew->softmax(x, y, n, rows, logs);
        return;
    }
    for (size_t r = 0; r < rows; r += s.rows)
        if (kind == HARDMAX)
            hardmax_row(ctx, x + r * n, y + r * n, n);
        else if (n <= SHORT)
            softmax_beside(&s, x + r * n, y + r * n, rows - r);
        else
            softmax_long(ctx, x + r * n, y + r * n, n, logs);
}

void qs_softmax_rows(const qsim_ctx *ctx, const float *x, float *y, size_t n, size_t rows) {
    softmax_rows(ctx, x, y, n, rows, SOFTMAX);
}

/* ---- rows whose elements lie apart: blocks of them are transposed ---- */

#define BLOCK_FLOATS ((size_t)1 << 15)

/* y[r * columns + c] = x[c * line + r] for r < rows; y has `y_line` elements in a line. */
static void turn(const qsim_ctx *ctx, const float *x, size_t line, float *y, size_t y_line,
                 size_t rows, size_t columns) {
    if (columns == y_line && rows <= PIECE && columns <= PIECE) {
        ctx->kernels->u8->transpose32(x, line, y, rows, columns);
        return;
    }
    for (size_t r = 0; r < rows && !qs_stopped_at(ctx, r); r++)
        for (size_t c = 0; c < columns; c++) {
            if (qs_stopped_at(ctx, c))
                return;
            y[r * y_line + c] = x[c * line + r];
        }
}

/* Computes rows [first, first + rows), each with the bits of a row without gaps. */
static void apart(const softmax_job *job, float *scratch, size_t first, size_t rows) {
    const softmax_params *p = job->p;
    const size_t n = p->shape.count, inner = p->shape.inner;
    float *ends = scratch + n * p->rows, *from = scratch, *to = ends;
    for (size_t pass = 0; pass < 2; pass++) {
        for (size_t done = 0, w; done < rows; done += w) {
            const size_t r = first + done, i = r % inner, at = (r - i) * n + i;
            w = rows - done < inner - i ? rows - done : inner - i;
            if (pass == 0) {
                turn(job->ctx, job->x + at, inner, from + done * n, n, w, n);
            } else if (w == inner || n > PIECE) {
                turn(job->ctx, to + done * n, n, job->y + at, inner, n, w);
            } else {
                turn(job->ctx, to + done * n, n, from, w, n, w);
                qs_copy_rows(from, (ptrdiff_t)(w * sizeof(float)), job->y + at,
                             (ptrdiff_t)(inner * sizeof(float)), w * sizeof(float), n);
            }
        }
        if (pass == 0)
            softmax_rows(job->ctx, from, to, n, rows, p->kind);
    }
}

static void softmax_slice(void *arg, size_t slice) {
    const softmax_job *job = arg;
    const softmax_params *p = job->p;
    const size_t n = p->shape.count, inner = p->shape.inner, all = p->shape.outer * inner;
    const size_t end = qs_slice_begin(all, p->slices, slice + 1);
    side_rows s = {job->ctx, n, inner, p->kind == LOGARITHMS, 0, 0};
    for (size_t r = qs_slice_begin(all, p->slices, slice); r < end && !qs_stopped(job->ctx);
         r += s.rows) {
        const size_t i = r % inner, at = (r - i) * n + i;
        s.rows = end - r < p->rows ? end - r : p->rows;
        if (inner == 1)
            softmax_rows(job->ctx, job->x + at, job->y + at, n, s.rows, p->kind);
        else if (!p->floats)
            softmax_beside(&s, job->x + at, job->y + at, s.rows < inner - i ? s.rows : inner - i);
        else
            apart(job, job->scratch + slice * p->floats, r, s.rows);
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
            y[i] = job->p->kind == LOGARITHMS ? x[i] - top - qk_log64(sum)
                                              : qk_exp64(x[i] - top) / sum;
    }
}

/* Of doubles. */
QS_COLD static void hardmax_f64(const softmax_job *job, const double *x, double *y) {
    const qs_softmax_shape *p = &job->p->shape;
    for (size_t r = 0; r < p->outer * p->inner; r++) {
        size_t at = r / p->inner * p->count * p->inner + r % p->inner, top = at;
        for (size_t i = 0; i < p->count && !qs_stopped_at(job->ctx, r + i); i++, at += p->inner) {
            top = x[at] > x[top] ? at : top;
            y[at] = 0;
        }
        y[top] = 1;
    }
}

static void run_softmax(const qs_step *s, const qs_frame *f) {
    const softmax_params *p = s->params;
    softmax_job job = {p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), f->scratch, f->ctx};
    if (!p->doubles)
        qs_parallel(f->ctx, p->slices, softmax_slice, &job);
    else
        (p->kind == HARDMAX ? hardmax_f64 : softmax_f64)(&job, (const void *)job.x, (void *)job.y);
}

/* Sets the blocks of rows, and the scratch memory of those whose elements lie apart. */
QS_COLD static int softmax_blocks(qs_lower *l, softmax_params *p) {
    const qs_softmax_shape *shape = &p->shape;
    const size_t all = shape->outer * shape->inner, n = shape->count;
    const size_t fit = BLOCK_FLOATS / n & ~(UNIT - 1);
    size_t bytes = 0;
    p->rows = fit < UNIT ? UNIT : fit < BESIDE ? fit : BESIDE;
    p->rows = p->rows < all ? p->rows : all;
    p->slices = qs_slice_count(l->ctx, all, qs_real(all) * qs_real(n) / 2);
    if (shape->inner == 1 || (n <= SHORT && shape->inner >= UNIT && p->kind != HARDMAX))
        return QSIM_OK;
    p->floats = qs_align(2 * n * p->rows, UNIT);
    if (!qs_mul(p->floats, sizeof(float), &bytes) || !qs_mul(bytes, p->slices, &bytes))
        return qs_fail(l->error, QSIM_E_LIMIT, "a softmax is too large");
    l->step->scratch = bytes;
    return QSIM_OK;
}

QS_COLD static int lower_kind(qs_lower *l, softmax_kind kind) {
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
    p->kind = kind;
    p->doubles = x->dtype == QSIM_DOUBLE;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(x) == 0)
        return QSIM_OK;
    l->step->run = run_softmax;
    return softmax_blocks(l, p);
}

QS_COLD static int lower_softmax(qs_lower *l) {
    return lower_kind(l, SOFTMAX);
}
QS_COLD static int lower_logarithms(qs_lower *l) {
    return lower_kind(l, LOGARITHMS);
}
QS_COLD static int lower_hardmax(qs_lower *l) {
    return lower_kind(l, HARDMAX);
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
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_logarithms);
QS_OP(softmax, .name = "Softmax", .min_in = 1, QS_ATTRS(softmax_attrs),
      .traits = QS_SOFTMAX | QS_READS_EXACTLY,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_SOFTMAX, .infer = infer_softmax, .lower = lower_softmax);

QS_OP(hardmax, .name = "Hardmax", .min_in = 1, QS_ATTRS(softmax_attrs), .traits = QS_JUMPS,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_softmax), .also = qs_also_axis), .axis = -1,
      .kernel = QS_KERNEL_HARDMAX, .infer = infer_softmax, .lower = lower_hardmax);
