/* SPDX-License-Identifier: MIT */
/*
 * SkipLayerNormalization and SkipSimplifiedLayerNormalization of ONNX Runtime: the sum of input,
 * skip and possibly a bias, in this order, normalized over its last axis; output 3 is the sum.
 * Inputs: input, skip, gamma, (with LayerNormalization) beta, bias.
 */
#include "op/expand.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

#include <math.h>

enum { X, SKIP, GAMMA, NEXT };
enum { Y, MEAN, INVERSE, SUM };

static bool is_centred(const qs_node *n) {
    return strcmp(n->op_type, "SkipLayerNormalization") == 0;
}

/* Checks that skip has the input's shape, or that without the batch axis. */
static int check_skip(const qs_infer *x) {
    const qs_value *v = x->in[X], *skip = x->in[SKIP];
    if (v->rank < 0 || skip->rank < 0)
        return QSIM_OK;
    bool fits = v->rank >= 2 && (skip->rank == v->rank || skip->rank == v->rank - 1);
    for (int32_t i = 1; i <= skip->rank && fits; i++) {
        const int64_t a = v->dims[v->rank - i].size, b = skip->dims[skip->rank - i].size;
        fits = a < 0 || b < 0 || a == b || (i == v->rank && i > 2 && b == 1);
    }
    return fits ? QSIM_OK : qs_infer_fail(x, QSIM_E_SHAPE, "input and skip do not fit each other");
}

static int infer_skipnorm(qs_infer *x) {
    const qs_value *v = x->in[X];
    qs_dim dims[QSIM_MAX_RANK];
    int code = QSIM_OK;
    for (int32_t i = 0; i < x->node->input_count && !code; i++)
        code = qs_infer_in(x, i) ? qs_infer_type(x, i, QS_T_FLOAT) : QSIM_OK;
    if (!code)
        code = check_skip(x);
    for (int32_t i = GAMMA; i < x->node->input_count && !code && v->rank > 0; i++)
        code = qs_infer_list(x, i, v->dims[v->rank - 1].size);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < v->rank - 1 ? v->dims[i] : (qs_dim){1, NULL};
    if (!code)
        code = qs_infer_like(x, Y, X);
    for (int32_t i = MEAN; i <= INVERSE && !code; i++)
        code = qs_infer_out(x, i, QSIM_FLOAT, v->rank, dims);
    return code ? code : qs_infer_like(x, SUM, X);
}

typedef struct skip_params {
    size_t rows, skip_rows, count;
    float epsilon;
    bool centred;
    int32_t beta, bias, mean, inverse, sum; /* indices of inputs and outputs; 0: none */
} skip_params;

typedef struct skip_job {
    const skip_params *p;
    const qsim_ctx *ctx;
    const float *x, *skip, *gamma, *beta, *bias;
    float *y, *mean, *inverse, *sum;
} skip_job;

static void add_row(const skip_job *j, size_t r, float *sum) {
    const size_t n = j->p->count;
    const float *x = j->x + r * n, *skip = j->skip + r % j->p->skip_rows * n;
    for (size_t at = 0, count; (count = qs_piece(j->ctx, at, n)); at += count)
        for (size_t i = at; i < at + count; i++) {
            const float v = x[i] + skip[i];
            sum[i] = j->bias ? v + j->bias[i] : v;
        }
}

#define ROWS ((size_t)8) /* at a time: they stay in the first-level cache */

static void skip_rows(const void *arg, size_t begin, size_t end) {
    const skip_job *j = arg;
    const skip_params *p = j->p;
    const size_t n = p->count;
    for (size_t at = begin, rows; at < end; at += rows) {
        float *y = j->y + at * n, *sums = j->sum ? j->sum + at * n : y;
        const qk_norm how = {.epsilon = p->epsilon,
                             .centred = p->centred,
                             .scale = j->gamma,
                             .bias = j->beta,
                             .mean = j->mean ? j->mean + at : NULL,
                             .inverse = j->inverse ? j->inverse + at : NULL};
        rows = end - at < ROWS ? end - at : ROWS;
        for (size_t r = 0; r < rows; r++)
            add_row(j, at + r, sums + r * n);
        qs_normalize(j->ctx, &how, sums, y, n, rows);
    }
}

static void run_skipnorm(const qs_step *s, const qs_frame *f) {
    const skip_params *p = s->params;
    const skip_job j = {.p = p,
                        .ctx = f->ctx,
                        .x = qs_step_in(s, f, X),
                        .skip = qs_step_in(s, f, SKIP),
                        .gamma = qs_step_in(s, f, GAMMA),
                        .beta = p->beta ? qs_step_in(s, f, p->beta) : NULL,
                        .bias = p->bias ? qs_step_in(s, f, p->bias) : NULL,
                        .y = qs_step_out(s, f, Y),
                        .mean = p->mean ? qs_step_out(s, f, p->mean) : NULL,
                        .inverse = p->inverse ? qs_step_out(s, f, p->inverse) : NULL,
                        .sum = p->sum ? qs_step_out(s, f, p->sum) : NULL};
    if (p->count && p->skip_rows)
        qs_ranges(f->ctx, p->rows, QS_GRAIN / 2 / p->count + 1, skip_rows, &j);
}

static int lower_skipnorm(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, X);
    skip_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->centred = is_centred(l->node);
    p->count = (size_t)x->dims[x->rank - 1].size;
    p->rows = (size_t)qs_dims_product(x->dims, 0, x->rank - 1);
    p->skip_rows = p->count ? qs_value_elements(qs_lower_in(l, SKIP)) / p->count : 0;
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-12f);
    p->beta = p->centred && qs_lower_in(l, NEXT) ? NEXT : 0;
    p->bias = qs_lower_in(l, NEXT + p->centred) ? NEXT + p->centred : 0;
    p->mean = qs_lower_out(l, MEAN) ? MEAN : 0;
    p->inverse = qs_lower_out(l, INVERSE) ? INVERSE : 0;
    p->sum = qs_lower_out(l, SUM) ? SUM : 0;
    l->step->run = run_skipnorm;
    return QSIM_OK;
}

/* Of files that are to have operators of ONNX alone: sums and a normalization. */
static void expand_skipnorm(qs_expand *e) {
    const qs_node n = *e->node;
    const bool centred = is_centred(&n), statistics = n.output_count > MEAN && !centred;
    const qs_id bias = qs_expand_in(e, NEXT + centred);
    qs_id in[3] = {QS_NONE, qs_expand_in(e, GAMMA), centred ? qs_expand_in(e, NEXT) : QS_NONE};
    if (!e->only_onnx || (statistics && n.outputs[MEAN] != QS_NONE))
        return;
    in[0] = qs_expand_two(e, "Add", qs_expand_in(e, X), qs_expand_in(e, SKIP));
    if (bias != QS_NONE)
        in[0] = qs_expand_two(e, "Add", in[0], bias);
    e->out[SUM] = in[0];
    const qs_id y =
        qs_expand_many(e, centred ? "LayerNormalization" : "SimplifiedLayerNormalization", in,
                       in[2] == QS_NONE ? 2 : 3, centred ? 3 : 2);
    qs_expand_float(e, y, "epsilon", qs_node_float(&n, "epsilon", 1e-12f));
    qs_expand_int(e, y, "axis", -1);
    for (int32_t i = 0; i < (centred ? 3 : 1) && !e->code; i++)
        e->out[i] = y + i;
    if (!centred && !e->code)
        e->out[INVERSE] = y + 1;
}

static const qs_attr_rule skip_attrs[] = {{"epsilon", QSIM_ATTR_FLOAT, 1, 0}};

QS_OP(ms_skipnorm, .domain = QS_DOMAIN_MICROSOFT, .name = "SkipLayerNormalization", .min_in = 3,
      .max_in = 5, .max_out = 4, QS_ATTRS(skip_attrs), .traits = QS_PLAIN,
      .gain_inputs = 1 << 2 | 1 << 3, .kernel = QS_KERNEL_LAYER_NORMALIZATION,
      .infer = infer_skipnorm, .lower = lower_skipnorm, .expand = expand_skipnorm);
QS_OP(ms_simplified_skipnorm, .domain = QS_DOMAIN_MICROSOFT,
      .name = "SkipSimplifiedLayerNormalization", .min_in = 3, .max_in = 4, .max_out = 4,
      QS_ATTRS(skip_attrs), .traits = QS_PLAIN, .gain_inputs = 1 << 2,
      .kernel = QS_KERNEL_LAYER_NORMALIZATION, .infer = infer_skipnorm, .lower = lower_skipnorm,
      .expand = expand_skipnorm);
