/* SPDX-License-Identifier: MIT */
/*
 * Replaces sequences that a Loop carries by tensors. One that the body reads or changes is joined
 * along a new axis, and cut into slices again by the body. Of one that only grows, the tensors that
 * the body appends to a sequence become a scan output, and the sequence after the Loop consists of
 * slices of it. If every reader of the sequence concatenates it along axis 0, its tensors may
 * differ in size along that axis: attribute "joins".
 */
#include "op/expand.h"
#include "op/rules.h"
#include "pass/pass.h"

/* A Loop, its body, and the lists of the Loop that replaces it. */
typedef struct loop {
    qs_pass *p;
    const qs_uses *uses;
    qs_node n; /* the old Loop */
    qs_graph *body;
    int32_t states;    /* of the old Loop */
    qs_id *ports;      /* inputs and outputs of the new Loop */
    int64_t *joins;    /* by scan output of the new Loop: attribute "joins" */
    int32_t removed;   /* states that are sequences */
    int32_t out_count; /* outputs of the new Loop */
} loop;

static bool is_sequence(const loop *l, int32_t state) {
    return l->body->values[l->body->inputs[state + 2]].is_sequence;
}

/* Whether all readers of a sequence join its tensors along axis 0. */
static bool is_only_joined(const loop *l, qs_id sequence) {
    const qs_graph *g = l->p->graph;
    for (qs_id i = l->uses->start[sequence]; i < l->uses->start[sequence + 1]; i++) {
        const qs_node *n = &g->nodes[l->uses->nodes[i]];
        if (!qs_node_is_onnx(n, "ConcatFromSequence") || qs_node_int(n, "new_axis", 0) ||
            qs_node_int(n, "axis", 0))
            return false;
    }
    return true;
}

/* ---- a sequence that the body reads or changes ---- */

/* Makes a node read another value. */
static void redirect(qs_graph *g, qs_id node, qs_id from, qs_id to) {
    for (int32_t k = 0; k < g->nodes[node].input_count; k++)
        if (g->nodes[node].inputs[k] == from)
            qs_node_set_input(g, node, k, to);
}

/* Makes all readers of a sequence after the Loop read another value. */
static void redirect_readers(const loop *l, qs_id from, qs_id to) {
    for (qs_id i = l->uses->start[from]; i < l->uses->start[from + 1]; i++)
        redirect(l->p->graph, l->uses->nodes[i], from, to);
}

/* The tensors of a sequence along a new axis 0. */
static qs_id add_joined(qs_expand *e, qs_id sequence) {
    const qs_id y = qs_expand_one(e, "ConcatFromSequence", sequence);
    qs_expand_int(e, y, "axis", 0);
    qs_expand_int(e, y, "new_axis", 1);
    return y;
}

static qs_id add_slices(qs_expand *e, qs_id tensor) {
    const qs_id y = qs_expand_one(e, "SplitToSequence", tensor);
    qs_expand_int(e, y, "keepdims", 0);
    return y;
}

/* The tensors of a state before the Loop, joined; an empty sequence has the sizes of `like`. */
static qs_id add_first(loop *l, qs_expand *e, qs_id sequence, const qs_value *like) {
    const qs_infer x = {.graph = l->p->graph, .node = &l->n, .model = l->p->model};
    int64_t sizes[QSIM_MAX_RANK] = {0};
    if (qs_sequence_count(&x, sequence) != 0)
        return add_joined(e, sequence);
    for (int32_t i = 0; i < like->rank; i++)
        sizes[i + 1] = like->dims[i].size;
    const qs_id id =
        qs_graph_add_const(l->p->graph, NULL, like->dtype, like->rank + 1, sizes, "", true);
    return id < 0 ? qs_expand_no_memory(e) : id;
}

/* State `state` becomes a tensor. */
static int hold_sequence(loop *l, qs_id node, int32_t state) {
    qs_pass *p = l->p;
    qs_graph *g = p->graph, *body = l->body;
    const qs_id old = l->n.outputs[state], in = body->inputs[state + 2];
    qs_expand e = {
        .graph = g, .node_id = node, .node = &l->n, .model = p->model, .error = p->error};
    qs_expand inner = e;
    qs_value like = body->values[in];
    qs_dim dims[QSIM_MAX_RANK] = {{-1, NULL}};
    inner.graph = body;
    inner.node_id = body->values[body->outputs[state + 1]].producer;
    qs_value_dims(&like, dims + 1);
    qs_node_set_input(g, node, state + 2, add_first(l, &e, l->n.inputs[state + 2], &like));
    if (old != QS_NONE) {
        const qs_id made = qs_pass_value(p, old);
        if (made < 0)
            return made;
        qs_pass_set_output(p, node, state, made);
        const qs_id slices = add_slices(&e, made);
        if (!e.code)
            redirect_readers(l, old, slices);
    }
    body->values[in].is_sequence = false;
    const qs_id slices = add_slices(&inner, in),
                joined = add_joined(&inner, body->outputs[state + 1]);
    if (e.code || inner.code)
        return e.code ? e.code : inner.code;
    for (size_t i = 0; i < body->node_count; i++)
        if ((qs_id)i != body->values[slices].producer)
            redirect(body, (qs_id)i, in, slices);
    if (qs_value_set_shape(body, in, like.dtype, like.rank + 1, dims))
        return qs_pass_no_memory(p);
    qs_graph_set_output(body, (size_t)state + 1, joined);
    qs_graph_mark_outputs(body);
    return qs_graph_sort(body, p->error);
}

/* ---- the body ---- */

/*
 * Removes the sequences from the inputs and outputs of the body; the tensors that it appends to
 * them become its last outputs.
 */
static int change_body(loop *l) {
    qs_graph *g = l->body;
    size_t in = 2, out = 1;
    for (int32_t i = 0; i < l->states; i++)
        if (is_sequence(l, i) && l->n.outputs[i] != QS_NONE &&
            qs_graph_push_output(g, qs_loop_appended(&l->n, i)))
            return QSIM_E_NOMEM;
    for (size_t i = 2; i < g->input_count; i++) {
        const bool removed = (int64_t)i < l->states + 2 && g->values[g->inputs[i]].is_sequence;
        g->values[g->inputs[i]].is_input = !removed;
        g->inputs[in] = g->inputs[i];
        in += !removed;
    }
    for (size_t i = 1; i < g->output_count; i++) {
        const bool removed = qs_value_is_sequence(g, g->outputs[i]);
        g->values[g->outputs[i]].is_output = !removed;
        g->outputs[out] = g->outputs[i];
        out += !removed;
    }
    g->input_count = in;
    g->output_count = out;
    return qs_graph_prune(g);
}

/* ---- the node ---- */

/* Makes the sequence after the Loop: slices of the new scan output `made`. */
static int make_slices(loop *l, qs_expand *e, int32_t state, qs_id made, bool joins) {
    const qs_id all = qs_expand_sequence(e, l->n.inputs[state + 2], made, !joins);
    const qs_id slices = qs_expand_one(e, "SplitToSequence", all);
    const qs_id old = l->n.outputs[state];
    qs_expand_int(e, slices, "keepdims", joins);
    if (!e->code)
        redirect_readers(l, old, slices);
    return e->code;
}

/*
 * Lists the inputs of the new Loop. Captured values move forward by the number of removed states.
 */
static int32_t list_inputs(loop *l, qs_subgraph *sub) {
    int32_t count = 0;
    for (int32_t i = 0; i < l->n.input_count; i++)
        if (i < 2 || i >= l->states + 2 || !is_sequence(l, i - 2))
            l->ports[count++] = l->n.inputs[i];
    for (int32_t i = 0; i < sub->capture_count; i++)
        sub->captures[i].input -= l->removed;
    sub->fed -= l->removed;
    return count;
}

static int add_node(loop *l, qs_id node, int32_t inputs) {
    qs_pass *p = l->p;
    const qs_id id = qs_pass_clone(p, node, "", l->ports, inputs, l->ports + inputs, l->out_count);
    if (id < 0)
        return id;
    p->graph->nodes[id].captured = l->n.captured;
    qs_graph_remove_node(p->graph, node);
    const int code = qs_pass_resolve(p, id);
    if (qs_node_set_ints(p->graph, id, "joins", l->joins, l->out_count - l->states + l->removed))
        return qs_pass_no_memory(p);
    return code;
}

/* Outputs of the new Loop: states that are tensors, the old scan outputs, then the new ones. */
static int replace_loop(loop *l, qs_id node) {
    qs_pass *p = l->p;
    qs_graph *g = p->graph;
    qs_expand e = {
        .graph = g, .node_id = node, .node = &l->n, .model = p->model, .error = p->error};
    const int32_t inputs = list_inputs(l, qs_node_subgraph(&l->n, "body"));
    qs_id *out = l->ports + inputs;
    for (int32_t i = 0; i < l->n.output_count; i++)
        if (i >= l->states || !is_sequence(l, i))
            out[l->out_count++] = l->n.outputs[i];
    for (int32_t i = 0; i < l->states; i++) {
        const qs_id old = l->n.outputs[i];
        if (!is_sequence(l, i) || old == QS_NONE)
            continue;
        const bool joins = is_only_joined(l, old);
        const qs_id made = qs_pass_value(p, old);
        l->joins[l->out_count - (l->states - l->removed)] = joins;
        out[l->out_count++] = made;
        const int code = made < 0 ? made : make_slices(l, &e, i, made, joins);
        if (code)
            return code;
    }
    if (change_body(l))
        return qs_pass_no_memory(p);
    return add_node(l, node, inputs);
}

static int convert_loop(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    qs_graph *g = p->graph;
    loop l = {.p = p, .uses = uses, .n = g->nodes[node]};
    if (!qs_node_is_onnx(&l.n, "Loop"))
        return QSIM_OK;
    l.body = qs_node_subgraph(&l.n, "body")->graph;
    l.states = l.n.input_count - l.n.captured - 2;
    for (int32_t i = 0; i < l.states; i++) {
        const qs_infer x = {.graph = g, .node = &l.n, .model = p->model};
        const bool held = is_sequence(&l, i) && (qs_loop_appended(&l.n, i) == QS_NONE ||
                                                 qs_sequence_count(&x, l.n.inputs[i + 2]) < 0);
        const int code = held ? hold_sequence(&l, node, i) : QSIM_OK;
        if (code)
            return code;
        *changed = *changed || held;
        l.removed += is_sequence(&l, i);
    }
    l.n = g->nodes[node];
    if (l.removed == 0)
        return QSIM_OK;
    l.ports =
        qs_arena_alloc(&g->arena, (size_t)(l.n.input_count + l.n.output_count), sizeof(*l.ports));
    l.joins = qs_arena_alloc(&g->arena, (size_t)l.n.output_count, sizeof(*l.joins));
    if (!l.ports || !l.joins)
        return qs_pass_no_memory(p);
    *changed = true;
    return replace_loop(&l, node);
}

int qs_pass_loops(qs_pass *p) {
    return qs_pass_nodes(p, convert_loop);
}
