/* SPDX-License-Identifier: MIT */
#include "ptq/counterparts.h"

#include "base/ctx.h"
#include "op/rules.h"
#include "tensor/minifloat.h"

#include <qsim/ptq.h>

#define SUFFIX                                                                                     \
    "_DequantizeLinear_Output" /* the suffix that qsim_quantize and other quantizers use */

/* Marks values that exist only inside an integer operator. */
static int find_fused(const qsim_model *m, bool *fused) {
    const qs_graph *g = m->graph;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        qsim_node_info info = {.struct_size = sizeof(info)};
        const uint32_t traits = n->op ? n->op->traits : 0;
        if ((traits & QS_QUANTIZES) && n->inputs[0] != QS_NONE)
            fused[n->inputs[0]] = true;
        if (traits & (QS_QUANTIZES | QS_DEQUANTIZES))
            continue;
        const int code = qsim_model_node(m, (int32_t)k, &info);
        if (code)
            return code;
        for (int32_t i = 0; info.integer && i < n->output_count; i++)
            if (n->outputs[i] != QS_NONE)
                fused[n->outputs[i]] = true;
    }
    return QSIM_OK;
}

/* Whether a node's result is a function of `value` alone, with constants and what is inside. */
static bool is_curve_of(const qs_graph *g, const qs_node *n, qs_id value, const bool *fused) {
    if (!n->op || !(n->op->traits & QS_ELEMENTWISE) || n->output_count != 1 ||
        !fused[n->outputs[0]])
        return false;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_id x = n->inputs[i];
        if (x != QS_NONE && x != value && !fused[x] && !g->values[x].data)
            return false;
    }
    return true;
}

/*
 * Marks dequantized values that only curves in integers read: their ranges may end where the curves
 * are flat, which is no loss, so that the curves' results are compared.
 */
static int find_sources(const qs_graph *g, bool *fused) {
    qs_uses uses;
    const int stopped = qs_stop_code(g->arena.ctx);
    if (stopped)
        return stopped;
    if (qs_graph_uses(g, &uses))
        return QSIM_E_NOMEM;
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        if (!n->op || !(n->op->traits & QS_DEQUANTIZES) || n->outputs[0] == QS_NONE)
            continue;
        const qs_id y = n->outputs[0];
        bool inside = !g->values[y].is_output && uses.start[y] < uses.start[y + 1];
        for (qs_id u = uses.start[y]; u < uses.start[y + 1] && inside; u++)
            inside = is_curve_of(g, &g->nodes[uses.nodes[u]], y, fused);
        fused[y] = inside;
    }
    qs_uses_free(g, &uses);
    return QSIM_OK;
}

/*
 * The float tensor of the quantized model that corresponds to `name`; NULL: it computes none.
 * `buffer` has room for every name with the suffix.
 */
static const char *counterpart(const qs_graph *h, const bool *fused, const char *name,
                               char *buffer) {
    const size_t length = strlen(name);
    memcpy(buffer, name, length);
    memcpy(buffer + length, SUFFIX, sizeof(SUFFIX));
    qs_id id = qs_graph_find(h, buffer);
    if (id == QS_NONE)
        id = qs_graph_find(h, name);
    if (id == QS_NONE || fused[id] || h->values[id].producer == QS_NONE)
        return NULL;
    const qs_value *v = &h->values[id];
    return qs_is_real(v->dtype) ? v->name : NULL;
}

static size_t longest_name(const qs_graph *g) {
    size_t longest = 0;
    for (size_t v = 0; v < g->value_count; v++) {
        const size_t length = strlen(g->values[v].name);
        longest = length > longest ? length : longest;
    }
    return longest;
}

int qs_pairs_list(const qsim_model *model, const qsim_model *quantized, qs_pairs_fn pair,
                  void *user) {
    const qs_graph *g = model->graph, *h = quantized->graph;
    bool *fused = qs_calloc(quantized->ctx, h->value_count + 1, sizeof(*fused));
    char *buffer = qs_alloc(quantized->ctx, longest_name(g) + sizeof(SUFFIX), 1);
    int code = fused && buffer ? find_fused(quantized, fused) : QSIM_E_NOMEM;
    if (!code)
        code = find_sources(h, fused);
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->output_count && !code; i++) {
            const qs_value *y = n->outputs[i] == QS_NONE ? NULL : &g->values[n->outputs[i]];
            const bool compares =
                y && y->name[0] && !y->data && !qs_value_is_sequence(g, n->outputs[i]);
            const char *other = compares ? counterpart(h, fused, y->name, buffer) : NULL;
            if (other)
                code = pair(user, g->order[k], n->outputs[i], other);
        }
    }
    qs_free(quantized->ctx, fused);
    qs_free(quantized->ctx, buffer);
    return code;
}

typedef struct listing {
    const qsim_model *model;
    qsim_pair_fn pair;
    void *user;
    qsim_error *error;
    int32_t count;
} listing;

static int report_pair(void *user, qs_id node, qs_id value, const char *other) {
    listing *l = user;
    (void)node;
    l->count++;
    const bool ended = l->pair && l->pair(l->user, l->model->graph->values[value].name, other);
    return qs_go_on_unless(l->model->ctx, ended, l->model->name, l->error);
}

int32_t qsim_model_pairs(const qsim_model *model, const qsim_model *quantized, qsim_pair_fn pair,
                         void *user, qsim_error *error) {
    listing l = {.model = model, .pair = pair, .user = user, .error = error};
    qs_error_clear(error);
    if (!model || !quantized)
        return qs_fail_missing(error, "pairs");
    const int code = qs_pairs_list(model, quantized, report_pair, &l);
    return code ? qs_stop_fail(model->ctx, code, "pairs", error) : l.count;
}
