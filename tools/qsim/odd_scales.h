/* SPDX-License-Identifier: MIT */
/* What is valid in a quantized model, but hardly meant: scales that do not fit one another. */
#ifndef QSIM_ODD_SCALES_H
#define QSIM_ODD_SCALES_H

#include <qsim/model.h>

typedef void (*odd_scale_fn)(void *user, const char *line);

/*
 * Calls `note` for each layer whose bias has another scale than its sums, each pair of
 * QuantizeLinear and DequantizeLinear that differ in scale or zero point, and each layer whose
 * 8-bit weights use a sixteenth of their codes. Biases and weights that several layers read are
 * checked for the first of them.
 */
void odd_scales_find(const qsim_model *m, odd_scale_fn note, void *user);

#endif
