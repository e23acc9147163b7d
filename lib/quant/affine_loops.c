/* SPDX-License-Identifier: MIT */
/* Of 8 bits, for speed: of weights, and of activations with a scale for each channel. */
#include "quant/affine_loops.h"

QS_QUANTIZE(void, qs_quantize_u8, uint8_t, 0, 255)
QS_QUANTIZE(void, qs_quantize_s8, int8_t, -128, 127)
QS_DEQUANTIZE(void, qs_dequantize_u8, uint8_t)
QS_DEQUANTIZE(void, qs_dequantize_s8, int8_t)
