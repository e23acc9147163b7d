/* SPDX-License-Identifier: MIT */
/*
 * A Flatten of [N,C,H,W] to [N,CHW] before a product with constant weights reads the twin: the rows
 * of the weights are permuted to the order of its elements.
 */
#include "op/move/index.h"
#include "pass/layout/layout.h"

#define MAX_CONSUMERS 16

/* Sizes of one image. */
typedef struct plane {
    int64_t channels, space;
} plane;

/*
 * Whether a node works on each element of input 0 alone: all its other operands have one element.
 */
static bool is_per_element(const qs_layout *l, const qs_node *n) {
    if (!(qs_node_traits(l->g, n) & (QS_ELEMENTWISE | QS_RANGED)))
        return false;
    for (int32_t i = 1; i < n->input_count; i++) {
        const qs_const *c = qs_node_const(l->g, n, i);
        if (n->inputs[i] != QS_NONE && qs_op_is_operand(n->op, i) && !(c && c->elements == 1))
            return false;
    }
    return true;
}

/* Index of the weights of a product whose left operand is `value`; -1: another node. */
static int32_t weight_index(const qs_node *n, qs_id value) {
    if (!(n->op->traits & QS_MULTIPLIES) || n->inputs[0] != value || qs_node_int(n, "transA", 0))
        return -1;
    for (int32_t i = 1; i < n->input_count; i++)
        if (qs_op_in(n->op->weight_inputs, i))
            return n->inputs[i] == value ? -1 : i;
    return -1;
}

static int32_t row_axis(const qs_node *n) {
    return qs_node_int(n, "transB", 0) ? 1 : 0;
}

/*
 * Lists the products with weights of `rows` rows that read `value`, also through nodes on single
 * elements; false: another node reads it.
 */
static bool find_products(const qs_layout *l, qs_id value, int64_t rows, qs_id *found,
                          int32_t *count) {
    const qs_graph *g = l->g;
    qs_id open[MAX_CONSUMERS] = {value};
    int32_t waiting = 1;
    for (int32_t at = 0; at < waiting; at++) {
        qs_id v = open[at];
        if (g->values[v].is_output)
            return false;
        for (qs_id u = l->uses.start[v]; u < l->uses.start[v + 1]; u++) {
            const qs_node *n = &g->nodes[l->uses.nodes[u]];
            int32_t w = weight_index(n, v);
            const qs_const *c = w < 0 ? NULL : g->values[n->inputs[w]].data;
            if (c && c->rank == 2 && c->dims[row_axis(n)] == rows && *count < MAX_CONSUMERS) {
                if (!*count || found[*count - 1] != l->uses.nodes[u])
                    found[(*count)++] = l->uses.nodes[u];
            } else if (w < 0 && is_per_element(l, n) && n->inputs[0] == v &&
                       g->values[n->outputs[0]].rank == 2 && waiting < MAX_CONSUMERS) {
                open[waiting++] = n->outputs[0];
            } else {
                return false;
            }
        }
    }
    return *count > 0;
}

/* Moves row (channel, position) of the weights to (position, channel). */
static qs_id permute_rows(qs_layout *l, const qs_const *c, int32_t axis, plane s) {
    const size_t unit = (size_t)qsim_dtype_bits(c->dtype) / 8, columns = (size_t)c->dims[1 - axis];
    const size_t channels = (size_t)s.channels, space = (size_t)s.space;
    /* Where rows of the product are columns in memory, one column after the other is permuted. */
    const size_t times = axis ? columns : 1, bytes = axis ? unit : unit * columns;
    uint8_t *to = qs_arena_alloc64(&l->g->arena, c->bytes + 1);
    const uint8_t *from = c->data;
    if (!to)
        return qs_pass_no_memory(l->p);
    for (size_t k = 0; k < times; k++)
        for (size_t ch = 0; ch < channels; ch++)
            for (size_t i = 0; i < space; i++, from += bytes)
                qs_copy_element((char *)to + ((k * space + i) * channels + ch) * bytes,
                                (const char *)from, bytes);
    return qs_pass_placed_const(l->p, c->dtype, 2, c->dims, to);
}

/* Whether the node is a Flatten or Reshape of [N,C,...] to [N,rest], with all sizes but N known. */
static bool is_flattening(const qs_layout *l, const qs_node *n, plane *s) {
    const qs_value *x = &l->g->values[n->inputs[0]];
    const qs_value *y = &l->g->values[n->outputs[0]];
    *s = (plane){.channels = 1, .space = 1};
    if (qs_node_is_onnx(n, "Flatten")) {
        if (qs_node_int(n, "axis", 1) != 1)
            return false;
    } else if (!qs_node_is_onnx(n, "Reshape") || n->input_count < 2 ||
               !l->g->values[n->inputs[1]].data) {
        return false;
    }
    if (x->rank < 3 || y->rank != 2)
        return false;
    s->channels = x->dims[1].size;
    for (int32_t i = 2; i < x->rank; i++)
        if (x->dims[i].size < 1 || !qs_mul64(s->space, x->dims[i].size, &s->space))
            return false;
    int64_t rows;
    return s->channels > 0 && qs_mul64(s->channels, s->space, &rows) && y->dims[1].size == rows;
}

/* Whether the shape means the same on the twin: [0,k], [n,k], [-1,k], [0,-1], [n,-1] do. */
static bool is_plain_shape(const qs_layout *l, const qs_node *n) {
    if (qs_node_is_onnx(n, "Flatten"))
        return true;
    const qs_const *c = l->g->values[n->inputs[1]].data;
    return c->elements == 2 && c->dtype == QSIM_INT64 && qs_const_at(c, 1) != 0;
}

int qs_layout_flatten(qs_layout *l, qs_id node, bool *done) {
    const qs_node *n = &l->g->nodes[node];
    qs_id products[MAX_CONSUMERS];
    int32_t count = 0;
    plane s;
    if (n->input_count < 1 || !qs_twins_is_pending(&l->twins, n->inputs[0]) ||
        !is_flattening(l, n, &s) || !is_plain_shape(l, n) || s.space == 1 || s.channels == 1 ||
        !find_products(l, n->outputs[0], s.channels * s.space, products, &count))
        return QSIM_OK;
    for (int32_t i = 0; i < count; i++) {
        const qs_node *m = &l->g->nodes[products[i]];
        const int32_t w = weight_index(m, m->inputs[0]);
        qs_id c = permute_rows(l, l->g->values[m->inputs[w]].data, row_axis(m), s);
        if (c < 0)
            return c;
        qs_node_set_input(l->g, products[i], w, c);
    }
    qs_node_set_input(l->g, node, 0, l->twins.of[n->inputs[0]]);
    *done = true;
    return QSIM_OK;
}
