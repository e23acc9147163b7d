/* SPDX-License-Identifier: MIT */
/* Evaluates single nodes: infers shapes, lowers to a step, computes a constant result. */
#include "pass/eval.h"

bool qs_value_size(const qs_value *v, size_t *elements, size_t *bytes) {
    int64_t dims[QSIM_MAX_RANK];
    if (v->rank < 0 || v->rank > QSIM_MAX_RANK || !v->dtype)
        return false;
    for (int32_t i = 0; i < v->rank; i++) {
        dims[i] = v->dims[i].size;
        if (dims[i] < 0)
            return false;
    }
    return qsim_tensor_size(v->dtype, v->rank, dims, elements, bytes) == QSIM_OK;
}

static int no_memory(const qs_eval *e, const qs_node *n) {
    return qs_node_fail(e->error, QSIM_E_NOMEM, e->model, n, "out of memory");
}

/*
 * Passes rely on the sizes that the model states, so sizes that inference finds later have to
 * agree. Graph outputs may differ, as they do in many files: no pass relies on their sizes.
 */
static int check_stated(const qs_eval *e, const qs_node *n, const qs_value *v,
                        const qs_value *found) {
    if (v->rank < 0 || v->is_output)
        return QSIM_OK;
    if (v->rank != found->rank)
        return qs_node_fail(e->error, QSIM_E_SHAPE, e->model, n,
                            "'%s' has rank %d, the model states %d", v->name, (int)found->rank,
                            (int)v->rank);
    for (int32_t i = 0; i < v->rank; i++)
        if (v->dims[i].size >= 0 && v->dims[i].size != found->dims[i].size)
            return qs_node_fail(e->error, QSIM_E_SHAPE, e->model, n,
                                "axis %d of '%s' is %lld, the model states %lld", (int)i, v->name,
                                (long long)found->dims[i].size, (long long)v->dims[i].size);
    return QSIM_OK;
}

/* Stores the type and shape that a rule has inferred for one output. */
static int store_output(const qs_eval *e, const qs_node *n, qs_id id, const qs_value *found) {
    qs_value *v = &e->values[id];
    int code = check_stated(e, n, v, found);
    if (code)
        return code;
    v->dtype = found->dtype;
    v->rank = found->rank;
    v->dims = NULL;
    if (found->rank > 0) {
        v->dims = qs_arena_copy(e->arena, found->dims, (size_t)found->rank * sizeof(qs_dim));
        if (!v->dims)
            return no_memory(e, n);
    }
    return QSIM_OK;
}

typedef int (*rule_fn)(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                       qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* Nodes of so many outputs, which are nearly all, are inferred on the stack. */
#define FEW 4

static int apply(const qs_eval *e, qs_id node, rule_fn rule) {
    const qs_node *n = &e->graph->nodes[node];
    size_t outputs = (size_t)n->output_count;
    if (!n->op || !n->op->infer)
        return qs_fail(e->error, QSIM_E_UNSUPPORTED, "%s: operator %s has no rule (node '%s')",
                       e->model, n->op_type, n->name);
    qs_value few[FEW], *out = outputs <= FEW ? few : qs_alloc(e->ctx, outputs, sizeof(*out));
    qs_dim few_dims[FEW][QSIM_MAX_RANK],
        (*dims)[QSIM_MAX_RANK] =
            outputs <= FEW ? few_dims : qs_alloc(e->ctx, outputs, sizeof(*dims));
    int code = out && dims ? QSIM_OK : no_memory(e, n);
    if (!code) {
        memset(out, 0, outputs * sizeof(*out));
        memset(dims, 0, outputs * sizeof(*dims));
        code = rule(e->graph, e->values, node, out, dims, e->model, e->error);
    }
    for (size_t i = 0; i < outputs && !code; i++)
        if (n->outputs[i] != QS_NONE)
            code = store_output(e, n, n->outputs[i], &out[i]);
    if (outputs > FEW) {
        qs_free(e->ctx, out);
        qs_free(e->ctx, dims);
    }
    return code;
}

void **qs_eval_addresses(qs_arena *arena, const qs_graph *g) {
    void **none = qs_arena_alloc(arena, g->value_count + 1, sizeof(*none));
    return none ? none + 1 : NULL;
}

int qs_eval_infer(const qs_eval *e, qs_id node) {
    return apply(e, node, qs_op_infer_exact);
}

int qs_eval_bound(const qs_eval *e, qs_id node) {
    return apply(e, node, qs_op_bound_node);
}

int qs_eval_lower(const qs_eval *e, qs_id node, const void *packed, qs_step *step, bool *alias) {
    const qs_node *n = &e->graph->nodes[node];
    *step = (qs_step){.in = n->inputs, .out = n->outputs, .node = node};
    *alias = false;
    if (!n->op->lower) {
        const qs_infer x = {
            .graph = e->graph, .node = n, .node_id = node, .model = e->model, .error = e->error};
        return qs_infer_fail(&x, QSIM_E_UNSUPPORTED,
                             "the ranks, or last sizes, of its inputs must be in the file");
    }
    qs_lower l = {.ctx = e->ctx,
                  .graph = e->graph,
                  .values = e->values,
                  .node = n,
                  .node_id = node,
                  .packed = packed,
                  .arena = e->arena,
                  .model = e->model,
                  .error = e->error,
                  .step = step};
    int code = n->op->lower(&l);
    *alias = l.alias;
    if (!code && !l.alias && !step->run)
        return qs_node_fail(e->error, QSIM_E_INTERNAL, e->model, n, "no step was made");
    return code;
}

/* Gives a constant input an aligned address with slack after it while this node is evaluated. */
static int address_input(const qs_eval *e, const qs_node *n, qs_arena *temporary, qs_id id) {
    const qs_const *c = e->values[id].data;
    size_t need;
    void *p = qs_add(c->bytes, QS_SLACK, &need) ? qs_arena_alloc64(temporary, need) : NULL;
    if (!p)
        return no_memory(e, n);
    memcpy(p, c->data, c->bytes);
    memset((uint8_t *)p + c->bytes, 0, QS_SLACK);
    e->address[id] = p;
    return QSIM_OK;
}

static qs_const *make_result(const qs_eval *e, const qs_node *n, qs_id id, const void *shared) {
    const qs_value *v = &e->values[id];
    size_t elements, bytes, need;
    qs_const *c = qs_arena_alloc(e->arena, 1, sizeof(*c));
    int64_t *dims = qs_arena_alloc(e->arena, (size_t)v->rank + 1, sizeof(*dims));
    if (!c || !dims || !qs_value_size(v, &elements, &bytes) || !qs_add(bytes, QS_SLACK, &need)) {
        no_memory(e, n);
        return NULL;
    }
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = v->dims[i].size;
    void *data = shared ? NULL : qs_arena_alloc64(e->arena, need);
    if (!shared && !data) {
        no_memory(e, n);
        return NULL;
    }
    *c = (qs_const){.dtype = v->dtype,
                    .rank = v->rank,
                    .dims = dims,
                    .data = shared ? shared : data,
                    .elements = elements,
                    .bytes = bytes};
    return c;
}

/*
 * Adds up the bytes of all results; false if a size is unknown, an element has no fixed size, or
 * the sum exceeds the limit.
 */
static bool results_fit(const qs_eval *e, const qs_node *n, size_t limit) {
    size_t total = 0;
    for (int32_t i = 0; i < n->output_count; i++) {
        size_t bytes;
        if (n->outputs[i] == QS_NONE)
            continue;
        if (!qs_value_size(&e->values[n->outputs[i]], NULL, &bytes) ||
            !qs_add(total, bytes, &total) || total > limit)
            return false;
    }
    return true;
}

static int pack_weights(const qs_eval *e, qs_id node, qs_arena *arena, const void **packed) {
    const qs_node *n = &e->graph->nodes[node];
    qs_pack p = {.ctx = e->ctx,
                 .graph = e->graph,
                 .node_id = node,
                 .node = n,
                 .arena = arena,
                 .model = e->model,
                 .error = e->error};
    int (*pack)(qs_pack * p) = qs_op_more_of(n->op)->pack;
    const int code = pack ? pack(&p) : QSIM_OK;
    *packed = p.result;
    return code;
}

static int make_results(const qs_eval *e, const qs_node *n, bool alias, bool lasting) {
    for (int32_t i = 0; i < n->output_count; i++) {
        qs_id id = n->outputs[i];
        if (id == QS_NONE)
            continue;
        qs_const *c = make_result(e, n, id, alias ? e->values[n->inputs[0]].data->data : NULL);
        if (!c)
            return QSIM_E_NOMEM;
        e->values[id].data = c;
        if (!alias)
            e->address[id] = (void *)(uintptr_t)c->data;
        else if (lasting)
            e->address[id] = e->address[n->inputs[0]];
    }
    return QSIM_OK;
}

/* Lowers and executes the node. own[i]: input i has its address, in temporary memory, from here. */
static int compute(const qs_eval *e, qs_id node, const void *packed, qs_arena *temporary,
                   bool *own) {
    const qs_node *n = &e->graph->nodes[node];
    qs_step step;
    bool alias;
    int code = packed ? QSIM_OK : pack_weights(e, node, temporary, &packed);
    for (int32_t i = 0; i < n->input_count && !code; i++)
        if (n->inputs[i] != QS_NONE && !e->address[n->inputs[i]]) {
            own[i] = true;
            code = address_input(e, n, temporary, n->inputs[i]);
        }
    if (!code)
        code = qs_eval_lower(e, node, packed, &step, &alias);
    if (!code)
        code = make_results(e, n, alias, n->input_count && !own[0]);
    if (code || alias)
        return code;
    qs_fault fault = {0};
    /* Work that a cancellation skips counts as skipped even if the cancellation is withdrawn. */
    qs_stop stop = {.outer = e->ctx->stop};
    qsim_ctx view;
    qs_ctx_view(e->ctx, &stop, &view);
    qs_frame frame = {.ctx = &view, .address = e->address, .fault = &fault};
    /* Steps without scratch memory may compute addresses in it, too. */
    if (!(frame.scratch = qs_arena_alloc64(temporary, step.scratch)))
        return no_memory(e, n);
    uint64_t fp = qs_fp_enter();
    step.run(&step, &frame);
    qs_fp_restore(fp);
    const int stopped = qs_go_on(&view, e->model, e->error);
    if (stopped)
        return stopped;
    return qs_fault_report(&fault, e->graph, node, e->model, e->error);
}

int qs_eval_const(const qs_eval *e, qs_id node, const void *packed, size_t limit, bool *done) {
    const qs_node *n = &e->graph->nodes[node];
    *done = false;
    int code = qs_go_on(e->ctx, e->model, e->error);
    if (!code)
        code = qs_eval_infer(e, node);
    if (code || (n->op->traits & QS_RANDOM) || !results_fit(e, n, limit))
        return code;
    qs_arena temporary;
    qs_arena_init(&temporary, e->ctx);
    bool *own = qs_arena_alloc(&temporary, (size_t)n->input_count + 1, sizeof(*own));
    code = own ? compute(e, node, packed, &temporary, own) : no_memory(e, n);
    for (int32_t i = 0; own && i < n->input_count; i++)
        if (own[i])
            e->address[n->inputs[i]] = NULL;
    qs_arena_free(&temporary);
    *done = !code;
    return code;
}
