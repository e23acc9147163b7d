/* SPDX-License-Identifier: MIT */
#include "onnx/roles.h"

#define MICROSOFT "com.microsoft"

static bool one_of(const char *text, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, list[i]) == 0)
            return true;
    return false;
}

static bool contains(const char *text, const char *part) {
    return strstr(text, part) != NULL;
}

static bool is_q(const qs_node *n) {
    return strcmp(n->op_type, "QuantizeLinear") == 0;
}

static bool is_dq(const qs_node *n) {
    return strcmp(n->op_type, "DequantizeLinear") == 0;
}

static bool from_dq(const qs_graph *g, qs_id value) {
    qs_id producer = value == QS_NONE ? QS_NONE : g->values[value].producer;
    return producer != QS_NONE && is_dq(&g->nodes[producer]);
}

static bool absorbed(const qs_node *n) {
    return strcmp(n->op_type, "Relu") == 0 || strcmp(n->op_type, "Clip") == 0;
}

/* Everybody who reads the value quantizes it; `hop` lets one Relu or Clip stand between. */
static bool to_q(const qs_graph *g, const qs_uses *uses, qs_id value, bool hop) {
    if (value == QS_NONE || g->values[value].is_output ||
        uses->start[value] == uses->start[value + 1])
        return false;
    for (qs_id u = uses->start[value]; u < uses->start[value + 1]; u++) {
        const qs_node *n = &g->nodes[uses->nodes[u]];
        if (is_q(n))
            continue;
        if (!hop || !absorbed(n) || n->output_count < 1 || !to_q(g, uses, n->outputs[0], false))
            return false;
    }
    return true;
}

/* An Add of a vector of floats to a MatMul of integers, which it is the bias of. */
static bool is_bias(const qs_graph *g, const qs_node *n) {
    if (strcmp(n->op_type, "Add") != 0 || n->input_count != 2)
        return false;
    for (int32_t i = 0; i < 2; i++) {
        const qs_id x = n->inputs[i], c = n->inputs[1 - i];
        const qs_id p = x == QS_NONE ? QS_NONE : g->values[x].producer;
        if (p != QS_NONE && qs_node_is(&g->nodes[p], "", "MatMul") && c != QS_NONE &&
            g->values[c].data && g->values[c].data->rank <= 1 &&
            from_dq(g, g->nodes[p].inputs[0]) && from_dq(g, g->nodes[p].inputs[1]))
            return true;
    }
    return false;
}

/* The Add after a MatMul that is its bias, if nobody else reads the product; or the node itself.
 */
static const qs_node *with_bias(const qs_graph *g, const qs_uses *uses, const qs_node *n) {
    const qs_id y = n->outputs[0];
    if (!qs_node_is(n, "", "MatMul") || y == QS_NONE || g->values[y].is_output ||
        uses->start[y + 1] - uses->start[y] != 1)
        return n;
    const qs_node *reader = &g->nodes[uses->nodes[uses->start[y]]];
    return is_bias(g, reader) ? reader : n;
}

/* A Relu or Clip whose producer absorbs it. */
static bool behind_product(const qs_graph *g, qs_id value) {
    static const char *const products[] = {"Conv", "Gemm", "MatMul", "Add"};
    qs_id p = value == QS_NONE ? QS_NONE : g->values[value].producer;
    if (p == QS_NONE || !one_of(g->nodes[p].op_type, products, QS_COUNT(products)))
        return false;
    const qs_node *n = &g->nodes[p];
    return is_bias(g, n) ||
           (n->input_count >= 2 && from_dq(g, n->inputs[0]) && from_dq(g, n->inputs[1]));
}

/* Moves elements and computes nothing: what it is given as integers stays integers. */
static bool moves(const qs_node *n) {
    static const char *const movement[] = {"Reshape", "Flatten",  "Transpose", "Squeeze",
                                           "Gather",  "Identity", "Unsqueeze", "Slice",
                                           "Split",   "Dropout"};
    return !n->domain[0] && one_of(n->op_type, movement, QS_COUNT(movement));
}

/* Softmax of rows that lie together goes from bytes to bytes. */
static bool is_row_softmax(const qs_graph *g, const qs_node *n) {
    if (strcmp(n->op_type, "Softmax") != 0 || n->inputs[0] == QS_NONE)
        return false;
    const int64_t rank = g->values[n->inputs[0]].rank;
    const int64_t axis = qs_node_int(n, "axis", n->version < 13 ? 1 : -1);
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

/* How many of its first inputs must be dequantized; 0: no integer form. */
static int32_t integer_inputs(const qs_graph *g, const qs_node *n) {
    static const char *const unary[] = {
        "AveragePool", "GlobalAveragePool", "MaxPool",   "Relu", "Clip", "LeakyRelu", "Sigmoid",
        "Tanh",        "HardSigmoid",       "HardSwish", "Exp",  "Sqrt", "Neg",       "Abs"};
    static const char *const binary[] = {"Conv", "Gemm", "MatMul", "Add", "Mul"};
    static const char *const tables[] = {"Add", "Sub", "Mul", "Div", "Pow"};
    if (n->domain[0] || n->input_count < 1)
        return 0;
    if (one_of(n->op_type, unary, QS_COUNT(unary)) || is_row_softmax(g, n))
        return 1;
    if (one_of(n->op_type, tables, QS_COUNT(tables)) && n->input_count == 2 &&
        n->inputs[1] != QS_NONE && g->values[n->inputs[1]].data &&
        g->values[n->inputs[1]].data->elements == 1)
        return 1;
    if (one_of(n->op_type, binary, QS_COUNT(binary)))
        return 2;
    return strcmp(n->op_type, "Concat") == 0 ? n->input_count : 0;
}

static bool is_byte(int32_t dtype) {
    return dtype == QSIM_UINT8 || dtype == QSIM_INT8;
}

static bool computes_integers(const qs_graph *g, const qs_uses *uses, qs_id node) {
    const qs_node *n = &g->nodes[node];
    if (strncmp(n->op_type, "QLinear", 7) == 0 || strcmp(n->op_type, "QGemm") == 0 ||
        strcmp(n->op_type, "ConvInteger") == 0 || strcmp(n->op_type, "MatMulInteger") == 0)
        return true;
    if (moves(n) && qs_node_input(n, 0) != QS_NONE)
        return is_byte(g->values[n->inputs[0]].dtype) || from_dq(g, n->inputs[0]);
    int32_t need = integer_inputs(g, n);
    if (need == 0 || n->input_count < need || n->output_count < 1)
        return false;
    bool bytes = n->inputs[0] != QS_NONE && is_byte(g->values[n->inputs[0]].dtype);
    if (bytes && need == 1)
        return true;
    if (absorbed(n) && behind_product(g, n->inputs[0]))
        return to_q(g, uses, n->outputs[0], false);
    for (int32_t i = 0; i < need && !is_bias(g, n); i++)
        if (!from_dq(g, n->inputs[i]))
            return false;
    return to_q(g, uses, with_bias(g, uses, n)->outputs[0], !absorbed(n));
}

/* A quantizing node vanishes into the integer nodes on its other side. */
static bool vanishes(const qs_graph *g, const qs_uses *uses, const bool *integer, qs_id node) {
    const qs_node *n = &g->nodes[node];
    if (n->output_count < 1 || n->outputs[0] == QS_NONE || n->input_count < 1 ||
        n->inputs[0] == QS_NONE)
        return false;
    if (is_q(n)) {
        qs_id p = g->values[n->inputs[0]].producer;
        return p != QS_NONE && integer[p];
    }
    qs_id y = n->outputs[0];
    if (!is_dq(n) || g->values[y].is_output || uses->start[y] == uses->start[y + 1])
        return false;
    for (qs_id u = uses->start[y]; u < uses->start[y + 1]; u++)
        if (!integer[uses->nodes[u]])
            return false;
    return true;
}

void qs_find_integer_nodes(const qs_graph *g, const qs_uses *uses, bool *integer) {
    for (size_t i = 0; i < g->node_count; i++)
        integer[i] = !g->nodes[i].removed && !is_q(&g->nodes[i]) && !is_dq(&g->nodes[i]) &&
                     computes_integers(g, uses, (qs_id)i);
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->nodes[i].removed && (is_q(&g->nodes[i]) || is_dq(&g->nodes[i])))
            integer[i] = vanishes(g, uses, integer, (qs_id)i);
}

/* ---- parameters ---- */

/* Inputs that a bit set names are bounds, shapes or quantization parameters, not weights. */
static uint64_t no_weights(const qs_node *n) {
    static const char *const first_only[] = {
        "QuantizeLinear", "DequantizeLinear", "Clip",  "Pad",       "Resize",    "Upsample",
        "Dropout",        "Reshape",          "Slice", "Split",     "Tile",      "Expand",
        "Squeeze",        "Unsqueeze",        "TopK",  "ReduceSum", "ReduceMean"};
    if (one_of(n->op_type, first_only, QS_COUNT(first_only)))
        return ~(uint64_t)1;
    if (strcmp(n->op_type, "QLinearConv") == 0)
        return ~(1u | 1u << 3 | (uint64_t)1 << 8);
    if (strcmp(n->op_type, "QGemm") == 0)
        return ~(1u | 1u << 3 | (uint64_t)1 << 6);
    if (strcmp(n->op_type, "QLinearMatMul") == 0 ||
        (strcmp(n->domain, MICROSOFT) == 0 && strncmp(n->op_type, "QLinear", 7) == 0))
        return ~(1u | (uint64_t)1 << 3);
    return contains(n->op_type, "Integer") ? ~(uint64_t)3 : 0;
}

/* The constant that a value is: an initializer, or what a Constant node holds. */
static const qs_const *constant(const qs_graph *g, qs_id value) {
    const qs_value *v = &g->values[value];
    if (v->data)
        return v->data;
    if (v->producer == QS_NONE || !qs_node_is(&g->nodes[v->producer], "", "Constant"))
        return NULL;
    const qs_attr *a = qs_node_attr(&g->nodes[v->producer], "value");
    return a && a->type == QS_ATTR_TENSOR ? a->u.tensor : NULL;
}

static bool read_as_weight(const qs_graph *g, const qs_uses *uses, qs_id value) {
    for (qs_id u = uses->start[value]; u < uses->start[value + 1]; u++) {
        const qs_node *n = &g->nodes[uses->nodes[u]];
        uint64_t skip = no_weights(n);
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] == value && !(k < 64 ? skip >> k & 1 : skip >> 63))
                return true;
    }
    return false;
}

int qs_count_parameters(const qs_graph *g, const qs_uses *uses, int64_t *elements, int64_t *bytes) {
    *elements = *bytes = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        const qs_const *c = constant(g, (qs_id)i);
        if (!c || c->dtype == QSIM_INT64 || c->dtype == QSIM_BOOL || c->dtype == QSIM_STRING ||
            !read_as_weight(g, uses, (qs_id)i))
            continue;
        *elements += (int64_t)c->elements;
        *bytes += (int64_t)c->bytes;
    }
    return QSIM_OK;
}
