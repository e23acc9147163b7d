/* SPDX-License-Identifier: MIT */
/*
 * Attention written as transposes, products and a softmax runs as one step with the bits of the
 * separate operators, for any factor and sizes; graphs that are not attention stay as they are.
 */
#include "net.h"

#define MOST 20000

static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};

/* One deviation; all other fields make an attention. */
typedef struct variant {
    int64_t dims[3], heads;
    const char *factor; /* operator after the first product, or NULL */
    float by;
    int64_t axis;
    bool flat;  /* keys as (batch, head, size, row) by a Reshape alone: other numbers */
    bool given; /* the softmax's result is an output, too */
    int32_t steps;
} variant;

static void heads(net *n, const char *x, const char *y, const int64_t *perm, bool flat) {
    char four[24];
    snprintf(four, sizeof(four), "%s4", y);
    char in[40];
    snprintf(in, sizeof(in), "%s,%s", x, flat ? "flat" : "cut");
    net_node(n, "", "Reshape", in, flat ? y : four);
    if (!flat)
        net_ints(n, net_node(n, "", "Transpose", four, y), "perm", 4, perm);
}

static void build(net *n, qsim_ctx *ctx, const variant *v) {
    const int64_t four[] = {4}, three[] = {3}, d = v->dims[2] / v->heads;
    const int64_t cut[] = {0, 0, v->heads, d}, joined[] = {0, 0, v->dims[2]};
    const int64_t flat[] = {v->dims[0], v->heads, d, v->dims[1]};
    net_begin(n, ctx, 14);
    net_input(n, "q", QSIM_FLOAT, 3, v->dims);
    net_input(n, "k", QSIM_FLOAT, 3, v->dims);
    net_input(n, "v", QSIM_FLOAT, 3, v->dims);
    net_const(n, "cut", QSIM_INT64, 1, four, cut);
    net_const(n, "flat", QSIM_INT64, 1, four, flat);
    net_const(n, "joined", QSIM_INT64, 1, three, joined);
    net_float(n, "factor", v->by);
    heads(n, "q", "qh", rows, false);
    heads(n, "k", "kh", columns, v->flat);
    heads(n, "v", "vh", rows, false);
    net_node(n, "", "MatMul", "qh,kh", v->factor ? "p" : "s");
    if (v->factor)
        net_node(n, "", v->factor, "p,factor", "s");
    CHECK_INT(qs_node_set_int(n->g, net_node(n, "", "Softmax", "s", "a"), "axis", v->axis), 0);
    net_node(n, "", "MatMul", "a,vh", "m");
    net_ints(n, net_node(n, "", "Transpose", "m", "t"), "perm", 4, rows);
    net_node(n, "", "Reshape", "t,joined", "y");
    if (v->given)
        net_output(n, "a");
    net_output(n, "y");
    NET_OK(n, net_end(n));
}

/* Executes at a level; returns how many steps are attentions. */
static int execute(net *n, int32_t level, const qsim_tensor in[3], qsim_tensor *out, size_t count) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int found = 0;
    NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, in, 3, out, count, &n->error));
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), 0);
        found += strcmp(info.kernel, "attention") == 0;
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return found;
}

static int run(net *n, const variant *v, int32_t level, float *x, float *a, float *y) {
    qsim_tensor in[3], out[2];
    CHECK((size_t)(v->dims[0] * v->dims[1] * v->dims[2]) <= MOST);
    for (size_t i = 0; i < 3; i++)
        in[i] = net_tensor(QSIM_FLOAT, 3, v->dims, x + i * MOST);
    out[0] = (qsim_tensor){.data = v->given ? a : y, .bytes = MOST * sizeof(float)};
    out[1] = (qsim_tensor){.data = y, .bytes = MOST * sizeof(float)};
    return execute(n, level, in, out, 1 + v->given);
}

/*
 * Tensors that have an axis of heads, as a decoder's cache: 4 sizes are batches, heads, queries and
 * keys. `shared`: one head of keys for all, which MatMul broadcasts.
 */
static void check_heads(qsim_ctx *ctx, const int64_t sizes[4], const char *factor, bool shared,
                        float *x) {
    enum { WIDTH = 24, V_WIDTH = 17 };
    static float y[2][MOST];
    const int64_t q[] = {sizes[0], sizes[1], sizes[2], WIDTH};
    const int64_t k[] = {sizes[0], shared ? 1 : sizes[1], sizes[3], WIDTH};
    const int64_t v[] = {sizes[0], sizes[1], sizes[3], V_WIDTH};
    const int64_t last_two[] = {0, 1, 3, 2};
    const size_t bytes = (size_t)(sizes[0] * sizes[1] * sizes[2] * V_WIDTH) * sizeof(float);
    const qsim_tensor in[3] = {net_tensor(QSIM_FLOAT, 4, q, x),
                               net_tensor(QSIM_FLOAT, 4, k, x + MOST),
                               net_tensor(QSIM_FLOAT, 4, v, x + 2 * MOST)};
    net n;
    net_begin(&n, ctx, 14);
    net_input(&n, "q", QSIM_FLOAT, 4, q);
    net_input(&n, "k", QSIM_FLOAT, 4, k);
    net_input(&n, "v", QSIM_FLOAT, 4, v);
    net_float(&n, "factor", 0.25f);
    net_ints(&n, net_node(&n, "", "Transpose", "k", "kt"), "perm", 4, last_two);
    net_node(&n, "", "MatMul", "q,kt", factor ? "p" : "s");
    if (factor)
        net_node(&n, "", factor, "p,factor", "s");
    CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Softmax", "s", "a"), "axis", -1), 0);
    net_node(&n, "", "MatMul", "a,v", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    for (int i = 0; i < 2; i++) {
        qsim_tensor out = {.data = y[i], .bytes = sizeof(y[i])};
        const int found = execute(&n, i ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, in, &out, 1);
        CHECK_INT(found, i && !shared);
        CHECK_INT(out.bytes, bytes);
    }
    CHECK(memcmp(y[0], y[1], bytes) == 0);
    net_free(&n);
}

int main(void) {
    static const variant all[] = {
        {{1, 33, 48}, 3, "Div", 4.0f, -1, false, false, 1},
        {{2, 64, 128}, 2, "Mul", 0.3f, 3, false, false, 1},
        {{1, 7, 10}, 1, NULL, 1.0f, -1, false, false, 1},
        {{3, 1, 16}, 4, "Div", 0.5f, -1, false, false, 1},
        {{1, 130, 64}, 2, "Div", -8.0f, -1, false, false, 1},
        {{1, 33, 48}, 3, "Div", 3.0f, -1, false, false, 0}, /* rounds differently from a product */
        {{1, 33, 48}, 3, "Add", 2.0f, -1, false, false, 0},
        {{1, 33, 48}, 3, "Div", 4.0f, 2, false, false, 0},
        {{1, 33, 48}, 3, "Div", 4.0f, -1, true, false, 0},
        {{1, 33, 48}, 3, "Div", 4.0f, -1, false, true, 0},
    };
    static float x[3 * MOST], plain[2][MOST], best[2][MOST];
    qsim_ctx *ctx = NULL;
    uint64_t state = 11;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)(test_random(&state) >> 8) * (4.0f / 16777216.0f) - 2;
    for (size_t i = 0; i < QS_COUNT(all); i++) {
        net n;
        build(&n, ctx, &all[i]);
        memset(plain, 1, sizeof(plain));
        memset(best, 1, sizeof(best));
        CHECK_INT(run(&n, &all[i], QSIM_LEVEL_DISABLE, x, plain[0], plain[1]), 0);
        CHECK_INT(run(&n, &all[i], QSIM_LEVEL_ALL, x, best[0], best[1]), all[i].steps);
        CHECK(memcmp(plain, best, sizeof(best)) == 0);
        net_free(&n);
    }
    check_heads(ctx, (const int64_t[]){1, 3, 1, 200}, NULL, false, x);
    check_heads(ctx, (const int64_t[]){2, 2, 1, 1}, "Mul", false, x);
    check_heads(ctx, (const int64_t[]){2, 4, 5, 33}, "Div", false, x);
    check_heads(ctx, (const int64_t[]){1, 2, 70, 130}, NULL, false, x);
    check_heads(ctx, (const int64_t[]){1, 3, 4, 40}, NULL, true, x);
    qsim_ctx_free(ctx);
    return test_done();
}
