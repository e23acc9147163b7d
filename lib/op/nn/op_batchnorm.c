/* SPDX-License-Identifier: MIT */
/*
 * BatchNormalization for inference: y = (x - mean) * a + b with a = scale / sqrt(var + epsilon),
 * in float, in this order. Executed in either layout.
 */
#include <math.h>

#include "op/rules.h"

/* Up to opset 6 `is_test`, from 14 on `training_mode` tells inference from training. */
QS_COLD static int check_mode(const qs_infer *x) {
    const int32_t version = x->node->domain[0] ? 15 : x->node->version;
    if (version < 7 && !qs_node_int(x->node, "is_test", 0))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "is_test is 0: training is not supported");
    if (qs_node_int(x->node, "training_mode", 0))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "training_mode is 1, which is not supported");
    if (!qs_node_int(x->node, "spatial", 1))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "spatial is 0, which is not supported");
    for (int32_t i = 1; i < x->node->output_count; i++)
        if (x->node->outputs[i] != QS_NONE)
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "output %d exists in training only",
                                 (int)i);
    return QSIM_OK;
}

QS_COLD static int infer_batchnorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    int code = check_mode(x);
    for (int32_t i = 0; i < 5 && !code; i++)
        code = qs_infer_type(x, i, QS_T_FLOAT);
    if (code || v->rank < 0)
        return code ? code : qs_infer_out(x, 0, QSIM_FLOAT, -1, NULL);
    if (v->rank < 2)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the input has rank %d, expected 2 or more",
                             (int)v->rank);
    const bool last = qs_node_int(x->node, "channels_last", 0) != 0;
    const int64_t channels = v->dims[last ? v->rank - 1 : 1].size;
    for (int32_t i = 1; i < 5; i++) {
        const qs_value *p = x->in[i];
        if (p->rank >= 0 && (p->rank != 1 || (channels >= 0 && p->dims[0].size >= 0 &&
                                              p->dims[0].size != channels)))
            return qs_infer_fail(x, QSIM_E_SHAPE, "input %d is not a list of %lld numbers", (int)i,
                                 (long long)channels);
    }
    return qs_infer_out(x, 0, QSIM_FLOAT, v->rank, v->dims);
}

/* Older forms differ in attributes that inference does not read. */
QS_COLD static int upgrade_batchnorm(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    (void)error;
    if (to >= 7)
        qs_node_drop_attr(g, node, "is_test");
    if (to >= 9)
        qs_node_drop_attr(g, node, "spatial");
    return QSIM_OK;
}

typedef struct batchnorm_plan {
    size_t outer, channels, inner; /* x is [outer, channels, inner] */
    float epsilon;
} batchnorm_plan;

typedef struct batchnorm_job {
    const batchnorm_plan *p;
    const float *x, *mean, *scale, *shift;
    float *y;
} batchnorm_job;

/* Planes [begin, end) of one channel each. */
static void planes(const void *arg, size_t begin, size_t end) {
    const batchnorm_job *j = arg;
    const size_t inner = j->p->inner;
    for (size_t i = begin; i < end; i++) {
        const size_t c = i % j->p->channels;
        const float mean = j->mean[c], scale = j->scale[c], shift = j->shift[c];
        const float *x = j->x + i * inner;
        float *y = j->y + i * inner;
        for (size_t k = 0; k < inner; k++)
            y[k] = (x[k] - mean) * scale + shift;
    }
}

/* Pixels [begin, end) of all channels each. */
static void pixels(const void *arg, size_t begin, size_t end) {
    const batchnorm_job *j = arg;
    const size_t channels = j->p->channels;
    for (size_t i = begin; i < end; i++) {
        const float *x = j->x + i * channels;
        float *y = j->y + i * channels;
        for (size_t c = 0; c < channels; c++)
            y[c] = (x[c] - j->mean[c]) * j->scale[c] + j->shift[c];
    }
}

static void run_batchnorm(const qs_step *s, const qs_frame *f) {
    const batchnorm_plan *p = s->params;
    const float *scale = qs_step_in(s, f, 1), *var = qs_step_in(s, f, 4);
    float *a = f->scratch;
    for (size_t c = 0; c < p->channels; c++)
        a[c] = scale[c] / sqrtf(var[c] + p->epsilon);
    const batchnorm_job j = {.p = p,
                             .x = qs_step_in(s, f, 0),
                             .mean = qs_step_in(s, f, 3),
                             .scale = a,
                             .shift = qs_step_in(s, f, 2),
                             .y = qs_step_out(s, f, 0)};
    if (p->inner == 1)
        qs_ranges(f->ctx, p->outer, QS_GRAIN / p->channels + 1, pixels, &j);
    else
        qs_ranges(f->ctx, p->outer * p->channels, QS_GRAIN / p->inner + 1, planes, &j);
}

static void run_nothing(const qs_step *s, const qs_frame *f) {
    (void)s;
    (void)f;
}

QS_COLD static int lower_batchnorm(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    batchnorm_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->kernel = "batchnorm";
    l->step->run = run_nothing;
    if (qs_value_elements(v) == 0)
        return QSIM_OK;
    const bool last = qs_node_int(l->node, "channels_last", 0) != 0;
    const int32_t axis = last ? v->rank - 1 : 1;
    p->outer = (size_t)qs_dims_product(v->dims, 0, axis);
    p->channels = (size_t)v->dims[axis].size;
    p->inner = (size_t)qs_dims_product(v->dims, axis + 1, v->rank);
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-5f);
    l->step->scratch = p->channels * sizeof(float);
    l->step->run = run_batchnorm;
    return QSIM_OK;
}

static const qs_attr_rule batchnorm_attrs[] = {
    {"epsilon", QS_ATTR_FLOAT, 1, 0},        {"momentum", QS_ATTR_FLOAT, 1, 0},
    {"is_test", QS_ATTR_INT, 1, 6},          {"spatial", QS_ATTR_INT, 1, 8},
    {"consumed_inputs", QS_ATTR_INTS, 1, 5}, {"training_mode", QS_ATTR_INT, 14, 0},
};
static const qs_attr_rule internal_attrs[] = {
    {"epsilon", QS_ATTR_FLOAT, 0, 0},        {"momentum", QS_ATTR_FLOAT, 0, 0},
    {"is_test", QS_ATTR_INT, 0, 0},          {"spatial", QS_ATTR_INT, 0, 0},
    {"consumed_inputs", QS_ATTR_INTS, 0, 0}, {"training_mode", QS_ATTR_INT, 0, 0},
    {"channels_last", QS_ATTR_INT, 0, 0},
};

QS_OP(batchnormalization, .name = "BatchNormalization", .min_in = 5, .max_out = 5,
      .later = {{14, 5, 5, 3}}, QS_ATTRS(batchnorm_attrs), .traits = QS_NEEDS_LAST,
      .infer = infer_batchnorm, .upgrade = upgrade_batchnorm, .lower = lower_batchnorm);

QS_OP(qsim_batchnormalization, .domain = "qsim", .name = "BatchNormalization", .min_in = 5,
      .max_out = 5, QS_ATTRS(internal_attrs), .traits = QS_NEEDS_LAST, .infer = infer_batchnorm,
      .lower = lower_batchnorm);
