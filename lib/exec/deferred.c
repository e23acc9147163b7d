/* SPDX-License-Identifier: MIT */
/* Executes deferred nodes; deferred.h explains them. */
#include "exec/deferred.h"

#include "exec/run.h"

/* ---- life ---- */

void qs_deferred_mark(const qs_deferred *d, bool *kept) {
    for (size_t i = 0; i < d->count; i++) {
        const qs_node *n = &d->session->graph->nodes[d->nodes[i].node];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE)
                kept[n->inputs[k]] = true;
    }
}

static void count_readers(qs_deferred *d) {
    const qs_graph *g = d->session->graph;
    for (size_t i = 0; i < d->count; i++) {
        const qs_node *n = &g->nodes[d->nodes[i].node];
        for (int32_t k = 0; k < n->input_count; k++)
            if (n->inputs[k] != QS_NONE)
                d->reader_count[n->inputs[k]]++;
    }
    for (size_t i = 0; i < g->output_count; i++)
        d->reader_count[g->outputs[i]]++;
}

static bool add_node(qs_deferred *d, qs_id id) {
    const qs_node *n = &d->session->graph->nodes[id];
    qs_deferred_node *dn = &d->nodes[d->count++];
    dn->node = id;
    qs_arena_init(&dn->arena, d->ctx);
    if (qs_node_has_subgraph(n))
        dn->dims = qs_calloc(d->ctx, (size_t)n->output_count, sizeof(*dn->dims));
    return dn->dims || !qs_node_has_subgraph(n);
}

int qs_deferred_create(const qsim_session *s, const bool *needed, const bool *deferred,
                       qs_deferred **out) {
    const qs_graph *g = s->graph;
    qsim_ctx *ctx = s->ctx;
    size_t count = 0;
    for (size_t i = 0; i < g->order_count; i++)
        count += needed[g->order[i]] && deferred[g->order[i]];
    *out = NULL;
    if (count == 0)
        return QSIM_OK;
    qs_deferred *d = qs_calloc(ctx, 1, sizeof(*d));
    if (!d)
        return QSIM_E_NOMEM;
    d->ctx = ctx;
    d->session = s;
    qs_chunks_init(&d->memory, ctx, QS_ARENA_LIMIT);
    d->nodes = qs_calloc(ctx, count, sizeof(*d->nodes));
    d->chunk = qs_calloc(ctx, g->value_count + 1, sizeof(*d->chunk));
    d->owner = qs_calloc(ctx, g->value_count + 1, sizeof(*d->owner));
    d->readers = qs_calloc(ctx, g->value_count + 1, sizeof(*d->readers));
    d->reader_count = qs_calloc(ctx, g->value_count + 1, sizeof(*d->reader_count));
    if (!d->nodes || !d->chunk || !d->owner || !d->readers || !d->reader_count) {
        qs_deferred_free(d);
        return QSIM_E_NOMEM;
    }
    for (size_t i = 0; i < g->order_count; i++)
        if (needed[g->order[i]] && deferred[g->order[i]] && !add_node(d, g->order[i])) {
            qs_deferred_free(d);
            return QSIM_E_NOMEM;
        }
    count_readers(d);
    *out = d;
    return QSIM_OK;
}

void qs_deferred_free(qs_deferred *d) {
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++) {
        qs_arena_free(&d->nodes[i].arena);
        qs_free(d->ctx, d->nodes[i].key);
        qs_free(d->ctx, d->nodes[i].scratch);
        qs_free(d->ctx, d->nodes[i].dims);
        qs_flow_free(d->ctx, d->nodes[i].flow);
    }
    qs_chunks_free(&d->memory);
    qs_free(d->ctx, d->nodes);
    qs_free(d->ctx, d->chunk);
    qs_free(d->ctx, d->owner);
    qs_free(d->ctx, d->readers);
    qs_free(d->ctx, d->reader_count);
    qs_free(d->ctx, d);
}

/* ---- memory ---- */

/* Releases the memory of the last execution, its outputs included. */
static void release_all(qs_deferred *d) {
    const size_t values = d->session->graph->value_count;
    for (size_t v = 0; v < values; v++) {
        if (d->chunk[v])
            qs_chunk_release(&d->memory, d->chunk[v]);
        d->chunk[v] = NULL;
        d->owner[v] = (qs_id)v;
        d->readers[v] = d->reader_count[v];
    }
}

static void release_unread(qs_deferred *d, qs_id owner) {
    if (d->readers[owner] > 0 || !d->chunk[owner])
        return;
    qs_chunk_release(&d->memory, d->chunk[owner]);
    d->chunk[owner] = NULL;
}

static void count_read(qs_deferred *d, qs_id value) {
    const qs_id owner = d->owner[value];
    d->readers[owner]--;
    release_unread(d, owner);
}

/* Makes `value` share the bytes of `of`. */
static void share_chunk(qs_deferred *d, const qs_plan *plan, qs_id value, qs_id of) {
    const qs_id owner = d->owner[of];
    d->owner[value] = owner;
    d->readers[owner] += d->readers[value];
    plan->address[value] = plan->address[of];
}

static int no_memory(const qsim_run *run, const qs_node *n, size_t bytes, int code,
                     qsim_error *error) {
    if (code == QSIM_E_LIMIT)
        return qs_node_fail(error, code, run->session->name, n,
                            "%zu bytes exceed the limit of activations, %zu", bytes,
                            QS_ARENA_LIMIT);
    return qs_node_fail(error, code, run->session->name, n, "out of memory for %zu bytes", bytes);
}

static int alloc_value(qsim_run *run, qs_plan *plan, const qs_node *n, qs_id value, size_t bytes,
                       qsim_error *error) {
    qs_deferred *d = plan->deferred;
    int code;
    d->chunk[value] = qs_chunk_alloc(&d->memory, bytes, &code);
    if (!d->chunk[value])
        return no_memory(run, n, bytes, code, error);
    plan->address[value] = qs_chunk_data(d->chunk[value]);
    return QSIM_OK;
}

/* ---- the key of a step ---- */

static bool append_key(qs_deferred *d, qs_deferred_node *dn, size_t *at, bool *same,
                       const void *bytes, size_t size) {
    if (*same && (*at + size > dn->key_bytes || memcmp(dn->key + *at, bytes, size) != 0))
        *same = false;
    if (!qs_grow(d->ctx, (void **)&dn->key, &dn->key_capacity, *at + size, 1))
        return false;
    if (!*same && size)
        memcpy(dn->key + *at, bytes, size);
    *at += size;
    return true;
}

/* Updates the key of the node's step; *same: it has not changed. False: out of memory. */
static bool update_key(qs_deferred *d, const qs_plan *plan, qs_deferred_node *dn, bool *same) {
    const qs_node *n = &d->session->graph->nodes[dn->node];
    size_t at = 0;
    bool ok = true;
    *same = dn->lowered;
    for (int32_t k = 0; ok && k < n->input_count; k++) {
        const qs_id id = n->inputs[k];
        const qs_value *v = id == QS_NONE ? NULL : &plan->values[id];
        size_t bytes = 0;
        if (!v)
            continue;
        ok = append_key(d, dn, &at, same, &v->dtype, sizeof(v->dtype)) &&
             append_key(d, dn, &at, same, &v->rank, sizeof(v->rank));
        for (int32_t i = 0; ok && i < v->rank; i++)
            ok = append_key(d, dn, &at, same, &v->dims[i].size, sizeof(v->dims[i].size));
        if (ok && !v->data && qs_op_in(n->op->shape_inputs, k) && qs_value_size(v, NULL, &bytes))
            ok = append_key(d, dn, &at, same, plan->address[id], bytes);
    }
    *same = ok && *same && at == dn->key_bytes;
    dn->key_bytes = at;
    return ok;
}

/* ---- one node ---- */

/* Makes an input a constant while the node is lowered, since sizes depend on its value. */
static int fix_value(qs_plan *plan, qs_deferred_node *dn, qs_id id) {
    qs_value *v = &plan->values[id];
    qs_const *c = qs_arena_alloc(&dn->arena, 1, sizeof(*c));
    int64_t *dims = qs_arena_alloc(&dn->arena, (size_t)v->rank + 1, sizeof(*dims));
    size_t elements, bytes;
    if (!c || !dims || !qs_value_size(v, &elements, &bytes))
        return QSIM_E_NOMEM;
    void *data = qs_arena_alloc64(&dn->arena, bytes + QS_SLACK);
    if (!data)
        return QSIM_E_NOMEM;
    int code = qs_copy(dn->arena.ctx, data, plan->address[id], bytes);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = v->dims[i].size;
    *c = (qs_const){.dtype = v->dtype,
                    .rank = v->rank,
                    .dims = dims,
                    .data = data,
                    .elements = elements,
                    .bytes = bytes};
    v->data = c;
    return code;
}

static int keep_bounds(const qsim_run *run, const qs_plan *plan, qs_deferred_node *dn,
                       qsim_error *error) {
    const qs_node *n = &run->session->graph->nodes[dn->node];
    dn->bounds = qs_arena_alloc(&dn->arena, QS_BOUND_OUTPUTS, sizeof(*dn->bounds));
    if (!dn->bounds)
        return no_memory(run, n, sizeof(*dn->bounds), QSIM_E_NOMEM, error);
    for (int32_t k = 0; k < n->output_count; k++) {
        const qs_value *v = n->outputs[k] == QS_NONE ? NULL : &plan->values[n->outputs[k]];
        for (int32_t i = 0; v && i < v->rank; i++)
            dn->bounds[k][i] = v->dims[i].size;
    }
    return QSIM_OK;
}

static int infer_and_lower(const qsim_run *run, qs_plan *plan, qs_deferred_node *dn,
                           qsim_error *error) {
    const qsim_session *s = run->session;
    const qs_node *n = &s->graph->nodes[dn->node];
    const qs_eval e = {.ctx = s->ctx,
                       .graph = s->graph,
                       .values = plan->values,
                       .address = plan->address,
                       .arena = &dn->arena,
                       .model = s->name,
                       .error = error};
    for (int32_t k = 0; k < n->output_count; k++)
        if (n->outputs[k] != QS_NONE)
            plan->values[n->outputs[k]] = s->graph->values[n->outputs[k]];
    int code = qs_eval_infer(&e, dn->node);
    if (!code && (n->op->traits & QS_BOUNDS) && !qs_plan_knows_sizes(plan, n))
        code = qs_eval_bound(&e, dn->node);
    if (!code && !qs_plan_knows_sizes(plan, n)) {
        const bool list = n->op->traits & QS_MAKES_SEQUENCE;
        code = qs_node_fail(error, list ? QSIM_E_UNSUPPORTED : QSIM_E_LIMIT, s->name, n, "%s",
                            list ? "input ranks must be in the file"
                                 : "a size is unknown or too large");
    }
    if (!code)
        code = qs_eval_lower(&e, dn->node, s->packed[dn->node], &dn->step, &dn->alias);
    return code || !(n->op->traits & QS_BOUNDS) ? code : keep_bounds(run, plan, dn, error);
}

static int lower_node(const qsim_run *run, qs_plan *plan, qs_deferred_node *dn, qsim_error *error) {
    const qsim_session *s = run->session;
    const qs_node *n = &s->graph->nodes[dn->node];
    uint32_t fixed = 0;
    int code = QSIM_OK;
    dn->lowered = false;
    qs_arena_free(&dn->arena);
    qs_arena_init(&dn->arena, s->ctx);
    for (int32_t k = 0; k < n->input_count && !code; k++) {
        const qs_id id = n->inputs[k];
        if (id == QS_NONE || !qs_op_in(n->op->shape_inputs, k) || plan->values[id].data)
            continue;
        code = fix_value(plan, dn, id);
        fixed |= 1u << k;
    }
    if (code == QSIM_E_NOMEM)
        qs_node_fail(error, code, s->name, n, "out of memory");
    if (!code)
        code = infer_and_lower(run, plan, dn, error);
    for (int32_t k = 0; k < n->input_count && k < 32; k++)
        if (fixed >> k & 1)
            plan->values[n->inputs[k]].data = NULL;
    dn->lowered = !code;
    return code;
}

static int run_step(qsim_run *run, qs_plan *plan, qs_deferred_node *dn, qs_sizes_out *sizes,
                    qsim_error *error) {
    const qsim_session *s = run->session;
    const qs_node *n = &s->graph->nodes[dn->node];
    qs_fault fault = {0};
    if (!dn->scratch || dn->step.scratch > dn->scratch_capacity) {
        qs_free(s->ctx, dn->scratch);
        dn->scratch_capacity = 0;
        dn->scratch = qs_alloc(s->ctx, dn->step.scratch + 1, 1);
        if (!dn->scratch)
            return no_memory(run, n, dn->step.scratch, QSIM_E_NOMEM, error);
        dn->scratch_capacity = dn->step.scratch;
    }
    const qs_frame frame = {.ctx = &run->view,
                            .address = plan->address,
                            .scratch = dn->scratch,
                            .fault = &fault,
                            .sizes = sizes,
                            .seed = run->seed,
                            .turn = run->turn};
    const uint64_t fp = qs_fp_enter();
    dn->step.run(&dn->step, &frame);
    qs_fp_restore(fp);
    if (qs_stop_code(&run->view)) /* then `sizes` may not be set */
        return qs_stop_code(&run->view);
    return qs_fault_report(&fault, s->graph, dn->node, s->name, error);
}

static int place_outputs(qsim_run *run, qs_plan *plan, qs_deferred_node *dn, qsim_error *error) {
    const qs_node *n = &run->session->graph->nodes[dn->node];
    int code = QSIM_OK;
    for (int32_t k = 0; k < n->output_count && !code; k++) {
        size_t bytes = 0;
        if (n->outputs[k] == QS_NONE)
            continue;
        if (k == 0 && (dn->alias || dn->step.reuses)) {
            share_chunk(plan->deferred, plan, n->outputs[0],
                        n->inputs[dn->alias ? 0 : dn->step.reuses]);
            continue;
        }
        qs_value_size(&plan->values[n->outputs[k]], NULL, &bytes);
        code = alloc_value(run, plan, n, n->outputs[k], bytes, error);
    }
    return code;
}

/* Sets the sizes of outputs: those that a step has found, or before it their bounds. */
static void set_sizes(const qs_plan *plan, const qs_node *n, const qs_sizes_out *sizes) {
    for (int32_t k = 0; k < n->output_count; k++) {
        const qs_value *v = n->outputs[k] == QS_NONE ? NULL : &plan->values[n->outputs[k]];
        for (int32_t i = 0; v && i < v->rank; i++)
            ((qs_dim *)(uintptr_t)v->dims)[i] = (qs_dim){sizes[k][i], NULL};
    }
}

static int execute_node(qsim_run *run, qs_plan *plan, qs_deferred_node *dn, qsim_error *error) {
    const qs_node *n = &run->session->graph->nodes[dn->node];
    qs_sizes_out sizes[QS_BOUND_OUTPUTS];
    bool same;
    if (!update_key(plan->deferred, plan, dn, &same))
        return no_memory(run, n, dn->key_bytes, QSIM_E_NOMEM, error);
    int code = same ? QSIM_OK : lower_node(run, plan, dn, error);
    if (!code && (n->op->traits & QS_BOUNDS)) {
        memcpy(sizes, dn->bounds, sizeof(sizes));
        set_sizes(plan, n, dn->bounds);
    }
    if (!code)
        code = place_outputs(run, plan, dn, error);
    if (code || dn->alias)
        return code;
    code = run_step(run, plan, dn, sizes, error);
    if (code || !(n->op->traits & QS_BOUNDS))
        return code;
    set_sizes(plan, n, sizes);
    return QSIM_OK;
}

int qs_deferred_execute(qsim_run *run, qs_plan *plan, qsim_error *error) {
    qs_deferred *d = plan->deferred;
    int code = QSIM_OK;
    release_all(d);
    for (size_t i = 0; i < d->count && !code; i++) {
        const qs_node *n = &d->session->graph->nodes[d->nodes[i].node];
        if (qs_stop_code(&run->view))
            return qs_stop_code(&run->view);
        if (qs_node_has_subgraph(n)) {
            qs_flow_call call = {run, plan, d, &d->nodes[i], n, error, 0};
            code = qs_flow_execute(&call);
        } else {
            code = execute_node(run, plan, &d->nodes[i], error);
        }
        for (int32_t k = 0; k < n->output_count && !code; k++)
            if (n->outputs[k] != QS_NONE && d->readers[d->owner[n->outputs[k]]] == 0)
                release_unread(d, d->owner[n->outputs[k]]);
        for (int32_t k = 0; k < n->input_count && !code; k++)
            if (n->inputs[k] != QS_NONE)
                count_read(d, n->inputs[k]);
    }
    return code ? code : qs_stop_code(&run->view);
}

int qs_deferred_output(qs_flow_call *c, int32_t index, int32_t dtype, int32_t rank,
                       const int64_t *dims, void **data) {
    const qs_id id = c->n->outputs[index];
    qs_value *v = &c->plan->values[id];
    qs_dim *own = c->node->dims[index];
    size_t bytes;
    if (qsim_tensor_size(dtype, rank, dims, NULL, &bytes))
        return qs_node_fail(c->error, QSIM_E_LIMIT, c->run->session->name, c->n,
                            "'%s' is too large", v->name);
    for (int32_t i = 0; i < rank; i++)
        own[i] = (qs_dim){dims[i], NULL};
    v->dtype = dtype;
    v->rank = rank;
    v->dims = own;
    int code = alloc_value(c->run, c->plan, c->n, id, bytes, c->error);
    *data = c->plan->address[id];
    return code;
}
