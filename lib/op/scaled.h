/* SPDX-License-Identifier: MIT */
/* Integer sums that become floats: what the scaled integer operators have behind their sums. */
#ifndef QS_SCALED_H
#define QS_SCALED_H

#include "kernel/ew.h"
#include "op/rules.h"

typedef struct qs_scaled {
    const qk_ew *k;
    size_t rows, columns, same; /* so many rows share an x_scale */
    float lo, hi;
    bool bias;
    bool by_row; /* (sum * w_scale) * x_scale, else sum * (x_scale * w_scale) */
    bool floats; /* the sums are floats already */
} qs_scaled;

typedef struct qs_scaling {
    const qs_scaled *p;
    const float *x_scale, *w_scale, *bias;
    float *y; /* holds the sums */
} qs_scaling;

/* Rows [begin, end) of a qs_scaling: a qs_range_fn. */
void qs_scale_rows(const void *scaling, size_t begin, size_t end);

/*
 * A depthwise convolution of constant weights whose sums stay below 2^24: the float kernel makes
 * them exactly. `pack` leaves a result where that is so; with it, `lower` makes the step.
 */
int qs_scaled_depthwise_pack(qs_pack *p);
int qs_scaled_depthwise_lower(qs_lower *l, const qs_scaled *scaled);

#endif
