/* SPDX-License-Identifier: MIT */
/*
 * ConvTranspose to few channels, as one matrix product and sums of what overlaps: a pixel of the
 * input times all weights gives a window of the output. By phases (phases.h) such a product would
 * have a column for each output channel, and vectors would be nearly empty.
 */
#ifndef QS_OVERLAP_H
#define QS_OVERLAP_H

#include "op/nn/phases.h"

/* Whether windows that overlap take less time than phases: depends on the weights' sizes alone. */
bool qs_overlap_pays(const qs_transposed *g, const qs_value *w);
/* Packs constant weights for qs_overlap_lower. */
int qs_overlap_pack(qs_pack *p, const float *w);
/*
 * Makes the step of a node whose output has elements and whose input has channels, of `macs`
 * multiply-accumulates.
 */
int qs_overlap_lower(struct qs_lower *l, const qs_transposed *g, double macs);

#endif
