/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a list of calls: a builder's, with any operator, name and attribute,
 * then every function that reads, transforms, saves or executes the model, with any index.
 */
#include <string.h>

#include <qsim/qsim.h>

#include "fuzz.h"

static const char *const names[] = {"x",     "y",   "z",   "w",   "b",   "k",   "x,w",
                                    "x,w,b", "x,k", "y,w", "z,b", "x,y", "y,z", "w,w",
                                    "x,,b",  "",    ",",   "a b", "\xff"};
static const char *const types[] = {"float[N,4]",
                                    "float[2,3,4]",
                                    "float[1,2,6,6]",
                                    "int8[4]",
                                    "float",
                                    "int64[2]",
                                    "float[]",
                                    "uint8[N,2,5,5]",
                                    "float[",
                                    "bool[2]",
                                    "string[1]",
                                    "float[-1]",
                                    "float[9999999999999999999]",
                                    ""};
static const char *const operators[] = {"Conv",
                                        "Gemm",
                                        "MatMul",
                                        "Add",
                                        "Mul",
                                        "Sub",
                                        "Div",
                                        "Relu",
                                        "Sigmoid",
                                        "Softmax",
                                        "Reshape",
                                        "Transpose",
                                        "Concat",
                                        "Slice",
                                        "Gather",
                                        "MaxPool",
                                        "AveragePool",
                                        "GlobalAveragePool",
                                        "Flatten",
                                        "BatchNormalization",
                                        "Clip",
                                        "Pad",
                                        "Resize",
                                        "Split",
                                        "Squeeze",
                                        "Unsqueeze",
                                        "ReduceMean",
                                        "ReduceSum",
                                        "Cast",
                                        "Shape",
                                        "Expand",
                                        "Tile",
                                        "Where",
                                        "Pow",
                                        "Einsum",
                                        "LSTM",
                                        "GRU",
                                        "TopK",
                                        "ArgMax",
                                        "QuantizeLinear",
                                        "DequantizeLinear",
                                        "QLinearConv",
                                        "QLinearMatMul",
                                        "MatMulInteger",
                                        "ConvInteger",
                                        "DynamicQuantizeLinear",
                                        "LayerNormalization",
                                        "Attention",
                                        "If",
                                        "Loop",
                                        "Scan",
                                        "ConvTranspose",
                                        "DepthToSpace",
                                        "SpaceToDepth",
                                        "InstanceNormalization",
                                        "CumSum",
                                        "NonZero",
                                        "Range",
                                        "ConstantOfShape",
                                        "Identity",
                                        "Dropout",
                                        "OneHot",
                                        "ScatterND",
                                        "GatherND",
                                        "Nothing",
                                        ""};
static const char *const attributes[] = {
    "axis",      "axes",  "perm",        "pads",        "strides",   "kernel_shape",
    "dilations", "group", "to",          "alpha",       "beta",      "epsilon",
    "keepdims",  "mode",  "equation",    "auto_pad",    "blocksize", "transA",
    "transB",    "value", "num_outputs", "hidden_size", "direction", "block_size",
    "start",     "end",   "largest",     "k",           "p",         ""};
static const char *const words[] = {"SAME_UPPER", "VALID",         "ij,jk->ik", "linear", "nearest",
                                    "DCR",        "bidirectional", "constant",  "edge",   "",
                                    "ii",         "a...,b->..."};

#define PICK(b, list) list[fuzz_below(b, sizeof(list) / sizeof(list[0]))]

static size_t take_sizes(fuzz_bytes *b, int64_t *v) {
    const size_t n = fuzz_below(b, 5);
    for (size_t i = 0; i < n; i++)
        v[i] = fuzz_number(b);
    return n;
}

/* Adds a constant with memory of exactly its size. */
static void constant(qsim_builder *q, fuzz_bytes *b, const char *name, bool is_attribute) {
    int64_t dims[5] = {0};
    const int32_t rank = (int32_t)take_sizes(b, dims);
    qsim_tensor t = {(int32_t)fuzz_below(b, 28), rank, dims, NULL, 0};
    if (qsim_tensor_size(t.dtype, rank, dims, NULL, &t.bytes) || t.bytes > 1u << 14)
        t.bytes = fuzz_below(b, 64);
    uint8_t *p = t.data = malloc(t.bytes ? t.bytes : 1);
    for (size_t i = 0; p && i < t.bytes; i++)
        p[i] = fuzz_byte(b);
    if (p)
        fuzz_legal(is_attribute ? qsim_builder_attr_tensor(q, name, &t)
                                : qsim_builder_constant(q, name, &t));
    free(p);
}

static void attribute(qsim_builder *q, fuzz_bytes *b) {
    const char *name = PICK(b, attributes);
    int64_t v[5] = {0};
    const float reals[] = {0.5f, -1.0f, 1e30f};
    size_t n;
    const char *texts[3];
    for (size_t i = 0; i < 3; i++)
        texts[i] = PICK(b, words);
    switch (fuzz_below(b, 7)) {
    case 0: fuzz_legal(qsim_builder_attr_int(q, name, fuzz_number(b))); break;
    case 1: fuzz_legal(qsim_builder_attr_float(q, name, PICK(b, reals))); break;
    case 2: fuzz_legal(qsim_builder_attr_string(q, name, PICK(b, words))); break;
    case 3: fuzz_legal(qsim_builder_attr_floats(q, name, reals, fuzz_below(b, 4))); break;
    case 4: constant(q, b, name, true); break;
    case 5: fuzz_legal(qsim_builder_attr_strings(q, name, texts, fuzz_below(b, 4))); break;
    default: n = take_sizes(b, v); fuzz_legal(qsim_builder_attr_ints(q, name, v, n));
    }
}

static void build_one(qsim_builder *q, fuzz_bytes *b) {
    static const float zeros[128];
    int64_t dims[5] = {0};
    const char *name = PICK(b, names);
    int32_t rank;
    switch (fuzz_below(b, 9)) {
    case 0: fuzz_legal(qsim_builder_input_as(q, name, PICK(b, types))); break;
    case 1:
        fuzz_legal(qsim_builder_output_as(q, name, fuzz_byte(b) % 2 ? NULL : PICK(b, types)));
        break;
    case 2: constant(q, b, name, false); break;
    case 3:
        fuzz_legal(
            qsim_builder_constant_as(q, name, fuzz_byte(b) % 2 ? "float[4,4]" : "int64[2]", zeros));
        break;
    case 4:
        rank = (int32_t)take_sizes(b, dims);
        fuzz_legal(qsim_builder_input(q, name, (int32_t)fuzz_below(b, 28), rank, dims, NULL));
        break;
    case 5: fuzz_legal(qsim_builder_metadata(q, name, PICK(b, words))); break;
    case 6:
        fuzz_legal(qsim_builder_import(q, fuzz_byte(b) % 2 ? "com.microsoft" : PICK(b, words),
                                       (int32_t)fuzz_number(b)));
        break;
    default:
        fuzz_legal(qsim_builder_node(q, fuzz_byte(b) > 240 ? "com.microsoft" : "",
                                     PICK(b, operators), "", PICK(b, names), PICK(b, names)));
        for (size_t k = fuzz_below(b, 4); k > 0; k--)
            attribute(q, b);
    }
}

static void look(const qsim_model *m, fuzz_bytes *b) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_node_info n = {.struct_size = sizeof(n)};
    qsim_attr_info a = {.struct_size = sizeof(a)};
    const int32_t i = (int32_t)fuzz_number(b);
    char hex[65];
    fuzz_legal(qsim_model_value(m, i, &v));
    fuzz_legal(qsim_model_node(m, i, &n));
    fuzz_legal(qsim_model_attr(m, i, 0, &a));
    fuzz_legal(qsim_model_attr(m, 0, i, &a));
    fuzz_legal(qsim_model_input(m, i, &v));
    fuzz_legal(qsim_model_output(m, i, &v));
    fuzz_legal(qsim_model_hash(m, hex));
    fuzz_legal(qsim_model_check(m, NULL, NULL));
    (void)qsim_model_metadata_key(m, i);
    (void)qsim_model_metadata_value(m, i);
    (void)qsim_model_opset(m, PICK(b, words));
    (void)qsim_model_bytes(m);
    (void)qsim_model_parameters(m);
}

/* Checks that the saved model loads. */
static void reload(qsim_ctx *ctx, const fuzz_heap *heap, const qsim_model *m) {
    qsim_model *again = NULL;
    size_t need = 0;
    if (fuzz_legal(qsim_model_save_memory(m, NULL, 0, &need, NULL)) || need > 1u << 22)
        return;
    uint8_t *bytes = malloc(need);
    if (bytes && qsim_model_save_memory(m, bytes, need, &need, NULL) == QSIM_OK)
        fuzz_must(heap, qsim_model_load_memory(ctx, bytes, need, NULL, &again, NULL) == QSIM_OK);
    qsim_model_free(again);
    free(bytes);
}

/* Executes on inputs with sizes of 1 for free axes. */
static void execute(const qsim_model *m, int32_t level) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_tensor x[2], y[4] = {{0}};
    int64_t dims[2][QSIM_MAX_RANK];
    static float zeros[4096];
    const int32_t n = qsim_model_input_count(m), outputs = qsim_model_output_count(m);
    bool fits = n <= 2 && outputs <= 4;
    for (int32_t i = 0; fits && i < n; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        fits = qsim_model_input(m, i, &v) == QSIM_OK && v.rank >= 0;
        for (int32_t d = 0; fits && d < v.rank; d++)
            dims[i][d] = v.dims[d] < 0 ? 1 : v.dims[d];
        x[i] = (qsim_tensor){v.dtype, v.rank, dims[i], zeros, 0};
        fits = fits && qsim_tensor_size(v.dtype, v.rank, dims[i], NULL, &x[i].bytes) == QSIM_OK &&
               x[i].bytes <= sizeof(zeros);
    }
    if (fits && fuzz_legal(qsim_session_create(m, &o, &s, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_run_create(s, &r, NULL)) == QSIM_OK)
        fuzz_legal(qsim_run_execute(r, x, (size_t)n, y, (size_t)outputs, NULL));
    (void)qsim_run_step_count(r);
    qsim_run_free(r);
    qsim_session_free(s);
}

static void use(qsim_ctx *ctx, const fuzz_heap *heap, qsim_model *m, fuzz_bytes *b) {
    qsim_model *made = NULL;
    look(m, b);
    reload(ctx, heap, m);
    execute(m, QSIM_LEVEL_DISABLE);
    execute(m, QSIM_LEVEL_ALL);
    if (fuzz_legal(qsim_model_optimize(m, (int32_t)fuzz_below(b, 6), &made, NULL)) == QSIM_OK) {
        reload(ctx, heap, made);
        execute(made, QSIM_LEVEL_ALL);
    }
    qsim_model_free(made);
    if (fuzz_legal(qsim_model_convert_to(m, (int32_t)fuzz_below(b, 5), &made, NULL)) == QSIM_OK)
        execute(made, QSIM_LEVEL_ALL);
    qsim_model_free(made);
    if (fuzz_legal(qsim_model_upgrade(m, 13 + (int32_t)fuzz_below(b, 16), &made, NULL)) == QSIM_OK)
        reload(ctx, heap, made);
    qsim_model_free(made);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    static const int32_t opsets[] = {13, 21, 11, 9, 17, 25, 8, 1, 0, 99};
    fuzz_bytes b = {data, size};
    qsim_builder *q = NULL;
    qsim_model *m = NULL;
    if (fuzz_legal(qsim_builder_create(ctx, PICK(&b, opsets), "g", &q, NULL)) != QSIM_OK)
        return;
    for (size_t k = 3 + fuzz_below(&b, 30); k > 0 && b.left > 0; k--)
        build_one(q, &b);
    if (fuzz_legal(qsim_builder_finish(q, &m, NULL)) == QSIM_OK)
        use(ctx, heap, m, &b);
    qsim_model_free(m);
    qsim_builder_free(q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}

/* y = MatMul(x, w); softmax of its Relu; y = Conv(x, w). Each call: name, kind, arguments. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const uint8_t seeds[][40] = {
        {0, 1, 0, 0, 0, 3, 3, 1, 0, 7, 0, 2, 6, 1, 0, 1, 1, 1},
        {0, 3, 0, 0, 0, 3, 3, 1, 0, 7, 0, 2, 6, 1, 0, 0, 7, 0,
         7, 1, 2, 0, 0, 7, 0, 9, 2, 4, 1, 0, 0, 1, 4, 1, 1},
        {1,  1, 0, 0, 2,  3, 2, 4, 1, 2, 1, 1, 1, 0, 0, 0,
         63, 0, 0, 0, 64, 0, 7, 0, 0, 6, 1, 0, 1, 1, 1},
    };
    if (index >= sizeof(seeds) / sizeof(seeds[0]) || capacity < sizeof(seeds[0]))
        return 0;
    for (size_t i = 0; i < sizeof(seeds[0]); i++)
        buffer[i] = seeds[index][i];
    return sizeof(seeds[0]);
}
