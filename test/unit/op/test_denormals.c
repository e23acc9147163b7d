/* SPDX-License-Identifier: MIT */
/*
 * Denormal weights of a dead channel count as 0 in convolutions and products: to the bit as if the
 * model had zeros in their place. A few elsewhere, weights that are an input, and constants of
 * other operators stay as they are.
 */
#include "net.h"

#define MOST 288 /* elements of a tensor */

typedef struct layer {
    const char *op;
    int32_t rank;
    int64_t x[4], w[4], group;
    bool input; /* the weights are no constant */
    bool keeps; /* denormals of a dead channel, too */
} layer;

static const layer layers[] = {
    {"Conv", 4, {1, 4, 6, 6}, {8, 4, 3, 3}, 1, false, false},
    {"Conv", 4, {1, 4, 6, 6}, {8, 2, 3, 3}, 2, false, false},
    {"Conv", 4, {1, 8, 6, 6}, {8, 1, 3, 3}, 8, false, false},
    {"MatMul", 2, {3, 8}, {8, 36}, 0, false, false},
    {"Gemm", 2, {3, 36}, {8, 36}, 0, false, false},
    {"MatMul", 2, {3, 8}, {8, 36}, 0, true, true},
    {"Mul", 2, {8, 36}, {8, 36}, 0, false, true},
};

/* Weights around 1e-37, but `tiny` in row 2 and in a bias, or in one place of row 4. */
static void make_weights(const layer *l, float tiny, bool lone, float *w, float bias[8]) {
    uint64_t state = 5;
    size_t n = 1;
    for (int32_t i = 0; i < l->rank; i++)
        n *= (size_t)l->w[i];
    const size_t row = n / 8;
    for (size_t i = 0; i < n; i++) {
        const float v = ((float)(test_random(&state) % 100) - 49.5f) * 1e-37f;
        w[i] = (lone ? i == 4 * row + row / 2 : i / row == 2) ? tiny : v;
    }
    for (int i = 0; i < 8; i++)
        bias[i] = lone ? 0 : tiny;
}

/* Runs the layer on inputs of which products with denormals show. */
static void run_layer(qsim_ctx *ctx, const layer *l, int32_t level, float tiny, bool lone,
                      float y[MOST]) {
    const bool conv = l->rank == 4;
    const int64_t eight = 8, window[] = {3, 3};
    float x[MOST], w[MOST], bias[8];
    uint64_t state = 3;
    net n;
    make_weights(l, tiny, lone, w, bias);
    for (int i = 0; i < MOST; i++)
        x[i] = ((float)(test_random(&state) % 1000) - 499.5f) * 1e28f;
    memset(y, 0, MOST * sizeof(*y));
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, l->rank, l->x);
    if (l->input)
        net_input(&n, "w", QSIM_FLOAT, l->rank, l->w);
    else
        net_const(&n, "w", QSIM_FLOAT, l->rank, l->w, w);
    if (conv)
        net_const(&n, "b", QSIM_FLOAT, 1, &eight, bias);
    const qs_id node = net_node(&n, "", l->op, conv ? "x,w,b" : "x,w", "y");
    if (conv) {
        net_ints(&n, node, "kernel_shape", 2, window);
        qs_node_set_int(n.g, node, "group", l->group);
    }
    if (strcmp(l->op, "Gemm") == 0)
        qs_node_set_int(n.g, node, "transB", 1);
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in[] = {net_tensor(QSIM_FLOAT, l->rank, l->x, x),
                              net_tensor(QSIM_FLOAT, l->rank, l->w, w)};
    qsim_tensor out = {.data = y, .bytes = MOST * sizeof(*y)};
    NET_OK(&n, net_run(&n, level, false, in, l->input ? 2 : 1, &out, 1));
    net_free(&n);
}

static void check_layer(qsim_ctx *ctx, const layer *l, int32_t level) {
    float with[MOST], without[MOST];
    run_layer(ctx, l, level, 1e-39f, false, with);
    run_layer(ctx, l, level, 0, false, without);
    CHECK_INT(memcmp(with, without, sizeof(with)) != 0, l->keeps);
    run_layer(ctx, l, level, 1e-39f, true, with);
    run_layer(ctx, l, level, 0, true, without);
    CHECK(memcmp(with, without, sizeof(with)) != 0);
}

int main(void) {
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++) {
        const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = isa};
        qsim_ctx *ctx = NULL;
        if (!qsim_isa_available(isa))
            continue;
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
        for (size_t i = 0; i < QS_COUNT(layers); i++) {
            check_layer(ctx, &layers[i], QSIM_LEVEL_DISABLE);
            check_layer(ctx, &layers[i], QSIM_LEVEL_ALL);
        }
        qsim_ctx_free(ctx);
    }
    return test_done();
}
