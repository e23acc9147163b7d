/* SPDX-License-Identifier: MIT */
#include "ptq/moments.h"

#include <math.h>

#include "kernel/elementary.h"
#include "pass/pass.h"

/* Deviations from the mean beyond which a normal distribution counts as 0. */
#define FAR 8.0f

/* ---- the normal distribution ---- */

static double density(double x) {
    return fabs(x) > (double)FAR ? 0 : 0.39894228040143268 * (double)qk_exp((float)(-x * x / 2));
}

static double cumulative(double x) {
    if (fabs(x) > (double)FAR)
        return x > 0 ? 1 : 0;
    return 0.5 + 0.5 * (double)qk_erf((float)(x * 0.70710678118654752));
}

/* x * density(x), 0 at infinity. */
static double weighted(double x) {
    return fabs(x) > (double)FAR ? 0 : x * density(x);
}

/*
 * Mean and deviation of min(max(x, lo), hi) of a normal x. With a and b the bounds in deviations
 * from the mean, P the mass between them and d(a), d(b) the densities at them:
 *
 *     E[y]   = mean P + s (d(a) - d(b)) + lo F(a) + hi (1 - F(b))
 *     E[y^2] = (mean^2 + s^2) P + 2 mean s (d(a) - d(b)) + s^2 (a d(a) - b d(b)) + lo^2 F(a) + ...
 */
static void clip(double mean, double s, double lo, double hi, float *y, float *deviation) {
    if (!(s > 0)) {
        *y = (float)(mean < lo ? lo : mean > hi ? hi : mean);
        *deviation = 0;
        return;
    }
    const double a = (lo - mean) / s, b = (hi - mean) / s;
    const double below = cumulative(a), above = 1 - cumulative(b), inside = 1 - below - above;
    const double slope = density(a) - density(b);
    const double low = below > 0 ? lo * below : 0, high = above > 0 ? hi * above : 0;
    const double first = mean * inside + s * slope + low + high;
    const double second = (mean * mean + s * s) * inside + 2 * mean * s * slope +
                          s * s * (weighted(a) - weighted(b)) + (below > 0 ? lo * low : 0) +
                          (above > 0 ? hi * high : 0);
    const double variance = second - first * first;
    *y = (float)first;
    *deviation = variance > 0 ? (float)sqrt(variance) : 0;
}

/* ---- operators ---- */

static const qs_moment *known(const qs_moments *m, qs_id value) {
    return value != QS_NONE && m->values[value].mean ? &m->values[value] : NULL;
}

/* Allocates the moments of a value; false: out of memory. */
static bool make(qs_moments *m, qs_id value, size_t channels, float **mean, float **deviation) {
    *mean = qs_arena_alloc(&m->arena, channels + 1, sizeof(**mean));
    *deviation = qs_arena_alloc(&m->arena, channels + 1, sizeof(**deviation));
    if (!*mean || !*deviation)
        return false;
    m->values[value] = (qs_moment){*mean, *deviation, channels};
    return true;
}

static bool after_norm(qs_moments *m, const qs_node *n) {
    const qs_const *scale = qs_node_const(m->g, n, 1), *shift = qs_node_const(m->g, n, 2);
    float *mean, *deviation;
    if (!scale || !shift || scale->dtype != QSIM_FLOAT || shift->dtype != QSIM_FLOAT ||
        scale->elements != shift->elements)
        return true;
    if (!make(m, n->outputs[0], scale->elements, &mean, &deviation))
        return false;
    bool finite = true;
    for (size_t c = 0; c < scale->elements; c++) {
        mean[c] = (float)qs_const_at(shift, c);
        deviation[c] = (float)fabs(qs_const_at(scale, c));
        finite &= isfinite(mean[c]) && isfinite(deviation[c]);
    }
    if (!finite)
        m->values[n->outputs[0]] = (qs_moment){0};
    return true;
}

static bool after_bounds(qs_moments *m, const qs_node *n, double lo, double hi) {
    const qs_moment *x = known(m, n->inputs[0]);
    float *mean, *deviation;
    if (!x || !x->deviation)
        return true;
    if (!make(m, n->outputs[0], x->channels, &mean, &deviation))
        return false;
    for (size_t c = 0; c < x->channels; c++)
        clip((double)x->mean[c], (double)x->deviation[c], lo, hi, &mean[c], &deviation[c]);
    return true;
}

static bool after_sum(qs_moments *m, const qs_node *n) {
    const qs_moment *a = known(m, n->inputs[0]), *b = known(m, n->inputs[1]);
    float *mean, *deviation;
    if (!a || !b || a->channels != b->channels)
        return true;
    if (!make(m, n->outputs[0], a->channels, &mean, &deviation))
        return false;
    for (size_t c = 0; c < a->channels; c++) {
        const double s = a->deviation && b->deviation ? (double)a->deviation[c] : 0;
        const double t = a->deviation && b->deviation ? (double)b->deviation[c] : 0;
        mean[c] = a->mean[c] + b->mean[c];
        deviation[c] = (float)sqrt(s * s + t * t);
    }
    if (!a->deviation || !b->deviation)
        m->values[n->outputs[0]].deviation = NULL;
    return true;
}

/* Whether an operator keeps the mean of each channel. */
static bool keeps_mean(const qs_moments *m, const qs_node *n) {
    bool keep;
    const int64_t rank = n->outputs[0] == QS_NONE ? -1 : m->g->values[n->outputs[0]].rank;
    if (n->op->moments == QS_MOMENTS_MEAN || n->op->moments == QS_MOMENTS_SAME ||
        qs_is_global_mean(m->g, n, &keep))
        return true;
    /* [N, C, 1, 1] as [N, C]. */
    return rank == 2 && (n->op->traits & QS_RESHAPES);
}

/* Whether the second axis of the output has the same channels. */
static bool same_channels(const qs_moments *m, const qs_node *n) {
    const qs_moment *x = known(m, n->inputs[0]);
    const qs_value *y = &m->g->values[n->outputs[0]];
    return x && (y->rank != 2 || y->dims[1].size == (int64_t)x->channels);
}

/* Derives the moments of the output from those of the input, where the operator allows; false: no
 * memory. */
static bool propagate(qs_moments *m, const qs_node *n) {
    double lo, hi;
    if (n->output_count < 1 || n->input_count < 1 || n->inputs[0] == QS_NONE ||
        n->outputs[0] == QS_NONE)
        return true;
    if (n->op->moments == QS_MOMENTS_NORM)
        return after_norm(m, n);
    if (qs_node_bounds(m->g, n, &lo, &hi))
        return after_bounds(m, n, lo, hi);
    if ((n->op->traits & QS_ADDS) && n->inputs[1] != QS_NONE)
        return after_sum(m, n);
    if (keeps_mean(m, n) && same_channels(m, n)) {
        m->values[n->outputs[0]] = *known(m, n->inputs[0]);
        if (n->op->moments != QS_MOMENTS_SAME)
            m->values[n->outputs[0]].deviation = NULL;
    }
    return true;
}

int qs_moments_find(qsim_ctx *ctx, const qs_graph *g, qs_moments *m) {
    *m = (qs_moments){.g = g};
    qs_arena_init(&m->arena, ctx);
    m->values = qs_arena_alloc(&m->arena, g->value_count + 1, sizeof(*m->values));
    bool made = m->values != NULL;
    for (size_t k = 0; k < g->order_count && made; k++)
        if (!g->nodes[g->order[k]].removed)
            made = propagate(m, &g->nodes[g->order[k]]);
    return made ? QSIM_OK : QSIM_E_NOMEM;
}

void qs_moments_free(qs_moments *m) {
    if (m->g)
        qs_arena_free(&m->arena);
}

const float *qs_moments_mean(const qs_moments *m, const char *name, size_t channels) {
    const qs_id value = m->g ? qs_graph_find(m->g, name) : QS_NONE;
    const qs_moment *x = value == QS_NONE ? NULL : known(m, value);
    return x && x->channels == channels ? x->mean : NULL;
}
