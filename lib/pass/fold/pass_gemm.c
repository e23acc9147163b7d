/* SPDX-License-Identifier: MIT */
/*
 * Brings a Gemm with constant weights into the form x W + b, which the quantizer knows: alpha is
 * multiplied into the weights and beta into the bias, a bias of one element becomes a vector, and
 * transA a Transpose.
 */
#include "pass/pass.h"
#include "quant/observer.h"

typedef struct gemm {
    qs_graph *g;
    qs_id node;
    const qs_const *w, *c; /* c NULL: no bias */
    float alpha, beta;
    int64_t columns;
    bool transposed;
} gemm;

/* Whether the bias has one element, or one for each column. */
static bool is_row(const qs_const *c, int64_t columns) {
    return c->elements == 1 ||
           (c->rank >= 1 && c->elements == (size_t)columns && c->dims[c->rank - 1] == columns);
}

static bool read_gemm(qs_graph *g, qs_id node, gemm *m) {
    const qs_node *n = &g->nodes[node];
    if (!qs_node_is_onnx(n, "Gemm") || g->values[n->inputs[0]].data)
        return false;
    qs_id c = qs_node_input(n, 2);
    *m = (gemm){.g = g,
                .node = node,
                .w = qs_node_floats(g, n, 1),
                .c = qs_node_floats(g, n, 2),
                .alpha = qs_node_float(n, "alpha", 1),
                .beta = qs_node_float(n, "beta", 1),
                .transposed = qs_node_int(n, "transA", 0) != 0};
    if (!m->w || m->w->rank != 2 || m->w->elements == 0 || (c != QS_NONE && !m->c))
        return false;
    m->columns = m->w->dims[qs_node_int(n, "transB", 0) ? 0 : 1];
    return !m->c || is_row(m->c, m->columns);
}

/*
 * Replaces input `index` by a constant of `count` elements, scaled by `factor`; *fits false: a
 * product overflows, and the input stays.
 */
static int scale_input(const gemm *m, int32_t index, float factor, int32_t rank,
                       const int64_t *dims, size_t count, bool *fits) {
    qs_graph *g = m->g;
    qs_id from = g->nodes[m->node].inputs[index];
    const float *x = qs_graph_aligned(g, from);
    size_t given = g->values[from].data->elements;
    float *y = qs_arena_alloc64(&g->arena, count * sizeof(*y) + 1);
    if (!x || !y)
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        y[i] = factor * x[given == 1 ? 0 : i];
    *fits = qs_all_finite(y, count);
    if (!*fits)
        return QSIM_OK;
    const char *name = qs_graph_fresh_name(g, g->values[from].name);
    qs_id id = name ? qs_graph_add_const(g, name, QSIM_FLOAT, rank, dims, y, false) : QSIM_E_NOMEM;
    if (id < 0)
        return QSIM_E_NOMEM;
    qs_node_set_input(g, m->node, index, id);
    return QSIM_OK;
}

static int transpose_input(qs_pass *p, const gemm *m) {
    static const int64_t perm[2] = {1, 0};
    qs_graph *g = m->g;
    const qs_id x = g->nodes[m->node].inputs[0];
    const char *name = qs_graph_fresh_name(g, g->values[x].name);
    const qs_id y = name ? qs_graph_add_value(g, name) : QSIM_E_NOMEM;
    const qs_id made = y < 0 ? y : qs_graph_add_node(g, "", "Transpose", name, &x, 1, &y, 1);
    if (made < 0 || qs_node_set_ints(g, made, "perm", perm, 2))
        return QSIM_E_NOMEM;
    qs_node_set_input(g, m->node, 0, y);
    qs_node_drop_attr(g, m->node, "transA");
    return qs_pass_resolve(p, made);
}

static int fold(qs_pass *p, const gemm *m) {
    bool fits = true;
    int code = QSIM_OK;
    if (m->alpha != 1.0f) {
        code = scale_input(m, 1, m->alpha, 2, m->w->dims, m->w->elements, &fits);
        if (!code && fits)
            qs_node_drop_attr(m->g, m->node, "alpha");
    }
    if (!code && m->c &&
        (m->beta != 1.0f || m->c->rank < 1 || m->c->elements != (size_t)m->columns)) {
        code = scale_input(m, 2, m->beta, 1, &m->columns, (size_t)m->columns, &fits);
        if (!code && fits)
            qs_node_drop_attr(m->g, m->node, "beta");
    }
    return code || !m->transposed ? code : transpose_input(p, m);
}

int qs_pass_gemm(qs_pass *p) {
    qs_graph *g = p->graph;
    bool changed = false;
    int code = QSIM_OK;
    for (size_t k = 0; k < g->order_count && !code; k++) {
        gemm m;
        if (!read_gemm(g, g->order[k], &m))
            continue;
        code = fold(p, &m);
        changed = true;
    }
    if (code == QSIM_E_NOMEM)
        return qs_pass_no_memory(p);
    return code || !changed ? code : qs_pass_finish(p);
}
