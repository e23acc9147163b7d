/* SPDX-License-Identifier: MIT */
/* Float convolutions of any geometry against a plain loop, for Conv and ConvTranspose. */
#ifndef OP_CONV_H
#define OP_CONV_H

#include "op_random.h"

#include <math.h>

typedef struct conv_shape {
    int64_t n, h, w, c, m, group, kh, kw, sh, sw, dh, dw, top, left, bottom, right;
    float lo, hi;
    bool bias;
    enum { USUAL, UNDERFLOW, INFINITE } values;
    int64_t eh, ew; /* output_padding */
} conv_shape;

/* One output, NHWC, all products and sums in the definition's order; b NULL: no bias. */
typedef float conv_output_fn(const conv_shape *s, const float *x, const float *w, const float *b,
                             int64_t n, int64_t oy, int64_t ox, int64_t o);

/* The internal operator on NHWC inputs; the caller sets the weights' dims. */
static inline or_case conv_case(const char *op, const conv_shape *s, float *x, float *w, float *b,
                                bool constant) {
    or_case c = {.domain = "qsim", .op = op, .version = 1, .inputs = 3, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_FLOAT, 4, {s->n, s->h, s->w, s->c}, x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 4, {0, 0, s->kh, s->kw}, w, constant};
    c.in[2] = (or_tensor){QSIM_FLOAT, 1, {s->m}, s->bias ? b : NULL, constant};
    const or_attr attrs[] = {
        or_int("channels_last", 1),
        or_int("group", s->group),
        or_pair("strides", s->sh, s->sw),
        or_pair("dilations", s->dh, s->dw),
        or_pair("kernel_shape", s->kh, s->kw),
        or_four("pads", s->top, s->left, s->bottom, s->right),
        or_float("lo", s->lo),
        or_float("hi", s->hi),
    };
    memcpy(c.attrs, attrs, sizeof(attrs));
    c.attr_count = QS_COUNT(attrs);
    return c;
}

/* All outputs; the caller frees them. */
static inline float *conv_expected(const conv_shape *s, const float *x, const float *w,
                                   const float *b, int64_t oh, int64_t ow,
                                   conv_output_fn *output_at) {
    const int64_t count = s->n * oh * ow * s->m;
    float *e = malloc((size_t)count * sizeof(*e));
    for (int64_t k = 0; k < count; k++)
        e[k] = output_at(s, x, w, s->bias ? b : NULL, k / (oh * ow * s->m), k / (ow * s->m) % oh,
                         k / s->m % ow, k % s->m);
    return e;
}

/* Runs the case and compares the bits of all outputs; a NaN may have either sign. */
static inline void conv_check(qsim_ctx *ctx, or_case *c, const conv_shape *s, int64_t oh,
                              int64_t ow, const float *expected) {
    or_result r = or_run(ctx, c, false);
    CHECK_INT(r.code, QSIM_OK);
    if (r.code) {
        fprintf(stderr, "%s\n", r.error.message);
        return;
    }
    CHECK_INT(r.out[0].dims[1], oh);
    CHECK_INT(r.out[0].dims[2], ow);
    CHECK_INT(r.out[0].dims[3], s->m);
    const float *y = r.out[0].data;
    long wrong = 0;
    for (int64_t k = 0; k < s->n * oh * ow * s->m; k++)
        wrong +=
            memcmp(&expected[k], &y[k], sizeof(*y)) != 0 && !(isnan(expected[k]) && isnan(y[k]));
    CHECK_INT(wrong, 0);
    if (wrong)
        fprintf(stderr, "isa %d: n%d h%d w%d c%d m%d g%d k%dx%d s%d,%d d%d,%d p%d,%d,%d,%d\n",
                qsim_ctx_isa(ctx), (int)s->n, (int)s->h, (int)s->w, (int)s->c, (int)s->m,
                (int)s->group, (int)s->kh, (int)s->kw, (int)s->sh, (int)s->sw, (int)s->dh,
                (int)s->dw, (int)s->top, (int)s->left, (int)s->bottom, (int)s->right);
    or_free(&r);
}

#endif
