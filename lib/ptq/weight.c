/* SPDX-License-Identifier: MIT */
/*
 * Weights and biases. A bias is int32 with scale x_scale * w_scale, so that it can be added to the
 * accumulator. Neither may overflow it: for every channel
 *
 *     sum |w - w_zp| * max |x - x_zp| + |bias| <= 2^31 - 1
 *
 * is made true by raising the channel's weight scale until it is.
 */
#include "ptq/weight_pairs.h"
#include "ptq/quantizer.h"

#include <float.h>
#include <math.h>

#define ACCUMULATOR_MAX 2147483647.0

typedef struct quantizing {
    qs_quantizer *q;
    qs_layer *l;
    const float *weights, *bias; /* bias NULL: none */
    float x_scale;
    double x_most; /* greatest |x - x_zp| */
    int32_t low, high;
} quantizing;

static float weight_at(const quantizing *m, size_t channel, size_t k) {
    return m->weights[channel * m->l->stride + k * m->l->step];
}

static int fail_layer(const quantizing *m, int code, const char *what) {
    const qs_node *n = &m->q->g->nodes[m->l->node];
    return qs_fail(m->q->error, code, "%s: %s (node '%s', %s)", m->q->model->name, what,
                   qs_node_label(m->q->g, m->l->node), n->op_type);
}

/* Sum of |w - w_zp| over a channel with scale s, as quantizing will give it. */
static double magnitude(const quantizing *m, size_t channel, float s, int32_t zp) {
    double sum = 0, lo = (double)m->low - zp, hi = (double)m->high - zp;
    for (size_t k = 0; k < m->l->depth; k++) {
        double w = rint((double)(weight_at(m, channel, k) / s));
        w = w < lo ? lo : w > hi ? hi : w;
        sum += fabs(w);
    }
    return sum;
}

/* The bias in steps of the accumulator; the scale is that of the file, in float. */
static double bias_steps(const quantizing *m, size_t channel, float s) {
    return m->bias ? rint((double)m->bias[channel] / (double)(m->x_scale * s)) : 0;
}

/* Raises the scale `s` until the channel cannot overflow, or to infinity. */
static float raise_scale(const quantizing *m, size_t channel, float s, int32_t zp) {
    while (isfinite(s)) {
        if (m->x_scale * s < FLT_MIN) { /* the bias's scale must be a normal number */
            s = s * 2;
            continue;
        }
        double most = magnitude(m, channel, s, zp) * m->x_most + fabs(bias_steps(m, channel, s));
        if (most <= ACCUMULATOR_MAX)
            break;
        double factor = most / ACCUMULATOR_MAX * 1.0001;
        s = (float)((double)s * (factor < 2 ? factor : 2));
    }
    return s;
}

/*
 * The scale of a channel whose weights are all zero, such that its bias has 24 bits; with scale 1
 * the bias would be rounded to steps of x_scale.
 */
static float scale_for_bias(const quantizing *m, size_t channel, float s) {
    for (size_t k = 0; k < m->l->depth; k++)
        if (weight_at(m, channel, k) != 0)
            return s;
    double b = m->bias ? fabs((double)m->bias[channel]) : 0;
    float small = (float)(b / ((double)m->x_scale * 16777216.0));
    return small >= FLT_MIN ? small : s;
}

/* Chooses scale and zero point for the range of one channel, or of all weights. */
static int choose(const quantizing *m, size_t first, size_t count, float *s, int32_t *zp) {
    float low = 0, high = 0;
    for (size_t c = first; c < first + count; c++)
        for (size_t k = 0; k < m->l->depth; k++) {
            float w = weight_at(m, c, k);
            low = w < low ? w : low;
            high = w > high ? w : high;
        }
    for (size_t c = first; c < first + count && m->l->form.reduce == QSIM_REDUCE_PAIRS; c++)
        qs_pairs_widen(m->q, m->l, m->weights, c, &low, &high);
    int code = qs_weight_params(&m->l->form, low, high, s, zp);
    return code ? fail_layer(m, code, "the weights have no usable range") : QSIM_OK;
}

/* Chooses one scale and zero point for all channels; the scale is raised until all fit. */
static int choose_common(const quantizing *m) {
    qs_layer *l = m->l;
    int code = choose(m, 0, l->channels, l->scale, l->zero_point);
    float s = l->scale[0], before;
    if (code)
        return code;
    do {
        before = s;
        for (size_t c = 0; c < l->channels; c++)
            s = raise_scale(m, c, s, l->zero_point[0]);
    } while (s != before && isfinite(s));
    l->scale[0] = s;
    return QSIM_OK;
}

static int choose_narrow(const quantizing *m) {
    qs_layer *l = m->l;
    qs_codes codes;
    int code = qs_narrow_scales(m->q, l, &codes);
    if (code)
        return code;
    l->scale = codes.scale;
    l->zero_point = codes.zero_point;
    return QSIM_OK;
}

static int choose_scales(const quantizing *m) {
    qs_layer *l = m->l;
    const bool narrow = qs_is_narrow(l->form.dtype);
    const bool own = qs_has_channels(&l->form); /* a single channel's, too */
    int code = own ? QSIM_OK : choose_common(m);
    if (narrow)
        code = choose_narrow(m);
    for (size_t c = 0; own && c < l->channels && !code; c++) {
        if (!narrow)
            code = choose(m, c, 1, &l->scale[c], &l->zero_point[c]);
        l->scale[c] = scale_for_bias(m, c, l->scale[c]);
        l->scale[c] = raise_scale(m, c, l->scale[c], l->zero_point[c]);
    }
    for (size_t i = 0; i < l->scale_count && !code; i++)
        if (!isfinite(l->scale[i]))
            code = fail_layer(m, QSIM_E_VALUE, "no weight scale keeps the accumulator in 32 bits");
    return code;
}

/* Reads the bias, and allocates it in int32. */
static int alloc_bias(quantizing *m) {
    qs_graph *g = m->q->g;
    qs_layer *l = m->l;
    const qs_id b = qs_node_input(&g->nodes[l->node], 2);
    if (b == QS_NONE)
        return QSIM_OK;
    m->bias = qs_graph_aligned(g, b);
    l->bias = qs_arena_alloc(&g->arena, l->channels, sizeof(*l->bias));
    l->bias_scale = qs_arena_alloc(&g->arena, l->scale_count, sizeof(*l->bias_scale));
    return m->bias && l->bias && l->bias_scale ? QSIM_OK : QSIM_E_NOMEM;
}

/* Whether a channel's accumulator holds the sums with this bias, with the scale found. */
static bool fits(const quantizing *m, size_t channel, float bias) {
    const qs_layer *l = m->l;
    const size_t at = l->scale_count > 1 ? channel : 0;
    const double steps = fabs(rint((double)bias / (double)(m->x_scale * l->scale[at])));
    if (qs_real(l->depth) * 255 * m->x_most + steps <= ACCUMULATOR_MAX)
        return true;
    return magnitude(m, channel, l->scale[at], l->zero_point[at]) * m->x_most + steps <=
           ACCUMULATOR_MAX;
}

/*
 * Corrects the bias for the rounding of weights, except for channels whose accumulator would
 * overflow.
 */
static int correct(quantizing *m) {
    qs_quantizer *q = m->q;
    qs_layer *l = m->l;
    const bool takes_bias = qs_op_takes_bias(q->g->nodes[l->node].op);
    const qs_codes codes = qs_layer_codes(l);
    float *shift = NULL;
    int code = qs_bias_find(q, l, &codes, l->form.dtype, &shift);
    for (size_t c = 0; shift && c < l->channels; c++)
        if (!fits(m, c, (m->bias ? m->bias[c] : 0) + shift[c]))
            shift[c] = 0;
    if (code || !shift)
        return code;
    code = qs_bias_add(q, l, shift);
    return code || !takes_bias ? code : alloc_bias(m);
}

static int round_weights(const quantizing *m, const qs_const *w) {
    qs_layer *l = m->l;
    qs_qlayout layout;
    if (qs_is_narrow(l->form.dtype) || l->form.rounding == QSIM_ROUNDING_GPTQ) {
        qs_codes codes = qs_layer_codes(l);
        return qs_narrow_round(m->q, l, &codes);
    }
    qsim_qparams p = {.dtype = m->l->form.dtype,
                      .axis = l->axis,
                      .count = l->scale_count,
                      .scale = l->scale,
                      .zero_point = l->zero_point};
    int code = qs_qlayout_make(w->rank, w->dims, &p, &layout, m->q->error);
    if (!code)
        qs_quantize(NULL, m->weights, &layout, &p, l->weights);
    return code;
}

/* Rounds weights and bias with the scales found. */
static int quantize_layer(quantizing *m, const qs_const *w) {
    qs_layer *l = m->l;
    int code = round_weights(m, w);
    if (!code)
        code = correct(m);
    if (code)
        return code;
    for (size_t c = 0; m->bias && c < l->channels; c++)
        l->bias[c] = (int32_t)bias_steps(m, c, l->scale[l->scale_count > 1 ? c : 0]);
    for (size_t i = 0; m->bias && i < l->scale_count; i++)
        l->bias_scale[i] = m->x_scale * l->scale[i];
    return QSIM_OK;
}

static bool alloc_weights(const quantizing *m, size_t weights) {
    qs_arena *a = &m->q->g->arena;
    qs_layer *l = m->l;
    l->scale = qs_arena_alloc(a, l->scale_count, sizeof(*l->scale));
    l->zero_point = qs_arena_alloc(a, l->scale_count, sizeof(*l->zero_point));
    l->weights = qs_arena_alloc(a, weights, 1);
    if (!l->scale || !l->zero_point || !l->weights)
        return false;
    return true;
}

int qs_weight_make(qs_quantizer *q, qs_layer *l, const qs_activation *x) {
    const qs_node *n = &q->g->nodes[l->node];
    int32_t qmin, qmax;
    const int32_t flags = qs_is_narrow(l->form.dtype) ? 0 : qs_weight_range(&l->form);
    quantizing m = {.q = q, .l = l, .x_scale = x->scale};
    m.weights = qs_graph_aligned(q->g, n->inputs[1]);
    l->scale_count = qs_has_channels(&l->form) ? l->channels : 1;
    const qs_const *w = q->g->values[n->inputs[1]].data;
    if (!m.weights || !alloc_weights(&m, w->elements))
        return QSIM_E_NOMEM;
    int code = alloc_bias(&m);
    if (code)
        return code;
    if (!qs_all_finite(m.weights, w->elements) || (m.bias && !qs_all_finite(m.bias, l->channels)))
        return fail_layer(&m, QSIM_E_VALUE, "the weights hold a NaN or an infinity");
    (void)qsim_dtype_limits(x->dtype, 0, &qmin, &qmax);
    /* Products of 16 bits are added up in floats: 32 bits have to hold the bias alone. */
    m.x_most = qs_is_wide(x->dtype)
                   ? 0
                   : qs_max(x->zero_point - (double)qmin, (double)qmax - x->zero_point);
    (void)qsim_dtype_limits(l->form.dtype, flags, &m.low, &m.high);
    code = choose_scales(&m);
    return code ? code : quantize_layer(&m, w);
}
