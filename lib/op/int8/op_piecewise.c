/* SPDX-License-Identifier: MIT */
/*
 * QPiecewise: a function of two lines for each channel on uint8, as PRelu and BatchNormalization
 * between DequantizeLinear and QuantizeLinear are (pass/qdq/qdq_piecewise.c). Inputs:
 *
 *   x, x_zero_point, y_zero_point, and floats for each channel: below, above, offset
 *
 * The formula: qk_piecewise. Attribute axis: that of channels; lo, hi: bounds of the results.
 */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/table.h"
#include "kernel/u8.h"
#include "op/int8/qvalue.h"

QS_COLD static int infer_piecewise(qs_infer *x) {
    const qs_value *in = x->in[0];
    int32_t axis = 0;
    int code = qs_infer_type(x, 0, QS_T(QSIM_UINT8));
    for (int32_t i = 1; i < 3 && !code; i++)
        code = qs_infer_type(x, i, QS_T(QSIM_UINT8));
    for (int32_t i = 1; i < 3 && !code; i++)
        code = qs_infer_count(x, i, 1);
    if (!code && in->rank >= 0)
        code = qs_infer_axis(x, qs_node_int(x->node, "axis", 1), in->rank, &axis);
    for (int32_t i = 3; i < 6 && !code; i++)
        code = qs_infer_type(x, i, QS_T_FLOAT);
    for (int32_t i = 3; i < 6 && !code; i++)
        code = qs_infer_count(x, i, in->rank < 0 ? -1 : in->dims[axis].size);
    return code ? code : qs_infer_out(x, 0, QSIM_UINT8, in->rank, in->dims);
}

/* Bytes of a row: narrower ones are several pixels. */
#define MANY ((size_t)256)

typedef struct piecewise_plan {
    size_t outer, channels, inner; /* x is [outer, channels, inner] */
    size_t copies;                 /* of the lines, so that few channels make a long row */
    int32_t lo, hi;
} piecewise_plan;

typedef struct piecewise_job {
    const qsim_ctx *ctx;
    const piecewise_plan *p;
    qk_piecewise w;
    const uint8_t *x;
    uint8_t *y;
} piecewise_job;

/* Fills `to` with `all` numbers, the n of `from` again and again. */
static const float *copy_many(float *to, const float *from, size_t n, size_t all) {
    for (size_t i = 0; i < all; i++)
        to[i] = from[i % n];
    return to;
}

/* Computes n bytes from `at` on, in rows of `row` and a shorter last one. */
static void run_rows(const piecewise_job *j, const qk_piecewise *w, size_t at, size_t row,
                     size_t n) {
    const qk_piecewise_fn fn = j->ctx->kernels->u8->piecewise;
    const size_t rest = n % row, last = at + n - rest;
    fn(w, j->x + at, j->y + at, row, n / row);
    fn(w, j->x + last, j->y + last, rest, 1);
}

/* Computes planes [begin, end), each of one channel, in rows that have its lines again and again.
 */
static void planes(const void *arg, size_t begin, size_t end) {
    const piecewise_job *j = arg;
    const size_t inner = j->p->inner, row = inner < MANY ? inner : MANY;
    float lines[3][MANY];
    for (size_t i = begin; i < end; i++) {
        const size_t c = i % j->p->channels;
        qk_piecewise w = j->w;
        w.below = copy_many(lines[0], w.below + c, 1, row);
        w.above = copy_many(lines[1], w.above + c, 1, row);
        w.offset = copy_many(lines[2], w.offset + c, 1, row);
        for (size_t at = 0, n; (n = qs_piece(j->ctx, at, inner)); at += n)
            run_rows(j, &w, i * inner + at, row, n);
    }
}

/* Computes pixels [begin, end), each of all channels, as many in a row as there are copies. */
static void pixels(const void *arg, size_t begin, size_t end) {
    const piecewise_job *j = arg;
    const size_t channels = j->p->channels;
    run_rows(j, &j->w, begin * channels, j->p->copies * channels, (end - begin) * channels);
}

static void run_piecewise(const qs_step *s, const qs_frame *f) {
    const piecewise_plan *p = s->params;
    const int32_t zy = *(const uint8_t *)qs_step_in(s, f, 2);
    const float *line[3];
    for (int32_t i = 0; i < 3; i++) {
        const size_t n = p->copies * p->channels;
        line[i] = qs_step_in(s, f, 3 + i);
        if (p->copies > 1)
            line[i] = copy_many((float *)f->scratch + (size_t)i * n, line[i], p->channels, n);
    }
    const piecewise_job j = {.ctx = f->ctx,
                             .p = p,
                             .w = {.below = line[0],
                                   .above = line[1],
                                   .offset = line[2],
                                   .zx = *(const uint8_t *)qs_step_in(s, f, 1),
                                   .zy = zy,
                                   .lo = (float)(p->lo - zy),
                                   .hi = (float)(p->hi - zy)},
                             .x = qs_step_in(s, f, 0),
                             .y = qs_step_out(s, f, 0)};
    if (p->inner == 1)
        qs_ranges(f->ctx, p->outer, QS_GRAIN / p->channels + 1, pixels, &j);
    else
        qs_ranges(f->ctx, p->outer * p->channels, QS_GRAIN / p->inner + 1, planes, &j);
}

QS_COLD static int lower_piecewise(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    piecewise_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(x) == 0)
        return QSIM_OK;
    const int64_t at = qs_node_int(l->node, "axis", 1);
    const int32_t axis = (int32_t)(at < 0 ? at + x->rank : at);
    p->outer = (size_t)qs_dims_product(x->dims, 0, axis);
    p->channels = (size_t)x->dims[axis].size;
    p->inner = (size_t)qs_dims_product(x->dims, axis + 1, x->rank);
    const bool few = p->inner == 1 && p->channels < MANY && p->outer >= MANY;
    p->copies = few ? MANY / p->channels : 1;
    qs_q8_limits(l->node, QSIM_UINT8, &p->lo, &p->hi);
    l->step->scratch = few ? 3 * p->copies * p->channels * sizeof(float) : 0;
    l->step->run = run_piecewise;
    l->step->in_place = 1;
    return QSIM_OK;
}

static const qs_attr_rule piecewise_attrs[] = {
    {"axis", QSIM_ATTR_INT, 0, 0}, {"lo", QSIM_ATTR_INT, 0, 0}, {"hi", QSIM_ATTR_INT, 0, 0}};

QS_OP(qsim_piecewise, .domain = QS_DOMAIN_QSIM, .name = "QPiecewise", .min_in = 6,
      QS_ATTRS(piecewise_attrs), .traits = QS_ALONG_AXIS | QS_INTEGER | QS_READS_EXACTLY,
      QS_MORE(QS_OPERANDS(.x = {{0, QS_NO_SCALE, 1}}, .y = {0, QS_NO_SCALE, 2})), .axis = 1,
      .setting_inputs = 7 << 3, .kernel = QS_KERNEL_PIECEWISE, .infer = infer_piecewise,
      .lower = lower_piecewise);
