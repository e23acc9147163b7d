/* SPDX-License-Identifier: MIT */
/*
 * Activations that exporters write as several nodes become one: SiLU, x * Sigmoid(x); HardSwish, x
 * * HardSigmoid(x) with its slope or x * Clip(x + 3, 0, 6) / 6; Gelu, x * (Erf(x / sqrt 2) + 1) *
 * 0.5 with its factors in any order, and the same with Tanh of a polynomial.
 */
#include "kernel/elementary.h"
#include "pass/pass.h"

#include <math.h>

typedef struct curves {
    qs_pass *p;
    qs_graph *g;
    qs_uses uses;
    size_t made;
} curves;

/* The producer of `v` if it is operator `op` and `v` has one reader; or NULL. */
static const qs_node *only_producer(const curves *c, qs_id v, const char *op) {
    const qs_id id = qs_only_producer(c->g, &c->uses, v);
    const qs_node *n = id == QS_NONE ? NULL : &c->g->nodes[id];
    return n && qs_node_is_onnx(n, op) ? n : NULL;
}

static bool is_scalar(const curves *c, const qs_node *n, int32_t index, double value) {
    double v;
    return index < n->input_count && n->inputs[index] != QS_NONE &&
           qs_const_scalar(c->g, n->inputs[index], &v) && fabs(v - value) <= 1e-6 * value;
}

/*
 * The value of `v` for x = at, if it is computed from x and numbers by sums, products, quotients
 * and powers that nothing else reads; else NaN.
 */
static double value_at(const curves *c, qs_id v, qs_id x, double at, int depth) {
    double value = at;
    if (v == x || qs_const_scalar(c->g, v, &value))
        return value;
    const qs_id id = qs_only_producer(c->g, &c->uses, v);
    const qs_node *n = id == QS_NONE ? NULL : &c->g->nodes[id];
    if (!n || depth == 0 || n->input_count != 2)
        return NAN;
    const double a = value_at(c, n->inputs[0], x, at, depth - 1);
    const double b = value_at(c, n->inputs[1], x, at, depth - 1);
    return n->op->traits & QS_SCALES    ? a * b
           : n->op->traits & QS_ADDS    ? a + b
           : n->op->traits & QS_DIVIDES ? a / b
           : qs_node_is_onnx(n, "Pow")  ? qk_pow64(a, b)
                                        : NAN;
}

static bool is_hard_sigmoid(const qs_node *n) {
    return fabs((double)qs_node_float(n, "alpha", 0.2f) - 1.0 / 6) < 1e-6 &&
           qs_node_float(n, "beta", 0.5f) == 0.5f;
}

/* Turns node `id` into op(x). */
static int replace_node(curves *c, qs_id id, const char *domain, const char *op, int32_t version,
                        qs_id x) {
    const qs_id y = c->g->nodes[id].outputs[0];
    qs_graph_remove_node(c->g, id);
    qs_id made = qs_pass_node(c->p, domain, op, "", version, &x, 1, &y, 1);
    c->made++;
    return made < 0 ? made : QSIM_OK;
}

/* Matches Mul(x, Sigmoid(x)) and Mul(x, HardSigmoid(x)), where x is input `first`. */
static int try_product(curves *c, qs_id id, int32_t first, bool *done) {
    const qs_node *n = &c->g->nodes[id];
    const qs_id x = n->inputs[first], b = n->inputs[1 - first];
    const qs_node *producer = only_producer(c, b, "Sigmoid");
    const bool sigmoid = producer && producer->inputs[0] == x;
    if (!sigmoid)
        producer = only_producer(c, b, "HardSigmoid");
    *done = sigmoid || (producer && producer->inputs[0] == x && is_hard_sigmoid(producer));
    if (!*done)
        return QSIM_OK;
    return replace_node(c, id, sigmoid ? "qsim" : "", sigmoid ? "Silu" : "HardSwish",
                        sigmoid ? 1 : 14, x);
}

/* x of Clip(x + 3, 0, 6), if that is factor `index` of the product; else QS_NONE. */
static qs_id clipped_input(const curves *c, const qs_node *product, int32_t index) {
    const qs_node *clip = only_producer(c, product->inputs[index], "Clip");
    const qs_id x = product->inputs[1 - index];
    double lo, hi;
    /* One step that makes 3 of 0 is the sum. */
    return clip && qs_node_bounds(c->g, clip, &lo, &hi) && lo == 0 && hi == 6 &&
                   !c->g->values[clip->inputs[0]].data && value_at(c, clip->inputs[0], x, 0, 1) == 3
               ? x
               : QS_NONE;
}

/* Matches Div(x * Clip(x + 3, 0, 6), 6), or Mul by a sixth. */
static int try_sixth(curves *c, qs_id id, bool *done) {
    const qs_node *n = &c->g->nodes[id];
    const bool div = n->op->traits & QS_DIVIDES;
    const qs_node *product =
        is_scalar(c, n, 1, div ? 6 : 1.0 / 6) ? only_producer(c, n->inputs[0], "Mul") : NULL;
    qs_id x = QS_NONE;
    for (int32_t i = 0; i < 2 && product && x == QS_NONE; i++)
        x = clipped_input(c, product, i);
    *done = x != QS_NONE && c->g->values[x].rank == c->g->values[n->outputs[0]].rank;
    return *done ? replace_node(c, id, "", "HardSwish", 14, x) : QSIM_OK;
}

/* ---- Gelu ---- */

/*
 * Whether `v` is 1 + Erf(x / sqrt 2), or 1 + Tanh(sqrt(2 / pi) (x + 0.044715 x^3)): polynomials up
 * to the fifth degree with these values in six places are these.
 */
static bool is_gate(const curves *c, qs_id v, qs_id x, bool *tanh) {
    const qs_node *add = only_producer(c, v, "Add"), *curve = NULL;
    for (int32_t i = 0; i < 2 && add && !curve; i++)
        if (is_scalar(c, add, 1 - i, 1)) {
            curve = only_producer(c, add->inputs[i], "Erf");
            *tanh = !curve;
            curve = curve ? curve : only_producer(c, add->inputs[i], "Tanh");
        }
    for (double at = -3; at < 4 && curve; at += 1.25) {
        const double value = value_at(c, curve->inputs[0], x, at, 6);
        const double want =
            *tanh ? 0.79788456080286536 * (at + 0.044715 * at * at * at) : 0.70710678118654752 * at;
        if (!(fabs(value - want) <= 1e-6 * fabs(want)))
            return false;
    }
    return curve != NULL;
}

/* x, if the three factors are x, its gate and 0.5 in any order; else QS_NONE. */
static qs_id gelu_input(const curves *c, const qs_id factors[3], bool *tanh) {
    for (int32_t i = 0; i < 3; i++)
        for (int32_t k = 1; k < 3; k++) {
            const qs_id x = factors[(i + k) % 3], rest = factors[(i + 3 - k) % 3];
            double half;
            if (qs_const_scalar(c->g, rest, &half) && half == 0.5 &&
                is_gate(c, factors[i], x, tanh))
                return x;
        }
    return QS_NONE;
}

static int replace_gelu(curves *c, qs_id id, qs_id x, bool tanh) {
    const qs_attr attr = {
        .name = "approximate", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"tanh", 4}};
    const qs_id y = c->g->nodes[id].outputs[0];
    const int code = replace_node(c, id, "", "Gelu", 20, x);
    return code || !tanh ? code : qs_node_set_attr(c->g, c->g->values[y].producer, &attr);
}

static int try_gelu(curves *c, qs_id id, bool *done) {
    const qs_node *n = &c->g->nodes[id];
    bool tanh = false;
    for (int32_t i = 0; i < 2; i++) {
        const qs_node *inner = only_producer(c, n->inputs[i], "Mul");
        const qs_id factors[3] = {n->inputs[1 - i], inner ? inner->inputs[0] : QS_NONE,
                                  inner ? inner->inputs[1] : QS_NONE};
        const qs_id x = inner ? gelu_input(c, factors, &tanh) : QS_NONE;
        *done = x != QS_NONE && c->g->values[x].rank == c->g->values[n->outputs[0]].rank;
        if (*done)
            return replace_gelu(c, id, x, tanh);
    }
    return QSIM_OK;
}

static int fuse_at(curves *c, qs_id id) {
    const qs_node *n = &c->g->nodes[id];
    const bool mul = n->op->traits & QS_SCALES;
    bool done = false;
    if (!(n->op->traits & (QS_SCALES | QS_DIVIDES)) ||
        c->g->values[n->outputs[0]].dtype != QSIM_FLOAT)
        return QSIM_OK;
    int code = QSIM_OK;
    for (int32_t i = 0; i < 2 && mul && !code && !done; i++)
        code = try_product(c, id, i, &done);
    if (mul && !code && !done)
        code = try_gelu(c, id, &done);
    return code || done ? code : try_sixth(c, id, &done);
}

int qs_pass_curves(qs_pass *p) {
    curves c = {.p = p, .g = p->graph};
    int code = QSIM_OK;
    const size_t count = p->graph->order_count;
    if (qs_graph_uses(p->graph, &c.uses))
        return qs_pass_no_memory(p);
    for (size_t i = 0; i < count && !code; i++)
        code = fuse_at(&c, p->graph->order[i]);
    qs_uses_free(p->graph, &c.uses);
    return code || !c.made ? code : qs_pass_finish(p);
}
