/* SPDX-License-Identifier: MIT */
/*
 * If, Loop, Scan: types and shapes of their subgraphs' inputs and outputs. They have no steps:
 * exec/flow.c executes the subgraphs.
 */
#include "op/rules.h"

/* Makes a dim unknown if the two sizes differ; true: it changed. */
static bool widen(qs_dim *a, const qs_dim *b) {
    const bool same = a->size == b->size && (a->size >= 0 || a->symbol == b->symbol);
    const bool change = !same && (a->size >= 0 || a->symbol);
    if (!same)
        *a = (qs_dim){-1, NULL};
    return change;
}

/* Widens the shape of `a` so that it covers `b`; true: it changed. */
static bool unify(qs_value *a, qs_dim *dims, const qs_value *b) {
    bool changed = false;
    if (a->rank < 0)
        return false;
    if (b->rank != a->rank) {
        a->rank = -1;
        return true;
    }
    for (int32_t i = 0; i < a->rank; i++)
        changed |= widen(&dims[i], &b->dims[i]);
    return changed;
}

static int no_memory(const qs_infer *x) {
    return qs_infer_fail(x, QSIM_E_NOMEM, "out of memory");
}

/* Sets type and shape of input `index` of a subgraph; the file's declaration fills in unknowns. */
static int set_input(const qs_infer *x, const qs_subgraph *sub, size_t index, int32_t dtype,
                     int32_t rank, const qs_dim *dims) {
    const qs_id id = sub->graph->inputs[index];
    const qs_value *v = &sub->graph->values[id];
    if (v->dtype && dtype && v->dtype != dtype)
        return qs_infer_fail(x, QSIM_E_DTYPE, "'%s' of the subgraph is %s, it is given %s", v->name,
                             qsim_dtype_name(v->dtype), qsim_dtype_name(dtype));
    if (rank < 0)
        return QSIM_OK;
    return qs_value_set_shape(sub->graph, id, dtype, rank, dims) ? no_memory(x) : QSIM_OK;
}

static int feed_value(const qs_infer *x, const qs_subgraph *sub, size_t index, const qs_value *v) {
    return set_input(x, sub, index, v->dtype, v->rank, v->dims);
}

/* A single number, which some files declare with an axis. */
static int set_scalar_input(const qs_infer *x, const qs_subgraph *sub, size_t index,
                            int32_t dtype) {
    const qs_value *v = &sub->graph->values[sub->graph->inputs[index]];
    return set_input(x, sub, index, dtype, v->rank < 0 ? 0 : v->rank, v->dims);
}

/* A captured sequence is one of any number of tensors: pass_sequences.c makes it in the subgraph.
 */
static int feed_sequence(const qs_infer *x, const qs_subgraph *sub, qs_id inner, qs_id outer) {
    qs_value like;
    qs_dim dims[QSIM_MAX_RANK];
    const int code = qs_sequence_tensors(x, outer, &like, dims);
    sub->graph->values[inner].is_sequence = true;
    if (!code && qs_value_set_shape(sub->graph, inner, like.dtype, like.rank, like.dims))
        return no_memory(x);
    return code;
}

static int feed_captures(const qs_infer *x, const qs_subgraph *sub) {
    for (int32_t i = 0; i < sub->capture_count; i++) {
        const qs_capture c = sub->captures[i];
        const qs_id outer = x->node->inputs[c.input];
        const qs_value *v = &x->values[outer];
        int code = QSIM_OK;
        if (qs_value_is_sequence(x->graph, outer))
            code = feed_sequence(x, sub, c.inner, outer);
        else if (!sub->graph->values[c.inner].data &&
                 qs_value_set_shape(sub->graph, c.inner, v->dtype, v->rank, v->dims))
            code = no_memory(x);
        if (code)
            return code;
    }
    return QSIM_OK;
}

/* Fails if the subgraph gives a sequence out, which only a Loop's states may be. */
static int check_tensors(const qs_infer *x, const qs_subgraph *sub) {
    for (size_t i = 0; i < sub->graph->output_count; i++)
        if (qs_value_is_sequence(sub->graph, sub->graph->outputs[i]))
            return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                                 "output %zu of the subgraph is a sequence, not a tensor", i);
    return QSIM_OK;
}

static int own_inputs(const qs_node *n) {
    return n->input_count - n->captured;
}

static const qs_value *result(const qs_subgraph *sub, size_t index) {
    return &sub->graph->values[sub->graph->outputs[index]];
}

static int check_counts(const qs_infer *x, const qs_subgraph *sub, int32_t inputs,
                        int32_t outputs) {
    if (!sub)
        return qs_infer_fail(x, QSIM_E_GRAPH, "a subgraph is missing");
    if (sub->fed != inputs)
        return qs_infer_fail(x, QSIM_E_GRAPH, "the subgraph has %d inputs, %d are given",
                             (int)sub->fed, (int)inputs);
    if ((int64_t)sub->graph->output_count != outputs + sub->watched)
        return qs_infer_fail(x, QSIM_E_GRAPH, "the subgraph gives %zu outputs, %d are expected",
                             sub->graph->output_count, (int)outputs);
    return QSIM_OK;
}

static int check_single(const qs_infer *x, const qs_value *v, int32_t dtype, const char *what) {
    if (v && v->dtype && v->dtype != dtype)
        return qs_infer_fail(x, QSIM_E_DTYPE, "the %s is %s, not %s", what,
                             qsim_dtype_name(v->dtype), qsim_dtype_name(dtype));
    if (v && !qs_is_single(v))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the %s is not a single value", what);
    return QSIM_OK;
}

/* ---- If ---- */

static int set_branch_output(qs_infer *x, int32_t index, const qs_value *a, const qs_value *b) {
    qs_dim dims[QSIM_MAX_RANK];
    qs_value y = *a;
    if (a->dtype && b->dtype && a->dtype != b->dtype)
        return qs_infer_fail(x, QSIM_E_DTYPE, "the branches give output %d as %s and as %s",
                             (int)index, qsim_dtype_name(a->dtype), qsim_dtype_name(b->dtype));
    qs_value_dims(a, dims);
    unify(&y, dims, b);
    return qs_infer_out(x, index, a->dtype ? a->dtype : b->dtype, y.rank, dims);
}

/* Infers a branch; *broken: it breaks a rule, which a branch that is never taken may. */
static int infer_branch(qs_infer *x, const qs_subgraph *sub, bool *broken, qsim_error *why) {
    int code = check_counts(x, sub, 0, x->node->output_count);
    if (!code)
        code = feed_captures(x, sub);
    if (code)
        return code;
    const int rule = qs_op_infer_graph(sub->graph, x->model, why);
    *broken = rule != QSIM_OK;
    return rule == QSIM_E_NOMEM ? no_memory(x) : check_tensors(x, sub);
}

/*
 * A branch that breaks a rule leaves types unknown; if both do, the first one's error is reported.
 */
static int infer_if(qs_infer *x) {
    static const char *const names[] = {"then_branch", "else_branch"};
    static const qs_value unknown = {.rank = -1};
    const qs_node *n = x->node;
    const qs_subgraph *sub[2];
    bool broken[2] = {false, false};
    qsim_error why = {0}; /* of the first branch */
    int code = check_single(x, x->in[0], QSIM_BOOL, "condition");
    for (int i = 0; i < 2 && !code; i++) {
        sub[i] = qs_node_subgraph(n, names[i]);
        code = infer_branch(x, sub[i], &broken[i], i ? NULL : &why);
    }
    if (!code && broken[0] && broken[1]) {
        if (x->error)
            *x->error = why;
        return why.code;
    }
    for (int32_t i = 0; i < n->output_count && !code; i++)
        if (n->outputs[i] != QS_NONE)
            code = set_branch_output(x, i, broken[0] ? &unknown : result(sub[0], (size_t)i),
                                     broken[1] ? &unknown : result(sub[1], (size_t)i));
    return code;
}

/* ---- loop-carried state ---- */

/* Reads what the tensors of the sequence in output `index` of the subgraph have in common. */
static int read_state(const qs_infer *x, const qs_subgraph *sub, size_t index, qs_value *like,
                      qs_dim *dims) {
    const qs_id y = sub->graph->outputs[index];
    qs_infer inner = *x;
    inner.graph = sub->graph;
    inner.values = sub->graph->values;
    *like = (qs_value){.rank = -1};
    return qs_value_is_sequence(sub->graph, y) ? qs_sequence_tensors(&inner, y, like, dims)
                                               : QSIM_OK;
}

/*
 * Infers the body until the `count` states at its inputs from `in` on have the shapes of its
 * outputs from `out` on: sizes that change between iterations become unknown.
 */
static int fix_shapes(const qs_infer *x, const qs_subgraph *sub, size_t in, size_t out,
                      size_t count) {
    bool changed = true;
    for (int32_t round = 0; changed; round++) {
        int code = qs_op_infer_graph(sub->graph, x->model, x->error);
        if (code)
            return code;
        changed = false;
        for (size_t i = 0; i < count; i++) {
            qs_value *v = &sub->graph->values[sub->graph->inputs[in + i]];
            const qs_value *y = result(sub, out + i);
            qs_dim dims[QSIM_MAX_RANK], sizes[QSIM_MAX_RANK];
            qs_value wide = *v, list;
            const bool known = round > 0 || !v->is_sequence || v->rank >= 0 ||
                               qs_sequence_count(x, x->node->inputs[in + i]) != 0;
            if (v->is_sequence) {
                code = read_state(x, sub, out + i, &list, sizes);
                if (code)
                    return code;
                y = &list;
            }
            if (!known && y->rank >= 0) { /* the list was empty */
                if (qs_value_set_shape(sub->graph, sub->graph->inputs[in + i], y->dtype, y->rank,
                                       y->dims))
                    return no_memory(x);
                changed = true;
                continue;
            }
            if (v->dtype && y->dtype && v->dtype != y->dtype)
                return qs_infer_fail(x, QSIM_E_DTYPE, "the body makes %s of the state '%s', a %s",
                                     qsim_dtype_name(y->dtype), v->name, qsim_dtype_name(v->dtype));
            qs_value_dims(&wide, dims);
            if (!unify(&wide, dims, y))
                continue;
            changed = true;
            if (qs_value_set_shape(sub->graph, sub->graph->inputs[in + i], v->dtype,
                                   round > QSIM_MAX_RANK ? -1 : wide.rank, dims))
                return no_memory(x);
        }
    }
    return QSIM_OK;
}

/* Sets output `index`: the body's results of all iterations along a new axis. */
static int set_stacked_output(qs_infer *x, int32_t index, const qs_value *v, int64_t axis,
                              qs_dim length) {
    qs_dim dims[QSIM_MAX_RANK];
    if (v->rank < 0)
        return qs_infer_out(x, index, v->dtype, -1, NULL);
    if (v->rank == QSIM_MAX_RANK || axis < -v->rank - 1 || axis > v->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "output %d, rank %d, cannot get a new axis %lld",
                             (int)index, (int)v->rank, (long long)axis);
    const int32_t at = (int32_t)(axis < 0 ? axis + v->rank + 1 : axis);
    for (int32_t i = 0; i <= v->rank; i++)
        dims[i] = i == at ? length : v->dims[i - (i > at)];
    return qs_infer_out(x, index, v->dtype, v->rank + 1, dims);
}

static int set_state_output(qs_infer *x, int32_t index, const qs_subgraph *sub, size_t in) {
    const qs_value *v = &sub->graph->values[sub->graph->inputs[in]];
    return qs_infer_out(x, index, v->dtype, v->rank, v->dims);
}

/* Fails if an input from `first` on, which the subgraph reads, is left out. */
static int check_given(const qs_infer *x, int32_t first) {
    for (int32_t i = first; i < own_inputs(x->node); i++)
        if (x->node->inputs[i] == QS_NONE)
            return qs_infer_fail(x, QSIM_E_GRAPH, "input %d is left out", (int)i);
    return QSIM_OK;
}

/* ---- Loop ---- */

/* Feeds state `index` to the body: a tensor or a sequence. */
static int feed_state(const qs_infer *x, const qs_subgraph *body, int32_t index) {
    const qs_id inner = body->graph->inputs[index + 2], outer = x->node->inputs[index + 2];
    const bool is_sequence = qs_value_is_sequence(x->graph, outer);
    body->graph->values[inner].is_sequence = is_sequence;
    return is_sequence ? feed_sequence(x, body, inner, outer)
                       : feed_value(x, body, (size_t)index + 2, qs_infer_in(x, index + 2));
}

/* Whether nodes of the body but this one read a sequence that is its input. */
static bool reads_state(const qs_graph *g, qs_id state, qs_id but) {
    for (size_t k = 0; k < g->order_count; k++) {
        const qs_node *n = &g->nodes[g->order[k]];
        for (int32_t i = 0; i < n->input_count; i++)
            if (n->inputs[i] == state && g->order[k] != but)
                return true;
    }
    return false;
}

qs_id qs_loop_appended(const qs_node *loop, int32_t state) {
    const qs_graph *g = qs_node_subgraph(loop, "body")->graph;
    const qs_id maker = g->values[g->outputs[state + 1]].producer, fed = g->inputs[state + 2];
    const qs_node *n = maker == QS_NONE ? NULL : &g->nodes[maker];
    return n && qs_node_is_onnx(n, "SequenceInsert") && n->inputs[0] == fed &&
                   qs_node_input(n, 2) == QS_NONE && !reads_state(g, fed, maker)
               ? n->inputs[1]
               : QS_NONE;
}

/*
 * Checks a sequence that a Loop carries. pass_loops.c can replace it by tensors if each iteration
 * appends one tensor and does not read the sequence, or if all its tensors have one shape, which
 * the file states if the sequence is empty at first.
 */
static int check_sequence(const qs_infer *x, const qs_graph *g, int32_t state) {
    const qs_value *v = &g->values[g->inputs[state + 2]];
    const qs_id out = x->node->outputs[state], made = g->outputs[state + 1];
    if (!qs_value_is_sequence(g, made) || g->values[made].producer == QS_NONE)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "output %d is no sequence that the body makes of '%s'", (int)state,
                             v->name);
    const bool empty = qs_sequence_count(x, x->node->inputs[state + 2]) == 0;
    bool known = v->rank >= 0 && v->rank < QSIM_MAX_RANK;
    for (int32_t i = 0; i < v->rank && empty; i++)
        known = known && v->dims[i].size >= 0;
    if (!known && qs_loop_appended(x->node, state) == QS_NONE)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "the body reads or changes '%s', a sequence of tensors whose shape is "
                             "not known here",
                             v->name);
    if (out != QS_NONE && x->graph->values[out].is_output)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "output '%s' is a sequence, not a tensor",
                             x->graph->values[out].name);
    return QSIM_OK;
}

static int check_sequences(const qs_infer *x, const qs_subgraph *body, int32_t states) {
    const qs_graph *g = body->graph;
    int code = QSIM_OK;
    for (int32_t i = 0; i < x->node->output_count && !code; i++) {
        if (i < states && g->values[g->inputs[i + 2]].is_sequence)
            code = check_sequence(x, g, i);
        else if (qs_value_is_sequence(g, g->outputs[i + 1]))
            code = qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                                 "output %d of the body is a sequence, not a tensor", (int)i);
    }
    return code;
}

/*
 * Sets the type and shape of output `index` of a Loop. Element k of "joins", an attribute that only
 * pass_loops.c sets and no file may have, says whether the results of scan output k are joined
 * along their own axis 0.
 */
static int set_loop_output(qs_infer *x, const qs_subgraph *body, int32_t index, int32_t states) {
    const qs_value *v = result(body, (size_t)index + 1);
    const qs_dim unknown = {-1, NULL};
    qs_dim dims[QSIM_MAX_RANK];
    if (index < states) {
        x->out[index].is_sequence = body->graph->values[body->graph->inputs[index + 2]].is_sequence;
        return set_state_output(x, index, body, (size_t)index + 2);
    }
    if (v->rank < 1 || !qs_node_entry(x->node, "joins", index - states))
        return set_stacked_output(x, index, v, 0, unknown);
    qs_value_dims(v, dims);
    dims[0] = unknown;
    return qs_infer_out(x, index, v->dtype, v->rank, dims);
}

static int infer_loop(qs_infer *x) {
    const qs_node *n = x->node;
    const qs_subgraph *body = qs_node_subgraph(n, "body");
    const int32_t states = own_inputs(n) - 2;
    int code = check_single(x, x->in[0], QSIM_INT64, "trip count");
    if (!code)
        code = check_single(x, x->in[1], QSIM_BOOL, "condition");
    if (!code)
        code = check_given(x, 2);
    if (!code)
        code = check_counts(x, body, states + 2, n->output_count + 1);
    if (!code && n->output_count < states)
        code = qs_infer_fail(x, QSIM_E_GRAPH, "%d outputs for %d states", (int)n->output_count,
                             (int)states);
    if (!code)
        code = set_scalar_input(x, body, 0, QSIM_INT64);
    if (!code)
        code = set_scalar_input(x, body, 1, QSIM_BOOL);
    for (int32_t i = 0; i < states && !code; i++)
        code = feed_state(x, body, i);
    if (!code)
        code = feed_captures(x, body);
    if (!code)
        code = fix_shapes(x, body, 2, 1, (size_t)states);
    if (!code && qs_value_is_sequence(body->graph, body->graph->outputs[0]))
        code = qs_infer_fail(x, QSIM_E_DTYPE, "the body's condition is a sequence");
    if (!code)
        code = check_single(x, result(body, 0), QSIM_BOOL, "body's condition");
    if (!code)
        code = check_sequences(x, body, states);
    for (int32_t i = 0; i < n->output_count && !code; i++)
        if (n->outputs[i] != QS_NONE)
            code = set_loop_output(x, body, i, states);
    return code;
}

/* ---- Scan ---- */

typedef struct scan_form {
    const qs_subgraph *body;
    int32_t first;   /* index of the first state input; in opset 8 the lengths come before it */
    int32_t states;  /* number of state inputs; the scanned inputs follow them */
    int32_t scanned; /* number of scanned inputs */
    int32_t batch;   /* 1 in opset 8, whose tensors begin with a batch axis; else 0 */
} scan_form;

/* 0: forward, 1: in reverse. */
static int check_directions(const qs_infer *x, const char *name) {
    const qs_attr *a = qs_node_attr(x->node, name);
    for (int32_t i = 0; a && i < a->count; i++)
        if (a->u.ints[i] != 0 && a->u.ints[i] != 1)
            return qs_infer_fail(x, QSIM_E_VALUE, "%s has %lld, not 0 or 1", name,
                                 (long long)a->u.ints[i]);
    return QSIM_OK;
}

static int scan_form_of(const qs_infer *x, scan_form *s) {
    const qs_node *n = x->node;
    *s = (scan_form){.body = qs_node_subgraph(n, "body"), .batch = n->version < 9};
    s->first = s->batch;
    const int64_t scanned = qs_node_int(n, "num_scan_inputs", 0);
    const int64_t states = own_inputs(n) - s->first - scanned;
    if (scanned < 1 || states < 0)
        return qs_infer_fail(x, QSIM_E_GRAPH, "%lld of %d inputs are to be scanned",
                             (long long)scanned, (int)own_inputs(n) - s->first);
    s->scanned = (int32_t)scanned;
    s->states = (int32_t)states;
    int code = check_given(x, s->first);
    if (!code)
        code = check_directions(x, s->batch ? "directions" : "scan_input_directions");
    if (!code)
        code = check_directions(x, "scan_output_directions");
    return code ? code : check_counts(x, s->body, s->states + s->scanned, n->output_count);
}

/* Sets the shape of an input's slice: without batch axis and, if `scanned`, without the scanned
 * axis. */
static int set_slice_input(const qs_infer *x, const scan_form *s, int32_t index, bool scanned,
                           qs_dim *length) {
    const qs_value *v = qs_infer_in(x, s->first + index);
    qs_dim dims[QSIM_MAX_RANK];
    int32_t rank = 0;
    int64_t axis = s->batch;
    if (v->rank < 0)
        return set_input(x, s->body, (size_t)index, v->dtype, -1, NULL);
    if (!s->batch && scanned)
        axis = qs_node_entry(x->node, "scan_input_axes", index - s->states);
    axis += axis < 0 ? v->rank : 0;
    if (v->rank < s->batch || (scanned && (axis < 0 || axis >= v->rank)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d, rank %d, has no axis %lld to scan",
                             (int)(s->first + index), (int)v->rank, (long long)axis);
    for (int32_t i = s->batch; i < v->rank; i++)
        if (!scanned || i != axis)
            dims[rank++] = v->dims[i];
    if (scanned && length->size >= 0 && v->dims[axis].size >= 0 &&
        length->size != v->dims[axis].size)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d is %lld long, another one %lld",
                             (int)(s->first + index), (long long)v->dims[axis].size,
                             (long long)length->size);
    if (scanned && length->size < 0)
        *length = v->dims[axis];
    return set_input(x, s->body, (size_t)index, v->dtype, rank, dims);
}

/* Opset 8: puts the batch axis in front of an output. */
static int add_batch(qs_infer *x, const scan_form *s, int32_t index) {
    const qs_value *v = qs_infer_in(x, s->first);
    const qs_dim batch = v->rank > 0 ? v->dims[0] : (qs_dim){-1, NULL};
    return s->batch ? set_stacked_output(x, index, &x->out[index], 0, batch) : QSIM_OK;
}

static int infer_scan(qs_infer *x) {
    const qs_node *n = x->node;
    scan_form s;
    qs_dim length = {-1, NULL};
    int code = scan_form_of(x, &s);
    for (int32_t i = 0; i < s.states + s.scanned && !code; i++)
        code = set_slice_input(x, &s, i, i >= s.states, &length);
    if (!code)
        code = feed_captures(x, s.body);
    if (!code)
        code = fix_shapes(x, s.body, 0, 0, (size_t)s.states);
    if (!code)
        code = check_tensors(x, s.body);
    for (int32_t i = 0; i < n->output_count && !code; i++) {
        if (n->outputs[i] == QS_NONE)
            continue;
        code = i < s.states
                   ? set_state_output(x, i, s.body, (size_t)i)
                   : set_stacked_output(x, i, result(s.body, (size_t)i),
                                        qs_node_entry(n, "scan_output_axes", i - s.states), length);
        if (!code)
            code = add_batch(x, &s, i);
    }
    return code;
}

/* ---- rows ---- */

static const qs_attr_rule if_attrs[] = {{"then_branch", QSIM_ATTR_GRAPH, 1, 0},
                                        {"else_branch", QSIM_ATTR_GRAPH, 1, 0}};
static const qs_attr_rule body_attrs[] = {{"body", QSIM_ATTR_GRAPH, 1, 0}};
static const qs_attr_rule scan_attrs[] = {
    {"body", QSIM_ATTR_GRAPH, 1, 0},           {"num_scan_inputs", QSIM_ATTR_INT, 1, 0},
    {"directions", QSIM_ATTR_INTS, 8, 8},      {"scan_input_directions", QSIM_ATTR_INTS, 9, 0},
    {"scan_input_axes", QSIM_ATTR_INTS, 9, 0}, {"scan_output_directions", QSIM_ATTR_INTS, 9, 0},
    {"scan_output_axes", QSIM_ATTR_INTS, 9, 0}};

QS_OP(if, .name = "If", .min_in = 1, .max_in = -1, .max_out = -1, QS_ATTRS(if_attrs),
      .traits = QS_OMITS_OUTPUTS, .kernel = QS_KERNEL_SUBGRAPH, .infer = infer_if);
QS_OP(loop, .name = "Loop", .min_in = 0, .max_in = -1, .max_out = -1, QS_ATTRS(body_attrs),
      .traits = QS_OMITS_OUTPUTS, .kernel = QS_KERNEL_SUBGRAPH, .infer = infer_loop);
QS_OP(scan, .name = "Scan", .since = 8, .min_in = 0, .max_in = -1, .max_out = -1,
      QS_ATTRS(scan_attrs), .traits = QS_OMITS_OUTPUTS, .kernel = QS_KERNEL_SUBGRAPH,
      .infer = infer_scan);
