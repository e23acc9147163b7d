/* SPDX-License-Identifier: MIT */
/* Float convolution: what packing its weights leaves for executing it. */
#ifndef QS_CONV_FLOAT_H
#define QS_CONV_FLOAT_H

#include "kernel/f32.h"
#include "op/step.h"

/* The form of the weights: independent of the image. */
typedef struct qs_conv_form {
    size_t m, mg, cg, kh, kw, groups, taps; /* mg, cg: channels of one group, out and in */
    bool depthwise;
    size_t group_floats, bias_stride, floats; /* floats: weights and bias together */
} qs_conv_form;

typedef struct qs_conv_weights {
    const float *packed, *bias; /* of all groups */
    size_t group_floats;        /* from one group's to the next */
    size_t bias_stride;
    bool finite; /* known to be: a product with padding is then a zero */
} qs_conv_weights;

/* The tensor that it writes into, as it is so far (op/window.h). */
#define QS_CONV_OVER 4
/* The tensor added (op/finish.h). */
#define QS_CONV_OTHER 3

/* From the value of the weights, whose sizes are known; false on overflow. */
bool qs_conv_form_make(const qk_f32 *k, const qs_value *w, int64_t groups, qs_conv_form *f);

/* OIHW weights into `to`, which holds f->floats. */
qs_conv_weights qs_conv_pack(const qk_f32 *k, const qs_conv_form *f, const void *w,
                             const float *bias, float *to);

/* Lowers a channels-last Conv, whose packed weights may be left by pack or be NULL. */
int qs_conv_lower(qs_lower *l);

#endif
