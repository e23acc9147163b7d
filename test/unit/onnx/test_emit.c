/* SPDX-License-Identifier: MIT */
/*
 * Messages written into streams of every length: a stream that is too short fails, and one that is
 * long enough holds the message that was read.
 */
#include "proto.h"
#include "test.h"

#include <qsim/model.h>

#include "graph/model.h"
#include "onnx/emit.h"

static const int64_t two[] = {2}, any[] = {-1, 2};

static void attribute(proto *node, const char *name, int type, uint32_t field, uint32_t wire,
                      const void *data, size_t size) {
    proto a = {0};
    proto_text(&a, 1, name);
    if (wire == 2)
        proto_bytes(&a, field, data, size);
    else {
        proto_tag(&a, field, wire);
        proto_raw(&a, data, size);
    }
    proto_int(&a, 20, type);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* A tensor of two floats, in a list or raw, and named or not. */
static proto tensor(const char *name, bool raw) {
    proto t = {0};
    proto_int(&t, 1, 2);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_bytes(&t, raw ? 9 : 4, "\0\0\x80\x3f\0\0\0\x40", 8);
    if (name)
        proto_text(&t, 8, name);
    proto_text(&t, 12, "documentation");
    return t;
}

static void constant(proto *graph, const char *name, const char *attr, int type, uint32_t field,
                     uint32_t wire, const void *data, size_t size) {
    proto node = {0};
    proto_text(&node, 2, name);
    proto_text(&node, 3, name);
    proto_text(&node, 4, "Constant");
    proto_text(&node, 6, "documentation");
    attribute(&node, attr, type, field, wire, data, size);
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/* A Loop whose body has a constant of its own. */
static void loop(proto *graph) {
    proto t = tensor("step", true);
    proto_loop(graph, "x", &t, QSIM_FLOAT, any, 2);
    proto_free(&t);
}

/* A node with each kind of attribute that a model may have. */
static proto model(void) {
    proto file = {0}, graph = {0}, node = {0};
    proto t = tensor(NULL, true), named = tensor("named", false);
    const float number = 0.5f;
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "r");
    proto_text(&node, 4, "LeakyRelu");
    attribute(&node, "alpha", 1, 2, 5, &number, 4);
    proto_take(&graph, 1, &node);
    constant(&graph, "three", "value_int", 2, 3, 0, "\3", 1);
    constant(&graph, "floats", "value_floats", 6, 7, 2, "\0\0\x80\x3f\0\0\0\x40", 8);
    constant(&graph, "ints", "value_ints", 7, 8, 2, "\1\2", 2);
    constant(&graph, "raw", "value", 4, 5, 2, t.data, t.size);
    constant(&graph, "list", "value", 4, 5, 2, named.data, named.size);
    loop(&graph);
    proto_text(&graph, 2, "g");
    proto_take(&graph, 5, &named);
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    proto_value(&graph, 12, "r", QSIM_FLOAT, any, 2);
    proto_value(&graph, 12, "z", QSIM_FLOAT, any, 2);
    proto_value(&graph, 12, "floats", QSIM_FLOAT, two, 1);
    proto_model(&file, &graph);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&t);
    proto_free(&named);
    return file;
}

/* Forgets the fields as they were read, so that they are written from the graph. */
static void forget(qs_graph *g) {
    for (size_t i = 0; i < g->value_count; i++)
        g->values[i].source = (qs_span){NULL, 0};
    for (size_t i = 0; i < g->node_count; i++) {
        g->nodes[i].changed = true;
        for (int32_t k = 0; k < g->nodes[i].attr_count; k++) {
            qs_attr *a = &g->nodes[i].attrs[k];
            a->source = (qs_span){NULL, 0};
            if (a->type == QSIM_ATTR_GRAPH && a->u.graph)
                forget(a->u.graph->graph);
        }
    }
}

/* One message of a graph: a node, a value, a tensor inside or outside. */
static bool emit(pb_ostream_t *out, const qs_graph *g, size_t what, int kind) {
    const qs_value *v = &g->values[what];
    switch (kind) {
    case 0: return qs_emit_node(out, g, &g->nodes[what]);
    case 1: return qs_emit_value(out, 13, v);
    case 2: return qs_emit_tensor(out, 5, v->name, v->data);
    default: return qs_emit_outside(out, 5, v->name, v->data, "w.bin", 64);
    }
}

static void check_message(const qs_graph *g, size_t what, int kind) {
    static uint8_t bytes[1024];
    pb_ostream_t size = PB_OSTREAM_SIZING;
    CHECK(emit(&size, g, what, kind));
    CHECK(size.bytes_written > 0 && size.bytes_written < sizeof(bytes));
    for (size_t capacity = 0; capacity <= size.bytes_written; capacity++) {
        pb_ostream_t out = pb_ostream_from_buffer(bytes, capacity);
        CHECK(emit(&out, g, what, kind) == (capacity == size.bytes_written));
    }
}

static void check_graph(const qs_graph *g) {
    for (size_t i = 0; i < g->node_count; i++) {
        check_message(g, i, 0);
        for (int32_t k = 0; k < g->nodes[i].attr_count; k++)
            if (g->nodes[i].attrs[k].type == QSIM_ATTR_GRAPH)
                check_graph(g->nodes[i].attrs[k].u.graph->graph);
    }
    for (size_t i = 0; i < g->value_count; i++)
        for (int kind = 1; kind < 4; kind++)
            if (kind == 1 || g->values[i].data)
                check_message(g, i, kind);
}

/* A model written from its graph loads as the same graph, and saves as the same file. */
static void check_again(qsim_model *m) {
    uint8_t *bytes[2] = {NULL, NULL};
    size_t size[2] = {0, 0};
    qsim_model *now = NULL, *last = m;
    qsim_error e = {0};
    char hash[2][65] = {"", ""};
    for (int i = 0; i < 2; i++) {
        CHECK_INT(qs_model_derive(last, &now, &e), QSIM_OK);
        forget(now->graph);
        CHECK_INT(qsim_model_save_memory(now, NULL, 0, &size[i], &e), QSIM_OK);
        bytes[i] = malloc(size[i]);
        CHECK_INT(qsim_model_save_memory(now, bytes[i], size[i], &size[i], &e), QSIM_OK);
        qsim_model_free(now);
        if (last != m)
            qsim_model_free(last);
        CHECK_INT(qsim_model_load_memory(NULL, bytes[i], size[i], NULL, &last, &e), QSIM_OK);
        if (!last)
            fprintf(stderr, "%s\n", e.message);
        CHECK_INT(qsim_model_hash(last, hash[i]), QSIM_OK);
        CHECK_INT(qsim_model_node_count(last), qsim_model_node_count(m));
    }
    CHECK(size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0);
    CHECK_STR(hash[0], hash[1]);
    qsim_model_free(last);
    free(bytes[0]);
    free(bytes[1]);
}

/* ---- messages that are kept as they were read ---- */

/* Whether the bytes of a message are among those that were written. */
static bool keeps(const pb_ostream_t *out, const uint8_t *bytes, const void *part, size_t size) {
    for (size_t i = 0; i + size <= out->bytes_written; i++)
        if (memcmp(bytes + i, part, size) == 0)
            return true;
    return false;
}

static bool keeps_value(const qs_value *v) {
    uint8_t bytes[256];
    pb_ostream_t out = pb_ostream_from_buffer(bytes, sizeof(bytes));
    CHECK(qs_emit_value(&out, 13, v));
    return keeps(&out, bytes, v->source.data, v->source.size);
}

/* x, a float [any, 2] with a text, and what may become of it. */
static void check_values_kept(void) {
    qs_dim dims[] = {{-1, NULL}, {2, NULL}, {3, NULL}};
    proto graph = {0}, bare = {0};
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    qs_field f;
    qs_wire wire;
    qs_wire_begin(&wire, (qs_span){graph.data, graph.size});
    CHECK_INT(qs_wire_next(&wire, &f), 1);
    proto m = {0};
    proto_text(&m, 3, "documentation");
    proto_raw(&m, f.data.data, f.data.size);
    const qs_value read = {.name = "x",
                           .dtype = QSIM_FLOAT,
                           .rank = 2,
                           .dims = dims,
                           .producer = QS_NONE,
                           .source = {m.data, m.size}};
    qs_value v = read;
    CHECK(keeps_value(&v));
    v.rank = -1; /* what the file says more is not wrong */
    CHECK(keeps_value(&v));
    v = read, v.name = "xx";
    CHECK(!keeps_value(&v));
    v = read, v.dtype = QSIM_INT8;
    CHECK(!keeps_value(&v));
    for (int32_t rank = 0; rank <= 3; rank++) {
        v = read, v.rank = rank;
        CHECK_INT(keeps_value(&v), rank == 2);
    }
    v = read;
    dims[1].size = 3;
    CHECK(!keeps_value(&v));
    dims[1].size = 2;
    proto_text(&bare, 3, "documentation"); /* a name without a type */
    proto_text(&bare, 1, "x");
    v = read, v.source = (qs_span){bare.data, bare.size};
    CHECK(!keeps_value(&v));
    v.dtype = QSIM_UNDEFINED;
    CHECK(keeps_value(&v));
    proto_free(&m);
    proto_free(&bare);
    proto_free(&graph);
}

static bool keeps_node(const qs_graph *g, const qs_node *n) {
    uint8_t bytes[256];
    pb_ostream_t out = pb_ostream_from_buffer(bytes, sizeof(bytes));
    CHECK(qs_emit_node(&out, g, n));
    return keeps(&out, bytes, n->source.data, n->source.size);
}

/* c = Add(a, b), its fields in an order that is not the writer's. */
static void check_nodes_kept(void) {
    qs_value values[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    const qs_graph g = {.values = values, .value_count = 3};
    qs_id in[] = {0, 1, 2}, swapped[] = {1, 0}, left_out[] = {0, QS_NONE}, out[] = {2, 2},
          other[] = {1};
    qs_attr alpha = {.name = "alpha", .type = QSIM_ATTR_INT, .u.i = 1};
    proto m = {0};
    proto_text(&m, 4, "Add");
    proto_text(&m, 2, "c");
    proto_text(&m, 1, "a");
    proto_text(&m, 1, "b");
    const qs_node read = {.name = "",
                          .domain = "",
                          .op_type = "Add",
                          .inputs = in,
                          .outputs = out,
                          .input_count = 2,
                          .output_count = 1,
                          .source = {m.data, m.size}};
    qs_node n = read;
    CHECK(keeps_node(&g, &n));
    n.input_count = 3, n.captured = 1; /* a value that a graph inside reads is not listed */
    CHECK(keeps_node(&g, &n));
    n = read, n.changed = true;
    CHECK(!keeps_node(&g, &n));
    proto more = {0}; /* fields that this version does not know stay */
    proto_text(&more, 31, "u31");
    proto_text(&more, 32, "u32");
    n.source = (qs_span){more.data, more.size};
    CHECK(keeps_node(&g, &n));
    proto_free(&more);
    n = read, n.op_type = "Sub";
    CHECK(!keeps_node(&g, &n));
    n = read, n.inputs = swapped;
    CHECK(!keeps_node(&g, &n));
    n = read, n.inputs = left_out;
    CHECK(!keeps_node(&g, &n));
    n = read, n.outputs = other;
    CHECK(!keeps_node(&g, &n));
    for (int32_t count = 0; count <= 3; count++) {
        n = read, n.input_count = count;
        CHECK_INT(keeps_node(&g, &n), count == 2);
    }
    for (int32_t count = 0; count <= 2; count++) {
        n = read, n.output_count = count;
        CHECK_INT(keeps_node(&g, &n), count == 1);
    }
    const qs_span texts[] = {{(const uint8_t *)"first", 5}, {(const uint8_t *)"second", 6}};
    qs_attr strings = {.name = "texts", .type = QSIM_ATTR_STRINGS, .count = 2, .u.strings = texts};
    uint8_t bytes[128];
    pb_ostream_t to = pb_ostream_from_buffer(bytes, sizeof(bytes));
    n = read, n.attrs = &strings, n.attr_count = 1, n.changed = true;
    CHECK(qs_emit_node(&to, &g, &n));
    CHECK(keeps(&to, bytes, "\x4a\5first\x4a\6second", 15)); /* fields 9 */
    n = read, n.attrs = &alpha, n.attr_count = 1; /* without a message: as a pass's hint */
    CHECK(keeps_node(&g, &n));
    proto_free(&m);
}

/* The message of an attribute stays where its node is written anew. */
static void check_attributes_kept(void) {
    const qs_graph g = {0};
    proto m = {0};
    uint8_t bytes[128];
    pb_ostream_t out = pb_ostream_from_buffer(bytes, sizeof(bytes));
    proto_text(&m, 1, "alpha");
    proto_text(&m, 13, "documentation");
    qs_attr alpha = {.name = "alpha", .type = QSIM_ATTR_INT, .u.i = 1, .source = {m.data, m.size}};
    const qs_node n = {.name = "",
                       .domain = "",
                       .op_type = "Elu",
                       .attrs = &alpha,
                       .attr_count = 1,
                       .changed = true};
    CHECK(qs_emit_node(&out, &g, &n));
    CHECK(keeps(&out, bytes, m.data, m.size));
    proto_free(&m);
}

/* The name of an attribute's tensor stays, also where the attribute is written anew. */
static void check_names_kept(const qs_graph *g) {
    for (size_t i = 0; i < g->node_count; i++) {
        uint8_t bytes[512];
        pb_ostream_t out = pb_ostream_from_buffer(bytes, sizeof(bytes));
        CHECK(qs_emit_node(&out, g, &g->nodes[i]));
        CHECK_INT(keeps(&out, bytes, "named", 5), strcmp(g->nodes[i].name, "list") == 0);
    }
}

/* A model with each field that is read, and some that are not, in the order of their numbers. */
static void every_field(proto *file, const char *name) {
    static const float w[2] = {1, 2};
    proto graph = {0}, part = {0};
    proto_node(&graph, "Relu", "first", "x", NULL, "z");
    proto_node(&graph, "Add", "second", "z", "w", "y");
    if (name)
        proto_text(&graph, 2, name);
    proto_int(&part, 1, 2);
    proto_int(&part, 2, QSIM_FLOAT);
    proto_text(&part, 8, "w");
    proto_bytes(&part, 9, w, sizeof(w));
    proto_take(&graph, 5, &part);
    proto_text(&graph, 10, "kept");
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    proto_value(&graph, 12, "y", QSIM_FLOAT, any, 2);
    proto_value(&graph, 13, "z", QSIM_FLOAT, any, 2);
    proto_text(&graph, 17, "kept");
    proto_text(&graph, 99, "kept");
    proto_int(file, 1, 7);
    proto_text(file, 2, "libqsim");
    proto_text(file, 3, qsim_version_string());
    proto_text(file, 6, "kept");
    proto_take(file, 7, &graph);
    for (int i = 0; i < 2; i++) {
        proto_text(&part, 1, i ? "com.microsoft" : "");
        proto_int(&part, 2, i ? 1 : 13);
        proto_take(file, 8, &part);
    }
    proto_text(file, 13, "kept");
    for (int i = 0; i < 2; i++) {
        proto_text(&part, 1, i ? "key" : "first key");
        proto_text(&part, 2, i ? "value" : "");
        proto_take(file, 14, &part);
    }
    proto_text(file, 30, "kept");
    proto_text(file, 100, "kept");
    proto_free(&part);
    proto_free(&graph);
}

/* What is read and written field by field is the same file; a graph without a name gets one. */
static void check_fields_kept(const char *name) {
    proto file = {0}, wanted = {0};
    qsim_model *m = NULL, *now = NULL;
    uint8_t bytes[512];
    size_t size = 0;
    every_field(&file, name);
    every_field(&wanted, name && name[0] ? name : "graph");
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, NULL), QSIM_OK);
    CHECK(m->kept_count == 3 && m->kept_graph_count == 2); /* neighbours are one */
    CHECK_INT(qs_model_derive(m, &now, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(now, bytes, sizeof(bytes), &size, NULL), QSIM_OK);
    CHECK(size == wanted.size && memcmp(bytes, wanted.data, size) == 0);
    qsim_model_free(now);
    qsim_model_free(m);
    proto_free(&file);
    proto_free(&wanted);
}

/* Constants that only graphs which are not read may use are written. */
static void check_constants_kept(bool unread) {
    static const char part[] = "unused weight";
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_INSPECT};
    proto file = {0}, graph = {0}, node = {0}, inner = {0};
    qsim_model *m = NULL, *now = NULL;
    uint8_t bytes[1024];
    size_t size = 0;
    proto_begin(&node, "Unheard", "x", "y");
    proto_text(&inner, 2, "inner");
    if (unread)
        attribute(&node, "graphs", 10, 11, 2, inner.data, inner.size);
    proto_take(&graph, 1, &node);
    proto_constant(&graph, part, QSIM_FLOAT, 1, "\0\0\0", 4);
    proto_value(&graph, 11, "x", QSIM_FLOAT, any, 2);
    proto_name(&graph, 12, "y");
    proto_model(&file, &graph);
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, &o, &m, NULL), QSIM_OK);
    CHECK_INT(qs_model_derive(m, &now, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(now, bytes, sizeof(bytes), &size, NULL), QSIM_OK);
    const pb_ostream_t out = {.bytes_written = size};
    CHECK(size > 0 && keeps(&out, bytes, part, strlen(part)) == unread);
    qsim_model_free(now);
    qsim_model_free(m);
    proto_free(&file);
    proto_free(&graph);
    proto_free(&node);
    proto_free(&inner);
}

int main(void) {
    check_constants_kept(true);
    check_constants_kept(false);
    check_fields_kept("g");
    check_fields_kept("");
    check_fields_kept(NULL);
    check_values_kept();
    check_nodes_kept();
    check_attributes_kept();
    proto file = model();
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_OK);
    if (m) {
        check_graph(m->graph);
        check_names_kept(m->graph);
        forget(m->graph);
        check_names_kept(m->graph);
        check_graph(m->graph);
        check_again(m);
    } else
        fprintf(stderr, "%s\n", e.message);
    qsim_model_free(m);
    proto_free(&file);
    return test_done();
}
