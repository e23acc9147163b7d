/* SPDX-License-Identifier: MIT */
/* qsim_requantize and its fixed-point form: requantization of the caller's buffers. */
#include <assert.h>
#include <math.h>

#include "base/base.h"
#include "quant/requantize.h"

#include <qsim/op.h>

/* Checks the arguments; complete: there are all buffers, and multipliers for all channels. */
static int check(bool complete, int32_t zp, int32_t lo, int32_t hi, int32_t dtype) {
    if (dtype != QSIM_UINT8 && dtype != QSIM_INT8)
        return QSIM_E_DTYPE;
    int32_t low = dtype == QSIM_INT8 ? -128 : 0, high = low + 255;
    if (!complete)
        return QSIM_E_ARGUMENT;
    if (zp < low || zp > high || lo < low || hi > high || lo > hi)
        return QSIM_E_VALUE;
    return QSIM_OK;
}

int qsim_requantize(const int32_t *acc, size_t rows, size_t channels, const float *m,
                    size_t multipliers, int32_t zero_point, int32_t lo, int32_t hi, int32_t dtype,
                    void *y) {
    const bool complete = acc && m && y && (multipliers == 1 || multipliers == channels);
    int code = check(complete, zero_point, lo, hi, dtype);
    size_t count;
    if (code)
        return code;
    if (!qs_mul(rows, channels, &count))
        return QSIM_E_LIMIT;
    for (size_t i = 0; i < multipliers; i++)
        if (!isfinite(m[i]))
            return QSIM_E_VALUE;
    assert(count == 0 || channels > 0);
    uint8_t *out = y;
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)qs_requantize(acc[i], m[multipliers == 1 ? 0 : i % channels], lo, hi,
                                        zero_point);
    return QSIM_OK;
}

/* (a * b * 2) >> 32, rounded to nearest; the only overflow saturates. */
static int32_t doubling_high_product(int32_t a, int32_t b) {
    if (a == INT32_MIN && b == INT32_MIN)
        return INT32_MAX;
    int64_t product = (int64_t)a * b;
    int64_t nudge = product >= 0 ? (int64_t)1 << 30 : 1 - ((int64_t)1 << 30);
    return (int32_t)((product + nudge) / ((int64_t)1 << 31));
}

/* x / 2^bits, rounded to nearest, ties away from zero. */
static int32_t rounding_shift(int32_t x, int32_t bits) {
    int64_t half = bits ? (int64_t)1 << (bits - 1) : 0;
    int64_t wide = x < 0 ? -(int64_t)x : x, rounded = (wide + half) >> bits;
    return (int32_t)(x < 0 ? -rounded : rounded);
}

static int32_t saturating_left(int32_t x, int32_t bits) {
    int64_t wide = (int64_t)x * ((int64_t)1 << bits);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

static int32_t scale_fixed(int32_t acc, int32_t m, int32_t shift) {
    int32_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
    return rounding_shift(doubling_high_product(saturating_left(acc, left), m), right);
}

int qsim_requantize_fixed(const int32_t *acc, size_t rows, size_t channels, const int32_t *m,
                          const int32_t *shift, size_t multipliers, int32_t zero_point, int32_t lo,
                          int32_t hi, int32_t dtype, void *y) {
    const bool complete = acc && m && y && (multipliers == 1 || multipliers == channels);
    int code = check(complete, zero_point, lo, hi, dtype);
    size_t count;
    if (code)
        return code;
    if (!shift)
        return QSIM_E_ARGUMENT;
    if (!qs_mul(rows, channels, &count))
        return QSIM_E_LIMIT;
    for (size_t i = 0; i < multipliers; i++)
        if (m[i] < 0 || shift[i] < -31 || shift[i] > 30)
            return QSIM_E_VALUE;
    assert(count == 0 || channels > 0);
    uint8_t *out = y;
    for (size_t i = 0; i < count; i++) {
        size_t c = multipliers == 1 ? 0 : i % channels;
        int64_t v = (int64_t)scale_fixed(acc[i], m[c], shift[c]) + zero_point;
        out[i] = (uint8_t)(v < lo ? lo : v > hi ? hi : v);
    }
    return QSIM_OK;
}

int qsim_fixed_from_float(double multiplier, int32_t *m, int32_t *shift) {
    if (!m || !shift)
        return QSIM_E_ARGUMENT;
    if (!isfinite(multiplier) || multiplier < 0)
        return QSIM_E_VALUE;
    int exponent = 0;
    double fraction = frexp(multiplier, &exponent);
    int64_t fixed = (int64_t)(fraction * 2147483648.0 + 0.5);
    if (fixed == (int64_t)1 << 31) {
        fixed /= 2;
        exponent++;
    }
    if (exponent < -31) {
        exponent = 0;
        fixed = 0;
    }
    if (exponent > 30) {
        exponent = 30;
        fixed = INT32_MAX;
    }
    *m = (int32_t)fixed;
    *shift = exponent;
    return QSIM_OK;
}
