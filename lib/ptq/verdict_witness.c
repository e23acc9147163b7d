/* SPDX-License-Identifier: MIT */
/*
 * Collects statistics of layers near the input, which show the values that a model was trained on.
 */
#include <math.h>
#include <stdlib.h>

#include "graph/model.h"
#include "op/op.h"
#include "ptq/quantizer.h"
#include "ptq/verdict.h"

#define WITNESS_SAMPLES 32 /* whose means and variances are taken */
#define LEAST_BIASED    4  /* channels */

/* ---- the layers ---- */

static bool fits_norm(const qs_graph *g, const qs_node *n) {
    const qs_const *mean = qs_node_const(g, n, 3), *variance = qs_node_const(g, n, 4);
    const qs_value *x = &g->values[n->inputs[0]];
    return mean && variance && mean->dtype == QSIM_FLOAT && variance->dtype == QSIM_FLOAT &&
           mean->elements == variance->elements && x->producer != QS_NONE &&
           x->dtype == QSIM_FLOAT && x->name[0];
}

static const qs_node *find_norm(const qs_graph *g) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (n->op && n->op->moments == QS_MOMENTS_NORM && qs_node_const(g, n, 3))
            return fits_norm(g, n) ? n : NULL;
    }
    return NULL;
}

static bool is_biased(const qs_graph *g, const qs_node *n) {
    const qs_const *bias = qs_node_const(g, n, 2);
    const qs_value *y = &g->values[n->outputs[0]];
    return bias && bias->dtype == QSIM_FLOAT && y->dtype == QSIM_FLOAT && y->name[0];
}

/* Whether a normalization by the values' own statistics reads it: any scale of them is right then.
 */
static bool is_normalized(const qs_graph *g, qs_id value) {
    for (size_t i = 0; i < g->node_count; i++) {
        const qs_node *n = &g->nodes[i];
        if (!n->removed && n->op && n->op->moments == QS_MOMENTS_OWN &&
            qs_node_input(n, 0) == value)
            return true;
    }
    return false;
}

/* The first convolutions whose biases tell of their inputs; none if the first's bias does not. */
static size_t find_biased(const qs_graph *g, const qs_node *found[QS_WITNESSES]) {
    size_t count = 0;
    for (size_t k = 0; k < g->order_count && count < QS_WITNESSES; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (!(qs_node_traits(g, n) & QS_CONVOLVES))
            continue;
        if (is_biased(g, n) && !is_normalized(g, n->outputs[0]))
            found[count++] = n;
        else if (count == 0)
            break;
    }
    return count;
}

static void copy_floats(const qs_const *from, size_t n, double *to) {
    for (size_t c = 0; from && c < n; c++) {
        float one;
        memcpy(&one, (const char *)from->data + c * sizeof(one), sizeof(one));
        to[c] = (double)one;
    }
}

static int watch(qsim_verdict *v, const qs_graph *g, const qs_node *n) {
    qs_witnesses *s = &v->witness;
    qs_witness *w = &s->layers[s->count++];
    const qs_const *mean = qs_node_const(g, n, s->is_bias ? 2 : 3);
    const char *label = qs_node_label(g, (qs_id)(n - g->nodes));
    w->channels = mean->elements;
    w->name = qs_arena_string(&v->arena, label, strlen(label));
    w->mean = qs_arena_alloc(&v->arena, 7 * w->channels + 1, sizeof(*w->mean));
    if (!w->name || !w->mean)
        return QSIM_E_NOMEM;
    w->variance = w->mean + w->channels;
    w->sorted = w->variance + w->channels;
    for (size_t k = 0; k < QS_TRIALS; k++) {
        w->seen[k].sum = w->sorted + (2 * k + 1) * w->channels;
        w->seen[k].square = w->seen[k].sum + w->channels;
    }
    copy_floats(mean, w->channels, w->mean);
    copy_floats(s->is_bias ? NULL : qs_node_const(g, n, 4), w->channels, w->variance);
    return QSIM_OK;
}

int qs_witness_open(qsim_verdict *v, qsim_error *error) {
    const qsim_model *m = v->model;
    const qs_node *found[QS_WITNESSES] = {find_norm(m->graph)};
    const char *names[QS_WITNESSES];
    size_t count = found[0] != NULL;
    v->witness.is_bias = count == 0;
    if (count == 0) {
        m = v->prepared ? v->prepared : v->model; /* it has Adds after convolutions as biases */
        count = find_biased(m->graph, found);
    }
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        names[i] =
            m->graph->values[v->witness.is_bias ? found[i]->outputs[0] : found[i]->inputs[0]].name;
        code = watch(v, m->graph, found[i]);
    }
    return code || count == 0 ? code
                              : qs_side_open(m, names, count, &v->witness.side, v->ctx, error);
}

/* ---- samples ---- */

static void add_up(qs_witness *w, qs_channel_sums *s, const qsim_tensor *y) {
    if (y->rank < 2 || y->dims[1] != (int64_t)w->channels || w->channels == 0)
        return;
    const size_t elements = y->bytes / sizeof(float), samples = (size_t)y->dims[0];
    const size_t inner = samples ? elements / samples / w->channels : 0;
    const float *x = y->data;
    for (size_t i = 0; i < samples * w->channels; i++)
        for (size_t k = 0; k < inner; k++) {
            const double value = (double)*x++;
            s->sum[i % w->channels] += value;
            s->square[i % w->channels] += value * value;
        }
    s->positions += samples * inner;
}

static int run_trial(qsim_verdict *v, int trial, const qsim_tensor *inputs, size_t count,
                     qsim_error *error) {
    qs_witnesses *s = &v->witness;
    const int code = qs_side_execute(&s->side, inputs, count, error);
    for (size_t i = 0; i < s->count && !code; i++)
        add_up(&s->layers[i], &s->layers[i].seen[trial], &s->side.outputs[i]);
    return code;
}

static bool is_wide(const qsim_tensor *x) {
    const float *values = x->data;
    for (size_t i = 0; x->dtype == QSIM_FLOAT && i < x->bytes / sizeof(*values); i++)
        if (values[i] > QS_PIXELS)
            return true;
    return false;
}

/* Runs the layers with the first input divided by 255. */
static int run_divided(qsim_verdict *v, const qsim_tensor *inputs, size_t count,
                       qsim_error *error) {
    qsim_tensor *all = qs_calloc(v->ctx, count, sizeof(*all));
    float *x = qs_alloc(v->ctx, inputs[0].bytes, 1);
    int code = all && x ? QSIM_OK : QSIM_E_NOMEM;
    if (!code) {
        memcpy(all, inputs, count * sizeof(*all));
        for (size_t i = 0; i < inputs[0].bytes / sizeof(*x); i++)
            x[i] = ((const float *)inputs[0].data)[i] / 255;
        all[0].data = x;
        code = run_trial(v, QS_DIVIDED, all, count, error);
    }
    qs_free(v->ctx, x);
    qs_free(v->ctx, all);
    return code;
}

int qs_witness_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    qs_witnesses *s = &v->witness;
    if (s->samples >= WITNESS_SAMPLES)
        return QSIM_OK;
    int code = run_trial(v, QS_AS_GIVEN, inputs, count, error);
    if (!code && s->is_bias && count > 0 && is_wide(&inputs[0]))
        code = run_divided(v, inputs, count, error);
    s->samples += count > 0 && inputs[0].rank > 0 ? inputs[0].dims[0] : 1;
    return code;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n) {
    qsort(x, n, sizeof(*x), by_value);
    return n ? x[n / 2] : (double)NAN;
}

static double mean_of(const qs_channel_sums *s, size_t c) {
    return s->sum[c] / qs_real(s->positions);
}

static double variance_of(const qs_channel_sums *s, size_t c) {
    const double mean = mean_of(s, c);
    return qs_max(s->square[c] / (double)s->positions - mean * mean, 0);
}

bool qs_witness_norm(const qsim_verdict *v, double *off, double *ratio) {
    const qs_witness *w = &v->witness.layers[0];
    const qs_channel_sums *s = &w->seen[QS_AS_GIVEN];
    double *ratios = w->seen[QS_DIVIDED].sum; /* not tried with BatchNormalization */
    size_t n = 0;
    if (v->witness.is_bias || v->witness.count == 0 || s->positions == 0)
        return false;
    for (size_t c = 0; c < w->channels; c++) {
        if (!(w->variance[c] > 1e-10))
            continue;
        w->sorted[n] = fabs(mean_of(s, c) - w->mean[c]) / sqrt(w->variance[c]);
        ratios[n++] = variance_of(s, c) / w->variance[c];
    }
    *off = median(w->sorted, n);
    *ratio = median(ratios, n);
    return n > 0;
}

/* The standard deviation of a convolution's output over its bias; NaN: it has no bias. */
static double bias_ratio(const qs_witness *w, const qs_channel_sums *s) {
    size_t n = 0;
    for (size_t c = 0; c < w->channels; c++)
        if (w->mean[c] != 0)
            w->sorted[n++] = sqrt(variance_of(s, c)) / fabs(w->mean[c]);
    return n >= LEAST_BIASED && 2 * n >= w->channels ? median(w->sorted, n) : (double)NAN;
}

/*
 * Biases against the means of the sums that they are added to, over channels: correlation of bias
 * and -mean, and the slope of the line through the origin.
 */
static bool match_biases(const qs_witness *w, const qs_channel_sums *s, double *correlation,
                         double *slope) {
    double e = 0, b = 0, ee = 0, bb = 0, eb = 0;
    const double n = qs_real(w->channels);
    for (size_t c = 0; c < w->channels; c++) {
        const double bias = w->mean[c], mean = bias - mean_of(s, c);
        e += mean;
        b += bias;
        ee += mean * mean;
        bb += bias * bias;
        eb += mean * bias;
    }
    const double variances = (ee - e * e / n) * (bb - b * b / n);
    if (w->channels < LEAST_BIASED || !(variances > 0))
        return false;
    *correlation = (eb - e * b / n) / sqrt(variances);
    *slope = eb / ee;
    return true;
}

qs_biases qs_witness_biases(const qsim_verdict *v, int trial) {
    qs_biases found = {.first = (double)NAN, .rest = (double)NAN};
    double correlation[QS_WITNESSES], slope[QS_WITNESSES], ratio[QS_WITNESSES];
    size_t ratios = 0;
    for (size_t i = 0; v->witness.is_bias && i < v->witness.count; i++) {
        const qs_witness *w = &v->witness.layers[i];
        const qs_channel_sums *s = &w->seen[trial];
        if (s->positions == 0)
            continue;
        const double one = bias_ratio(w, s);
        if (i == 0)
            found.first = one;
        else if (!isnan(one))
            ratio[ratios++] = one;
        found.layers += match_biases(w, s, &correlation[found.layers], &slope[found.layers]);
    }
    found.rest = median(ratio, ratios);
    found.correlation = median(correlation, found.layers);
    found.slope = median(slope, found.layers);
    return found;
}
