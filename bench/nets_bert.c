/* SPDX-License-Identifier: MIT */
/* The encoder of BERT: 6 layers, width 768, 12 heads, 128 positions, from embeddings on. */
#include "nets.h"

#include <math.h>

enum { LAYERS = 6, WIDTH = 768, HEADS = 12, POSITIONS = 128, INNER = 4 * WIDTH };

/* A projection, cut into heads: [1, positions, width] to [1, heads, ...] in the order of `perm`. */
static net_value heads(net *n, const net_value *x, const int64_t *perm) {
    static const int64_t cut[] = {1, POSITIONS, HEADS, WIDTH / HEADS};
    net_value projected = net_dense(n, x, WIDTH, WIDTH, 1);
    net_value sizes = net_sizes(n, "sizes", cut, 4);
    net_value shaped = net_binary(n, "Reshape", &projected, &sizes);
    net_value y = net_unary(n, "Transpose", &shaped);
    qsim_builder_attr_ints(n->b, "perm", perm, 4);
    return y;
}

static net_value attention(net *n, const net_value *x) {
    static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
    static const int64_t joined[] = {1, POSITIONS, WIDTH};
    net_value q = heads(n, x, rows), k = heads(n, x, columns), v = heads(n, x, rows);
    net_value scores = net_binary(n, "MatMul", &q, &k);
    net_value root = net_scalar(n, "root", sqrtf((float)(WIDTH / HEADS)));
    scores = net_binary(n, "Div", &scores, &root);
    scores = net_unary(n, "Softmax", &scores);
    qsim_builder_attr_int(n->b, "axis", -1);
    net_value mixed = net_binary(n, "MatMul", &scores, &v);
    mixed = net_unary(n, "Transpose", &mixed);
    qsim_builder_attr_ints(n->b, "perm", rows, 4);
    net_value sizes = net_sizes(n, "sizes", joined, 3);
    mixed = net_binary(n, "Reshape", &mixed, &sizes);
    return net_dense(n, &mixed, WIDTH, WIDTH, 1);
}

/* x (1 + erf(x / sqrt 2)) / 2, spelled out as exporters do. */
static net_value gelu(net *n, const net_value *x) {
    net_value root = net_scalar(n, "root2", sqrtf(2)), one = net_scalar(n, "one", 1),
              half = net_scalar(n, "half", 0.5f);
    net_value y = net_binary(n, "Div", x, &root);
    y = net_unary(n, "Erf", &y);
    y = net_binary(n, "Add", &y, &one);
    y = net_binary(n, "Mul", x, &y);
    return net_binary(n, "Mul", &y, &half);
}

static net_value add_and_normalize(net *n, const net_value *x, const net_value *y) {
    net_value sum = net_binary(n, "Add", y, x);
    net_value gain = net_filled(n, "gain", WIDTH, 1), shift = net_filled(n, "shift", WIDTH, 0.01f);
    const net_value *inputs[] = {&sum, &gain, &shift, NULL};
    net_value normal = net_node(n, "LayerNormalization", inputs);
    qsim_builder_attr_int(n->b, "axis", -1);
    qsim_builder_attr_float(n->b, "epsilon", 1e-12f);
    return normal;
}

void net_bert(net *n) {
    const int64_t dims[] = {1, POSITIONS, WIDTH};
    net_value x = {"embeddings", WIDTH};
    qsim_builder_input(n->b, x.name, QSIM_FLOAT, 3, dims, NULL);
    for (int layer = 0; layer < LAYERS; layer++) {
        net_value y = attention(n, &x);
        x = add_and_normalize(n, &x, &y);
        y = net_dense(n, &x, WIDTH, INNER, 1);
        y = gelu(n, &y);
        y = net_dense(n, &y, INNER, WIDTH, 1);
        x = add_and_normalize(n, &x, &y);
    }
    qsim_builder_node(n->b, "", "Identity", "last", x.name, "output");
    qsim_builder_output(n->b, "output", QSIM_FLOAT, 3, dims, NULL);
}
