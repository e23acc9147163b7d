/* SPDX-License-Identifier: MIT */
/* Finds problems of the data on which a model was calibrated or is judged. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/model.h"
#include "ptq/divergence.h"
#include "ptq/verdict.h"
#include "tensor/minifloat.h"

#define ENOUGH_SAMPLES 32  /* for ranges; 8 do where they are typical */
#define WIDENED        4.0 /* by one sample alone */
#define STRETCHED      8.0 /* by one value in 10,000 */
#define CERTAIN        100 /* margin of scores: e^100 to 1 */
#define SURE           30

void qs_verdict_say(qsim_verdict *v, const char *kind, int32_t at_best, const char *format, ...) {
    if (v->warning_count == QS_MOST_WARNINGS)
        return;
    qs_warning *w = &v->warnings[v->warning_count++];
    va_list list;
    w->kind = kind;
    w->at_best = at_best;
    va_start(list, format);
    vsnprintf(w->text, sizeof(w->text), format, list);
    va_end(list);
}

/* ---- samples as they come ---- */

static uint64_t hash(const uint8_t *p, size_t n) {
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static void observe_floats(qs_seen_data *d, const qsim_tensor *t, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const double x = qs_element(t, i);
        if (d->elements++ == 0) {
            d->least = d->greatest = x;
            d->whole = true;
        }
        d->whole = d->whole && x >= 0 && x <= 255 && x == (int32_t)x;
        d->least = x < d->least ? x : d->least;
        d->greatest = x > d->greatest ? x : d->greatest;
        d->sum += x;
    }
}

void qs_data_feed(qs_seen_data *d, const qsim_tensor *x) {
    const size_t samples = x->rank > 0 && x->dims[0] > 0 ? (size_t)x->dims[0] : 1;
    const size_t bytes = x->bytes / samples;
    size_t element = 0;
    int64_t one = 1;
    if (qsim_tensor_size(x->dtype, 1, &one, NULL, &element) || element == 0)
        element = bytes > 0 ? bytes : 1;
    for (size_t i = 0; i < samples; i++) {
        const uint8_t *p = bytes ? (const uint8_t *)x->data + i * bytes : x->data;
        const uint64_t h = hash(p, bytes);
        d->first = d->samples == 0 ? h : d->first;
        d->same += h == d->first;
        d->pictures = x->rank == 4;
        d->samples++;
        d->constant += bytes > element && memcmp(p, p + element, bytes - element) == 0;
    }
    if (qs_is_real(x->dtype))
        observe_floats(d, x, x->bytes / element);
}

/* Adds a row of probabilities. */
static void add_shares(qs_seen_data *d, const float *x) {
    float top = 0;
    for (size_t c = 0; c < d->classes; c++) {
        d->share[c] += (double)x[c];
        d->entropy -= x[c] > 0 ? (double)x[c] * log((double)x[c]) : 0;
        top = x[c] > top ? x[c] : top;
    }
    d->top += (double)top;
    d->shared++;
}

static void add_row(qs_seen_data *d, const float *x) {
    float best = -INFINITY, second = -INFINITY;
    double sum = 0;
    size_t at = 0;
    for (size_t c = 0; c < d->classes; c++) {
        sum += (double)fabsf(x[c]);
        if (x[c] > best) {
            second = best;
            best = x[c];
            at = c;
        } else if (x[c] > second)
            second = x[c];
    }
    d->first_class = d->rows == 0 ? at : d->first_class;
    d->one_class += at == d->first_class;
    d->rows++;
    /* Probabilities, or scores before softmax. */
    const bool shares = fabs(sum - 1) < 1e-3;
    d->certain += shares ? best >= 1 - 1e-6f : best - second > CERTAIN;
    d->sure += shares ? best >= 1 - 1e-6f : best - second > SURE;
    if (shares)
        add_shares(d, x);
}

int qs_data_scores(qsim_verdict *v, const qsim_tensor *scores, size_t rows, size_t classes) {
    qs_seen_data *d = &v->data;
    if (!d->share) {
        d->classes = classes;
        d->share = qs_arena_alloc(&v->arena, classes, sizeof(*d->share));
    }
    if (!d->share)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < rows && classes == d->classes; i++)
        add_row(d, (const float *)scores->data + i * classes);
    return QSIM_OK;
}

/* ---- warnings of the calibration ---- */

static bool is_input(const qsim_verdict *v, const char *name) {
    const qs_graph *g = v->model->graph;
    const qs_id id = qs_graph_find(g, name);
    return id != QS_NONE && g->values[id].is_input;
}

static void warn_of_constants(qsim_verdict *v, const qsim_calibration *c) {
    int32_t dead = 0, inputs = 0, first = -1, unseen = 0, empty = -1;
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        const char *name = qsim_calibration_name(c, i);
        if (qsim_observer_count(o) == 0)
            empty = unseen++ ? empty : i;
        if (qsim_observer_count(o) < 2 || qsim_observer_min(o) < qsim_observer_max(o))
            continue;
        if (is_input(v, name)) {
            inputs++;
            continue;
        }
        first = dead++ ? first : i;
    }
    if (inputs > 0)
        qs_verdict_say(v, "constant-input", QSIM_GRADE_BAD,
                       "calibrated on an input that is one number over and over (black pictures?)");
    else if (dead > 0)
        qs_verdict_say(
            v, "dead-tensors", QSIM_GRADE_GOOD,
            "%d of %d tensors never changed while calibrating, '%.80s' first: dead channels, or data "
            "that misses them",
            (int)dead, (int)qsim_calibration_count(c), qsim_calibration_name(c, first));
    if (unseen > 0)
        qs_verdict_say(
            v, "unseen-tensors", QSIM_GRADE_GOOD,
            "tensors without values: %d, '%.80s' first (empty, or in a branch that is not taken)",
            (int)unseen, qsim_calibration_name(c, empty));
}

static void warn_of_outliers(qsim_verdict *v, const qsim_calibration *c) {
    qsim_outlier worst = {.ratio = WIDENED};
    int32_t count = 0, at = 0;
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        qsim_outlier o = {.struct_size = sizeof(o)};
        if (qsim_calibration_outlier(c, i, &o) || o.ratio < WIDENED)
            continue;
        count++;
        at = o.ratio > worst.ratio ? i : at;
        worst = o.ratio > worst.ratio ? o : worst;
    }
    if (count > 0)
        qs_verdict_say(
            v, "outlier", QSIM_GRADE_GOOD,
            "calibration sample %lld alone widens the range of '%.80s' to %.6g (others reach %.6g)%s",
            (long long)worst.sample, qsim_calibration_name(c, at), (double)worst.value,
            (double)worst.others, count > 1 ? ", and of other tensors" : "");
}

/* Warns of tensors with a mostly empty range, unless a method other than min/max cuts it. */
static void warn_of_stretched(qsim_verdict *v, const qsim_calibration *c) {
    double worst = STRETCHED;
    int32_t count = 0, at = 0;
    for (int32_t i = 0; i < qsim_calibration_count(c); i++) {
        const qsim_observer *o = qsim_calibration_observer(c, i);
        float low, high;
        if (qsim_observer_range(o, QSIM_METHOD_PERCENTILE, 99.99, QSIM_UINT8, 0, &low, &high))
            continue;
        const double kept = qs_max((double)high, 0) - qs_min((double)low, 0);
        const double all =
            qs_max((double)qsim_observer_max(o), 0) - qs_min((double)qsim_observer_min(o), 0);
        if (!(all > STRETCHED * kept) || kept <= 0)
            continue;
        count++;
        at = all / kept > worst ? i : at;
        worst = all / kept > worst ? all / kept : worst;
    }
    if (count > 0)
        qs_verdict_say(
            v, "stretched-range", QSIM_GRADE_GOOD,
            "1 value in 10,000 makes the range of '%.80s' %.3g times as wide%s: a percentile or "
            "least squares cuts it off",
            qsim_calibration_name(c, at), worst, count > 1 ? ", and of other tensors" : "");
}

void qs_verdict_warn_early(qsim_verdict *v) {
    const qsim_calibration *c = v->options.calibration;
    const int64_t samples = qsim_calibration_samples(c);
    if (v->options.made_up)
        qs_verdict_say(v, "made-up", QSIM_GRADE_DOUBTFUL,
                       "the data is made up (noise): ranges and verdict say nothing of real data");
    if (c && samples == 1)
        qs_verdict_say(v, "one-sample", QSIM_GRADE_DOUBTFUL,
                       "calibrated on a single sample: its ranges are "
                       "no other sample's");
    else if (c && samples < ENOUGH_SAMPLES)
        qs_verdict_say(v, "few-samples", QSIM_GRADE_GOOD,
                       "calibrated on %lld samples: fewer than %d seldom show every range",
                       (long long)samples, ENOUGH_SAMPLES);
    if (c) {
        warn_of_constants(v, c);
        warn_of_outliers(v, c);
        if (v->options.method == QSIM_METHOD_MINMAX)
            warn_of_stretched(v, c);
    }
    v->early = v->warning_count;
}

/* ---- warnings of what was fed ---- */

void qs_verdict_warn(qsim_verdict *v) {
    const qs_seen_data *d = &v->data;
    v->warning_count = v->early;
    if (v->options.seen && !v->options.made_up)
        qs_verdict_say(
            v, "seen", QSIM_GRADE_DOUBTFUL,
            "judged on samples that were calibrated on, which flatters: more data leaves some out");
    if (d->samples < QS_FEW_JUDGED)
        qs_verdict_say(v, "few-judged", QSIM_GRADE_GOOD,
                       "judged on %lld sample%s: more would tell more", (long long)d->samples,
                       d->samples == 1 ? "" : "s");
    if (d->samples > 0 && d->constant == d->samples && !v->options.made_up)
        qs_verdict_say(v, "constant-input", QSIM_GRADE_BAD,
                       "every sample judged is one number over and over (black pictures?)");
    else if (d->samples > 1 && d->same == d->samples)
        qs_verdict_say(v, "same-samples", QSIM_GRADE_DOUBTFUL, "all %lld samples judged are equal",
                       (long long)d->samples);
    else if (d->rows >= QS_FEW_JUDGED && d->one_class == d->rows && !v->options.made_up)
        qs_verdict_say(v, "one-class", QSIM_GRADE_DOUBTFUL,
                       "the float model answers class %zu to all %llu samples: are data and "
                       "preprocessing right?",
                       d->first_class, (unsigned long long)d->rows);
    const bool broken = isnan(d->sum);
    if (broken)
        qs_verdict_say(v, "not-a-number", QSIM_GRADE_BAD,
                       "the samples judged hold a NaN or infinities in input '%.80s'", v->input);
    if (!broken && !v->options.made_up && (d->samples == 0 || d->constant < d->samples))
        qs_input_warn(v);
    else
        v->fits = v->options.made_up ? 0 : -1;
    qs_labels_warn(v);
    for (size_t i = 0; i < v->output_count; i++)
        if (v->outputs[i].metrics.nan_one > 0) {
            qs_verdict_say(v, "not-a-number", QSIM_GRADE_BAD,
                           "output '%.80s' has NaN in one model alone", v->outputs[i].name);
            break;
        }
}
