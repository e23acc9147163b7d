/* SPDX-License-Identifier: MIT */
/*
 * Folds BatchNormalization into the Conv or ConvTranspose before it: scaled weights, another bias.
 */
#include "op/rules.h"
#include "pass/pass.h"

#include <math.h>

typedef struct folding {
    const qs_const *w, *b; /* b may be NULL */
    const qs_const *scale, *shift, *mean, *var;
    double epsilon;
    size_t channels, run; /* run: contiguous weights of one channel */
    bool transposed;
} folding;

/*
 * Reads the constants; false if node `bn` cannot be folded into node `conv`, which makes its input.
 */
static bool read_folding(const qs_graph *g, const qs_node *conv, const qs_node *bn, folding *f) {
    f->w = qs_node_floats(g, conv, 1);
    f->b = qs_node_floats(g, conv, 2);
    f->scale = qs_node_floats(g, bn, 1);
    f->shift = qs_node_floats(g, bn, 2);
    f->mean = qs_node_floats(g, bn, 3);
    f->var = qs_node_floats(g, bn, 4);
    if (!f->w || !f->scale || !f->shift || !f->mean || !f->var || f->w->rank < 3 ||
        f->w->elements == 0 || qs_node_int(bn, "training_mode", 0) != 0)
        return false;
    for (int32_t i = 1; i < bn->output_count; i++)
        if (bn->outputs[i] != QS_NONE)
            return false;
    /* Weights of ConvTranspose are [C, M / groups, kh, kw]. */
    f->transposed = qs_node_is(conv, "", "ConvTranspose");
    if (f->transposed && qs_node_int(conv, "group", 1) != 1)
        return false;
    f->channels = (size_t)f->w->dims[f->transposed];
    f->run = f->w->elements / (size_t)f->w->dims[0] / (f->transposed ? f->channels : 1);
    f->epsilon = (double)qs_node_float(bn, "epsilon", 1e-5f);
    const qs_const *all[] = {f->scale, f->shift, f->mean, f->var, f->b};
    for (size_t i = 0; i < QS_COUNT(all); i++)
        if (all[i] && all[i]->elements != f->channels)
            return false;
    for (size_t c = 0; c < f->channels; c++)
        if (!(qs_const_at(f->var, c) + f->epsilon > 0))
            return false;
    return f->b || conv->input_count < 3 || conv->inputs[2] == QS_NONE;
}

static qs_id add_constant(qs_pass *p, const char *base, const char *suffix, const qs_const *shape,
                          int64_t channels, const float *data) {
    qs_graph *g = p->graph;
    size_t n = strlen(base), m = strlen(suffix);
    char *name = qs_arena_alloc(&g->arena, n + m + 1, 1);
    if (!name)
        return qs_pass_no_memory(p);
    memcpy(name, base, n);
    memcpy(name + n, suffix, m);
    const char *fresh = qs_graph_fresh_name(g, name);
    qs_id id = !fresh ? QSIM_E_NOMEM
               : shape
                   ? qs_graph_add_const(g, fresh, QSIM_FLOAT, shape->rank, shape->dims, data, false)
                   : qs_graph_add_const(g, fresh, QSIM_FLOAT, 1, &channels, data, false);
    return id < 0 ? qs_pass_no_memory(p) : id;
}

static int fold(qs_pass *p, qs_id conv, qs_id bn, const folding *f) {
    qs_graph *g = p->graph;
    float *w = qs_arena_alloc64(&g->arena, f->w->bytes);
    float *b = qs_arena_alloc64(&g->arena, f->channels * sizeof(float));
    if (!w || !b)
        return qs_pass_no_memory(p);
    for (size_t c = 0; c < f->channels; c++) {
        double s = qs_const_at(f->scale, c) / sqrt(qs_const_at(f->var, c) + f->epsilon);
        double old = f->b ? qs_const_at(f->b, c) : 0;
        b[c] = (float)((old - qs_const_at(f->mean, c)) * s + qs_const_at(f->shift, c));
        for (size_t k = c * f->run; k < f->w->elements; k += f->channels * f->run)
            for (size_t i = k; i < k + f->run; i++)
                w[i] = (float)(qs_const_at(f->w, i) * s);
    }
    const char *base = g->values[g->nodes[conv].inputs[1]].name;
    qs_id wid = add_constant(p, base, "_folded", f->w, 0, w);
    qs_id bid = wid < 0 ? wid : add_constant(p, base, "_bias", NULL, (int64_t)f->channels, b);
    if (bid < 0)
        return bid;
    if (qs_node_grow_inputs(g, conv, 3))
        return qs_pass_no_memory(p);
    qs_node_set_input(g, conv, 1, wid);
    qs_node_set_input(g, conv, 2, bid);
    qs_id y = g->nodes[bn].outputs[0];
    qs_graph_remove_node(g, bn);
    qs_pass_set_output(p, conv, 0, y);
    return QSIM_OK;
}

static int fold_node(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    const qs_graph *g = p->graph;
    const qs_node *bn = &g->nodes[node];
    const qs_id x = bn->input_count ? bn->inputs[0] : QS_NONE;
    folding f;
    if (!qs_node_is(bn, "", "BatchNormalization") || qs_node_int(bn, "training_mode", 0) ||
        g->values[x].dtype != QSIM_FLOAT)
        return QSIM_OK;
    qs_id conv = qs_pass_producer(g, x, "Conv");
    if (conv == QS_NONE)
        conv = qs_pass_producer(g, x, "ConvTranspose");
    if (conv == QS_NONE || qs_only_reader(g, uses, x) == QS_NONE ||
        !read_folding(g, &g->nodes[conv], bn, &f))
        return QSIM_OK;
    *changed = true;
    return fold(p, conv, node, &f);
}

int qs_pass_batchnorm(qs_pass *p) {
    return qs_pass_nodes(p, fold_node);
}
