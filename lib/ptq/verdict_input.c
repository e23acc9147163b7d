/* SPDX-License-Identifier: MIT */
/* Whether the data is as what the float model was trained on, as far as a layer near the input
 * tells. */
#include <math.h>
#include <stdlib.h>

#include "graph/model.h"
#include "op/op.h"
#include "ptq/quantizer.h"
#include "ptq/verdict.h"

#define NORM_SAMPLES 32 /* whose means and variances are taken */
#define CERTAIN_OF   10 /* at least 9 of so many answers */
#define PIXELS       16 /* values above are of no input that was scaled for a network */
/*
 * Deviation of what a convolution makes of the input over its bias, the median of the channels. 16
 * networks of pictures have 0.14 to 19 on the data they were trained on; on values 255 times too
 * small 0.0006 to 0.07, too large 36 and more. One that was trained on raw pixels without any
 * normalization has 1000.
 */
#define HARDLY_SEEN  0.03
#define OVERRUN      30.0
#define LEAST_BIASED 4 /* channels */

/* ---- the layer ---- */

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
        if (qs_node_is(n, "", "BatchNormalization") && qs_node_const(g, n, 3))
            return fits_norm(g, n) ? n : NULL;
    }
    return NULL;
}

/* The first convolution, if it has a bias. */
static const qs_node *find_biased(const qs_graph *g) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (!(qs_node_traits(g, n) & QS_CONVOLVES))
            continue;
        const qs_const *bias = qs_node_const(g, n, 2);
        const qs_value *y = &g->values[n->outputs[0]];
        return bias && bias->dtype == QSIM_FLOAT && y->dtype == QSIM_FLOAT && y->name[0] ? n : NULL;
    }
    return NULL;
}

static void copy_floats(const qs_const *from, size_t n, double *to) {
    for (size_t c = 0; from && c < n; c++) {
        float one;
        memcpy(&one, (const char *)from->data + c * sizeof(one), sizeof(one));
        to[c] = (double)one;
    }
}

int qs_norm_open(qsim_verdict *v, qsim_error *error) {
    const qsim_model *m = v->model;
    const qs_node *n = find_norm(m->graph);
    qs_norm *s = &v->norm;
    s->is_bias = !n;
    if (!n) {
        m = v->prepared ? v->prepared : v->model; /* sums behind convolutions are biases there */
        n = find_biased(m->graph);
    }
    if (!n)
        return QSIM_OK;
    const qs_graph *g = m->graph;
    const qs_const *mean = qs_node_const(g, n, s->is_bias ? 2 : 3);
    const char *watched = g->values[s->is_bias ? n->outputs[0] : n->inputs[0]].name;
    s->channels = mean->elements;
    const char *label = qs_node_label(g, (qs_id)(n - g->nodes));
    s->name = qs_arena_string(&v->arena, label, strlen(label));
    s->sum = qs_arena_alloc(&v->arena, 6 * s->channels + 1, sizeof(*s->sum));
    if (!s->name || !s->sum)
        return qs_fail(error, QSIM_E_NOMEM, "verdict: out of memory");
    s->square = s->sum + s->channels;
    s->mean = s->square + s->channels;
    s->variance = s->mean + s->channels;
    s->room = s->variance + s->channels;
    copy_floats(mean, s->channels, s->mean);
    copy_floats(s->is_bias ? NULL : qs_node_const(g, n, 4), s->channels, s->variance);
    return qs_side_open(m, &watched, 1, &s->side, v->ctx, error);
}

int qs_norm_feed(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    qs_norm *s = &v->norm;
    if (s->samples >= NORM_SAMPLES)
        return QSIM_OK;
    const int code = qs_side_execute(&s->side, inputs, count, error);
    const qsim_tensor *y = &s->side.outputs[0];
    if (code || y->rank < 2 || y->dims[1] != (int64_t)s->channels || s->channels == 0)
        return code;
    const size_t elements = y->bytes / sizeof(float), samples = (size_t)y->dims[0];
    const size_t inner = samples ? elements / samples / s->channels : 0;
    const float *x = y->data;
    for (size_t i = 0; i < samples * s->channels; i++)
        for (size_t k = 0; k < inner; k++) {
            const double value = (double)*x++;
            s->sum[i % s->channels] += value;
            s->square[i % s->channels] += value * value;
        }
    s->positions += samples * inner;
    s->samples += (int64_t)samples;
    return QSIM_OK;
}

/* ---- what it says ---- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n) {
    qsort(x, n, sizeof(*x), by_value);
    return n ? x[n / 2] : (double)NAN;
}

/*
 * Medians over channels: how many deviations the mean is off, and how many times the variance.
 * False: nothing is known.
 */
static bool compare_norm(const qsim_verdict *v, double *off, double *ratio) {
    const qs_norm *s = &v->norm;
    double *room = s->room;
    size_t n = 0;
    for (size_t c = 0; c < s->channels && s->positions > 0; c++) {
        const double mean = s->sum[c] / (double)s->positions;
        const double variance = s->square[c] / (double)s->positions - mean * mean;
        if (!(s->variance[c] > 1e-10))
            continue;
        room[n] = fabs(mean - s->mean[c]) / sqrt(s->variance[c]);
        room[s->channels + n++] = variance / s->variance[c];
    }
    *off = n ? median(room, n) : 0;
    *ratio = n ? median(room + s->channels, n) : 1;
    return n > 0;
}

/* The deviation of what the convolution makes of the input over its bias; false: it has none. */
static bool compare_bias(const qsim_verdict *v, double *ratio) {
    const qs_norm *s = &v->norm;
    size_t n = 0;
    for (size_t c = 0; c < s->channels && s->positions > 0; c++) {
        const double mean = s->sum[c] / (double)s->positions;
        const double variance = s->square[c] / (double)s->positions - mean * mean;
        if (s->mean[c] != 0)
            s->room[n++] = sqrt(fmax(variance, 0)) / fabs(s->mean[c]);
    }
    *ratio = n >= LEAST_BIASED && 2 * n >= s->channels ? median(s->room, n) : (double)NAN;
    return !isnan(*ratio);
}

static void warn_by_norm(qsim_verdict *v, double off, double ratio) {
    const qs_seen_data *d = &v->data;
    const bool pixels = d->whole && d->greatest > 1, enough = v->norm.samples >= QS_FEW_JUDGED;
    const double wide = enough ? 2.5 : 4, far = enough ? 0.5 : 1;
    v->fits = ratio > wide || ratio < 1 / wide || off > far ? -1 : 1;
    if (v->fits < 0)
        qs_verdict_say(
            v, pixels ? "raw-pixels" : "input-range", QSIM_GRADE_DOUBTFUL,
            "the float model itself sees other data than it was trained on%s The variance "
            "before '%.80s' is %.3g times that of training, the mean %.2g deviations off",
            pixels ? ": raw pixels from 0 to 255?" : ": is the preprocessing right?", v->norm.name,
            ratio, off);
}

static void warn_by_bias(qsim_verdict *v, double ratio) {
    const qs_seen_data *d = &v->data;
    if (ratio < HARDLY_SEEN)
        qs_verdict_say(v, "input-range", QSIM_GRADE_DOUBTFUL,
                       "the float model hardly sees its input: what '%.80s' makes of it varies by "
                       "%.2g times the bias: was it trained on wider values than %.3g to %.3g?",
                       v->norm.name, ratio, (double)d->least, (double)d->greatest);
    else if (ratio > OVERRUN && d->greatest > PIXELS && 2 * d->sure >= d->rows)
        qs_verdict_say(
            v, "raw-pixels", QSIM_GRADE_DOUBTFUL,
            "the input runs from %.3g to %.3g, and what '%.80s' makes of it is %.3g times "
            "its bias: was the model trained on 0 to 1?",
            (double)d->least, (double)d->greatest, v->norm.name, ratio);
    else
        return;
    v->fits = -1;
}

/* Pixels that drive class scores beyond any doubt. */
static bool certain_of_pixels(const qs_seen_data *d) {
    return d->whole && d->greatest > 1 && d->rows > 0 &&
           d->certain * CERTAIN_OF >= d->rows * (CERTAIN_OF - 1);
}

void qs_input_warn(qsim_verdict *v) {
    const qs_seen_data *d = &v->data;
    double off, ratio;
    v->fits = 0;
    if (!v->norm.is_bias && compare_norm(v, &off, &ratio)) {
        warn_by_norm(v, off, ratio);
        return;
    }
    if (v->norm.is_bias && compare_bias(v, &ratio))
        warn_by_bias(v, ratio);
    if (v->fits || !certain_of_pixels(d))
        return;
    v->fits = -1;
    qs_verdict_say(
        v, "raw-pixels", QSIM_GRADE_DOUBTFUL,
        "the input is raw pixels (whole numbers up to %g), and the float model is certain "
        "beyond any doubt of %llu of %llu answers: was it trained on 0 to 1?",
        (double)d->greatest, (unsigned long long)d->certain, (unsigned long long)d->rows);
}

int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info) {
    if (!v || !info)
        return QSIM_E_ARGUMENT;
    if (v->data.elements == 0)
        return QSIM_E_NOT_FOUND;
    const qsim_verdict_input_info own = {.name = v->input,
                                         .least = (double)v->data.least,
                                         .greatest = (double)v->data.greatest,
                                         .mean = v->data.sum / (double)v->data.elements,
                                         .fits = v->fits};
    return qs_give(info, &own, sizeof(own));
}
