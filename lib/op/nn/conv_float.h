/* SPDX-License-Identifier: MIT */
/* Float convolution: its packed weights and its lowering. */
#ifndef QS_CONV_FLOAT_H
#define QS_CONV_FLOAT_H

#include "kernel/f32.h"
#include "op/step.h"

/* Sizes of the packed weights: independent of the image. */
typedef struct qs_conv_form {
    size_t m, mg, cg, kh, kw, groups, taps; /* mg, cg: output and input channels per group */
    bool depthwise;
    size_t group_floats, bias_stride, floats; /* floats: weights and bias together */
} qs_conv_form;

typedef struct qs_conv_weights {
    const float *packed, *bias; /* of all groups */
    size_t group_floats;        /* between groups */
    size_t bias_stride;
    bool finite; /* all are known to be: products with padding are zero */
} qs_conv_weights;

/* Input: the tensor that the results go into (op/nn/window.h). */
#define QS_CONV_OVER 4
/* Input: the tensor added to the results (op/nn/finish.h). */
#define QS_CONV_OTHER 3

/* The rule of Conv, of floats or doubles. */
int qs_conv_infer(qs_infer *x);

/* Makes the form from the weights' sizes, which are known; false on overflow. */
bool qs_conv_form_make(const qk_f32 *k, const qs_value *w, int64_t groups, qs_conv_form *f);

/* Packs OIHW weights and the bias into `to`, f->floats floats; `flush` as for qs_pack_f32. */
qs_conv_weights qs_conv_pack(const qsim_ctx *ctx, const qs_conv_form *f, const void *w,
                             const float *bias, bool flush, float *to);

/* Lowers a channels-last Conv; l->packed: its packed weights, or NULL. */
int qs_conv_lower(qs_lower *l);

#endif
