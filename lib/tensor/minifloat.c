/* SPDX-License-Identifier: MIT */
#include "tensor/minifloat.h"

#include <math.h>

/* By element type; columns as in qs_minifloat. */
static const qs_minifloat formats[] = {
    [QSIM_FLOAT16] = {10, 5, 15, 0x7c00, 0x7e00, 0x7bff, false},
    [QSIM_BFLOAT16] = {7, 8, 127, 0x7f80, 0x7fc0, 0x7f7f, false},
    [QSIM_FLOAT8E4M3FN] = {3, 4, 7, 0, 0x7f, 0x7e, false},
    [QSIM_FLOAT8E4M3FNUZ] = {3, 4, 8, 0, 0x80, 0x7f, true},
    [QSIM_FLOAT8E5M2] = {2, 5, 15, 0x7c, 0x7e, 0x7b, false},
    [QSIM_FLOAT8E5M2FNUZ] = {2, 5, 16, 0, 0x80, 0x7f, true},
    [QSIM_FLOAT4E2M1] = {1, 2, 1, 0, 7, 7, false}, /* NaN becomes 6 */
};

const qs_minifloat *qs_minifloat_of(int32_t dtype) {
    if ((uint32_t)dtype >= QS_COUNT(formats) || !formats[dtype].mantissa)
        return NULL;
    return &formats[dtype];
}

static uint32_t sign_bit(const qs_minifloat *f) {
    return 1u << (f->mantissa + f->exponent);
}

float qs_minifloat_value(const qs_minifloat *f, uint32_t bits) {
    const uint32_t sign = bits & sign_bit(f), magnitude = bits & (sign_bit(f) - 1);
    const uint32_t exponent = magnitude >> f->mantissa;
    uint32_t fraction = magnitude & ((1u << f->mantissa) - 1);
    float v;
    if (f->no_minus_zero ? bits == f->nan : magnitude > f->infinity && magnitude > f->largest)
        return NAN;
    if (f->infinity && magnitude == f->infinity)
        return sign ? -INFINITY : INFINITY;
    fraction |= exponent ? 1u << f->mantissa : 0;
    v = (float)ldexp((double)fraction, (int)(exponent ? exponent : 1) - f->bias - f->mantissa);
    return sign ? -v : v;
}

/* 2^n for n in the range of normal doubles. */
static double power(int n) {
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}

uint32_t qs_minifloat_bits(const qs_minifloat *f, double v, bool saturate) {
    const uint32_t over = f->infinity ? f->infinity : f->nan;
    uint64_t u;
    if (v != v)
        return f->nan;
    memcpy(&u, &v, sizeof(u));
    const uint32_t sign = u >> 63 ? sign_bit(f) : 0;
    const int least = 1 - f->bias;
    int exponent = (int)(u >> 52 & 2047) - 1023;
    uint32_t magnitude;
    if (exponent > f->bias + 1) {
        magnitude = f->largest + 1u;
    } else {
        exponent = exponent < least ? least : exponent;
        /* the leading 1 of a normal number adds 1 to the exponent's bits */
        magnitude = (uint32_t)rint(fabs(v) * power(f->mantissa - exponent)) +
                    ((uint32_t)(exponent - least) << f->mantissa);
    }
    if (magnitude > f->largest)
        return sign | (saturate ? f->largest : over);
    return magnitude || !f->no_minus_zero ? sign | magnitude : 0;
}
