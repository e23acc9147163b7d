/* SPDX-License-Identifier: MIT */
/* Integer sums that become floats: what the scaled integer operators have after their sums. */
#ifndef QS_SCALED_H
#define QS_SCALED_H

#include "op/finish.h"

typedef struct qs_scaled {
    const qk_ew *k;
    size_t rows, columns, same; /* so many rows share an x_scale */
    float lo, hi;
    bool bias;
    bool by_row; /* (sum * w_scale) * x_scale, else sum * (x_scale * w_scale) */
    qs_finish end;
    size_t into, column; /* pixels of so many floats take the results here; 0: only these */
} qs_scaled;

/* Input with what is added to the results (op/finish.h). */
#define QS_SCALED_OTHER 7
/* And of ConvIntegerScaled with "into" (op/window.h): the tensor that it writes into. */
#define QS_SCALED_OVER 8

typedef struct qs_scaling {
    const qs_scaled *p;
    const float *x_scale, *w_scale, *bias;
    const float *other;
    float *y;     /* holds the sums */
    float *apart; /* with `into`: where the results belong */
} qs_scaling;

/* Of a step whose inputs from 4 on are those of a scaled operator. */
qs_scaling qs_scaling_of(const qs_scaled *p, const qs_step *s, const qs_frame *f);

/* Rows [begin, end) of a qs_scaling: a qs_range_fn. */
void qs_scale_rows(const void *scaling, size_t begin, size_t end);

#endif
