/* SPDX-License-Identifier: MIT */
/* Names, bits and sizes of data types; conversion between them. */
#include "test.h"

#include <stdbool.h>

#include <fenv.h>
#include <math.h>

#include "base/base.h"
#include "tensor/shape.h"

#include <qsim/data.h>

static void test_names(void) {
    CHECK_STR(qsim_dtype_name(QSIM_FLOAT), "float");
    CHECK_STR(qsim_dtype_name(QSIM_INT4), "int4");
    CHECK_STR(qsim_dtype_name(-1), "undefined");
    CHECK_STR(qsim_dtype_name(27), "undefined");
    CHECK_INT(qsim_dtype_bits(QSIM_UINT2), 2);
    CHECK_INT(qsim_dtype_bits(QSIM_BFLOAT16), 16);
    CHECK_INT(qsim_dtype_bits(QSIM_COMPLEX128), 128);
    CHECK_INT(qsim_dtype_bits(QSIM_STRING), 0);
    CHECK_INT(qsim_dtype_bits(99), 0);
}

static void test_sizes(void) {
    size_t n = 7, bytes = 7;
    int64_t dims[] = {3, 5, 7};
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, 3, dims, &n, &bytes), QSIM_OK);
    CHECK_INT(n, 105);
    CHECK_INT(bytes, 420);
    CHECK_INT(qsim_tensor_size(QSIM_INT4, 3, dims, &n, &bytes), QSIM_OK);
    CHECK_INT(bytes, 53);
    CHECK_INT(qsim_tensor_size(QSIM_INT2, 3, dims, NULL, &bytes), QSIM_OK);
    CHECK_INT(bytes, 27);
    CHECK_INT(qsim_tensor_size(QSIM_DOUBLE, 0, NULL, &n, &bytes), QSIM_OK);
    CHECK_INT(n, 1);
    CHECK_INT(bytes, 8);
    CHECK_INT(qsim_tensor_size(QSIM_STRING, 0, NULL, &n, &bytes), QSIM_E_DTYPE);
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, 17, dims, &n, &bytes), QSIM_E_SHAPE);
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, -1, dims, &n, &bytes), QSIM_E_SHAPE);
    dims[1] = -5;
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, 3, dims, &n, &bytes), QSIM_E_SHAPE);
    dims[1] = 0;
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, 3, dims, &n, &bytes), QSIM_OK);
    CHECK_INT(n, 0);
    CHECK_INT(bytes, 0);
    int64_t wraps[] = {INT64_C(1) << 32, INT64_C(1) << 32};
    CHECK_INT(qsim_tensor_size(QSIM_UINT8, 2, wraps, &n, &bytes), QSIM_E_LIMIT);
    int64_t zero_wraps[] = {0, INT64_C(1) << 32, INT64_C(1) << 32};
    CHECK_INT(qsim_tensor_size(QSIM_UINT8, 3, zero_wraps, &n, &bytes), QSIM_E_LIMIT);
    int64_t huge[] = {INT64_MAX};
    CHECK_INT(qsim_tensor_size(QSIM_UINT8, 1, huge, &n, &bytes), TEST_WIDE(QSIM_OK));
    CHECK_INT(qsim_tensor_size(QSIM_UINT16, 1, huge, &n, &bytes), QSIM_E_LIMIT);
}

static qsim_tensor view(int32_t dtype, int32_t rank, const int64_t *dims, void *data, size_t size) {
    qsim_tensor t = {.dtype = dtype, .rank = rank, .dims = dims, .data = data, .bytes = size};
    return t;
}

static void test_convert_float(void) {
    int64_t dims[] = {4};
    float out[4];
    qsim_tensor to = view(QSIM_FLOAT, 1, dims, out, sizeof(out));
    qsim_error e;

    double d[] = {0.1, -1e300, 16777217.0, 0.5};
    qsim_tensor from = view(QSIM_DOUBLE, 1, dims, d, sizeof(d));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(out[0] == 0.1f && isinf(out[1]) && out[2] == 16777216.0f && out[3] == 0.5f);

    /* 1.5, the smallest denormal, -infinity, the largest finite half. */
    uint16_t h[] = {0x3e00, 0x0001, 0xfc00, 0x7bff};
    from = view(QSIM_FLOAT16, 1, dims, h, sizeof(h));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(out[0] == 1.5f && out[1] == 5.9604644775390625e-8f && out[2] == -INFINITY &&
          out[3] == 65504.0f);

    uint16_t b[] = {0x3f80, 0xc000, 0x7f80, 0x4049};
    from = view(QSIM_BFLOAT16, 1, dims, b, sizeof(b));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(out[0] == 1.0f && out[1] == -2.0f && out[2] == INFINITY && out[3] == 3.140625f);

    int8_t s[] = {-128, 127, 0, -1};
    from = view(QSIM_INT8, 1, dims, s, sizeof(s));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(out[0] == -128.0f && out[1] == 127.0f && out[2] == 0.0f && out[3] == -1.0f);
}

/* Converts one number. */
static void convert(int32_t from, void *in, int32_t to, void *out) {
    const qsim_tensor x = view(from, 0, NULL, in, (size_t)qsim_dtype_bits(from) / 8);
    const qsim_tensor y = view(to, 0, NULL, out, (size_t)qsim_dtype_bits(to) / 8);
    CHECK_INT(qsim_tensor_convert(&x, &y, NULL), QSIM_OK);
}

static uint16_t to_half(double v, int32_t dtype) {
    uint16_t h = 0xdead;
    convert(QSIM_DOUBLE, &v, dtype, &h);
    return h;
}

static double from_half(uint16_t h, int32_t dtype) {
    double v = 0;
    convert(dtype, &h, QSIM_DOUBLE, &v);
    return v;
}

/* Every number of a type of 16 bits, what is half-way to the next one, and what is around that. */
static void test_convert_to_half(int32_t dtype, uint16_t largest) {
    for (uint16_t h = 0; h <= largest; h++) {
        const double v = from_half(h, dtype);
        const double next = h < largest
                                ? from_half(h + 1, dtype)
                                : 2 * v - from_half(h - 1, dtype); /* infinity takes its place */
        const double between = v + (next - v) / 2;
        const uint16_t even = h % 2 ? h + 1 : h;
        CHECK_INT(to_half(v, dtype), h);
        CHECK_INT(to_half(-v, dtype), h | 0x8000);
        CHECK_INT(to_half(between, dtype), even);
        CHECK_INT(to_half(-between, dtype), even | 0x8000);
        CHECK_INT(to_half(nextafter(between, 0), dtype), h);
        CHECK_INT(to_half(nextafter(between, INFINITY), dtype), h + 1);
    }
    CHECK_INT(to_half(INFINITY, dtype), largest + 1);
    CHECK_INT(to_half(1e300, dtype), largest + 1);
    CHECK(isnan(from_half(to_half(NAN, dtype), dtype)));
    CHECK_INT(to_half(1e-300, dtype), 0);
}

/* More elements than are converted at a time, from other types, and whatever way the host rounds.
 */
static void test_convert_many_to_half(void) {
    int64_t dims[] = {201};
    int16_t in[201];
    uint16_t h[201], b[201];
    float f = 0;
    double v = 1 + 0x1p-30;
    for (int i = 0; i < 201; i++)
        in[i] = (int16_t)(i - 100);
    const qsim_tensor from = view(QSIM_INT16, 1, dims, in, sizeof(in));
    const qsim_tensor half = view(QSIM_FLOAT16, 1, dims, h, sizeof(h));
    const qsim_tensor brain = view(QSIM_BFLOAT16, 1, dims, b, sizeof(b));
    CHECK_INT(qsim_tensor_convert(&from, &half, NULL), QSIM_OK);
    CHECK_INT(qsim_tensor_convert(&half, &brain, NULL), QSIM_OK);
    for (int i = 0; i < 201; i++) {
        CHECK(from_half(h[i], QSIM_FLOAT16) == i - 100);
        CHECK(from_half(b[i], QSIM_BFLOAT16) == i - 100);
    }
    CHECK_INT(fesetround(FE_UPWARD), 0);
    const int way = fegetround(); /* WebAssembly rounds to the nearest whatever is set */
    const uint16_t up = to_half(v, QSIM_FLOAT16);
    convert(QSIM_DOUBLE, &v, QSIM_FLOAT, &f);
    CHECK_INT(fegetround(), way);
    CHECK_INT(fesetround(FE_TONEAREST), 0);
#ifndef __EMSCRIPTEN__
    CHECK_INT(way, FE_UPWARD);
#endif
    CHECK_INT(up, 0x3c00);
    CHECK(f == 1);
}

static void test_convert_integer(void) {
    int64_t dims[] = {2}, other[] = {3};
    int64_t in[] = {-1, 255};
    uint8_t u[3];
    int16_t s[2];
    uint64_t big[] = {1, UINT64_MAX}, back[2];
    qsim_error e;
    qsim_tensor from = view(QSIM_INT64, 1, dims, in, sizeof(in));
    qsim_tensor to = view(QSIM_INT16, 1, dims, s, sizeof(s));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(s[0] == -1 && s[1] == 255);
    to = view(QSIM_UINT8, 1, dims, u, sizeof(u));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_VALUE);
    CHECK(strstr(e.message, "element 0") != NULL);
    from = view(QSIM_UINT64, 1, dims, big, sizeof(big));
    to = view(QSIM_UINT64, 1, dims, back, sizeof(back));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_OK);
    CHECK(back[0] == 1 && back[1] == UINT64_MAX);
    to = view(QSIM_INT64, 1, dims, back, sizeof(back));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_VALUE);
    to = view(QSIM_INT64, 1, other, back, sizeof(back));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_SHAPE);
    to = view(QSIM_INT64, 1, dims, back, 15);
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_tensor_convert(NULL, &to, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_tensor_convert(&from, NULL, &e), QSIM_E_ARGUMENT);
    float f[2] = {1, 2};
    from = view(QSIM_FLOAT, 1, dims, f, sizeof(f));
    to = view(QSIM_INT64, 1, dims, back, sizeof(back));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_UNSUPPORTED);
}

#ifdef __SIZEOF_INT128__ /* not on CPUs of 32 bits */
__extension__ typedef __int128 wide;

/* Integer types, their bits, and the numbers that each pair of them is tried with. */
static const struct {
    int32_t dtype, bits;
    bool is_signed;
} integer_types[] = {{QSIM_UINT8, 8, false},   {QSIM_INT8, 8, true},     {QSIM_UINT16, 16, false},
                     {QSIM_INT16, 16, true},   {QSIM_UINT32, 32, false}, {QSIM_INT32, 32, true},
                     {QSIM_UINT64, 64, false}, {QSIM_INT64, 64, true},   {QSIM_BOOL, 8, false}};

/* Whether a number is in a type's range, computed in 128 bits. */
static bool has_place(size_t type, wide v) {
    const int bits = integer_types[type].bits;
    const wide one = 1;
    return integer_types[type].is_signed ? v >= -(one << (bits - 1)) && v < one << (bits - 1)
                                         : v >= 0 && v < one << bits;
}

/* Every pair of types at the ends of every range: exact, or refused; to floats rounded. */
static void test_convert_pairs(void) {
    const size_t types = sizeof(integer_types) / sizeof(integer_types[0]);
    for (size_t a = 0; a < types; a++)
        for (size_t b = 0; b < types; b++)
            for (int bits = 0; bits <= 64; bits += bits == 0 ? 7 : bits % 8 ? 1 : 7)
                for (int off = -2; off <= 1; off++) {
                    wide v = ((wide)1 << bits) + off;
                    v = off == -2 ? -(v + 2) : v; /* the least of a signed type */
                    const bool is_bool = integer_types[a].dtype == QSIM_BOOL;
                    if (!has_place(a, v) || (is_bool && (v < 0 || v > 1)))
                        continue;
                    const uint64_t in = (uint64_t)v;
                    uint64_t out = 0;
                    float f = 0;
                    double d = 0;
                    const size_t size = (size_t)integer_types[b].bits / 8;
                    const qsim_tensor from = {integer_types[a].dtype, 0, NULL,
                                              (void *)(uintptr_t)&in,
                                              (size_t)integer_types[a].bits / 8};
                    const qsim_tensor to = {integer_types[b].dtype, 0, NULL, &out, size};
                    const qsim_tensor single = {QSIM_FLOAT, 0, NULL, &f, 4};
                    const qsim_tensor twice = {QSIM_DOUBLE, 0, NULL, &d, 8};
                    const int code = qsim_tensor_convert(&from, &to, NULL);
                    if (integer_types[b].dtype == QSIM_BOOL)
                        CHECK_INT(code, QSIM_E_UNSUPPORTED);
                    else
                        CHECK_INT(code, has_place(b, v) ? QSIM_OK : QSIM_E_VALUE);
                    CHECK(code || memcmp(&out, &in, size) == 0);
                    CHECK_INT(qsim_tensor_convert(&from, &single, NULL), QSIM_OK);
                    CHECK_INT(qsim_tensor_convert(&from, &twice, NULL), QSIM_OK);
                    CHECK(f == (float)v && d == (double)v);
                }
}
#else
static void test_convert_pairs(void) {
}
#endif

/* A size is written where the longest one, a comma and the end have room. */
static void test_shape_text(void) {
    static const int64_t dims[] = {1, 2, INT64_MIN};
    static const char *const texts[] = {"[]", "[1]", "[1,2]", "[1,2]",
                                        "[1,2,-9223372036854775808]"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const size_t capacity = 25 + i;
        char *text = malloc(capacity);
        CHECK_STR(qs_shape_text(text, capacity, 3, dims), texts[i]);
        free(text);
    }
}

int main(void) {
    test_names();
    test_shape_text();
    test_sizes();
    test_convert_float();
    test_convert_to_half(QSIM_FLOAT16, 0x7bff);
    test_convert_to_half(QSIM_BFLOAT16, 0x7f7f);
    test_convert_many_to_half();
    test_convert_integer();
    test_convert_pairs();
    return test_done();
}
