/* SPDX-License-Identifier: MIT */
/* Scales and zero points of a quantized model. */
#ifndef QSIM_SCALES_H
#define QSIM_SCALES_H

#include "common/tool.h"

/* Every tensor that an operator quantizes or dequantizes, once, in the order of the nodes. */
void scales_print(const qsim_model *m);
void scales_json(json *j, const qsim_model *m);

#endif
