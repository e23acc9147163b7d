/* SPDX-License-Identifier: MIT */
/*
 * Finds the layers that add noise: compares every float tensor that both models compute, in the
 * order of the float graph. The noise of a layer is that of its output less that of its inputs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ctx.h"
#include "graph/model.h"
#include "op/op.h"
#include "ptq/counterparts.h"
#include "ptq/quantizer.h"
#include "ptq/verdict.h"
#include "tensor/shape.h"

#define MOST_SAMPLES 4

/* Adds a pair for a node, of its first output. */
static int add_pair(void *user, qs_id node, qs_id value, const char *counterpart) {
    qsim_verdict *v = user;
    const qs_graph *g = v->prepared->graph;
    if (g->nodes[node].outputs[0] == value)
        v->layers[v->layer_count++] =
            (qs_pair){.a = g->values[value].name, .b = counterpart, .node = node, .value = value};
    return QSIM_OK;
}

static int list_pairs(qsim_verdict *v) {
    v->layers = qs_arena_alloc(&v->arena, v->prepared->graph->value_count + 1, sizeof(*v->layers));
    v->layer_count = 0;
    if (!v->layers)
        return QSIM_E_NOMEM;
    return qs_pairs_list(v->prepared, v->quantized, add_pair, v);
}

/* Runs both models with the tensors of the pairs as outputs. */
static int run_pairs(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    const qsim_model *models[2] = {v->prepared, v->quantized};
    qs_side side[2] = {{0}, {0}};
    const char **names = qs_alloc(v->ctx, v->layer_count + 1, sizeof(*names));
    int code = names ? QSIM_OK : QSIM_E_NOMEM;
    for (int k = 0; k < 2 && !code; k++) {
        for (size_t i = 0; i < v->layer_count; i++)
            names[i] = k ? v->layers[i].b : v->layers[i].a;
        code = qs_side_open(models[k], names, v->layer_count, &side[k], v->ctx, error);
        if (!code)
            code = qs_side_execute(&side[k], inputs, count, error);
    }
    for (size_t i = 0; i < v->layer_count && !code; i++)
        code = qs_pair_add(&v->layers[i], &side[0].outputs[i], &side[1].outputs[i], error);
    for (int k = 0; k < 2; k++)
        qs_side_close(&side[k], v->ctx);
    qs_free(v->ctx, names);
    return code;
}

/* ---- noise by layer ---- */

typedef struct attribution {
    double *noise; /* by value: noise / signal; if it was not compared, that of its inputs */
    qs_id *owner;  /* by value: the layer since the last value that was compared */
} attribution;

static bool has_weights(const qs_graph *g, const qs_node *n) {
    const qs_const *w = qs_node_const(g, n, 1);
    return w && w->dtype == QSIM_FLOAT && w->elements > 1 && n->op &&
           qs_op_in(n->op->weight_inputs, 1);
}

/* Attributes the noise that the node adds to the layer with weights that it belongs to. */
static void attribute_noise(qsim_verdict *v, const qs_graph *g, const attribution *b, qs_id id,
                            qs_pair **next) {
    const qs_node *n = &g->nodes[id];
    const qs_pair *end = v->layers + v->layer_count;
    double before = 0;
    qs_id owner = has_weights(g, n) ? id : QS_NONE;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id x = n->inputs[i];
        if (x == QS_NONE || g->values[x].data)
            continue;
        before = b->noise[x] > before ? b->noise[x] : before;
        owner = owner == QS_NONE ? b->owner[x] : owner;
    }
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE) {
            b->noise[n->outputs[i]] = before;
            b->owner[n->outputs[i]] = owner;
        }
    if (*next == end || (*next)->node != id)
        return;
    qs_pair *p = (*next)++;
    p->before = before;
    b->noise[p->value] = qs_pair_noise(p);
    b->owner[p->value] = QS_NONE;
    p->node = owner == QS_NONE ? id : owner;
}

static double added(const qs_pair *p) {
    const double more = qs_pair_noise(p) - p->before;
    return isnan(more) ? 0 : more; /* both infinite */
}

static int by_noise(const void *a, const void *b) {
    const double x = added(a), y = added(b);
    const qs_id m = ((const qs_pair *)a)->value, n = ((const qs_pair *)b)->value;
    return x < y ? 1 : x > y ? -1 : (m > n) - (m < n);
}

/* Copies the graphs' texts to the verdict before the graphs are freed. */
static int keep_names(qsim_verdict *v, const qs_graph *g) {
    for (size_t i = 0; i < v->layer_count; i++) {
        qs_pair *p = &v->layers[i];
        const char *label = qs_node_label(g, p->node);
        p->name = qs_arena_string(&v->arena, label, strlen(label));
        p->a = qs_arena_string(&v->arena, p->a, strlen(p->a));
        p->b = p->a;
        if (!p->name || !p->a)
            return QSIM_E_NOMEM;
    }
    return QSIM_OK;
}

static int rank(qsim_verdict *v, const qs_graph *g) {
    const attribution b = {qs_calloc(v->ctx, g->value_count + 1, sizeof(*b.noise)),
                           qs_alloc(v->ctx, g->value_count + 1, sizeof(*b.owner))};
    qs_pair *next = v->layers;
    int code = b.noise && b.owner ? QSIM_OK : QSIM_E_NOMEM;
    for (size_t i = 0; !code && i < g->value_count; i++)
        b.owner[i] = QS_NONE;
    for (size_t k = 0; !code && k < g->order_count; k++)
        attribute_noise(v, g, &b, g->order[k], &next);
    qs_free(v->ctx, b.noise);
    qs_free(v->ctx, b.owner);
    if (!code)
        code = keep_names(v, g);
    if (!code && v->layer_count > 0)
        qsort(v->layers, v->layer_count, sizeof(*v->layers), by_noise);
    return code;
}

/* Makes views of the first samples of a batch if the model takes any number. */
static size_t shorten(const qsim_verdict *v, const qsim_tensor *inputs, size_t count,
                      qsim_tensor *out, int64_t (*dims)[QSIM_MAX_RANK]) {
    const qs_graph *g = v->prepared->graph;
    if (count > g->input_count || count > 8)
        return 0;
    for (size_t i = 0; i < count; i++) {
        const qsim_tensor *x = &inputs[i];
        const qs_value *slot = &g->values[g->inputs[i]];
        if (x->rank < 1 || x->rank > QSIM_MAX_RANK || slot->rank < 1 || slot->dims[0].size >= 0 ||
            x->dims[0] != inputs[0].dims[0] || x->dims[0] <= MOST_SAMPLES)
            return 0;
        qs_tensor_dims(x, dims[i]);
        dims[i][0] = MOST_SAMPLES;
        out[i] = *x;
        out[i].dims = dims[i];
        out[i].bytes = x->bytes / (size_t)x->dims[0] * MOST_SAMPLES;
    }
    return count;
}

static void release_models(qsim_verdict *v) {
    qsim_model_free(v->model);
    qsim_model_free(v->quantized);
    qsim_model_free(v->prepared);
    v->model = v->quantized = v->prepared = NULL;
}

int qs_verdict_layers(qsim_verdict *v, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    qsim_tensor few[8];
    int64_t dims[8][QSIM_MAX_RANK];
    if (!v->prepared) {
        release_models(v);
        return QSIM_OK;
    }
    const size_t shortened = shorten(v, inputs, count, few, dims);
    int code = qs_stop_fail(v->ctx, list_pairs(v), "verdict", error);
    if (!code && v->layer_count > 0)
        code = run_pairs(v, shortened ? few : inputs, count, error);
    if (!code)
        code = rank(v, v->prepared->graph);
    if (code)
        v->layer_count = 0;
    release_models(v);
    return code;
}
