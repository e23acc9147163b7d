/* SPDX-License-Identifier: MIT */
/*
 * Dynamic quantization, as files have it:
 *
 *     sums = MatMulInteger | ConvInteger (q, w, q_zp, w_zp)
 *     y    = Mul(Cast(sums), Mul(q_scale, w_scale)) [+ bias]
 *
 * becomes one operator, with the same bits; integers may be added to the sums first, as older
 * versions of ONNX Runtime's quantizer add biases. So does the form with a scale for each row:
 *
 *     y = Mul(Mul(Cast(sums), w_scale), s) [+ bias]
 *     s = Div(Max(ReduceMax(Abs(x)), 1e-30), 127);  q = Cast(Add(Round(Div(x, s)), 128))
 */
#include "pass/pass.h"

#include <math.h>

typedef struct dynamic {
    qs_pass *p;
    qs_graph *g;
    const qs_uses *uses;
} dynamic;

/* The other one of two inputs. */
static qs_id other_input(const qs_node *n, qs_id v) {
    return n->inputs[0] == v ? n->inputs[1] : n->inputs[0];
}

static bool is_float_const(const dynamic *d, qs_id v) {
    const qs_const *c = v < 0 ? NULL : d->g->values[v].data;
    return c && c->dtype == QSIM_FLOAT;
}

/* ---- products ---- */

typedef struct product {
    qs_id node, last;             /* the integer operator and the node that makes y */
    qs_id x_scale, w_scale, bias; /* bias: of floats, or of integers that are added to sums */
    bool conv, rows;
    int64_t columns;
} product;

/*
 * Whether a constant has one element, or one for each column, with a shape that broadcasts along
 * the columns of y: such as [C, 1, 1] for a convolution, [C] for a matrix.
 */
static bool is_per_column(const product *m, const qs_const *c, int32_t y_rank) {
    int32_t axis = m->conv ? 1 - y_rank : -1;
    if (c->rank > y_rank)
        return false;
    if (c->elements == 1)
        return true;
    return c->rank >= -axis && c->dims[c->rank + axis] == m->columns &&
           (int64_t)c->elements == m->columns;
}

/* The integers for each column of y that an Add takes beside the sums; QS_NONE: others. */
static qs_id read_integers(const dynamic *d, qs_id add, qs_id sums, const product *m,
                           int32_t y_rank) {
    const qs_id id = other_input(&d->g->nodes[add], sums);
    const qs_value *v = &d->g->values[id];
    const int32_t axis = v->rank + (m->conv ? 1 - y_rank : -1);
    bool fits = v->dtype == QSIM_INT32 && v->rank <= y_rank && axis >= 0;
    for (int32_t i = 0; i < v->rank && fits; i++)
        fits = v->dims[i].size == (i == axis ? m->columns : 1);
    return fits ? id : QS_NONE;
}

static bool read_scales(const dynamic *d, qs_id scales, product *m, int32_t rank) {
    qs_id mul = qs_pass_producer(d->g, scales, "Mul");
    for (int k = 0; mul != QS_NONE && k < 2; k++) {
        const qs_node *n = &d->g->nodes[mul];
        m->x_scale = n->inputs[k];
        m->w_scale = n->inputs[1 - k];
        if (is_float_const(d, m->w_scale) && !is_float_const(d, m->x_scale))
            return is_per_column(m, d->g->values[m->w_scale].data, rank);
    }
    return false;
}

/* Whether a value is one scale for the whole tensor. */
static bool is_single(const dynamic *d, qs_id v, int32_t rank) {
    const qs_value *s = &d->g->values[v];
    bool single = s->dtype == QSIM_FLOAT && s->rank >= 0 && s->rank <= rank;
    for (int32_t i = 0; i < s->rank && single; i++)
        single = s->dims[i].size == 1;
    return single;
}

/* Matches y = Mul(sums, Mul(x_scale, w_scale)). */
static bool match_tensor(const dynamic *d, qs_id mul, qs_id sums, product *m, int32_t rank) {
    m->last = mul;
    return read_scales(d, other_input(&d->g->nodes[mul], sums), m, rank) &&
           is_single(d, m->x_scale, rank);
}

/* Matches y = Mul(Mul(sums, w_scale), s), where QuantizeRows makes s and the product's input. */
static bool match_by_row(const dynamic *d, qs_id mul, qs_id sums, product *m, int32_t rank) {
    const qs_graph *g = d->g;
    m->w_scale = other_input(&g->nodes[mul], sums);
    if (!is_float_const(d, m->w_scale) || !is_per_column(m, g->values[m->w_scale].data, rank))
        return false;
    qs_id half = g->nodes[mul].outputs[0];
    m->last = qs_pass_reader(d->g, d->uses, half, "Mul");
    if (m->last == QS_NONE)
        return false;
    m->x_scale = other_input(&g->nodes[m->last], half);
    m->rows = true;
    qs_id rows = g->values[m->x_scale].producer;
    return rows != QS_NONE && qs_node_is(&g->nodes[rows], "qsim", "QuantizeRows") &&
           g->nodes[rows].outputs[0] == g->nodes[m->node].inputs[0] &&
           g->values[m->x_scale].rank == rank &&
           qs_node_int(&g->nodes[rows], "axis", -1) == (m->conv ? 1 : rank - 1);
}

static bool match_product(const dynamic *d, qs_id node, product *m) {
    const qs_graph *g = d->g;
    const qs_node *n = &g->nodes[node];
    *m = (product){.node = node, .bias = QS_NONE, .conv = qs_node_is_onnx(n, "ConvInteger")};
    if (!m->conv && !qs_node_is_onnx(n, "MatMulInteger"))
        return false;
    const qs_const *w = g->values[n->inputs[1]].data;
    int32_t rank = g->values[n->outputs[0]].rank;
    if (!w || w->rank < 2 || (!m->conv && w->rank != 2) || rank < 2 ||
        (w->dtype != QSIM_INT8 && w->dtype != QSIM_UINT8))
        return false;
    m->columns = w->dims[m->conv ? 0 : 1];
    qs_id whole = n->outputs[0], integers = qs_pass_reader(d->g, d->uses, whole, "Add");
    if (integers != QS_NONE) {
        m->bias = read_integers(d, integers, whole, m, rank);
        whole = g->nodes[integers].outputs[0];
    }
    qs_id cast = qs_pass_reader(d->g, d->uses, whole, "Cast");
    if ((integers != QS_NONE && m->bias == QS_NONE) || cast == QS_NONE ||
        g->values[g->nodes[cast].outputs[0]].dtype != QSIM_FLOAT)
        return false;
    qs_id sums = g->nodes[cast].outputs[0];
    qs_id mul = qs_pass_reader(d->g, d->uses, sums, "Mul");
    if (mul == QS_NONE ||
        (!match_tensor(d, mul, sums, m, rank) && !match_by_row(d, mul, sums, m, rank)))
        return false;
    qs_id y = g->nodes[m->last].outputs[0], add = qs_pass_reader(d->g, d->uses, y, "Add");
    qs_id bias = add == QS_NONE || m->bias != QS_NONE ? QS_NONE : other_input(&g->nodes[add], y);
    if (is_float_const(d, bias) && is_per_column(m, g->values[bias].data, rank)) {
        m->last = add;
        m->bias = bias;
    }
    return true;
}

/* Makes a vector of one float for each column. */
static qs_id make_vector(dynamic *d, qs_id v, int64_t columns) {
    const qs_const *c = d->g->values[v].data;
    const uint8_t *from = c->data;
    uint8_t *list = qs_arena_alloc64(&d->g->arena, (size_t)columns * 4 + 4);
    if (!list)
        return qs_pass_no_memory(d->p);
    for (size_t i = 0; i < (size_t)columns; i++)
        memcpy(list + 4 * i, from + (c->elements == 1 ? 0 : 4 * i), 4);
    return qs_pass_placed_const(d->p, QSIM_FLOAT, 1, &columns, list);
}

static qs_id zero_point(dynamic *d, const qs_node *n, int32_t index, int32_t dtype) {
    bool given = index < n->input_count && n->inputs[index] != QS_NONE;
    return given ? n->inputs[index] : qs_pass_const_u8(d->p, dtype, 0);
}

static int replace_product(dynamic *d, const product *m) {
    qs_graph *g = d->g;
    const qs_node *n = &g->nodes[m->node];
    qs_id in[7] = {n->inputs[0], n->inputs[1]}, y = g->nodes[m->last].outputs[0];
    in[2] = zero_point(d, n, 2, QSIM_UINT8);
    in[3] = zero_point(d, &g->nodes[m->node], 3, g->values[in[1]].dtype);
    in[4] = m->x_scale;
    in[5] = make_vector(d, m->w_scale, m->columns);
    in[6] = m->bias;
    if (m->bias != QS_NONE && g->values[m->bias].dtype == QSIM_FLOAT)
        in[6] = make_vector(d, m->bias, m->columns);
    for (int32_t i = 2; i < 7; i++)
        if (in[i] < 0 && !(i == 6 && m->bias == QS_NONE))
            return in[i];
    qs_graph_remove_node(g, m->last);
    qs_id made = qs_pass_clone(d->p, m->node, "qsim", in, m->bias == QS_NONE ? 6 : 7, &y, 1);
    if (made < 0)
        return made;
    g->nodes[made].op_type = m->conv ? "ConvIntegerScaled" : "MatMulIntegerScaled";
    if (m->rows && qs_node_set_int(g, made, "rows", 1))
        return qs_pass_no_memory(d->p);
    return qs_pass_resolve(d->p, made);
}

/* ---- rows ---- */

static bool is_float(const dynamic *d, qs_id v, double number) {
    double is;
    return d->g->values[v].dtype == QSIM_FLOAT && qs_const_scalar(d->g, v, &is) &&
           is == (double)(float)number;
}

/* x of v = op_type(x, number); QS_NONE: another node makes v. */
static qs_id left_operand(const dynamic *d, qs_id v, const char *op_type, double number) {
    qs_id id = qs_pass_producer(d->g, v, op_type);
    const qs_node *n = id == QS_NONE ? NULL : &d->g->nodes[id];
    return n && n->input_count == 2 && is_float(d, n->inputs[1], number) ? n->inputs[0] : QS_NONE;
}

/*
 * The first reduced axis of a ReduceMax that keeps its axes and reduces all axes from there on;
 * else -1.
 */
static int32_t first_reduced(const dynamic *d, const qs_node *n) {
    const int32_t rank = d->g->values[n->inputs[0]].rank;
    const uint32_t mask = qs_node_int(n, "keepdims", 1) ? qs_node_axes(d->g, n, rank) : 0;
    for (int32_t first = 0; first < rank; first++)
        if (mask == (1u << rank) - (1u << first))
            return first;
    return -1;
}

/* Matches rows that are quantized by this node, the Cast to u8. */
static bool match_rows(const dynamic *d, qs_id node, qs_id *x, qs_id *scale, int32_t *axis) {
    const qs_graph *g = d->g;
    const qs_node *n = &g->nodes[node];
    if (!qs_node_is_onnx(n, "Cast") || qs_node_int(n, "to", 0) != QSIM_UINT8)
        return false;
    qs_id rounded = left_operand(d, n->inputs[0], "Add", 128);
    qs_id round = rounded == QS_NONE ? QS_NONE : qs_pass_producer(g, rounded, "Round");
    qs_id div = round == QS_NONE ? QS_NONE : qs_pass_producer(g, g->nodes[round].inputs[0], "Div");
    if (div == QS_NONE)
        return false;
    *x = g->nodes[div].inputs[0];
    *scale = g->nodes[div].inputs[1];
    qs_id clamped = left_operand(d, *scale, "Div", 127);
    qs_id maximum = clamped == QS_NONE ? QS_NONE : left_operand(d, clamped, "Max", 1e-30);
    qs_id reduce = maximum == QS_NONE ? QS_NONE : qs_pass_producer(g, maximum, "ReduceMax");
    qs_id magnitude =
        reduce == QS_NONE ? QS_NONE : qs_pass_producer(g, g->nodes[reduce].inputs[0], "Abs");
    if (magnitude == QS_NONE || g->nodes[magnitude].inputs[0] != *x ||
        g->values[*x].dtype != QSIM_FLOAT || g->values[*scale].is_output)
        return false;
    *axis = first_reduced(d, &g->nodes[reduce]);
    return *axis >= 0;
}

static int replace_rows(dynamic *d, qs_id node, qs_id x, qs_id scale, int32_t axis) {
    qs_graph *g = d->g;
    const char *name = g->nodes[node].name;
    const qs_id out[2] = {g->nodes[node].outputs[0], scale};
    qs_graph_remove_node(g, node);
    qs_graph_remove_node(g, g->values[scale].producer);
    qs_id made = qs_graph_add_node(g, "qsim", "QuantizeRows", name, &x, 1, out, 2);
    if (made < 0 || qs_node_set_int(g, made, "axis", axis))
        return qs_pass_no_memory(d->p);
    return qs_pass_resolve(d->p, made);
}

/* ---- the pass ---- */

static int match_node(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    dynamic d = {.p = p, .g = p->graph, .uses = uses};
    qs_id x, scale;
    int32_t axis;
    product m;
    if (d.g->nodes[node].removed)
        return QSIM_OK;
    const bool rows = match_rows(&d, node, &x, &scale, &axis);
    if (!rows && !match_product(&d, node, &m))
        return QSIM_OK;
    *changed = true;
    return rows ? replace_rows(&d, node, x, scale, axis) : replace_product(&d, &m);
}

int qs_pass_dynamic(qs_pass *p) {
    return qs_pass_nodes(p, match_node);
}
