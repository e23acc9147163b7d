/* SPDX-License-Identifier: MIT */
/*
 * Nodes on constants whose types a session computes by other operators: optimizing a file leaves
 * them as they are, since their kernels take other types.
 */
#include "test.h"

#include <qsim/session.h>

/* A model that computes y of constants, and nothing else. */
static qsim_model *build(const char *op, const qsim_tensor *constants, size_t count,
                         int32_t opset) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    char inputs[16] = "";
    CHECK_INT(qsim_builder_create(NULL, opset, "g", &b, &e), QSIM_OK);
    for (size_t i = 0; i < count; i++) {
        qsim_builder_constant(b, names[i], &constants[i]);
        snprintf(inputs + strlen(inputs), sizeof(inputs) - strlen(inputs), "%s%s", i ? "," : "",
                 names[i]);
    }
    qsim_builder_node(b, "", op, "node", inputs, "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    if (!m)
        fprintf(stderr, "%s: %s\n", op, e.message);
    qsim_builder_free(b);
    return m;
}

/* Runs a model without inputs and copies the bytes of its output; returns their number. */
static size_t run(const qsim_model *m, uint8_t *out, size_t capacity) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor y = {0};
    qsim_error e = {0};
    const int code = qsim_session_create(m, NULL, &s, &e) || qsim_run_create(s, &r, &e) ||
                     qsim_run_execute(r, NULL, 0, &y, 1, &e);
    CHECK_INT(code, 0);
    const size_t bytes = code || y.bytes > capacity ? 0 : y.bytes;
    memcpy(out, bytes ? y.data : out, bytes);
    qsim_run_free(r);
    qsim_session_free(s);
    return bytes;
}

static void check(const char *op, const qsim_tensor *constants, size_t count, int32_t opset,
                  const void *wanted, size_t bytes) {
    uint8_t out[512];
    qsim_model *m = build(op, constants, count, opset);
    for (int32_t level = QSIM_LEVEL_DISABLE; m && level <= QSIM_LEVEL_ALL; level++) {
        qsim_model *optimized = NULL;
        qsim_error e = {0};
        CHECK_INT(qsim_model_optimize(m, level, &optimized, &e), QSIM_OK);
        if (e.code)
            fprintf(stderr, "%s, level %d: %s\n", op, (int)level, e.message);
        if (optimized) {
            CHECK_INT(run(optimized, out, sizeof(out)), bytes);
            CHECK(memcmp(out, wanted, bytes) == 0);
        }
        qsim_model_free(optimized);
    }
    qsim_model_free(m);
}

/* The second of two axes of 7 comes first: two elements of 4 bits in a byte. */
static void test_packed(void) {
    static const int32_t types[] = {QSIM_UINT4, QSIM_INT4, QSIM_FLOAT4E2M1};
    const int64_t dims[] = {7, 7};
    uint8_t x[25] = {0}, y[25] = {0};
    for (int i = 0; i < 49; i++) {
        const int code = i * 5 % 16, at = i % 7 * 7 + i / 7;
        x[i / 2] = (uint8_t)(x[i / 2] | code << i % 2 * 4);
        y[at / 2] = (uint8_t)(y[at / 2] | code << at % 2 * 4);
    }
    for (int i = 0; i < 3; i++)
        check("Transpose", &(qsim_tensor){types[i], 2, dims, x, 25}, 1, 25, y, 25);
}

static void test_products(void) {
    const int64_t left[] = {1, 2}, right[] = {2, 2};
    int32_t a[] = {3, -1}, b[] = {1, 2, 3, 4}, y[] = {0, 2};
    const qsim_tensor ints[] = {{QSIM_INT32, 2, left, a, 8}, {QSIM_INT32, 2, right, b, 16}};
    check("MatMul", ints, 2, 17, y, sizeof(y));
    check("Gemm", ints, 2, 17, y, sizeof(y));
    double p[] = {3, -1}, q[] = {1, 2, 3, 4}, z[] = {0, 2};
    const qsim_tensor doubles[] = {{QSIM_DOUBLE, 2, left, p, 16}, {QSIM_DOUBLE, 2, right, q, 32}};
    check("MatMul", doubles, 2, 17, z, sizeof(z));
}

/* (x - mean) * scale / sqrt(1) with epsilon 1e-5, which 0 hides. */
static void test_normalization(void) {
    const int64_t dims[] = {1, 2}, channels[] = {2};
    double x[] = {5, 7}, scale[] = {2, 3}, bias[] = {1, -1}, mean[] = {5, 7}, var[] = {1, 1};
    const qsim_tensor in[] = {{QSIM_DOUBLE, 2, dims, x, 16},
                              {QSIM_DOUBLE, 1, channels, scale, 16},
                              {QSIM_DOUBLE, 1, channels, bias, 16},
                              {QSIM_DOUBLE, 1, channels, mean, 16},
                              {QSIM_DOUBLE, 1, channels, var, 16}};
    check("BatchNormalization", in, 5, 15, bias, sizeof(bias));
}

int main(void) {
    test_packed();
    test_products();
    test_normalization();
    return test_done();
}
