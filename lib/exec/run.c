/* SPDX-License-Identifier: MIT */
/* Creates and executes runs. */
#include "exec/deferred.h"
#include "exec/run.h"

/* ---- plans of a run ---- */

static bool plan_fits(const qs_plan *plan, const qsim_tensor *inputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const qs_port *p = &plan->inputs[i];
        if (p->dtype != inputs[i].dtype || p->rank != inputs[i].rank)
            return false;
        for (int32_t k = 0; k < p->rank; k++)
            if (p->dims[k] != inputs[i].dims[k])
                return false;
        if (p->fixed && p->bytes &&
            (!inputs[i].data || inputs[i].bytes < p->bytes ||
             memcmp(p->fixed, inputs[i].data, p->bytes) != 0))
            return false;
    }
    return true;
}

/* The slot for a new plan: an empty one, or that of the plan unused longest. */
QS_COLD static size_t choose_slot(const qsim_run *r) {
    size_t best = 0;
    for (size_t i = 0; i < QS_PLANS; i++) {
        if (!r->plans[i])
            return i;
        if (r->plans[i]->used < r->plans[best]->used)
            best = i;
    }
    return best;
}

/*
 * Grows the arena, which all plans share: only one executes at a time. An arena that grows again
 * gets more than is needed, if there is more: sizes that grow step by step, as those of a cache of
 * keys and values, then need new memory seldom.
 */
QS_COLD static int grow_arena(qsim_run *r, size_t bytes, qsim_error *error) {
    if (bytes <= r->capacity)
        return QSIM_OK;
    size_t size = r->capacity ? bytes + bytes / 4 : bytes;
    uint8_t *p = qs_alloc(r->session->ctx, size, 1);
    if (!p && size > bytes)
        p = qs_alloc(r->session->ctx, size = bytes, 1);
    if (!p)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory for %zu bytes of activations",
                       r->session->name, bytes);
#ifdef QS_CLEAR_TENSORS
    /*
     * For tools that track uninitialized memory: kernels read past the end of tensors and discard
     * the elements or multiply them by zero, which these tools report.
     */
    memset(p, 0, size);
#endif
    qs_free(r->session->ctx, r->arena);
    r->arena = p;
    r->capacity = size;
    for (size_t i = 0; i < QS_PLANS; i++)
        if (r->plans[i])
            qs_plan_rebase(r->session, r->plans[i], p);
    return QSIM_OK;
}

QS_COLD static int add_plan(qsim_run *r, const qsim_tensor *inputs, const qs_plan *last,
                            qsim_error *error) {
    qs_plan *plan;
    int code = qs_plan_create(r->session, &r->view, inputs, r->capacity, last, &plan, error);
    if (code)
        return code;
    code = grow_arena(r, plan->arena_bytes, error);
    if (code) {
        qs_plan_free(r->session->ctx, plan);
        return code;
    }
    size_t at = choose_slot(r);
    if (r->plan == r->plans[at])
        r->plan = NULL;
    qs_plan_free(r->session->ctx, r->plans[at]);
    r->plans[at] = plan;
    qs_plan_rebase(r->session, plan, r->arena);
    r->plan = plan;
    return QSIM_OK;
}

static int check_count(const qsim_run *r, const qsim_tensor *inputs, size_t count,
                       qsim_error *error) {
    size_t want = r->session->graph->input_count;
    if (count != want || (want && !inputs))
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: %zu inputs are given, the model takes %zu",
                       r->session->name, inputs ? count : 0, want);
    for (size_t i = 0; i < count; i++)
        if (inputs[i].rank > 0 && !inputs[i].dims)
            return qs_fail(error, QSIM_E_ARGUMENT, "%s: input '%s' has no sizes", r->session->name,
                           qsim_session_input_name(r->session, (int32_t)i));
    return QSIM_OK;
}

/* Sets r->plan to the plan for these inputs, which is made if there is none. */
static int choose_plan(qsim_run *r, const qsim_tensor *inputs, size_t count, qsim_error *error) {
    int code = check_count(r, inputs, count, error);
    if (code)
        return code;
    if (!r->plan || !plan_fits(r->plan, inputs, count)) {
        const qs_plan *last = r->plan;
        r->plan = NULL;
        for (size_t i = 0; i < QS_PLANS && !r->plan; i++)
            if (r->plans[i] && plan_fits(r->plans[i], inputs, count))
                r->plan = r->plans[i];
        if (!r->plan && (code = add_plan(r, inputs, last, error)))
            return code;
    }
    r->plan->used = ++r->clock;
    return QSIM_OK;
}

/* ---- life ---- */

/* Makes the plan if all sizes are fixed, since there is only one then. */
static int plan_fixed(qsim_run *r, qsim_error *error) {
    const qs_graph *g = r->session->graph;
    int code = QSIM_E_NOMEM;
    qs_arena a;
    if (r->session->any_by_value)
        return QSIM_OK;
    qs_arena_init(&a, r->session->ctx);
    qsim_tensor *t = qs_arena_alloc(&a, g->input_count + 1, sizeof(*t));
    for (size_t i = 0; t && i < g->input_count; i++) {
        const qs_value *v = &g->values[g->inputs[i]];
        if (!qs_value_size(v, NULL, NULL)) {
            code = QSIM_OK;
            goto done;
        }
        int64_t *dims = qs_arena_alloc(&a, (size_t)v->rank + 1, sizeof(*dims));
        if (!dims)
            goto done;
        for (int32_t k = 0; k < v->rank; k++)
            dims[k] = v->dims[k].size;
        t[i] = (qsim_tensor){.dtype = v->dtype, .rank = v->rank, .dims = dims};
    }
    if (t)
        code = choose_plan(r, t, g->input_count, error);
done:
    qs_arena_free(&a);
    if (code == QSIM_E_NOMEM)
        qs_fail(error, code, "%s: out of memory for a run", r->session->name);
    return qs_leave(r->session->ctx, code, error);
}

QS_COLD int qsim_run_create(const qsim_session *session, qsim_run **out, qsim_error *error) {
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!session || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "run: no session or no place for the result");
    qsim_run *r = qs_calloc(session->ctx, 1, sizeof(*r));
    if (!r)
        return qs_fail(error, QSIM_E_NOMEM, "%s: out of memory for a run", session->name);
    r->session = qs_session_hold(session);
    atomic_init(&r->stop.code, QSIM_OK);
    r->stop.outer = session->ctx->stop;
    r->seed = session->seed;
    qs_ctx_view(session->ctx, &r->stop, &r->view);
    int code = plan_fixed(r, error);
    if (code) {
        qsim_run_free(r);
        return code;
    }
    *out = r;
    return QSIM_OK;
}

void qsim_run_free(qsim_run *run) {
    if (!run)
        return;
    qsim_session *s = run->session;
    for (size_t i = 0; i < QS_PLANS; i++)
        qs_plan_free(s->ctx, run->plans[i]);
    qs_free(s->ctx, run->arena);
    qs_free(s->ctx, run);
    qsim_session_free(s);
}

/* ---- execution ---- */

static void readdress(qs_plan *plan, const qs_port *port, const void *data) {
    for (int32_t i = 0; i < port->shared_count; i++)
        plan->address[port->shared[i].value] = (void *)((uintptr_t)data + port->shared[i].from);
}

static int set_inputs(const qsim_run *r, const qsim_tensor *inputs, qsim_error *error) {
    qs_plan *plan = r->plan;
    size_t count = r->session->graph->input_count;
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const qs_port *p = &plan->inputs[i];
        size_t align = (size_t)qsim_dtype_bits(p->dtype) / 8;
        const char *name = qsim_session_input_name(r->session, (int32_t)i);
        if (p->bytes && !inputs[i].data)
            return qs_fail(error, QSIM_E_ARGUMENT, "%s: input '%s' has no data", r->session->name,
                           name);
        if (inputs[i].bytes < p->bytes)
            return qs_fail(error, QSIM_E_ARGUMENT,
                           "%s: input '%s' has %zu bytes, its shape needs "
                           "%zu",
                           r->session->name, name, inputs[i].bytes, p->bytes);
        if (align > 1 && (uintptr_t)inputs[i].data % align)
            return qs_fail(error, QSIM_E_ARGUMENT, "%s: input '%s' is not aligned to its elements",
                           r->session->name, name);
        if (p->in_place)
            readdress(plan, p, inputs[i].data);
        else if (p->bytes && !p->fixed)
            code = qs_copy(&r->view, r->arena + p->offset, inputs[i].data, p->bytes);
    }
    return code;
}

static bool fits_output(const qsim_tensor *output, const qs_port *p) {
    size_t align = (size_t)qsim_dtype_bits(p->dtype) / 8;
    return output->data && output->bytes >= p->bytes &&
           (align <= 1 || (uintptr_t)output->data % align == 0);
}

/*
 * Whether `data` is in the run's arena: the caller may pass the views that the last execution
 * returned, and the present plan may have other offsets.
 */
static bool is_ours(const qsim_run *r, const void *data) {
    return (uintptr_t)data >= (uintptr_t)r->arena &&
           (uintptr_t)data < (uintptr_t)r->arena + r->capacity;
}

/* The same for a deferred node's output, which has memory of its own. */
static bool is_deferred_output(const qsim_run *r, size_t output, const void *data) {
    bool ours = false;
    for (size_t i = 0; i < QS_PLANS && data; i++) {
        const qs_plan *plan = r->plans[i];
        const qs_port *p = plan ? &plan->outputs[output] : NULL;
        ours = ours || (p && p->found_dims && plan->address[p->value] == data);
    }
    return ours;
}

static void drop_own_outputs(const qsim_run *r, qsim_tensor *outputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (is_ours(r, outputs[i].data) || is_deferred_output(r, i, outputs[i].data))
            outputs[i].data = NULL;
}

static int set_outputs(const qsim_run *r, const qsim_tensor *outputs, qsim_error *error) {
    size_t count = r->session->graph->output_count;
    for (size_t i = 0; i < count; i++) {
        const qs_port *p = &r->plan->outputs[i];
        if (p->found_dims)
            continue;
        if (outputs[i].data && !fits_output(&outputs[i], p))
            return qs_fail(error, QSIM_E_ARGUMENT,
                           "%s: output '%s' has %zu bytes, %zu aligned ones are needed",
                           r->session->name, r->session->output_names[i], outputs[i].bytes,
                           p->bytes);
        if (p->in_place)
            readdress(r->plan, p, outputs[i].data ? outputs[i].data : r->arena + p->offset);
    }
    return QSIM_OK;
}

/* Returns an output of a deferred node, whose sizes are known now. */
static int return_deferred_output(const qsim_run *r, size_t index, qsim_tensor *output,
                                  qsim_error *error) {
    const qs_port *p = &r->plan->outputs[index];
    const qs_value *v = &r->plan->values[p->value];
    void *data = r->plan->address[p->value];
    size_t bytes = 0;
    qs_value_size(v, NULL, &bytes);
    for (int32_t i = 0; i < v->rank; i++)
        p->found_dims[i] = v->dims[i].size;
    if (output->data && output->bytes < bytes)
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: output '%s' has %zu bytes, %zu are needed",
                       r->session->name, r->session->output_names[index], output->bytes, bytes);
    int code = QSIM_OK;
    if (output->data && bytes) {
        code = qs_copy(&r->view, output->data, data, bytes);
        data = output->data;
    }
    *output = (qsim_tensor){v->dtype, v->rank, p->found_dims, data, bytes};
    return code;
}

static int return_outputs(const qsim_run *r, qsim_tensor *outputs, qsim_error *error) {
    size_t count = r->session->graph->output_count;
    int code = QSIM_OK;
    for (size_t i = 0; i < count && !code; i++) {
        const qs_port *p = &r->plan->outputs[i];
        if (p->found_dims) {
            code = return_deferred_output(r, i, &outputs[i], error);
            continue;
        }
        const void *from = r->plan->address[p->value];
        if (!outputs[i].data)
            outputs[i].data = r->arena + p->offset;
        if (outputs[i].data != from && p->bytes)
            code = qs_copy(&r->view, outputs[i].data, from, p->bytes);
        outputs[i].dtype = p->dtype;
        outputs[i].rank = p->rank;
        outputs[i].dims = p->dims;
        outputs[i].bytes = p->bytes;
    }
    return code;
}

void qsim_run_set_seed(qsim_run *run, uint64_t seed) {
    if (run)
        run->seed = seed;
}

void qs_run_follow(qsim_run *run, qsim_run *outer) {
    run->outer = outer;
    run->stop.outer = &outer->stop;
}

static int execute_steps(qsim_run *r, qsim_error *error) {
    qs_plan *plan = r->plan;
    qs_fault fault = {0};
    qs_frame frame = {.ctx = &r->view,
                      .address = plan->address,
                      .fault = &fault,
                      .seed = r->seed,
                      .turn = r->turn};
    const bool timing = r->timing || r->profile;
    const uint64_t began = timing ? qs_plan_time(plan) : 0;
    int code = r->observe ? qs_run_show(r, -1, error) : QSIM_OK;
    for (size_t i = 0; i < plan->step_count && !code; i++) {
        const qs_step *step = &plan->steps[i];
        if (qs_stopped(&r->view))
            break;
        frame.scratch = r->arena + plan->scratch[i];
        step->run(step, &frame);
        if (timing) {
            plan->ended[i] = qs_clock_ticks() - began;
            plan->timed = i + 1;
        }
        if (fault.code && !qs_stopped(&r->view))
            return qs_fault_report(&fault, r->session->graph, step->node, r->session->name, error);
        if (r->observe)
            code = qs_run_show(r, (int32_t)i, error);
    }
    return code ? code : qs_stop_code(&r->view);
}

/* Executes the steps of r->plan in the library's floating-point mode. */
static int run_plan(qsim_run *run, qsim_error *error) {
    qsim_ctx *ctx = run->session->ctx;
    uint64_t fp = qs_fp_enter();
    qs_team_begin(ctx, &run->plan->team);
    int code = execute_steps(run, error);
    qs_team_end(ctx, &run->plan->team);
    qs_fp_restore(fp);
    return code;
}

/* Ends an execution. One that was cancelled or timed out leaves the run ready for the next. */
static int finish_execution(qsim_run *run, int code, qsim_error *error) {
    if (code != QSIM_E_CANCELLED && code != QSIM_E_TIME)
        return qs_leave(run->session->ctx, code, error);
    atomic_store(&run->stop.code, QSIM_OK);
    if (code == QSIM_E_TIME)
        return qs_go_on(run->session->ctx, run->session->name, error);
    return qs_fail(error, code, "%s: the run was cancelled", run->session->name);
}

int qsim_run_reserve(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                     qsim_error *error) {
    qs_error_clear(error);
    if (!run)
        return qs_fail(error, QSIM_E_ARGUMENT, "reserve: no run");
    return finish_execution(run, choose_plan(run, inputs, input_count, error), error);
}

int qs_run_observe(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                   qs_observe_fn observe, void *user, qsim_error *error) {
    int code = choose_plan(run, inputs, input_count, error);
    if (!code)
        code = set_inputs(run, inputs, error);
    if (code)
        return finish_execution(run, code, error);
    run->observe = observe;
    run->observe_user = user;
    run->shown = 0;
    code = run_plan(run, error);
    if (!code && run->plan->deferred) {
        code = qs_deferred_execute(run, run->plan, error);
        if (!code)
            code = qs_run_show(run, (int32_t)run->plan->step_count, error);
    }
    run->observe = NULL;
    return finish_execution(run, code, error);
}

int qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                     qsim_tensor *outputs, size_t output_count, qsim_error *error) {
    qs_error_clear(error);
    if (!run)
        return qs_fail(error, QSIM_E_ARGUMENT, "execute: no run");
    const qsim_session *s = run->session;
    if (output_count != s->graph->output_count || (output_count && !outputs))
        return qs_fail(error, QSIM_E_ARGUMENT, "%s: %zu outputs are asked for, the session has %zu",
                       s->name, outputs ? output_count : 0, s->graph->output_count);
    drop_own_outputs(run, outputs, output_count);
    const uint64_t began = run->profile ? qs_clock_ns() : 0;
    int code = choose_plan(run, inputs, input_count, error);
    if (!code)
        code = set_inputs(run, inputs, error);
    if (!code)
        code = set_outputs(run, outputs, error);
    if (code)
        return finish_execution(run, code, error);
    code = run_plan(run, error);
    if (run->timing || run->profile)
        qs_plan_timed(run->plan);
    if (!code && run->plan->deferred)
        code = qs_deferred_execute(run, run->plan, error);
    if (!code)
        code = return_outputs(run, outputs, error);
    code = finish_execution(run, code, error);
    if (run->profile)
        qs_run_report(run, began);
    return code;
}

void qsim_run_cancel(qsim_run *run) {
    if (run)
        atomic_store(&run->stop.code, QSIM_E_CANCELLED);
}

/* ---- inspection ---- */

size_t qsim_run_arena_bytes(const qsim_run *run) {
    return run && run->plan ? run->plan->arena_bytes : 0;
}
