/* SPDX-License-Identifier: MIT */
/* Applies the operators' shape rules to nodes and graphs. */
#include "base/ctx.h"
#include "op/rules.h"
#include "tensor/minifloat.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

int qs_infer_fail(const qs_infer *x, int code, const char *format, ...) {
    char what[320];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    const qs_node *n = x->node;
    const char *name = n->name, *before = "node";
    if (!name[0] && n->output_count > 0 && n->outputs[0] != QS_NONE) {
        before = "node of";
        name = x->graph->values[n->outputs[0]].name;
    }
    /* The domain is never ai.onnx. The library's own, which users do not know, is the only one with
     * a q. */
    const char *domain = n->domain[0] == 'q' ? "" : n->domain;
    return qs_fail(x->error, code, "%s: %s (%s '%s', %s%s%s: opset %d)",
                   x->model ? x->model : "model", what, before, name, domain, domain[0] ? "." : "",
                   n->op_type, (int)n->version);
}

/* Points x->in at the values of the inputs, and clears the outputs. */
static void bind(qs_infer *x) {
    const qs_node *n = x->node;
    for (int32_t i = 0; i < n->input_count && i < (int32_t)QS_COUNT(x->in); i++)
        x->in[i] = n->inputs[i] == QS_NONE ? NULL : &x->values[n->inputs[i]];
    for (int32_t i = 0; i < n->output_count; i++)
        x->out[i] = (qs_value){.dims = x->dims[i], .rank = -1};
}

/* A rule's view of a node, without its inputs and outputs, which `bind` sets. */
static qs_infer rule_at(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                        qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error) {
    return (qs_infer){.graph = g,
                      .node = &g->nodes[node],
                      .node_id = node,
                      .values = values,
                      .out = out,
                      .dims = dims,
                      .model = model,
                      .error = error};
}

static int apply(qs_infer *x, int (*rule)(qs_infer *x)) {
    bind(x);
    return rule(x);
}

/* ---- half precision ---- */

/* The half-precision type of a node's inputs; QSIM_UNDEFINED: none, or both types. */
static int32_t half_of(const qs_node *n, const qs_value *values) {
    const int32_t most = (int32_t)QS_COUNT(((const qs_infer *)NULL)->in);
    int32_t half = QSIM_UNDEFINED;
    for (int32_t i = 0; i < n->input_count && i < most; i++) {
        const int32_t dtype = n->inputs[i] == QS_NONE ? QSIM_UNDEFINED : values[n->inputs[i]].dtype;
        if (!qs_is_half(dtype))
            continue;
        if (half && half != dtype)
            return QSIM_UNDEFINED;
        half = dtype;
    }
    return half;
}

bool qs_op_takes_integers(const qs_op *op, int32_t dtype) {
    return op->integers_as && (op->integers_of ? dtype == op->integers_of : QS_T_INT >> dtype & 1);
}

/* Whether an output is a statistic of a normalization, which stays float; output 3 is a sum. */
static bool is_statistic(const qs_op *op, int32_t index) {
    return (index == 1 || index == 2) && (op->kernel == QS_KERNEL_LAYER_NORMALIZATION ||
                                          op->kernel == QS_KERNEL_RMS_NORMALIZATION);
}

/* Whether outputs stay floats: the first operand is a float or, without operands, input 0 is not of
 * half precision. */
static bool stays_float(const qs_infer *x) {
    int32_t i = 0;
    while (i < x->node->input_count && !qs_op_is_operand(x->node->op, i))
        i++;
    const bool none = i == x->node->input_count;
    const qs_value *v = x->in[none ? 0 : i];
    return v && (none ? !qs_is_half(v->dtype) : v->dtype == QSIM_FLOAT);
}

/*
 * Applies the shape rule with inputs of type `from` as `to`; outputs that it makes `to` become
 * `from`. Not inlined, since rules of nested subgraphs recurse and `seen` is large.
 */
QS_NOINLINE static int apply_as(qs_infer *x, int32_t from, int32_t to) {
    const qs_node *n = x->node;
    qs_value seen[QS_COUNT(x->in)];
    bind(x);
    const bool kept = stays_float(x);
    for (size_t i = 0; i < QS_COUNT(x->in); i++) { /* NULL where the node has no input */
        if (!x->in[i] || x->in[i]->dtype != from)
            continue;
        seen[i] = *x->in[i];
        seen[i].dtype = to;
        seen[i].data = NULL;
        seen[i].producer = QS_NONE;
        x->in[i] = &seen[i];
    }
    const int code = n->op->infer(x);
    for (int32_t i = 0; i < n->output_count && !code && !kept; i++)
        if (x->out[i].dtype == to && !is_statistic(n->op, i))
            x->out[i].dtype = from;
    return code;
}

/*
 * Also accepts half precision, which is computed in float32, and integers that the rule refuses,
 * which are computed in the row's integers_as: passes convert both (pass_half.c).
 */
int qs_op_infer_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error) {
    const qs_node *n = &g->nodes[node];
    const qs_value *first =
        n->input_count > 0 && n->inputs[0] != QS_NONE ? &values[n->inputs[0]] : NULL;
    int32_t from = half_of(n, values), to = QSIM_FLOAT;
    if (first && qs_op_takes_integers(n->op, first->dtype)) {
        from = first->dtype;
        to = n->op->integers_as;
    }
    qs_infer x = rule_at(g, values, node, out, dims, model, NULL);
    const bool converts = from && apply(&x, n->op->infer) == QSIM_E_DTYPE;
    x.error = error;
    return converts ? apply_as(&x, from, to) : apply(&x, n->op->infer);
}

int qs_op_infer_exact(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                      qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error) {
    qs_infer x = rule_at(g, values, node, out, dims, model, error);
    return apply(&x, g->nodes[node].op->infer);
}

int qs_op_bound_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error) {
    qs_infer x = rule_at(g, values, node, out, dims, model, error);
    x.bounds = true;
    return apply(&x, g->nodes[node].op->infer);
}

/* Whether a declared rank or size is another than inference finds. */
static bool is_misdeclared(const qs_value *v, const qs_value *found) {
    if (v->rank < 0 || found->rank < 0)
        return false;
    bool differs = v->rank != found->rank;
    for (int32_t i = 0; i < v->rank && !differs; i++)
        differs = v->dims[i].size >= 0 && found->dims[i].size >= 0 &&
                  v->dims[i].size != found->dims[i].size;
    return differs;
}

/*
 * Adopts declared sizes that inference does not know. If a declared size differs from an inferred
 * one, none is adopted: many files declare sizes of an earlier version of the model, and other
 * runtimes load them. An axis with the symbol of an input's axis counts as inferred: in files whose
 * batch was made symbolic by editing, other tensors often still declare the old batch.
 */
static int merge_declared(const qs_infer *x, qs_value *v, qs_value *out, qs_dim *dims) {
    if (v->dtype != QSIM_UNDEFINED && out->dtype != QSIM_UNDEFINED && v->dtype != out->dtype)
        return qs_infer_fail(x, QSIM_E_DTYPE, "output '%s' is declared %s but is %s", v->name,
                             qsim_dtype_name(v->dtype), qsim_dtype_name(out->dtype));
    if (out->dtype == QSIM_UNDEFINED)
        out->dtype = v->dtype;
    v->misdeclared |= is_misdeclared(v, out);
    if (v->misdeclared || v->rank < 0)
        return QSIM_OK;
    for (int32_t i = 0; i < v->rank; i++)
        if (out->rank < 0 || (out->dims[i].size < 0 && !dims[i].symbol))
            dims[i] = v->dims[i];
    out->rank = v->rank;
    return QSIM_OK;
}

static bool same_shape(const qs_value *a, const qs_value *b) {
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i].size != b->dims[i].size || a->dims[i].symbol != b->dims[i].symbol)
            return false;
    return true;
}

bool qs_value_is_sequence(const qs_graph *g, qs_id value) {
    const qs_value *v = &g->values[value];
    const qs_op *op = v->producer == QS_NONE ? NULL : g->nodes[v->producer].op;
    return v->is_sequence || (op && (op->traits & QS_MAKES_SEQUENCE));
}

extern const qs_op qs_op_loop, qs_op_identity;

/* Checks that an input is a sequence of tensors exactly where the operator takes one. */
QS_NOINLINE static int check_sequences(const qs_graph *g, qs_id id, const char *model,
                                       qsim_error *error) {
    const qs_node *n = &g->nodes[id];
    const qs_infer x = {.graph = g, .node = n, .node_id = id, .model = model, .error = error};
    for (int32_t i = 0; i < n->input_count; i++) {
        const bool captured = i >= n->input_count - n->captured;
        if (n->inputs[i] == QS_NONE || captured || (n->op == &qs_op_loop && i >= 2))
            continue;
        const qs_value *v = &g->values[n->inputs[i]];
        const bool is = qs_value_is_sequence(g, n->inputs[i]);
        const bool wanted =
            i == 0 && (n->op == &qs_op_identity ? is : (n->op->traits & QS_TAKES_SEQUENCE) != 0);
        if (is != wanted)
            return qs_infer_fail(&x, QSIM_E_UNSUPPORTED, "input '%s' is %s", v->name,
                                 is ? "a sequence, not a tensor"
                                    : "no sequence that nodes of this graph make");
    }
    return QSIM_OK;
}

/* Gives a node's outputs what was inferred, and what is declared besides. */
QS_NOINLINE static int set_outputs(qs_graph *g, qs_id id, qs_value *out,
                                   qs_dim (*dims)[QSIM_MAX_RANK], const char *model,
                                   qsim_error *error) {
    const qs_node *n = &g->nodes[id];
    const qs_infer x = {.graph = g, .node = n, .node_id = id, .model = model, .error = error};
    for (int32_t i = 0; i < n->output_count; i++) {
        if (n->outputs[i] == QS_NONE)
            continue;
        qs_value *v = &g->values[n->outputs[i]];
        v->is_sequence = out[i].is_sequence;
        int code = v->declared ? merge_declared(&x, v, &out[i], dims[i]) : QSIM_OK;
        if (!code && !same_shape(v, &out[i]))
            code = qs_value_set_shape(g, n->outputs[i], out[i].dtype, out[i].rank, out[i].dims);
        if (code)
            return code == QSIM_E_NOMEM ? qs_fail(error, code, "out of memory") : code;
    }
    return QSIM_OK;
}

static int infer_one(qs_graph *g, qs_id id, qs_value *out, qs_dim (*dims)[QSIM_MAX_RANK],
                     const char *model, qsim_error *error) {
    int code = check_sequences(g, id, model, error);
    if (!code)
        code = qs_op_infer_node(g, g->values, id, out, dims, model, error);
    return code ? code : set_outputs(g, id, out, dims, model, error);
}

int qs_op_infer_graph(qs_graph *g, const char *model, qsim_error *error) {
    qsim_ctx *ctx = g->arena.ctx;
    size_t capacity = 0;
    int code = QSIM_OK;
    for (size_t k = 0; k < g->order_count; k++) {
        size_t outputs = (size_t)g->nodes[g->order[k]].output_count;
        capacity = outputs > capacity ? outputs : capacity;
    }
    qs_value *out = qs_alloc(ctx, capacity, sizeof(*out));
    qs_dim(*dims)[QSIM_MAX_RANK] = qs_alloc(ctx, capacity, sizeof(*dims));
    if (!out || !dims)
        code = qs_op_no_memory(error);
    assert(code || (out && dims));
    for (size_t k = 0; k < g->order_count && !code; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        code = qs_go_on(ctx, model, error);
        if (!code && n->op && !n->removed)
            code = infer_one(g, g->order[k], out, dims, model, error);
    }
    qs_free(ctx, dims);
    qs_free(ctx, out);
    return code;
}

static bool is_standard(const qs_node *n) {
    return n->domain[0] == '\0' || qs_same(n->domain, "ai.onnx");
}

static int upgrade_one(qs_graph *g, qs_id id, int64_t opset, const char *model, qsim_error *error) {
    const qs_node *n = &g->nodes[id];
    if (n->removed || !is_standard(n))
        return QSIM_OK;
    if (!n->op) {
        int code = qs_op_resolve(g, id, model, error);
        if (code)
            return code;
    }
    assert(n->op); /* qs_op_resolve has set it */
    /* Opsets 1 to 5 list inputs that may be overwritten, which changes no result. */
    qs_node_drop_attr(g, id, "consumed_inputs");
    const qs_history *h = qs_op_more_of(n->op)->history;
    return h && h->upgrade ? h->upgrade(g, id, (int32_t)opset, error) : QSIM_OK;
}

int qs_op_upgrade_graph(qs_graph *g, int64_t opset, const char *model, qsim_error *error) {
    int64_t from = qs_graph_import(g, "");
    if (opset > QS_OPSET_NEWEST || opset < from)
        return qs_fail(error, QSIM_E_UNSUPPORTED, "%s: opset %lld cannot be made opset %lld",
                       model ? model : "model", (long long)from, (long long)opset);
    if (opset == from)
        return QSIM_OK;
    size_t count = g->node_count; /* an upgrade may add nodes, already in their newest form */
    for (size_t k = 0; k < count; k++) {
        int code = upgrade_one(g, (qs_id)k, opset, model, error);
        if (code)
            return code;
    }
    int code = qs_graph_sort(g, error);
    for (size_t k = 0; k < g->node_count && !code; k++) {
        qs_node *n = &g->nodes[k];
        if (n->removed || !is_standard(n))
            continue;
        n->version = (int32_t)opset;
        code = qs_op_resolve(g, (qs_id)k, model, error);
    }
    for (size_t k = 0; k < g->owned_count && !code; k++)
        code = qs_op_upgrade_graph(g->owned[k], opset, model, error);
    return code ? code : qs_graph_set_import(g, "", opset);
}
