/* SPDX-License-Identifier: MIT */
/* Models with operators of com.microsoft, converted into models of ONNX's operators alone. */
#include <math.h>
#include <stdbool.h>

#include "ptq_nets.h"

/* ---- models of one node ---- */

typedef struct one {
    const char *op, *inputs, *outputs;
    const char *types;             /* of the inputs x, v, u, which are left out behind the last */
    void (*fill)(qsim_builder *b); /* constants, and attributes of the node */
    int32_t opset, made;           /* of the model, and of what it is converted to */
    const char *has;               /* an operator that it has then */
    double within;                 /* of the largest value; 0: the same bits */
} one;

static void floats(qsim_builder *b, const char *name, int64_t rows, int64_t columns,
                   uint64_t seed) {
    const int64_t dims[2] = {rows, columns};
    net_constant(b, name, rows ? 2 : 1, rows ? dims : dims + 1, 1, seed);
}

/* Random bytes, as a constant of this type. */
static void bytes(qsim_builder *b, const char *name, const char *type, uint64_t seed) {
    uint8_t data[4096];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(test_random(&seed) >> 8);
    CHECK_INT(qsim_builder_constant_as(b, name, type, data), QSIM_OK);
}

/* Scales of quantized values, all above 0. */
static void scales(qsim_builder *b, const char *name, const char *type, uint64_t seed) {
    float data[256];
    for (size_t i = 0; i < 256; i++)
        data[i] = 0.01f + (float)(test_random(&seed) % 100) / 2000;
    CHECK_INT(qsim_builder_constant_as(b, name, type, data), QSIM_OK);
}

/* Sizes of MatMulNBits, of three columns. */
static void blocks(qsim_builder *b, int64_t inputs, int64_t bits, int64_t block) {
    qsim_builder_attr_int(b, "K", inputs);
    qsim_builder_attr_int(b, "N", 3);
    qsim_builder_attr_int(b, "bits", bits);
    qsim_builder_attr_int(b, "block_size", block);
}

static void no_more(qsim_builder *b) {
    (void)b;
}

static void skip(qsim_builder *b) {
    floats(b, "g", 0, 8, 1);
    floats(b, "h", 0, 8, 2);
    floats(b, "k", 0, 8, 3);
    qsim_builder_attr_float(b, "epsilon", 0.01f);
}

static void product(qsim_builder *b) {
    floats(b, "w", 5, 8, 1);
    qsim_builder_attr_int(b, "transB", 1);
    qsim_builder_attr_float(b, "alpha", 0.5f);
}

static void bias(qsim_builder *b) {
    floats(b, "w", 0, 8, 1);
}

static void sum(qsim_builder *b) {
    net_scale(b, "s", "z", 0.02f, 120);
    net_scale(b, "t", "o", 0.03f, 130);
}

/* 40 numbers of input in blocks of 32: the second block is cut, three rows have six zero points. */
static void four_bits(qsim_builder *b) {
    bytes(b, "w", "uint8[3,2,16]", 1);
    scales(b, "s", "float[6]", 2);
    bytes(b, "z", "uint8[3]", 3);
    floats(b, "k", 0, 3, 4);
    blocks(b, 40, 4, 32);
}

/* Three blocks: with 4 bits, rows of zero points end within a byte. */
static void odd_blocks(qsim_builder *b) {
    bytes(b, "w", "uint8[3,3,8]", 1);
    scales(b, "s", "float[9]", 2);
    bytes(b, "z", "uint8[3,2]", 3);
    blocks(b, 48, 4, 16);
}

static void eight_bits(qsim_builder *b) {
    bytes(b, "w", "uint8[3,2,32]", 1);
    scales(b, "s", "float[6]", 2);
    blocks(b, 64, 8, 32);
}

static void two_bits(qsim_builder *b) {
    bytes(b, "w", "uint8[3,1,8]", 1);
    scales(b, "s", "float[3]", 2);
    blocks(b, 32, 2, 32);
}

static void negative(qsim_builder *b) {
    static const float scale[3] = {0.1f, -0.1f, 0.2f};
    bytes(b, "w", "uint8[3,1,32]", 1);
    CHECK_INT(qsim_builder_constant_as(b, "s", "float[3]", scale), QSIM_OK);
    blocks(b, 32, 8, 32);
}

static void table(qsim_builder *b) {
    bytes(b, "w", "uint8[6,24]", 1);
    scales(b, "s", "float[6,3]", 2);
    bytes(b, "z", "uint8[6,2]", 3);
    qsim_builder_attr_int(b, "block_size", 16);
}

static void table_of_4_bits(qsim_builder *b) {
    bytes(b, "w", "int4[4,2,32]", 1);
    scales(b, "s", "float[4,2,2]", 2);
    qsim_builder_attr_int(b, "quantize_axis", 2);
    qsim_builder_attr_int(b, "block_size", 16);
}

static void heads(qsim_builder *b) {
    qsim_builder_attr_int(b, "num_heads", 2);
    qsim_builder_attr_int(b, "unidirectional", 1);
}

static void padded(qsim_builder *b) {
    static const int32_t lengths[2] = {2, 3};
    CHECK_INT(qsim_builder_constant_as(b, "m", "int32[2]", lengths), QSIM_OK);
    qsim_builder_attr_int(b, "num_heads", 2);
}

static void attention(qsim_builder *b) {
    floats(b, "w", 8, 24, 1);
    floats(b, "k", 0, 24, 2);
    qsim_builder_attr_int(b, "num_heads", 2);
}

static void rotary(qsim_builder *b) {
    static const int64_t at[3] = {0, 2, 1};
    CHECK_INT(qsim_builder_constant_as(b, "p", "int64[1,3]", at), QSIM_OK);
    floats(b, "c", 4, 2, 1);
    floats(b, "s", 4, 2, 2);
    qsim_builder_attr_int(b, "interleaved", 1);
}

static void words(qsim_builder *b) {
    static const int32_t ids[6] = {0, 3, 1, 2, 2, 0};
    CHECK_INT(qsim_builder_constant_as(b, "i", "int32[2,3]", ids), QSIM_OK);
    floats(b, "w", 4, 8, 1);
    floats(b, "p", 5, 8, 2);
    floats(b, "g", 0, 8, 3);
    floats(b, "h", 0, 8, 4);
}

static void groups(qsim_builder *b) {
    floats(b, "g", 0, 4, 1);
    floats(b, "h", 0, 4, 2);
    qsim_builder_attr_int(b, "groups", 2);
    qsim_builder_attr_int(b, "activation", 1);
}

static void sample(qsim_builder *b) {
    qsim_builder_attr_string(b, "mode", "bilinear");
}

static void pool(qsim_builder *b) {
    qsim_builder_attr_ints(b, "kernel_shape", (int64_t[]){2, 2}, 2);
}

static void wide(qsim_builder *b) {
    static const float scale = 0.001f;
    static const uint16_t zero = 30000;
    CHECK_INT(qsim_builder_constant_as(b, "s", "float[]", &scale), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "z", "uint16[]", &zero), QSIM_OK);
}

static void dynamic(qsim_builder *b) {
    bytes(b, "w", "int8[8,5]", 1);
    scales(b, "s", "float[5]", 2);
    bytes(b, "z", "int8[5]", 3);
    floats(b, "k", 0, 5, 4);
}

static void lstm(qsim_builder *b) {
    bytes(b, "w", "int8[1,6,12]", 1);
    bytes(b, "r", "int8[1,3,12]", 2);
    scales(b, "s", "float[1]", 3);
    floats(b, "k", 1, 24, 4);
    qsim_builder_attr_int(b, "hidden_size", 3);
}

static void lstm_both(qsim_builder *b) {
    bytes(b, "w", "int8[2,6,12]", 1);
    bytes(b, "r", "int8[2,3,12]", 2);
    scales(b, "s", "float[2]", 3);
    bytes(b, "z", "int8[2]", 4);
    qsim_builder_attr_int(b, "hidden_size", 3);
    qsim_builder_attr_string(b, "direction", "bidirectional");
}

static void lstm_columns(qsim_builder *b) {
    bytes(b, "w", "uint8[1,6,12]", 1);
    bytes(b, "r", "uint8[1,3,12]", 2);
    scales(b, "s", "float[1,12]", 3);
    bytes(b, "z", "uint8[1,12]", 4);
    qsim_builder_attr_int(b, "hidden_size", 3);
}

static const one cases[] = {
    {"SkipLayerNormalization", "x,v,g,h,k", "y,,,s", "float[2,3,8]", skip, 17, 17,
     "LayerNormalization", 0},
    {"SkipLayerNormalization", "x,v,g", "y", "float[2,3,8]", skip, 13, 13, "ReduceMean", 1e-6},
    {"SkipSimplifiedLayerNormalization", "x,v,g,h", "y,,,s", "float[2,3,8]", skip, 13, 13, "Sqrt",
     1e-6},
    {"FusedMatMul", "x,w", "y", "float[3,8]", product, 13, 13, "MatMul", 1e-6},
    {"BiasGelu", "x,w", "y", "float[3,8]", bias, 13, 13, "Erf", 1e-6},
    {"FastGelu", "x,w", "y", "float[3,8]", bias, 13, 13, "Tanh", 1e-6},
    {"QuickGelu", "x", "y", "float[3,8]", no_more, 13, 13, "Sigmoid", 1e-6},
    {"QLinearAdd", "x,s,z,v,t,o,s,z", "y", "uint8[3,8]", sum, 13, 13, "DequantizeLinear", 0},
    {"MatMulNBits", "x,w,s,z,,k", "y", "float[5,40]", four_bits, 13, 21, "Slice", 1e-6},
    {"MatMulNBits", "x,w,s,z", "y", "float[5,48]", odd_blocks, 22, 22, "MatMul", 1e-6},
    {"MatMulNBits", "x,w,s", "y", "float[5,64]", eight_bits, 13, 21, "MatMul", 1e-6},
    {"MatMulNBits", "x,w,s", "y", "float[5,32]", two_bits, 13, 25, "MatMul", 1e-6},
    {"MatMulNBits", "x,w,s", "y", "float[5,32]", negative, 13, 21, "MatMul", 1e-6},
    {"GatherBlockQuantized", "w,x,s,z", "y", "int64[4]", table, 13, 21, "Gather", 0},
    {"GatherBlockQuantized", "w,x,s", "y", "int64[4]", table_of_4_bits, 13, 21, "Reshape", 0},
    {"MultiHeadAttention", "x,v,u", "y", "float[2,3,8]", heads, 17, 23, "Attention", 0},
    {"MultiHeadAttention", "x,v,u,,m", "y", "float[2,3,8]", padded, 17, 23, "Expand", 0},
    {"Attention", "x,w,k", "y", "float[2,3,8]", attention, 13, 23, "Attention", 0},
    {"RotaryEmbedding", "x,p,c,s", "y", "float[1,2,3,4]", rotary, 13, 23, "RotaryEmbedding", 0},
    {"EmbedLayerNormalization", "i,,w,p,,g,h", "y,", "", words, 13, 13, "Gather", 1e-6},
    {"GroupNorm", "x,g,h", "y", "float[2,3,3,4]", groups, 13, 21, "GroupNormalization", 0},
    {"GridSample", "x,v", "y", "float[1,2,4,2]", sample, 13, 17, "GridSample", 0},
    {"GridSample", "x,v", "y", "float[1,2,4,2]", sample, 20, 20, "GridSample", 0},
    {"Trilu", "x", "y", "float[3,4]", no_more, 13, 17, "Trilu", 0},
    {"NhwcMaxPool", "x", "y", "uint8[1,3,4,2]", pool, 13, 13, "MaxPool", 0},
    {"QuantizeLinear", "x,s,z", "y", "float[3,4]", wide, 13, 21, "QuantizeLinear", 0},
    {"DynamicQuantizeMatMul", "x,w,s,z,k", "y", "float[3,8]", dynamic, 13, 13, "MatMulInteger", 0},
    {"DynamicQuantizeLSTM", "x,w,r,k,,,,,s,,s", "y", "float[4,2,6]", lstm, 13, 13, "LSTM", 0.03},
    {"DynamicQuantizeLSTM", "x,w,r,,,,,,s,z,s,z", "y", "float[4,2,6]", lstm_both, 13, 13, "LSTM",
     0.03},
    {"DynamicQuantizeLSTM", "x,w,r,,,,,,s,z,s,z", "y", "float[4,2,6]", lstm_columns, 13, 13, "LSTM",
     0.03},
};

static qsim_model *build(const one *c) {
    static const char *const names[] = {"x", "v", "u"};
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, c->opset, "one", &b, NULL), QSIM_OK);
    qsim_builder_import(b, "com.microsoft", 1);
    for (int i = 0; i < 3; i++) /* names of inputs are single letters */
        for (const char *at = c->inputs; *c->types && *at; at++)
            if (*at == names[i][0]) {
                qsim_builder_input_as(b, names[i], c->types);
                break;
            }
    qsim_builder_node(b, "com.microsoft", c->op, "node", c->inputs, c->outputs);
    c->fill(b);
    qsim_builder_output_as(b, "y", NULL);
    if (strchr(c->outputs, 's'))
        qsim_builder_output_as(b, "s", NULL);
    return net_finish(b);
}

/* ---- results ---- */

enum { SLOTS = 4, ROOM = 4096 };

typedef struct results {
    qsim_tensor outputs[SLOTS];
    uint8_t data[SLOTS][ROOM];
} results;

static void fill(const qsim_value_info *v, uint8_t *data, uint64_t seed) {
    for (size_t i = 0; i < ROOM / 8; i++) {
        const float f = (float)(test_random(&seed) % 1000) / 500 - 1;
        const int64_t index = (int64_t)(test_random(&seed) % 4);
        if (v->dtype == QSIM_FLOAT)
            memcpy(data + 4 * i, &f, 4);
        else if (v->dtype == QSIM_INT64)
            memcpy(data + 8 * i, &index, 8);
        else
            data[i] = (uint8_t)(test_random(&seed) >> 8);
    }
}

static void run(const qsim_model *m, results *r) {
    static uint8_t data[SLOTS][ROOM];
    const int32_t inputs = qsim_model_input_count(m), outputs = qsim_model_output_count(m);
    qsim_session *s = NULL;
    qsim_run *run = NULL;
    qsim_tensor in[SLOTS];
    qsim_error e = {0};
    memset(r, 0, sizeof(*r));
    for (int32_t i = 0; i < inputs; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_input(m, i, &v), QSIM_OK);
        fill(&v, data[i], 7 + (uint64_t)i);
        size_t n = 0;
        CHECK_INT(qsim_tensor_size(v.dtype, v.rank, v.dims, NULL, &n), QSIM_OK);
        in[i] = (qsim_tensor){v.dtype, v.rank, v.dims, data[i], n};
    }
    if (qsim_session_create(m, NULL, &s, &e) || qsim_run_create(s, &run, &e) ||
        qsim_run_execute(run, in, (size_t)inputs, r->outputs, (size_t)outputs, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK_INT(e.code, QSIM_OK);
    for (int32_t i = 0; i < outputs && !e.code; i++) {
        CHECK(r->outputs[i].bytes <= ROOM);
        memcpy(r->data[i], r->outputs[i].data, r->outputs[i].bytes);
    }
    qsim_run_free(run);
    qsim_session_free(s);
}

static bool near(const results *a, const results *b, int32_t i, double within) {
    const size_t bytes = a->outputs[i].bytes;
    double most = 0, worst = 0;
    if (b->outputs[i].bytes != bytes || bytes == 0)
        return false;
    if (within == 0)
        return memcmp(a->data[i], b->data[i], bytes) == 0;
    for (size_t k = 0; k < bytes / 4; k++) {
        float x, y;
        memcpy(&x, a->data[i] + 4 * k, 4);
        memcpy(&y, b->data[i] + 4 * k, 4);
        most = fmax(most, fabs((double)x));
        worst = fmax(worst, fabs((double)x - (double)y));
    }
    return worst <= within * most;
}

/* ---- tests ---- */

static void check_case(const one *c) {
    static results before, after;
    qsim_model *m = build(c), *made = net_convert(m, QSIM_FORMAT_ONNX);
    qsim_node_info n;
    const long failed = test_failures;
    for (int32_t i = 0; made && i < qsim_model_node_count(made); i++) {
        n = (qsim_node_info){.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(made, i, &n), QSIM_OK);
        CHECK_STR(n.domain, "");
    }
    if (made) {
        CHECK_INT(qsim_model_opset(made, ""), c->made);
        CHECK_INT(qsim_model_opset(made, "com.microsoft"), 0);
        CHECK(net_find(made, c->has, NULL, &n));
        run(m, &before);
        run(made, &after);
        for (int32_t i = 0; i < qsim_model_output_count(m); i++)
            CHECK(near(&before, &after, i, c->within));
    }
    if (test_failures != failed)
        fprintf(stderr, "  %s, opset %d\n", c->op, (int)c->opset);
    qsim_model_free(m);
    qsim_model_free(made);
}

/* Experimental operators of early opsets are in none that files are written in. */
static void test_experiment(void) {
    static results before, after;
    qsim_node_info n;
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 7, "one", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[2,3]");
    qsim_builder_node(b, "", "ScaledTanh", "node", "x", "y");
    qsim_builder_attr_float(b, "alpha", 2);
    qsim_builder_attr_float(b, "beta", 0.5f);
    qsim_builder_output_as(b, "y", NULL);
    qsim_model *m = net_finish(b), *made = net_convert(m, QSIM_FORMAT_ONNX);
    CHECK(made && !net_find(made, "ScaledTanh", NULL, &n) && net_find(made, "Tanh", NULL, &n));
    run(m, &before);
    run(made, &after);
    CHECK(near(&before, &after, 0, 0));
    qsim_model_free(m);
    qsim_model_free(made);
}

/* What needs no conversion stays as it is, of any opset from 13 on. */
static void test_kept(void) {
    qsim_model *m = net_lenet(), *made = net_convert(m, QSIM_FORMAT_ONNX);
    CHECK(net_same_bytes(m, made));
    qsim_model_free(m);
    qsim_model_free(made);
}

static void groups_of_inputs(qsim_builder *b) {
    static const int32_t order[32] = {0};
    static const float scale[3] = {0.1f, 0.1f, 0.2f};
    bytes(b, "w", "uint8[3,1,16]", 1);
    CHECK_INT(qsim_builder_constant_as(b, "s", "float[3]", scale), QSIM_OK);
    CHECK_INT(qsim_builder_constant_as(b, "i", "int32[32]", order), QSIM_OK);
    blocks(b, 32, 4, 32);
}

static void test_refused(void) {
    const one model = {"MatMulNBits", "x,w,s,,i", "y", "float[5,32]", groups_of_inputs, 13, 0,
                       NULL,          0};
    qsim_model *m = build(&model), *made = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_convert_to(m, QSIM_FORMAT_ONNX, &made, &e), QSIM_E_UNSUPPORTED);
    CHECK_STR(e.message, "one: cannot be converted: no operators of ONNX replace it (node 'node', "
                         "MatMulNBits)");
    qsim_model_free(m);
}

int main(void) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        check_case(&cases[i]);
    test_experiment();
    test_kept();
    test_refused();
    return test_done();
}
