/* SPDX-License-Identifier: MIT */
/* 8-bit quantized operands with one scale each, as the QLinear operators take them. */
#ifndef QS_QVALUE_H
#define QS_QVALUE_H

#include "op/rules.h"

/* Scale, and zero point as uint8: bytes of either type become uint8 by ^ flip. */
typedef struct qs_q8 {
    float scale;
    int32_t zero_point;
    uint8_t flip;
} qs_q8;

/* Checks scale and zero point, one element each; either index may be beyond the inputs. */
int qs_infer_q8(const qs_infer *x, int32_t scale, int32_t zero_point);

/* The rule of x, x_scale, x_zp, y_scale, y_zp, of which y has x's shape. */
int qs_infer_qunary(qs_infer *x);

/* Reads both during execution; `inputs`: the node's number of inputs, dtype: the operand's type. */
qs_q8 qs_q8_read(const qs_step *s, const qs_frame *f, int32_t scale, int32_t zero_point,
                 int32_t inputs, int32_t dtype);

/* Range of an 8-bit type, tightened by the attributes lo and hi. */
void qs_q8_limits(const qs_node *n, int32_t dtype, int32_t *lo, int32_t *hi);

/* Value of a byte of such an operand, and the byte of a value (docs/QUANTIZATION.md, section 2). */
static inline float qs_q8_value(qs_q8 q, uint8_t byte) {
    return (float)((int32_t)(byte ^ q.flip) - q.zero_point) * q.scale;
}
uint8_t qs_q8_byte(qs_q8 q, float value);
/* Scale and zero point of DynamicQuantizeLinear for numbers from low <= 0 to high >= 0. */
qs_q8 qs_q8_dynamic(float low, float high);

#endif
