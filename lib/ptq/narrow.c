/* SPDX-License-Identifier: MIT */
/*
 * Weights in 4 bits: finds the scale of each channel or block with the least squared error,
 * weighted by the second moments of the inputs if a calibration has them, and rounds by GPTQ.
 */
#include "ptq/gram.h"
#include "ptq/gptq.h"
#include "ptq/weight_pairs.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

#include <float.h>
#include <math.h>

#include "base/ctx.h"

/* Scales are tried from the one that represents every weight down to half of it. */
#define STEPS 40

/* ---- which layers ---- */

static bool has_groups(const qs_node *n) {
    return qs_node_int(n, "group", 1) != 1;
}

bool qs_narrow_suits(const qs_quantizer *q, const qs_layer *l) {
    const qs_node *n = &q->g->nodes[l->node];
    return l != q->layers && l + 1 != q->layers + q->layer_count && !has_groups(n);
}

bool qs_narrow_wanted(const qsim_quantize_options *o) {
    bool wanted = qs_is_narrow(o->weight_type);
    for (size_t i = 0; i < o->rule_count && !wanted; i++) {
        qsim_rule rule;
        wanted = !qs_rule_get(o, i, &rule, NULL) && rule.action == QSIM_RULE_INT4;
    }
    for (size_t i = 0; o->recipe && i < o->recipe->count && !wanted; i++)
        wanted = qs_is_narrow(o->recipe->entries[i].dtype);
    return wanted;
}

/* Whether a product becomes MatMulNBits. */
static bool becomes_nbits(const qs_quantizer *q, const qs_layer *l) {
    const qsim_quantize_options *o = &q->options;
    return !(q->g->nodes[l->node].op->traits & QS_CONVOLVES) &&
           (o->mode == QSIM_MODE_DYNAMIC ||
            (o->mode == QSIM_MODE_WEIGHTS && o->format == QSIM_FORMAT_QOPERATOR));
}

bool qs_narrow_fits(const qs_quantizer *q, const qs_layer *l) {
    return q->options.mode != QSIM_MODE_DYNAMIC || becomes_nbits(q, l);
}

int32_t qs_narrow_block(const qs_quantizer *q, const qs_layer *l, int32_t wanted) {
    if (!l->is_matrix)
        return 0;
    return wanted || !becomes_nbits(q, l) ? wanted : 32;
}

/* ---- scales ---- */

typedef struct narrowing {
    qs_quantizer *q;
    const qs_layer *l;
    const float *w;
    const float *moment; /* of each weight of a channel: E[x^2]; NULL: 1 */
    qs_codes *out;
} narrowing;

static void fill(const narrowing *n, qs_tried *f, size_t channel, size_t first, size_t count) {
    for (size_t i = 0; i < QS_TRIED; i++) {
        const size_t k = first + i;
        f->w[i] = i < count ? n->w[channel * n->l->stride + k * n->l->step] : 0;
        f->weight[i] = i < count && n->moment ? n->moment[k] : i < count;
    }
}

/* Measures the errors of weights [first, end) of a channel with each of the scales. */
static void measure(const narrowing *n, qs_tried *f, size_t channel, size_t first, size_t end,
                    const float *scale, double *error) {
    for (int s = 0; s <= STEPS; s++)
        error[s] = 0;
    for (size_t at = first; at < end; at += QS_TRIED) {
        const size_t count = end - at < QS_TRIED ? end - at : QS_TRIED;
        fill(n, f, channel, at, count);
        for (int s = 0; s <= STEPS; s++)
            error[s] += qs_tried_error(f, count, scale[s]);
    }
}

static void choose_scale(const narrowing *n, qs_tried *f, size_t channel, size_t first, size_t end,
                         float *scale, int32_t *zero) {
    const bool symmetric = qs_is_symmetric(&n->l->form);
    const int32_t middle = n->l->form.dtype == QSIM_UINT4 ? 8 : 0;
    float low = 0, high = 0, tried[STEPS + 1];
    double error[STEPS + 1];
    for (size_t k = first; k < end; k++) {
        const float w = n->w[channel * n->l->stride + k * n->l->step];
        low = w < low ? w : low;
        high = w > high ? w : high;
    }
    const float width = symmetric ? (-low > high ? -low : high) / 7 : (high - low) / 15;
    *scale = 1;
    *zero = middle;
    if (!(width * 0.5f >= FLT_MIN) || !isfinite(width))
        return;
    int32_t below = symmetric ? 8 : (int32_t)rintf(-low / width);
    f->low = (float)-below;
    f->high = (float)(15 - below);
    for (int s = 0; s <= STEPS; s++)
        tried[s] = width * (1.0f - 0.5f * (float)s / STEPS);
    measure(n, f, channel, first, end, tried, error);
    int best = 0;
    for (int s = 1; s <= STEPS; s++)
        best = error[s] < error[best] ? s : best;
    *scale = tried[best];
    *zero = middle + below - 8;
}

static int alloc_weights(const narrowing *n) {
    qs_arena *a = &n->q->g->arena;
    const size_t block = n->l->form.block ? (size_t)n->l->form.block : n->l->depth;
    const size_t blocks = (n->l->depth + block - 1) / block;
    qs_codes *c = n->out;
    *c = (qs_codes){.count = n->l->channels * blocks};
    if (n->l->form.block) {
        c->blocks = blocks;
        c->block = block;
    }
    c->scale = qs_arena_alloc(a, c->count, sizeof(*c->scale));
    c->zero_point = qs_arena_alloc(a, c->count, sizeof(*c->zero_point));
    c->data = qs_arena_alloc(a, n->l->channels * n->l->depth + 1, 1);
    return c->scale && c->zero_point && c->data ? QSIM_OK : QSIM_E_NOMEM;
}

/* E[x[k]^2] of the layer's input, multiplied by its equalization factor. */
static double moment(const narrowing *n, const qs_gram *gram, size_t k) {
    const double factor = (double)qs_layer_factor(n->q, n->l, k);
    return qs_gram_moment(gram, k, k) * (factor * factor);
}

/* Makes the weights of squared errors: the diagonal of the second moments, unless it is all 0. */
static int make_moments(narrowing *n, float **out) {
    const qs_gram *gram = qs_gram_find(n->q, n->l);
    *out = NULL;
    if (!gram || n->l->form.rounding != QSIM_ROUNDING_GPTQ)
        return QSIM_OK;
    float *m = qs_alloc(n->q->ctx, n->l->depth, sizeof(*m));
    double most = 0;
    if (!m)
        return QSIM_E_NOMEM;
    for (size_t k = 0; k < n->l->depth; k++)
        most = qs_max(moment(n, gram, k), most);
    for (size_t k = 0; k < n->l->depth; k++)
        m[k] = most > 0 ? (float)(moment(n, gram, k) / most + 1e-9) : 1;
    *out = m;
    return QSIM_OK;
}

static int fail_layer(const qs_quantizer *q, const qs_layer *l, int code, const char *what) {
    const qs_node *n = &q->g->nodes[l->node];
    return qs_fail(q->error, code, "%s: %s (node '%s', %s)", q->model->name, what,
                   qs_node_label(q->g, l->node), n->op_type);
}

int qs_narrow_scales(qs_quantizer *q, const qs_layer *l, qs_codes *out) {
    const qs_id weights = q->g->nodes[l->node].inputs[1];
    narrowing n = {.q = q, .l = l, .w = qs_graph_aligned(q->g, weights), .out = out};
    qs_tried f;
    float *moment = NULL;
    int code = n.w ? alloc_weights(&n) : QSIM_E_NOMEM;
    if (!code && !qs_all_finite(n.w, q->g->values[weights].data->elements))
        return fail_layer(q, l, QSIM_E_VALUE, "the weights hold a NaN or an infinity");
    if (!code)
        code = make_moments(&n, &moment);
    n.moment = moment;
    const size_t block = out->blocks ? out->block : l->depth, blocks = out->blocks + !out->blocks;
    for (size_t c = 0; c < l->channels && !code; c++) {
        for (size_t b = 0; b < blocks; b++) {
            const size_t end = b * block + block < l->depth ? b * block + block : l->depth;
            choose_scale(&n, &f, c, b * block, end, &out->scale[c * blocks + b],
                         &out->zero_point[c * blocks + b]);
        }
        code = qs_go_on(q->ctx, q->model->name, q->error);
    }
    qs_free(q->ctx, moment);
    return code;
}

/* ---- rounding ---- */

/*
 * Factorizes the layer's Hessian for GPTQ: the second moments of its inputs or, if the bias is
 * corrected by their means, the covariances.
 */
static int factorize(qs_quantizer *q, const qs_layer *l, const qs_gram *gram, qs_gptq *g) {
    const int32_t correction = qs_bias_decide(q, l->node);
    const bool centred =
        correction == QSIM_BIAS_CORRECTION_ON || correction == QSIM_BIAS_CORRECTION_GIVEN;
    size_t count;
    double *h = qs_mul(l->depth, l->depth, &count) ? qs_alloc(q->ctx, count, sizeof(*h)) : NULL;
    if (!h)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < l->depth; i++)
        for (size_t j = 0; j < l->depth; j++)
            h[i * l->depth + j] =
                (centred ? qs_gram_covariance(gram, i, j) : qs_gram_moment(gram, i, j)) *
                ((double)qs_layer_factor(q, l, i) * (double)qs_layer_factor(q, l, j));
    /*
     * If all rows are equal the covariances are rounding errors of float sums, and weights are
     * rounded to nearest.
     */
    double trace = 0, whole = 0;
    for (size_t i = 0; i < l->depth; i++) {
        trace += h[i * l->depth + i];
        whole += qs_gram_moment(gram, i, i);
    }
    for (size_t i = 0; trace <= 1e-6 * whole && i < count; i++)
        h[i] = i % (l->depth + 1) == 0;
    int code = qs_gptq_create(q->ctx, h, l->depth, g);
    qs_free(q->ctx, h);
    return code;
}

int qs_narrow_round(qs_quantizer *q, const qs_layer *l, qs_codes *codes) {
    const bool narrow = qs_is_narrow(l->form.dtype), is_signed = l->form.dtype == QSIM_INT4;
    int32_t low = is_signed ? -8 : 0, high = is_signed ? 7 : 15;
    if (!narrow)
        (void)qsim_dtype_limits(l->form.dtype, qs_weight_range(&l->form), &low, &high);
    const qs_rows rows = {.w = qs_graph_aligned(q->g, q->g->nodes[l->node].inputs[1]),
                          .channels = l->channels,
                          .depth = l->depth,
                          .stride = l->stride,
                          .step = l->step};
    const qs_grid grid = {.scale = codes->scale,
                          .zero = codes->zero_point,
                          .blocks = codes->count == 1 ? 0 : codes->blocks + !codes->blocks,
                          .block = codes->blocks ? codes->block : l->depth,
                          .low = low,
                          .high = high,
                          .taps = narrow ? 0 : qs_pairs_taps(q, l)};
    const qs_gram *gram = qs_gram_find(q, l);
    const bool by_gptq = gram && l->form.rounding == QSIM_ROUNDING_GPTQ;
    qs_gptq g = {0};
    double *scratch = NULL;
    int code = rows.w ? QSIM_OK : QSIM_E_NOMEM;
    if (!code && by_gptq)
        code = factorize(q, l, gram, &g);
    if (!code && by_gptq && !(scratch = qs_alloc(q->ctx, qs_gptq_scratch(&g), sizeof(*scratch))))
        code = QSIM_E_NOMEM;
    if (!code)
        qs_gptq_round(by_gptq ? &g : NULL, &rows, &grid, codes->data, scratch);
    qs_free(q->ctx, scratch);
    qs_gptq_free(&g);
    if (code == QSIM_E_CANCELLED)
        return qs_go_on(q->ctx, q->model->name, q->error);
    if (code == QSIM_E_VALUE)
        return fail_layer(q, l, code, "the second moments of its inputs are not positive definite");
    return code ? QSIM_E_NOMEM : QSIM_OK;
}

int qs_narrow_make(qs_quantizer *q, const qs_layer *l, qs_codes *out) {
    int code = qs_narrow_scales(q, l, out);
    return code ? code : qs_narrow_round(q, l, out);
}
