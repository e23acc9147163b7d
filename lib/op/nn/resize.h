/* SPDX-License-Identifier: MIT */
/*
 * Resize along one axis: the input positions from which each position of the result is computed.
 * Coordinates are computed in float, as in other runtimes: on an exact boundary all choose the same
 * neighbour. Between pixels of doubles they and the weights are doubles.
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
    QS_BY_SCALE, /* before opset 11: up if the axis shrinks, else down */
} qs_resize_rounding;

typedef struct qs_resize_how {
    qs_resize_mode mode;
    qs_resize_coordinates coordinates;
    qs_resize_rounding rounding;
    float cubic, outside; /* cubic_coeff_a, extrapolation_value */
    bool exclude_outside, antialias;
    bool fine; /* in double */
} qs_resize_how;

typedef struct qs_resize_axis {
    int64_t in, out;  /* -1: unknown */
    float scale;      /* out / in, or as the model states */
    float start, end; /* of the region, for tf_crop_and_resize */
} qs_resize_axis;

/*
 * Position i of the result is the sum over t < taps of weight[i * taps + t] times position index[i
 * * taps + t]; index -1 of the first tap: the position is outside. Nearest has one tap and no
 * weights; those of doubles are in `fine`.
 */
typedef struct qs_resize_taps {
    size_t taps;
    int64_t *index;
    float *weight;
    double *fine;
    bool identity; /* each position is copied from the same position */
} qs_resize_taps;

/* Needs both sizes, above 0. QSIM_E_NOMEM is the only error. */
int qs_resize_taps_make(qs_arena *arena, const qs_resize_how *how, const qs_resize_axis *axis,
                        qs_resize_taps *out);

/*
 * Inputs of internal nearest only: the tensor that the results go into (window.h), and a table in
 * which bytes are looked up.
 */
#define QS_RESIZE_OVER  4
#define QS_RESIZE_TABLE 5

/* Lower a node whose output has elements. taps: per axis; not all are identities without "into". */
int qs_resize_lower_nearest(qs_lower *l, float outside, const qs_resize_taps *taps);
int qs_resize_lower_filter(qs_lower *l, float outside, const qs_resize_taps *taps);

#endif
