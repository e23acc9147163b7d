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
    proto node = {0}, body = {0}, t = tensor("step", true);
    proto_text(&node, 1, "three");
    proto_text(&node, 1, "");
    proto_text(&node, 1, "x");
    proto_text(&node, 2, "z");
    proto_text(&node, 4, "Loop");
    proto_node(&body, "Add", "add", "state", "step", "next");
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_take(&body, 5, &t);
    proto_value(&body, 11, "i", QSIM_INT64, NULL, 0);
    proto_value(&body, 11, "on", QSIM_BOOL, NULL, 0);
    proto_value(&body, 11, "state", QSIM_FLOAT, any, 2);
    proto_value(&body, 12, "still", QSIM_BOOL, NULL, 0);
    proto_value(&body, 12, "next", QSIM_FLOAT, any, 2);
    attribute(&node, "body", 5, 6, 2, body.data, body.size);
    proto_take(graph, 1, &node);
    proto_free(&node);
    proto_free(&body);
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
            if (a->type == QS_ATTR_GRAPH && a->u.graph)
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
            if (g->nodes[i].attrs[k].type == QS_ATTR_GRAPH)
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

int main(void) {
    proto file = model();
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_model_load_memory(NULL, file.data, file.size, NULL, &m, &e), QSIM_OK);
    if (m) {
        check_graph(m->graph);
        forget(m->graph);
        check_graph(m->graph);
        check_again(m);
    } else
        fprintf(stderr, "%s\n", e.message);
    qsim_model_free(m);
    proto_free(&file);
    return test_done();
}
