/* SPDX-License-Identifier: MIT */
/*
 * 4-bit weights with a DequantizeLinear before a float product: the session's product has 4-bit
 * weights, and the bits of the product with the dequantized weights. MatMulBnb4.
 */
#include "net.h"

#include <math.h>

#define MOST 6000

typedef struct form {
    bool gemm, transposed, sign, zeros, bias;
    int64_t k, n, block; /* block 0: one scale a column; -1: one for all */
} form;

typedef struct data {
    uint8_t codes[MOST], zeros[MOST]; /* 0 to 15 */
    uint8_t packed[MOST], packed_zeros[MOST];
    float scales[MOST], floats[MOST], bias[MOST], x[MOST];
    int64_t scale_dims[2];
    int32_t scale_rank;
    size_t scale_count;
} data;

/* Where the scale of weight (k, n) is. */
static size_t scale_of(const form *f, int64_t k, int64_t n) {
    if (f->block < 0)
        return 0;
    if (f->block == 0)
        return (size_t)n;
    const int64_t blocks = (f->k + f->block - 1) / f->block;
    return (size_t)(f->transposed ? n * blocks + k / f->block : k / f->block * f->n + n);
}

static void halves(const uint8_t *codes, size_t count, uint8_t *to) {
    memset(to, 0, count / 2 + 1);
    for (size_t i = 0; i < count; i++)
        to[i / 2] |= (uint8_t)(codes[i] << (i % 2 ? 4 : 0));
}

static int32_t value_of(const form *f, uint8_t code) {
    return f->sign && code > 7 ? code - 16 : code;
}

static void fill(const form *f, data *d) {
    uint64_t seed = 3;
    const int64_t blocks = f->block > 0 ? (f->k + f->block - 1) / f->block : 1;
    d->scale_rank = f->block < 0 ? 0 : f->block == 0 ? 1 : 2;
    d->scale_dims[0] = f->block == 0 || f->transposed ? f->n : blocks;
    d->scale_dims[1] = f->transposed ? blocks : f->n;
    d->scale_count = (size_t)(f->block < 0 ? 1 : f->n * blocks);
    for (size_t i = 0; i < MOST; i++) {
        d->codes[i] = test_random(&seed) % 16;
        d->zeros[i] = test_random(&seed) % 16;
        d->scales[i] = (float)(test_random(&seed) % 1000 + 1) / 3000.0f;
        d->bias[i] = (float)(test_random(&seed) % 1000) / 77.0f;
        d->x[i] = (float)(test_random(&seed) % 2001) / 333.0f - 3;
    }
    halves(d->codes, (size_t)(f->k * f->n), d->packed);
    halves(d->zeros, d->scale_count, d->packed_zeros);
    for (int64_t i = 0; i < f->k * f->n; i++) {
        const size_t s =
            f->transposed ? scale_of(f, i % f->k, i / f->k) : scale_of(f, i / f->n, i % f->n);
        const int32_t zero = f->zeros ? value_of(f, d->zeros[s]) : 0;
        d->floats[i] = (float)(value_of(f, d->codes[i]) - zero) * d->scales[s];
    }
}

static void product(net *n, qsim_ctx *ctx, const form *f, const data *d, bool in_floats) {
    const int32_t dtype = f->sign ? QSIM_INT4 : QSIM_UINT4;
    const int64_t dims[2] = {f->transposed ? f->n : f->k, f->transposed ? f->k : f->n};
    net_begin(n, ctx, 21);
    net_input(n, "x", QSIM_FLOAT, 2, (int64_t[]){-1, f->k});
    if (in_floats) {
        net_const(n, "w", QSIM_FLOAT, 2, dims, d->floats);
    } else {
        net_const(n, "q", dtype, 2, dims, d->packed);
        net_const(n, "s", QSIM_FLOAT, d->scale_rank, d->scale_dims, d->scales);
        if (f->zeros)
            net_const(n, "z", dtype, d->scale_rank, d->scale_dims, d->packed_zeros);
        const qs_id dq = net_node(n, "", "DequantizeLinear", f->zeros ? "q,s,z" : "q,s", "w");
        qs_node_set_int(n->g, dq, "axis", f->block > 0 ? f->transposed : !f->transposed);
        if (f->block > 0)
            qs_node_set_int(n->g, dq, "block_size", f->block);
    }
    if (f->bias)
        net_const(n, "b", QSIM_FLOAT, NET_DIMS(f->n), d->bias);
    const qs_id node = net_node(n, "", f->gemm ? "Gemm" : "MatMul", f->bias ? "x,w,b" : "x,w", "y");
    if (f->transposed)
        qs_node_set_int(n->g, node, "transB", 1);
    net_output(n, "y");
    NET_OK(n, net_end(n));
}

static void one(qsim_ctx *ctx, const form *f, data *d) {
    fill(f, d);
    net coded, plain;
    product(&coded, ctx, f, d, false);
    product(&plain, ctx, f, d, true);
    for (int64_t rows = 1; rows < 8; rows += 3) {
        static float y[2][8 * 300];
        const qsim_tensor x = net_tensor(QSIM_FLOAT, NET_DIMS(rows, f->k), d->x);
        for (int32_t level = 0; level < 2; level++) {
            qsim_tensor out[2] = {net_tensor(QSIM_FLOAT, NET_DIMS(rows, f->n), y[0]),
                                  net_tensor(QSIM_FLOAT, NET_DIMS(rows, f->n), y[1])};
            const int32_t at = level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE;
            NET_OK(&coded, net_run(&coded, at, false, &x, 1, &out[0], 1));
            NET_OK(&plain, net_run(&plain, at, false, &x, 1, &out[1], 1));
            CHECK(memcmp(y[0], y[1], (size_t)(rows * f->n) * sizeof(float)) == 0);
        }
    }
    qs_pass p = net_pass(&coded);
    NET_OK(&coded, qs_pass_nbits(&p));
    CHECK_INT(net_count(&coded, "MatMulNBits"), 1);
    CHECK_INT(net_count(&coded, "DequantizeLinear"), 0);
    net_free(&coded);
    net_free(&plain);
}

/* Weights that another node also reads as floats stay as they are; so do blocks of 8. */
static void test_left(qsim_ctx *ctx, data *d) {
    for (int i = 0; i < 2; i++) {
        const form f = {.sign = true, .k = 32, .n = 5, .block = i ? 8 : 16};
        fill(&f, d);
        net n;
        product(&n, ctx, &f, d, false);
        if (!i) {
            net_node(&n, "", "Relu", "w", "r");
            net_output(&n, "r");
            NET_OK(&n, net_end(&n));
        }
        qs_pass p = net_pass(&n);
        NET_OK(&n, qs_pass_nbits(&p));
        CHECK_INT(net_count(&n, "MatMulNBits"), 0);
        net_free(&n);
    }
}

/* ---- MatMulBnb4 ---- */

/* x of which a share p of the normal distribution is below. */
static double quantile(double p) {
    double low = -4, high = 4;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2.0)) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/*
 * NF4: quantiles of the normal distribution, seven steps from its tail to the middle and eight from
 * there on, as parts of the greatest (QLoRA, appendix E). FP4: twelfths.
 */
static double level4(int type, int code) {
    static const double twelfths[8] = {0, 0.0625, 8, 12, 4, 6, 2, 3};
    const double tail = (31.0 / 32 + 29.0 / 30) / 2, most = quantile(tail);
    if (type == 0)
        return (code & 8 ? -1 : 1) * twelfths[code & 7] / 12;
    return quantile(code < 7 ? 1 - tail + code * (tail - 0.5) / 7
                             : 0.5 + (code - 7) * (tail - 0.5) / 8) /
           most;
}

/* A product with the identity gives the weights; the last block is not full. */
static void bitsandbytes(int type) {
    enum { ROWS = 3, K = 20, BLOCK = 16 };
    float a[K * K] = {0}, y[K * ROWS];
    const float most[4] = {1, 0.5f, 3, 0.25f};
    uint8_t codes[K * ROWS / 2];
    net n;
    for (int i = 0; i < K; i++)
        a[i * K + i] = 1;
    for (int i = 0; i < K * ROWS / 2; i++)
        codes[i] = (uint8_t)(i * 37 + 11);
    net_begin(&n, NULL, 13);
    CHECK_INT(qs_graph_set_import(n.g, "com.microsoft", 1), 0);
    net_input(&n, "a", QSIM_FLOAT, NET_DIMS(K, K));
    net_const(&n, "w", QSIM_UINT8, NET_DIMS(K * ROWS / 2), codes);
    net_const(&n, "most", QSIM_FLOAT, NET_DIMS(4), most);
    const qs_id node = net_node(&n, "com.microsoft", "MatMulBnb4", "a,w,most", "y");
    qs_node_set_int(n.g, node, "K", K);
    qs_node_set_int(n.g, node, "N", ROWS);
    qs_node_set_int(n.g, node, "block_size", BLOCK);
    qs_node_set_int(n.g, node, "quant_type", type);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qsim_tensor x = net_tensor(QSIM_FLOAT, NET_DIMS(K, K), a);
    qsim_tensor out = net_tensor(QSIM_FLOAT, NET_DIMS(K, ROWS), y);
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &x, 1, &out, 1));
    for (int i = 0; i < K * ROWS; i++) {
        const int code = i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        CHECK_NEAR(y[i % K * ROWS + i / K], level4(type, code) * (double)most[i / BLOCK], 3e-6);
    }
    qs_node_set_int(n.g, node, "block_size", 8); /* which needs more magnitudes */
    CHECK_INT(qs_op_infer_graph(n.g, "net", &n.error), QSIM_E_VALUE);
    net_free(&n);
}

int main(void) {
    static const form forms[] = {
        {.sign = true, .k = 37, .n = 19, .block = 0},
        {.sign = true, .k = 64, .n = 70, .block = 32},
        {.zeros = true, .k = 37, .n = 20, .block = 16},
        {.k = 48, .n = 33, .block = -1},
        {.gemm = true,
         .transposed = true,
         .bias = true,
         .zeros = true,
         .sign = true,
         .k = 45,
         .n = 21,
         .block = 16},
        {.gemm = true, .transposed = true, .k = 33, .n = 3, .block = 0},
        {.gemm = true, .bias = true, .sign = true, .k = 128, .n = 8, .block = 64},
    };
    qsim_ctx *ctx = NULL;
    data *d = malloc(sizeof(*d));
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (size_t i = 0; i < QS_COUNT(forms); i++)
        one(ctx, &forms[i], d);
    test_left(ctx, d);
    qsim_ctx_free(ctx);
    free(d);
    bitsandbytes(0);
    bitsandbytes(1);
    return test_done();
}
