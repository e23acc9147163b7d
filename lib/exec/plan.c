/* SPDX-License-Identifier: MIT */
/*
 * Makes a plan: infers all sizes and lowers all nodes. Shape is folded, and with it the arithmetic
 * that models do on sizes; nodes that only this arithmetic reads are left out. Nodes whose sizes
 * depend on data, and nodes that read their results, are deferred (deferred.h). Sizes, constants
 * and steps that new sizes of inputs do not change are kept from the plan that the run used last.
 */
#include "exec/deferred.h"
#include "tensor/shape.h"

#include <stdio.h>

/* Most bytes of a folded node's results, which a plan keeps as constants. */
#define PLAN_CONST_LIMIT ((size_t)1 << 20)

static int no_memory(const qsim_session *s, qsim_error *error) {
    return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory for a plan", s->name);
}

void qs_plan_free(qsim_ctx *ctx, qs_plan *plan) {
    if (!plan)
        return;
    qs_deferred_free(plan->deferred);
    qs_arena_free(&plan->arena);
    if (plan->parts && --plan->parts->holds == 0) {
        qs_arena_free(&plan->parts->arena);
        qs_free(ctx, plan->parts);
    }
    qs_free(ctx, plan);
}

/*
 * Parts of plans may grow to so many times those of the first plan. Then a plan starts anew, and
 * they are freed with the last plan that has them.
 */
#define PARTS_GROW 4

/* The plan that a new one keeps parts of; NULL: none. */
static const qs_plan *plan_to_follow(const qsim_session *s, const qs_plan *last) {
    const bool simple = last && !last->any_deferred && !s->observed;
    return simple && last->parts->arena.bytes / PARTS_GROW < last->parts->first ? last : NULL;
}

/* Gives the plan the parts of the plan that it follows, or new ones; false: out of memory. */
static bool take_parts(const qsim_session *s, qs_plan *plan, const qs_plan *last) {
    plan->parts = last ? last->parts : qs_calloc(s->ctx, 1, sizeof(*plan->parts));
    if (!plan->parts)
        return false;
    if (!last)
        qs_arena_init(&plan->parts->arena, s->ctx);
    plan->parts->holds++;
    return true;
}

/* ---- inputs ---- */

static bool input_fits(const qs_value *v, const qsim_tensor *t) {
    if (v->dtype != t->dtype || v->rank != t->rank || (t->rank > 0 && !t->dims))
        return false;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0 || (v->dims[i].size >= 0 && t->dims[i] != v->dims[i].size))
            return false;
    return true;
}

static int check_input(const qsim_session *s, const qs_value *v, const qsim_tensor *t,
                       qsim_error *error) {
    char given[128];
    if (input_fits(v, t))
        return QSIM_OK;
    if (t->rank < 0 || t->rank > QSIM_MAX_RANK || (t->rank > 0 && !t->dims))
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: input '%s' has rank %d; 0 to %d are possible",
                       s->name, v->name, (int)t->rank, QSIM_MAX_RANK);
    if (v->dtype && t->dtype != v->dtype)
        return qs_fail(error, QSIM_E_DTYPE, "%s: input '%s' is %s, the model takes %s", s->name,
                       v->name, qsim_dtype_name(t->dtype), qsim_dtype_name(v->dtype));
    qs_shape_text(given, sizeof(given), t->rank, t->dims);
    if (v->rank >= 0 && t->rank != v->rank)
        return qs_fail(error, QSIM_E_SHAPE,
                       "%s: input '%s' is given as %s, the model takes rank %d", s->name, v->name,
                       given, (int)v->rank);
    for (int32_t i = 0; i < t->rank; i++) {
        int64_t want = v->rank >= 0 ? v->dims[i].size : -1;
        if (t->dims[i] < 0)
            return qs_fail(error, QSIM_E_SHAPE, "%s: input '%s' is given as %s: a size is negative",
                           s->name, v->name, given);
        if (want >= 0 && t->dims[i] != want)
            return qs_fail(error, QSIM_E_SHAPE,
                           "%s: input '%s' is given as %s, the model takes %lld at axis %d",
                           s->name, v->name, given, (long long)want, (int)i);
    }
    return QSIM_OK;
}

static int set_input(const qsim_session *s, qs_plan *plan, qs_id id, const qsim_tensor *t,
                     qsim_error *error) {
    qs_value *v = &plan->values[id];
    *v = s->graph->values[id];
    int code = check_input(s, v, t, error);
    if (code)
        return code;
    qs_dim *dims = qs_arena_alloc(&plan->parts->arena, (size_t)t->rank + 1, sizeof(*dims));
    if (!dims)
        return no_memory(s, error);
    for (int32_t i = 0; i < t->rank; i++)
        dims[i].size = t->dims[i];
    v->dtype = t->dtype;
    v->rank = t->rank;
    v->dims = dims;
    if (!qs_value_size(v, NULL, NULL))
        return qs_fail(error, QSIM_E_LIMIT, "%s: input '%s' is too large", s->name, v->name);
    return QSIM_OK;
}

/* Makes an input on whose value sizes depend a constant of the plan. */
static int fix_input(const qsim_session *s, const qsim_ctx *ctx, qs_plan *plan, qs_id id,
                     const qsim_tensor *t, qsim_error *error) {
    qs_value *v = &plan->values[id];
    qs_const *c = qs_arena_alloc(&plan->parts->arena, 1, sizeof(*c));
    int64_t *dims = qs_arena_alloc(&plan->parts->arena, (size_t)t->rank + 1, sizeof(*dims));
    size_t elements, bytes;
    if (!c || !dims)
        return no_memory(s, error);
    qs_value_size(v, &elements, &bytes);
    if ((bytes && !t->data) || t->bytes < bytes)
        return qs_fail(error, QSIM_E_ARGUMENT,
                       "%s: sizes depend on the value of input '%s', which has no data", s->name,
                       v->name);
    void *data = qs_arena_alloc64(&plan->parts->arena, bytes + QS_SLACK);
    if (!data)
        return no_memory(s, error);
    int code = qs_stop_fail(ctx, qs_copy(ctx, data, t->data, bytes), s->name, error);
    if (code)
        return code;
    qs_tensor_dims(t, dims);
    *c = (qs_const){.dtype = t->dtype,
                    .rank = t->rank,
                    .dims = dims,
                    .data = data,
                    .elements = elements,
                    .bytes = bytes};
    v->data = c;
    plan->address[id] = data;
    return QSIM_OK;
}

/* ---- sizes ---- */

static bool all_constant(const qs_plan *plan, const qs_node *n) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && !plan->values[n->inputs[i]].data)
            return false;
    return true;
}

/*
 * Folds Shape or Size. It reads no data, so its input, which has none yet, is given an address of
 * zeros.
 */
static int fold_shape(const qs_eval *e, qs_id node, bool *done) {
    static const int64_t zeros[QS_SLACK / 8] = {0};
    qs_id x = e->graph->nodes[node].inputs[0];
    void *before = e->address[x];
    e->address[x] = (void *)(uintptr_t)zeros;
    int code = qs_eval_const(e, node, NULL, PLAN_CONST_LIMIT, done);
    e->address[x] = before;
    return code;
}

/* What is found out about nodes and values before steps are made. */
typedef struct found {
    bool *constant;        /* by node: its results are constants of the plan */
    bool *deferred;        /* by node: its sizes depend on data */
    bool *deferred_values; /* by value: made by such a node */
    bool *needed;          /* by node: outputs depend on it */
    bool *wanted;          /* by value: outputs depend on it */
    bool *kept;            /* by value: read by a deferred node */
    qs_part *part;         /* by value: the value that it is part of */
    const qs_plan *last;   /* the plan that this one follows; NULL: none */
    bool *same;            /* by value: as in that plan */
    bool *follows;         /* by node: all of its inputs are, and so its outputs */
    size_t *step_of;       /* by node: its step in that plan, from 1; 0: none */
} found;

static bool reads_deferred(const qs_node *n, const bool *deferred_values) {
    for (int32_t i = 0; i < n->input_count; i++)
        if (n->inputs[i] != QS_NONE && deferred_values[n->inputs[i]])
            return true;
    return false;
}

bool qs_plan_knows_sizes(const qs_plan *plan, const qs_node *n) {
    for (int32_t k = 0; k < n->output_count; k++)
        if (n->outputs[k] != QS_NONE && !qs_value_size(&plan->values[n->outputs[k]], NULL, NULL))
            return false;
    return true;
}

static int infer_one(const qsim_session *s, const qs_eval *e, const qs_plan *plan, qs_id id,
                     bool *constant) {
    const qs_node *n = &s->graph->nodes[id];
    if (n->op->traits & QS_READS_SIZES)
        return fold_shape(e, id, constant);
    if (all_constant(plan, n) && !qs_node_attr(n, "into")) /* into: it writes to another tensor */
        return qs_eval_const(e, id, s->packed[id], PLAN_CONST_LIMIT, constant);
    return qs_eval_infer(e, id);
}

/* ---- what a plan keeps of the one before ---- */

static bool same_sizes(const qs_value *a, const qs_value *b) {
    bool same = a->dtype == b->dtype && a->rank == b->rank;
    for (int32_t i = 0; i < a->rank && same; i++)
        same = a->dims[i].size == b->dims[i].size;
    return same;
}

static bool same_data(const qs_const *a, const qs_const *b) {
    return a == b || (a && b && a->bytes == b->bytes && memcmp(a->data, b->data, a->bytes) == 0);
}

/* Notes which constants and inputs are as in the plan before. */
static void begin_following(const qsim_session *s, const qs_plan *plan, found *f) {
    const qs_graph *g = s->graph;
    for (size_t v = 0; v < g->value_count; v++)
        f->same[v] = g->values[v].data != NULL;
    for (size_t i = 0; i < g->input_count; i++) {
        const qs_value *now = &plan->values[g->inputs[i]], *then = &f->last->values[g->inputs[i]];
        f->same[g->inputs[i]] = same_sizes(now, then) && same_data(now->data, then->data);
    }
    for (size_t i = 0; i < f->last->step_count; i++)
        f->step_of[f->last->steps[i].node] = i + 1;
}

/* Whether sizes and constants that a node makes are those of the plan before. */
static bool node_follows(const found *f, const qs_node *n) {
    bool follows = f->last != NULL;
    for (int32_t i = 0; i < n->input_count && follows; i++)
        follows = n->inputs[i] == QS_NONE || f->same[n->inputs[i]];
    return follows;
}

static void follow_node(const qs_plan *plan, const qs_node *n, qs_id id, found *f) {
    f->follows[id] = true;
    for (int32_t k = 0; k < n->output_count; k++)
        if (n->outputs[k] != QS_NONE) {
            f->same[n->outputs[k]] = true;
            f->constant[id] = plan->values[n->outputs[k]].data != NULL;
        }
}

/* Before a node is inferred anew: its outputs are as in the model. */
static void forget_outputs(const qsim_session *s, qs_plan *plan, const qs_node *n) {
    for (int32_t k = 0; k < n->output_count; k++)
        if (n->outputs[k] != QS_NONE) {
            plan->values[n->outputs[k]] = s->graph->values[n->outputs[k]];
            plan->address[n->outputs[k]] = (void *)(uintptr_t)s->constants[n->outputs[k]];
        }
}

/* Constants differ, and other nodes may take sizes from whole numbers: these are not compared. */
static void compare_outputs(const qs_plan *plan, const qs_node *n, found *f) {
    for (int32_t k = 0; k < n->output_count; k++) {
        if (n->outputs[k] == QS_NONE)
            continue;
        const qs_value *now = &plan->values[n->outputs[k]], *then = &f->last->values[n->outputs[k]];
        f->same[n->outputs[k]] = !now->data && !then->data && now->dtype != QSIM_INT64 &&
                                 now->dtype != QSIM_INT32 && same_sizes(now, then);
    }
}

/* ---- sizes of all values ---- */

static int infer_all(const qsim_session *s, const qs_eval *e, qs_plan *plan, found *f) {
    const qs_graph *g = s->graph;
    for (size_t i = 0; i < g->order_count; i++) {
        qs_id id = g->order[i];
        const qs_node *n = &g->nodes[id];
        if (node_follows(f, n)) {
            follow_node(plan, n, id, f);
            continue;
        }
        if (f->last)
            forget_outputs(s, plan, n);
        f->deferred[id] = reads_deferred(n, f->deferred_values) || qs_node_has_subgraph(n);
        int code = qs_go_on(e->ctx, s->name, e->error);
        if (!code && !f->deferred[id])
            code = infer_one(s, e, plan, id, &f->constant[id]);
        if (code)
            return code;
        f->deferred[id] = f->deferred[id] || !qs_plan_knows_sizes(plan, n);
        plan->any_deferred |= f->deferred[id];
        for (int32_t k = 0; k < n->output_count; k++)
            if (n->outputs[k] != QS_NONE)
                f->deferred_values[n->outputs[k]] = f->deferred[id];
        if (f->last)
            compare_outputs(plan, n, f);
    }
    return QSIM_OK;
}

/* ---- steps ---- */

/*
 * The input that is the result of a Where with a constant condition; QS_NONE: another node, or
 * sizes differ.
 */
static qs_id chosen_input(const qs_plan *plan, const qs_node *n) {
    const qs_const *c = n->op->traits & QS_CHOOSES ? plan->values[n->inputs[0]].data : NULL;
    if (!c || c->elements != 1)
        return QS_NONE;
    const qs_id id = n->inputs[*(const uint8_t *)c->data ? 1 : 2];
    return same_sizes(&plan->values[id], &plan->values[n->outputs[0]]) ? id : QS_NONE;
}

/*
 * Marks the nodes on which outputs from `first` on depend, except folded ones, and the values that
 * these read; `chosen`: without branches that are not taken. Returns the number of nodes that are
 * not deferred.
 */
static size_t mark_needed(const qs_graph *g, const qs_plan *plan, const found *f, size_t first,
                          bool chosen, bool *value) {
    size_t count = 0;
    memset(f->needed, 0, g->node_count * sizeof(*f->needed));
    for (size_t i = first; i < g->output_count; i++)
        value[g->outputs[i]] |= !plan->untaken || !plan->untaken[i];
    for (size_t i = g->order_count; i-- > 0;) {
        qs_id id = g->order[i];
        const qs_node *n = &g->nodes[id];
        bool needed = false;
        for (int32_t k = 0; k < n->output_count && !needed; k++)
            needed = n->outputs[k] != QS_NONE && value[n->outputs[k]];
        if (!needed || f->constant[id])
            continue;
        f->needed[id] = true;
        count += !f->deferred[id];
        const qs_id only = chosen ? chosen_input(plan, n) : QS_NONE;
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE && (only == QS_NONE || only == n->inputs[k]))
                value[n->inputs[k]] = true;
    }
    return count;
}

/* Finds the shown outputs of branches that this plan does not take; false: out of memory. */
static bool find_untaken(const qsim_session *s, qs_plan *plan, const found *f,
                         qs_arena *temporary) {
    const qs_graph *g = s->graph;
    if (s->shown_count == 0)
        return true;
    bool *all = qs_arena_alloc(temporary, g->value_count + 1, sizeof(*all));
    bool *some = qs_arena_alloc(temporary, g->value_count + 1, sizeof(*some));
    bool *untaken = qs_arena_alloc(&plan->arena, g->output_count + 1, sizeof(*untaken));
    if (!all || !some || !untaken)
        return false;
    mark_needed(g, plan, f, s->shown_count, false, all);
    mark_needed(g, plan, f, s->shown_count, true, some);
    for (size_t i = 0; i < s->shown_count; i++)
        untaken[i] = all[g->outputs[i]] && !some[g->outputs[i]];
    plan->untaken = untaken;
    return true;
}

/* The name of the nearest named value before a node, along first inputs; NULL: none has a name. */
static const char *named_before(const qs_graph *g, const qs_node *n) {
    for (size_t i = 0; n && i < g->node_count; i++) {
        const qs_id x = n->input_count > 0 ? n->inputs[0] : QS_NONE;
        if (x == QS_NONE)
            return NULL;
        if (g->values[x].name && g->values[x].name[0])
            return g->values[x].name;
        n = g->values[x].producer == QS_NONE ? NULL : &g->nodes[g->values[x].producer];
    }
    return NULL;
}

int qs_too_large(const qsim_session *s, qs_id value, size_t bytes, qsim_error *error) {
    const qs_graph *g = s->graph;
    const qs_value *v = &g->values[value];
    const qs_node *n = v->producer == QS_NONE ? NULL : &g->nodes[v->producer];
    char what[160];
    int32_t k = 0;
    while (n && k < n->output_count && n->outputs[k] != value)
        k++;
    if (n && !(v->name && v->name[0]))
        snprintf(what, sizeof(what), "output %d", (int)k);
    else
        snprintf(what, sizeof(what), "tensor '%.140s'", v->name ? v->name : "");
    const char *before = n && !n->name[0] ? named_before(g, n) : NULL;
    if (!n)
        return qs_fail(error, QSIM_E_LIMIT, "%s: %s needs %zu bytes, the limit is %zu", s->name,
                       what, bytes, QS_ARENA_LIMIT);
    return qs_fail(error, QSIM_E_LIMIT, "%s: %s needs %zu bytes, the limit is %zu (%s '%s', %s)",
                   s->name, what, bytes, QS_ARENA_LIMIT, before ? "node after" : "node",
                   before ? before : n->name, n->op_type);
}

/*
 * Refuses outputs that exceed the limit. Lowering some operators loops over the rows of their
 * outputs and would take too long for these.
 */
static int check_output(const qsim_session *s, const qs_eval *e, const qs_plan *plan,
                        const qs_node *n) {
    for (int32_t k = 0; k < n->output_count; k++) {
        size_t bytes = 0;
        if (n->outputs[k] != QS_NONE && qs_value_size(&plan->values[n->outputs[k]], NULL, &bytes) &&
            bytes >= QS_ARENA_LIMIT)
            return qs_too_large(s, n->outputs[k], bytes, e->error);
    }
    return QSIM_OK;
}

static int lower_all(const qsim_session *s, const qs_eval *e, qs_plan *plan, const found *f) {
    const qs_graph *g = s->graph;
    qs_part *part = f->part;
    for (size_t i = 0; i < g->order_count; i++) {
        qs_id id = g->order[i];
        bool shared;
        if (!f->needed[id] || f->deferred[id])
            continue;
        const qs_id only = chosen_input(plan, &g->nodes[id]);
        if (only != QS_NONE) {
            part[g->nodes[id].outputs[0]].value = only;
            continue;
        }
        qs_step *step = &plan->steps[plan->step_count];
        int code = qs_go_on(e->ctx, s->name, e->error);
        if (!code)
            code = check_output(s, e, plan, &g->nodes[id]);
        if (!code && f->follows[id] && f->step_of[id]) {
            *step = f->last->steps[f->step_of[id] - 1];
            shared = false;
        } else if (!code) {
            code = qs_eval_lower(e, id, s->packed[id], step, &shared);
        }
        if (code)
            return code;
        if (shared)
            part[g->nodes[id].outputs[0]].value = g->nodes[id].inputs[0];
        else if (step->reuses)
            part[g->nodes[id].outputs[0]].value = g->nodes[id].inputs[step->reuses];
        else
            shared = qs_plan_share(s, plan, step, part);
        plan->step_count += !shared;
    }
    return QSIM_OK;
}

static bool make_found(qs_arena *a, const qs_graph *g, found *f) {
    bool **const by_node[] = {&f->constant, &f->deferred, &f->needed, &f->follows};
    bool **const by_value[] = {&f->deferred_values, &f->wanted, &f->kept, &f->same};
    bool ok = true;
    f->step_of = qs_arena_alloc(a, g->node_count + 1, sizeof(*f->step_of));
    for (size_t i = 0; i < QS_COUNT(by_node); i++) {
        *by_node[i] = qs_arena_alloc(a, g->node_count + 1, sizeof(bool));
        *by_value[i] = qs_arena_alloc(a, g->value_count + 1, sizeof(bool));
        ok = ok && *by_node[i] && *by_value[i];
    }
    f->part = qs_arena_alloc(a, g->value_count + 1, sizeof(*f->part));
    for (size_t i = 0; f->part && i < g->value_count; i++)
        f->part[i].value = QS_NONE;
    return ok && f->part && f->step_of;
}

static int make_steps(const qsim_session *s, const qs_eval *e, const qs_plan *last, qs_plan *plan) {
    const qs_graph *g = s->graph;
    found f = {.last = last};
    qs_arena temporary;
    qs_arena_init(&temporary, s->ctx);
    int code = QSIM_E_NOMEM;
    if (!make_found(&temporary, g, &f))
        goto done;
    if (last)
        begin_following(s, plan, &f);
    code = infer_all(s, e, plan, &f);
    if (code)
        goto done;
    code = QSIM_E_NOMEM;
    if (!find_untaken(s, plan, &f, &temporary))
        goto done;
    const size_t count = mark_needed(g, plan, &f, 0, true, f.wanted);
    plan->steps = qs_arena_alloc(&plan->arena, count + 1, sizeof(*plan->steps));
    plan->scratch = qs_arena_alloc(&plan->arena, count + 1, sizeof(*plan->scratch));
    plan->ended = qs_arena_alloc(&plan->arena, count + 1, sizeof(*plan->ended));
    if (!plan->steps || !plan->scratch || !plan->ended ||
        qs_deferred_create(s, f.needed, f.deferred, &plan->deferred))
        goto done;
    if (plan->deferred)
        qs_deferred_mark(plan->deferred, f.kept);
    code = lower_all(s, e, plan, &f);
    if (!code && s->observed)
        code = qs_plan_find_ready(s, plan, f.deferred_values);
    if (!code)
        code = qs_plan_place(s, e, plan, f.part, f.kept, f.deferred_values);
done:
    qs_arena_free(&temporary);
    return code == QSIM_E_NOMEM ? no_memory(s, e->error) : code;
}

int qs_plan_create(const qsim_session *s, qsim_ctx *ctx, const qsim_tensor *inputs, size_t capacity,
                   const qs_plan *last, qs_plan **out, qsim_error *error) {
    qs_graph *g = s->graph;
    const qs_plan *before = plan_to_follow(s, last);
    qs_plan *plan = qs_calloc(s->ctx, 1, sizeof(*plan));
    if (!plan)
        return no_memory(s, error);
    qs_arena_init(&plan->arena, s->ctx);
    plan->capacity = capacity;
    int code = QSIM_E_NOMEM;
    plan->values = qs_arena_copy(&plan->arena, before ? before->values : g->values,
                                 g->value_count * sizeof(*plan->values));
    plan->address = qs_eval_addresses(&plan->arena, g);
    if (!plan->values || !plan->address || !take_parts(s, plan, before))
        goto fail;
    for (size_t i = 0; i < g->value_count; i++) {
        const bool made = plan->values[i].data && !g->values[i].data; /* by the plan before */
        plan->address[i] = made ? before->address[i] : (void *)(uintptr_t)s->constants[i];
    }
    code = QSIM_OK;
    for (size_t i = 0; i < g->input_count && !code; i++) {
        code = set_input(s, plan, g->inputs[i], &inputs[i], error);
        if (!code && s->by_value[i])
            code = fix_input(s, ctx, plan, g->inputs[i], &inputs[i], error);
    }
    qs_eval e = {.ctx = ctx,
                 .graph = g,
                 .values = plan->values,
                 .address = plan->address,
                 .arena = &plan->parts->arena,
                 .model = s->name,
                 .error = error};
    if (!code)
        code = make_steps(s, &e, before, plan);
    if (code)
        goto fail;
    if (!before)
        plan->parts->first = plan->parts->arena.bytes;
    *out = plan;
    return QSIM_OK;
fail:
    if (code == QSIM_E_NOMEM)
        no_memory(s, error);
    qs_plan_free(s->ctx, plan);
    return code;
}
