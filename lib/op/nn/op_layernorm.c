/* SPDX-License-Identifier: MIT */
/*
 * LayerNormalization over the axes from `axis` on: y = (x - mean) / sqrt(var + epsilon) * scale +
 * bias. Both sums are trees over 16 lanes, the variance has a pass of its own, and the division is
 * one multiplication with the reciprocal, which is an output too.
 */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"

#include <math.h>

/* First normalized axis; a parameter has the shape of the axes from there on, or one element. */
QS_COLD static int check_parameter(const qs_infer *x, int32_t index, int64_t count) {
    const qs_value *v = qs_infer_in(x, index);
    int64_t n = v && v->rank >= 0 ? qs_dims_product(v->dims, 0, v->rank) : -1;
    if (n < 0 || count < 0 || n == count || n == 1)
        return QSIM_OK;
    return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %lld elements, expected %lld", (int)index,
                         (long long)n, (long long)count);
}

QS_COLD static int infer_layernorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    int64_t stash = qs_node_int(x->node, "stash_type", QSIM_FLOAT);
    int32_t axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_type(x, i, QS_T_FLOAT);
    if (!code && stash != QSIM_FLOAT)
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "stash_type is %lld", (long long)stash);
    if (code)
        return code;
    if (v->rank >= 0)
        code = qs_infer_axis(x, qs_node_int(x->node, "axis", -1), v->rank, &axis);
    for (int32_t i = 1; i < 3 && !code && v->rank >= 0; i++)
        code = check_parameter(x, i, qs_dims_product(v->dims, axis, v->rank));
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < axis ? v->dims[i] : (qs_dim){1, NULL};
    if (!code)
        code = qs_infer_like(x, 0, 0);
    for (int32_t i = 1; i < 3 && !code; i++)
        code = qs_infer_out(x, i, QSIM_FLOAT, v->rank, dims);
    return code;
}

typedef struct layernorm_params {
    size_t rows, count;
    float epsilon;
    bool scalar_scale, scalar_bias, simple;
    int32_t inputs, outputs;
} layernorm_params;

typedef struct layernorm_job {
    const layernorm_params *p;
    const qk_ew *k;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse;
} layernorm_job;

static void layernorm_rows(const void *arg, size_t begin, size_t end) {
    const layernorm_job *job = arg;
    const layernorm_params *p = job->p;
    const size_t n = p->count;
    for (size_t r = begin; r < end; r++) {
        const float *x = job->x + r * n;
        float *y = job->y + r * n;
        float mean = job->k->sum(x, 0, n) / (float)n;
        float variance = job->k->sum_squares(x, mean, n) / (float)n;
        float inverse = 1.0f / sqrtf(variance + p->epsilon);
        if (p->simple)
            job->k->normalize(x, mean, inverse, job->scale, job->bias, y, n);
        else
            for (size_t i = 0; i < n; i++) {
                float v = (x[i] - mean) * inverse * job->scale[p->scalar_scale ? 0 : i];
                y[i] = job->bias ? v + job->bias[p->scalar_bias ? 0 : i] : v;
            }
        if (job->mean)
            job->mean[r] = mean;
        if (job->inverse)
            job->inverse[r] = inverse;
    }
}

static void run_layernorm(const qs_step *s, const qs_frame *f) {
    const layernorm_params *p = s->params;
    layernorm_job job = {p,
                         f->ctx->kernels->ew,
                         qs_step_in(s, f, 0),
                         qs_step_in(s, f, 1),
                         p->inputs > 2 ? qs_step_in(s, f, 2) : NULL,
                         qs_step_out(s, f, 0),
                         p->outputs > 1 ? qs_step_out(s, f, 1) : NULL,
                         p->outputs > 2 ? qs_step_out(s, f, 2) : NULL};
    if (p->count)
        qs_ranges(f->ctx, p->rows, QS_GRAIN / 2 / p->count + 1, layernorm_rows, &job);
}

QS_COLD static int lower_layernorm(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *bias = qs_lower_in(l, 2);
    qs_infer rules;
    int32_t axis = 0;
    qs_lower_infer(l, &rules);
    int code = qs_infer_axis(&rules, qs_node_int(l->node, "axis", -1), x->rank, &axis);
    if (code)
        return code;
    layernorm_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rows = (size_t)qs_dims_product(x->dims, 0, axis);
    p->count = (size_t)qs_dims_product(x->dims, axis, x->rank);
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-5f);
    p->scalar_scale = qs_value_elements(qs_lower_in(l, 1)) == 1;
    p->scalar_bias = bias && qs_value_elements(bias) == 1;
    p->simple = p->count == 1 || (!p->scalar_scale && !p->scalar_bias);
    p->inputs = l->node->input_count;
    p->outputs = l->node->output_count;
    l->step->run = run_layernorm;
    l->step->kernel = "layer normalization";
    return QSIM_OK;
}

static const qs_attr_rule layernorm_attrs[] = {{"axis", QS_ATTR_INT, 17, 0},
                                               {"epsilon", QS_ATTR_FLOAT, 17, 0},
                                               {"stash_type", QS_ATTR_INT, 17, 0}};

QS_OP(layernorm, .name = "LayerNormalization", .since = 17, .min_in = 2, .max_in = 3, .max_out = 3,
      QS_ATTRS(layernorm_attrs), .traits = QS_PLAIN, .infer = infer_layernorm,
      .lower = lower_layernorm);
