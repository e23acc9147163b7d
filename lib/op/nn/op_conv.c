/* SPDX-License-Identifier: MIT */
/* Conv on floats: its shape rule and packed weights; conv_float.c executes it. */
#include <math.h>

#include "op/nn/float_jobs.h"
#include "op/nn/conv_float.h"
#include "op/nn/finish.h"
#include "op/nn/window.h"

/* The fourth input of the internal form is added to the result and has its shape. */
QS_COLD int qs_conv_infer(qs_infer *x) {
    const int32_t dtype = x->in[0]->dtype;
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qs_infer_type(x, i, i && dtype ? QS_T(dtype) : QS_T_REAL);
    return code ? code : qs_window_convolve(x, 0, 1, 2, dtype);
}

QS_COLD static int infer_internal(qs_infer *x) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = qs_conv_infer(x);
    if (!code)
        code = qs_finish_infer(x, QS_CONV_OTHER);
    return code ? code : qs_window_into(x, QS_CONV_OVER);
}

/* ---- packed weights ---- */

bool qs_conv_form_make(const qk_f32 *k, const qs_value *w, int64_t groups, qs_conv_form *f) {
    f->m = (size_t)w->dims[0].size;
    f->cg = (size_t)w->dims[1].size;
    f->kh = w->rank == 4 ? (size_t)w->dims[2].size : 1;
    f->kw = (size_t)w->dims[w->rank - 1].size;
    f->groups = (size_t)groups;
    f->mg = f->m / f->groups;
    f->taps = f->kh * f->kw;
    /* Depthwise sums of many millions of terms are computed as products, which come in parts. */
    f->depthwise = f->cg == 1 && f->mg == 1 && f->groups > 1 && f->taps <= QS_CHECK_MACS / 16;
    size_t all;
    if (f->depthwise) {
        f->bias_stride = qs_align(f->m, 16);
        if (!qs_mul(f->taps, f->bias_stride, &all))
            return false;
        f->group_floats = 0;
    } else {
        f->bias_stride = qs_align(f->mg, 64);
        if (!qk_pack_f32_size(k->panel, f->taps * f->cg, f->mg, &f->group_floats))
            return false;
        f->group_floats = qs_align(f->group_floats, 16);
        if (!qs_mul(f->group_floats, f->groups, &all))
            return false;
    }
    size_t bias;
    return qs_mul(f->bias_stride, f->depthwise ? 1 : f->groups, &bias) &&
           qs_add(all, bias, &f->floats);
}

/* -0 becomes +0: sums of -0 then give +0 too, as they do with padding, which may be left out. */
static void pack_bias(const qs_conv_form *f, const float *bias, float *to) {
    const size_t groups = f->depthwise ? 1 : f->groups, n = f->depthwise ? f->m : f->mg;
    for (size_t g = 0; g < groups; g++)
        for (size_t j = 0; j < f->bias_stride; j++)
            to[g * f->bias_stride + j] = (bias && j < n ? bias[g * n + j] : 0.0f) + 0.0f;
}

static float float_at(const void *w, size_t i) {
    float v;
    memcpy(&v, (const uint8_t *)w + i * sizeof(v), sizeof(v));
    return v;
}

qs_conv_weights qs_conv_pack(const qsim_ctx *ctx, const qs_conv_form *f, const void *w,
                             const float *bias, bool flush, float *to) {
    const size_t bias_floats = f->bias_stride * (f->depthwise ? 1 : f->groups);
    qs_conv_weights out = {to + bias_floats, to, f->group_floats, f->bias_stride, false};
    pack_bias(f, bias, to);
    to += bias_floats;
    if (f->depthwise) {
        for (size_t t = 0; t < f->taps && !qs_stopped(ctx); t++)
            for (size_t j = 0; j < f->bias_stride; j++)
                to[t * f->bias_stride + j] = j < f->m ? float_at(w, j * f->taps + t) : 0.0f;
        if (flush && !qs_stopped(ctx))
            qk_flush_denormals(to, f->taps * f->bias_stride);
        return out;
    }
    const size_t column = f->cg * f->taps;
    for (size_t g = 0; g < f->groups; g++) {
        const qk_pack_source source = {(const uint8_t *)w + g * f->mg * column * sizeof(float),
                                       f->cg, 1, (ptrdiff_t)f->taps, (ptrdiff_t)column};
        qs_pack_f32(ctx, to + g * f->group_floats, f->taps * f->cg, f->mg, &source, flush);
    }
    return out;
}

QS_COLD static int pack_conv(qs_pack *p) {
    const void *w = qs_pack_bytes(p, 1);
    const float *bias = qs_pack_const(p, 2);
    bool has_bias = qs_node_input(p->node, 2) != QS_NONE;
    if (!w || (has_bias && !bias))
        return QSIM_OK; /* packed in every run */
    const qk_f32 *k = p->ctx->kernels->f32;
    qs_conv_form f;
    qs_conv_weights *out = qs_arena_alloc(p->arena, 1, sizeof(*out));
    if (!qs_conv_form_make(k, &p->graph->values[p->node->inputs[1]],
                           qs_node_int(p->node, "group", 1), &f) ||
        f.floats > SIZE_MAX / sizeof(float))
        return qs_weights_too_large(p->error);
    float *to = qs_arena_raw64(p->arena, f.floats * sizeof(float));
    if (!out || !to)
        return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
    const size_t row = f.cg * f.taps, count = f.m * row;
    *out = qs_conv_pack(p->ctx, &f, w, bias, qk_has_denormals(w, count, row), to);
    qk_flush_denormals(to, (size_t)(out->packed - to)); /* the biases */
    out->finite = qk_all_finite(w, count);
    p->result = out;
    return QSIM_OK;
}

static const qs_attr_rule conv_attrs[] = {QS_CONV_ATTRS(1)};

static const qs_attr_rule internal_attrs[] = {
    QS_CONV_ATTRS(0),
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    {"lo", QSIM_ATTR_FLOAT, 0, 0},
    {"hi", QSIM_ATTR_FLOAT, 0, 0},
    QS_FINISH_ATTRS,
    QS_INTO_ATTRS,
};

QS_OP(conv, .name = "Conv", .min_in = 2, .max_in = 3, QS_ATTRS(conv_attrs),
      .traits = QS_NEEDS_LAST | QS_CONVOLVES | QS_TAKES_BOUNDS, .weight_inputs = 1 << 1,
      .macs = QS_MACS_CONV, .kind = QS_KIND_WEIGHTS, .kernel = QS_KERNEL_CONV,
      .infer = qs_conv_infer);

QS_OP(qsim_conv, .domain = QS_DOMAIN_QSIM, .name = "Conv", .min_in = 2, .max_in = 5,
      QS_ATTRS(internal_attrs), .traits = QS_NEEDS_LAST | QS_CONVOLVES, .weight_inputs = 1 << 1,
      .macs = QS_MACS_CONV, .over = QS_CONV_OVER, .kernel = QS_KERNEL_CONV, .infer = infer_internal,
      QS_MORE(.pack = pack_conv), .lower = qs_conv_lower);
