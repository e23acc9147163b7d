/* SPDX-License-Identifier: MIT */
/* Every allocation of a session and a run fails once: an error, no leak, no crash. */
#include "heap.h"
#include "net.h"

/* Conv + BN + Relu in float, a quantized convolution with s8 tensors, a pool, a table, a product.
 */
static void make(net *n, qsim_ctx *ctx) {
    const float ones[3] = {1, 1, 1};
    const int64_t three = 3;
    int8_t w[81];
    uint64_t state = 8;
    for (int i = 0; i < 81; i++)
        w[i] = (int8_t)test_random(&state);
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, 2, 6, 6));
    net_random(n, "w1", NET_DIMS(3, 2, 3, 3), 1, 1);
    net_random(n, "beta", NET_DIMS(3), 2, 1);
    net_const(n, "one", QSIM_FLOAT, 1, &three, ones);
    net_float(n, "s", 0.05f);
    net_byte(n, "z", QSIM_INT8, 3);
    net_const(n, "w", QSIM_INT8, NET_DIMS(3, 3, 3, 3), w);
    net_random(n, "w3", NET_DIMS(12, 5), 3, 1);
    net_node(n, "", "Conv", "x,w1", "c1");
    net_node(n, "", "BatchNormalization", "c1,one,beta,beta,one", "b1");
    net_node(n, "", "Relu", "b1", "r1");
    net_node(n, "", "QuantizeLinear", "r1,s,z", "q1");
    net_node(n, "", "DequantizeLinear", "q1,s,z", "d1");
    net_node(n, "", "DequantizeLinear", "w,s", "wd");
    net_node(n, "", "Conv", "d1,wd,beta", "c2");
    net_node(n, "", "QuantizeLinear", "c2,s,z", "q2");
    net_node(n, "", "DequantizeLinear", "q2,s,z", "d2");
    net_node(n, "", "Tanh", "d2", "t");
    net_node(n, "", "QuantizeLinear", "t,s,z", "q3");
    net_node(n, "", "DequantizeLinear", "q3,s,z", "d3");
    net_node(n, "", "Flatten", "d3", "f");
    net_node(n, "", "Gemm", "f,w3", "y");
    net_output(n, "y");
    net_output(n, "q2");
    NET_OK(n, net_end(n));
}

/* Adds a node; a # among its inputs is i, which the output ends in. */
static void numbered(net *n, const char *op, const char *inputs, const char *output, int i) {
    char in[64], out[16], *p = in;
    for (const char *c = inputs; *c; c++)
        if (*c == '#')
            p += sprintf(p, "%d", i);
        else
            *p++ = *c;
    *p = 0;
    snprintf(out, sizeof(out), "%s%d", output, i);
    net_node(n, "", op, in, out);
}

#define SIDE 256

/* Bytes of a session with `count` products of one weight: of floats, or of integers whose scales
 * all differ. */
static size_t products(int count, bool integers) {
    static int8_t w[SIDE * SIDE];
    char name[16];
    uint64_t state = 9;
    qsim_session *s = NULL;
    net n;
    for (int i = 0; i < SIDE * SIDE; i++)
        w[i] = (int8_t)test_random(&state);
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(-1, SIDE));
    net_random(&n, "w", NET_DIMS(SIDE, SIDE), 3, 1);
    net_const(&n, "q", QSIM_INT8, NET_DIMS(SIDE, SIDE), w);
    net_byte(&n, "z", QSIM_INT8, 3);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        net_float(&n, name, 0.01f + 0.001f * (float)i);
        if (integers) {
            numbered(&n, "QuantizeLinear", "x,s#,z", "a", i);
            numbered(&n, "DequantizeLinear", "a#,s#,z", "b", i);
            numbered(&n, "DequantizeLinear", "q,s#", "c", i);
            numbered(&n, "MatMul", "b#,c#", "d", i);
            numbered(&n, "QuantizeLinear", "d#,s#,z", "y", i);
        } else {
            numbered(&n, "Mul", "x,s#", "a", i);
            numbered(&n, "MatMul", "a#,w", "y", i);
        }
        snprintf(name, sizeof(name), "y%d", i);
        net_output(&n, name);
    }
    NET_OK(&n, net_end(&n));
    CHECK_INT(qsim_session_create(n.model, NULL, &s, NULL), 0);
    const size_t bytes = (size_t)qsim_session_bytes(s);
    qsim_session_free(s);
    net_free(&n);
    return bytes;
}

/* A weight is packed once, however many nodes read it. */
static void shared_weight(void) {
    for (int i = 0; i < 2; i++) {
        const size_t weight = SIDE * SIDE * (i ? sizeof(int8_t) : sizeof(float));
        const size_t one = products(1, i), many = products(16, i);
        CHECK(one > weight && many < one + 2 * weight);
    }
}

/* Compiles, plans and executes; the first failure's code. */
static int live(const qsim_model *model, qsim_ctx *own) {
    const qsim_session_options o = {.struct_size = sizeof(o), .ctx = own};
    static float x[2 * 2 * 6 * 6];
    const int64_t dims[] = {2, 2, 6, 6};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x), out[2] = {{0}};
    int code = qsim_session_create(model, &o, &s, &e);
    if (!code)
        code = qsim_run_create(s, &r, &e);
    if (!code)
        code = qsim_run_execute(r, &in, 1, out, 2, &e);
    if (!code)
        code = qsim_model_optimize(model, 0, &m, &e);
    CHECK_INT(e.code, code);
    CHECK(!code || e.message[0]);
    qsim_model_free(m);
    qsim_run_free(r);
    qsim_session_free(s);
    return code;
}

/* Allocations fail in the session's own context, while the model's context has memory. */
static void own_context(const qsim_model *model) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    const long before = h.calls;
    CHECK_INT(live(model, ctx), 0);
    const long calls = h.calls - before;
    CHECK(calls > 100);
    for (long i = 1; i <= calls; i++) {
        h.fail_at = h.calls + i;
        CHECK_INT(live(model, ctx), QSIM_E_NOMEM);
        CHECK_INT(h.live, 1);
    }
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
}

int main(void) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx;
    net n;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    make(&n, ctx);
    long blocks = h.live, before = h.calls;
    CHECK_INT(live(n.model, NULL), 0);
    long calls = h.calls - before;
    CHECK(calls > 100);
    CHECK_INT(h.live, blocks);
    for (long i = 1; i <= calls; i++) {
        h.fail_at = h.calls + i;
        CHECK_INT(live(n.model, NULL), QSIM_E_NOMEM);
        CHECK_INT(h.live, blocks);
    }
    h.fail_at = 0;
    CHECK_INT(live(n.model, NULL), 0);
    own_context(n.model);
    net_free(&n);
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
    shared_weight();
    return test_done();
}
