/* SPDX-License-Identifier: MIT */
/*
 * MatMulInteger and ConvInteger with the scaling that dynamic quantization puts after them:
 *
 *     y = (float)sum * (x_scale * w_scale[c]) + bias[c]       or, with `rows`,
 *     y = (float)sum * w_scale[c] * x_scale[r] + bias[c]
 *
 * clamped to lo and hi, in this order, without contraction: the bits of Cast, Mul and Add. Then the
 * operations of op/nn/finish.h follow.
 * Inputs 0 to 3 are those of the integer operator; 4: x_scale, one element or one per row (for a
 * convolution: per image); 5: w_scale and 6 (optional): bias, one element per column, integers of
 * which are added to the sums; 7 (optional): a tensor added to the results; 8: see scaled.h.
 *
 * The product's kernels compute the floats. If they cannot, as with `rows`, sums are first stored
 * in the output's memory, or in scratch memory if the results go into a larger tensor.
 */
#include "op/int8/scaled.h"

#include <math.h>

#include "base/ctx.h"
#include "kernel/table.h"
#include "op/nn/finish.h"
#include "op/int8/int8_op.h"
#include "op/nn/window.h"

extern const qs_op qs_op_matmulinteger, qs_op_qsim_convinteger;

static bool is_conv(const qs_node *n) {
    return n->op_type[0] == 'C';
}

/* The operator that computes the sums. */
static const qs_op *sums_of(const qs_node *n) {
    return is_conv(n) ? &qs_op_qsim_convinteger : &qs_op_matmulinteger;
}

QS_COLD static int64_t columns_of(const qs_infer *x, const qs_value *y) {
    bool first = is_conv(x->node) && !qs_node_int(x->node, "channels_last", 0);
    if (y->rank < 2)
        return y->rank == 1 && !is_conv(x->node) ? y->dims[0].size : -1;
    return first ? y->dims[1].size : y->dims[y->rank - 1].size;
}

QS_COLD static int infer_scaled(qs_infer *x) {
    int code = sums_of(x->node)->infer(x);
    for (int32_t i = 4; i < 7 && !code; i++)
        code = qs_infer_type(x, i, i == QS_I8_ADD ? QS_T_FLOAT | QS_T(QSIM_INT32) : QS_T_FLOAT);
    for (int32_t i = 5; i < 7 && !code; i++)
        code = qs_infer_count(x, i, columns_of(x, &x->out[0]));
    if (!code)
        x->out[0].dtype = QSIM_FLOAT;
    code = code ? code : qs_finish_infer(x, QS_SCALED_OTHER);
    return code ? code : qs_window_into(x, QS_SCALED_OVER);
}

QS_COLD static int pack_scaled(qs_pack *p) {
    int code = sums_of(p->node)->more->pack(p);
    return code ? code : qs_i8_pack_floats(p);
}

typedef struct scale_plan {
    const qk_ew *k;
    size_t rows, columns, same; /* same: rows that share an x_scale */
    float lo, hi;
    bool bias, integers; /* integers are added to the sums */
    bool by_row;         /* (sum * w_scale) * x_scale, else sum * (x_scale * w_scale) */
    qs_finish end;
    size_t into, column; /* larger tensor: floats per pixel, index of the first result */
} scale_plan;

typedef struct scale_job {
    const scale_plan *p;
    const float *x_scale, *w_scale, *bias;
    const float *other;
    float *y;     /* the sums, then the results */
    float *whole; /* with `into`: the larger tensor, which gets the results */
} scale_job;

typedef struct scaled_params {
    qs_step sums;
    scale_plan scaled;
    size_t bytes; /* with `into`: of the sums; the product's own scratch memory follows */
} scaled_params;

/* Floats of narrow rows that one call of the kernel scales. */
#define BLOCK 256

/* Fills `to` with copies of the row; NULL stays NULL. */
static const float *tile_row(const float *row, size_t n, size_t rows, float *to) {
    for (size_t r = 0; row && r < rows; r++)
        memcpy(to + r * n, row, n * sizeof(*row));
    return row ? to : NULL;
}

/* Scales narrow rows many at a time: one row's masked store would delay the next row's load. */
static void scale_rows(const void *arg, size_t begin, size_t end) {
    const scale_job *s = arg;
    const scale_plan *p = s->p;
    const size_t n = p->columns, same = p->same;
    const size_t narrow = p->into ? BLOCK / 4 : BLOCK / 2;
    const size_t most = n < narrow && same > 1 && end - begin > 1 ? BLOCK / n : 1;
    float scales[BLOCK], biases[BLOCK];
    qk_scale how = {.lo = p->lo,
                    .hi = p->hi,
                    .scale = most > 1 ? tile_row(s->w_scale, n, most, scales) : s->w_scale,
                    .bias = most > 1 ? tile_row(s->bias, n, most, biases) : s->bias,
                    .rows = p->by_row};
    for (size_t r = begin, rows; r < end; r += rows) {
        rows = same - r % same < end - r ? same - r % same : end - r;
        rows = rows < most ? rows : most;
        how.factor = s->x_scale[r / same];
        float *const place = p->into ? s->whole + r * p->into + p->column : NULL;
        float *const y = place && most == 1 ? place : s->y + r * n;
        p->k->scale(s->y + r * n, &how, y, rows * n);
        qs_finish_run(&p->end, y, p->end.sum ? s->other + r * n : NULL, y, rows * n);
        if (place && most > 1)
            qs_copy_rows(y, (ptrdiff_t)(4 * n), place, (ptrdiff_t)(4 * p->into), 4 * n, rows);
    }
}

static scale_job job_of(const scale_plan *p, const qs_step *s, const qs_frame *f) {
    return (scale_job){.p = p,
                       .x_scale = qs_step_in(s, f, 4),
                       .w_scale = qs_step_in(s, f, 5),
                       .bias = p->bias ? qs_step_in(s, f, 6) : NULL,
                       .other = p->end.sum ? qs_step_in(s, f, QS_SCALED_OTHER) : NULL,
                       .y = qs_step_out(s, f, 0)};
}

/* Applies the operations of op/nn/finish.h to a block of floats. */
static void finish_block(const void *arg, const qs_conv_i8_block *block) {
    const scale_job *s = arg;
    const bool one = block->y_stride == block->n && block->stride == block->n;
    const size_t rows = one ? 1 : block->rows, n = (one ? block->rows : 1) * block->n / 4;
    for (size_t r = 0; r < rows; r++) {
        float *y = (float *)(void *)(block->y + r * block->y_stride);
        const size_t at = (block->at + r * block->stride) / 4;
        qs_finish_run(&s->p->end, y, s->p->end.sum ? s->other + at : NULL, y, n);
    }
}

static void run_direct(const qs_step *s, const qs_frame *f) {
    const scaled_params *p = s->params;
    const scale_job job = job_of(&p->scaled, s, f);
    qs_i8_run(&p->sums, f, &job);
}

static void scale_sums(const scaled_params *p, const qs_frame *f, const scale_job *job) {
    const scale_plan *scaled = &p->scaled;
    p->sums.run(&p->sums, f);
    qs_ranges(f->ctx, scaled->rows, QS_GRAIN / 4 / (scaled->columns + 1) + 1, scale_rows, job);
}

static void run_scaled(const qs_step *s, const qs_frame *f) {
    const scaled_params *p = s->params;
    const scale_job job = job_of(&p->scaled, s, f);
    scale_sums(p, f, &job);
}

/* Values of the step that computes only the sums: inputs 0 to 3 and 6, then the output. */
static const qs_id own_ids[] = {0, 1, 2, 3, QS_NONE, QS_NONE, 4, 5};
#define OWN 5

static void run_scaled_into(const qs_step *s, const qs_frame *f) {
    const scaled_params *p = s->params;
    scale_job job = job_of(&p->scaled, s, f);
    void *own_address[1 + OWN + 1] = {NULL}, **address = own_address + 1;
    for (int32_t i = 0; i < OWN; i++) {
        const int32_t from = i < 4 ? i : p->scaled.integers ? QS_I8_ADD : 0;
        address[i] = f->address[s->in[from]];
    }
    address[OWN] = f->scratch;
    const qs_frame own = {.ctx = f->ctx,
                          .address = address,
                          .scratch = (char *)f->scratch + p->bytes,
                          .fault = f->fault};
    job.whole = job.y;
    job.y = f->scratch;
    scale_sums(p, &own, &job);
}

QS_COLD static int make_scaled(const qs_lower *l, scale_plan *s) {
    const qs_value *y = qs_lower_out(l, 0), *bias = qs_lower_in(l, QS_I8_ADD);
    qs_infer x;
    qs_lower_infer(l, &x);
    size_t scales = qs_value_elements(qs_lower_in(l, 4)), elements = qs_value_elements(y);
    const int64_t into = qs_node_int(l->node, "into", 0);
    *s = (scale_plan){.k = l->ctx->kernels->ew,
                      .columns =
                          into ? qs_value_elements(qs_lower_in(l, 5)) : (size_t)columns_of(&x, y),
                      .into = (size_t)into,
                      .column = (size_t)qs_node_int(l->node, "column", 0),
                      .lo = qs_node_float(l->node, "lo", -INFINITY),
                      .hi = qs_node_float(l->node, "hi", INFINITY),
                      .bias = bias && bias->dtype == QSIM_FLOAT,
                      .integers = bias && bias->dtype == QSIM_INT32,
                      .by_row = qs_node_int(l->node, "rows", 0) != 0,
                      .end = qs_finish_lower(l, QS_SCALED_OTHER)};
    s->rows = s->columns ? elements / (into ? s->into : s->columns) : 0;
    s->same = scales ? s->rows / scales : 0;
    if (s->rows && (!scales || s->rows % scales))
        return qs_infer_fail(&x, QSIM_E_SHAPE, "%zu scales for %zu rows", scales, s->rows);
    return QSIM_OK;
}

/* Lowers results that go into a larger tensor: sums are in the step's scratch memory. */
QS_COLD static int lower_into(qs_lower *l, scaled_params *p) {
    size_t bytes;
    if (!qs_mul(p->scaled.rows, 4 * p->scaled.columns, &bytes) || bytes > SIZE_MAX / 4 ||
        !qs_add(p->bytes = qs_align(bytes + 64, 64), p->sums.scratch, &l->step->scratch))
        return qs_scratch_too_large(l->error);
    p->sums.in = own_ids;
    p->sums.out = own_ids + QS_COUNT(own_ids) - 1;
    l->step->run = run_scaled_into;
    return QSIM_OK;
}

/* Describes the results that the kernels compute. */
static qs_i8_floats floats_of(const scale_plan *s) {
    const bool end = s->end.first.fn || s->end.sum || s->end.curve.fn;
    return (qs_i8_floats){.integers = s->integers,
                          .low = s->lo,
                          .high = s->hi,
                          .into = (int32_t)s->into,
                          .column = (int32_t)s->column,
                          .after = end ? finish_block : NULL};
}

QS_COLD static int lower_scaled(qs_lower *l) {
    scale_plan scaled;
    int code = make_scaled(l, &scaled);
    if (code)
        return code;
    const qs_i8_floats how = floats_of(&scaled);
    code = is_conv(l->node) ? qs_convinteger_lower(l, &how) : qs_matmulinteger_lower(l, &how);
    if (code)
        return code;
    const qs_step sums = *l->step;
    const qs_i8_plan *plan = sums.params;
    scaled_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    *p = (scaled_params){sums, scaled, 0};
    l->step->run = plan->floats.direct ? run_direct : run_scaled;
    if (l->node->input_count > QS_SCALED_OVER && qs_lower_in(l, QS_SCALED_OVER))
        l->step->reuses = QS_SCALED_OVER;
    return scaled.into && !plan->floats.direct ? lower_into(l, p) : QSIM_OK;
}

static const qs_attr_rule scaled_attrs[] = {
    {"rows", QSIM_ATTR_INT, 0, 0},
    {"lo", QSIM_ATTR_FLOAT, 0, 0},
    {"hi", QSIM_ATTR_FLOAT, 0, 0},
    QS_FINISH_ATTRS,
    {"channels_last", QSIM_ATTR_INT, 0, 0}, /* from here on only for convolutions */
    QS_INTO_ATTRS,
    QS_CONV_ATTRS(0),
};
#define PRODUCT_ATTRS 7

QS_OP(qsim_matmulinteger_scaled, .domain = QS_DOMAIN_QSIM, .name = "MatMulIntegerScaled",
      .min_in = 6, .max_in = QS_SCALED_OTHER + 1, .attrs = scaled_attrs,
      .attr_count = PRODUCT_ATTRS, .traits = QS_MULTIPLIES | QS_INTEGER | QS_TAKES_BOUNDS,
      .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3}),
              .pack = pack_scaled),
      .macs = QS_MACS_PRODUCT, .kernel = QS_KERNEL_GEMM_INT8, .infer = infer_scaled,
      .lower = lower_scaled);

QS_OP(qsim_convinteger_scaled, .domain = QS_DOMAIN_QSIM, .name = "ConvIntegerScaled", .min_in = 6,
      .max_in = QS_SCALED_OVER + 1, QS_ATTRS(scaled_attrs),
      .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_INTEGER | QS_TAKES_BOUNDS,
      .weight_inputs = 1 << 1,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 2}}, .w = {1, QS_NO_SCALE, 3}),
              .pack = pack_scaled),
      .macs = QS_MACS_CONV, .over = QS_SCALED_OVER, .kernel = QS_KERNEL_GEMM_INT8,
      .infer = infer_scaled, .lower = lower_scaled);
