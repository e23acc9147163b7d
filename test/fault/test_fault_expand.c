/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of compiling and running a session can fail: sessions of operators that expand
 * to several others, of operators with states, of 4-bit weights, and of folded sizes.
 */
#include "heap.h"

#include <qsim/qsim.h>

static float numbers[64];

/* Adds operators with states, and 4-bit weights: y becomes m, rows of a table r. */
static void add_states(qsim_builder *b) {
    static const uint8_t codes[64] = {0x1f, 0x2e};
    const int64_t m[] = {1, 4, 6}, rows[] = {2, 16};
    qsim_builder_constant_as(b, "taps", "float[4,1,2]", numbers);
    qsim_builder_constant_as(b, "q4", "int4[6,6]", codes);
    qsim_builder_constant_as(b, "table", "int4[8,16]", codes);
    qsim_builder_constant_as(b, "scale", "float[]", numbers);
    qsim_builder_constant_as(b, "scales", "float[8,1]", numbers);
    qsim_builder_constant_as(b, "ids", "int64[2]", (const int64_t[]){3, 1});
    qsim_builder_node(b, "", "LinearAttention", "linear", "y,y,y", "l,state");
    qsim_builder_attr_int(b, "q_num_heads", 2);
    qsim_builder_attr_int(b, "kv_num_heads", 2);
    qsim_builder_attr_string(b, "update_rule", "linear");
    qsim_builder_node(b, "", "CausalConvWithState", "causal", "l,taps", "c,kept");
    qsim_builder_node(b, "", "DequantizeLinear", "floats", "q4,scale", "w4");
    qsim_builder_node(b, "", "MatMul", "product", "c,w4", "m");
    qsim_builder_node(b, "com.microsoft", "GatherBlockQuantized", "rows", "table,ids,scales", "r");
    qsim_builder_attr_int(b, "block_size", 16);
    qsim_builder_attr_int(b, "quantize_axis", 1);
    qsim_builder_output(b, "m", QSIM_FLOAT, 3, m, NULL);
    qsim_builder_output(b, "r", QSIM_FLOAT, 2, rows, NULL);
}

static int build(qsim_ctx *ctx, qsim_model **model, qsim_error *e) {
    const int64_t x[] = {1, 4, 6}, list[] = {6}, table[] = {6, 18}, all[] = {18};
    qsim_tensor t[] = {{QSIM_FLOAT, 1, list, numbers, 6 * sizeof(float)},
                       {QSIM_FLOAT, 2, table, NULL, 108 * sizeof(float)},
                       {QSIM_FLOAT, 1, all, numbers, 18 * sizeof(float)}};
    static float w[108];
    qsim_builder *b = NULL;
    int code = qsim_builder_create(ctx, 28, "g", &b, e);
    if (code)
        return code;
    t[1].data = w;
    qsim_builder_input(b, "x", QSIM_FLOAT, 3, x, NULL);
    qsim_builder_constant(b, "bias", &t[0]);
    qsim_builder_constant(b, "w", &t[1]);
    qsim_builder_constant(b, "b", &t[2]);
    qsim_builder_node(b, "", "SwiGLU", "gate", "x,x", "g");
    qsim_builder_node(b, "com.microsoft", "BiasGelu", "gelu", "g,bias", "h");
    qsim_builder_node(b, "com.microsoft", "Attention", "attention", "h,w,b", "a");
    qsim_builder_attr_int(b, "num_heads", 2);
    qsim_builder_node(b, "", "Shape", "shape", "h", "sizes");
    qsim_builder_node(b, "", "ConstantOfShape", "zeros", "sizes", "z");
    qsim_builder_node(b, "", "Add", "add", "a,z", "s");
    qsim_builder_node(b, "", "MeanVarianceNormalization", "mvn", "s", "y");
    qsim_builder_attr_ints(b, "axes", (const int64_t[]){0, 2}, 2);
    add_states(b);
    code = qsim_builder_finish(b, model, e);
    qsim_builder_free(b);
    return code;
}

static int job(test_heap *h, qsim_error *e) {
    const int64_t dims[] = {1, 4, 6};
    const qsim_tensor in = {QSIM_FLOAT, 3, dims, numbers, 24 * sizeof(float)};
    qsim_tensor out[2] = {{0}};
    qsim_allocator a = test_heap_allocator(h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_ctx_create(&o, &ctx, e);
    if (!code)
        code = build(ctx, &m, e);
    if (!code)
        code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &in, 1, out, 2, e);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
    return code;
}

int main(void) {
    uint64_t seed = 1;
    long n = 0;
    for (size_t i = 0; i < 64; i++)
        numbers[i] = (float)(test_random(&seed) % 1000) / 500.0f - 1.0f;
    for (;; n++) {
        test_heap h = {.fail_at = n + 1, .fail_after = true};
        qsim_error e = {0};
        const int code = job(&h, &e);
        CHECK_INT(h.live, 0);
        CHECK_INT(h.bytes, 0);
        if (code == QSIM_OK)
            break;
        CHECK_INT(code, QSIM_E_NOMEM);
        if (code != QSIM_E_NOMEM)
            fprintf(stderr, "allocation %ld: %s\n", n, e.message);
        if (test_failures > 5 || n > 1000000)
            break;
    }
    CHECK(n > 100);
    fprintf(stderr, "%ld allocations\n", n);
    return test_done();
}
