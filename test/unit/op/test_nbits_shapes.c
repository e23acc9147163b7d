/* SPDX-License-Identifier: MIT */
/*
 * MatMulNBits of random sizes in every table of kernels, with one thread and three, against a plain
 * loop in the definition's order of sums: the same bits.
 */
#include "op_random.h"

#include <math.h>

typedef struct shape {
    int64_t m, k, n, block, blocks, bits, level;
    bool zeros, real, groups, bias;
} shape;

typedef struct weights {
    float *a, *scales, *real, *bias;
    uint8_t *codes, *zeros;
    int32_t *groups;
} weights;

static uint8_t *random_bytes(int64_t n) {
    uint8_t *p = or_memory((size_t)n);
    for (int64_t i = 0; i < n; i++)
        p[i] = (uint8_t)test_random(&or_seed);
    return p;
}

static int code_at(const uint8_t *data, int64_t bits, int64_t i) {
    const int64_t each = 8 / bits;
    return data[i / each] >> (i % each * bits) & ((1 << bits) - 1);
}

static float zero_of(const shape *s, const weights *w, int64_t n, int64_t block) {
    const int64_t bytes = (s->blocks * s->bits + 7) / 8;
    return s->real    ? w->real[n * s->blocks + block]
           : s->zeros ? (float)code_at(w->zeros + n * bytes, s->bits, block)
                      : (float)(1 << (s->bits - 1));
}

static float code_of(const shape *s, const weights *w, int64_t n, int64_t k) {
    return (float)code_at(w->codes + n * s->blocks * s->block * s->bits / 8, s->bits, k);
}

/* Products of floats, added in the order of k. */
static float by_floats(const shape *s, const weights *w, int64_t m, int64_t n) {
    float sum = 0;
    for (int64_t k = 0; k < s->k; k++) {
        const int64_t block = s->groups ? w->groups[k] : k / s->block;
        const float code = code_of(s, w, n, k) - zero_of(s, w, n, block);
        sum = fmaf(w->a[m * s->k + k], code * w->scales[n * s->blocks + block], sum);
    }
    return sum;
}

/* Level 4: a's blocks in 127 steps of their greatest magnitude, exact sums in blocks. */
static float by_blocks(const shape *s, const weights *w, int64_t m, int64_t n) {
    float sum = 0;
    for (int64_t b = 0; b < s->blocks; b++) {
        const float *a = w->a + m * s->k + b * s->block;
        const int64_t rest = s->k - b * s->block, count = rest < s->block ? rest : s->block;
        float most = 0, terms = 0;
        for (int64_t i = 0; i < count; i++)
            most = fmaxf(most, fabsf(a[i]));
        for (int64_t i = 0; i < count && most > 0; i++)
            terms += rintf(a[i] * (127.0f / most)) *
                     (code_of(s, w, n, b * s->block + i) - zero_of(s, w, n, b));
        const float scale = most / 127.0f * w->scales[n * s->blocks + b], product = terms * scale;
        sum += product;
    }
    return sum;
}

static weights make_weights(const shape *s) {
    weights w = {.a = random_floats((size_t)(s->m * s->k), 2),
                 .scales = random_floats((size_t)(s->n * s->blocks), 0.1),
                 .real = random_floats((size_t)(s->n * s->blocks), 9),
                 .bias = random_floats((size_t)s->n, 2),
                 .codes = random_bytes(s->n * s->blocks * s->block * s->bits / 8),
                 .zeros = random_bytes(s->n * ((s->blocks * s->bits + 7) / 8)),
                 .groups = or_memory((size_t)s->k * sizeof(int32_t))};
    for (int64_t i = 0; i < s->k; i++)
        w.groups[i] = (int32_t)between(0, s->blocks - 1);
    for (int64_t i = 0; i < s->block && i < s->k && between(0, 9) == 0; i++)
        w.a[i] = 0;
    return w;
}

static void free_weights(weights *w) {
    free(w->a);
    free(w->scales);
    free(w->real);
    free(w->bias);
    free(w->codes);
    free(w->zeros);
    free(w->groups);
}

static or_case case_of(const shape *s, const weights *w) {
    or_case c = {.domain = "com.microsoft", .op = "MatMulNBits", .version = 1, .outputs = 1};
    const int64_t bytes = s->block * s->bits / 8, zero_bytes = (s->blocks * s->bits + 7) / 8;
    c.inputs = s->bias ? 6 : s->groups ? 5 : s->zeros || s->real ? 4 : 3;
    c.in[0] = (or_tensor){QSIM_FLOAT, 2, {s->m, s->k}, w->a, false};
    c.in[1] = (or_tensor){QSIM_UINT8, 3, {s->n, s->blocks, bytes}, w->codes, true};
    c.in[2] = (or_tensor){QSIM_FLOAT, 2, {s->n, s->blocks}, w->scales, true};
    if (s->real)
        c.in[3] = (or_tensor){QSIM_FLOAT, 2, {s->n, s->blocks}, w->real, true};
    else if (s->zeros)
        c.in[3] = (or_tensor){QSIM_UINT8, 1, {s->n * zero_bytes}, w->zeros, true};
    c.in[4] = (or_tensor){QSIM_INT32, 1, {s->k}, s->groups ? w->groups : NULL, true};
    c.in[5] = (or_tensor){QSIM_FLOAT, 1, {s->n}, w->bias, true};
    c.attrs[0] = or_int("K", s->k);
    c.attrs[1] = or_int("N", s->n);
    c.attrs[2] = or_int("bits", s->bits);
    c.attrs[3] = or_int("block_size", s->block);
    c.attrs[4] = or_int("accuracy_level", s->level);
    c.attr_count = 5;
    return c;
}

static void check_shape(qsim_ctx **ctx, int contexts, const shape *s) {
    weights w = make_weights(s);
    const bool floats = s->level < 4 || s->real || s->groups;
    float *expected = or_memory((size_t)(s->m * s->n) * sizeof(float));
    for (int64_t i = 0; i < s->m * s->n; i++) {
        const float sum = (floats ? by_floats : by_blocks)(s, &w, i / s->n, i % s->n);
        expected[i] = s->bias ? sum + w.bias[i % s->n] : sum;
    }
    const or_case c = case_of(s, &w);
    for (int i = 0; i < contexts; i++) {
        or_result r = or_run(ctx[i], &c, false);
        const bool same =
            !r.code && memcmp(expected, r.out[0].data, (size_t)(s->m * s->n) * sizeof(float)) == 0;
        CHECK_STR(r.error.message, "");
        CHECK(same);
        if (!same)
            fprintf(stderr, "isa %d: m%d k%d n%d block%d bits%d level%d zeros%d,%d groups%d\n",
                    qsim_ctx_isa(ctx[i]), (int)s->m, (int)s->k, (int)s->n, (int)s->block,
                    (int)s->bits, (int)s->level, s->zeros, s->real, s->groups);
        or_free(&r);
    }
    free(expected);
    free_weights(&w);
}

/* Pairs of groups of columns, whole and not; one row and many; whole blocks and not. */
static void random_shapes(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 150; i++) {
        shape s = {.m = between(0, 2) ? between(1, 20) : 1, .bits = 2 << between(0, 2)};
        s.n = between(1, between(0, 1) ? 150 : 40);
        s.block = 16 << between(0, between(0, 3) ? 2 : 4);
        s.k = between(1, between(0, 1) ? 300 : 3 * s.block);
        if (i % 25 == 0) { /* more terms than are computed at once */
            s.k = between(8100, 16500);
            s.n = between(1, 40);
            s.m = between(1, 3);
        }
        s.blocks = (s.k + s.block - 1) / s.block;
        s.level = between(0, 1) ? 4 : between(0, 3);
        s.zeros = between(0, 1);
        s.real = between(0, 5) == 0;
        s.groups = between(0, 5) == 0;
        s.bias = between(0, 1);
        check_shape(ctx, contexts, &s);
    }
}

int main(void) {
    or_seed = 20261130;
    qsim_ctx *ctx[4 * QS_ISA_COUNT];
    int contexts = or_contexts(ctx, 1);
    contexts += or_contexts(ctx + contexts, 3);
    random_shapes(ctx, contexts);
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
