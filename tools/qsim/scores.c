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

int scores_add(const tool *t, scores *s, const char *file, const qsim_tensor *output,
               const int64_t *labels, int64_t samples) {
    size_t total = elements(output), classes = samples > 0 ? total / (size_t)samples : 0;
    if (output->rank < 2 || output->dims[0] != samples || classes < 2 || classes > MOST_CLASSES)
        return tool_fail(t, QSIM_E_SHAPE,
                         "%s: the first output is not one row of class scores per sample; "
                         "qsim compare judges other outputs against another model's",
                         file);
    if (s->classes == 0) {
        s->classes = classes;
        s->confusion = tool_alloc(classes * classes, sizeof(*s->confusion));
    }
    if (s->classes != classes)
        return tool_fail(t, QSIM_E_SHAPE, "%s: the number of classes changes", file);
    for (size_t i = 0; i < (size_t)samples; i++) {
        int64_t label = labels[i];
        if (label < 0 || (uint64_t)label >= classes)
            return tool_fail(t, QSIM_E_VALUE,
                             "%s: sample %llu has label %lld, the model %zu classes", file,
                             (unsigned long long)s->samples, (long long)label, classes);
        size_t guess = largest(output, i * classes, classes);
        s->confusion[(size_t)label * classes + guess]++;
        s->top1 += guess == (size_t)label;
        s->top5 += rank_of(output, i * classes, classes, (size_t)label) < 5;
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
