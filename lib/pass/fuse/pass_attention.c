/* SPDX-License-Identifier: MIT */
/*
 * Attention written as several nodes becomes one, which computes head by head in the cache:
 * queries, keys and values are split into heads and transposed, Softmax(scale * q k) v is
 * transposed back and the heads are joined. Or they have heads, as a decoder's cache has them, and
 * so has the result. The result has the same bits, since the operations and
 * their order are the same. A division by another number than a power of two would be rounded
 * differently as a product, so it is left alone.
 */
#include "pass/pass.h"

#include <math.h>

typedef struct search {
    const qs_graph *g;
    const qs_uses *uses;
} search;

/* An attention: its inputs, output and attributes. heads: 0 if the tensors have an axis of them. */
typedef struct pattern {
    qs_id q, k, v, y;
    int64_t heads;
    float scale;
} pattern;

/* The only reader of the node's output, if it is this operator; or NULL. */
static const qs_node *only_reader(const search *s, const qs_node *n, const char *op) {
    const qs_id id = qs_pass_reader(s->g, s->uses, n->outputs[0], op);
    return id == QS_NONE ? NULL : &s->g->nodes[id];
}

/* The producer of `v`, if it is this operator; or NULL. */
static const qs_node *producer_of(const search *s, qs_id v, const char *op) {
    const qs_id id = qs_pass_producer(s->g, v, op);
    return id == QS_NONE ? NULL : &s->g->nodes[id];
}

/*
 * Whether `cut`, (batch, row, heads, size), is a Reshape of `rows`, (batch, row, heads * size).
 * *heads is the number to compare with, or 0 and set.
 */
static bool are_heads(const search *s, qs_id rows, qs_id cut, int64_t *heads) {
    const qs_value *a = &s->g->values[rows], *b = &s->g->values[cut];
    if (a->rank != 3 || b->rank != 4 || a->dtype != QSIM_FLOAT || b->dims[2].size < 1 ||
        b->dims[3].size < 1 || a->dims[2].size % b->dims[2].size ||
        a->dims[2].size / b->dims[2].size != b->dims[3].size ||
        (*heads && *heads != b->dims[2].size))
        return false;
    *heads = b->dims[2].size;
    return qs_dim_same(&a->dims[0], &b->dims[0]) && qs_dim_same(&a->dims[1], &b->dims[1]);
}

/* The value whose rows, split into heads and transposed by `perm`, are `v`; or QS_NONE. */
static qs_id rows_of(const search *s, qs_id v, const int64_t *perm, int64_t *heads) {
    const qs_node *t = producer_of(s, v, "Transpose");
    const qs_node *r =
        t && qs_node_perm_is(t, perm, 4) ? producer_of(s, t->inputs[0], "Reshape") : NULL;
    return r && are_heads(s, r->inputs[0], r->outputs[0], heads) ? r->inputs[0] : QS_NONE;
}

/* The MatMul whose result Mul or Div `n` scales by one number; or NULL. */
static const qs_node *scaled_product(const search *s, const qs_node *n, float *scale) {
    const bool mul = n && qs_node_is_onnx(n, "Mul");
    double c = 0;
    int exponent;
    if (!n || qs_node_attr(n, "broadcast"))
        return NULL;
    const int32_t at = mul && s->g->values[n->inputs[0]].data ? 0 : 1;
    if (!qs_const_scalar(s->g, n->inputs[at], &c) || s->g->values[n->inputs[at]].rank > 1 ||
        (!mul && fabs(frexp(c, &exponent)) != 0.5))
        return NULL;
    *scale = (float)(mul ? c : 1 / c);
    if (!(fabsf(*scale) < INFINITY))
        return NULL;
    return producer_of(s, n->inputs[1 - at], "MatMul");
}

static bool is_last_axis(const search *s, const qs_node *softmax) {
    const int64_t axis = qs_node_int(softmax, "axis", softmax->version < 13 ? 1 : -1);
    return s->g->values[softmax->inputs[0]].rank == 4 && (axis == -1 || axis == 3);
}

/* Rows that are split into heads before, and joined after the product with the values. */
static bool match_rows(const search *s, const qs_node *product, const qs_node *mixed, pattern *f) {
    static const int64_t rows[] = {0, 2, 1, 3}, columns[] = {0, 2, 3, 1};
    const qs_node *back = only_reader(s, mixed, "Transpose");
    const qs_node *joined =
        back && qs_node_perm_is(back, rows, 4) ? only_reader(s, back, "Reshape") : NULL;
    if (!joined)
        return false;
    f->q = rows_of(s, product->inputs[0], rows, &f->heads);
    f->k = rows_of(s, product->inputs[1], columns, &f->heads);
    f->v = rows_of(s, mixed->inputs[1], rows, &f->heads);
    f->y = joined->outputs[0];
    return f->q != QS_NONE && f->k != QS_NONE && f->v != QS_NONE &&
           are_heads(s, f->y, back->outputs[0], &f->heads);
}

/* Tensors (batch, head, row, size), none of which is broadcast. */
static bool match_heads(const search *s, const qs_node *product, const qs_node *mixed, pattern *f) {
    static const int64_t columns[] = {0, 1, 3, 2};
    const qs_node *t = producer_of(s, product->inputs[1], "Transpose");
    if (!t || !qs_node_perm_is(t, columns, 4))
        return false;
    *f = (pattern){
        product->inputs[0], t->inputs[0], mixed->inputs[1], mixed->outputs[0], 0, f->scale};
    const qs_value *q = &s->g->values[f->q];
    const qs_id others[] = {f->k, f->v};
    bool fits = q->rank == 4 && q->dtype == QSIM_FLOAT;
    for (size_t i = 0; i < QS_COUNT(others) && fits; i++) {
        const qs_value *v = &s->g->values[others[i]];
        fits = v->rank == 4 && qs_dim_same(&q->dims[0], &v->dims[0]) &&
               qs_dim_same(&q->dims[1], &v->dims[1]);
    }
    return fits;
}

/* Matches the attention around a Softmax; false: another pattern. */
static bool match(const search *s, const qs_node *softmax, pattern *f) {
    const qs_id x = softmax->inputs[0];
    *f = (pattern){.scale = 1.0f};
    const qs_node *product = producer_of(s, x, "MatMul");
    if (!product)
        product = scaled_product(s, producer_of(s, x, "Div"), &f->scale);
    if (!product)
        product = scaled_product(s, producer_of(s, x, "Mul"), &f->scale);
    const qs_node *mixed = only_reader(s, softmax, "MatMul");
    if (!product || !mixed || mixed->inputs[0] != softmax->outputs[0])
        return false;
    return match_rows(s, product, mixed, f) || match_heads(s, product, mixed, f);
}

static int replace(qs_pass *p, const pattern *f, qs_id joined) {
    const qs_id in[] = {f->q, f->k, f->v};
    qs_graph_remove_node(p->graph, joined);
    const qs_id made = qs_pass_node(p, "", "Attention", "", 23, in, 3, &f->y, 1);
    if (made < 0)
        return made;
    const bool rows = f->heads > 0;
    return (rows && qs_node_set_int(p->graph, made, "q_num_heads", f->heads)) ||
                   (rows && qs_node_set_int(p->graph, made, "kv_num_heads", f->heads)) ||
                   qs_node_set_float(p->graph, made, "scale", f->scale)
               ? qs_pass_no_memory(p)
               : QSIM_OK;
}

static int fuse_softmax(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    const search s = {p->graph, uses};
    const qs_node *n = &p->graph->nodes[node];
    pattern f;
    if (!qs_node_is_onnx(n, "Softmax") || !is_last_axis(&s, n) || !match(&s, n, &f))
        return QSIM_OK;
    *changed = true;
    return replace(p, &f, p->graph->values[f.y].producer);
}

int qs_pass_attention(qs_pass *p) {
    return qs_pass_nodes(p, fuse_softmax);
}
