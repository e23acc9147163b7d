/* SPDX-License-Identifier: MIT */
/* Facts about a model: integer nodes, parameters, problems; upgrading. Each form of an attribute.
 */
#include "test.h"
#include "proto.h"

#include <qsim/model.h>
#include <stdbool.h>

static const int64_t image[] = {1, 2, 4, 4}, kernel[] = {3, 2, 3, 3}, channels[] = {3};

static void scalar(qsim_builder *b, const char *name, int32_t dtype, const void *data,
                   size_t bytes) {
    uint8_t copy[4];
    memcpy(copy, data, bytes);
    CHECK_INT(qsim_builder_constant(b, name, &(qsim_tensor){dtype, 0, NULL, copy, bytes}), QSIM_OK);
}

/* x -Q-DQ- Conv(DQ w, DQ b) - Relu -Q-DQ- Softmax */
static qsim_model *build_qdq(void) {
    static const float scale = 0.5f;
    static const uint8_t zp = 3;
    static const int8_t wzp = 0;
    int8_t w[54] = {0};
    int32_t bias[3] = {0};
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_builder_create(NULL, 13, "qdq", &b, &e), QSIM_OK);
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, image, NULL);
    qsim_builder_output(b, "y", QSIM_FLOAT, -1, NULL, NULL);
    scalar(b, "s", QSIM_FLOAT, &scale, 4);
    scalar(b, "z", QSIM_UINT8, &zp, 1);
    scalar(b, "wz", QSIM_INT8, &wzp, 1);
    qsim_builder_constant(b, "w_q", &(qsim_tensor){QSIM_INT8, 4, kernel, w, sizeof(w)});
    qsim_builder_constant(b, "b_q", &(qsim_tensor){QSIM_INT32, 1, channels, bias, sizeof(bias)});
    qsim_builder_node(b, "", "QuantizeLinear", "q0", "x,s,z", "x_q");
    qsim_builder_node(b, "", "DequantizeLinear", "d0", "x_q,s,z", "x_d");
    qsim_builder_node(b, "", "DequantizeLinear", "dw", "w_q,s,wz", "w");
    qsim_builder_node(b, "", "DequantizeLinear", "db", "b_q,s,", "bias");
    qsim_builder_node(b, "", "Conv", "conv", "x_d,w,bias", "c");
    qsim_builder_node(b, "", "Relu", "relu", "c", "r");
    qsim_builder_node(b, "", "QuantizeLinear", "q1", "r,s,z", "r_q");
    qsim_builder_node(b, "", "DequantizeLinear", "d1", "r_q,s,z", "r_d");
    qsim_builder_node(b, "", "Softmax", "softmax", "r_d", "y");
    CHECK_INT(qsim_builder_finish(b, &m, &e), QSIM_OK);
    if (!m)
        fprintf(stderr, "%s\n", e.message);
    qsim_builder_free(b);
    return m;
}

static void check_qdq(const qsim_model *m) {
    static const struct {
        const char *name;
        int32_t integer;
    } expected[] = {{"q0", 0},   {"d0", 1}, {"dw", 1}, {"db", 1},     {"conv", 1},
                    {"relu", 1}, {"q1", 1}, {"d1", 0}, {"softmax", 0}};
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
        CHECK_STR(n.name, expected[i].name);
        if (n.integer != expected[i].integer)
            fprintf(stderr, "node %s\n", n.name);
        CHECK_INT(n.integer, expected[i].integer);
        /* 3 outputs of 2x2 positions, each 2x3x3 products. */
        CHECK_INT(n.macs, strcmp(n.name, "conv") == 0 ? 3 * 4 * 18 : 0);
    }
    CHECK_INT(qsim_model_parameters(m), 54 + 3);
    CHECK_INT(qsim_model_parameter_bytes(m), 54 + 12);
}

static void check_upgrade(const qsim_model *m) {
    qsim_model *newer = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_upgrade(m, 21, &newer, &e), QSIM_OK);
    if (!newer) {
        fprintf(stderr, "%s\n", e.message);
        return;
    }
    CHECK_INT(qsim_model_opset(newer, ""), 21);
    CHECK_INT(qsim_model_ir_version(newer), 10);
    CHECK_INT(qsim_model_opset(m, ""), 13);
    CHECK_INT(qsim_model_node_count(newer), qsim_model_node_count(m));
    check_qdq(newer);
    qsim_model_free(newer);
    CHECK(qsim_model_upgrade(m, 12, &newer, &e) < 0);
    CHECK(newer == NULL);
}

/* ---- every problem ---- */

struct list {
    int count;
    char messages[8][384];
};

static void note(void *user, const qsim_error *error) {
    struct list *l = user;
    CHECK(error->code < 0);
    if (l->count < 8)
        memcpy(l->messages[l->count], error->message, 384);
    l->count++;
}

static void check_problems(void) {
    static const int64_t dims[] = {2, 3}, other[] = {2, 4};
    proto g = {0}, model = {0};
    struct list l = {0};
    qsim_error e = {0};
    qsim_model *m = NULL;
    proto_node(&g, "NoSuch", "first", "x", NULL, "a");
    proto_node(&g, "Relu", "fine", "x", NULL, "b");
    proto_node(&g, "Add", "second", "x", "z", "c");
    proto_node(&g, "Relu", "third", "x", "z", "d");
    proto_node(&g, "Relu", "after", "c", NULL, "y");
    proto_value(&g, 11, "x", QSIM_FLOAT, dims, 2);
    proto_value(&g, 11, "z", QSIM_FLOAT, other, 2);
    proto_value(&g, 12, "y", QSIM_FLOAT, dims, 2);
    proto_model(&model, &g);
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e),
              QSIM_E_UNSUPPORTED);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, &e), QSIM_OK);
    if (m) {
        CHECK_INT(qsim_model_check(m, note, &l), 3);
        CHECK_INT(l.count, 3);
        CHECK(strstr(l.messages[0], "'first'") && strstr(l.messages[0], "NoSuch"));
        CHECK(strstr(l.messages[1], "'second'") && strstr(l.messages[1], "Add"));
        CHECK(strstr(l.messages[2], "'third'") && strstr(l.messages[2], "Relu"));
        CHECK_INT(qsim_model_check(m, NULL, NULL), 3);
        qsim_value_info v = {.struct_size = sizeof(v)};
        for (int32_t i = 0; i < qsim_model_value_count(m); i++)
            if (qsim_model_value(m, i, &v) == QSIM_OK && strcmp(v.name, "b") == 0)
                break;
        CHECK(v.dtype == QSIM_FLOAT && v.rank == 2 && v.dims[0] == 2 && v.dims[1] == 3);
        qsim_model *newer = NULL;
        CHECK_INT(qsim_model_upgrade(m, 21, &newer, &e), QSIM_E_STATE);
    }
    qsim_model_free(m);
    proto_free(&g);
    proto_free(&model);
}

/* ---- attributes ---- */

/* The field of each type of attribute, and whether it is a list. */
static const struct {
    uint32_t field, type;
    bool list;
} values[] = {
    {2, 1, false},   {3, 2, false},  {4, 3, false},   {5, 4, false},  {6, 5, false},
    {7, 6, true},    {8, 7, true},   {9, 8, true},    {10, 9, true},  {11, 10, true},
    {22, 11, false}, {23, 12, true}, {14, 13, false}, {15, 14, true},
};
enum { VALUES = sizeof(values) / sizeof(*values) };

/* A value of a field, or an empty one. */
static void put_value(proto *a, uint32_t field, bool empty) {
    static const float one = 1;
    proto part = {0};
    if (field == 2) {
        proto_tag(a, field, 5);
        proto_raw(a, empty ? "\0\0\0" : (const char *)&one, 4);
    } else if (field == 3) {
        proto_int(a, field, !empty);
    } else {
        if ((field == 5 || field == 10) && !empty) { /* a tensor */
            proto_int(&part, 2, QSIM_FLOAT);
            proto_bytes(&part, 9, &one, 4);
        } else if (field == 22 && !empty)
            proto_sparse(&part, 1);
        else if (field == 7 && !empty)
            proto_raw(&part, &one, 4);
        else if (field == 8 && !empty)
            proto_varint(&part, 1);
        else if (!empty)
            proto_text(&part, 31, "text"); /* a field that no message has */
        proto_take(a, field, &part);
    }
    proto_free(&part);
}

/* Loads a model whose only node, of an unknown operator, has one or two attributes. */
static int with_attributes(const proto *first, const proto *second, qsim_error *e) {
    static const int64_t dims[] = {2};
    proto node = {0}, graph = {0}, model = {0};
    qsim_model *m = NULL;
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
    *e = (qsim_error){0};
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "NoSuch");
    proto_bytes(&node, 5, first->data, first->size);
    if (second)
        proto_bytes(&node, 5, second->data, second->size);
    proto_take(&graph, 1, &node);
    proto_value(&graph, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&model, &graph);
    const int code = qsim_model_load_memory(NULL, model.data, model.size, &o, &m, e);
    qsim_model_free(m);
    proto_free(&model);
    proto_free(&graph);
    proto_free(&node);
    return code;
}

/* One attribute: its fields, and the type that it states (0: none). */
static int attribute(const uint32_t *fields, size_t count, bool empty, uint32_t type,
                     qsim_error *e) {
    proto a = {0};
    proto_text(&a, 1, "a");
    for (size_t i = 0; i < count; i++)
        put_value(&a, fields[i], empty && i == 0);
    if (type)
        proto_int(&a, 20, type);
    const int code = with_attributes(&a, NULL, e);
    proto_free(&a);
    return code;
}

static void check_values(void) {
    qsim_error e;
    for (size_t i = 0; i < VALUES; i++) {
        const uint32_t field = values[i].field;
        for (uint32_t type = 0; type <= 15; type++) {
            const bool same = type == 0 || type == values[i].type;
            CHECK_INT(attribute(&field, 1, false, type, &e), same ? QSIM_OK : QSIM_E_FORMAT);
            CHECK(same || strstr(e.message,
                                 type > 14 ? "no type and no value" : "a value of another type"));
        }
        for (size_t k = 0; k < VALUES;
             k++) { /* two values; one that is empty and one that is not */
            const uint32_t two[] = {field, values[k].field};
            const bool legal = i == k && field != 5 && field != 22;
            CHECK_INT(attribute(two, 2, false, 0, &e), legal ? QSIM_OK : QSIM_E_FORMAT);
            if (field != 5)
                CHECK_INT(attribute(two, 2, true, 0, &e), QSIM_OK);
        }
        if (field != 5 && field != 10 && field != 22) /* a tensor has a type */
            CHECK_INT(attribute(&field, 1, true, 0, &e), QSIM_OK);
    }
    CHECK_INT(attribute(NULL, 0, false, 0, &e), QSIM_E_FORMAT);
    CHECK_INT(attribute(NULL, 0, false, 4, &e), QSIM_E_FORMAT);
    CHECK(strstr(e.message, "has no tensor") != NULL);
    CHECK_INT(attribute(NULL, 0, false, 7, &e), QSIM_OK); /* an empty list */
}

static void check_names(void) {
    static const char *const names[] = {"", "a", "b"};
    qsim_error e;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            proto first = {0}, second = {0};
            proto_text(&first, 1, names[i]);
            proto_int(&first, 3, 1);
            proto_text(&second, 1, names[k]);
            proto_int(&second, 3, 1);
            CHECK_INT(with_attributes(&first, &second, &e),
                      i && k && i != k ? QSIM_OK : QSIM_E_GRAPH);
            CHECK(!e.code || strstr(e.message, i && k ? "'a' is given twice" : "has no name") ||
                  strstr(e.message, "'b' is given twice"));
            proto_text(&second, 21, "outer"); /* a function's attribute */
            CHECK_INT(with_attributes(&second, NULL, &e), QSIM_E_GRAPH);
            proto_free(&first);
            proto_free(&second);
        }
}

/* ---- types of values ---- */

/* The type of an input: an element type, and axes that have a size or a name, or both. */
static int typed(int64_t type, const int64_t *sizes, int rank, const char *symbol,
                 qsim_value_info *v, qsim_error *e) {
    proto shape = {0}, tensor = {0}, wrapped = {0}, value = {0}, graph = {0}, model = {0};
    qsim_model *m = NULL;
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
    *e = (qsim_error){0};
    for (int i = 0; i < rank; i++) {
        proto dim = {0};
        proto_int(&dim, 1, sizes[i]);
        if (symbol) /* the last one holds */
            proto_text(&dim, 2, symbol);
        proto_take(&shape, 1, &dim);
        proto_free(&dim);
    }
    if (type >= 0)
        proto_int(&tensor, 1, type);
    if (rank >= 0)
        proto_take(&tensor, 2, &shape);
    proto_take(&wrapped, 1, &tensor);
    proto_text(&value, 1, "x");
    proto_take(&value, 2, &wrapped);
    proto_take(&graph, 11, &value);
    proto_node(&graph, "NoSuch", "", "x", NULL, "y");
    proto_name(&graph, 12, "y");
    proto_model(&model, &graph);
    const int code = qsim_model_load_memory(NULL, model.data, model.size, &o, &m, e);
    if (!code) {
        CHECK_INT(qsim_model_input(m, 0, v), QSIM_OK);
        CHECK(v->rank == rank && v->dtype == type);
        for (int i = 0; i < rank; i++)
            CHECK(v->dims[i] == (symbol || sizes[i] < 0 ? -1 : sizes[i]) &&
                  !v->dim_names[i] == (!symbol || !*symbol));
    }
    qsim_model_free(m);
    proto_free(&shape);
    proto_free(&tensor);
    proto_free(&wrapped);
    proto_free(&value);
    proto_free(&graph);
    proto_free(&model);
    return code;
}

static void check_types(void) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    qsim_error e;
    int64_t sizes[17];
    for (int i = 0; i < 17; i++)
        sizes[i] = 1;
    for (int64_t type = -1; type <= QSIM_INT2 + 1; type++)
        CHECK_INT(typed(type, sizes, 2, NULL, &v, &e),
                  type > 0 && type <= QSIM_INT2 ? QSIM_OK : QSIM_E_DTYPE);
    CHECK(strstr(e.message, "unknown element type") != NULL);
    for (int rank = -1; rank <= 17; rank++)
        CHECK_INT(typed(QSIM_INT8, sizes, rank, NULL, &v, &e), rank <= 16 ? QSIM_OK : QSIM_E_LIMIT);
    for (int64_t size = -3; size <= 2; size++) {
        CHECK_INT(typed(QSIM_INT8, &size, 1, NULL, &v, &e), size >= -1 ? QSIM_OK : QSIM_E_SHAPE);
        CHECK_INT(typed(QSIM_INT8, &size, 1, "N", &v, &e), QSIM_OK);
        CHECK_INT(typed(QSIM_INT8, &size, 1, "", &v, &e), QSIM_OK);
    }
}

/* ---- what graphs may not have ---- */

static const int64_t rows[] = {-1, 3};

static void small_graph(proto *g) {
    static const float w[] = {1, 2, 3};
    const int64_t three = 3;
    proto t = {0};
    g->size = 0;
    proto_node(g, "Add", "add", "x", "w", "y");
    proto_int(&t, 1, three);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_bytes(&t, 9, w, sizeof(w));
    proto_take(g, 5, &t);
    proto_value(g, 11, "x", QSIM_FLOAT, rows, 2);
    proto_value(g, 12, "y", QSIM_FLOAT, rows, 2);
    proto_free(&t);
}

/* Loads a model of a graph, which is emptied; the message has this part. */
static void loads(proto *graph, int code, const char *part) {
    proto file = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    proto_model(&file, graph);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), code);
    if (!strstr(e.message, part))
        CHECK_FAIL(e.message);
    qsim_model_free(m);
    proto_free(&file);
}

/* An input whose type is this message's only field. */
static void other_input(proto *graph, uint32_t type) {
    proto value = {0}, wrapped = {0}, empty = {0};
    proto_take(&wrapped, type, &empty);
    proto_text(&value, 1, "o");
    proto_take(&value, 2, &wrapped);
    proto_take(graph, 11, &value);
    proto_free(&wrapped);
    proto_free(&value);
}

/* Inputs, declared sizes and tensors that graphs may not have. */
static void check_parts(void) {
    static const struct {
        uint32_t field;
        const char *name;
    } others[] = {
        {4, "sequence"}, {5, "map"}, {7, "opaque"}, {8, "sparse tensor"}, {9, "optional"}};
    static const int64_t large[] = {INT64_MAX, 2}, three[] = {3}, four[] = {4}, none[] = {-1};
    static const struct {
        const int64_t *dims;
        int dtype, rank, code; /* of an input that is an initializer, too: a float [3] */
        const char *part;
    } listed[] = {
        {three, QSIM_FLOAT, 1, QSIM_OK, ""},
        {none, QSIM_FLOAT, 1, QSIM_OK, ""},
        {four, QSIM_FLOAT, 1, QSIM_E_SHAPE, "'w' and its initializer differ in shape"},
        {rows, QSIM_FLOAT, 2, QSIM_E_SHAPE, "'w' and its initializer differ in shape"},
        {rows, QSIM_FLOAT, 0, QSIM_E_SHAPE, "'w' and its initializer differ in shape"},
        {three, QSIM_INT32, 1, QSIM_E_DTYPE, "input 'w' is int32, its initializer float"},
    };
    proto g = {0};
    for (int i = 0; i < 5; i++) {
        char part[64];
        small_graph(&g);
        other_input(&g, others[i].field);
        snprintf(part, sizeof(part), "input 'o' has type %s, not tensor", others[i].name);
        loads(&g, QSIM_E_UNSUPPORTED, part);
    }
    small_graph(&g);
    proto_name(&g, 11, "o");
    loads(&g, QSIM_E_GRAPH, "input 'o' has no type");
    for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
        small_graph(&g);
        proto_value(&g, 11, "w", listed[i].dtype, listed[i].dims, listed[i].rank);
        loads(&g, listed[i].code, listed[i].part);
    }
    small_graph(&g);
    proto_value(&g, 11, "o", QSIM_FLOAT, large, 2);
    loads(&g, QSIM_E_LIMIT, "the shape of tensor 'o' is too large");
    small_graph(&g);
    proto_text(&g, 15, "");
    loads(&g, QSIM_E_GRAPH, "an initializer has no name");
    small_graph(&g);
    proto_text(&g, 11, "");
    loads(&g, QSIM_E_GRAPH, "input");
    proto_free(&g);
}

/* Versions of the format and of operator sets: each bound, and imports that contradict. */
static void check_versions(void) {
    static const struct {
        int64_t ir; /* -1: none */
        const char *domains[2];
        int64_t versions[2]; /* 0: no second import */
        int code;
        const char *part;
    } heads[] = {
        {13, {""}, {28}, QSIM_OK, ""},
        {14, {""}, {13}, QSIM_E_UNSUPPORTED, "ir_version 14 is not known, 1 to 13 are read"},
        {1, {""}, {13}, QSIM_OK, ""},
        {0, {""}, {13}, QSIM_E_UNSUPPORTED, "ir_version 0 is not known"},
        {-1, {""}, {13}, QSIM_E_FORMAT, "the model has no ir_version"},
        {2, {NULL}, {0}, QSIM_OK, ""}, /* of that time, without imports */
        {3, {NULL}, {0}, QSIM_E_FORMAT, "the model imports no operator set"},
        {7, {"ai.onnx"}, {13}, QSIM_OK, ""},
        {7, {""}, {1}, QSIM_OK, ""},
        {7, {""}, {INT64_MIN}, QSIM_E_UNSUPPORTED, "of ai.onnx does not exist"},
        {7, {""}, {29}, QSIM_E_UNSUPPORTED, "opset 29 of ai.onnx is not known, the newest that"},
        {7, {"", "a"}, {13, INT32_MAX}, QSIM_OK, ""},
        {7, {"", "a"}, {13, (int64_t)INT32_MAX + 1}, QSIM_E_UNSUPPORTED, "of a does not exist"},
        {7, {"", "a"}, {13, -5}, QSIM_E_UNSUPPORTED, "opset -5 of a does not exist"},
        {7, {"", "ai.onnx"}, {13, 13}, QSIM_OK, ""},
        {7, {"", "ai.onnx"}, {13, 12}, QSIM_E_GRAPH, "ai.onnx is imported in two versions, 13 and"},
        {7, {"", "qsim"}, {13, 1}, QSIM_E_UNSUPPORTED, "imports the domain 'qsim'"},
    };
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        proto g = {0}, file = {0}, opset = {0};
        qsim_model *m = NULL;
        qsim_error e = {0};
        if (heads[i].ir != -1)
            proto_int(&file, 1, heads[i].ir);
        proto_node(&g, "Neg", NULL, "x", NULL, "y");
        proto_text(&g, 2, "g");
        proto_value(&g, 11, "x", QSIM_FLOAT, rows, 2);
        proto_value(&g, 12, "y", QSIM_FLOAT, rows, 2);
        proto_take(&file, 7, &g);
        for (int k = 0; k < 2 && heads[i].versions[k]; k++) {
            proto_text(&opset, 1, heads[i].domains[k]);
            proto_int(&opset, 2, heads[i].versions[k]);
            proto_take(&file, 8, &opset);
        }
        CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), heads[i].code);
        if (!strstr(e.message, heads[i].part))
            CHECK_FAIL(e.message);
        CHECK(!m || qsim_model_ir_version(m) == heads[i].ir);
        qsim_model_free(m);
        proto_free(&g);
        proto_free(&file);
        proto_free(&opset);
    }
}

/* A domain whose operator a model uses without importing it: files written of the model import it.
 */
static void check_not_imported(void) {
    proto g = {0}, node = {0}, model = {0};
    qsim_model *m = NULL, *made = NULL;
    qsim_error e = {0};
    size_t need = 0;
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "y");
    proto_text(&node, 4, "QuickGelu");
    proto_text(&node, 7, "com.microsoft");
    proto_take(&g, 1, &node);
    proto_text(&g, 2, "g");
    proto_value(&g, 11, "x", QSIM_FLOAT, rows, 2);
    proto_value(&g, 12, "y", QSIM_FLOAT, rows, 2);
    proto_model(&model, &g);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, &e), QSIM_OK);
    CHECK_INT(qsim_model_opset(m, "com.microsoft"), 1);
    CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_BASIC, &made, &e), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(made, NULL, 0, &need, &e), QSIM_OK);
    CHECK(need > 0 && qsim_model_bytes(made) == (int64_t)need);
    qsim_model_free(made);
    qsim_model_free(m);
    proto_free(&node);
    proto_free(&model);
    proto_free(&g);
}

/* Tensors stored in ways that are not read, and one whose only list is an empty one of another
 * type. */
static void check_stored(void) {
    static const float w[] = {1, 2, 3};
    for (int i = 0; i < 3; i++) {
        proto g = {0}, t = {0}, part = {0};
        small_graph(&g);
        proto_int(&t, 1, i == 1 ? INT64_MAX : 3);
        if (i == 1)
            proto_int(&t, 1, 3);
        proto_int(&t, 2, i == 1 ? QSIM_STRING : QSIM_FLOAT);
        proto_text(&t, 8, "t");
        if (i == 0)
            proto_take(&t, 3, &part);
        if (i == 2)
            proto_text(&t, 7, "");
        if (i != 1)
            proto_bytes(&t, 9, w, sizeof(w));
        proto_take(&g, 5, &t);
        loads(&g,
              i == 2 ? QSIM_OK
              : i    ? QSIM_E_LIMIT
                     : QSIM_E_UNSUPPORTED,
              i == 2 ? ""
              : i    ? "'t' is too large"
                     : "'t' is stored in segments");
        proto_free(&g);
        proto_free(&t);
    }
}

/* Options of loading that there are not, and one operator set in two versions. */
static void check_options(void) {
    qsim_model *m = NULL;
    qsim_error e;
    proto graph = {0}, model = {0};
    small_graph(&graph);
    proto_model(&model, &graph);
    qsim_load_options o = {.struct_size = sizeof(o), .flags = 1 << 20};
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, &e), QSIM_E_VERSION);
    CHECK(strstr(e.message, "unknown flags (0x100000)") != NULL);
    o.flags = 0;
    o.reserved = 1;
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, &o, &m, &e), QSIM_E_VERSION);
    for (int64_t version = 12; version <= 14; version++) {
        proto import = {0}, twice = {0};
        proto_int(&import, 2, version);
        proto_raw(&twice, model.data, model.size); /* it imports opset 13 already */
        proto_take(&twice, 8, &import);
        const int code = qsim_model_load_memory(NULL, twice.data, twice.size, NULL, &m, &e);
        CHECK_INT(code, version == 13 ? QSIM_OK : QSIM_E_GRAPH);
        CHECK(!code || strstr(e.message, "ai.onnx is imported in two versions, 13 and 1"));
        qsim_model_free(m);
        m = NULL;
        proto_free(&twice);
        proto_free(&import);
    }
    proto_free(&model);
    proto_free(&graph);
}

int main(void) {
    check_parts();
    check_versions();
    check_not_imported();
    check_stored();
    check_options();
    check_types();
    check_values();
    check_names();
    qsim_model *m = build_qdq();
    if (m) {
        check_qdq(m);
        CHECK_INT(qsim_model_check(m, NULL, NULL), 0);
        check_upgrade(m);
    }
    qsim_model_free(m);
    check_problems();
    return test_done();
}
