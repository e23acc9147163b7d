/* SPDX-License-Identifier: MIT */
/*
 * Moments of activations from BatchNormalization, without data: its output has mean `bias` and
 * standard deviation |scale| in each channel. A ReLU or Clip after it gives a clipped normal
 * distribution; averages keep the mean; sums add means and, assumed independent, variances.
 */
#ifndef QS_MOMENTS_H
#define QS_MOMENTS_H

#include "base/base.h"
#include "graph/graph.h"

typedef struct qs_moment {
    const float *mean, *deviation; /* by channel, the second axis; NULL: not known */
    size_t channels;
} qs_moment;

typedef struct qs_moments {
    qs_arena arena;
    const qs_graph *g;
    qs_moment *values; /* by value id */
} qs_moments;

/*
 * Finds the moments of a graph before BatchNormalization is folded; it must outlive them. Errors:
 * NOMEM.
 */
int qs_moments_find(qsim_ctx *ctx, const qs_graph *g, qs_moments *m);
void qs_moments_free(qs_moments *m);
/* Means of the channels of a tensor; NULL: not known. */
const float *qs_moments_mean(const qs_moments *m, const char *name, size_t channels);

#endif
