/* SPDX-License-Identifier: MIT */
/* Protobuf written by hand, for tests with messages that no writer makes. */
#ifndef QS_TEST_PROTO_H
#define QS_TEST_PROTO_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct proto {
    uint8_t *data;
    size_t size, capacity;
} proto;

static inline void proto_raw(proto *p, const void *data, size_t size) {
    if (p->size + size > p->capacity) {
        p->capacity = 2 * (p->size + size) + 64;
        p->data = realloc(p->data, p->capacity);
        if (!p->data)
            abort();
    }
    if (size)
        memcpy(p->data + p->size, data, size);
    p->size += size;
}

static inline void proto_varint(proto *p, uint64_t v) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; v > 127; v >>= 7)
        bytes[n++] = (uint8_t)(v & 127) | 128;
    bytes[n++] = (uint8_t)v;
    proto_raw(p, bytes, n);
}

static inline void proto_tag(proto *p, uint32_t number, uint32_t wire) {
    proto_varint(p, (uint64_t)number << 3 | wire);
}

static inline void proto_int(proto *p, uint32_t number, int64_t v) {
    proto_tag(p, number, 0);
    proto_varint(p, (uint64_t)v);
}

static inline void proto_bytes(proto *p, uint32_t number, const void *data, size_t size) {
    proto_tag(p, number, 2);
    proto_varint(p, size);
    proto_raw(p, data, size);
}

static inline void proto_text(proto *p, uint32_t number, const char *text) {
    proto_bytes(p, number, text, strlen(text));
}

/* Appends `part` as a message and empties it. */
static inline void proto_take(proto *p, uint32_t number, proto *part) {
    proto_bytes(p, number, part->data, part->size);
    part->size = 0;
}

static inline void proto_free(proto *p) {
    free(p->data);
    *p = (proto){0};
}

/* ---- parts of ONNX ---- */

/* A value of this TensorShapeProto, which is freed. */
static inline void proto_shaped(proto *graph, uint32_t field, const char *name, int dtype,
                                proto *shape) {
    proto tensor = {0}, type = {0}, value = {0};
    proto_int(&tensor, 1, dtype);
    proto_take(&tensor, 2, shape);
    proto_take(&type, 1, &tensor);
    proto_text(&value, 1, name);
    proto_take(&value, 2, &type);
    proto_take(graph, field, &value);
    proto_free(shape);
    proto_free(&tensor);
    proto_free(&type);
    proto_free(&value);
}

static inline void proto_value(proto *graph, uint32_t field, const char *name, int dtype,
                               const int64_t *dims, int rank) {
    proto dim = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        if (dims[i] >= 0)
            proto_int(&dim, 1, dims[i]);
        proto_take(&shape, 1, &dim);
    }
    proto_free(&dim);
    proto_shaped(graph, field, name, dtype, &shape);
}

/* An input of one axis, whose size has a name. */
static inline void proto_named_size(proto *graph, const char *name, int dtype, const char *size) {
    proto dim = {0}, shape = {0};
    proto_text(&dim, 2, size);
    proto_take(&shape, 1, &dim);
    proto_free(&dim);
    proto_shaped(graph, 11, name, dtype, &shape);
}

/* A node without attributes; the names may be NULL. */
static inline void proto_node(proto *graph, const char *op, const char *name, const char *a,
                              const char *b, const char *y) {
    proto node = {0};
    if (a)
        proto_text(&node, 1, a);
    if (b)
        proto_text(&node, 1, b);
    if (y)
        proto_text(&node, 2, y);
    if (name)
        proto_text(&node, 3, name);
    proto_text(&node, 4, op);
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/* An empty node's names, in lists with commas, and its operator. */
static inline void proto_begin(proto *node, const char *op, const char *in, const char *out) {
    for (; *in; in += strcspn(in, ","), in += *in == ',')
        proto_bytes(node, 1, in, strcspn(in, ","));
    for (; *out; out += strcspn(out, ","), out += *out == ',')
        proto_bytes(node, 2, out, strcspn(out, ","));
    proto_text(node, 4, op);
}

/* An input (field 11) or output (12) of a graph: a name without type and shape. */
static inline void proto_name(proto *graph, uint32_t field, const char *name) {
    proto value = {0};
    proto_text(&value, 1, name);
    proto_take(graph, field, &value);
    proto_free(&value);
}

/* A SparseTensorProto: the first of two floats. */
static inline void proto_sparse(proto *sparse, float value) {
    static const uint8_t first[8] = {0};
    proto t = {0};
    proto_int(&t, 1, 1);
    proto_int(&t, 2, 1);
    proto_bytes(&t, 9, &value, sizeof(value));
    proto_take(sparse, 1, &t);
    proto_int(&t, 1, 1);
    proto_int(&t, 2, 7);
    proto_bytes(&t, 9, first, sizeof(first));
    proto_take(sparse, 2, &t);
    proto_int(sparse, 3, 2);
    proto_free(&t);
}

/* A constant of n elements; n < 0: of one, without axes. */
static inline void proto_constant(proto *graph, const char *name, int dtype, int64_t n,
                                  const void *data, size_t size) {
    proto t = {0};
    if (n >= 0)
        proto_int(&t, 1, n);
    proto_int(&t, 2, dtype);
    proto_text(&t, 8, name);
    proto_bytes(&t, 9, data, size);
    proto_take(graph, 5, &t);
    proto_free(&t);
}

/* An attribute that is an integer. */
static inline void proto_integer(proto *node, const char *name, int64_t v) {
    proto a = {0};
    proto_text(&a, 1, name);
    proto_int(&a, 3, v);
    proto_int(&a, 20, 2);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* An attribute that is a graph, which is emptied. */
static inline void proto_graph(proto *node, const char *name, proto *graph) {
    proto a = {0};
    proto_text(&a, 1, name);
    proto_take(&a, 6, graph);
    proto_int(&a, 20, 5);
    proto_take(node, 5, &a);
    proto_free(&a);
}

/* An If, whose outputs are a list with commas; both branches are emptied. `name` may be NULL. */
static inline void proto_if(proto *graph, const char *name, const char *condition, proto *then,
                            proto *otherwise, const char *outputs) {
    proto node = {0};
    proto_begin(&node, "If", condition, outputs);
    if (name)
        proto_text(&node, 3, name);
    proto_graph(&node, "then_branch", then);
    proto_graph(&node, "else_branch", otherwise);
    proto_take(graph, 1, &node);
    proto_free(&node);
}

/*
 * z = Loop(three, initial): z = z + step in each iteration, where the body has the constant "step",
 * which is emptied. The caller adds "three".
 */
static inline void proto_loop(proto *graph, const char *initial, proto *step, int dtype,
                              const int64_t *dims, int rank) {
    proto node = {0}, body = {0};
    proto_text(&node, 1, "three");
    proto_text(&node, 1, "");
    proto_text(&node, 1, initial);
    proto_text(&node, 2, "z");
    proto_text(&node, 4, "Loop");
    proto_node(&body, "Add", "add", "state", "step", "next");
    proto_node(&body, "Identity", NULL, "on", NULL, "still");
    proto_take(&body, 5, step);
    proto_value(&body, 11, "i", 7, NULL, 0);
    proto_value(&body, 11, "on", 9, NULL, 0);
    proto_value(&body, 11, "state", dtype, dims, rank);
    proto_value(&body, 12, "still", 9, NULL, 0);
    proto_value(&body, 12, "next", dtype, dims, rank);
    proto_graph(&node, "body", &body);
    proto_take(graph, 1, &node);
    proto_free(&node);
    proto_free(&body);
}

/* One fact about the external data of a tensor: its location, offset or length. */
static inline void proto_external(proto *tensor, const char *key, const char *value) {
    proto pair = {0};
    proto_text(&pair, 1, key);
    proto_text(&pair, 2, value);
    proto_take(tensor, 13, &pair);
    proto_free(&pair);
}

/* A model of ir_version 7, opset 13 and this graph, which is emptied. */
static inline void proto_model(proto *model, proto *graph) {
    proto opset = {0};
    proto_int(model, 1, 7);
    proto_text(model, 2, "a test");
    proto_take(model, 7, graph);
    proto_int(&opset, 2, 13);
    proto_take(model, 8, &opset);
    proto_free(&opset);
}

#endif
