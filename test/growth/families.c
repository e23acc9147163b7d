/* SPDX-License-Identifier: MIT */
#include "families.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define FLOAT 1
#define INT64 7

/* "PREFIXi" in one of 8 buffers in turn: one call may use several. */
static const char *named(const char *prefix, int i) {
    static char texts[8][64];
    static int next;
    char *text = texts[next++ % 8];
    snprintf(text, sizeof(texts[0]), "%s%d", prefix, i);
    return text;
}

/* Writes a node without its tag; inputs, NULL, outputs, NULL. */
static void begin_node(proto *node, const char *op, ...) {
    va_list list;
    va_start(list, op);
    for (uint32_t field = 1; field <= 2; field++)
        for (const char *name; (name = va_arg(list, const char *));)
            proto_text(node, field, name);
    va_end(list);
    proto_text(node, 4, op);
}

static void add_ints(proto *node, const char *name, const int64_t *v, int count) {
    proto attr = {0};
    proto_text(&attr, 1, name);
    for (int i = 0; i < count; i++)
        proto_int(&attr, 8, v[i]);
    proto_int(&attr, 20, 7);
    proto_take(node, 5, &attr);
    proto_free(&attr);
}

static void add_int(proto *node, const char *name, int64_t v) {
    proto attr = {0};
    proto_text(&attr, 1, name);
    proto_int(&attr, 3, v);
    proto_int(&attr, 20, 2);
    proto_take(node, 5, &attr);
    proto_free(&attr);
}

static void add_graph(proto *node, const char *name, proto *graph) {
    proto attr = {0};
    proto_text(&attr, 1, name);
    proto_take(&attr, 6, graph);
    proto_int(&attr, 20, 5);
    proto_take(node, 5, &attr);
    proto_free(&attr);
}

static void end_node(proto *graph, proto *node) {
    proto_take(graph, 1, node);
    proto_free(node);
}

/* The same for Split or Concat along an axis. */
static void end_along(proto *graph, proto *node, const char *op, int64_t axis) {
    proto_text(node, 4, op);
    add_int(node, "axis", axis);
    end_node(graph, node);
}

static void unary(proto *g, const char *op, const char *x, const char *y) {
    proto_node(g, op, NULL, x, NULL, y);
}

static void tensor(proto *out, const char *name, int dtype, int rank, const int64_t *dims,
                   const void *data, size_t size) {
    for (int i = 0; i < rank; i++)
        proto_int(out, 1, dims[i]);
    proto_int(out, 2, dtype);
    if (name)
        proto_text(out, 8, name);
    proto_bytes(out, 9, data, size);
}

static void initializer(proto *g, const char *name, int dtype, int rank, const int64_t *dims,
                        const void *data, size_t size) {
    proto t = {0};
    tensor(&t, name, dtype, rank, dims, data, size);
    proto_take(g, 5, &t);
    proto_free(&t);
}

static const int64_t row[] = {1, 4}, square[] = {4, 4}, kernel[] = {4, 4, 1, 1},
                     image[] = {1, 4, 2, 2};
static const float ones[16] = {1, .5f, 1, 1, 1, 1, .25f, 1, 1, 1, 1, 1, .125f, 1, 1, 1};

static void floats(proto *g, const char *name, int rank, const int64_t *dims) {
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    initializer(g, name, FLOAT, rank, dims, ones, count * sizeof(float));
}

static void numbers(proto *g, const char *name, int64_t v) {
    const int64_t one = 1;
    initializer(g, name, INT64, 1, &one, &v, sizeof(v));
}

/* An output without sizes: the inferred ones count. */
static void proto_untyped(proto *g, uint32_t field, const char *name) {
    proto elements = {0}, type = {0}, value = {0};
    proto_int(&elements, 1, FLOAT);
    proto_take(&type, 1, &elements);
    proto_text(&value, 1, name);
    proto_take(&value, 2, &type);
    proto_take(g, field, &value);
    proto_free(&elements);
    proto_free(&type);
    proto_free(&value);
}

/* Ends a graph with input x and output `y`, and wraps it in a model. */
static void finish(proto *model, proto *g, const char *y, const int64_t *dims, int rank) {
    proto_text(g, 2, "g");
    proto_value(g, 11, "x", FLOAT, dims, rank);
    proto_untyped(g, 12, y);
    proto_model(model, g);
    proto_free(g);
}

static void chain_of(proto *model, const char *op, int n) {
    proto g = {0};
    for (int i = 0; i < n; i++)
        unary(&g, op, i ? named("v", i) : "x", named("v", i + 1));
    finish(model, &g, named("v", n), row, 2);
}

static void relus(proto *m, int n) {
    chain_of(m, "Relu", n);
}

static void sigmoids(proto *m, int n) {
    chain_of(m, "Sigmoid", n);
}

static void identities(proto *m, int n) {
    chain_of(m, "Identity", n);
}

static void binary_chain(proto *m, int n, const char *op, bool shared, int rank,
                         const int64_t *dims, const int64_t *x, int x_rank) {
    proto g = {0};
    for (int i = 0; i < n; i++) {
        const char *w = shared ? "w" : named("w", i);
        if (!shared || i == 0)
            floats(&g, w, rank, dims);
        proto_node(&g, op, NULL, i ? named("v", i) : "x", w, named("v", i + 1));
    }
    finish(m, &g, named("v", n), x, x_rank);
}

static void constants(proto *m, int n) {
    binary_chain(m, n, "Add", false, 2, row, row, 2);
}

static void products(proto *m, int n) {
    binary_chain(m, n, "MatMul", true, 2, square, row, 2);
}

static void own_products(proto *m, int n) {
    binary_chain(m, n, "MatMul", false, 2, square, row, 2);
}

static void convolutions(proto *m, int n) {
    binary_chain(m, n, "Conv", true, 4, kernel, image, 4);
}

static void own_convolutions(proto *m, int n) {
    binary_chain(m, n, "Conv", false, 4, kernel, image, 4);
}

static void transposes(proto *m, int n) {
    static const int64_t perm[] = {1, 0};
    proto g = {0};
    for (int i = 0; i < n / 2 * 2; i++) {
        proto node = {0};
        begin_node(&node, "Transpose", i ? named("v", i) : "x", NULL, named("v", i + 1), NULL);
        add_ints(&node, "perm", perm, 2);
        end_node(&g, &node);
    }
    finish(m, &g, named("v", n / 2 * 2), row, 2);
}

static void residuals(proto *m, int n) {
    proto g = {0};
    floats(&g, "w", 4, kernel);
    for (int i = 0; i < n / 3; i++) {
        const char *x = i ? named("v", i) : "x";
        proto_node(&g, "Conv", NULL, x, "w", named("c", i));
        proto_node(&g, "Add", NULL, named("c", i), x, named("a", i));
        unary(&g, "Relu", named("a", i), named("v", i + 1));
    }
    finish(m, &g, named("v", n / 3), image, 4);
}

static void joined(proto *m, int n, const char *op, const char *reader) {
    proto g = {0}, node = {0};
    for (int i = 0; i < n; i++) {
        unary(&g, reader, "x", named("r", i));
        proto_text(&node, 1, named("r", i));
    }
    proto_text(&node, 2, "y");
    proto_text(&node, 4, op);
    if (strcmp(op, "Concat") == 0)
        add_int(&node, "axis", 1);
    end_node(&g, &node);
    finish(m, &g, "y", row, 2);
}

static void concat_inputs(proto *m, int n) {
    joined(m, n, "Concat", "Relu");
}

static void sum_inputs(proto *m, int n) {
    joined(m, n, "Sum", "Sigmoid");
}

/* One Concat of n constants. */
static void joined_constants(proto *m, int n) {
    proto g = {0}, node = {0};
    proto_text(&node, 1, "x");
    for (int i = 0; i < n; i++) {
        floats(&g, named("w", i), 2, row);
        proto_text(&node, 1, named("w", i));
    }
    proto_text(&node, 2, "y");
    end_along(&g, &node, "Concat", 1);
    finish(m, &g, "y", row, 2);
}

/* n Sigmoids of one product, joined for another: in 8 bits each has a pair before the Concat. */
static void joined_curves(proto *m, int n) {
    const int64_t first[] = {4, 1}, second[] = {1, 1};
    proto g = {0}, join = {0};
    floats(&g, "v", 2, first);
    floats(&g, "w", 2, second);
    proto_node(&g, "MatMul", NULL, "x", "v", "h");
    for (int i = 0; i < n; i++) {
        unary(&g, "Sigmoid", "h", named("c", i));
        proto_text(&join, 1, named("c", i));
    }
    proto_text(&join, 2, "all");
    end_along(&g, &join, "Concat", 0);
    proto_node(&g, "MatMul", NULL, "all", "w", "y");
    finish(m, &g, "y", row, 2);
}

/* Pieces of the input, each an output by an Identity. */
static void split_identities(proto *m, int n) {
    const int64_t wide[] = {1, n}, piece[] = {1, 1};
    proto g = {0}, cut = {0};
    proto_text(&cut, 1, "x");
    for (int i = 0; i < n; i++)
        proto_text(&cut, 2, named("p", i));
    end_along(&g, &cut, "Split", 1);
    for (int i = 0; i < n; i++) {
        unary(&g, "Identity", named("p", i), named("y", i));
        if (i > 0)
            proto_value(&g, 12, named("y", i), FLOAT, piece, 2);
    }
    finish(m, &g, "y0", wide, 2);
}

static void split_outputs(proto *m, int n) {
    const int64_t wide[] = {1, n};
    proto g = {0}, node = {0}, join = {0};
    proto_text(&node, 1, "x");
    for (int i = 0; i < n; i++) {
        proto_text(&node, 2, named("s", i));
        proto_text(&join, 1, named("t", i));
    }
    end_along(&g, &node, "Split", 1);
    for (int i = 0; i < n; i++)
        unary(&g, "Sigmoid", named("s", i), named("t", i));
    proto_text(&join, 2, "y");
    end_along(&g, &join, "Concat", 1);
    finish(m, &g, "y", wide, 2);
}

static void slices(proto *m, int n) {
    const int64_t wide[] = {1, n};
    proto g = {0}, join = {0};
    numbers(&g, "axis", 1);
    for (int i = 0; i < n; i++) {
        proto node = {0};
        numbers(&g, named("a", i), i);
        numbers(&g, named("b", i), i + 1);
        begin_node(&node, "Slice", "x", named("a", i), named("b", i), "axis", NULL, named("s", i),
                   NULL);
        end_node(&g, &node);
        proto_text(&join, 1, named("s", i));
    }
    proto_text(&join, 2, "y");
    end_along(&g, &join, "Concat", 1);
    finish(m, &g, "y", wide, 2);
}

/* Values that are used again at the end, in reverse order: all are alive at once. */
static void long_lives(proto *m, int n) {
    proto g = {0};
    for (int i = 0; i < n / 2; i++)
        unary(&g, "Sigmoid", i ? named("v", i) : "x", named("v", i + 1));
    for (int i = 0; i < n / 2; i++)
        proto_node(&g, "Add", NULL, i ? named("a", i) : named("v", n / 2),
                   i + 1 < n / 2 ? named("v", n / 2 - 1 - i) : "x", named("a", i + 1));
    finish(m, &g, named("a", n / 2), row, 2);
}

static void outputs(proto *m, int n) {
    proto g = {0};
    for (int i = 0; i < n; i++) {
        unary(&g, "Sigmoid", i ? named("v", i) : "x", named("v", i + 1));
        if (i + 1 < n)
            proto_value(&g, 12, named("v", i + 1), FLOAT, row, 2);
    }
    finish(m, &g, named("v", n), row, 2);
}

static void inputs(proto *m, int n) {
    proto g = {0};
    for (int i = 0; i < n; i++) {
        proto_value(&g, 11, named("i", i), FLOAT, row, 2);
        proto_node(&g, "Add", NULL, i ? named("v", i) : "x", named("i", i), named("v", i + 1));
    }
    finish(m, &g, named("v", n), row, 2);
}

static void dead(proto *m, int n) {
    proto g = {0};
    unary(&g, "Relu", "x", "y");
    for (int i = 0; i < n; i++)
        unary(&g, "Relu", i ? named("d", i) : "x", named("d", i + 1));
    finish(m, &g, "y", row, 2);
}

static void folded(proto *m, int n) {
    proto g = {0};
    floats(&g, "k0", 2, row);
    floats(&g, "c", 2, row);
    for (int i = 0; i < n; i++)
        proto_node(&g, "Add", NULL, named("k", i), "c", named("k", i + 1));
    proto_node(&g, "Add", NULL, "x", named("k", n), "y");
    finish(m, &g, "y", row, 2);
}

static void reshapes(proto *m, int n) {
    proto g = {0};
    for (int i = 0; i < n / 3; i++) {
        const char *x = i ? named("v", i) : "x";
        unary(&g, "Shape", x, named("s", i));
        proto_node(&g, "Reshape", NULL, x, named("s", i), named("r", i));
        unary(&g, "Sigmoid", named("r", i), named("v", i + 1));
    }
    finish(m, &g, named("v", n / 3), row, 2);
}

/* A chain that goes through sequences. */
static void sequences(proto *m, int n) {
    proto g = {0};
    numbers(&g, "zero", 0);
    for (int i = 0; i < n / 4; i++) {
        const char *x = i ? named("v", i) : "x";
        unary(&g, "SequenceConstruct", x, named("s", i));
        proto_node(&g, "SequenceInsert", NULL, named("s", i), "x", named("t", i));
        proto_node(&g, "SequenceAt", NULL, named("t", i), "zero", named("a", i));
        unary(&g, "Sigmoid", named("a", i), named("v", i + 1));
    }
    finish(m, &g, named("v", n / 4), row, 2);
}

static void branch(proto *out, const char *op, const char *x, const char *y) {
    unary(out, op, x, y);
    proto_text(out, 2, "b");
    proto_value(out, 12, y, FLOAT, row, 2);
}

static void conditions(proto *m, int n) {
    proto g = {0};
    for (int i = 0; i < n / 3; i++) {
        proto node = {0}, then = {0}, other = {0};
        const char *x = i ? named("v", i) : "x";
        branch(&then, "Relu", x, named("t", i));
        branch(&other, "Sigmoid", x, named("e", i));
        begin_node(&node, "If", "c", NULL, named("v", i + 1), NULL);
        add_graph(&node, "then_branch", &then);
        add_graph(&node, "else_branch", &other);
        end_node(&g, &node);
        proto_free(&then);
        proto_free(&other);
    }
    proto_value(&g, 11, "c", 9, NULL, 0);
    finish(m, &g, named("v", n / 3), row, 2);
}

static void add_scale(proto *g) {
    const float scale = 0.1f;
    const uint8_t zero = 0;
    initializer(g, "s", FLOAT, 0, NULL, &scale, sizeof(scale));
    initializer(g, "z", 2, 0, NULL, &zero, 1);
}

/* QuantizeLinear or DequantizeLinear by the scale of add_scale. */
static void scaled(proto *g, const char *op, const char *x, const char *y) {
    proto node = {0};
    begin_node(&node, op, x, "s", "z", NULL, y, NULL);
    end_node(g, &node);
}

static void pairs(proto *m, int n) {
    proto g = {0};
    add_scale(&g);
    for (int i = 0; i < n / 3; i++) {
        scaled(&g, "QuantizeLinear", i ? named("v", i) : "x", named("q", i));
        scaled(&g, "DequantizeLinear", named("q", i), named("d", i));
        unary(&g, "Relu", named("d", i), named("v", i + 1));
    }
    finish(m, &g, named("v", n / 3), row, 2);
}

/* Pieces of the input are quantized, joined and cut; each piece is dequantized for an output. */
static void quantized_pieces(proto *m, int n) {
    const int64_t wide[] = {1, n}, piece[] = {1, 1};
    proto g = {0}, cut = {0}, join = {0}, again = {0};
    add_scale(&g);
    proto_text(&cut, 1, "x");
    proto_text(&again, 1, "all");
    for (int i = 0; i < n; i++) {
        proto_text(&cut, 2, named("p", i));
        proto_text(&join, 1, named("q", i));
        proto_text(&again, 2, named("r", i));
    }
    proto_text(&join, 2, "all");
    end_along(&g, &cut, "Split", 1);
    for (int i = 0; i < n; i++)
        scaled(&g, "QuantizeLinear", named("p", i), named("q", i));
    end_along(&g, &join, "Concat", 1);
    end_along(&g, &again, "Split", 1);
    for (int i = 0; i < n; i++) {
        scaled(&g, "DequantizeLinear", named("r", i), named("y", i));
        if (i > 0)
            proto_value(&g, 12, named("y", i), FLOAT, piece, 2);
    }
    finish(m, &g, "y0", wide, 2);
}

/* One call of a function that computes each of its n outputs from an input of its own. */
static void call_arguments(proto *m, int n) {
    proto g = {0}, call = {0}, function = {0}, imported = {0};
    proto_text(&function, 1, "F");
    for (int i = 0; i < n; i++) {
        proto node = {0};
        proto_text(&call, 1, "x");
        proto_text(&call, 2, named("y", i));
        proto_text(&function, 4, named("a", i));
        proto_text(&function, 5, named("b", i));
        begin_node(&node, "Relu", named("a", i), NULL, named("b", i), NULL);
        proto_take(&function, 7, &node);
        proto_free(&node);
        if (i > 0)
            proto_value(&g, 12, named("y", i), FLOAT, row, 2);
    }
    proto_text(&call, 4, "F");
    proto_text(&call, 7, "f");
    end_node(&g, &call);
    finish(m, &g, "y0", row, 2);
    proto_int(&imported, 2, 13);
    proto_take(&function, 9, &imported);
    proto_text(&function, 10, "f");
    proto_take(m, 25, &function);
    proto_free(&function);
    proto_free(&imported);
    proto_text(&imported, 1, "f");
    proto_int(&imported, 2, 1);
    proto_take(m, 8, &imported);
    proto_free(&imported);
}

/* Nodes in reverse of the order of execution. */
static void backwards(proto *m, int n) {
    proto g = {0};
    for (int i = n; i-- > 0;)
        unary(&g, "Relu", i ? named("v", i) : "x", named("v", i + 1));
    finish(m, &g, named("v", n), row, 2);
}

/* Metadata, one key after the other. */
static void properties(proto *m, int n) {
    chain_of(m, "Relu", 1);
    for (int i = 0; i < n; i++) {
        proto property = {0};
        proto_text(&property, 1, named("k", i));
        proto_text(&property, 2, "value");
        proto_take(m, 14, &property);
        proto_free(&property);
    }
}

/* Names chosen to collide: their folded 64-bit FNV-1a hashes agree in twelve bits. */
static void colliding_names(proto *m, int n) {
    proto g = {0};
    char last[32] = "x", text[32];
    uint64_t candidate = 0;
    for (int i = 0; i < n;) {
        uint64_t h = 0xcbf29ce484222325u, rest = candidate++;
        size_t k = 0;
        text[k++] = 'n';
        for (; rest; rest /= 26)
            text[k++] = (char)('a' + rest % 26);
        text[k] = 0;
        for (const char *p = text; *p; p++)
            h = (h ^ (unsigned char)*p) * 0x100000001b3u;
        if ((h ^ h >> 32) & 0xff0)
            continue;
        unary(&g, "Relu", last, text);
        memcpy(last, text, sizeof(last));
        i++;
    }
    finish(m, &g, last, row, 2);
}

const family families[] = {
    {"relus", relus},
    {"sigmoids", sigmoids},
    {"identities", identities},
    {"constants", constants},
    {"products", products},
    {"own_products", own_products},
    {"convolutions", convolutions},
    {"own_convolutions", own_convolutions},
    {"transposes", transposes},
    {"residuals", residuals},
    {"concat_inputs", concat_inputs},
    {"sum_inputs", sum_inputs},
    {"joined_constants", joined_constants},
    {"joined_curves", joined_curves},
    {"split_outputs", split_outputs},
    {"split_identities", split_identities},
    {"slices", slices},
    {"long_lives", long_lives},
    {"outputs", outputs},
    {"inputs", inputs},
    {"dead", dead},
    {"folded", folded},
    {"reshapes", reshapes},
    {"sequences", sequences},
    {"conditions", conditions},
    {"pairs", pairs},
    {"quantized_pieces", quantized_pieces},
    {"call_arguments", call_arguments},
    {"backwards", backwards},
    {"properties", properties},
    {"colliding_names", colliding_names},
};
const int family_count = (int)(sizeof(families) / sizeof(*families));
