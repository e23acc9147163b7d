/* SPDX-License-Identifier: MIT */
#include "scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

#define MOST_CLASSES 20000u /* whose confusion matrix takes 3 GB */

size_t largest(const qsim_tensor *output, size_t first, size_t count) {
    size_t best = 0;
    double value = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        double v = element(output, first + i);
        if (v > value) {
            value = v;
            best = i;
        }
    }
    return best;
}

/* The number of classes ahead of `label`: higher scores, and equal ones of lower index. */
static size_t rank_of(const qsim_tensor *output, size_t first, size_t count, size_t label) {
    double own = element(output, first + label);
    size_t before = 0;
    if (isnan(own))
        return count;
    for (size_t i = 0; i < count; i++) {
        double v = element(output, first + i);
        before += v > own || (v == own && i < label);
    }
    return before;
}

size_t scores_count(const qsim_tensor *output, int64_t samples) {
    int64_t classes = 1;
    if (output->rank < 2 || output->dims[0] != samples)
        return 0;
    for (int32_t i = 1; i < output->rank; i++) {
        if (classes > 1 && output->dims[i] > 1)
            return 0;
        classes = output->dims[i] > classes ? output->dims[i] : classes;
    }
    return classes > 1 && classes <= MOST_CLASSES ? (size_t)classes : 0;
}

size_t scores_classes(const qsim_model *m) {
    qsim_value_info y = {.struct_size = sizeof(y)};
    int64_t classes = 1;
    if (qsim_model_output(m, 0, &y) || y.rank < 2)
        return 0;
    for (int32_t i = 1; i < y.rank; i++) {
        if (y.dims[i] < 1 || (classes > 1 && y.dims[i] > 1))
            return 0;
        classes = y.dims[i] > classes ? y.dims[i] : classes;
    }
    return classes > 1 ? (size_t)classes : 0;
}

bool scores_odd_label(const dataset *d, const batch *b, size_t classes, bool all, text *out) {
    for (size_t i = 0; i < (size_t)b->samples; i++) {
        const int64_t label = b->labels[i];
        if (label < 0 ? !all : (uint64_t)label < classes)
            continue;
        dataset_name_row(d, b, i, out);
        text_printf(out, " has label %lld, the model %zu classes", (long long)label, classes);
        return true;
    }
    return false;
}

int scores_add(const tool *t, scores *s, const char *file, const dataset *d,
               const qsim_tensor *output, const batch *b) {
    const size_t classes = scores_count(output, b->samples);
    char shape[256];
    if (!classes)
        return tool_fail(t, QSIM_E_SHAPE,
                         "%s: the first output, %s, is not one row of class scores per sample; "
                         "qsim compare judges other outputs against another model's",
                         file, shape_text(output->dims, output->rank, shape));
    if (s->classes == 0) {
        s->classes = classes;
        s->confusion = tool_alloc(classes * classes, sizeof(*s->confusion));
    }
    if (s->classes != classes)
        return tool_fail(t, QSIM_E_SHAPE, "%s: the number of classes changes", file);
    text odd = {0};
    if (scores_odd_label(d, b, classes, true, &odd)) {
        const int code = tool_fail(t, QSIM_E_VALUE, "%s: %s", file, odd.data);
        text_free(&odd);
        return code;
    }
    for (size_t i = 0; i < (size_t)b->samples; i++) {
        const size_t label = (size_t)b->labels[i], guess = largest(output, i * classes, classes);
        s->confusion[label * classes + guess]++;
        s->top1 += guess == label;
        s->top5 += rank_of(output, i * classes, classes, label) < 5;
        s->samples++;
    }
    return EXIT_OK;
}

void scores_free(scores *s) {
    free(s->confusion);
    memset(s, 0, sizeof(*s));
}

double scores_class(const scores *s, size_t c, uint64_t *samples, uint64_t *right) {
    *samples = 0;
    *right = s->confusion[c * s->classes + c];
    for (size_t i = 0; i < s->classes; i++)
        *samples += s->confusion[c * s->classes + i];
    return *samples ? 100.0 * (double)*right / (double)*samples : NAN;
}

double scores_percent(const scores *s, uint64_t right) {
    return s->samples ? 100.0 * (double)right / (double)s->samples : NAN;
}

double proportion_error(double percent, uint64_t n) {
    const double p = percent / 100;
    return n ? 100 * sqrt(p * (1 - p) / (double)n) : NAN;
}

void pairing_add(pairing *p, size_t label, size_t reference, size_t answer) {
    p->samples++;
    p->same += reference == answer;
    p->lost += reference == label && answer != label;
    p->won += reference != label && answer == label;
}

/* Of counts, not of two percentages: 64.4 - 64.1 is more than 0.3. */
double pairing_drop(const pairing *p) {
    const double points = 100 * ((double)p->lost - (double)p->won);
    return p->samples ? points / (double)p->samples : NAN;
}

/* The difference of two proportions of pairs has variance (b + c - (b - c)^2 / n) / n^2. */
double pairing_error(const pairing *p) {
    const double n = (double)p->samples, b = (double)p->lost, c = (double)p->won;
    return p->samples ? 100 * sqrt(b + c - (b - c) * (b - c) / n) / n : NAN;
}
