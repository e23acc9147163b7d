/* SPDX-License-Identifier: MIT */
/* Einsum against explicit loops over its letters. */
#include "op_harness.h"

static float a[200], b[200];

static op_case *einsum(const char *equation, int32_t rank_a, const int64_t *dims_a, int32_t rank_b,
                       const int64_t *dims_b) {
    op_case *c = case_new("", "Einsum", 12);
    case_input(c, QSIM_FLOAT, rank_a, dims_a, a);
    if (dims_b)
        case_input(c, QSIM_FLOAT, rank_b, dims_b, b);
    case_node(c, 1);
    case_string(c, "equation", equation);
    return c;
}

static void test_products(void) {
    op_case *c = einsum(" bij, bjk -> bik", SHAPE(2, 3, 4), SHAPE(2, 4, 5));
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3,5]");
    for (int i = 0; i < 30; i++) {
        double sum = 0;
        for (int j = 0; j < 4; j++)
            sum += (double)a[(i / 15 * 3 + i / 5 % 3) * 4 + j] *
                   (double)b[(i / 15 * 4 + j) * 5 + i % 5];
        CHECK_NEAR(((const float *)case_data(c, 0))[i], sum, 1e-5);
    }
    case_free(c);

    c = einsum("i,j", SHAPE(3), SHAPE(4)); /* implicit: ij */
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,4]");
    for (int i = 0; i < 12; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], a[i / 4] * b[i % 4], 1e-6);
    case_free(c);

    c = einsum("ba", SHAPE(2, 3), 0, NULL); /* implicit: a transpose */
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[3,2]");
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], a[i % 2 * 3 + i / 2], 0);
    case_free(c);

    c = einsum("aB->", SHAPE(3, 4), 0, NULL);
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[]");
    double all = 0;
    for (int i = 0; i < 12; i++)
        all += (double)a[i];
    CHECK_NEAR(((const float *)case_data(c, 0))[0], all, 1e-5);
    case_free(c);
}

static void test_dots(void) {
    op_case *c = einsum("...ij,...jk", SHAPE(2, 1, 2, 3), SHAPE(5, 3, 2));
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,5,2,2]");
    for (int i = 0; i < 40; i++) {
        double sum = 0;
        for (int j = 0; j < 3; j++)
            sum += (double)a[i / 20 * 6 + i / 2 % 2 * 3 + j] *
                   (double)b[(i / 4 % 5 * 3 + j) * 2 + i % 2];
        CHECK_NEAR(((const float *)case_data(c, 0))[i], sum, 1e-5);
    }
    case_free(c);

    c = einsum("...ii->...i", SHAPE(2, 3, 3), 0, NULL); /* diagonals */
    CHECK_INT(case_run(c), 0);
    CHECK_STR(case_shape(c, 0), "float[2,3]");
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], a[i / 3 * 9 + i % 3 * 4], 0);
    case_free(c);

    c = einsum(",...->...", 0, NULL, SHAPE(2, 2)); /* a scalar */
    CHECK_INT(case_run(c), 0);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], a[0] * b[i], 1e-6);
    case_free(c);
}

static void test_integers(void) {
    const int8_t x[4] = {100, -100, 7, 3}, y[4] = {2, 3, -1, 5};
    op_case *c = case_new("", "Einsum", 12);
    case_input(c, QSIM_INT8, SHAPE(2, 2), x);
    case_input(c, QSIM_INT8, SHAPE(2, 2), y);
    case_node(c, 1);
    case_string(c, "equation", "ij,ij->i");
    CHECK_INT(case_run(c), 0);
    CHECK_INT(((const int8_t *)case_data(c, 0))[0], -100);
    CHECK_INT(((const int8_t *)case_data(c, 0))[1], 8);
    case_free(c);
}

static void test_refused(void) {
    static const char *const bad[] = {"ij",       "ijk,jk",   "ij,jk,k", "ij,jk->iz", "ij,jk->ii",
                                      "ij,jk-ik", "ij,jk->,", "i?,jk",   "ij,ij->i",  "ij,jk.."};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        op_case *c = einsum(bad[i], SHAPE(2, 3), SHAPE(3, 4));
        CHECK(case_infer(c) != 0);
        CHECK(strstr(c->error.message, "Einsum") != NULL);
        case_free(c);
    }
}

/* Products of matrices that are no floats, in order: int32 and int64 wrap. */
static void product_of(int32_t type, int64_t m, int64_t k, int64_t n) {
    const size_t bytes = type == QSIM_INT32 ? 4 : 8;
    char *left = malloc((size_t)(2 * m * k) * bytes), *right = malloc((size_t)(2 * k * n) * bytes);
    uint64_t seed = (uint64_t)(m + k + n);
    size_t wrong = 0;
    CHECK(left && right);
    for (int64_t i = 0; i < 2 * m * k + 2 * k * n; i++) {
        const uint64_t r = test_random(&seed);
        const double v = (double)(int64_t)r / 3e15;
        char *to =
            i < 2 * m * k ? left + (size_t)i * bytes : right + (size_t)(i - 2 * m * k) * bytes;
        memcpy(to, type == QSIM_DOUBLE ? (const void *)&v : &r, bytes);
    }
    op_case *c = case_new("", "Einsum", 12);
    case_input(c, type, SHAPE(2, m, k), left);
    case_input(c, type, SHAPE(2, k, n), right);
    case_node(c, 1);
    case_string(c, "equation", "bmk,bkn->bmn");
    CHECK_INT(case_run(c), 0);
    const char *y = case_data(c, 0);
    for (int64_t i = 0; i < 2 * m * n; i++) {
        double sum = 0;
        uint64_t whole = 0;
        for (int64_t t = 0; t < k; t++) {
            const int64_t at = i / n * k + t, bt = (i / (m * n) * k + t) * n + i % n;
            if (type == QSIM_DOUBLE)
                sum += ((const double *)(void *)left)[at] * ((const double *)(void *)right)[bt];
            else if (type == QSIM_INT64)
                whole +=
                    ((const uint64_t *)(void *)left)[at] * ((const uint64_t *)(void *)right)[bt];
            else
                whole += (uint64_t)((const uint32_t *)(void *)left)[at] *
                         ((const uint32_t *)(void *)right)[bt];
        }
        const void *want = type == QSIM_DOUBLE ? (const void *)&sum : &whole;
        wrong += memcmp(y + (size_t)i * bytes, want, bytes) != 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(left);
    free(right);
}

static void test_products_of_other_types(void) {
    static const int32_t types[] = {QSIM_INT32, QSIM_INT64, QSIM_DOUBLE};
    for (size_t t = 0; t < QS_COUNT(types); t++) {
        for (int64_t k = 1; k < 12; k += 3)
            for (int64_t n = 1; n < 140; n = 2 * n + 5)
                product_of(types[t], 3, k, n);
        product_of(types[t], 1, 65539, 1); /* more than a piece */
        product_of(types[t], 1, 65539, 3);
    }
}

int main(void) {
    test_products_of_other_types();
    for (int i = 0; i < 200; i++) {
        a[i] = (float)(i * 7 % 23) / 4 - 2;
        b[i] = (float)(i * 5 % 17) / 8 - 1;
    }
    test_products();
    test_dots();
    test_integers();
    test_refused();
    return test_done();
}
