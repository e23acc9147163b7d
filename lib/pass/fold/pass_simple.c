/* SPDX-License-Identifier: MIT */
/* Simple passes: choosing outputs, constant nodes, identities, folding of constants. */
#include "pass/pass.h"

#include "op/rules.h"

/* A result larger than this, and larger than its inputs, is not folded. */
#define FOLD_FREE  ((size_t)1 << 16)
#define FOLD_LIMIT ((size_t)1 << 30)
/*
 * Bytes that all folding together may make, as a multiple of those of the model's constants. It is
 * enough for widening 4-bit weights and a few steps on the result, but not for a chain of thousands
 * of nodes, or thousands of sums of one constant, which the run computes.
 */
#define FOLD_GROWTH 32
#define FOLD_START  ((size_t)16 << 20)

int qs_pass_outputs(qs_pass *p, const char *const *names, size_t count) {
    qs_graph *g = p->graph;
    if (!names)
        return QSIM_OK;
    for (size_t i = 0; i < g->output_count; i++)
        g->values[g->outputs[i]].is_output = false;
    g->output_count = 0;
    for (size_t i = 0; i < count; i++) {
        qs_id id = qs_graph_find(g, names[i]);
        if (id == QS_NONE || !qs_value_exists(&g->values[id]))
            return qs_fail(p->error, QSIM_E_NOT_FOUND, "%s: there is no tensor '%s' to give out",
                           p->model, names[i] ? names[i] : "");
        if (qs_value_is_sequence(g, id))
            return qs_fail(p->error, QSIM_E_UNSUPPORTED,
                           "%s: '%s' is a sequence of tensors, which cannot be given out", p->model,
                           names[i]);
        if (qs_graph_push_output(g, id))
            return qs_pass_no_memory(p);
    }
    return qs_graph_prune(g) ? qs_pass_no_memory(p) : QSIM_OK;
}

/* ---- constants ---- */

static int set_constant(qs_pass *p, qs_id value, const qs_const *c) {
    qs_dim dims[QSIM_MAX_RANK] = {{0}};
    for (int32_t i = 0; i < c->rank; i++)
        dims[i].size = c->dims[i];
    if (qs_value_set_shape(p->graph, value, c->dtype, c->rank, dims))
        return qs_pass_no_memory(p);
    p->graph->values[value].data = c;
    return QSIM_OK;
}

int qs_pass_constants(qs_pass *p) {
    qs_graph *g = p->graph;
    for (size_t i = 0; i < g->order_count; i++) {
        qs_id id = g->order[i];
        qs_node *n = &g->nodes[id];
        if (!qs_node_is_onnx(n, "Constant") || n->attr_count != 1 ||
            n->attrs[0].type != QSIM_ATTR_TENSOR || !n->attrs[0].u.tensor->data)
            continue;
        const qs_const *value = n->attrs[0].u.tensor;
        qs_graph_remove_node(g, id);
        int code = set_constant(p, n->outputs[0], value);
        if (code)
            return code;
    }
    return qs_graph_prune(g) ? qs_pass_no_memory(p) : QSIM_OK;
}

/* ---- sums ---- */

int qs_pass_sums(qs_pass *p) {
    qs_graph *g = p->graph;
    int code = QSIM_OK;
    for (size_t i = 0; i < g->order_count && !code; i++) {
        const qs_id id = g->order[i];
        qs_node *n = &g->nodes[id];
        if (!qs_node_is_onnx(n, "Sum") || n->input_count != 2)
            continue;
        n->op_type = "Add";
        n->changed = true;
        code = qs_pass_resolve(p, id);
    }
    return code;
}

/* ---- folding ---- */

/*
 * Whether `lower` may leave the node to `expand`, which runs when a session is created, not when a
 * file is optimized: elements that share a byte, floats of 8 bits, and computations in other types
 * than float.
 */
static bool is_left_to_expand(const qs_graph *g, const qs_node *n) {
    const bool quantizes = n->op->traits & (QS_QUANTIZES | QS_DEQUANTIZES),
               computes = !quantizes && !(n->op->traits & QS_MOVES);
    const uint32_t small =
        quantizes ? QS_T_FLOAT8 | QS_T(QSIM_FLOAT8E8M0) | QS_T(QSIM_FLOAT4E2M1) : QS_T_PACKED;
    if (!n->op->expand)
        return false;
    for (int32_t i = 0; i < n->input_count + n->output_count; i++) {
        const bool in = i < n->input_count;
        const qs_id v = in ? n->inputs[i] : n->outputs[i - n->input_count];
        const int32_t dtype = v == QS_NONE ? QSIM_FLOAT : g->values[v].dtype;
        if ((QS_T(dtype) & small) || (computes && in && dtype != QSIM_FLOAT))
            return true;
    }
    return computes && qs_node_int(n, "stash_type", QSIM_FLOAT) != QSIM_FLOAT;
}

/*
 * Whether a node may be folded: not convolutions and pools, since their layout is chosen later, and
 * not integer operators on s8 activations, since their kernels take u8.
 */
static bool is_foldable(const qs_graph *g, const qs_node *n, int flags) {
    if (!n->op || !n->op->lower || (n->op->traits & QS_NEEDS_LAST) || is_left_to_expand(g, n))
        return false;
    if (n->op->traits & QS_INTEGER) {
        const qs_id x = qs_node_input(n, qs_op_operands(n->op)->x[0].at);
        if (x != QS_NONE && g->values[x].dtype == QSIM_INT8)
            return false;
    }
    if ((n->op->traits & QS_QUANTIZES) && !(flags & QS_FOLD_QUANTIZE))
        return false;
    if ((n->op->traits & QS_DEQUANTIZES) && !(flags & QS_FOLD_DEQUANTIZE))
        return false;
    return n->input_count + n->attr_count > 0;
}

/*
 * Whether all inputs are constants. *limit: most bytes that folding the node may make, a multiple
 * of its inputs' bytes. Folding a node that only moves elements saves a copy, so its limit is once
 * the bytes of its inputs.
 */
static bool all_constant(const qs_graph *g, const qs_node *n, size_t *limit) {
    const size_t times = n->op->traits & QS_MOVES ? 1 : 8;
    size_t total = FOLD_FREE;
    for (int32_t i = 0; i < n->input_count; i++) {
        const qs_const *c = qs_node_const(g, n, i);
        if (n->inputs[i] != QS_NONE && !c)
            return false;
        if (!c || (i > 0 && n->inputs[i] == n->inputs[i - 1]))
            continue;
        if (c->bytes > FOLD_LIMIT / 8 || !qs_add(total, c->bytes * times, &total))
            return false;
    }
    *limit = total < FOLD_LIMIT ? total : FOLD_LIMIT;
    return true;
}

/*
 * Sets the budget of the pipeline, at its first folding, from the bytes of the model's constants.
 */
static void set_fold_left(qs_pass *p) {
    size_t bytes = 0, left = SIZE_MAX;
    for (size_t v = 0; v < p->graph->value_count && bytes < SIZE_MAX / 2; v++)
        if (p->graph->values[v].data && !qs_add(bytes, p->graph->values[v].data->bytes, &bytes))
            bytes = SIZE_MAX / 2;
    if (p->fold_left == 0 && qs_mul(bytes, FOLD_GROWTH, &left) && !qs_add(left, FOLD_START, &left))
        left = SIZE_MAX;
    if (p->fold_left == 0)
        p->fold_left = left;
}

/*
 * Bytes of a node's results, which are constants now; those that share an input's bytes count, too.
 */
static size_t result_bytes(const qs_graph *g, const qs_node *n) {
    size_t bytes = 0;
    for (int32_t i = 0; i < n->output_count; i++)
        if (n->outputs[i] != QS_NONE && g->values[n->outputs[i]].data)
            bytes += g->values[n->outputs[i]].data->bytes;
    return bytes;
}

int qs_pass_fold(qs_pass *p, int flags) {
    qs_graph *g = p->graph;
    int code = QSIM_OK;
    qs_eval e = {.ctx = p->ctx,
                 .graph = g,
                 .values = g->values,
                 .address = qs_eval_addresses(&g->arena, g),
                 .arena = &g->arena,
                 .model = p->model,
                 .error = p->error};
    if (!e.address)
        return qs_pass_no_memory(p);
    set_fold_left(p);
    for (size_t i = 0; i < g->order_count && !code; i++) {
        qs_id id = g->order[i];
        size_t limit;
        bool done = false;
        if (!is_foldable(g, &g->nodes[id], flags) || !all_constant(g, &g->nodes[id], &limit))
            continue;
        code = qs_eval_const(&e, id, NULL, limit < p->fold_left ? limit : p->fold_left, &done);
        if (!done)
            continue;
        p->fold_left -= result_bytes(g, &g->nodes[id]); /* at most the limit */
        p->fold_left += p->fold_left == 0;
        qs_graph_remove_node(g, id);
    }
    if (!code && qs_graph_prune(g))
        code = qs_pass_no_memory(p);
    return code;
}

/* ---- identities ---- */

/* Whether the node is Identity, or Dropout that drops nothing and whose mask is not read. */
static bool is_identity(const qs_graph *g, const qs_uses *uses, const qs_node *n) {
    if (qs_node_is_onnx(n, "Identity"))
        return true;
    if (!qs_node_is_onnx(n, "Dropout") || (qs_node_traits(g, n) & QS_RANDOM))
        return false;
    qs_id mask = n->output_count < 2 ? QS_NONE : n->outputs[1];
    return mask == QS_NONE ||
           (!g->values[mask].is_output && uses->start[mask + 1] == uses->start[mask]);
}

/*
 * Removes the Identity `id`, y = x. If y is an output of the graph, the producer of x makes y
 * instead, so that its name is kept; if x is an output, too, the node stays.
 */
static void drop_identity(qs_graph *g, qs_id id, qs_id *map) {
    qs_id x = g->nodes[id].inputs[0], y = g->nodes[id].outputs[0];
    if (!g->values[y].is_output) {
        qs_graph_remove_node(g, id);
        map[y] = x;
        return;
    }
    qs_id producer = g->values[x].producer;
    if (producer == QS_NONE || g->values[x].is_output || map[x] != x) {
        map[y] = x;
        return;
    }
    qs_graph_remove_node(g, id);
    map[x] = y; /* apply_map renames the output */
}

/*
 * Replaces the inputs of all live nodes by the values that they map to, following chains to their
 * ends, and outputs that drop_identity renames: others that map to a value are the graph's.
 */
static void apply_map(qs_pass *p, qs_id *map) {
    qs_graph *g = p->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        qs_node *n = &g->nodes[i];
        for (int32_t k = 0; !n->removed && k < n->input_count; k++) {
            qs_id v = n->inputs[k];
            while (v != QS_NONE && map[v] != v) {
                map[v] = map[map[v]];
                v = map[v];
            }
            if (v != n->inputs[k]) {
                n->inputs[k] = v;
                n->changed = true;
            }
        }
        for (int32_t k = 0; !n->removed && k < n->output_count; k++) {
            const qs_id v = n->outputs[k];
            if (v != QS_NONE && map[v] != v && !g->values[v].is_output)
                qs_pass_set_output(p, (qs_id)i, k, map[v]);
        }
    }
}

int qs_pass_identities(qs_pass *p) {
    qs_graph *g = p->graph;
    qs_uses uses;
    if (qs_graph_uses(g, &uses))
        return qs_pass_no_memory(p);
    qs_id *map = qs_alloc(p->ctx, g->value_count + 1, sizeof(*map));
    if (!map) {
        qs_uses_free(g, &uses);
        return qs_pass_no_memory(p);
    }
    for (size_t v = 0; v < g->value_count; v++)
        map[v] = (qs_id)v;
    for (size_t i = 0; i < g->order_count; i++) {
        qs_id id = g->order[i];
        qs_node *n = &g->nodes[id];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE && map[n->inputs[k]] != n->inputs[k])
                qs_node_set_input(g, id, k, map[n->inputs[k]]);
        if (is_identity(g, &uses, n))
            drop_identity(g, id, map);
    }
    apply_map(p, map);
    qs_uses_free(g, &uses);
    qs_free(p->ctx, map);
    return qs_graph_prune(g) ? qs_pass_no_memory(p) : qs_go_on(p->ctx, p->model, p->error);
}
