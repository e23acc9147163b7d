/* SPDX-License-Identifier: MIT */
/* Scale and zero point, quantize, dequantize: golden values of the specification and properties. */
#include <float.h>
#include <math.h>

#include "test.h"

#include <qsim/quant.h>

static void check_choose(float low, float high, int32_t dtype, int32_t flags, int32_t zero_point,
                         float scale) {
    float s = -1;
    int32_t z = -1;
    CHECK_INT(qsim_qparams_choose(low, high, dtype, flags, &s, &z), QSIM_OK);
    CHECK_INT(z, zero_point);
    CHECK(s == scale);
}

static void test_choose(void) {
    const int32_t sym = QSIM_RANGE_SYMMETRIC, narrow = QSIM_RANGE_NARROW;
    check_choose(-1, 2, QSIM_INT8, sym | narrow, 0, 2.0f / 127);
    check_choose(-1, 2, QSIM_INT8, narrow, -42, 3.0f / 254);
    check_choose(-1, 2, QSIM_UINT8, sym, 128, 4.0f / 255);
    check_choose(-1, 2, QSIM_UINT8, 0, 85, 3.0f / 255);
    check_choose(0, 0, QSIM_UINT8, 0, 0, 1);
    check_choose(0, 0, QSIM_INT8, sym | narrow, 0, 1);
    /* The range includes zero even if the values do not. */
    check_choose(3, 5, QSIM_UINT8, 0, 0, 5.0f / 255);
    check_choose(-5, -3, QSIM_UINT8, 0, 255, 5.0f / 255);
    check_choose(-8, 7, QSIM_INT4, 0, 0, 1);
    check_choose(0, 15, QSIM_UINT4, 0, 0, 1);
    check_choose(-64, 64, QSIM_INT8, QSIM_RANGE_REDUCED, 0, 1);
    check_choose(0, 127, QSIM_UINT8, QSIM_RANGE_REDUCED, 0, 1);
    check_choose(-32768, 32767, QSIM_INT16, 0, 0, 1);
    check_choose(0, 65535, QSIM_UINT16, 0, 0, 1);
    /* The whole range of float: no intermediate overflows. */
    check_choose(-FLT_MAX, FLT_MAX, QSIM_INT8, sym | narrow, 0, FLT_MAX / 127);
    /* A range so narrow that its scale would be denormal. */
    check_choose(0, 255 * FLT_MIN / 2, QSIM_UINT8, 0, 0, 1);
    check_choose(0, 255 * FLT_MIN, QSIM_UINT8, 0, 0, FLT_MIN);
}

static void test_choose_errors(void) {
    float s;
    int32_t z, lo, hi;
    CHECK_INT(qsim_qparams_choose(NAN, 1, QSIM_UINT8, 0, &s, &z), QSIM_E_VALUE);
    CHECK_INT(qsim_qparams_choose(0, INFINITY, QSIM_UINT8, 0, &s, &z), QSIM_E_VALUE);
    CHECK_INT(qsim_qparams_choose(1, 0, QSIM_UINT8, 0, &s, &z), QSIM_E_VALUE);
    CHECK_INT(qsim_qparams_choose(0, 1, QSIM_FLOAT, 0, &s, &z), QSIM_E_DTYPE);
    CHECK_INT(qsim_dtype_limits(QSIM_INT8, QSIM_RANGE_NARROW, &lo, &hi), QSIM_OK);
    CHECK_INT(lo, -127);
    CHECK_INT(hi, 127);
    CHECK_INT(qsim_dtype_limits(QSIM_INT32, 0, &lo, &hi), QSIM_OK);
    CHECK_INT(lo, INT32_MIN);
    CHECK_INT(hi, INT32_MAX);
    CHECK_INT(qsim_dtype_limits(QSIM_INT2, 0, &lo, &hi), QSIM_OK);
    CHECK_INT(lo, -2);
    CHECK_INT(hi, 1);
}

/* Every type and many ranges: zero comes back as zero, the ends within half a step. */
static void test_choose_properties(void) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16,
                                    QSIM_UINT4, QSIM_INT4, QSIM_UINT2,  QSIM_INT2};
    uint64_t seed = 7;
    for (int i = 0; i < 4000; i++) {
        float a =
            ldexpf((float)test_random(&seed) - 2147483648.0f, (int)(test_random(&seed) % 60) - 60);
        float b =
            ldexpf((float)test_random(&seed) - 2147483648.0f, (int)(test_random(&seed) % 60) - 60);
        float low = a < b ? a : b, high = a < b ? b : a, s;
        int32_t z, qmin, qmax, dtype = types[test_random(&seed) % 8];
        int32_t flags = (int32_t)(test_random(&seed) % 8);
        if (dtype == QSIM_INT2 && (flags & QSIM_RANGE_REDUCED))
            continue;
        CHECK_INT(qsim_qparams_choose(low, high, dtype, flags, &s, &z), QSIM_OK);
        CHECK_INT(qsim_dtype_limits(dtype, flags, &qmin, &qmax), QSIM_OK);
        CHECK(z >= qmin && z <= qmax && s > 0);
        /* The ends lose half a step at most, by rounding the zero point. */
        double lo = low < 0 ? low : 0, hi = high > 0 ? high : 0;
        CHECK(((double)qmin - z) * (double)s <= lo + 0.51 * (double)s);
        CHECK(((double)qmax - z) * (double)s >= hi - 0.51 * (double)s);
    }
}

/* docs/QUANTIZATION.md, section 2. */
static void test_golden(void) {
    const float a[12] = {-256, -255, -3, -1, 0, 1, 3, 5, 253, 254, 255, 1000};
    const uint8_t a8[12] = {0, 0, 126, 128, 128, 128, 130, 130, 254, 255, 255, 255};
    const float b[8] = {-128.5f, -1.5f, -.5f, .5f, 1.5f, 2.5f, 126.5f, 127.5f};
    const int8_t b8[8] = {-128, -2, 0, 0, 2, 2, 126, 127};
    const float c[4] = {-.5f, .5f, 1.5f, 2.5f};
    const int8_t c8[4] = {1, 1, 3, 3};
    uint8_t u[12];
    int8_t s[8];
    CHECK_INT(qsim_values_quantize(a, 12, 2, 128, QSIM_UINT8, u), QSIM_OK);
    CHECK(memcmp(u, a8, 12) == 0);
    CHECK_INT(qsim_values_quantize(b, 8, 1, 0, QSIM_INT8, s), QSIM_OK);
    CHECK(memcmp(s, b8, 8) == 0);
    CHECK_INT(qsim_values_quantize(c, 4, 1, 1, QSIM_INT8, s), QSIM_OK);
    CHECK(memcmp(s, c8, 4) == 0);
}

/* The classic trap: a zero point meant for u8 with an s8 target. */
static void test_trap(void) {
    const float x[5] = {1, 2.5f, 3, 4.5f, 5};
    uint8_t u[5];
    int8_t s[5];
    float back[5];
    CHECK_INT(qsim_values_quantize(x, 5, 0.1f, 128, QSIM_UINT8, u), QSIM_OK);
    CHECK_INT(qsim_values_dequantize(u, 5, 0.1f, 128, QSIM_UINT8, back), QSIM_OK);
    for (int i = 0; i < 5; i++)
        CHECK_NEAR(back[i], x[i], 0.0500001);
    CHECK_INT(qsim_values_quantize(x, 5, 0.1f, 128, QSIM_INT8, s), QSIM_OK);
    for (int i = 0; i < 5; i++)
        CHECK_INT(s[i], 127);
}

static void test_special(void) {
    const float x[5] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    uint8_t u[5];
    int8_t s[5];
    int16_t h[5];
    int32_t w[5];
    CHECK_INT(qsim_values_quantize(x, 5, 0.01f, 3, QSIM_UINT8, u), QSIM_OK);
    CHECK(u[0] == 0 && u[1] == 255 && u[2] == 0 && u[3] == 255 && u[4] == 0);
    CHECK_INT(qsim_values_quantize(x, 5, 1e-38f, -3, QSIM_INT8, s), QSIM_OK);
    CHECK(s[0] == -128 && s[1] == 127 && s[2] == -128 && s[3] == 127 && s[4] == -128);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 0, QSIM_INT16, h), QSIM_OK);
    CHECK(h[0] == -32768 && h[1] == 32767 && h[2] == -32768);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 0, QSIM_INT32, w), QSIM_OK);
    CHECK(w[0] == INT32_MIN && w[1] == INT32_MAX && w[2] == INT32_MIN && w[3] == INT32_MAX);
    CHECK_INT(qsim_values_quantize(x, 5, 0, 0, QSIM_UINT8, u), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, -1, 0, QSIM_UINT8, u), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, NAN, 0, QSIM_UINT8, u), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, INFINITY, 0, QSIM_UINT8, u), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 1 << 30, QSIM_UINT8, u), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 1, QSIM_INT32, w), QSIM_E_VALUE);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 0, QSIM_INT64, w), QSIM_E_DTYPE);
}

/* The definition with a plain division, libm's rounding and a clamp in integers. */
static int32_t plain(float x, float scale, int32_t zp, int32_t qmin, int32_t qmax) {
    double v = rint((double)(x / scale));
    if (isnan(v))
        return qmin;
    v += zp;
    return v < qmin ? qmin : v > qmax ? qmax : (int32_t)v;
}

static void test_against_plain(void) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16};
    uint64_t seed = 11;
    enum { N = 1037 };
    static float x[N], back[N];
    static uint16_t y[N];
    for (int round = 0; round < 60; round++) {
        int32_t dtype = types[round % 4], qmin, qmax;
        float scale = 1.0f / (float)(1 + test_random(&seed) % 999);
        int32_t zp = (int32_t)(test_random(&seed) % 600) - 300;
        CHECK_INT(qsim_dtype_limits(dtype, 0, &qmin, &qmax), QSIM_OK);
        for (int i = 0; i < N; i++) /* half of them exact ties */
            x[i] = i % 2 ? scale * ((float)(test_random(&seed) % 1000) - 500.5f)
                         : ((float)test_random(&seed) / 4294967296.0f - 0.5f) * 800 * scale;
        CHECK_INT(qsim_values_quantize(x, N, scale, zp, dtype, y), QSIM_OK);
        CHECK_INT(qsim_values_dequantize(y, N, scale, zp, dtype, back), QSIM_OK);
        int wrong = 0;
        for (int i = 0; i < N; i++) {
            int32_t q = dtype == QSIM_UINT8    ? ((uint8_t *)y)[i]
                        : dtype == QSIM_INT8   ? ((int8_t *)y)[i]
                        : dtype == QSIM_UINT16 ? y[i]
                                               : ((int16_t *)y)[i];
            wrong += q != plain(x[i], scale, zp, qmin, qmax);
            wrong += back[i] != (float)(q - zp) * scale;
        }
        CHECK_INT(wrong, 0);
    }
}

static void test_packed(void) {
    const float x[5] = {-9, -8, 0.5f, 1.5f, 7};
    uint8_t y[3] = {0xff, 0xff, 0xff};
    float back[5];
    CHECK_INT(qsim_values_quantize(x, 5, 1, 0, QSIM_INT4, y), QSIM_OK);
    /* First element in the low half: -8 -8 | 0 2 | 7 and a zero tail. */
    CHECK_INT(y[0], 0x88);
    CHECK_INT(y[1], 0x20);
    CHECK_INT(y[2], 0x07);
    CHECK_INT(qsim_values_dequantize(y, 5, 1, 0, QSIM_INT4, back), QSIM_OK);
    CHECK(back[0] == -8 && back[1] == -8 && back[2] == 0 && back[3] == 2 && back[4] == 7);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 8, QSIM_UINT4, y), QSIM_OK);
    CHECK(y[0] == 0x00 && y[1] == 0xa8 && y[2] == 0x0f);
    CHECK_INT(qsim_values_quantize(x, 5, 1, 0, QSIM_INT2, y), QSIM_OK);
    CHECK(y[0] == (2 | 2 << 2 | 0 << 4 | 1 << 6) && y[1] == 1);
}

/* Element i of a tensor of a type that is not packed. */
static int32_t element(const void *y, int32_t dtype, int i) {
    switch (dtype) {
    case QSIM_UINT8: return ((const uint8_t *)y)[i];
    case QSIM_INT8: return ((const int8_t *)y)[i];
    case QSIM_UINT16: return ((const uint16_t *)y)[i];
    case QSIM_INT16: return ((const int16_t *)y)[i];
    default: return ((const int32_t *)y)[i];
    }
}

/* 3 x 4 x 5 elements per channel of an axis or per block, by an index computation from scratch. */
static void check_layout(int32_t dtype, int axis, int block) {
    const int64_t dims[3] = {3, 4, 5};
    int64_t d[3] = {3, 4, 5};
    float x[60], scale[60], back[60];
    int32_t zp[60], low, high, y[60];
    size_t count;
    if (dtype == QSIM_INT32) {
        low = INT32_MIN;
        high = INT32_MAX;
    } else {
        CHECK_INT(qsim_dtype_limits(dtype, 0, &low, &high), QSIM_OK);
    }
    for (int i = 0; i < 60; i++) {
        x[i] = (float)(i * 7 % 41 - 20);
        scale[i] = 0.125f * (float)(i + 1);
        zp[i] = dtype == QSIM_INT32 ? 0 : low + 100 + i;
    }
    qsim_tensor tx = {QSIM_FLOAT, 3, dims, x, sizeof(x)}, ty = {dtype, 3, dims, y, sizeof(y)};
    qsim_tensor tb = {QSIM_FLOAT, 3, dims, back, sizeof(back)};
    if (block)
        d[axis] = (d[axis] + block - 1) / block;
    CHECK_INT(qsim_qparams_count(3, dims, axis - 3, block, &count), QSIM_OK);
    CHECK_INT(count, block ? d[0] * d[1] * d[2] : dims[axis]);
    qsim_qparams q = {dtype, axis - 3, block, count, scale, zp};
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, NULL), QSIM_OK);
    CHECK_INT(qsim_tensor_dequantize(&ty, &q, &tb, NULL), QSIM_OK);
    int wrong = 0;
    for (int i = 0; i < 60; i++) {
        int64_t at[3] = {i / 20, i / 5 % 4, i % 5};
        int64_t s = at[axis];
        if (block) {
            at[axis] /= block;
            s = (at[0] * d[1] + at[1]) * d[2] + at[2];
        }
        wrong += element(y, dtype, i) != plain(x[i], scale[s], zp[s], low, high);
        wrong += back[i] != (float)(element(y, dtype, i) - zp[s]) * scale[s];
    }
    CHECK_INT(wrong, 0);
}

static void test_layouts(void) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16, QSIM_INT32};
    for (int t = 0; t < 5; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int block = 0; block < 4; block++)
                check_layout(types[t], axis, block);
}

static void test_tensor_errors(void) {
    const int64_t dims[2] = {2, 3}, other[2] = {3, 2};
    float x[6] = {0}, scale[3] = {1, 0, 1};
    uint8_t y[6];
    qsim_error e;
    qsim_tensor tx = {QSIM_FLOAT, 2, dims, x, sizeof(x)};
    qsim_tensor ty = {QSIM_UINT8, 2, dims, y, sizeof(y)};
    qsim_qparams q = {QSIM_UINT8, 1, 0, 3, scale, NULL};
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "index 1") != NULL);
    scale[1] = 1;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_OK);
    q.axis = 0;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_SHAPE);
    q.axis = 2;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_SHAPE);
    q.axis = 1;
    ty.dims = other;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_SHAPE);
    ty.dims = dims;
    ty.bytes = 5;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_ARGUMENT);
    ty.bytes = 6;
    ty.dtype = QSIM_INT8;
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, &e), QSIM_E_DTYPE);
}

static void test_measure(void) {
    const int64_t dims[3] = {2, 3, 2};
    float x[12] = {1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12};
    float s[6];
    int32_t z[6];
    qsim_tensor t = {QSIM_FLOAT, 3, dims, x, sizeof(x)};
    const int32_t weights = QSIM_RANGE_SYMMETRIC | QSIM_RANGE_NARROW;
    CHECK_INT(qsim_qparams_measure(&t, QSIM_INT8, 1, 0, weights, 3, s, z, NULL), QSIM_OK);
    CHECK(s[0] == 8.0f / 127 && s[1] == 10.0f / 127 && s[2] == 12.0f / 127);
    CHECK(z[0] == 0 && z[1] == 0 && z[2] == 0);
    CHECK_INT(qsim_qparams_measure(&t, QSIM_UINT8, 0, 0, 0, 1, s, z, NULL), QSIM_OK);
    CHECK(s[0] == 21.0f / 255 && z[0] == 109); /* 9 * 255 / 21 = 109.3 */
    CHECK_INT(qsim_qparams_measure(&t, QSIM_INT8, 1, 0, weights, 2, s, z, NULL), QSIM_E_SHAPE);
    float bs[8];
    int32_t bz[8];
    CHECK_INT(qsim_qparams_measure(&t, QSIM_INT8, 1, 2, weights, 8, bs, bz, NULL), QSIM_OK);
    CHECK(bs[0] == 3.0f / 127 && bs[1] == 4.0f / 127 && bs[2] == 5.0f / 127 &&
          bs[7] == 12.0f / 127);
    x[5] = NAN;
    CHECK_INT(qsim_qparams_measure(&t, QSIM_INT8, 1, 0, weights, 3, s, z, NULL), QSIM_E_VALUE);
}

/* Tensors without elements take no time, whatever their other sizes are. */
static void test_no_elements(void) {
    const int64_t long_axis = (int64_t)1 << (sizeof(size_t) > 4 ? 50 : 26); /* within limits */
    const int64_t dims[3] = {long_axis, 3, 0}, none[3] = {long_axis, 0, 3};
    float x[1], s[3] = {1, 1, 1};
    int32_t z[3] = {0};
    uint8_t y[1];
    qsim_tensor tx = {QSIM_FLOAT, 3, dims, x, 0}, ty = {QSIM_UINT8, 3, dims, y, 0};
    const qsim_qparams q = {QSIM_UINT8, 1, 0, 3, s, z};
    CHECK_INT(qsim_tensor_quantize(&tx, &q, &ty, NULL), QSIM_OK);
    CHECK_INT(qsim_tensor_dequantize(&ty, &q, &tx, NULL), QSIM_OK);
    CHECK_INT(qsim_qparams_measure(&tx, QSIM_INT8, 1, 0, 0, 3, s, z, NULL), QSIM_OK);
    CHECK(s[0] == 1 && s[1] == 1 && s[2] == 1 && z[2] == 0);
    tx.dims = none;
    CHECK_INT(qsim_qparams_measure(&tx, QSIM_INT8, 1, 0, 0, 0, s, z, NULL), QSIM_OK);
}

static void test_unknown_flags(void) {
    int32_t low, high, zp;
    float scale;
    CHECK_INT(qsim_dtype_limits(QSIM_INT8, 7, &low, &high), QSIM_OK);
    CHECK_INT(qsim_dtype_limits(QSIM_INT8, 8, &low, &high), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_qparams_choose(-1, 1, QSIM_INT8, 8, &scale, &zp), QSIM_E_ARGUMENT);
}

int main(void) {
    test_unknown_flags();
    test_choose();
    test_choose_errors();
    test_choose_properties();
    test_golden();
    test_trap();
    test_special();
    test_against_plain();
    test_packed();
    test_layouts();
    test_tensor_errors();
    test_measure();
    test_no_elements();
    return test_done();
}
