/* SPDX-License-Identifier: MIT */
/* MatMulNBits and SkipLayerNormalization against their definitions in double. */
#include "op_harness.h"

#include <math.h>

#define M      3
#define N      5
#define K      40 /* two and a half blocks of 16 */
#define BLOCKS 3

typedef struct weights {
    uint8_t bits[N * BLOCKS * 16], zeros[N * BLOCKS];
    float scales[N * BLOCKS], real[N * BLOCKS], bias[N], a[M * K];
    int32_t groups[K];
} weights;

typedef struct setting {
    int64_t bits, level;
    bool zeros, real, groups, bias;
} setting;

static int code(const uint8_t *data, int64_t bits, int64_t i) {
    const int64_t each = 8 / bits;
    return data[i / each] >> (i % each * bits) & ((1 << bits) - 1);
}

/* w(n, k) without its scale, and the block it is in. */
static double less_zero(const setting *s, const weights *w, int64_t n, int64_t k, int64_t *block) {
    const int64_t row = BLOCKS * 16 * s->bits / 8, zero_row = (BLOCKS * s->bits + 7) / 8;
    *block = s->groups ? w->groups[k] : k / 16;
    double zero = 1 << (s->bits - 1);
    if (s->real)
        zero = (double)w->real[n * BLOCKS + *block];
    else if (s->zeros)
        zero = code(w->zeros + n * zero_row, s->bits, *block);
    return code(w->bits + n * row, s->bits, k) - zero;
}

/* Element (m, k), with level 4 rounded to 127 steps of its block's greatest magnitude. */
static double activation(const setting *s, const weights *w, int64_t m, int64_t k) {
    const float *a = w->a + m * K;
    float most = 0;
    if (s->level < 4 || s->real || s->groups)
        return (double)a[k];
    for (int64_t i = k / 16 * 16; i < K && i < k / 16 * 16 + 16; i++)
        most = fmaxf(most, fabsf(a[i]));
    return most > 0 ? nearbyint((double)(a[k] * (127.0f / most))) * (double)most / 127 : 0;
}

static op_case *build(const setting *s, const weights *w) {
    op_case *c = case_new("com.microsoft", "MatMulNBits", 1);
    case_input(c, QSIM_FLOAT, SHAPE(1, M, K), w->a);
    case_const(c, QSIM_UINT8, SHAPE(N, BLOCKS, 16 * s->bits / 8), w->bits);
    case_const(c, QSIM_FLOAT, SHAPE(N, BLOCKS), w->scales);
    if (s->real)
        case_const(c, QSIM_FLOAT, SHAPE(N, BLOCKS), w->real);
    else if (s->zeros)
        case_const(c, QSIM_UINT8, SHAPE(N * ((BLOCKS * s->bits + 7) / 8)), w->zeros);
    else
        case_absent(c);
    if (s->groups)
        case_const(c, QSIM_INT32, SHAPE(K), w->groups);
    else
        case_absent(c);
    if (s->bias)
        case_const(c, QSIM_FLOAT, SHAPE(N), w->bias);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "K", K);
    qs_node_set_int(c->g, c->node, "N", N);
    qs_node_set_int(c->g, c->node, "bits", s->bits);
    qs_node_set_int(c->g, c->node, "block_size", 16);
    qs_node_set_int(c->g, c->node, "accuracy_level", s->level);
    return c;
}

static void one(const setting *s, const weights *w) {
    op_case *c = build(s, w);
    CHECK_INT(case_run(c), 0);
    for (int64_t i = 0; i < M * N; i++) {
        double y = s->bias ? (double)w->bias[i % N] : 0;
        for (int64_t k = 0; k < K; k++) {
            int64_t block;
            const double v = less_zero(s, w, i % N, k, &block);
            y += activation(s, w, i / N, k) * v * (double)w->scales[i % N * BLOCKS + block];
        }
        CHECK_NEAR(((const float *)case_data(c, 0))[i], y, 1e-4 + 1e-5 * fabs(y));
    }
    case_free(c);
}

static float between(uint64_t *seed, float lo, float hi) {
    return lo + (hi - lo) * (float)(test_random(seed) % 1000) / 1000.0f;
}

static void fill(weights *w) {
    uint64_t seed = 9;
    for (size_t i = 0; i < sizeof(w->bits); i++)
        w->bits[i] = (uint8_t)test_random(&seed);
    for (size_t i = 0; i < N * BLOCKS; i++) {
        w->zeros[i] = (uint8_t)test_random(&seed);
        w->scales[i] = between(&seed, -0.1f, 0.1f);
        w->real[i] = between(&seed, 0, 15);
    }
    for (size_t i = 0; i < M * K; i++)
        w->a[i] = i < 16 ? 0 : between(&seed, -2, 2); /* one block of zeros */
    for (size_t i = 0; i < N; i++)
        w->bias[i] = between(&seed, -1, 1);
    for (size_t i = 0; i < K; i++)
        w->groups[i] = (int32_t)(test_random(&seed) % BLOCKS);
}

static void test_products(const weights *w) {
    for (int i = 0; i < 96; i++) {
        const setting s = {2 << (i % 3), i / 3 % 2 * 4, i / 6 % 2, i / 12 % 2, i / 24 % 2, i / 48};
        one(&s, w);
    }
}

/* ---- many blocks, which are multiplied in parts ---- */

#define LONG        (2 * 8192 + 40)
#define LONG_BLOCKS 1027
#define LONG_ROWS   20
#define LONG_N      2

/* Codes of one more or less than the zero point or equal to it, activations of up to 127, which
 * each block has: all sums are exact. */
static void test_long(int64_t bits, int64_t level) {
    static float a[LONG_ROWS * LONG], scales[LONG_N * LONG_BLOCKS];
    static uint8_t codes[LONG_N * LONG_BLOCKS * 16];
    const int64_t row = LONG_BLOCKS * 16 * bits / 8;
    for (int64_t i = 0; i < LONG_ROWS * LONG; i++)
        a[i] = i % LONG % 16 == 3 ? 127.0f : (float)(i * 7 % 255 - 127);
    for (int64_t i = 0; i < LONG_N * LONG_BLOCKS; i++)
        scales[i] = 0.5f;
    memset(codes, 0, sizeof(codes));
    for (int64_t i = 0; i < LONG_N * LONG_BLOCKS * 16; i++)
        codes[i * bits / 8] |= (uint8_t)(((1 << (bits - 1)) + i % 3 - 1) << (i * bits % 8));
    op_case *c = case_new("com.microsoft", "MatMulNBits", 1);
    case_input(c, QSIM_FLOAT, SHAPE(LONG_ROWS, LONG), a);
    case_const(c, QSIM_UINT8, SHAPE(LONG_N, LONG_BLOCKS, 16 * bits / 8), codes);
    case_const(c, QSIM_FLOAT, SHAPE(LONG_N, LONG_BLOCKS), scales);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "K", LONG);
    qs_node_set_int(c->g, c->node, "N", LONG_N);
    qs_node_set_int(c->g, c->node, "bits", bits);
    qs_node_set_int(c->g, c->node, "block_size", 16);
    qs_node_set_int(c->g, c->node, "accuracy_level", level);
    CHECK_INT(case_run(c), 0);
    for (int64_t i = 0; i < LONG_ROWS * LONG_N; i++) {
        double y = 0;
        for (int64_t k = 0; k < LONG; k++)
            y += 0.5 * (double)a[i / LONG_N * LONG + k] *
                 (code(codes + i % LONG_N * row, bits, k) - (1 << (bits - 1)));
        CHECK_NEAR(((const float *)case_data(c, 0))[i], y, 0);
    }
    case_free(c);
}

static void test_refused(const weights *w) {
    static const struct {
        const char *name;
        int64_t value;
    } bad[] = {{"bits", 3}, {"block_size", 24}, {"block_size", 8}, {"K", 41},
               {"K", 49},   {"N", 6},           {"N", 0},          {"accuracy_level", 5}};
    const setting s = {4, 0, true, false, false, true};
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        op_case *c = build(&s, w);
        CHECK_INT(case_infer(c), 0);
        qs_node_set_int(c->g, c->node, bad[i].name, bad[i].value);
        CHECK(case_infer(c) != 0);
        case_free(c);
    }
    weights *outside = malloc(sizeof(*outside));
    *outside = *w;
    outside->groups[7] = BLOCKS;
    op_case *c = build(&(setting){4, 0, false, false, true, false}, outside);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
    free(outside);
}

/* ---- SkipLayerNormalization ---- */

static void skip_one(bool centred, bool bias, const int64_t *skip_dims, int32_t skip_rank) {
    static const float x[12] = {1, 2, 3, -4, 5, 6, 0, 1, 0, 2, 2, 9};
    static const float skip[12] = {1, 1, 2, 0, -1, 3, 4, 4, 1, 0, 2, 5};
    static const float gamma[3] = {1, 2, -1}, beta[3] = {0.5f, 0, 1}, more[3] = {1, -2, 3};
    op_case *c =
        case_new("com.microsoft",
                 centred ? "SkipLayerNormalization" : "SkipSimplifiedLayerNormalization", 1);
    const int64_t elements = skip_rank == 2 || skip_dims[0] == 1 ? 6 : 12;
    case_input(c, QSIM_FLOAT, SHAPE(2, 2, 3), x);
    case_input(c, QSIM_FLOAT, skip_rank, skip_dims, skip);
    case_input(c, QSIM_FLOAT, SHAPE(3), gamma);
    if (centred)
        case_input(c, QSIM_FLOAT, SHAPE(3), beta);
    if (bias)
        case_input(c, QSIM_FLOAT, SHAPE(3), more);
    case_node(c, 4);
    qs_node_set_float(c->g, c->node, "epsilon", 0.25f);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0), *sums = case_data(c, 3);
    for (int r = 0; r < 4; r++) {
        double sum[3], mean = 0, square = 0;
        for (int i = 0; i < 3; i++) {
            sum[i] = (double)x[3 * r + i] + (double)skip[(3 * r + i) % elements];
            sum[i] += bias ? (double)more[i] : 0;
            mean += centred ? sum[i] / 3 : 0;
            CHECK_NEAR(sums[3 * r + i], sum[i], 0);
        }
        for (int i = 0; i < 3; i++)
            square += (sum[i] - mean) * (sum[i] - mean) / 3;
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(y[3 * r + i],
                       (sum[i] - mean) / sqrt(square + 0.25) * (double)gamma[i] +
                           (centred ? (double)beta[i] : 0),
                       1e-5);
    }
    case_free(c);
}

static void test_skip_sums(void) {
    for (int i = 0; i < 4; i++) {
        skip_one(i % 2, i / 2, DIMS(2, 2, 3), 3);
        skip_one(i % 2, i / 2, DIMS(1, 2, 3), 3);
        skip_one(i % 2, i / 2, DIMS(2, 3), 2);
    }
}

int main(void) {
    static weights w;
    fill(&w);
    test_products(&w);
    for (int i = 0; i < 4; i++)
        test_long(4 << (i % 2), i / 2 * 4);
    test_refused(&w);
    test_skip_sums();
    return test_done();
}
