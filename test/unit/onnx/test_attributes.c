/* SPDX-License-Identifier: MIT */
/* qsim_model_attr: attributes of every type, as built and as read from a file. */
#include "net.h"

static const int64_t ints[] = {3, -1, INT64_MAX};
static const float floats[] = {0.5f, -2};
static const uint8_t letters[] = {'a', 0, 0xff};
static const qs_span strings[] = {{letters, 3}, {letters, 0}};
static const int64_t dims[] = {2, 1};
static const qs_const tensor = {
    .dtype = QSIM_FLOAT, .rank = 2, .dims = dims, .data = floats, .elements = 2, .bytes = 8};

static const qs_attr attrs[] = {
    {.name = "one", .type = QSIM_ATTR_INT, .u.i = -7},
    {.name = "real", .type = QSIM_ATTR_FLOAT, .u.f = 1.5f},
    {.name = "text", .type = QSIM_ATTR_STRING, .u.s = {letters, 3}},
    {.name = "ints", .type = QSIM_ATTR_INTS, .count = 3, .u.ints = ints},
    {.name = "floats", .type = QSIM_ATTR_FLOATS, .count = 2, .u.floats = floats},
    {.name = "texts", .type = QSIM_ATTR_STRINGS, .count = 2, .u.strings = strings},
    {.name = "tensor", .type = QSIM_ATTR_TENSOR, .u.tensor = &tensor},
};
enum { ATTRS = sizeof(attrs) / sizeof(attrs[0]) };

static qsim_attr_info get(const qsim_model *m, int32_t node, int32_t index) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    CHECK_INT(qsim_model_attr(m, node, index, &a), QSIM_OK);
    return a;
}

static void check_single(const qsim_model *m, int32_t node) {
    qsim_attr_info a = get(m, node, 0);
    CHECK_STR(a.name, "one");
    CHECK(a.type == QSIM_ATTR_INT && a.count == 1 && a.ints && a.ints[0] == -7);
    CHECK(!a.floats && !a.strings && !a.tensor.data);
    a = get(m, node, 1);
    CHECK_STR(a.name, "real");
    CHECK(a.type == QSIM_ATTR_FLOAT && a.count == 1 && a.floats && a.floats[0] == 1.5f);
    CHECK(!a.ints && !a.strings);
    a = get(m, node, 2);
    CHECK_STR(a.name, "text");
    CHECK(a.type == QSIM_ATTR_STRING && a.count == 1 && a.strings && !a.ints && !a.floats);
    CHECK(a.strings && a.strings[0].size == 3 && memcmp(a.strings[0].data, letters, 3) == 0);
}

static void check_lists(const qsim_model *m, int32_t node) {
    qsim_attr_info a = get(m, node, 3);
    CHECK(a.type == QSIM_ATTR_INTS && a.count == 3 && a.ints &&
          memcmp(a.ints, ints, sizeof(ints)) == 0);
    a = get(m, node, 4);
    CHECK(a.type == QSIM_ATTR_FLOATS && a.count == 2 && a.floats &&
          memcmp(a.floats, floats, sizeof(floats)) == 0);
    a = get(m, node, 5);
    CHECK(a.type == QSIM_ATTR_STRINGS && a.count == 2 && a.strings && a.strings[0].size == 3 &&
          a.strings[1].size == 0);
    a = get(m, node, 6);
    CHECK(a.type == QSIM_ATTR_TENSOR && a.count == 1 && a.tensor.rank == 2 && a.tensor.dims &&
          a.tensor.dims[0] == 2 && a.tensor.dims[1] == 1 && a.tensor.dtype == QSIM_FLOAT);
    CHECK(a.tensor.bytes == 8 && memcmp(a.tensor.data, floats, 8) == 0);
}

static void check_errors(const qsim_model *m, int32_t node) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    CHECK_INT(qsim_model_attr(m, node, ATTRS, &a), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_model_attr(m, node, -1, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_attr(m, -1, 0, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_attr(m, node + 1, 0, &a), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_attr(m, node, 0, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_model_attr(NULL, node, 0, &a), QSIM_E_ARGUMENT);
    a.struct_size = 0;
    CHECK_INT(qsim_model_attr(m, node, 0, &a), QSIM_E_ARGUMENT);
    memset(&a, 0x5a, sizeof(a));
    a.struct_size = offsetof(qsim_attr_info, ints); /* a caller compiled with a shorter struct */
    CHECK_INT(qsim_model_attr(m, node, 0, &a), QSIM_OK);
    CHECK_STR(a.name, "one");
    CHECK(((const char *)&a.ints)[0] == 0x5a);
}

static void make(net *n) {
    net_begin(n, NULL, 17);
    CHECK_INT(qs_graph_set_import(n->g, "my", 1), 0);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(2));
    net_node(n, "", "Relu", "x", "r");
    const qs_id thing = net_node(n, "my", "Thing", "r", "y");
    for (int i = 0; i < ATTRS; i++)
        CHECK_INT(qs_node_set_attr(n->g, thing, &attrs[i]), 0);
    net_output(n, "y");
    CHECK_INT(qs_graph_sort(n->g, &n->error), 0);
    n->model->inspect_only = true;
}

/* The file of the model, loaded. */
static qsim_model *reload(net *n, void **file) {
    qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
    qsim_model *m = NULL;
    size_t size = 0;
    NET_OK(n, qsim_model_save_memory(n->model, NULL, 0, &size, &n->error));
    *file = malloc(size + 1);
    NET_OK(n, qsim_model_save_memory(n->model, *file, size, &size, &n->error));
    NET_OK(n, qsim_model_load_memory(NULL, *file, size, &o, &m, &n->error));
    return m;
}

/* Values that are not given have no pointer. */
static void test_without_value(void) {
    net n;
    net_begin(&n, NULL, 17);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2));
    const qs_id node = net_node(&n, "my", "Thing", "x", "y");
    const qs_attr none[] = {{.name = "graph", .type = QSIM_ATTR_GRAPH},
                            {.name = "other", .type = QSIM_ATTR_OTHER}};
    for (int i = 0; i < 2; i++)
        CHECK_INT(qs_node_set_attr(n.g, node, &none[i]), 0);
    net_output(&n, "y");
    CHECK_INT(qs_graph_sort(n.g, &n.error), 0);
    n.model->inspect_only = true;
    for (int i = 0; i < 2; i++) {
        const qsim_attr_info a = get(n.model, 0, i);
        CHECK_INT(a.type, none[i].type);
        CHECK(!a.ints && !a.floats && !a.strings && !a.tensor.data);
    }
    net_free(&n);
}

int main(void) {
    net n;
    void *file = NULL;
    make(&n);
    check_single(n.model, 1);
    check_lists(n.model, 1);
    check_errors(n.model, 1);
    qsim_model *m = reload(&n, &file);
    if (m) {
        check_single(m, 1);
        check_lists(m, 1);
        check_errors(m, 1);
    }
    qsim_model_free(m);
    free(file);
    net_free(&n);
    test_without_value();
    return test_done();
}
