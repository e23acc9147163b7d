/* SPDX-License-Identifier: MIT */
/* Metrics over pairs of tensors, and McNemar's test. */
#include <math.h>

#include "test.h"

#include <qsim/ptq.h>

static void test_pair(void) {
    const int64_t dims[2] = {2, 3};
    float x[6] = {1, 2, 3, -4, 0, 2}, y[6] = {1, 2.5f, 3, -4, 2, 1};
    qsim_tensor a = {QSIM_FLOAT, 2, dims, x, sizeof(x)}, b = {QSIM_FLOAT, 2, dims, y, sizeof(y)};
    qsim_metrics m = {.struct_size = sizeof(m)};
    CHECK_INT(qsim_metrics_add(&m, &a, &b, 0.1, 0.5), QSIM_OK);
    CHECK_INT(m.count, 6);
    CHECK_INT(m.rows, 2);
    CHECK_INT(m.agree, 1); /* row 2: place 2 against place 1 */
    CHECK_INT(m.outside, 2);
    CHECK_NEAR(m.max_abs, 2, 0);
    CHECK(m.worst == 4 && m.worst_a == 0 && m.worst_b == 2);
    CHECK(isinf(m.max_rel)); /* 0 against 2 */
    CHECK_NEAR(m.signal, 1 + 4 + 9 + 16 + 4, 1e-12);
    CHECK_NEAR(m.noise, 0.25 + 4 + 1, 1e-12);
    CHECK_NEAR(qsim_metrics_sqnr(&m), 10 * log10(34 / 5.25), 1e-12);
    CHECK_NEAR(qsim_metrics_cosine(&m),
               (1 + 5 + 9 + 16 + 0 + 2) / sqrt(34.0 * (1 + 6.25 + 9 + 16 + 4 + 1)), 1e-12);
    qsim_metrics same = {.struct_size = sizeof(same)};
    CHECK_INT(qsim_metrics_add(&same, &a, &a, 0, 0), QSIM_OK);
    CHECK(isinf(qsim_metrics_sqnr(&same)) && same.outside == 0 && same.agree == 2);
    CHECK_NEAR(qsim_metrics_cosine(&same), 1, 1e-15);
}

static void test_types(void) {
    const int64_t dims[1] = {4}, shorter[1] = {3};
    uint8_t u[4] = {0, 5, 255, 7};
    int64_t w[4] = {0, 5, 250, 7};
    float f[4] = {0, NAN, INFINITY, 1};
    qsim_tensor a = {QSIM_UINT8, 1, dims, u, 4}, b = {QSIM_INT64, 1, dims, w, 32};
    qsim_tensor c = {QSIM_FLOAT, 1, dims, f, 16}, d = {QSIM_UINT8, 1, shorter, u, 4};
    qsim_metrics m = {.struct_size = sizeof(m)};
    CHECK_INT(qsim_metrics_add(&m, &a, &b, 0, 4.9), QSIM_OK);
    CHECK(m.outside == 1 && m.max_abs == 5 && m.agree == 1);
    CHECK_INT(qsim_metrics_add(&m, &a, &d, 0, 0), QSIM_E_SHAPE);
    b.bytes = 31;
    CHECK_INT(qsim_metrics_add(&m, &a, &b, 0, 0), QSIM_E_ARGUMENT);
    a.dtype = QSIM_FLOAT8E4M3FN;
    CHECK_INT(qsim_metrics_add(&m, &a, &b, 0, 0), QSIM_E_DTYPE);
    /* 1, -2, 0.5, 65504 beside 1, -2.5, 0.5, 65504; the same in bfloat16 except 3 * 2^14. */
    uint16_t h[2][4] = {{0x3c00, 0xc000, 0x3800, 0x7bff}, {0x3f80, 0xc000, 0x3f00, 0x4740}};
    float g[2][4] = {{1, -2.5f, 0.5f, 65504}, {1, -2.5f, 0.5f, 49152}};
    for (int i = 0; i < 2; i++) {
        qsim_metrics k = {.struct_size = sizeof(k)};
        const qsim_tensor narrow = {i ? QSIM_BFLOAT16 : QSIM_FLOAT16, 1, dims, h[i], 8};
        const qsim_tensor wide = {QSIM_FLOAT, 1, dims, g[i], 16};
        CHECK_INT(qsim_metrics_add(&k, &narrow, &wide, 0, 0), QSIM_OK);
        CHECK(k.outside == 1 && k.max_abs == 0.5 && k.worst == 1 && k.worst_a == -2);
    }
    /* A NaN on one side only is a difference; a NaN on both sides is none. */
    qsim_metrics n = {.struct_size = sizeof(n)};
    CHECK_INT(qsim_metrics_add(&n, &c, &c, 0, 0), QSIM_OK);
    CHECK(n.outside == 0 && n.max_abs == 0);
    a.dtype = QSIM_UINT8;
    CHECK_INT(qsim_metrics_add(&n, &a, &c, 1, 1000), QSIM_OK);
    CHECK(n.outside == 2 && !(n.max_abs <= 1000));
}

/* NaN is counted on one side and on both; on one side it makes the distances NaN, too. */
static void test_nan(void) {
    const int64_t dims[2] = {2, 2};
    float x[4] = {NAN, NAN, 1, 2}, y[4] = {NAN, NAN, 1, NAN}, nothing[4] = {NAN, NAN, NAN, NAN};
    qsim_tensor a = {QSIM_FLOAT, 2, dims, x, 16}, b = {QSIM_FLOAT, 2, dims, y, 16};
    qsim_tensor c = {QSIM_FLOAT, 2, dims, nothing, 16};
    qsim_metrics m = {.struct_size = sizeof(m)}, all = {.struct_size = sizeof(all)};
    CHECK_INT(qsim_metrics_add(&m, &a, &a, 0, 0), QSIM_OK);
    CHECK(m.nan_both == 2 && m.nan_one == 0 && m.outside == 0 && m.rows == 2 && m.agree == 1);
    CHECK(isinf(qsim_metrics_sqnr(&m)));
    CHECK_INT(qsim_metrics_add(&m, &a, &b, 0, 0), QSIM_OK);
    CHECK(m.nan_both == 4 && m.nan_one == 1 && m.outside == 1 && m.worst == 7 && m.worst_a == 2);
    CHECK(isnan(m.worst_b) && isnan(m.max_abs) && isnan(qsim_metrics_sqnr(&m)));
    CHECK_INT(qsim_metrics_add(&all, &c, &c, 0, 0), QSIM_OK);
    CHECK(all.nan_both == 4 && all.agree == 0 && isnan(qsim_metrics_sqnr(&all)) &&
          isnan(qsim_metrics_cosine(&all)));
    /* Callers of the first version: no byte behind their struct is written. */
    qsim_metrics old = {.struct_size = 88, .nan_both = 77, .worst = 77};
    CHECK_INT(qsim_metrics_add(&old, &a, &b, 0, 0), QSIM_OK);
    CHECK(old.outside == 1 && old.nan_both == 77 && old.nan_one == 0 && old.worst == 77);
    old.struct_size = 80;
    CHECK_INT(qsim_metrics_add(&old, &a, &b, 0, 0), QSIM_E_ARGUMENT);
}

static void test_mcnemar(void) {
    CHECK_NEAR(qsim_mcnemar(0, 0), 1, 0);
    CHECK_NEAR(qsim_mcnemar(5, 5), 1, 0);
    CHECK_NEAR(qsim_mcnemar(0, 6), 2.0 / 64, 1e-15);
    CHECK_NEAR(qsim_mcnemar(2, 8), 2 * (1 + 10 + 45) / 1024.0, 1e-15);
    CHECK_NEAR(qsim_mcnemar(8, 2), 2 * (1 + 10 + 45) / 1024.0, 1e-15);
    /* The same sum by lgamma. */
    double sum = 0;
    for (int i = 0; i <= 1900; i++)
        sum += exp(lgamma(4001) - lgamma(i + 1) - lgamma(4001 - i) - 4000 * log(2));
    CHECK_NEAR(qsim_mcnemar(1900, 2100) / (2 * sum), 1, 1e-9);
    /* At the border to the normal limit the value does not jump. */
    double below = qsim_mcnemar(4998000, 5002000), above = qsim_mcnemar(4998001, 5002001);
    CHECK_NEAR(below / above, 1, 1e-4);
    CHECK(qsim_mcnemar(UINT64_MAX, UINT64_MAX) == 1);
    CHECK(qsim_mcnemar(0, UINT64_MAX) == 0);
    CHECK(qsim_mcnemar(0, 5000) == 0 || qsim_mcnemar(0, 5000) < 1e-300);
}

int main(void) {
    test_pair();
    test_types();
    test_nan();
    test_mcnemar();
    return test_done();
}
