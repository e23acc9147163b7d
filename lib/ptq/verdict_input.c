/* SPDX-License-Identifier: MIT */
/*
 * Judges from the float model's parameters and outputs whether the data is like its training data.
 */
#include <math.h>

#include "graph/model.h"
#include "ptq/verdict.h"

#define CERTAIN_OF 10 /* rows are certain if at least 9 of 10 are */
/*
 * The bounds below are from measurements on 13 networks of pictures, with the values that they were
 * trained on and with five other ranges of values:
 *
 *                                         as trained      other values
 *     first layer: deviation / bias       0.26 to 26      0.005 to 0.03 if 100 times too small
 *         without normalization           1000            36 and more if too large
 *     other layers: deviation / bias      0.57 to 4500    0.08 to 0.12 if too small
 *     with a folded BatchNormalization:
 *         slope of biases over means      0.76 to 0.98    0.004 to 0.24 if too large or shifted
 *         correlation of both             0.57 to 0.99    0.28 to 0.78 if too large or shifted
 *     without: correlation of both        -0.3 to 0.2
 *     information of outputs / entropy    0.55 to 0.91    0.00 to 0.07 if too small
 */
#define HARDLY_SEEN  0.03
#define LITTLE_SEEN  0.1 /* if the other layers are below LITTLE_REST */
#define LITTLE_REST  0.25
#define OVERRUN      30.0
#define OVERRUN_REST 10.0 /* the other layers are below it after a clip or BatchNormalization */
#define LEAST_LAYERS 4    /* for slope and correlation */
#define CORRELATED   0.5
#define OFF_SLOPE    0.3
#define SAME_ANSWERS 0.25
#define SAME_OF_FEW  0.1 /* of fewer than QS_FEW_JUDGED */
#define LEAST_SHARED 4
#define UNSURE       0.5 /* mean probability of the first class */

static const char strange[] = "the float model itself sees other data than it was trained on";

static void warn_by_norm(qsim_verdict *v, double off, double ratio) {
    const qs_seen_data *d = &v->data;
    const bool pixels = d->whole && d->greatest > 1, enough = v->witness.samples >= QS_FEW_JUDGED;
    const double wide = enough ? 2.5 : 4, far = enough ? 0.5 : 1;
    v->fits = ratio > wide || ratio < 1 / wide || off > far ? -1 : 1;
    if (v->fits < 0)
        qs_verdict_say(
            v, pixels ? "raw-pixels" : "input-range", QSIM_GRADE_DOUBTFUL,
            "%s%s The variance "
            "before '%.80s' is %.3g times that of training, the mean %.2g deviations off",
            strange, pixels ? ": raw pixels from 0 to 255?" : ": is the preprocessing right?",
            v->witness.layers[0].name, ratio, off);
}

/* ---- by biases ---- */

static bool is_hardly_seen(const qs_biases *b) {
    return b->first < HARDLY_SEEN || (b->first < LITTLE_SEEN && b->rest < LITTLE_REST);
}

static bool is_folded(const qs_biases *b) {
    return b->layers >= LEAST_LAYERS && b->correlation >= CORRELATED;
}

static bool is_as_trained(const qs_biases *b) {
    return is_folded(b) && b->slope > 0.5 && b->slope < 2 && b->first >= LITTLE_SEEN;
}

static void warn_of_overrun(qsim_verdict *v, const qs_biases *given, const qs_biases *divided) {
    const qs_seen_data *d = &v->data;
    const char *kind = d->whole ? "raw-pixels" : "input-range", *name = v->witness.layers[0].name;
    if (given->slope < OFF_SLOPE && is_as_trained(divided))
        qs_verdict_say(v, kind, QSIM_GRADE_DOUBTFUL,
                       "the input runs from %.3g to %.3g. Divided by 255 it suits the biases of "
                       "'%.80s' and the layers behind it: was the model trained on 0 to 1?",
                       d->least, d->greatest, name);
    else if (given->first > OVERRUN && d->greatest > QS_PIXELS &&
             (2 * d->sure >= d->rows || given->rest < OVERRUN_REST))
        qs_verdict_say(
            v, "raw-pixels", QSIM_GRADE_DOUBTFUL,
            "the input runs from %.3g to %.3g, and what '%.80s' makes of it is %.0f times "
            "its bias: was the model trained on 0 to 1?",
            d->least, d->greatest, name, given->first);
    else if (is_folded(given) && given->slope < OFF_SLOPE)
        qs_verdict_say(
            v, "input-range", QSIM_GRADE_DOUBTFUL,
            "%s: is the preprocessing right? What '%.80s' and the layers behind it add up is "
            "%.2g times what their biases take back",
            strange, name, 1 / given->slope);
    else
        return;
    v->fits = -1;
}

static void warn_by_biases(qsim_verdict *v) {
    const qs_biases given = qs_witness_biases(v, QS_AS_GIVEN);
    const qs_biases divided = qs_witness_biases(v, QS_DIVIDED);
    const qs_seen_data *d = &v->data;
    if (is_hardly_seen(&given)) {
        v->fits = -1;
        qs_verdict_say(v, "input-range", QSIM_GRADE_DOUBTFUL,
                       "the float model hardly sees its input: what '%.80s' makes of it varies by "
                       "%.2g times the bias: was it trained on wider values than %.3g to %.3g?",
                       v->witness.layers[0].name, given.first, d->least, d->greatest);
        return;
    }
    warn_of_overrun(v, &given, &divided);
    if (v->fits == 0 && is_as_trained(&given) && is_hardly_seen(&divided))
        v->fits = 1;
}

/* ---- by answers ---- */

/* Whether pixels from 0 to 255 give class scores that are too certain. */
static bool certain_of_pixels(const qs_seen_data *d) {
    return d->whole && d->greatest > 1 && d->rows > 0 &&
           d->certain * CERTAIN_OF >= d->rows * (CERTAIN_OF - 1);
}

/*
 * Entropy of the mean probabilities less the mean entropy of rows: the information that samples
 * give.
 */
static double information(const qs_seen_data *d, double *entropy) {
    const double rows = qs_real(d->shared);
    *entropy = 0;
    for (size_t c = 0; c < d->classes; c++) {
        const double p = d->share[c] / rows;
        *entropy -= p > 0 ? p * log(p) : 0;
    }
    return *entropy - d->entropy / rows;
}

static void warn_by_answers(qsim_verdict *v) {
    const qs_seen_data *d = &v->data;
    double entropy;
    if (certain_of_pixels(d)) {
        v->fits = -1;
        qs_verdict_say(v, "raw-pixels", QSIM_GRADE_DOUBTFUL,
                       "the input is raw pixels (up to %g), and the float model is certain "
                       "of %llu of %llu answers: was it trained on 0 to 1?",
                       d->greatest, (unsigned long long)d->certain, (unsigned long long)d->rows);
        return;
    }
    if (d->shared < LEAST_SHARED || d->shared < d->rows || d->same == d->samples)
        return;
    const double decided = information(d, &entropy), top = d->top / (double)d->shared;
    const double same = d->shared < QS_FEW_JUDGED ? SAME_OF_FEW : SAME_ANSWERS;
    if (!(top < UNSURE && decided < same * entropy))
        return;
    v->fits = -1;
    qs_verdict_say(v, "input-range", QSIM_GRADE_DOUBTFUL,
                   "the float model answers much the same to every sample, and is not "
                   "sure (%.0f %%): was it trained on other values than %.3g to %.3g?",
                   100 * top, d->least, d->greatest);
}

/* ---- by metadata ---- */

/* ONNX's metadata of pictures; false: there is none, or the data suits it. */
static bool warn_by_metadata(qsim_verdict *v) {
    const qs_seen_data *d = &v->data;
    const char *said = v->pixel_range;
    if (!said || d->elements == 0)
        return false;
    const bool normalized = strncmp(said, "Normalized_", 11) == 0;
    const bool below_zero = d->least < 0 && strcmp(said, "Normalized_1_1") != 0;
    if (normalized ? d->greatest <= QS_PIXELS && !below_zero : d->greatest > 1 && !below_zero)
        return false;
    v->fits = -1;
    qs_verdict_say(v, "input-range", QSIM_GRADE_DOUBTFUL,
                   "the input runs from %.3g to %.3g, where the model's metadata says %.40s",
                   d->least, d->greatest, said);
    return true;
}

/*
 * Warns of pixels from 0 to 255 if nothing shows whether they are right; the grade is not changed.
 */
static void name_raw_pixels(qsim_verdict *v) {
    const qs_seen_data *d = &v->data;
    if (d->whole && d->pictures && d->greatest > QS_PIXELS)
        qs_verdict_say(v, "raw-pixels", QSIM_GRADE_GOOD,
                       "the input is raw pixels (%g to %g), and the model does not tell "
                       "whether it was trained on such: most are not",
                       d->least, d->greatest);
}

void qs_input_warn(qsim_verdict *v) {
    double off, ratio;
    v->fits = 0;
    if (warn_by_metadata(v))
        return;
    if (qs_witness_norm(v, &off, &ratio)) {
        warn_by_norm(v, off, ratio);
        return;
    }
    warn_by_biases(v);
    if (!v->fits)
        warn_by_answers(v);
    if (!v->fits)
        name_raw_pixels(v);
}

int qsim_verdict_input(const qsim_verdict *v, qsim_verdict_input_info *info) {
    if (!v || !info)
        return QSIM_E_ARGUMENT;
    if (v->data.elements == 0)
        return QSIM_E_NOT_FOUND;
    const qsim_verdict_input_info own = {.name = v->input,
                                         .least = v->data.least,
                                         .greatest = v->data.greatest,
                                         .mean = v->data.sum / qs_real(v->data.elements),
                                         .fits = v->fits};
    return qs_give(info, &own, sizeof(own));
}
