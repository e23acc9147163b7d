/* SPDX-License-Identifier: MIT */
/*
 * InstanceNormalization and GroupNormalization: y = (x - mean) / sqrt(var + epsilon) * scale + bias
 * with mean and variance per channel or group of channels. The variance has a pass of its own; the
 * division is a multiplication by the reciprocal.
 */
#include "op/rules.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

#include <math.h>

#define GROUP_OF_CHANNELS 21 /* first version whose scale and bias are per channel */

typedef struct group_params {
    size_t rows, groups, channels, inner; /* rows: images * groups; channels per group */
    bool is_double, by_group;             /* by_group: scale and bias are per group */
    double epsilon;
} group_params;

typedef struct group_job {
    const qsim_ctx *ctx;
    const group_params *p;
    const qk_ew *k;
    const char *x, *scale, *bias;
    char *y;
} group_job;

/* y[i] = (x[i] - mean) * factor + bias */
static void shift(const float *x, float mean, float factor, float bias, float *y, size_t n) {
    for (size_t i = 0; i < n; i++)
        y[i] = (x[i] - mean) * factor + bias;
}

static void row_f32(const group_job *j, size_t r) {
    const group_params *p = j->p;
    const size_t n = p->channels * p->inner, group = r % p->groups;
    const float *x = (const float *)(const void *)j->x + r * n;
    const float *scale = (const void *)j->scale, *bias = (const void *)j->bias;
    float *y = (float *)(void *)j->y + r * n;
    const float mean = qs_row_sum(j->ctx, x, n) / (float)qs_real(n);
    const float variance = qs_row_squares(j->ctx, x, mean, n) / (float)n;
    const float inverse = 1.0f / sqrtf(variance + (float)p->epsilon);
    for (size_t c = 0; c < p->channels && !qs_stopped_at(j->ctx, c); c++) {
        const size_t at = p->by_group ? group : group * p->channels + c;
        for (size_t k = c * p->inner, end = k + p->inner, count; (count = qs_piece(j->ctx, k, end));
             k += count)
            shift(x + k, mean, inverse * scale[at], bias[at], y + k, count);
    }
}

QS_COLD static void row_f64(const group_job *j, size_t r) {
    const group_params *p = j->p;
    const size_t n = p->channels * p->inner, group = r % p->groups;
    const double *x = (const double *)(const void *)j->x + r * n;
    const double *scale = (const void *)j->scale, *bias = (const void *)j->bias;
    double *y = (double *)(void *)j->y + r * n, mean = 0, variance = 0;
    for (size_t i = 0; i < n && !qs_stopped_at(j->ctx, i); i++)
        mean += x[i];
    mean /= qs_real(n);
    for (size_t i = 0; i < n && !qs_stopped_at(j->ctx, i); i++)
        variance += (x[i] - mean) * (x[i] - mean);
    const double inverse = 1.0 / sqrt(variance / (double)n + p->epsilon);
    for (size_t i = 0; i < n && !qs_stopped_at(j->ctx, i); i++) {
        const size_t at = p->by_group ? group : group * p->channels + i / p->inner;
        y[i] = (x[i] - mean) * (inverse * scale[at]) + bias[at];
    }
}

static void group_rows(const void *arg, size_t begin, size_t end) {
    const group_job *j = arg;
    for (size_t r = begin; r < end; r++)
        (j->p->is_double ? row_f64 : row_f32)(j, r);
}

static void run_group(const qs_step *s, const qs_frame *f) {
    const group_params *p = s->params;
    const group_job j = {f->ctx,
                         p,
                         f->ctx->kernels->ew,
                         qs_step_in(s, f, 0),
                         qs_step_in(s, f, 1),
                         qs_step_in(s, f, 2),
                         qs_step_out(s, f, 0)};
    const size_t n = p->channels * p->inner;
    if (n)
        qs_ranges(f->ctx, p->rows, QS_GRAIN / 2 / n + 1, group_rows, &j);
}

/* The shape rule: scale and bias have `count` elements (-1: unknown). */
QS_COLD static int infer_group_of(qs_infer *x, int64_t count, int32_t least_rank) {
    int code = qs_infer_type(x, 0, QS_T_REAL);
    for (int32_t i = 1; i < 3 && !code; i++) {
        code = qs_infer_same_type(x, 0, i);
        if (!code)
            code = qs_infer_list(x, i, count);
    }
    if (!code)
        code = qs_infer_least_rank(x, 0, least_rank);
    return code ? code : qs_infer_like(x, 0, 0);
}

static int64_t channels_of(const qs_value *v) {
    return v->rank >= 2 ? v->dims[1].size : -1;
}

QS_COLD static int infer_instance(qs_infer *x) {
    return infer_group_of(x, channels_of(x->in[0]), 3);
}

QS_COLD static int infer_groups(qs_infer *x) {
    const int64_t groups = qs_node_int(x->node, "num_groups", 0), c = channels_of(x->in[0]);
    const int64_t stash = qs_node_int(x->node, "stash_type", QSIM_FLOAT);
    if (groups < 1 || (c >= 0 && c % groups))
        return qs_infer_fail(x, QSIM_E_VALUE, "num_groups is %lld for %lld channels",
                             (long long)groups, (long long)c);
    if (stash != QSIM_FLOAT)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "stash_type is %lld", (long long)stash);
    return infer_group_of(x, x->node->version < GROUP_OF_CHANNELS ? groups : c, 2);
}

QS_COLD static int lower_group(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    const size_t channels = (size_t)x->dims[1].size;
    group_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->groups = (size_t)qs_node_int(l->node, "num_groups", (int64_t)channels);
    p->rows = (size_t)x->dims[0].size * p->groups;
    p->channels = p->groups ? channels / p->groups : 0;
    p->inner = (size_t)qs_dims_product(x->dims, 2, x->rank);
    p->is_double = x->dtype == QSIM_DOUBLE;
    p->by_group =
        strcmp(l->node->op_type, "GroupNormalization") == 0 && l->node->version < GROUP_OF_CHANNELS;
    p->epsilon = (double)qs_node_float(l->node, "epsilon", 1e-5f);
    l->step->run = run_group;
    return QSIM_OK;
}

/* Repeats each group's number for all its channels: Reshape, Expand, Reshape. */
QS_COLD static qs_id repeat(qs_graph *g, qs_id v, int64_t groups, int64_t channels) {
    const int64_t dims[3][2] = {{groups, 1}, {groups, channels}, {groups * channels, 0}};
    for (int32_t i = 0; i < 3 && v >= 0; i++) {
        const int64_t rank = i < 2 ? 2 : 1;
        const qs_id shape = qs_upgrade_const(g, "group_shape", QSIM_INT64, 1, &rank, dims[i]);
        const char *op = i == 1 ? "Expand" : "Reshape";
        v = shape < 0 ? shape : qs_upgrade_add(g, op, "group_scale", v, shape);
    }
    return v;
}

QS_COLD static int upgrade_group(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const qs_node *n = &g->nodes[node];
    const int64_t groups = qs_node_int(n, "num_groups", 0);
    const int64_t channels = channels_of(&g->values[n->inputs[0]]);
    if (n->version >= GROUP_OF_CHANNELS || to < GROUP_OF_CHANNELS || groups == channels)
        return QSIM_OK;
    if (groups < 1 || channels < 0)
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "GroupNormalization '%s': the number of channels is not known",
                       n->name ? n->name : "");
    for (int32_t i = 1; i < 3; i++) {
        const qs_id v = repeat(g, g->nodes[node].inputs[i], groups, channels / groups);
        if (v < 0)
            return qs_op_no_memory(error);
        qs_node_set_input(g, node, i, v);
    }
    return QSIM_OK;
}

static const qs_attr_rule instance_attrs[] = {{"consumed_inputs", QSIM_ATTR_INTS, 1, 5},
                                              {"epsilon", QSIM_ATTR_FLOAT, 1, 0}};
static const qs_attr_rule group_attrs[] = {{"epsilon", QSIM_ATTR_FLOAT, 18, 0},
                                           {"num_groups", QSIM_ATTR_INT, 18, 0},
                                           {"stash_type", QSIM_ATTR_INT, 21, 0}};

QS_OP(instance_normalization, .name = "InstanceNormalization", .min_in = 3,
      QS_ATTRS(instance_attrs), .traits = QS_READS_EXACTLY, .moments = QS_MOMENTS_OWN,
      .kernel = QS_KERNEL_GROUP_NORMALIZATION, .infer = infer_instance, .lower = lower_group);
QS_OP(group_normalization, .name = "GroupNormalization", .since = 18, .min_in = 3,
      QS_ATTRS(group_attrs), .traits = QS_READS_EXACTLY, .moments = QS_MOMENTS_OWN,
      .kernel = QS_KERNEL_GROUP_NORMALIZATION, .infer = infer_groups,
      QS_MORE(QS_HISTORY(.upgrade = upgrade_group)), .lower = lower_group);
