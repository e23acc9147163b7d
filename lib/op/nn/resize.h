/* SPDX-License-Identifier: MIT */
/*
 * Resize along one axis: from which positions of the input every position of the result is made.
 * Coordinates are computed in float, as other runtimes do: where they meet a boundary exactly, the
 * same neighbour is taken.
 */
#ifndef QS_RESIZE_H
#define QS_RESIZE_H

#include "base/base.h"
#include "base/ctx.h"
#include "op/step.h"

typedef enum qs_resize_mode { QS_NEAREST, QS_LINEAR, QS_CUBIC } qs_resize_mode;

typedef enum qs_resize_coordinates {
    QS_HALF_PIXEL,
    QS_HALF_PIXEL_SYMMETRIC,
    QS_PYTORCH_HALF_PIXEL,
    QS_ALIGN_CORNERS,
    QS_ASYMMETRIC,
    QS_TF_HALF_PIXEL_FOR_NN,
    QS_TF_CROP_AND_RESIZE,
} qs_resize_coordinates;

typedef enum qs_resize_rounding {
    QS_PREFER_FLOOR,
    QS_PREFER_CEIL,
    QS_FLOOR,
    QS_CEIL,
    QS_BY_SCALE, /* before opset 11: up when the axis shrinks, else down */
} qs_resize_rounding;

typedef struct qs_resize_how {
    qs_resize_mode mode;
    qs_resize_coordinates coordinates;
    qs_resize_rounding rounding;
    float cubic, outside; /* cubic_coeff_a, extrapolation_value */
    bool exclude_outside, antialias;
} qs_resize_how;

typedef struct qs_resize_axis {
    int64_t in, out;  /* -1: unknown */
    float scale;      /* out / in, or as given */
    float start, end; /* of the region, for tf_crop_and_resize */
} qs_resize_axis;

/*
 * Position i of the result is the sum over t < taps of weight[i * taps + t] times position index[i
 * * taps + t]; index -1, of the first tap, stands for a position outside. Nearest has one tap and
 * no weights.
 */
typedef struct qs_resize_taps {
    size_t taps;
    int64_t *index;
    float *weight;
    bool identity; /* every position is itself */
} qs_resize_taps;

/* Both sizes known and above 0. QSIM_E_NOMEM is the only error. */
int qs_resize_taps_make(qs_arena *arena, const qs_resize_how *how, const qs_resize_axis *axis,
                        qs_resize_taps *out);

/* Inputs that nearest has inside only: the tensor that it writes into (op/window.h), as it is so
 * far, and a table that its bytes are looked up in. */
#define QS_RESIZE_OVER  4
#define QS_RESIZE_TABLE 5

/*
 * Makes the step of an output with elements; `taps` by axis of the tensor, not all identities, or
 * with "into" the last one.
 */
int qs_resize_lower_nearest(qs_lower *l, float outside, const qs_resize_taps *taps);
int qs_resize_lower_filter(qs_lower *l, float outside, const qs_resize_taps *taps);

#endif
