/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of compiling and running a session can fail: sessions of operators that expand
 * to several others, with states, of 4-bit weights, of pairs, and of folded sizes; and of the
 * messages that fuzz targets start from: subgraphs, sequences, losses, rare types.
 */
#include "../fuzz/model_seeds.h"
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

/* Adds a PRelu with a slope per channel between pairs, on input p. */
static void add_pairs(qsim_builder *b) {
    const int64_t p[] = {1, 2, 9};
    qsim_builder_input(b, "p", QSIM_FLOAT, 3, p, NULL);
    qsim_builder_constant_as(b, "slopes", "float[2,1]", numbers);
    qsim_builder_constant_as(b, "unit", "float[]", (const float[]){0.0137f});
    qsim_builder_constant_as(b, "middle", "uint8[]", (const uint8_t[]){100});
    qsim_builder_node(b, "", "QuantizeLinear", "pq", "p,unit,middle", "p_q");
    qsim_builder_node(b, "", "DequantizeLinear", "pd", "p_q,unit,middle", "p_d");
    qsim_builder_node(b, "", "PRelu", "prelu", "p_d,slopes", "f");
    qsim_builder_node(b, "", "QuantizeLinear", "fq", "f,unit,middle", "f_q");
    qsim_builder_output(b, "f_q", QSIM_UINT8, 3, p, NULL);
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
    add_pairs(b);
    code = qsim_builder_finish(b, model, e);
    qsim_builder_free(b);
    return code;
}

/* The index-th message of the fuzz targets, loaded. */
static int load(qsim_ctx *ctx, size_t index, qsim_model **model, qsim_error *e) {
    static uint8_t bytes[65536];
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    const size_t size = fuzz_model_bytes(index, bytes, sizeof(bytes));
    return qsim_model_load_memory(ctx, bytes, size, &o, model, e);
}

#define MOST 16

/* Runs a model on zeros, free axes taken as 2. */
static int execute(const qsim_model *m, qsim_run *r, qsim_error *e) {
    static uint8_t zeros[1024];
    static int64_t dims[MOST][QSIM_MAX_RANK];
    qsim_tensor in[MOST], out[MOST] = {{0}};
    const int32_t inputs = qsim_model_input_count(m), outputs = qsim_model_output_count(m);
    CHECK(inputs <= MOST && outputs <= MOST);
    for (int32_t i = 0; i < inputs; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        const int code = qsim_model_input(m, i, &v);
        if (code)
            return code;
        for (int32_t k = 0; k < v.rank; k++)
            dims[i][k] = v.dims[k] < 0 ? 2 : v.dims[k];
        in[i] = (qsim_tensor){v.dtype, v.rank, dims[i], zeros, 0};
        qsim_tensor_size(v.dtype, v.rank, dims[i], NULL, &in[i].bytes);
    }
    return qsim_run_execute(r, in, (size_t)inputs, out, (size_t)outputs, e);
}

/* Compiles and runs the model of `build`, and converts it to ONNX's operators, or message `index`
 * - 1. */
static int job(test_heap *h, size_t index, qsim_error *e) {
    qsim_allocator a = test_heap_allocator(h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL, *made = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_ctx_create(&o, &ctx, e);
    if (!code)
        code = index ? load(ctx, index - 1, &m, e) : build(ctx, &m, e);
    if (!code)
        code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = execute(m, r, e);
    if (!code && !index)
        code = qsim_model_convert_to(m, QSIM_FORMAT_ONNX, &made, e);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_model_free(made);
    qsim_ctx_free(ctx);
    return code;
}

#define EACH 64 /* of the first allocations fails, whatever the stride */
static long stride = 1;

/* One allocation fails, or with `after` all from it on; one alone may be done without. */
static void exhaust(size_t index, bool after) {
    long n = 0;
    for (;; n += n < EACH ? 1 : stride) {
        test_heap h = {.fail_at = n + 1, .fail_after = after};
        qsim_error e = {0};
        const int code = job(&h, index, &e);
        CHECK_INT(h.live, 0);
        CHECK_INT(h.bytes, 0);
        if (h.calls <= n)
            break;
        const bool fits = code == QSIM_E_NOMEM || (!after && code == QSIM_OK);
        CHECK(fits);
        if (!fits)
            fprintf(stderr, "model %zu, allocation %ld: %s\n", index, n, e.message);
        if (test_failures > 5 || n > 1000000)
            break;
    }
    CHECK(n > 50);
    fprintf(stderr, "model %zu: %s%ld allocations\n", index, stride > 1 ? "at most " : "", n);
}

int main(int argc, char **argv) {
    if (argc > 1)
        stride = atol(argv[1]) > 0 ? atol(argv[1]) : 1;
    uint64_t seed = 1;
    uint8_t byte;
    for (size_t i = 0; i < 64; i++)
        numbers[i] = (float)(test_random(&seed) % 1000) / 500.0f - 1.0f;
    CHECK_INT(fuzz_model_bytes(FUZZ_MODELS + FUZZ_MESSAGES, &byte, 1), 0);
    for (int after = 0; after < 2; after++) {
        exhaust(0, after);
        for (size_t i = 0; i < FUZZ_MODELS; i++)
            exhaust(i + 1, after);
        for (size_t i = FUZZ_IN_TWO_FILES; i < FUZZ_MESSAGES; i++)
            exhaust(FUZZ_MODELS + i + 1, after);
    }
    return test_done();
}
