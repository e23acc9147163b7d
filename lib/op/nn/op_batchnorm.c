/* SPDX-License-Identifier: MIT */
/*
 * BatchNormalization for inference: y = (x - mean) * a + b with a = scale / sqrt(var + epsilon), in
 * float, in this order. Executed in either layout. For doubles, and with the batch's own mean and
 * variance (training_mode), it is expanded into other operators; parameters of another type than x
 * are cast to that.
 */
#include <assert.h>
#include <math.h>

#include "op/expand.h"

static bool trains(const qs_node *n) {
    return qs_node_int(n, "training_mode", 0) != 0;
}

/* Up to opset 6 `is_test`, from 14 on `training_mode` tells inference from training. */
QS_COLD static int check_mode(const qs_infer *x) {
    const int32_t version = x->node->domain[0] ? 15 : x->node->version;
    if (version < 7 && !qs_node_int(x->node, "is_test", 0))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "is_test is 0: training is not supported");
    if (x->in[0]->rank < 0 && (trains(x->node) || x->in[0]->dtype == QSIM_DOUBLE))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "the rank must be in the file for training_mode and for doubles");
    if (!qs_node_int(x->node, "spatial", 1))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "spatial is 0, which is not supported");
    for (int32_t i = trains(x->node) ? 3 : 1; i < x->node->output_count; i++)
        if (x->node->outputs[i] != QS_NONE)
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "output %d exists in training only",
                                 (int)i);
    return QSIM_OK;
}

QS_COLD static int infer_batchnorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    int code = check_mode(x);
    for (int32_t i = 0; i < 5 && !code; i++)
        code = qs_infer_type(x, i, QS_T_REAL);
    if (!code)
        code = qs_infer_least_rank(x, 0, 2);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    const bool last = qs_node_int(x->node, "channels_last", 0) != 0;
    const int64_t channels = v->dims[last ? v->rank - 1 : 1].size;
    for (int32_t i = 1; i < 5 && !code; i++)
        code = qs_infer_list(x, i, channels);
    for (int32_t i = 1; i < x->node->output_count && !code; i++)
        code = qs_infer_out(x, i, x->in[3]->dtype, 1, &v->dims[1]);
    return code ? code : qs_infer_out(x, 0, v->dtype, v->rank, v->dims);
}

/* ---- expansion into other operators ---- */

/* Reshapes a list of one number per channel so that it broadcasts over x. */
static qs_id over_channels(qs_expand *e, qs_id list, int32_t rank) {
    int64_t shape[QSIM_MAX_RANK] = {-1};
    for (int32_t i = 1; i < rank - 1; i++)
        shape[i] = 1;
    return qs_expand_reshape(e, list, shape, rank - 1);
}

/* The mean of each channel. */
static qs_id channel_mean(qs_expand *e, qs_id x, int32_t rank) {
    int64_t axes[QSIM_MAX_RANK] = {0};
    for (int32_t i = 2; i < rank; i++)
        axes[i - 1] = i;
    return qs_expand_mean(e, x, axes, rank - 1, false);
}

/* before * momentum + now * (1 - momentum) */
static qs_id running(qs_expand *e, qs_id before, qs_id now, int32_t dtype, float momentum) {
    const qs_id keep = qs_expand_number(e, dtype, (double)momentum);
    const qs_id rest = qs_expand_number(e, dtype, 1.0 - (double)momentum);
    return qs_expand_two(e, "Add", qs_expand_two(e, "Mul", before, keep),
                         qs_expand_two(e, "Mul", now, rest));
}

QS_COLD static void expand_batchnorm(qs_expand *e) {
    const bool training = trains(e->node);
    const int32_t dtype = qs_expand_value(e, 0)->dtype, rank = qs_expand_value(e, 0)->rank;
    const int32_t back = qs_expand_value(e, 3)->dtype;
    const qs_node n = *e->node;
    qs_id in[5];
    bool mixed = false;
    for (int32_t i = 0; i < 5; i++) {
        const bool other = qs_expand_value(e, i)->dtype != dtype;
        in[i] = other ? qs_expand_cast(e, qs_expand_in(e, i), dtype) : qs_expand_in(e, i);
        mixed = mixed || other;
    }
    if (mixed && !training) {
        e->out[0] = qs_expand_many(e, n.op_type, in, 5, 1);
        qs_expand_copy(e, e->out[0], "epsilon", "epsilon");
        return;
    }
    if (!training && dtype != QSIM_DOUBLE)
        return;
    const float epsilon = qs_node_float(&n, "epsilon", 1e-5f);
    const float momentum = qs_node_float(&n, "momentum", 0.9f);
    qs_id mean = training ? channel_mean(e, in[0], rank) : in[3], var = in[4];
    const qs_id rest = qs_expand_two(e, "Sub", in[0], over_channels(e, mean, rank));
    if (training)
        var = channel_mean(e, qs_expand_two(e, "Mul", rest, rest), rank);
    const qs_id sum = qs_expand_two(e, "Add", var, qs_expand_number(e, dtype, (double)epsilon));
    const qs_id factor = qs_expand_two(e, "Div", in[1], qs_expand_one(e, "Sqrt", sum));
    const qs_id scaled = qs_expand_two(e, "Mul", rest, over_channels(e, factor, rank));
    e->out[0] = qs_expand_two(e, "Add", scaled, over_channels(e, in[2], rank));
    if (training) {
        e->out[1] = qs_expand_cast(e, running(e, in[3], mean, dtype, momentum), back);
        e->out[2] = qs_expand_cast(e, running(e, in[4], var, dtype, momentum), back);
    }
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

/* Channels of a loop that are worth copies of the parameters. */
#define MANY ((size_t)512)

typedef struct batchnorm_plan {
    size_t outer, channels, inner; /* x is [outer, channels, inner] */
    size_t copies;                 /* of the parameters, so that few channels make a long loop */
    float epsilon;
} batchnorm_plan;

typedef struct batchnorm_job {
    const qsim_ctx *ctx;
    const batchnorm_plan *p;
    const float *x, *mean, *scale, *shift;
    float *y;
} batchnorm_job;

/* Computes planes [begin, end), each of one channel. */
static void planes(const void *arg, size_t begin, size_t end) {
    const batchnorm_job *j = arg;
    const size_t inner = j->p->inner;
    for (size_t i = begin; i < end; i++) {
        const size_t c = i % j->p->channels;
        const float mean = j->mean[c], scale = j->scale[c], shift = j->shift[c];
        const float *x = j->x + i * inner;
        float *y = j->y + i * inner;
        for (size_t at = 0, n; (n = qs_piece(j->ctx, at, inner)); at += n) {
            QS_IVDEP
            for (size_t k = at; k < at + n; k++)
                y[k] = (x[k] - mean) * scale + shift;
        }
    }
}

/* Computes pixels [begin, end), each of all channels, as many at once as there are copies. */
static void pixels(const void *arg, size_t begin, size_t end) {
    const batchnorm_job *j = arg;
    const size_t channels = j->p->channels;
    const float *mean = j->mean, *scale = j->scale, *shift = j->shift;
    for (size_t i = begin, many; i < end; i += many) {
        const float *x = j->x + i * channels;
        float *y = j->y + i * channels;
        many = end - i < j->p->copies ? end - i : j->p->copies;
        for (size_t at = 0, n; (n = qs_piece(j->ctx, at, many * channels)); at += n) {
            QS_IVDEP
            for (size_t c = at; c < at + n; c++)
                y[c] = (x[c] - mean[c]) * scale[c] + shift[c];
        }
    }
}

/* Fills `to` with `all` numbers, the n of `from` again and again; they may lie at its begin. */
static const float *copy_many(float *to, const float *from, size_t n, size_t all) {
    for (size_t i = 0; i < all; i++)
        to[i] = i < n ? from[i] : to[i - n];
    return to;
}

static void run_batchnorm(const qs_step *s, const qs_frame *f) {
    const batchnorm_plan *p = s->params;
    const float *scale = qs_step_in(s, f, 1), *shift = qs_step_in(s, f, 2);
    const float *mean = qs_step_in(s, f, 3), *var = qs_step_in(s, f, 4);
    const size_t channels = p->channels, copied = p->copies * channels;
    float *a = f->scratch;
    assert(channels > 0); /* an output without elements is not computed */
    for (size_t c = 0; c < channels && !qs_stopped_at(f->ctx, c); c++)
        a[c] = scale[c] / sqrtf(var[c] + p->epsilon);
    if (p->copies > 1) {
        copy_many(a, a, channels, copied);
        mean = copy_many(a + copied, mean, channels, copied);
        shift = copy_many(a + 2 * copied, shift, channels, copied);
    }
    const batchnorm_job j = {.ctx = f->ctx,
                             .p = p,
                             .x = qs_step_in(s, f, 0),
                             .mean = mean,
                             .scale = a,
                             .shift = shift,
                             .y = qs_step_out(s, f, 0)};
    if (p->inner == 1)
        qs_ranges(f->ctx, p->outer, QS_GRAIN / p->channels + 1, pixels, &j);
    else
        qs_ranges(f->ctx, p->outer * p->channels, QS_GRAIN / p->inner + 1, planes, &j);
}

QS_COLD static int lower_batchnorm(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    qs_lower_infer(l, &x);
    if (trains(l->node) || v->dtype != QSIM_FLOAT)
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED,
                             "the type must be in the file for training_mode and for doubles");
    batchnorm_plan *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(v) == 0)
        return QSIM_OK;
    const bool last = qs_node_int(l->node, "channels_last", 0) != 0;
    const int32_t axis = last ? v->rank - 1 : 1;
    p->outer = (size_t)qs_dims_product(v->dims, 0, axis);
    p->channels = (size_t)v->dims[axis].size;
    p->inner = (size_t)qs_dims_product(v->dims, axis + 1, v->rank);
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-5f);
    const bool few = p->inner == 1 && p->channels < MANY && p->outer >= MANY;
    p->copies = few ? MANY / p->channels : 1;
    l->step->scratch = (few ? 3 * p->copies : 1) * p->channels * sizeof(float);
    l->step->run = run_batchnorm;
    l->step->in_place = 1;
    return QSIM_OK;
}

static const qs_attr_rule batchnorm_attrs[] = {
    {"epsilon", QSIM_ATTR_FLOAT, 1, 0},        {"momentum", QSIM_ATTR_FLOAT, 1, 0},
    {"is_test", QSIM_ATTR_INT, 1, 6},          {"spatial", QSIM_ATTR_INT, 1, 8},
    {"consumed_inputs", QSIM_ATTR_INTS, 1, 5}, {"training_mode", QSIM_ATTR_INT, 14, 0},
};
static const qs_attr_rule internal_attrs[] = {
    {"epsilon", QSIM_ATTR_FLOAT, 0, 0},        {"momentum", QSIM_ATTR_FLOAT, 0, 0},
    {"is_test", QSIM_ATTR_INT, 0, 0},          {"spatial", QSIM_ATTR_INT, 0, 0},
    {"consumed_inputs", QSIM_ATTR_INTS, 0, 0}, {"training_mode", QSIM_ATTR_INT, 0, 0},
    {"channels_last", QSIM_ATTR_INT, 0, 0},
};

QS_OP(batchnormalization, .name = "BatchNormalization", .min_in = 5, .max_out = 5,
      QS_MORE(QS_HISTORY(.later = {{14, 5, 5, 3}}, .upgrade = upgrade_batchnorm)),
      QS_ATTRS(batchnorm_attrs), .traits = QS_TAKES_LAST | QS_READS_EXACTLY,
      .moments = QS_MOMENTS_NORM, .kernel = QS_KERNEL_BATCHNORM, .infer = infer_batchnorm,
      .lower = lower_batchnorm, .expand = expand_batchnorm);

QS_OP(qsim_batchnormalization, .domain = QS_DOMAIN_QSIM, .name = "BatchNormalization", .min_in = 5,
      .max_out = 5, QS_ATTRS(internal_attrs), .traits = QS_TAKES_LAST | QS_READS_EXACTLY,
      .moments = QS_MOMENTS_NORM, .kernel = QS_KERNEL_BATCHNORM, .infer = infer_batchnorm,
      .lower = lower_batchnorm);
