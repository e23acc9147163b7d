/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "op/nn/phases.h"

static size_t common_divisor(size_t a, size_t b) {
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Taps of phase p: p, p + step, p + 2 step, ... of axis i; their remainder by the stride is equal.
 */
size_t qs_phase_taps(const qs_phases *f, int32_t i, size_t phase) {
    return (f->kernel[i] - phase + f->step[i] - 1) / f->step[i];
}

bool qs_phase_floats(const qk_f32 *k, const qs_phases *f, size_t py, size_t px, size_t *floats) {
    const size_t taps = qs_phase_taps(f, 0, py) * (f->phases[1] ? qs_phase_taps(f, 1, px) : 1);
    if (f->depthwise)
        return qs_mul(taps, f->stride, floats);
    if (!qk_pack_f32_size(k->panel, taps * f->cg, f->cols, floats))
        return false;
    *floats = qs_align(*floats, 16);
    return true;
}

bool qs_phases_make(const qk_f32 *k, const qs_transposed *g, const qs_value *w, qs_phases *f) {
    memset(f, 0, sizeof(*f));
    f->groups = (size_t)g->group;
    f->cg = (size_t)w->dims[0].size / f->groups;
    f->mg = (size_t)w->dims[1].size;
    for (int32_t i = 0; i < 2; i++) {
        const size_t stride = (size_t)g->a[i].stride;
        f->kernel[i] = (size_t)g->a[i].kernel;
        f->step[i] = stride / common_divisor(stride, (size_t)g->a[i].dilation);
        assert(f->step[i] > 0);
        f->phases[i] = f->step[i] < f->kernel[i] ? f->step[i] : f->kernel[i];
    }
    f->depthwise = f->groups > 1 && f->cg == 1 && f->mg == 1;
    if (f->depthwise) {
        f->mg = f->groups;
        f->groups = 1;
    }
    f->cols = f->mg;
    f->stride = qs_align(f->cols, 16);
    if (g->merged) { /* along the width one phase of one tap, with columns (kernel column, channel)
                      */
        f->cols *= f->kernel[1];
        f->kernel[1] = f->step[1] = f->phases[1] = 1;
    }
    f->bias_stride = qs_align(f->cols, 64);
    size_t total, one = 0;
    if (!qs_mul(f->bias_stride, f->groups, &total))
        return false;
    for (size_t py = 0; py < f->phases[0]; py++)
        for (size_t px = 0; px < f->phases[1]; px++)
            if (!qs_phase_floats(k, f, py, px, &one) || !qs_mul(one, f->groups, &one) ||
                !qs_add(total, one, &total))
                return false;
    f->floats = total;
    return qs_mul(qs_phase_taps(f, 0, 0) * qs_phase_taps(f, 1, 0) * f->cg, f->cols, &f->dense) &&
           f->floats < SIZE_MAX / 8 && f->dense < SIZE_MAX / 8;
}

/* Copies a group's phase to a matrix: rows (kernel row, kernel column, channel), output columns. */
static void gather_phase(const qs_phases *f, const float *w, size_t group, size_t py, size_t px,
                         float *dense) {
    const size_t across = f->cols / f->mg * f->kernel[1], area = f->kernel[0] * across;
    for (size_t ky = py; ky < f->kernel[0]; ky += f->step[0])
        for (size_t kx = px; kx < f->kernel[1]; kx += f->step[1])
            for (size_t c = 0; c < f->cg; c++)
                for (size_t j = 0; j < f->cols; j++) {
                    const size_t m = j % f->mg, column = kx + j / f->mg;
                    *dense++ = w[((group * f->cg + c) * f->mg + m) * area + ky * across + column];
                }
}

/* Rows of a channel's weight for each tap of a phase. */
static void pack_depthwise(const qs_phases *f, const float *w, size_t py, size_t px, float *to) {
    for (size_t ky = py; ky < f->kernel[0]; ky += f->step[0])
        for (size_t kx = px; kx < f->kernel[1]; kx += f->step[1])
            for (size_t c = 0; c < f->stride; c++)
                *to++ = c < f->cols ? w[(c * f->kernel[0] + ky) * f->kernel[1] + kx] : 0.0f;
}

static void pack_bias(const qs_phases *f, const float *bias, float *to) {
    for (size_t g = 0; g < f->groups; g++)
        for (size_t j = 0; j < f->bias_stride; j++)
            *to++ = bias && j < f->cols ? bias[g * f->mg + j % f->mg] : -0.0f;
}

void qs_phases_pack(const qk_f32 *k, const qs_phases *f, const float *w, const float *bias,
                    float *dense, float *to) {
    size_t floats = 0;
    pack_bias(f, bias, to);
    to += f->bias_stride * f->groups;
    for (size_t py = 0; py < f->phases[0]; py++)
        for (size_t px = 0; px < f->phases[1]; px++)
            for (size_t g = 0; g < f->groups && qs_phase_floats(k, f, py, px, &floats); g++) {
                if (f->depthwise) {
                    pack_depthwise(f, w, py, px, to);
                } else {
                    const qk_pack_source source = {dense, 1, (ptrdiff_t)f->cols, 0, 1};
                    const size_t taps = qs_phase_taps(f, 0, py) * qs_phase_taps(f, 1, px);
                    gather_phase(f, w, g, py, px, dense);
                    qk_pack_f32(to, k->panel, taps * f->cg, f->cols, &source);
                }
                to += floats;
            }
}
