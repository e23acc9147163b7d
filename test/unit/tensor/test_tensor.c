/* SPDX-License-Identifier: MIT */
/* Names, bits and sizes of data types; conversion between them. */
#include "test.h"

#include <math.h>

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
    CHECK_INT(qsim_tensor_size(QSIM_UINT8, 1, huge, &n, &bytes), QSIM_OK);
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
    float f[2] = {1, 2};
    from = view(QSIM_FLOAT, 1, dims, f, sizeof(f));
    to = view(QSIM_INT64, 1, dims, back, sizeof(back));
    CHECK_INT(qsim_tensor_convert(&from, &to, &e), QSIM_E_UNSUPPORTED);
}

int main(void) {
    test_names();
    test_sizes();
    test_convert_float();
    test_convert_integer();
    return test_done();
}
