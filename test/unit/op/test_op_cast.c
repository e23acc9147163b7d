/* SPDX-License-Identifier: MIT */
/* Cast between floats, integers and bool in rows of many lengths, against C's conversions. */
#include "op_harness.h"

#include <math.h>

#define MOST 700

static const int32_t types[] = {QSIM_FLOAT,  QSIM_DOUBLE, QSIM_INT8,  QSIM_INT16,
                                QSIM_INT32,  QSIM_INT64,  QSIM_UINT8, QSIM_UINT16,
                                QSIM_UINT32, QSIM_UINT64, QSIM_BOOL};

static size_t bytes_of(int32_t type) {
    return (size_t)qsim_dtype_bits(type) / 8;
}

static bool is_real(int32_t type) {
    return type == QSIM_FLOAT || type == QSIM_DOUBLE;
}

static bool is_unsigned(int32_t type) {
    return type == QSIM_UINT8 || type == QSIM_UINT16 || type == QSIM_UINT32 ||
           type == QSIM_UINT64 || type == QSIM_BOOL;
}

/* Element i becomes v: truncated, within the type's range, 0 for NaN. */
static void put_real(int32_t type, void *p, size_t i, double v) {
#define SATURATED(T, low, high)                                                                    \
    ((T *)p)[i] = (T)(v != v ? 0 : v <= (double)(low) ? (low) : v >= (double)(high) ? (high) : (T)v)
    switch (type) {
    case QSIM_FLOAT: ((float *)p)[i] = (float)v; break;
    case QSIM_DOUBLE: ((double *)p)[i] = v; break;
    case QSIM_INT8: SATURATED(int8_t, INT8_MIN, INT8_MAX); break;
    case QSIM_INT16: SATURATED(int16_t, INT16_MIN, INT16_MAX); break;
    case QSIM_INT32: SATURATED(int32_t, INT32_MIN, INT32_MAX); break;
    case QSIM_INT64: SATURATED(int64_t, INT64_MIN, INT64_MAX); break;
    case QSIM_UINT8: SATURATED(uint8_t, 0, UINT8_MAX); break;
    case QSIM_UINT16: SATURATED(uint16_t, 0, UINT16_MAX); break;
    case QSIM_UINT32: SATURATED(uint32_t, 0, UINT32_MAX); break;
    case QSIM_UINT64: SATURATED(uint64_t, 0, UINT64_MAX); break;
    default: ((uint8_t *)p)[i] = v != 0;
    }
}

/* Element i of integers, its sign extended. */
static uint64_t whole_at(int32_t type, const void *p, size_t i) {
    switch (type) {
    case QSIM_INT8: return (uint64_t)((const int8_t *)p)[i];
    case QSIM_INT16: return (uint64_t)((const int16_t *)p)[i];
    case QSIM_INT32: return (uint64_t)((const int32_t *)p)[i];
    case QSIM_UINT16: return ((const uint16_t *)p)[i];
    case QSIM_UINT32: return ((const uint32_t *)p)[i];
    case QSIM_INT64:
    case QSIM_UINT64: return ((const uint64_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

/* Element i becomes u of type `from`; the low bits remain. */
static void put_whole(int32_t from, uint64_t u, int32_t type, void *p, size_t i) {
    const bool negative = !is_unsigned(from) && u >> 63;
    if (type == QSIM_FLOAT)
        ((float *)p)[i] = negative ? (float)(int64_t)u : (float)u;
    else if (type == QSIM_DOUBLE)
        ((double *)p)[i] = negative ? (double)(int64_t)u : (double)u;
    else if (type == QSIM_BOOL)
        ((uint8_t *)p)[i] = u != 0;
    else
        memcpy((char *)p + i * bytes_of(type), &u, bytes_of(type));
}

static void cast_row(int32_t from, int32_t to, int64_t n, bool near) {
    static const double values[] = {0,
                                    1,
                                    -1,
                                    2.5,
                                    -2.5,
                                    127.5,
                                    128,
                                    -0.0,
                                    -128.9,
                                    -129,
                                    254.9,
                                    255,
                                    256,
                                    300.7,
                                    -32769,
                                    32768,
                                    65535.5,
                                    1e-40,
                                    8388609,
                                    -1e6,
                                    65537,
                                    0x1p31,
                                    -0x1p31,
                                    0x1.fffffep30,
                                    -0x1.000002p31,
                                    0x1p32,
                                    0x1p53,
                                    0x1p63,
                                    -0x1p63,
                                    0x1p64,
                                    0x1.fffffep62,
                                    1e30,
                                    INFINITY,
                                    -INFINITY,
                                    NAN};
    static uint64_t x[MOST], y[MOST];
    uint64_t seed = (uint64_t)n;
    const size_t kinds = near ? 21 : QS_COUNT(values);
    for (size_t i = 0; i < (size_t)n; i++) {
        put_real(from, x, i, values[test_random(&seed) % kinds]);
        if (!is_real(from))
            put_whole(from, whole_at(from, x, i), to, y, i);
        else
            put_real(to, y, i, from == QSIM_FLOAT ? (double)((float *)x)[i] : ((double *)x)[i]);
    }
    op_case *c = case_new("", "Cast", 13);
    case_input(c, from, SHAPE(n), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", to), 0);
    CHECK_INT(case_run(c), 0);
    if (memcmp(case_data(c, 0), y, (size_t)n * bytes_of(to)) != 0)
        CHECK_FAIL(qsim_dtype_name(to));
    test_checks++;
    case_free(c);
}

static double float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof(f));
    return isinf(f) ? copysign(0x1p128, (double)f) : (double)f;
}

/* The upper half of a float or its neighbour, whichever is nearer; of two as near the even one. */
static uint16_t nearest_brain(uint32_t bits) {
    const uint32_t low = bits & 0xffff0000, high = low + 0x10000;
    const double v = float_of(bits);
    if (isnan(v))
        return 0x7fc0;
    if (low == bits)
        return (uint16_t)(bits >> 16);
    const double below = fabs(v - float_of(low)), above = fabs(float_of(high) - v);
    const bool up = above < below || (above == below && (high >> 16 & 1) == 0);
    return (uint16_t)((up ? high : low) >> 16);
}

static void cast_to_brain(int64_t n) {
    static const uint32_t ends[] = {0,          0x8000,     0x18000,    0x7f7fffff, 0x7f7f8000,
                                    0x7f7f7fff, 0x7f800000, 0x7f800001, 0x7fffffff, 0x007fffff};
    static uint32_t x[MOST];
    static uint16_t y[MOST];
    uint64_t seed = (uint64_t)n;
    for (size_t i = 0; i < (size_t)n; i++) {
        const uint32_t r = (uint32_t)(test_random(&seed) >> 16);
        x[i] = i % 3 == 0   ? ends[r % QS_COUNT(ends)] ^ (r & 1u << 31)
               : i % 3 == 1 ? r
                            : (r & 0xffff0000) + 0x7fff + r % 3; /* about half way */
        y[i] = nearest_brain(x[i]);
    }
    op_case *c = case_new("", "Cast", 13);
    case_input(c, QSIM_FLOAT, SHAPE(n), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", QSIM_BFLOAT16), 0);
    CHECK_INT(case_run(c), 0);
    CHECK(memcmp(case_data(c, 0), y, (size_t)n * sizeof(*y)) == 0);
    case_free(c);
}

/* The value of 16 bits of float16 or bfloat16. */
static double narrow_value(int32_t type, uint32_t bits) {
    const int e = bits >> 10 & 31, m = (int)(bits & 1023);
    if (type == QSIM_BFLOAT16) {
        float f;
        bits <<= 16;
        memcpy(&f, &bits, sizeof(f));
        return (double)f;
    }
    const double v = e == 31 ? (m ? (double)NAN : (double)INFINITY)
                     : e     ? ldexp(1024 + m, e - 25)
                             : ldexp(m, -24);
    return bits & 0x8000 ? -v : v;
}

/* The nearest float16; of two as near the even one. */
static uint16_t nearest_half(double v) {
    const unsigned sign = signbit(v) ? 0x8000 : 0;
    const double a = fabs(v);
    if (isnan(v))
        return 0x7e00;
    if (a >= 65520)
        return (uint16_t)(sign | 0x7c00);
    const int e = a < 0x1p-14 ? -14 : ilogb(a);
    const unsigned steps = (unsigned)rint(ldexp(a, 10 - e));
    return (uint16_t)(sign | (((unsigned)(e + 14) << 10) + steps));
}

static void put_narrow(int32_t type, void *p, size_t i, double v) {
    float f = (float)v; /* towards 0, and odd if it is not v: rounds to fewer digits as v does */
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    if (fabs((double)f) > fabs(v))
        bits--;
    if ((double)f != v)
        bits |= 1;
    if (type == QSIM_FLOAT16)
        ((uint16_t *)p)[i] = nearest_half(v);
    else if (type == QSIM_BFLOAT16)
        ((uint16_t *)p)[i] = nearest_brain(bits);
    else
        put_real(type, p, i, v);
}

/* From or to float16 and bfloat16: rounded once. */
static void cast_narrow(int32_t from, int32_t to, int64_t n) {
    static uint64_t x[MOST], y[MOST];
    uint64_t seed = (uint64_t)n + 1;
    const bool narrow = from == QSIM_FLOAT16 || from == QSIM_BFLOAT16;
    for (size_t i = 0; i < (size_t)n; i++) {
        const uint64_t r = test_random(&seed), few = r >> (r >> 8 & 63);
        const uint64_t u = from == QSIM_BOOL ? r & 1 : narrow ? r & 0xffff : few;
        memcpy((char *)x + i * bytes_of(from), &u, bytes_of(from));
        const double v = narrow              ? narrow_value(from, (uint32_t)u)
                         : is_unsigned(from) ? (double)whole_at(from, x, i)
                                             : (double)(int64_t)whole_at(from, x, i);
        put_narrow(to, y, i, v);
    }
    op_case *c = case_new("", "Cast", 13);
    case_input(c, from, SHAPE(n), x);
    case_node(c, 1);
    CHECK_INT(qs_node_set_int(c->g, c->node, "to", to), 0);
    CHECK_INT(case_run(c), 0);
    const bool right =
        to == QSIM_DOUBLE || memcmp(case_data(c, 0), y, (size_t)n * bytes_of(to)) == 0;
    size_t wrong = 0; /* a NaN has any bits as a double */
    for (size_t i = 0; i < (size_t)n && to == QSIM_DOUBLE; i++) {
        const double v = ((const double *)case_data(c, 0))[i], w = ((double *)y)[i];
        wrong += !(v == w || (isnan(v) && isnan(w)));
    }
    if (!right || wrong)
        CHECK_FAIL(qsim_dtype_name(to));
    test_checks++;
    case_free(c);
}

static void test_narrow(int64_t n) {
    static const int32_t narrow[] = {QSIM_FLOAT16, QSIM_BFLOAT16};
    for (size_t i = 0; i < 2; i++) {
        cast_narrow(narrow[i], narrow[1 - i], n);
        for (size_t k = 1; k < QS_COUNT(types); k++) {
            cast_narrow(narrow[i], types[k], n);
            if (!is_real(types[k]))
                cast_narrow(types[k], narrow[i], n);
        }
    }
}

int main(void) {
    static const int64_t lengths[] = {1, 15, 16, 31, 255, 256, 257, 512, MOST};
    for (size_t i = 0; i < QS_COUNT(lengths); i++)
        cast_to_brain(lengths[i]);
    for (size_t i = 0; i < QS_COUNT(lengths); i++)
        test_narrow(lengths[i]);
    for (size_t i = 0; i < QS_COUNT(types) * QS_COUNT(types); i++)
        for (size_t k = 0; k < 2 * QS_COUNT(lengths); k++)
            cast_row(types[i % QS_COUNT(types)], types[i / QS_COUNT(types)], lengths[k / 2], k % 2);
    return test_done();
}
