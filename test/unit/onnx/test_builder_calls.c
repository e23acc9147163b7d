/* SPDX-License-Identifier: MIT */
/*
 * Every call of a builder: without a builder, after an error, after the model was handed out, with
 * wrong arguments, and with each allocation refused.
 */
#include "heap.h"
#include "test.h"

#include "onnx/builder_text.h"
#include "op/op.h"

#include <qsim/model.h>

static const int64_t two = 2;
static const float numbers[2] = {1, 2};
static char long_name[2000];

/* One call with legal arguments; `call` counts from 0. */
static int legal(qsim_builder *b, int call) {
    const qsim_tensor t = {QSIM_FLOAT, 1, &two, (void *)(uintptr_t)numbers, sizeof(numbers)};
    static const char *const symbols[] = {"N"};
    static const int64_t open = -1;
    switch (call) {
    case 0: return qsim_builder_input(b, "a", QSIM_FLOAT, 1, &open, symbols);
    case 1: return qsim_builder_input_as(b, "b", "float[2]");
    case 2: return qsim_builder_constant(b, "c", &t);
    case 3: return qsim_builder_constant_as(b, "d", "float[2]", numbers);
    case 4: return qsim_builder_node(b, "ai.onnx", "Add", "add", "b,c", "e");
    case 5: return qsim_builder_node(b, NULL, "Constant", NULL, "", "f");
    case 6: return qsim_builder_attr_tensor(b, "value", &t);
    case 7: return qsim_builder_node(b, "", "LeakyRelu", "", "e", "g");
    case 8: return qsim_builder_attr_float(b, "alpha", 0.5f);
    case 9: return qsim_builder_node(b, "", "Constant", "", "", "h");
    case 10: return qsim_builder_attr_floats(b, "value_floats", numbers, 2);
    case 11: return qsim_builder_node(b, "", "Transpose", "", "g", "i");
    case 12: return qsim_builder_attr_ints(b, "perm", &(int64_t){0}, 1);
    case 13: return qsim_builder_node(b, "", "Cast", "", "i", "j");
    case 14: return qsim_builder_attr_int(b, "to", QSIM_FLOAT);
    case 15: return qsim_builder_output(b, "k", QSIM_FLOAT, 1, &two, NULL); /* of the next node */
    case 16: return qsim_builder_node(b, "com.microsoft", "Gelu", "", "j", "k");
    case 17: return qsim_builder_import(b, "com.microsoft", 1);
    case 18: return qsim_builder_import(b, "ai.onnx", 13);
    case 19: return qsim_builder_metadata(b, "key", "value");
    case 20: return qsim_builder_output_as(b, "g", "float[2]");
    case 21: return qsim_builder_output_as(b, "f", NULL);
    case 22:
        return qsim_builder_attr_strings(b, "words", (const char *const[]){"one", "", "two"}, 3);
    default: return qsim_builder_attr_string(b, "word", "value");
    }
}
#define CALLS 22
#define MOST  24 /* with two that the model would not have */

/* One call for a value with wrong arguments after some legal ones; `call` counts from 0. */
static int wrong_value(qsim_builder *b, int call) {
    const qsim_tensor small = {QSIM_FLOAT, 1, &two, (void *)(uintptr_t)numbers, 4},
                      empty = {QSIM_FLOAT, 1, &two, NULL, 8};
    const int64_t open = -1;
    const char *const no_text[] = {"\xff"};
    switch (call) {
    case 0: return qsim_builder_import(b, "qsim", 1);
    case 1: return qsim_builder_import(b, "\xff", 1);
    case 2: return qsim_builder_import(b, "a", 0);
    case 3: return qsim_builder_import(b, "ai.onnx", 1000); /* which loading refuses, too */
    case 4: return qsim_builder_input(b, "x", QSIM_FLOAT, -2, &two, NULL);
    case 5: return qsim_builder_input(b, "x", QSIM_FLOAT, QSIM_MAX_RANK + 1, &two, NULL);
    case 6: return qsim_builder_input(b, "x", QSIM_FLOAT, 1, NULL, NULL);
    case 7: return qsim_builder_input(b, "x", -1, 1, &two, NULL);
    case 8: return qsim_builder_input(b, "x", 99, 1, &two, NULL);
    case 9: return qsim_builder_input(b, "x", QSIM_UNDEFINED, 1, &two, NULL);
    case 10: return qsim_builder_input(b, "b", QSIM_FLOAT, 1, &open, NULL); /* a second time */
    case 11: return qsim_builder_input(b, "x", QSIM_FLOAT, 1, &open, no_text);
    case 12: return qsim_builder_input(b, NULL, QSIM_FLOAT, 1, &two, NULL);
    case 13: return qsim_builder_input(b, "", QSIM_FLOAT, 1, &two, NULL);
    case 14: return qsim_builder_output(b, "", QSIM_FLOAT, 1, &two, NULL);
    case 15: return qsim_builder_output(b, "\xff", QSIM_FLOAT, 1, &two, NULL);
    case 16: return qsim_builder_output(b, "y", 99, 1, &two, NULL);
    case 17: return qsim_builder_output(b, "y", QSIM_FLOAT, 1, &two, NULL); /* made by none */
    case 18: return qsim_builder_input_as(b, "x", NULL);
    case 19: return qsim_builder_output_as(b, "y", "float[");
    case 20: return qsim_builder_output_as(b, NULL, NULL);
    case 21: return qsim_builder_constant(b, "w", NULL);
    case 22: return qsim_builder_constant(b, "w", &small);
    case 23: return qsim_builder_constant(b, "w", &empty);
    case 24: return qsim_builder_constant(b, "", &small);
    case 25: return qsim_builder_constant(b, "\xff", &small);
    case 26: return qsim_builder_constant_as(b, "w", "float[4611686018427387905,4]", numbers);
    case 27: return qsim_builder_constant_as(b, "w", "float", numbers);
    case 28: return qsim_builder_constant_as(b, "w", "float[N]", numbers);
    default: return qsim_builder_constant_as(b, "c", "float[2]", numbers); /* a second time */
    }
}

/* One for a node, from 30 on. */
static int wrong_node(qsim_builder *b, int call) {
    const qsim_tensor small = {QSIM_FLOAT, 1, &two, (void *)(uintptr_t)numbers, 4};
    switch (call) {
    case 30: return qsim_builder_node(b, "qsim", "Relu", "", "b", "z");
    case 31: return qsim_builder_node(b, "\xff", "Relu", "", "b", "z");
    case 32: return qsim_builder_node(b, "", "", "", "b", "z");
    case 33: return qsim_builder_node(b, "", "\xff", "", "b", "z");
    case 34: return qsim_builder_node(b, "", "Relu", "\xff", "b", "z");
    case 35: return qsim_builder_node(b, "", "Relu", "", "\xff", "z");
    case 36: return qsim_builder_node(b, "", "Relu", "", "b", "\xff");
    case 37: return qsim_builder_node(b, "", NULL, "", "b", "z");
    case 38: return qsim_builder_node(b, "", "Relu", "", NULL, "z");
    case 39: return qsim_builder_node(b, "", "Relu", "", "b", NULL);
    case 40: return qsim_builder_node(b, "", "Relu", "", long_name, "z");
    case 41: return qsim_builder_node(b, "", "Relu", "", "b", "e"); /* which Add makes */
    case 42: return qsim_builder_attr_int(b, "", 1);
    case 43: return qsim_builder_attr_int(b, NULL, 1);
    case 44: return qsim_builder_attr_string(b, "s", NULL);
    case 45: return qsim_builder_attr_ints(b, "s", NULL, 1);
    case 46: return qsim_builder_attr_ints(b, "s", &two, SIZE_MAX);
    case 47: return qsim_builder_attr_floats(b, "s", NULL, 1);
    case 48: return qsim_builder_attr_tensor(b, "s", NULL);
    case 49: return qsim_builder_attr_tensor(b, "s", &small);
    case 50: return qsim_builder_metadata(b, NULL, "value");
    case 51: return qsim_builder_metadata(b, "key", NULL);
    case 52: return qsim_builder_metadata(b, "key", "\xff");
    case 53: return qsim_builder_attr_strings(b, "s", NULL, 1);
    case 54: return qsim_builder_attr_strings(b, "s", (const char *const[]){"a", NULL}, 2);
    case 55: return qsim_builder_attr_strings(b, NULL, NULL, 0);
    case 56: return qsim_builder_input_as(b, "x", "float[4611686018427387904]");
    default: return qsim_builder_output_as(b, "y", "int4[N,4611686018427387904,16]");
    }
}

/* What each of them is refused with, by itself and when the model is finished. */
static const struct {
    int first, last, code;
    const char *part;
} refusals[] = {
    {0, 0, QSIM_E_UNSUPPORTED, "g: 'qsim' is not for models"},
    {1, 2, QSIM_E_ARGUMENT, "import without domain or version"},
    {3, 3, QSIM_E_UNSUPPORTED, "g: 'ai.onnx' has no such opset"},
    {4, 8, QSIM_E_ARGUMENT, "g: 'x' has no such type or rank"},
    {9, 9, QSIM_E_ARGUMENT, "an input without name or type"},
    {10, 10, QSIM_E_GRAPH, "g: 'b' is defined twice"},
    {11, 11, QSIM_E_ARGUMENT, "g: 'x' has a symbol that is not UTF-8"},
    {12, 13, QSIM_E_ARGUMENT, "an input without name or type"},
    {14, 15, QSIM_E_ARGUMENT, "an output without name"},
    {16, 16, QSIM_E_ARGUMENT, "g: 'y' has no such type or rank"},
    {17, 17, QSIM_E_GRAPH, "g: 'y' is an output that no node makes"},
    {18, 18, QSIM_E_ARGUMENT, "g: 'x' has no type such as float[N,64]: ''"},
    {19, 19, QSIM_E_ARGUMENT, "g: 'y' has no type such as float[N,64]: 'float['"},
    {20, 20, QSIM_E_ARGUMENT, "an output without name"},
    {21, 21, QSIM_E_ARGUMENT, "g: 'w' has no tensor"},
    {22, 23, QSIM_E_ARGUMENT, "g: 'w' has other bytes than its shape says"},
    {24, 25, QSIM_E_ARGUMENT, "a constant without name"},
    {26, 28, QSIM_E_ARGUMENT, "g: 'w' has no type such as float[N,64]: 'float"},
    {29, 29, QSIM_E_GRAPH, "g: 'c' is defined twice"},
    {30, 30, QSIM_E_UNSUPPORTED, "g: 'qsim' is not for models"},
    {31, 39, QSIM_E_ARGUMENT, "a node without operator or names"},
    {40, 40, QSIM_E_ARGUMENT, "a name is over 1023 bytes"},
    {41, 41, QSIM_E_GRAPH, "g: 'e' is written twice"},
    {42, 43, QSIM_E_ARGUMENT, "an attribute without name"},
    {44, 44, QSIM_E_ARGUMENT, "a string attribute without value"},
    {45, 47, QSIM_E_ARGUMENT, "an attribute's list is too long"},
    {48, 48, QSIM_E_ARGUMENT, "g: 's' has no tensor"},
    {49, 49, QSIM_E_ARGUMENT, "g: 's' has other bytes than its shape says"},
    {50, 52, QSIM_E_ARGUMENT, "metadata is not text"},
    {53, 54, QSIM_E_ARGUMENT, "a string attribute without value"},
    {55, 55, QSIM_E_ARGUMENT, "an attribute without name"},
    {56, 56, QSIM_E_LIMIT, "g: 'x' has a shape that is too large"},
    {57, 57, QSIM_E_LIMIT, "g: 'y' has a shape that is too large"},
};

static qsim_builder *begin(qsim_ctx *ctx) {
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(ctx, 13, "g", &b, NULL), QSIM_OK);
    return b;
}

static void check_states(void) {
    qsim_error e = {0};
    for (int call = 0; call < MOST; call++) {
        qsim_builder *b = begin(NULL);
        qsim_model *m = NULL;
        CHECK_INT(legal(NULL, call), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_builder_constant(b, "w", NULL), QSIM_E_ARGUMENT);
        CHECK_INT(legal(b, call), QSIM_E_ARGUMENT); /* the first error stays */
        CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_ARGUMENT);
        CHECK(!m && strstr(e.message, "'w'"));
        qsim_builder_free(b);
        b = begin(NULL);
        for (int k = 0; k < CALLS; k++)
            CHECK_INT(legal(b, k), QSIM_OK);
        CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
        CHECK_INT(legal(b, call), QSIM_E_STATE);
        CHECK_INT(qsim_builder_finish(b, &(qsim_model *){NULL}, &e), QSIM_E_STATE);
        qsim_model_free(m);
        qsim_builder_free(b);
    }
    qsim_builder *b = begin(NULL);
    CHECK_INT(qsim_builder_attr_int(b, "axis", 1), QSIM_E_STATE); /* before the first node */
    CHECK_INT(qsim_builder_finish(b, NULL, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_builder_finish(NULL, &(qsim_model *){NULL}, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_builder_create(NULL, 13, NULL, &(qsim_builder *){NULL}, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_builder_create(NULL, 13, "", &(qsim_builder *){NULL}, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_builder_create(NULL, 13, "\xff", &(qsim_builder *){NULL}, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", NULL, &e), QSIM_E_ARGUMENT);
    qsim_builder_free(b);
}

static void check_wrong(void) {
    memset(long_name, 'n', sizeof(long_name) - 1);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++)
        for (int call = refusals[i].first; call <= refusals[i].last; call++) {
            qsim_builder *b = begin(NULL);
            qsim_model *m = NULL;
            qsim_error e = {0};
            for (int k = 0; k < 5; k++)
                CHECK_INT(legal(b, k), QSIM_OK);
            const int code = call < 30 ? wrong_value(b, call) : wrong_node(b, call);
            CHECK_INT(code, call == 17 ? QSIM_OK : refusals[i].code); /* only when it is whole */
            CHECK_INT(qsim_builder_finish(b, &m, &e), refusals[i].code);
            CHECK(!m && strstr(e.message, refusals[i].part));
            if (!strstr(e.message, refusals[i].part))
                fprintf(stderr, "wrong call %d: %d %s\n", call, code, e.message);
            qsim_model_free(m);
            qsim_builder_free(b);
        }
}

/* The whole model with one allocation refused: want of memory and nothing else; nothing leaks. */
static int build_once(test_heap *h) {
    const qsim_allocator a = test_heap_allocator(h);
    const qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    int code = qsim_ctx_create(&o, &ctx, &e);
    if (!code)
        code = qsim_builder_create(ctx, 13, "g", &b, &e);
    for (int k = 0; k < CALLS && b; k++)
        legal(b, k);
    if (b)
        code = qsim_builder_finish(b, &m, &e);
    CHECK(!code == (m != NULL));
    qsim_model_free(m);
    qsim_builder_free(b);
    qsim_ctx_free(ctx);
    CHECK_INT(h->live, 0);
    return code;
}

/* What a rule makes of two sizes: a model whose file could not be read again is refused. */
static int expand(qsim_ctx *ctx, int64_t rows, int64_t columns, qsim_error *error) {
    const int64_t shape[] = {0, rows, columns};
    qsim_builder *b = NULL;
    qsim_model *m = NULL, *again = NULL;
    size_t size = 0;
    char file[1000];
    CHECK_INT(qsim_builder_create(ctx, 21, "g", &b, NULL), QSIM_OK);
    qsim_builder_constant_as(b, "shape", "int64[3]", shape);
    qsim_builder_node(b, "", "ConstantOfShape", "", "shape", "y");
    qsim_builder_output_as(b, "y", NULL);
    int code = qsim_builder_finish(b, &m, error);
    if (!code)
        code = qsim_model_save_memory(m, file, sizeof(file), &size, error);
    if (!code)
        code = qsim_model_load_memory(ctx, file, size, NULL, &again, error);
    qsim_model_free(again);
    qsim_model_free(m);
    qsim_builder_free(b);
    return code;
}

static void check_large(void) {
    qsim_ctx *ctx = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    CHECK_INT(expand(ctx, (int64_t)1 << 30, (int64_t)1 << 30, &e), TEST_WIDE(QSIM_OK));
    CHECK_INT(expand(ctx, (int64_t)1 << 40, (int64_t)1 << 40, &e), QSIM_E_LIMIT);
    CHECK(strstr(e.message, "output 0 is larger than memory can be") != NULL);
    qsim_ctx_free(ctx);
}

static void check_memory(void) {
    test_heap whole = {0};
    CHECK_INT(build_once(&whole), QSIM_OK);
    for (long at = 1; at <= whole.calls; at++)
        for (int after = 0; after < 2; after++) {
            test_heap h = {.fail_at = at, .fail_after = after};
            CHECK_INT(build_once(&h), QSIM_E_NOMEM);
        }
}

/* Types in ONNX's text form; rank 99: refused. */
static const struct {
    const char *text;
    int32_t dtype, rank;
    int64_t dim; /* the first */
    const char *name;
} types[] = {
    {"float", QSIM_FLOAT, -1, 0, NULL},
    {"int2", QSIM_INT2, -1, 0, NULL},
    {"float[]", QSIM_FLOAT, 0, 0, NULL},
    {"uint8[0]", QSIM_UINT8, 1, 0, NULL},
    {"int64[90]", QSIM_INT64, 1, 90, NULL},
    {"float[N]", QSIM_FLOAT, 1, -1, "N"},
    {"float[N-1/2,3]", QSIM_FLOAT, 2, -1, "N-1/2"},
    {"float[3,N]", QSIM_FLOAT, 2, 3, NULL},
    {"float[:,/]", QSIM_FLOAT, 2, -1, ":"}, /* the characters beside the digits */
    {"float[9223372036854775799]", QSIM_FLOAT, 1, 9223372036854775799, NULL},
    {"float[9223372036854775800]", 0, 99, 0, NULL},
    {"float[18446744073709551617]", 0, 99, 0, NULL},
    {"float[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", QSIM_FLOAT, 16, 1, NULL},
    {"float[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 99, 0, NULL},
    {"", 0, 99, 0, NULL},
    {"[2]", 0, 99, 0, NULL},
    {"floa[2]", 0, 99, 0, NULL},
    {"floats[2]", 0, 99, 0, NULL},
    {"Float[2]", 0, 99, 0, NULL},
    {"string", 0, 99, 0, NULL},
    {"undefined", 0, 99, 0, NULL},
    {"float[", 0, 99, 0, NULL},
    {"float]", 0, 99, 0, NULL},
    {"float[2", 0, 99, 0, NULL},
    {"float[2]]", 0, 99, 0, NULL},
    {"float[2] ", 0, 99, 0, NULL},
    {"float[2]x", 0, 99, 0, NULL},
    {"float[,]", 0, 99, 0, NULL},
    {"float[,2]", 0, 99, 0, NULL},
    {"float[2,]", 0, 99, 0, NULL},
    {"float[2 ]", 0, 99, 0, NULL},
    {"float[ N]", 0, 99, 0, NULL},
    {"float[N M]", 0, 99, 0, NULL},
    {"float[2N]", 0, 99, 0, NULL},
    {"float[-1]", QSIM_FLOAT, 1, -1, "-1"}, /* a name like any other */
    {"float[[N]", 0, 99, 0, NULL},
};

static void check_types(void) {
    qs_text_type t;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        char *copy = exact_copy(types[i].text, strlen(types[i].text) + 1);
        const bool good = qs_builder_type(copy, &t);
        free(copy);
        if (good != (types[i].rank < 99))
            CHECK_FAIL(types[i].text);
        if (!good)
            continue;
        CHECK(t.dtype == types[i].dtype && t.rank == types[i].rank);
        if (t.rank > 0)
            CHECK(t.dims[0] == types[i].dim &&
                  (types[i].name ? t.names[0] && strcmp(t.names[0], types[i].name) == 0
                                 : !t.names[0]));
    }
    CHECK(!qs_builder_type(NULL, &t));
    for (size_t n = sizeof(t.text) - 2; n <= sizeof(t.text); n++) { /* as long as there is room */
        char text[sizeof(t.text) + 1];
        memset(text, 'N', n);
        memcpy(text, "float[", 6);
        text[n - 1] = ']';
        text[n] = 0;
        CHECK_INT(qs_builder_type(text, &t), n < sizeof(t.text));
    }
    for (int32_t opset = 0; opset <= 2; opset++) {
        qsim_builder *b = NULL;
        CHECK_INT(qsim_builder_create(NULL, opset, "g", &b, NULL),
                  opset ? QSIM_OK : QSIM_E_UNSUPPORTED);
        qsim_builder_free(b);
    }
    const int32_t newest = (int32_t)qs_op_newest_opset();
    for (int32_t version = newest - 1; version <= newest + 1; version++) {
        qsim_builder *b = begin(NULL), *whole = NULL;
        const int code = version <= newest ? QSIM_OK : QSIM_E_UNSUPPORTED;
        CHECK_INT(qsim_builder_import(b, "ai.onnx", version), code);
        CHECK_INT(qsim_builder_create(NULL, version, "g", &whole, NULL), code);
        qsim_builder_free(b);
        qsim_builder_free(whole);
    }
    qsim_builder *sets = begin(NULL); /* a thousand operator sets, one of them set again */
    for (int i = 0; i < 999; i++) {
        char domain[16];
        snprintf(domain, sizeof(domain), "d%d", i);
        CHECK_INT(qsim_builder_import(sets, domain, 1), QSIM_OK);
    }
    CHECK_INT(qsim_builder_import(sets, "d5", 2), QSIM_OK);
    CHECK_INT(qsim_builder_import(sets, "more", 1), QSIM_E_LIMIT);
    qsim_builder_free(sets);
    for (size_t n = 1022; n <= 1024; n++) { /* names of nodes' inputs have up to 1023 bytes */
        qsim_builder *b = begin(NULL);
        long_name[n] = 0;
        CHECK_INT(qsim_builder_node(b, "", "Relu", "", long_name, "z"),
                  n <= 1023 ? QSIM_OK : QSIM_E_ARGUMENT);
        long_name[n] = 'n';
        qsim_builder_free(b);
    }
}

/* Each type, rank and size about its bounds; only a size that is open has a name. */
static void check_inputs(void) {
    static const char *const names[] = {NULL, "", "N", "\xff"};
    int64_t dims[QSIM_MAX_RANK + 1] = {0};
    for (int64_t size = -2; size <= 1; size++)
        for (int i = 0; i < 4; i++) {
            qsim_builder *b = NULL;
            qsim_model *m = NULL;
            qsim_value_info v = {.struct_size = sizeof(v)};
            const bool bad = size < 0 && i == 3;
            CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
            CHECK_INT(qsim_builder_input(b, "x", QSIM_FLOAT, 1, &size, &names[i]),
                      bad ? QSIM_E_ARGUMENT : QSIM_OK);
            qsim_builder_output_as(b, "x", NULL);
            CHECK_INT(qsim_builder_finish(b, &m, NULL), bad ? QSIM_E_ARGUMENT : QSIM_OK);
            if (m && qsim_model_input(m, 0, &v) == QSIM_OK) {
                CHECK_INT(v.dims[0], size < 0 ? -1 : size);
                CHECK((v.dim_names[0] != NULL) == (size < 0 && i == 2));
            }
            CHECK(bad || v.rank == 1);
            qsim_model_free(m);
            qsim_builder_free(b);
        }
    for (int32_t i = -1; i <= QSIM_INT2 + 1; i++) {
        qsim_builder *b = begin(NULL);
        CHECK_INT(qsim_builder_input(b, "t", i, 0, NULL, NULL),
                  i > QSIM_UNDEFINED && i <= QSIM_INT2 ? QSIM_OK : QSIM_E_ARGUMENT);
        qsim_builder_free(b);
    }
    for (int32_t rank = -2; rank <= QSIM_MAX_RANK + 1; rank++)
        for (int given = 0; given <= 1; given++) {
            qsim_builder *b = begin(NULL);
            const bool good = rank >= -1 && rank <= QSIM_MAX_RANK && (given || rank <= 0);
            CHECK_INT(qsim_builder_input(b, "r", QSIM_FLOAT, rank, given ? dims : NULL, NULL),
                      good ? QSIM_OK : QSIM_E_ARGUMENT);
            qsim_builder_free(b);
        }
}

int main(void) {
    check_inputs();
    check_states();
    check_wrong();
    check_types();
    check_large();
    check_memory();
    return test_done();
}
