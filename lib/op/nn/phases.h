/* SPDX-License-Identifier: MIT */
/* Weights of ConvTranspose, packed by phase: the taps that share a remainder by the stride. */
#ifndef QS_PHASES_H
#define QS_PHASES_H

#include "kernel/f32.h"
#include "op/rules.h"

/* One spatial axis; of a tensor with one, the other has size 1. */
typedef struct qs_transposed_axis {
    int64_t in, out, kernel, stride, dilation, before, after, extra; /* in, out: -1 unknown */
} qs_transposed_axis;

typedef struct qs_transposed {
    int32_t axes;
    bool channels_last,
        merged; /* merged: all remainders along the width are columns of one product */
    int64_t group;
    qs_transposed_axis a[3]; /* the last two axes, then the one before them */
} qs_transposed;

/* Reads a node whose input and weights have known and equal ranks. */
int qs_transposed_read(const qs_infer *x, qs_transposed *g);
/* The rule of ConvTranspose, of floats or doubles. */
int qs_convtranspose_infer(qs_infer *x);

/*
 * Sizes of the weights, independent of the image; phases: remainders that have taps. Depthwise
 * weights, with one channel in and out per group, count as one group with these columns.
 */
typedef struct qs_phases {
    bool depthwise; /* packed as qk_depthwise_f32 has them: rows of `stride` floats for each tap */
    size_t groups, cg, mg, cols, stride, kernel[2], step[2], phases[2];
    size_t bias_stride, floats, dense; /* dense: floats of the largest phase, unpacked */
} qs_phases;

/* Taps of a phase along axis i. */
size_t qs_phase_taps(const qs_phases *f, int32_t i, size_t phase);
/* Floats of one group's packed phase; false on overflow. */
bool qs_phase_floats(const qk_f32 *k, const qs_phases *f, size_t py, size_t px, size_t *floats);

bool qs_phases_make(const qk_f32 *k, const qs_transposed *g, const qs_value *w, qs_phases *f);

/*
 * Packs the bias, then each phase of all groups. to: f->floats floats; dense: f->dense of scratch.
 */
void qs_phases_pack(const qk_f32 *k, const qs_phases *f, const float *w, const float *bias,
                    float *dense, float *to);

#endif
