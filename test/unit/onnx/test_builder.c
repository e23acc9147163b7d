/* SPDX-License-Identifier: MIT */
/* A model made by calls, written, read again: the same graph, types, constants and metadata. */
#include "test.h"

#include <qsim/model.h>

static qsim_model *build(const char *extra, qsim_error *e) {
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    static const int64_t shape[] = {-1, 3}, weights_shape[] = {2, 3};
    static const char *const symbols[] = {"N", NULL};
    float weights[] = {1, 2, 3, 4, 5, 6};
    qsim_tensor w = {QSIM_FLOAT, 2, weights_shape, weights, sizeof(weights)};
    CHECK_INT(qsim_builder_create(NULL, 13, "small", &b, e), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 2, shape, symbols);
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, shape, symbols);
    qsim_builder_constant(b, "w", &(qsim_tensor){QSIM_FLOAT, 1, &shape[1], weights, 12});
    qsim_builder_constant(b, "unused", &w);
    qsim_builder_node(b, "", "Add", "add_0", "x,w", "sum");
    qsim_builder_node(b, NULL, "Relu", "relu_0", "sum", "y");
    if (extra)
        qsim_builder_node(b, "", extra, "extra", "x", "z");
    qsim_builder_metadata(b, "who", "a test");
    int code = qsim_builder_finish(b, &m, e);
    CHECK(code == (e ? e->code : code));
    qsim_builder_free(b);
    return m;
}

static void check_values(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    CHECK_INT(qsim_model_input_count(m), 1);
    CHECK_INT(qsim_model_output_count(m), 1);
    CHECK_INT(qsim_model_input(m, 0, &v), QSIM_OK);
    CHECK_STR(v.name, "x");
    CHECK_INT(v.rank, 2);
    CHECK_INT(v.dims[0], -1);
    CHECK_INT(v.dims[1], 3);
    CHECK_STR(v.dim_names[0], "N");
    CHECK(v.dim_names[1] == NULL);
    CHECK(v.data == NULL);
    CHECK_INT(qsim_model_output(m, 0, &v), QSIM_OK);
    CHECK_STR(v.name, "y");
    CHECK_INT(v.dtype, QSIM_FLOAT);
    CHECK_INT(qsim_model_output(m, 1, &v), QSIM_E_ARGUMENT);
    static const char *const names[] = {"x", "w", "sum", "y"};
    for (int i = 0; i < 4; i++) {
        CHECK_INT(qsim_model_value(m, i, &v), QSIM_OK);
        CHECK_STR(v.name, names[i]);
    }
    CHECK_INT(qsim_model_value(m, 1, &v), QSIM_OK);
    CHECK_INT(v.bytes, 12);
    float w[3] = {0};
    if (v.data && v.bytes == 12)
        memcpy(w, v.data, 12);
    CHECK(w[0] == 1 && w[1] == 2 && w[2] == 3);
}

static void check_nodes(const qsim_model *m) {
    qsim_node_info n = {.struct_size = sizeof(n)};
    CHECK_INT(qsim_model_node_count(m), 2);
    CHECK_INT(qsim_model_node(m, 0, &n), QSIM_OK);
    CHECK_STR(n.name, "add_0");
    CHECK_STR(n.op_type, "Add");
    CHECK_STR(n.domain, "");
    CHECK_INT(n.input_count, 2);
    CHECK_STR(n.inputs[1], "w");
    CHECK_INT(n.integer, 0);
    CHECK_INT(qsim_model_node(m, 2, &n), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_opset(m, NULL), 13);
    CHECK_INT(qsim_model_opset(m, "com.microsoft"), 0);
    CHECK_INT(qsim_model_parameters(m), 3);
    CHECK_INT(qsim_model_parameter_bytes(m), 12);
    CHECK_INT(qsim_model_metadata_count(m), 1);
    CHECK_STR(qsim_model_metadata_key(m, 0), "who");
    CHECK_STR(qsim_model_metadata_value(m, 0), "a test");
}

/* Callers compiled with shorter structs: no byte behind their struct is written. */
static void check_short_struct(const qsim_model *m) {
    struct {
        qsim_value_info info;
        char guard[8];
    } v;
    memset(&v, 0x5a, sizeof(v));
    v.info.struct_size = offsetof(qsim_value_info, dims);
    CHECK_INT(qsim_model_input(m, 0, &v.info), QSIM_OK);
    CHECK_STR(v.info.name, "x");
    CHECK(((const char *)&v.info.dims)[0] == 0x5a);
    v.info.struct_size = 1;
    CHECK_INT(qsim_model_input(m, 0, &v.info), QSIM_E_ARGUMENT);
}

static void check_reload(const qsim_model *m) {
    size_t need = 0;
    qsim_error e = {0};
    CHECK_INT(qsim_model_save_memory(m, NULL, 0, &need, &e), QSIM_OK);
    CHECK(need > 100);
    uint8_t *file = malloc(need + 1);
    file[need] = 0xa5;
    CHECK_INT(qsim_model_save_memory(m, file, need, &need, &e), QSIM_OK);
    CHECK_INT(file[need], 0xa5);
    CHECK_INT(qsim_model_bytes(m), need);
    qsim_model *again = NULL;
    CHECK_INT(qsim_model_load_memory(NULL, file, need, NULL, &again, &e), QSIM_OK);
    if (!again) {
        fprintf(stderr, "%s\n", e.message);
        return;
    }
    check_values(again);
    check_nodes(again);
    CHECK_INT(qsim_model_ir_version(again), 7);
    char a[65], b[65];
    CHECK_INT(qsim_model_hash(m, a), QSIM_OK);
    CHECK_INT(qsim_model_hash(again, b), QSIM_OK);
    CHECK_STR(a, b);
    CHECK_INT(strlen(a), 64);
    CHECK_INT(qsim_model_hash(m, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_hash(NULL, a), QSIM_E_ARGUMENT);
    qsim_model_free(again);
    free(file);
}

static void check_failures(void) {
    qsim_error e = {0};
    CHECK(build("NoSuchOperator", &e) == NULL);
    CHECK_INT(e.code, QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "NoSuchOperator") != NULL);
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    static const int64_t dims[] = {1};
    CHECK_INT(qsim_builder_create(NULL, 99, "g", &b, &e), QSIM_E_UNSUPPORTED);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 1, dims, NULL);
    CHECK_INT(qsim_builder_input(b, "x", QSIM_FLOAT, 1, dims, NULL), QSIM_E_GRAPH);
    CHECK_INT(qsim_builder_node(b, "", "Relu", "", "x", "y"), QSIM_E_GRAPH); /* the first stays */
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_GRAPH);
    CHECK(strstr(e.message, "'x'") != NULL);
    qsim_builder_free(b);
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    qsim_builder_node(b, "", "Relu", "r", "nowhere", "y");
    qsim_builder_output(b, "y", QSIM_FLOAT, 1, dims, NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_GRAPH);
    CHECK(strstr(e.message, "'nowhere'") && strstr(e.message, "'r'"));
    qsim_builder_free(b);
    /* The first node, with all names empty: the builder has no list of names yet. */
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
    CHECK_INT(qsim_builder_node(b, "", "Relu", "", "", ""), QSIM_OK);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_GRAPH);
    qsim_builder_free(b);
    qsim_builder_free(NULL);
}

/* Types as text give the same bytes as types in numbers. */
static void check_short_forms(void) {
    static const char *const bad[] = {
        "",          "flat[2]",   "float[2",    "float[2]x",
        "float[,2]", "float[2,]", "float[N 2]", "float[99999999999999999999]",
        NULL};
    static const float w[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {7, 8};
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_error e = {0};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_builder_create(NULL, 13, "linear", &b, &e);
    qsim_builder_input_as(b, "x", "float[N,3]");
    qsim_builder_constant_as(b, "W", "float[3,2]", w);
    qsim_builder_constant_as(b, "b", "float[2]", bias);
    qsim_builder_node(b, "", "MatMul", "", "x,W", "xW");
    qsim_builder_node(b, "", "Add", "", "xW,b", "y");
    qsim_builder_output_as(b, "y", NULL);
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    if (m) {
        CHECK_INT(qsim_model_input(m, 0, &v), QSIM_OK);
        CHECK(v.rank == 2 && v.dims[0] == -1 && v.dims[1] == 3 && !strcmp(v.dim_names[0], "N"));
        CHECK_INT(qsim_model_output(m, 0, &v), QSIM_OK);
        CHECK(v.dtype == QSIM_FLOAT && v.rank == 2 && v.dims[0] == -1 && v.dims[1] == 2);
    }
    qsim_model_free(m);
    qsim_builder_free(b);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        qsim_builder_create(NULL, 13, "bad", &b, &e);
        CHECK_INT(qsim_builder_input_as(b, "x", bad[i]), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_ARGUMENT);
        qsim_builder_free(b);
        qsim_builder_create(NULL, 13, "bad", &b, &e);
        CHECK_INT(qsim_builder_constant_as(b, "x", bad[i] ? bad[i] : "float[N]", w),
                  QSIM_E_ARGUMENT);
        qsim_builder_free(b);
    }
}

/* Text that is not UTF-8, or NULL, is refused as metadata. */
static void check_metadata_text(void) {
    static const char *const bad[][2] = {{"\xff", "v"},         {"k", "\xc0\x80"},
                                         {NULL, "v"},           {"k", NULL},
                                         {"k", "\xe0\x9f\xbf"}, {"k", "\xf0\x8f\xbf\xbf"},
                                         {"k", "\xed\xa0\x80"}, {"k", "\xf4\x90\x80\x80"}};
    static const char *const good[] = {"\xc2\x80",         "\xe0\xa0\x80", "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf", "\xed\x9f\xbf", "\xee\x80\x80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        qsim_builder *b = NULL;
        qsim_model *m = NULL;
        qsim_error e = {0};
        CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, &e), QSIM_OK);
        qsim_builder_input_as(b, "x", "float[1]");
        qsim_builder_node(b, "", "Relu", "", "x", "y");
        qsim_builder_output_as(b, "y", NULL);
        CHECK_INT(qsim_builder_metadata(b, bad[i][0], bad[i][1]), QSIM_E_ARGUMENT);
        CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_E_ARGUMENT);
        CHECK(!m && strstr(e.message, "metadata"));
        qsim_builder_free(b);
    }
    qsim_builder *b = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "g", &b, NULL), QSIM_OK);
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        CHECK_INT(qsim_builder_metadata(b, "k", good[i]), QSIM_OK);
    qsim_builder_free(b);
}

int main(void) {
    qsim_error e = {0};
    qsim_model *m = build(NULL, &e);
    CHECK(m != NULL);
    if (!m) {
        fprintf(stderr, "%s\n", e.message);
        check_short_forms();
        return test_done();
    }
    check_values(m);
    check_nodes(m);
    check_short_struct(m);
    check_reload(m);
    qsim_model_free(m);
    check_failures();
    check_metadata_text();
    check_short_forms();
    return test_done();
}
