/* SPDX-License-Identifier: MIT */
/* What is valid in a quantized model, but hardly meant: scales that do not fit one another. */
#ifndef QSIM_ODD_SCALES_H
#define QSIM_ODD_SCALES_H

#include <qsim/model.h>

typedef void (*odd_scale_fn)(void *user, const char *line);

/*
 * Calls `note` for each layer whose bias has another scale than its sums, each operator that reads
 * a quantized tensor with another scale or zero point than its producer wrote (QuantizeLinear and
 * DequantizeLinear, QLinearConv and the like), and each layer whose 8-bit weights use a sixteenth
 * of their codes. Biases and weights that several layers read are checked for the first of them.
 * Graphs inside of If, Loop and Scan are not looked at.
 */
void odd_scales_find(const qsim_model *m, odd_scale_fn note, void *user);

#endif
