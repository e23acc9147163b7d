/* SPDX-License-Identifier: MIT */
/* Gemm, MatMul and BatchNormalization against plain loops in the same order: the same bits. */
#include "op_random.h"

#include <math.h>

typedef struct gemm {
    int64_t m, n, k, ta, tb;
    int32_t c_rank; /* -1: none */
    int64_t c_rows, c_cols;
    float alpha, beta;
} gemm;

static float gemm_at(const gemm *g, const float *a, const float *b, const float *c, int64_t i,
                     int64_t j) {
    float acc = 0.0f;
    for (int64_t k = 0; k < g->k; k++)
        acc = fmaf(g->ta ? a[k * g->m + i] : a[i * g->k + k],
                   g->tb ? b[j * g->k + k] : b[k * g->n + j], acc);
    acc *= g->alpha;
    if (g->c_rank < 0)
        return acc;
    const float term = g->beta * c[(g->c_rows == 1 ? 0 : i * g->c_cols) + (g->c_cols == 1 ? 0 : j)];
    return acc + term;
}

static void check_gemm(qsim_ctx *ctx, const gemm *g, bool constant) {
    float *a = random_floats((size_t)(g->m * g->k), 10.0 / 3),
          *b = random_floats((size_t)(g->n * g->k), 10.0 / 3);
    float *c = random_floats((size_t)(g->c_rows * g->c_cols), 10.0 / 3);
    or_case k = {.domain = "qsim", .op = "Gemm", .version = 13, .outputs = 1};
    k.inputs = g->c_rank < 0 ? 2 : 3;
    k.in[0] = (or_tensor){QSIM_FLOAT, 2, {g->ta ? g->k : g->m, g->ta ? g->m : g->k}, a, false};
    k.in[1] = (or_tensor){QSIM_FLOAT, 2, {g->tb ? g->n : g->k, g->tb ? g->k : g->n}, b, constant};
    k.in[2] = (or_tensor){QSIM_FLOAT, g->c_rank, {g->c_rows, g->c_cols}, c, constant};
    if (g->c_rank == 1)
        k.in[2].dims[0] = g->c_cols;
    const or_attr attrs[] = {or_float("alpha", g->alpha), or_float("beta", g->beta),
                             or_int("transA", g->ta),     or_int("transB", g->tb),
                             or_float("lo", -2.0f),       or_float("hi", 40.0f)};
    memcpy(k.attrs, attrs, sizeof(attrs));
    k.attr_count = QS_COUNT(attrs);
    or_result r = or_run(ctx, &k, false);
    CHECK_INT(r.code, QSIM_OK);
    CHECK_INT(r.out[0].dims[0], g->m);
    CHECK_INT(r.out[0].dims[1], g->n);
    const float *y = r.out[0].data;
    long wrong = 0;
    for (int64_t i = 0; i < g->m * g->n; i++) {
        float e = gemm_at(g, a, b, c, i / g->n, i % g->n);
        e = e < -2.0f ? -2.0f : e;
        e = e > 40.0f ? 40.0f : e;
        wrong += memcmp(&e, &y[i], sizeof(e)) != 0;
    }
    CHECK_INT(wrong, 0);
    or_free(&r);
    free(a);
    free(b);
    free(c);
}

static void gemms(qsim_ctx **ctx, int contexts) {
    for (int i = 0; i < 60; i++) {
        gemm g = {.m = between(1, 30), .n = between(1, 150), .k = between(1, 70)};
        g.ta = i % 3 == 0;
        g.tb = i % 2;
        g.alpha = i % 4 == 1 ? 0.3f : 1.0f;
        g.beta = i % 5 == 1 ? -0.7f : 1.0f;
        g.c_rank = (i + 1) % 4 - 1;
        g.c_rows = g.c_rank == 2 && i % 8 < 4 ? g.m : 1;
        g.c_cols = g.c_rank >= 1 && i % 16 < 12 ? g.n : 1;
        for (int k = 0; k < contexts; k++)
            check_gemm(ctx[k], &g, i % 2 == 0);
    }
    const gemm large[] = {{300, 130, 200, 0, 0, 1, 1, 130, 1, 1},
                          {1, 900, 2000, 0, 1, 2, 1, 1, 1, 1},
                          {257, 70, 100, 1, 0, 2, 257, 1, 1, 1}};
    for (size_t i = 0; i < QS_COUNT(large); i++)
        for (int k = 0; k < contexts; k++)
            check_gemm(ctx[k], &large[i], true);
}

/* ---- MatMul: every form against numpy's rule, spelled out ---- */

typedef struct product {
    or_tensor a, b, y;
} product;

static float matmul_at(const product *p, const float *a, const float *b, size_t at) {
    /* Both sides as [batch..., rows, cols] with a leading or trailing axis of 1 added to vectors.
     */
    const or_tensor *y = &p->y;
    int64_t ad[6] = {1, 1, 1, 1, 1, 1}, bd[6] = {1, 1, 1, 1, 1, 1}, yi[6] = {0};
    for (int32_t i = 0; i < p->a.rank; i++)
        ad[6 - p->a.rank + i] = p->a.dims[i];
    for (int32_t i = 0; i < p->b.rank; i++)
        bd[6 - p->b.rank + i] = p->b.dims[i];
    if (p->b.rank == 1) {
        bd[4] = bd[5];
        bd[5] = 1;
    }
    int32_t slot = p->b.rank == 1 ? 4 : 5; /* index of y's last axis */
    for (int32_t i = y->rank - 1; i >= 0; i--) {
        if (slot == 4 && p->a.rank == 1)
            slot--;
        yi[slot--] = (int64_t)(at % (size_t)y->dims[i]);
        at /= (size_t)y->dims[i];
    }
    size_t oa = 0, ob = 0;
    for (int i = 0; i < 4; i++) {
        oa = oa * (size_t)ad[i] + (size_t)(ad[i] == 1 ? 0 : yi[i]);
        ob = ob * (size_t)bd[i] + (size_t)(bd[i] == 1 ? 0 : yi[i]);
    }
    float acc = 0.0f;
    for (int64_t k = 0; k < ad[5]; k++)
        acc = fmaf(a[((int64_t)oa * ad[4] + yi[4]) * ad[5] + k],
                   b[((int64_t)ob * bd[4] + k) * bd[5] + yi[5]], acc);
    return acc;
}

static void check_matmul(qsim_ctx *ctx, product *p, bool constant) {
    float *a = random_floats(or_elements(&p->a), 10.0 / 3),
          *b = random_floats(or_elements(&p->b), 10.0 / 3);
    p->a.dtype = p->b.dtype = QSIM_FLOAT;
    p->a.data = a;
    p->b.data = b;
    p->b.constant = constant;
    or_case c = {.op = "MatMul", .domain = "", .version = 13, .inputs = 2, .outputs = 1};
    c.in[0] = p->a;
    c.in[1] = p->b;
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    CHECK_INT(r.out[0].rank, p->y.rank);
    for (int32_t i = 0; i < p->y.rank; i++)
        CHECK_INT(r.out[0].dims[i], p->y.dims[i]);
    long wrong = 0;
    for (size_t i = 0; i < or_elements(&p->y) && !r.code; i++) {
        float e = matmul_at(p, a, b, i);
        wrong += memcmp(&e, (float *)r.out[0].data + i, sizeof(e)) != 0;
    }
    CHECK_INT(wrong, 0);
    or_free(&r);
    free(a);
    free(b);
}

static void matmuls(qsim_ctx **ctx, int contexts) {
#define T(n, ...)                                                                                  \
    {                                                                                              \
        .rank = n, .dims = { __VA_ARGS__ }                                                         \
    }
    const product list[] = {
        {T(2, 5, 7), T(2, 7, 33), T(2, 5, 33)},
        {T(1, 7), T(1, 7), T(0, 0)},
        {T(1, 7), T(2, 7, 3), T(1, 3)},
        {T(2, 4, 7), T(1, 7), T(1, 4)},
        {T(3, 2, 4, 7), T(1, 7), T(2, 2, 4)},
        {T(1, 7), T(3, 2, 7, 5), T(2, 2, 5)},
        {T(3, 3, 4, 7), T(2, 7, 9), T(3, 3, 4, 9)},
        {T(3, 3, 4, 7), T(3, 3, 7, 9), T(3, 3, 4, 9)},
        {T(4, 2, 1, 4, 7), T(4, 1, 3, 7, 9), T(4, 2, 3, 4, 9)},
        {T(2, 4, 7), T(4, 2, 3, 7, 9), T(4, 2, 3, 4, 9)},
        {T(3, 40, 50, 64), T(3, 40, 64, 50), T(3, 40, 50, 50)},
        {T(2, 3, 0), T(2, 0, 4), T(2, 3, 4)},
        {T(2, 0, 3), T(2, 3, 4), T(2, 0, 4)},
    };
#undef T
    for (size_t i = 0; i < QS_COUNT(list); i++)
        for (int k = 0; k < contexts; k++) {
            product p = list[i];
            check_matmul(ctx[k], &p, k % 2 == 0);
        }
}

/* ---- BatchNormalization ---- */

static void batchnorm(qsim_ctx *ctx, bool last) {
    enum { N = 2, C = 21, P = 15 };
    float *x = random_floats(N * C * P, 10.0 / 3), *scale = random_floats(C, 10.0 / 3),
          *shift = random_floats(C, 10.0 / 3);
    float *mean = random_floats(C, 10.0 / 3), *var = random_floats(C, 10.0 / 3);
    for (int i = 0; i < C; i++)
        var[i] = fabsf(var[i]);
    or_case c = {.domain = "qsim",
                 .op = "BatchNormalization",
                 .version = 15,
                 .inputs = 5,
                 .outputs = 1,
                 .attr_count = 2};
    c.in[0] = (or_tensor){QSIM_FLOAT, 3, {N, last ? P : C, last ? C : P}, x, false};
    float *const lists[] = {scale, shift, mean, var};
    for (int i = 0; i < 4; i++)
        c.in[1 + i] = (or_tensor){QSIM_FLOAT, 1, {C}, lists[i], true};
    c.attrs[0] = or_float("epsilon", 0.01f);
    c.attrs[1] = or_int("channels_last", last);
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_OK);
    for (int i = 0; i < N * C * P; i++) {
        int k = last ? i % C : i / P % C;
        double e =
            ((double)x[i] - (double)mean[k]) / sqrt((double)var[k] + 0.01) * (double)scale[k] +
            (double)shift[k];
        CHECK_NEAR(((float *)r.out[0].data)[i], e, 1e-4 + 1e-5 * fabs(e));
    }
    or_free(&r);
    free(x);
    for (int i = 0; i < 4; i++)
        free(lists[i]);
}

/* ---- refusals ---- */

static void refuses(qsim_ctx *ctx) {
    float x[1] = {0};
    or_case c = {.domain = "", .op = "Gemm", .version = 13, .inputs = 3, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_FLOAT, 2, {4, 5}, x, false};
    c.in[1] = (or_tensor){QSIM_FLOAT, 2, {6, 3}, x, false};
    c.in[2] = (or_tensor){QSIM_FLOAT, 1, {3}, x, false};
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_SHAPE);
    c.in[1].dims[0] = 5;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_OK);
    c.in[2].dims[0] = 4;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_SHAPE);
    c.in[2].dims[0] = 3;
    c.in[1].dtype = QSIM_DOUBLE;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_DTYPE);
    c.in[1].dtype = QSIM_FLOAT;
    c.attrs[0] = or_int("broadcast", 1); /* gone since opset 7 */
    c.attr_count = 1;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_E_UNSUPPORTED);
    c.version = 6;
    CHECK_INT(or_run(ctx, &c, true).code, QSIM_OK);
    or_case m = {.domain = "", .op = "MatMul", .version = 13, .inputs = 2, .outputs = 1};
    m.in[0] = (or_tensor){QSIM_FLOAT, 3, {2, 4, 5}, x, false};
    m.in[1] = (or_tensor){QSIM_FLOAT, 3, {3, 5, 6}, x, false};
    CHECK_INT(or_run(ctx, &m, true).code, QSIM_E_SHAPE);
    m.in[1].dims[0] = 2;
    m.in[1].dims[1] = 4;
    CHECK_INT(or_run(ctx, &m, true).code, QSIM_E_SHAPE);
    m.in[1].rank = 0;
    CHECK_INT(or_run(ctx, &m, true).code, QSIM_E_SHAPE);
    or_case b = {
        .domain = "", .op = "BatchNormalization", .version = 14, .inputs = 5, .outputs = 1};
    b.in[0] = (or_tensor){QSIM_FLOAT, 3, {2, 4, 5}, x, false};
    for (int i = 1; i < 5; i++)
        b.in[i] = (or_tensor){QSIM_FLOAT, 1, {4}, x, false};
    CHECK_INT(or_run(ctx, &b, true).code, QSIM_OK);
    b.version = 6;
    b.attrs[0] = or_int("is_test", 0);
    b.attr_count = 1;
    CHECK_INT(or_run(ctx, &b, true).code, QSIM_E_UNSUPPORTED);
    b.version = 14;
    b.attr_count = 0;
    b.in[3].dims[0] = 5;
    CHECK_INT(or_run(ctx, &b, true).code, QSIM_E_SHAPE);
}

/* A node of an old opset with attributes that newer ones do not know. */
static void upgrades(qsim_ctx *ctx) {
    static const struct {
        const char *op;
        int32_t inputs;
        const char *attrs[2];
    } list[] = {{"Gemm", 3, {"broadcast", "transB"}},
                {"BatchNormalization", 5, {"is_test", "spatial"}}};
    for (size_t i = 0; i < QS_COUNT(list); i++) {
        qs_graph *g = NULL;
        qsim_error error = {0};
        qs_id in[5], out;
        CHECK_INT(qs_graph_create(ctx, &g), QSIM_OK);
        const qs_dim dims[2] = {{4, NULL}, {4, NULL}};
        for (int32_t k = 0; k < list[i].inputs; k++) {
            in[k] = qs_graph_add_value(g, NULL);
            qs_value_set_shape(g, in[k], QSIM_FLOAT, k && list[i].inputs == 5 ? 1 : 2, dims);
        }
        out = qs_graph_add_value(g, "y");
        qs_id node = qs_graph_add_node(g, "", list[i].op, "n", in, list[i].inputs, &out, 1);
        g->nodes[node].version = 6;
        qs_node_set_int(g, node, list[i].attrs[0], 1);
        qs_node_set_int(g, node, list[i].attrs[1], 1);
        qs_graph_set_import(g, "", 6);
        CHECK_INT(qs_graph_sort(g, &error), QSIM_OK);
        CHECK_INT(qs_op_resolve(g, node, "test", &error), QSIM_OK);
        CHECK_INT(qs_op_upgrade_graph(g, 15, "test", &error), QSIM_OK);
        CHECK_INT(g->nodes[node].version, 15);
        CHECK(qs_node_attr(&g->nodes[node], list[i].attrs[0]) == NULL);
        CHECK_INT(qs_op_infer_graph(g, "test", &error), QSIM_OK);
        qs_graph_free(g);
    }
}

int main(void) {
    or_seed = 99;
    qsim_ctx *ctx[QS_ISA_COUNT];
    int n = or_contexts(ctx, 3);
    CHECK(n >= 1);
    gemms(ctx, n);
    matmuls(ctx, n);
    batchnorm(ctx[0], false);
    batchnorm(ctx[n - 1], true);
    refuses(ctx[0]);
    upgrades(ctx[0]);
    for (int i = 0; i < n; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
