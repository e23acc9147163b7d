/* SPDX-License-Identifier: MIT */
/*
 * Models with one odd field each: attributes of every type, tensors with their bytes in the wrong
 * field or of the wrong type, wrong shapes, names and imports.
 */
#include <stdbool.h>
#include <string.h>

#include "model_seeds.h"
#include "proto.h"

#include <qsim/base.h>

#include "fuzz.h"

/* A model y = op(x, w) with the given fields of the node and, in `field` of the graph, of w. */
static void with_tensor(proto *model, const char *op, proto *node, uint32_t field, proto *tensor) {
    proto graph = {0};
    proto_text(node, 1, "x");
    if (tensor->size)
        proto_text(node, 1, "w");
    proto_text(node, 2, "y");
    proto_text(node, 4, op);
    proto_take(&graph, 1, node);
    proto_text(&graph, 2, "g");
    if (tensor->size)
        proto_take(&graph, field, tensor);
    proto_value(&graph, 11, "x", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_value(&graph, 12, "y", QSIM_FLOAT, (const int64_t[]){2}, 1);
    proto_model(model, &graph);
    proto_free(&graph);
}

static void small(proto *model, const char *op, proto *node, proto *tensor) {
    with_tensor(model, op, node, 5, tensor);
}

/* A field of an attribute: wire type 0, 2 or 5, its value a small number or text. */
static void attribute(proto *node, uint32_t field, uint32_t wire, int type, const char *refers) {
    proto a = {0};
    proto_text(&a, 1, "alpha");
    if (wire != 2)
        proto_tag(&a, field, wire);
    if (wire == 2)
        proto_text(&a, field,
                   field == 5 || field == 10    ? "\x10\1"  /* a tensor's type */
                   : field == 6 || field == 11  ? "\x52\1a" /* a graph's text */
                   : field == 14 || field == 15 ? "\x32\1a" /* a type's text */
                   : field > 21                 ? "\x18\1"  /* a sparse tensor's size */
                                                : "\4\4\4\4");              /* text or a number */
    else
        proto_raw(&a, "\1\0\0\0", wire == 0 ? 1 : 4);
    if (refers)
        proto_text(&a, 21, refers);
    if (type)
        proto_int(&a, 20, type);
    proto_take(node, 5, &a);
    proto_free(&a);
}

#define ATTRIBUTES 20

static void odd_attribute(proto *model, size_t index) {
    static const struct {
        uint32_t field, wire;
        int type;
        const char *refers;
    } odd[ATTRIBUTES] = {{2, 5, 1, NULL},   {2, 5, 2, NULL},   {3, 0, 2, NULL},   {4, 2, 3, NULL},
                         {5, 2, 4, NULL},   {6, 2, 5, NULL},   {7, 2, 6, NULL},   {7, 5, 0, NULL},
                         {8, 2, 7, NULL},   {8, 0, 0, NULL},   {9, 2, 8, NULL},   {10, 2, 9, NULL},
                         {11, 2, 10, NULL}, {14, 2, 13, NULL}, {15, 2, 14, NULL}, {22, 2, 11, NULL},
                         {23, 2, 12, NULL}, {3, 0, 99, NULL},  {3, 0, 0, "beta"}, {5, 2, 3, NULL}};
    proto node = {0}, none = {0};
    attribute(&node, odd[index].field, odd[index].wire, odd[index].type, odd[index].refers);
    if (index == 1)
        attribute(&node, 3, 0, 2, NULL); /* two of a name */
    small(model, "LeakyRelu", &node, &none);
    proto_free(&node);
    proto_free(&none);
}

#define TENSORS 34

/* A tensor of two elements with an odd size, type or field of its elements. */
static void odd_tensor(proto *model, size_t index) {
    static const char eight[16] = {0};
    static const struct {
        int64_t size;
        int dtype;
        uint32_t field; /* 9: raw */
        size_t bytes;
    } odd[TENSORS] = {{2, QSIM_FLOAT, 9, 8},
                      {2, QSIM_FLOAT, 9, 7},
                      {2, QSIM_FLOAT, 4, 8},
                      {2, QSIM_FLOAT, 4, 7},
                      {2, QSIM_FLOAT, 5, 2},
                      {2, QSIM_FLOAT, 0, 0},
                      {-1, QSIM_FLOAT, 9, 8},
                      {INT64_MAX, QSIM_FLOAT, 9, 8},
                      {INT64_MAX, QSIM_STRING, 6, 1},
                      {2, QSIM_STRING, 6, 1},
                      {1, QSIM_STRING, 6, 1},
                      {2, QSIM_STRING, 9, 2},
                      {2, QSIM_DOUBLE, 10, 16},
                      {2, QSIM_DOUBLE, 10, 8},
                      {2, QSIM_UINT64, 11, 2},
                      {2, QSIM_UINT32, 11, 2},
                      {2, QSIM_INT64, 7, 2},
                      {2, QSIM_INT64, 7, 1},
                      {2, QSIM_INT32, 5, 2},
                      {2, QSIM_INT16, 5, 2},
                      {2, QSIM_UINT16, 5, 2},
                      {2, QSIM_BOOL, 5, 2},
                      {2, QSIM_INT8, 5, 2},
                      {2, QSIM_UINT8, 5, 2},
                      {2, QSIM_INT4, 5, 1},
                      {1, QSIM_INT4, 9, 1},
                      {3, QSIM_UINT2, 9, 1},
                      {2, QSIM_FLOAT16, 5, 2},
                      {2, QSIM_COMPLEX64, 4, 16},
                      {1, QSIM_COMPLEX128, 10, 16},
                      {2, 0, 9, 8},
                      {2, 99, 9, 8},
                      {2, QSIM_FLOAT8E4M3FN, 5, 2},
                      {2, QSIM_BFLOAT16, 5, 2}};
    proto node = {0}, t = {0};
    proto_int(&t, 1, odd[index].size);
    if (odd[index].dtype)
        proto_int(&t, 2, odd[index].dtype);
    if (odd[index].field)
        proto_bytes(&t, odd[index].field, index % 2 ? "\xff\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1" : eight,
                    odd[index].bytes);
    proto_text(&t, 8, "w");
    if (index == 0)
        proto_bytes(&t, 3, "\0\0", 2); /* a segment */
    small(model, "Add", &node, &t);
    proto_free(&node);
    proto_free(&t);
}

/* A tensor with bytes inside and outside, in two fields, or with many axes. */
static void odd_place(proto *model, size_t index) {
    proto node = {0}, t = {0};
    for (int i = 0; i < (index == 0 ? 20 : 1); i++)
        proto_int(&t, 1, 2);
    proto_int(&t, 2, QSIM_FLOAT);
    proto_text(&t, 8, "w");
    if (index == 1 || index == 2)
        proto_bytes(&t, 9, "\0\0\0\0\0\0\0\0", 8);
    if (index == 1 || index == 3)
        proto_bytes(&t, 4, "\0\0\0\0\0\0\0\0", 8);
    if (index == 3)
        proto_bytes(&t, 7, "\1\1", 2);
    if (index == 2 || index == 4) {
        proto_external(&t, "location", index == 2 ? "w" : "../w");
        proto_int(&t, 14, 1);
    }
    small(model, "Add", &node, &t);
    proto_free(&node);
    proto_free(&t);
}
#define PLACES 5

/* A sparse initializer; in some, an index or the sizes are wrong. */
static void odd_sparse(proto *model, size_t index) {
    static const char indices[][16] = {{1}, {1, [8] = 1}, {5}, {1, 1, 1, 1, 1, 1, 1, 1}};
    proto node = {0}, sparse = {0}, t = {0};
    const bool axes = index % 2;
    proto_int(&t, 1, 1);
    proto_int(&t, 2, index == 6 ? QSIM_STRING : QSIM_FLOAT);
    proto_text(&t, 8, "w");
    proto_bytes(&t, 9, "\0\0\0\x3f", 4);
    proto_take(&sparse, 1, &t);
    proto_int(&t, 1, 1);
    if (axes)
        proto_int(&t, 1, 2);
    proto_int(&t, 2, index == 7 ? QSIM_INT32 : QSIM_INT64);
    proto_bytes(&t, 9, indices[index / 2], axes ? 16 : 8);
    proto_take(&sparse, 2, &t);
    proto_int(&sparse, 3, index == 4 ? -1 : 2);
    proto_int(&sparse, 3, 2);
    with_tensor(model, "Add", &node, 15, &sparse);
    proto_free(&node);
    proto_free(&sparse);
    proto_free(&t);
}
#define SPARSES 8

/* A function that calls another, with an attribute that refers to its own; one field is wrong. */
static void odd_function(proto *model, size_t index) {
    proto node = {0}, none = {0}, f = {0}, part = {0}, a = {0};
    proto_text(&node, 7, "mine");
    attribute(&node, index == 1 ? 6 : 2, index == 1 ? 2 : 5, index == 1 ? 5 : 1, NULL);
    small(model, "Leak", &node, &none);
    proto_text(&part, 1, "mine");
    proto_int(&part, 2, 1);
    proto_take(model, 8, &part);
    proto_text(&f, 1, "Leak");
    proto_text(&f, 4, "a");
    proto_text(&f, 5, index == 2 ? "nowhere" : index == 3 ? "a" : "b");
    proto_text(&f, index == 4 ? 11 : 6, "alpha");
    if (index == 5) { /* with a value of its own */
        proto_text(&a, 1, "beta");
        proto_tag(&a, 2, 5);
        proto_raw(&a, "\0\0\0\x3f", 4);
        proto_int(&a, 20, 1);
        proto_take(&f, 11, &a);
    }
    proto_text(&part, 1, "a");
    proto_text(&part, 2, "b");
    proto_text(&part, 4, index == 6 ? "Leak" : "LeakyRelu");
    if (index == 6)
        proto_text(&part, 7, "mine"); /* calls itself */
    if (index == 7)
        proto_text(&part, 8, "overload");
    proto_text(&a, 1, "alpha");
    proto_text(&a, 21, index == 5 ? "beta" : index == 8 ? "gamma" : "alpha");
    proto_int(&a, 20, 1);
    proto_take(&part, 5, &a);
    proto_take(&f, 7, &part);
    proto_int(&part, 2, index == 9 ? 12 : 13);
    proto_take(&f, 9, &part);
    proto_text(&f, 10, "mine");
    proto_take(model, 25, &f);
    if (index == 10) { /* twice */
        proto_text(&f, 1, "Leak");
        proto_text(&f, 10, "mine");
        proto_take(model, 25, &f);
    }
    proto_free(&node);
    proto_free(&none);
    proto_free(&f);
    proto_free(&part);
    proto_free(&a);
}
#define FUNCTIONS 11

/* The first bytes of other kinds of files. */
static size_t other_file(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const texts[] = {"\xef\xbb\xbf<html><body>no model</body></html>",
                                        "<?xml version=\"1.0\"?><net></net>",
                                        "{\"format\": \"a JSON\", \"model\": 1}",
                                        "\n\n  <!DOCTYPE html>",
                                        "PK\3\4 a zip archive",
                                        "\x89PNG\r\n\x1a\n a picture",
                                        "\x1f\x8b\x08 zlib data",
                                        "BM",
                                        "version https://git-lfs",
                                        "\x80\x02}q pickled",
                                        "\x93NUMPY an array",
                                        "GGUF\3 weights",
                                        "\x28\xb5\x2f\xfd zstd"};
    return fuzz_text_seed(texts, sizeof(texts) / sizeof(*texts), index, buffer, capacity);
}

size_t fuzz_odd_bytes(size_t index, uint8_t *buffer, size_t capacity) {
    static const struct {
        void (*write)(proto *model, size_t index);
        size_t count;
    } kinds[] = {{odd_attribute, ATTRIBUTES},
                 {odd_tensor, TENSORS},
                 {odd_place, PLACES},
                 {odd_sparse, SPARSES},
                 {odd_function, FUNCTIONS}};
    proto p = {0};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        if (index >= kinds[k].count) {
            index -= kinds[k].count;
            continue;
        }
        kinds[k].write(&p, index);
        const size_t size = p.size;
        if (size > capacity)
            abort();
        memcpy(buffer, p.data, size);
        proto_free(&p);
        return size;
    }
    return other_file(index, buffer, capacity);
}
