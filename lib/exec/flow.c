/* SPDX-License-Identifier: MIT */
/*
 * Executes If, Loop and Scan by running the sessions of their subgraphs on values of the outer run.
 * The next run of a subgraph overwrites its outputs, so states and results are copied.
 */
#include <assert.h>

#include "exec/flow.h"
#include "tensor/shape.h"

int qs_flow_fail(const qs_flow_call *c, int code, const char *what) {
    return qs_node_fail(c->error, code, c->run->session->name, c->n, "%s", what);
}

/* ---- life ---- */

void qs_flow_free(qsim_ctx *ctx, struct qs_flow *f) {
    if (!f)
        return;
    for (int32_t i = 0; f->state && i < f->states; i++)
        qs_free(ctx, f->state[i].data);
    for (int32_t i = 0; f->stack && i < f->stacks; i++)
        qs_free(ctx, f->stack[i].at.data);
    qsim_run_free(f->run[0]);
    qsim_run_free(f->run[1]);
    qs_free(ctx, f->in);
    qs_free(ctx, f->out);
    qs_free(ctx, f->dims);
    qs_free(ctx, f->state);
    qs_free(ctx, f->stack);
    qs_free(ctx, f);
}

static const qs_flow_body *body_of(const qs_flow_call *c, int which) {
    return &c->run->session->bodies[c->node->node].body[which];
}

static int prepare(const qs_flow_call *c, struct qs_flow *f, int32_t states) {
    qsim_ctx *ctx = c->deferred->ctx;
    size_t in = 1, out = 1;
    for (int k = 0; k < 2; k++) {
        const qsim_session *s = body_of(c, k)->session;
        int code = s ? qsim_run_create(s, &f->run[k], c->error) : QSIM_OK;
        if (code)
            return code;
        if (!s)
            continue;
        qs_run_follow(f->run[k], c->run);
        f->in_count[k] = s->graph->input_count;
        f->out_count[k] = s->graph->output_count;
        in = f->in_count[k] > in ? f->in_count[k] : in;
        out = f->out_count[k] > out ? f->out_count[k] : out;
    }
    f->states = states;
    f->stacks = c->n->output_count > states ? c->n->output_count - states : 0;
    f->in = qs_calloc(ctx, in, sizeof(*f->in));
    f->out = qs_calloc(ctx, out, sizeof(*f->out));
    f->dims = qs_calloc(ctx, in, sizeof(*f->dims));
    f->state = qs_calloc(ctx, (size_t)states + 1, sizeof(*f->state));
    f->stack = qs_calloc(ctx, (size_t)f->stacks + 1, sizeof(*f->stack));
    return f->in && f->out && f->dims && f->state && f->stack
               ? QSIM_OK
               : qs_flow_fail(c, QSIM_E_NOMEM, "out of memory");
}

/* If this fails it leaves nothing behind, since the run may be executed again. */
int qs_flow_prepare(qs_flow_call *c, int32_t states) {
    struct qs_flow *f = c->node->flow;
    if (f)
        return QSIM_OK;
    f = qs_calloc(c->deferred->ctx, 1, sizeof(*f));
    int code = f ? prepare(c, f, states) : qs_flow_fail(c, QSIM_E_NOMEM, "out of memory");
    if (code)
        qs_flow_free(c->deferred->ctx, f);
    else
        c->node->flow = f;
    return code;
}

/* ---- values ---- */

qsim_tensor qs_flow_input(const qs_flow_call *c, int32_t index, int64_t *dims) {
    const qs_id id = c->n->inputs[index];
    const qs_value *v = &c->plan->values[id];
    qsim_tensor t = {.dtype = v->dtype, .rank = v->rank, .dims = dims};
    t.data = c->plan->address[id];
    qs_value_size(v, NULL, &t.bytes);
    for (int32_t i = 0; i < v->rank; i++)
        dims[i] = v->dims[i].size;
    return t;
}

static bool is_left_out(const qs_node *n, int32_t index) {
    return index >= n->input_count - n->captured || n->inputs[index] == QS_NONE;
}

int qs_flow_copy(qs_flow_call *c, qs_store *s, const qsim_tensor *t) {
    if (t->bytes + 1 > s->capacity) {
        qs_free(c->deferred->ctx, s->data);
        s->capacity = 0;
        s->data = qs_alloc(c->deferred->ctx, t->bytes + 1, 1);
        if (!s->data)
            return qs_flow_fail(c, QSIM_E_NOMEM, "out of memory for a state");
        s->capacity = t->bytes + 1;
    }
    s->t = *t;
    s->t.data = s->data;
    qs_tensor_dims(t, s->dims);
    s->t.dims = s->dims;
    return qs_copy(&c->run->view, s->data, t->data, t->bytes);
}

int qs_flow_set_output(qs_flow_call *c, int32_t index, const qsim_tensor *t) {
    void *data;
    if (c->n->outputs[index] == QS_NONE)
        return QSIM_OK;
    int code = qs_deferred_output(c, index, t->dtype, t->rank, t->dims, &data);
    return code ? code : qs_copy(&c->run->view, data, t->data, t->bytes);
}

int qs_flow_run(qs_flow_call *c, int which, const qsim_tensor *fed) {
    struct qs_flow *f = c->node->flow;
    const qs_flow_body *body = body_of(c, which);
    const int32_t *source = body->source;
    const qsim_run *top = c->run;
    for (size_t i = 0; i < f->in_count[which]; i++)
        f->in[i] = source[i] < 0 ? fed[-1 - source[i]] : qs_flow_input(c, source[i], f->dims[i]);
    memset(f->out, 0, f->out_count[which] * sizeof(*f->out));
    f->run[which]->seed = c->run->seed;
    /*
     * An odd factor, so that iterations of one loop have distinct turns. Those of nested loops can
     * be equal by chance alone.
     */
    f->run[which]->turn = (c->run->turn + c->iteration) * UINT64_C(0x9e3779b97f4a7c15);
    int code = qsim_run_execute(f->run[which], f->in, f->in_count[which], f->out,
                                f->out_count[which], c->error);
    while (top->outer)
        top = top->outer;
    assert(body->watched == 0 || top->observe); /* only calibration compiles such subgraphs */
    for (size_t i = f->out_count[which] - (size_t)body->watched; i < f->out_count[which] && !code;
         i++)
        code = top->observe(top->observe_user, body->session->output_names[i], &f->out[i], false,
                            c->error);
    return code;
}

/* ---- stacks ---- */

int qs_flow_push(qs_flow_call *c, qs_stack *s, const qsim_tensor *t) {
    qs_store *at = &s->at;
    const int64_t before = s->count && s->joins ? at->dims[0] : 0;
    size_t need;
    bool same = s->count == 0 || (at->t.dtype == t->dtype && at->t.rank == t->rank);
    for (int32_t i = s->joins; s->count && same && i < t->rank; i++)
        same = at->dims[i] == t->dims[i];
    if (!same)
        return qs_flow_fail(
            c, QSIM_E_SHAPE,
            "an output of the body changes its sizes from one iteration to the next");
    s->used = s->count ? s->used : 0;
    if (!qs_add(s->used, t->bytes, &need) || need >= QS_ARENA_LIMIT)
        return qs_flow_fail(c, QSIM_E_LIMIT, "the results of all iterations are too large");
    if (!qs_grow(c->deferred->ctx, &at->data, &at->capacity, need, 1))
        return qs_flow_fail(c, QSIM_E_NOMEM, "out of memory for the results of all iterations");
    const int code = qs_copy(&c->run->view, (uint8_t *)at->data + s->used, t->data, t->bytes);
    s->used = need;
    for (int32_t i = 0; i < t->rank; i++)
        at->dims[i] = t->dims[i] + (i == 0 ? before : 0);
    at->t = (qsim_tensor){.dtype = t->dtype, .rank = t->rank, .dims = at->dims};
    s->bytes = t->bytes;
    s->count++;
    return code;
}

void qs_flow_describe(const qs_flow_call *c, size_t output, qs_stack *s) {
    const qs_graph *g = body_of(c, 0)->session->graph;
    const qs_value *v = &g->values[g->outputs[output]];
    s->bytes = 0;
    s->at.t =
        (qsim_tensor){.dtype = v->dtype, .rank = v->rank < 0 ? 0 : v->rank, .dims = s->at.dims};
    for (int32_t i = 0; i < s->at.t.rank; i++)
        s->at.dims[i] = v->dims[i].size < 0 ? 0 : v->dims[i].size;
}

void qs_flow_unstack(const qsim_ctx *ctx, const qs_stack *s, int32_t axis, bool reverse, void *to) {
    size_t outer = 1;
    for (int32_t i = 0; i < axis; i++)
        outer *= (size_t)s->at.dims[i];
    if (s->bytes == 0 || outer == 0)
        return;
    const size_t bytes = s->bytes / outer, step = bytes * (size_t)s->count;
    for (int64_t t = 0; t < s->count; t++) {
        const uint8_t *x = (const uint8_t *)s->at.data + (size_t)t * s->bytes;
        uint8_t *y = (uint8_t *)to + (size_t)(reverse ? s->count - 1 - t : t) * bytes;
        qs_copy_many_rows(ctx, x, (ptrdiff_t)bytes, y, (ptrdiff_t)step, bytes, outer);
    }
}

/* ---- If ---- */

static int execute_if(qs_flow_call *c) {
    const uint8_t *condition = c->plan->address[c->n->inputs[0]];
    size_t elements = 0;
    int code = qs_flow_prepare(c, c->n->output_count);
    qs_value_size(&c->plan->values[c->n->inputs[0]], &elements, NULL);
    if (!code && elements != 1)
        code = qs_flow_fail(c, QSIM_E_SHAPE, "the condition is not a single value");
    const int which = !code && *condition ? 0 : 1;
    if (!code)
        code = qs_flow_run(c, which, &(qsim_tensor){0});
    for (int32_t i = 0; i < c->n->output_count && !code; i++)
        code = qs_flow_set_output(c, i, &c->node->flow->out[i]);
    return code;
}

/* ---- Loop ---- */

/* Most iterations of a Loop. */
#define LOOP_LIMIT 1000000

/* Reads the trip count and the condition that a Loop begins with. */
static int begin_loop(const qs_flow_call *c, int64_t *trips, uint8_t *go) {
    *trips = INT64_MAX;
    *go = 1;
    for (int32_t i = 0; i < 2; i++) {
        const size_t bytes = i ? sizeof(*go) : sizeof(*trips);
        int64_t dims[QSIM_MAX_RANK];
        if (is_left_out(c->n, i))
            continue;
        const qsim_tensor t = qs_flow_input(c, i, dims);
        if (t.bytes != bytes)
            return qs_flow_fail(c, QSIM_E_SHAPE,
                                i ? "the condition is not a single value"
                                  : "the trip count is not a single value");
        memcpy(i ? (void *)go : (void *)trips, t.data, bytes);
    }
    return QSIM_OK;
}

/* Copies the outputs of the body: condition, states, results. */
static int store_results(qs_flow_call *c, uint8_t *go) {
    struct qs_flow *f = c->node->flow;
    int code = QSIM_OK;
    if (f->out[0].bytes < 1)
        return qs_flow_fail(c, QSIM_E_SHAPE, "the body gives no condition");
    *go = *(const uint8_t *)f->out[0].data;
    for (int32_t i = 0; i < f->states && !code; i++)
        code = qs_flow_copy(c, &f->state[i], &f->out[1 + i]);
    for (int32_t i = 0; i < f->stacks && !code; i++)
        code = qs_flow_push(c, &f->stack[i], &f->out[1 + f->states + i]);
    return code;
}

/* A tensor of one element for input `index` of the body, which may declare axes of size 1. */
static qsim_tensor scalar(const qs_flow_call *c, size_t index, int32_t dtype, void *data,
                          size_t bytes) {
    static const int64_t ones[QSIM_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const qs_graph *g = body_of(c, 0)->session->graph;
    const int32_t rank = g->values[g->inputs[index]].rank;
    return (qsim_tensor){dtype, rank < 0 ? 0 : rank, ones, data, bytes};
}

/*
 * Makes output `index` of the results of all iterations, along a new first axis unless they are
 * joined.
 */
static int set_scan_output(qs_flow_call *c, int32_t index, size_t body_output, qs_stack *s) {
    int64_t dims[QSIM_MAX_RANK];
    void *data;
    if (c->n->outputs[index] == QS_NONE)
        return QSIM_OK;
    if (s->count == 0)
        qs_flow_describe(c, body_output, s);
    if (s->joins) {
        s->at.t.data = s->at.data;
        s->at.t.bytes = s->count ? s->used : 0;
        s->at.dims[0] = s->count ? s->at.dims[0] : 0;
        return qs_flow_set_output(c, index, &s->at.t);
    }
    const int32_t rank = s->at.t.rank + 1;
    if (rank > QSIM_MAX_RANK)
        return qs_flow_fail(c, QSIM_E_LIMIT, "the results of all iterations have too many axes");
    dims[0] = s->count;
    qs_tensor_dims(&s->at.t, dims + 1);
    int code = qs_deferred_output(c, index, s->at.t.dtype, rank, dims, &data);
    if (!code)
        qs_flow_unstack(&c->run->view, s, 0, false, data);
    return code;
}

static int execute_loop(qs_flow_call *c) {
    const int32_t states = c->n->input_count - c->n->captured - 2;
    int64_t trips = 0, dims[QSIM_MAX_RANK];
    uint8_t go = 0;
    int code = qs_flow_prepare(c, states);
    struct qs_flow *f = c->node->flow;
    qsim_tensor *fed = code ? NULL : qs_calloc(c->deferred->ctx, (size_t)states + 2, sizeof(*fed));
    if (!code && !fed)
        code = qs_flow_fail(c, QSIM_E_NOMEM, "out of memory");
    assert(code || fed);
    for (int32_t i = 0; i < states && !code; i++) {
        const qsim_tensor t = qs_flow_input(c, i + 2, dims);
        code = qs_flow_copy(c, &f->state[i], &t);
    }
    for (int32_t i = 0; !code && i < f->stacks; i++) {
        f->stack[i].count = 0;
        f->stack[i].joins = qs_node_entry(c->n, "joins", i) != 0;
    }
    if (!code)
        code = begin_loop(c, &trips, &go);
    for (int64_t t = 0; !code && t < trips && go; t++) {
        if (qs_stop_code(&c->run->view))
            code = qs_stop_code(&c->run->view);
        else if (t == LOOP_LIMIT)
            code = qs_flow_fail(c, QSIM_E_LIMIT, "the loop has not ended after 1000000 iterations");
        if (code)
            break;
        c->iteration = (uint64_t)t;
        fed[0] = scalar(c, 0, QSIM_INT64, &t, sizeof(t));
        fed[1] = scalar(c, 1, QSIM_BOOL, &go, 1);
        for (int32_t i = 0; i < states; i++)
            fed[i + 2] = f->state[i].t;
        code = qs_flow_run(c, 0, fed);
        if (!code)
            code = store_results(c, &go);
    }
    qs_free(c->deferred->ctx, fed);
    for (int32_t i = 0; i < c->n->output_count && !code; i++)
        code = i < states ? qs_flow_set_output(c, i, &f->state[i].t)
                          : set_scan_output(c, i, (size_t)i + 1, &f->stack[i - states]);
    return code;
}

int qs_flow_execute(qs_flow_call *c) {
    if (qs_node_subgraph(c->n, "then_branch"))
        return execute_if(c);
    return qs_node_attr(c->n, "num_scan_inputs") ? qs_flow_scan(c) : execute_loop(c);
}
