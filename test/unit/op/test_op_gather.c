/* SPDX-License-Identifier: MIT */
/* Gather and GatherElements of random sizes, against copies one by one; indices outside an axis. */
#include "op_numbers.h"

/* Rows of up to 700 elements of any size along any axis: each element by its index. */
static void gather_random(uint64_t *seed) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_DOUBLE};
    const int32_t dtype = types[test_random(seed) % 4];
    const size_t bytes = (size_t)qsim_dtype_bits(dtype) / 8;
    const int64_t axis = (int64_t)(test_random(seed) % 3);
    const bool wide = test_random(seed) % 2;
    int64_t x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = 1 + (int64_t)(test_random(seed) % (i < 2 ? 4 : 700));
        y[i] = i == axis ? 1 + (int64_t)(test_random(seed) % 5) : x[i];
    }
    const size_t n = (size_t)(x[0] * x[1] * x[2]), results = (size_t)(y[0] * y[1] * y[2]);
    uint8_t *data = malloc(n * bytes);
    int64_t *at = malloc(results * sizeof(*at));
    int32_t *narrow = malloc(results * sizeof(*narrow));
    for (size_t i = 0; i < n * bytes; i++)
        data[i] = (uint8_t)test_random(seed);
    for (size_t i = 0; i < results; i++) {
        at[i] = (int64_t)(test_random(seed) % (uint64_t)(2 * x[axis])) - x[axis];
        narrow[i] = (int32_t)at[i];
    }
    op_case *c = case_new("", "GatherElements", 13);
    case_input(c, dtype, 3, x, data);
    case_input(c, wide ? QSIM_INT64 : QSIM_INT32, 3, y, wide ? (void *)at : narrow);
    case_node(c, 1);
    case_attr_int(c, "axis", axis);
    CHECK_INT(case_run(c), QSIM_OK);
    size_t wrong = 0;
    for (size_t k = 0; k < results; k++) {
        const int64_t i = (int64_t)k;
        int64_t from[3] = {i / y[2] / y[1], i / y[2] % y[1], i % y[2]};
        from[axis] = at[k] < 0 ? at[k] + x[axis] : at[k];
        const size_t source = (size_t)((from[0] * x[1] + from[1]) * x[2] + from[2]);
        wrong +=
            memcmp((const uint8_t *)case_data(c, 0) + k * bytes, data + source * bytes, bytes) != 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(data);
    free(at);
    free(narrow);
}

/* Gather of blocks of 1 to 24 bytes along any axis, by indices of any sign. */
static void gather_blocks(uint64_t *seed) {
    static const int32_t types[] = {QSIM_UINT8, QSIM_INT16, QSIM_FLOAT, QSIM_DOUBLE};
    const int32_t dtype = types[test_random(seed) % 4];
    const int64_t size = 1 + (int64_t)(test_random(seed) % 50);
    const int64_t outer = 1 + (int64_t)(test_random(seed) % 3);
    const int64_t inner = 1 + (int64_t)(test_random(seed) % 3);
    const size_t block = (size_t)inner * (size_t)qsim_dtype_bits(dtype) / 8;
    enum { MOST = 700 };
    const size_t n = 1 + test_random(seed) % MOST;
    const bool wide = test_random(seed) % 2, bad = test_random(seed) % 4 == 0;
    uint8_t *data = malloc((size_t)(outer * size) * block);
    int64_t at[MOST];
    int32_t narrow[MOST];
    size_t wrong = 0;
    for (size_t i = 0; i < (size_t)(outer * size) * block; i++)
        data[i] = (uint8_t)test_random(seed);
    for (size_t i = 0; i < n; i++)
        at[i] = (int64_t)(test_random(seed) % (uint64_t)(2 * size)) - size;
    at[n / 2] = bad ? size : at[n / 2];
    for (size_t i = 0; i < n; i++)
        narrow[i] = (int32_t)at[i];
    op_case *c = case_new("", "Gather", 13);
    case_input(c, dtype, SHAPE(outer, size, inner), data);
    case_input(c, wide ? QSIM_INT64 : QSIM_INT32, SHAPE((int64_t)n), wide ? (void *)at : narrow);
    case_node(c, 1);
    case_attr_int(c, "axis", 1);
    CHECK_INT(case_run(c), QSIM_OK);
    CHECK_INT(qs_fault_report(&c->fault, c->g, 0, "m", &c->error), bad ? QSIM_E_VALUE : QSIM_OK);
    for (size_t k = 0; k < (size_t)outer * n; k++) { /* what is outside gives 0 */
        static const uint8_t zeros[24];
        const int64_t i = at[k % n] < 0 ? at[k % n] + size : at[k % n];
        const uint8_t *from = data + (k / n * (size_t)size + (size_t)i) * block;
        wrong += memcmp((const uint8_t *)case_data(c, 0) + k * block, i < size ? from : zeros,
                        block) != 0;
    }
    CHECK_INT(wrong, 0);
    case_free(c);
    free(data);
}

/* One index of many that is just outside, or far: it is named. */
static void outside_one(bool wide, int64_t place, int64_t bad, const char *says) {
    enum { N = 600 };
    static float x[N];
    static int64_t at[N];
    static int32_t narrow[N];
    op_case *c = case_new("", "GatherElements", 13);
    for (int i = 0; i < N; i++)
        at[i] = i % 2 ? N - 1 : -N;
    at[place] = bad;
    at[N - 1] = 1000;
    for (int i = 0; i < N; i++)
        narrow[i] = (int32_t)at[i];
    case_input(c, QSIM_FLOAT, SHAPE(N), x);
    case_input(c, wide ? QSIM_INT64 : QSIM_INT32, SHAPE(N), wide ? (void *)at : narrow);
    case_node(c, 1);
    CHECK_INT(case_run(c), QSIM_OK);
    CHECK_INT(qs_fault_report(&c->fault, c->g, 0, "m", &c->error), QSIM_E_VALUE);
    CHECK(strstr(c->error.message, says) != NULL);
    case_free(c);
}

int main(void) {
    uint64_t seed = 5;
    for (int i = 0; i < 300; i++)
        gather_random(&seed);
    for (int i = 0; i < 300; i++)
        gather_blocks(&seed);
    for (int wide = 0; wide < 2; wide++) {
        outside_one(wide, 0, 600, "index 600 is");
        outside_one(wide, 300, -601, "index -601 is");
        outside_one(wide, 599, 1000, "index 1000 is");
        outside_one(wide, 555, INT32_MIN, "index -2147483648 is");
    }
    outside_one(true, 256, INT64_MAX, "index 9223372036854775807 is");
    outside_one(true, 255, INT64_MIN, "index -9223372036854775808 is");
    return test_done();
}
