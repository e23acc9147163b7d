/* SPDX-License-Identifier: MIT */
/*
 * LayerNormalization over the axes from `axis` on: y = (x - mean) / sqrt(var + epsilon) * scale +
 * bias. Both sums are trees over 16 lanes, the variance has a pass of its own, and the division is
 * one multiplication by the reciprocal, which is an output, too. RMSNormalization, in ONNX Runtime
 * SimplifiedLayerNormalization, is the same with mean 0 and without bias.
 */
#include "op/expand.h"

#include "base/ctx.h"
#include "kernel/ew.h"
#include "kernel/table.h"
#include "op/nn/reduce.h"

#include <math.h>

/* Checks that RMSNormalization's scale broadcasts to the normalized axes. */
QS_COLD static int check_broadcast(const qs_infer *x, int32_t axis) {
    const qs_value *v = x->in[0], *scale = x->in[1];
    bool fits = scale->rank <= v->rank - axis;
    for (int32_t i = 1; i <= scale->rank && fits; i++) {
        const int64_t n = scale->dims[scale->rank - i].size, whole = v->dims[v->rank - i].size;
        fits = n < 0 || n == 1 || whole < 0 || n == whole;
    }
    return fits ? QSIM_OK
                : qs_infer_fail(x, QSIM_E_SHAPE,
                                "the scale does not broadcast over the axes from %d on", (int)axis);
}

/* Checks the types of the first `count` inputs, and stash_type, the type of statistics. */
QS_COLD static int check_types(const qs_infer *x, int32_t count, int64_t stash) {
    const int32_t dtype = x->in[0]->dtype;
    int code = QSIM_OK;
    for (int32_t i = 0; i < count && !code; i++)
        code = qs_infer_type(x, i, i && dtype ? QS_T(dtype) : QS_T_REAL);
    if (!code && stash != QSIM_FLOAT && stash != QSIM_DOUBLE)
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "stash_type is %lld", (long long)stash);
    return code;
}

QS_COLD static int infer_rmsnorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    const int64_t stash = qs_node_int(x->node, "stash_type", QSIM_FLOAT);
    int32_t axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = check_types(x, 2, stash);
    if (!code && v->rank >= 0)
        code = qs_infer_axis(x, qs_node_int(x->node, "axis", -1), v->rank, &axis);
    if (!code && v->rank >= 0 && x->in[1]->rank >= 0)
        code = check_broadcast(x, axis);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < axis ? v->dims[i] : (qs_dim){1, NULL};
    if (!code)
        code = qs_infer_like(x, 0, 0);
    return code ? code : qs_infer_out(x, 1, (int32_t)stash, v->rank, dims);
}

QS_COLD static int infer_layernorm(qs_infer *x) {
    const qs_value *v = x->in[0];
    int64_t stash = qs_node_int(x->node, "stash_type", QSIM_FLOAT);
    int32_t axis = 0;
    qs_dim dims[QSIM_MAX_RANK];
    int code = check_types(x, 3, stash);
    if (code)
        return code;
    if (v->rank >= 0)
        code = qs_infer_axis(x, qs_node_int(x->node, "axis", -1), v->rank, &axis);
    for (int32_t i = 1; i < 3 && !code && v->rank >= 0; i++)
        code = qs_infer_each(x, i, qs_dims_product(v->dims, axis, v->rank));
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = i < axis ? v->dims[i] : (qs_dim){1, NULL};
    if (!code)
        code = qs_infer_like(x, 0, 0);
    for (int32_t i = 1; i < 3 && !code; i++)
        code = qs_infer_out(x, i, (int32_t)stash, v->rank, dims);
    return code;
}

typedef struct layernorm_params {
    size_t rows, count;
    float epsilon;
    bool scalar_scale, scalar_bias, simple;
    const size_t *scale_at; /* NULL, or index of each element's scale if scale is broadcast */
    /* Indices of an input and two outputs (mean, reciprocal); 0: the operator has none. */
    int32_t bias, mean, inverse;
    bool centred; /* the mean is subtracted */
} layernorm_params;

typedef struct layernorm_job {
    const layernorm_params *p;
    const qsim_ctx *ctx;
    const float *x, *scale, *bias;
    float *y, *mean, *inverse;
} layernorm_job;

static void layernorm_rows(const void *arg, size_t begin, size_t end) {
    const layernorm_job *job = arg;
    const layernorm_params *p = job->p;
    const size_t n = p->count, at = begin * n;
    const qk_norm how = {.epsilon = p->epsilon,
                         .centred = p->centred,
                         .scale = job->scale,
                         .bias = job->bias,
                         .mean = job->mean ? job->mean + begin : NULL,
                         .inverse = job->inverse ? job->inverse + begin : NULL};
    qs_normalize(job->ctx, &how, job->x + at, job->y + at, n, end - begin);
}

/* Broadcasts a scale and a bias to lists as long as a row. */
QS_COLD static void broadcast_params(const layernorm_params *p, const float *scale,
                                     const float *bias, float *to) {
    for (size_t i = 0; i < p->count; i++) {
        to[i] = scale[p->scale_at ? p->scale_at[i] : p->scalar_scale ? 0 : i];
        to[p->count + i] = bias ? bias[p->scalar_bias ? 0 : i] : 0.0f;
    }
}

static void run_layernorm(const qs_step *s, const qs_frame *f) {
    const layernorm_params *p = s->params;
    const float *bias = p->bias ? qs_step_in(s, f, p->bias) : NULL;
    float *whole = f->scratch;
    layernorm_job job = {p,
                         f->ctx,
                         qs_step_in(s, f, 0),
                         p->simple ? qs_step_in(s, f, 1) : whole,
                         p->simple || !bias ? bias : whole + p->count,
                         qs_step_out(s, f, 0),
                         p->mean ? qs_step_out(s, f, p->mean) : NULL,
                         p->inverse ? qs_step_out(s, f, p->inverse) : NULL};
    if (!p->simple)
        broadcast_params(p, qs_step_in(s, f, 1), bias, whole);
    if (p->count)
        qs_ranges(f->ctx, p->rows, QS_GRAIN / 2 / p->count + 1, layernorm_rows, &job);
}

/* Whether elements or statistics are doubles. */
static bool in_double(const qs_node *n, const qs_value *x) {
    return x->dtype == QSIM_DOUBLE || qs_node_int(n, "stash_type", QSIM_FLOAT) == QSIM_DOUBLE;
}

/* Makes the parameters that both normalizations share. */
QS_COLD static int lower_rows(qs_lower *l, layernorm_params **out, int32_t *axis) {
    const qs_value *x = qs_lower_in(l, 0);
    qs_infer rules;
    qs_lower_infer(l, &rules);
    int code = qs_infer_axis(&rules, qs_node_int(l->node, "axis", -1), x->rank, axis);
    if (!code && in_double(l->node, x))
        code = qs_infer_fail(&rules, QSIM_E_UNSUPPORTED,
                             "the type and rank of input 0 must be in the file for doubles");
    if (code)
        return code;
    layernorm_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->rows = (size_t)qs_dims_product(x->dims, 0, *axis);
    p->count = (size_t)qs_dims_product(x->dims, *axis, x->rank);
    p->epsilon = qs_node_float(l->node, "epsilon", 1e-5f);
    p->scalar_scale = qs_value_elements(qs_lower_in(l, 1)) == 1;
    if (!qs_mul(p->count, 2 * sizeof(float), &l->step->scratch))
        return qs_fail(l->error, QSIM_E_LIMIT, "a row is too long");
    l->step->run = run_layernorm;
    *out = p;
    return QSIM_OK;
}

QS_COLD static int lower_layernorm(qs_lower *l) {
    const qs_value *bias = qs_lower_in(l, 2);
    layernorm_params *p;
    int32_t axis;
    int code = lower_rows(l, &p, &axis);
    if (code)
        return code;
    p->scalar_bias = bias && qs_value_elements(bias) == 1;
    p->simple = p->count == 1 || (!p->scalar_scale && !p->scalar_bias);
    p->bias = bias ? 2 : 0;
    p->mean = qs_lower_out(l, 1) ? 1 : 0;
    p->inverse = qs_lower_out(l, 2) ? 2 : 0;
    p->centred = true;
    return QSIM_OK;
}

/* Sets scale_at for a scale that is broadcast but not a scalar. */
QS_COLD static int place_scale(qs_lower *l, layernorm_params *p, int32_t axis) {
    const qs_value *x = qs_lower_in(l, 0), *scale = qs_lower_in(l, 1);
    size_t *at = qs_arena_alloc(l->arena, p->count ? p->count : 1, sizeof(*at));
    if (!at)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    for (size_t i = 0; i < p->count; i++) {
        size_t rest = i, step = 1;
        for (int32_t k = 1; k <= scale->rank && k <= x->rank - axis; k++) {
            const size_t whole = (size_t)x->dims[x->rank - k].size;
            const size_t n = (size_t)scale->dims[scale->rank - k].size;
            at[i] += n == 1 ? 0 : rest % whole * step;
            rest /= whole;
            step *= n;
        }
    }
    p->scale_at = at;
    return QSIM_OK;
}

QS_COLD static int lower_rmsnorm(qs_lower *l) {
    layernorm_params *p;
    int32_t axis;
    int code = lower_rows(l, &p, &axis);
    if (code)
        return code;
    const size_t scales = qs_value_elements(qs_lower_in(l, 1));
    p->simple = scales == p->count;
    p->inverse = qs_lower_out(l, 1) ? 1 : 0;
    return p->simple || p->scalar_scale ? QSIM_OK : place_scale(l, p, axis);
}

/* ---- expansion into other operators ---- */

static qs_id as_type(qs_expand *e, qs_id x, int32_t from, int32_t to) {
    return from == to ? x : qs_expand_cast(e, x, to);
}

/*
 * Expands normalizations of doubles, and those that a file of ONNX's operators cannot have, as ONNX
 * defines them by other operators: statistics in stash_type, scale and bias in the type of x.
 */
QS_COLD static void expand(qs_expand *e, bool centred) {
    const qs_value *v = qs_expand_value(e, 0);
    const int32_t rank = v->rank, dtype = v->dtype;
    const int32_t stash = (int32_t)qs_node_int(e->node, "stash_type", QSIM_FLOAT);
    const double epsilon = (double)qs_node_float(e->node, "epsilon", 1e-5f);
    const int64_t axis = qs_node_int(e->node, "axis", -1);
    const qs_id scale = qs_expand_in(e, 1), bias = centred ? qs_expand_in(e, 2) : QS_NONE;
    int64_t axes[QSIM_MAX_RANK];
    int32_t n = 0;
    if (!(in_double(e->node, v) || e->only_onnx) || rank < 0 || dtype == QSIM_UNDEFINED)
        return;
    for (int64_t i = axis < 0 ? axis + rank : axis; i < rank; i++)
        axes[n++] = i;
    qs_id x = as_type(e, qs_expand_in(e, 0), dtype, stash), mean = QS_NONE;
    if (centred) {
        mean = qs_expand_mean(e, x, axes, n, true);
        x = qs_expand_two(e, "Sub", x, mean);
    }
    const qs_id squares = qs_expand_two(e, "Mul", x, x);
    const qs_id sum = qs_expand_two(e, "Add", qs_expand_mean(e, squares, axes, n, true),
                                    qs_expand_number(e, stash, epsilon));
    const qs_id deviation = qs_expand_one(e, "Sqrt", sum);
    const qs_id normal = as_type(e, qs_expand_two(e, "Div", x, deviation), stash, dtype);
    const qs_id inverse = qs_expand_one(e, "Reciprocal", deviation);
    e->out[0] = qs_expand_two(e, "Mul", normal, scale);
    if (bias != QS_NONE)
        e->out[0] = qs_expand_two(e, "Add", e->out[0], bias);
    e->out[1] = centred ? mean : inverse;
    e->out[2] = centred ? inverse : QS_NONE;
}

static void expand_layernorm(qs_expand *e) {
    expand(e, true);
}
static void expand_rmsnorm(qs_expand *e) {
    expand(e, false);
}

static const qs_attr_rule norm_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                          {"epsilon", QSIM_ATTR_FLOAT, 1, 0},
                                          {"stash_type", QSIM_ATTR_INT, 1, 0}};

/* Since opset 17; ONNX Runtime's optimizer writes it, in ONNX's domain, for older opsets, too. */
QS_OP(layernorm, .name = "LayerNormalization", .min_in = 2, .max_in = 3, .max_out = 3,
      QS_ATTRS(norm_attrs), .traits = QS_READS_EXACTLY, .moments = QS_MOMENTS_OWN,
      .gain_inputs = 1 << 1 | 1 << 2, QS_MORE(.in_onnx = 17),
      .kernel = QS_KERNEL_LAYER_NORMALIZATION, .infer = infer_layernorm, .lower = lower_layernorm,
      .expand = expand_layernorm);

QS_OP(rmsnorm, .name = "RMSNormalization", .since = 23, .min_in = 2, QS_ATTRS(norm_attrs),
      .traits = QS_READS_EXACTLY, .moments = QS_MOMENTS_OWN, .gain_inputs = 1 << 1,
      .kernel = QS_KERNEL_RMS_NORMALIZATION, .infer = infer_rmsnorm, .lower = lower_rmsnorm,
      .expand = expand_rmsnorm);
/* ONNX Runtime's name of RMSNormalization, though in ONNX's domain. */
QS_OP(simplified_layernorm, .name = "SimplifiedLayerNormalization", .min_in = 2, .max_out = 2,
      QS_ATTRS(norm_attrs), .traits = QS_READS_EXACTLY, .moments = QS_MOMENTS_OWN,
      .gain_inputs = 1 << 1, QS_MORE(.in_onnx = INT8_MAX), .kernel = QS_KERNEL_RMS_NORMALIZATION,
      .infer = infer_rmsnorm, .lower = lower_rmsnorm, .expand = expand_rmsnorm);
