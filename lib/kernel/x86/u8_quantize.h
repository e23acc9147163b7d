/* SPDX-License-Identifier: MIT */
/*
 * Quantization without the divider. The definition divides by the scale and rounds twice: to a
 * float and to an integer. The first rounding matters only near the middle of two integers. `less`
 * and `more` are reciprocals, too small and too large by so much that the quotient, rounded or not,
 * lies between x * less and x * more. Where both give the same integer, it is the quotient's; near
 * the middle they never do, so the zero point may be added before the rounding, with `middle`.
 */
#ifndef QK_U8_QUANTIZE_H
#define QK_U8_QUANTIZE_H

#include "base/base.h"

typedef struct qk_bracket {
    float least, most; /* inputs that become 0 and 255; a NaN becomes the former */
    float less, more;
    float middle; /* added, it puts the result, flipped, in the low eight bits */
} qk_bracket;

/* False where a step may underflow or overflow. */
static inline bool qk_bracket_of(qk_bracket *b, float scale, int32_t zp, uint8_t flip) {
    const float r = 1.0f / scale, part = 0x1p-22f;
    *b = (qk_bracket){
        .least = (0.0f - (float)zp) * scale,
        .most = (float)(255 - zp) * scale,
        .less = r * (1.0f - part),
        .more = r * (1.0f + part),
        .middle = 0x1.8p23f + (float)(zp ^ flip),
    };
    return scale > 1e-18f && scale < 1e18f;
}

#endif
