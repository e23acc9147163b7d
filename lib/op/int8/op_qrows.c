/* SPDX-License-Identifier: MIT */
/*
 * 8-bit operators that are a float operator between DequantizeLinear and QuantizeLinear, a few rows
 * at a time: QLinearSoftmax, QLinearLayerNormalization. The same bits as of the three operators.
 */
#include <assert.h>

#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/int8/qvalue.h"
#include "op/nn/reduce.h"

/* Floats that a task processes at a time, and rows: as many as kernels take together. */
#define PART 6144
#define ROWS ((size_t)16)

typedef struct qrows_params {
    size_t count; /* elements of a row */
    size_t rows;
    int32_t inputs, from, to;
    float epsilon; /* of a normalization */
    bool bias;
    qs_softmax_shape shape; /* of a softmax */
} qrows_params;

typedef struct qrows_job {
    const qsim_ctx *ctx;
    size_t count;
    qs_q8 from, to;
    const uint8_t *x;
    uint8_t *y;
    const qk_norm *norm; /* NULL: softmax */
} qrows_job;

static void run_part(const qrows_job *j, float *part, size_t row, size_t rows) {
    const qk_u8 *k = j->ctx->kernels->u8;
    const size_t at = row * j->count, n = rows * j->count;
    k->dequantize(j->x + at, n, j->from.scale, j->from.zero_point, j->from.flip, part);
    if (j->norm)
        j->ctx->kernels->ew->normalize(j->norm, part, part, j->count, rows);
    else
        qs_softmax_rows(j->ctx, part, part, j->count, rows);
    k->quantize(part, n, j->to.scale, j->to.zero_point, j->to.flip, j->y + at);
}

static void run_range(const void *arg, size_t begin, size_t end) {
    const qrows_job *j = arg;
    const size_t fit = PART / j->count, most = fit < ROWS ? fit : ROWS;
    _Alignas(64) float part[PART];
    for (size_t r = begin, rows; r < end; r += rows) {
        rows = end - r < most ? end - r : most;
        run_part(j, part, r, rows);
    }
}

static qrows_job job_of(const qs_step *s, const qs_frame *f) {
    const qrows_params *p = s->params;
    return (qrows_job){.ctx = f->ctx,
                       .count = p->count,
                       .from = qs_q8_read(s, f, 1, 2, p->inputs, p->from),
                       .to = qs_q8_read(s, f, 3, 4, p->inputs, p->to),
                       .x = qs_step_in(s, f, 0),
                       .y = qs_step_out(s, f, 0)};
}

/* Rows that are too long for a task's memory go one after the other. */
static void run_rows(const qrows_job *j, const qs_frame *f, size_t rows) {
    if (j->count <= PART)
        qs_ranges(f->ctx, rows, QS_GRAIN / 8 / j->count + 1, run_range, j);
    for (size_t r = 0; j->count > PART && r < rows; r++)
        run_part(j, f->scratch, r, 1);
}

QS_COLD static int lower_qrows(qs_lower *l, qrows_params **out) {
    qrows_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->inputs = l->node->input_count;
    p->from = qs_lower_in(l, 0)->dtype;
    p->to = qs_lower_out(l, 0)->dtype;
    *out = p;
    return QSIM_OK;
}

/* ---- QLinearSoftmax: x, x_scale, x_zp, y_scale, y_zp ---- */

QS_COLD static int softmax_axis(const qs_infer *x, int32_t *axis) {
    int64_t opset = qs_node_int(x->node, "opset", 0);
    if (opset <= 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "opset %lld", (long long)opset);
    return qs_infer_axis(x, qs_node_int(x->node, "axis", -1), x->in[0]->rank, axis);
}

QS_COLD static int infer_qsoftmax(qs_infer *x) {
    int32_t axis;
    int code = qs_infer_qunary(x);
    return code || x->in[0]->rank < 0 ? code : softmax_axis(x, &axis);
}

static void softmax_strided(const qrows_job *j, const qs_softmax_shape *n, float *row) {
    for (size_t r = 0; r < n->outer * n->inner; r++) {
        size_t at = r / n->inner * n->count * n->inner + r % n->inner;
        assert(j->x && j->y);
        for (size_t i = 0; i < n->count; i++)
            row[i] = qs_q8_value(j->from, j->x[at + i * n->inner]);
        qs_softmax_row(j->ctx, row, row, n->count);
        for (size_t i = 0; i < n->count; i++)
            j->y[at + i * n->inner] = qs_q8_byte(j->to, row[i]);
    }
}

static void run_qsoftmax(const qs_step *s, const qs_frame *f) {
    const qrows_params *p = s->params;
    const qrows_job j = job_of(s, f);
    if (p->count == 0)
        return;
    if (p->shape.inner == 1)
        run_rows(&j, f, p->rows);
    else
        softmax_strided(&j, &p->shape, f->scratch);
}

QS_COLD static int lower_qsoftmax(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    int32_t axis;
    qs_infer rules;
    qrows_params *p;
    qs_lower_infer(l, &rules);
    int code = softmax_axis(&rules, &axis);
    if (!code)
        code = lower_qrows(l, &p);
    if (code)
        return code;
    int32_t last = qs_node_int(l->node, "opset", 13) < 13 ? x->rank - 1 : axis;
    p->shape = qs_softmax_split(x, axis, last);
    p->count = p->shape.count;
    p->rows = p->shape.outer;
    l->step->run = run_qsoftmax;
    l->step->scratch = p->count * sizeof(float);
    return QSIM_OK;
}

static const qs_attr_rule softmax_attrs[] = {{"axis", QSIM_ATTR_INT, 0, 0},
                                             {"opset", QSIM_ATTR_INT, 0, 0}};

QS_OP(qlinear_softmax, .domain = QS_DOMAIN_MICROSOFT, .name = "QLinearSoftmax", .until = 1,
      .min_in = 4, .max_in = 5, QS_ATTRS(softmax_attrs), .traits = QS_INTEGER,
      QS_MORE(.also = qs_also_axis, QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4}, .prefix = 7)),
      .axis = -1, .kernel = QS_KERNEL_QLINEAR_SOFTMAX, .infer = infer_qsoftmax,
      .lower = lower_qsoftmax);
QS_OP(qsim_qlinear_softmax, .domain = QS_DOMAIN_QSIM, .name = "QLinearSoftmax", .min_in = 4,
      .max_in = 5, QS_ATTRS(softmax_attrs), .traits = QS_INTEGER,
      QS_MORE(.also = qs_also_axis, QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4})), .axis = -1,
      .kernel = QS_KERNEL_QLINEAR_SOFTMAX, .infer = infer_qsoftmax, .lower = lower_qsoftmax);

/* ---- QLinearLayerNormalization: x, x_scale, x_zp, y_scale, y_zp, scale, bias ---- */

/* Over the last axis; a scale and a bias have its length. */
QS_COLD static int infer_qlayernorm(qs_infer *x) {
    int code = qs_infer_qunary(x);
    for (int32_t i = 5; i < x->node->input_count && !code; i++)
        code = qs_infer_type(x, i, QS_T_FLOAT);
    return code;
}

static void run_qlayernorm(const qs_step *s, const qs_frame *f) {
    const qrows_params *p = s->params;
    const qk_norm norm = {.epsilon = p->epsilon,
                          .centred = true,
                          .scale = qs_step_in(s, f, 5),
                          .bias = p->bias ? qs_step_in(s, f, 6) : NULL};
    qrows_job j = job_of(s, f);
    j.norm = &norm;
    run_rows(&j, f, p->rows);
}

QS_COLD static int lower_qlayernorm(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    qrows_params *p;
    const int code = lower_qrows(l, &p);
    if (code)
        return code;
    p->count = (size_t)x->dims[x->rank - 1].size;
    p->rows = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-5f);
    p->bias = qs_lower_in(l, 6) != NULL;
    l->step->run = run_qlayernorm;
    l->step->scratch = p->count * sizeof(float);
    return QSIM_OK;
}

static const qs_attr_rule layernorm_attrs[] = {{"axis", QSIM_ATTR_INT, 0, 0},
                                               {"epsilon", QSIM_ATTR_FLOAT, 0, 0},
                                               {"stash_type", QSIM_ATTR_INT, 0, 0}};

QS_OP(qsim_qlinear_layernorm, .domain = QS_DOMAIN_QSIM, .name = "QLinearLayerNormalization",
      .min_in = 6, .max_in = 7, QS_ATTRS(layernorm_attrs), .traits = QS_INTEGER,
      QS_MORE(QS_OPERANDS(.x = {{0, 1, 2}}, .y = {0, 3, 4})),
      .kernel = QS_KERNEL_QLINEAR_LAYER_NORMALIZATION, .infer = infer_qlayernorm,
      .lower = lower_qlayernorm);
