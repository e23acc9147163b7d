/* SPDX-License-Identifier: MIT */
/* Step information and profiles of a run. The times are taken where steps run (run.c). */
#include "exec/run.h"

void qsim_run_set_timing(qsim_run *run, int32_t on) {
    if (run)
        run->timing = on != 0;
}

int32_t qsim_run_step_count(const qsim_run *run) {
    return run && run->plan ? (int32_t)run->plan->step_count : 0;
}

/* ---- time ---- */

/*
 * Reads the time and the CPU's counter. If the thread is interrupted between them they do not
 * match, so a reading that takes much longer than the shortest one is repeated, at most twice.
 */
static void read_clocks(qs_plan *plan, uint64_t *ns, uint64_t *ticks) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3 && least / 2 > plan->clock_ticks; i++) {
        const uint64_t before = qs_clock_ticks(), at = qs_clock_ns();
        const uint64_t taken = qs_clock_ticks() - before;
        if (taken >= least)
            continue;
        least = taken;
        *ns = at;
        *ticks = before + taken / 2;
    }
    if (plan->clock_ticks == 0 || least < plan->clock_ticks)
        plan->clock_ticks = least;
}

uint64_t qs_plan_time(qs_plan *plan) {
    plan->timed = 0;
    read_clocks(plan, &plan->began_ns, &plan->began_ticks);
    return plan->began_ticks;
}

void qs_plan_timed(qs_plan *plan) {
    uint64_t ns = plan->began_ns, ticks = plan->began_ticks;
    read_clocks(plan, &ns, &ticks);
    ns -= plan->began_ns;
    ticks -= plan->began_ticks;
    plan->tick_ns = ticks ? qs_real(ns) / qs_real(ticks) : 0;
    for (size_t i = 0; i < plan->timed; i++)
        plan->ended[i] = (uint64_t)(plan->tick_ns * qs_real(plan->ended[i]));
}

/* When step i began, in nanoseconds after the first; of steps that were not executed, the end. */
static uint64_t began_of(const qs_plan *plan, size_t i) {
    const size_t before = i < plan->timed ? i : plan->timed;
    return before ? plan->ended[before - 1] : 0;
}

/* ---- steps ---- */

static const qs_node *step_node(const qsim_run *run, const qs_step *step) {
    return &run->session->graph->nodes[step->node];
}

static int64_t value_bytes(const qs_plan *plan, qs_id value) {
    size_t bytes;
    return value != QS_NONE && qs_value_size(&plan->values[value], NULL, &bytes) ? (int64_t)bytes
                                                                                 : 0;
}

/* Of ten thousand inputs not each one is compared with all before it. */
static bool seen_before(const qs_id *ids, int32_t index) {
    for (int32_t i = index > 64 ? index - 64 : 0; i < index; i++)
        if (ids[i] == ids[index])
            return true;
    return false;
}

static int64_t bytes_of(const qs_plan *plan, const qs_id *ids, int32_t count) {
    int64_t sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += seen_before(ids, i) ? 0 : value_bytes(plan, ids[i]);
    return sum;
}

static int32_t isa_of(const qsim_run *run, const qs_step *step) {
    const int32_t isa = run->session->ctx->isa;
    return isa == QSIM_ISA_AMX && !step->tiles ? QSIM_ISA_AVX512VNNI : isa;
}

int qsim_run_step(const qsim_run *run, int32_t index, qsim_step_info *info) {
    qsim_step_info own = {0};
    if (index < 0 || index >= qsim_run_step_count(run))
        return QSIM_E_ARGUMENT;
    const qs_plan *plan = run->plan;
    const qs_step *step = &plan->steps[index];
    const qs_node *n = step_node(run, step);
    own.node = n->name;
    own.op_type = n->op_type;
    own.kernel = step->kernel ? step->kernel : qs_op_kernel(n->op);
    own.macs = step->macs;
    own.start_ns = plan->began_ns + began_of(plan, (size_t)index);
    own.nanoseconds = plan->began_ns + began_of(plan, (size_t)index + 1) - own.start_ns;
    own.bytes_read = bytes_of(plan, step->in, n->input_count);
    own.bytes_written = bytes_of(plan, step->out, n->output_count);
    own.input_count = n->input_count;
    own.output_count = n->output_count;
    own.isa = isa_of(run, step);
    return qs_give(info, &own, sizeof(own));
}

int qsim_run_step_tensor(const qsim_run *run, int32_t index, int32_t tensor, int64_t *dims,
                         qsim_tensor *out) {
    if (index < 0 || index >= qsim_run_step_count(run) || tensor < 0 || !dims || !out)
        return QSIM_E_ARGUMENT;
    const qs_step *step = &run->plan->steps[index];
    const qs_node *n = step_node(run, step);
    if (tensor >= n->input_count + n->output_count)
        return QSIM_E_ARGUMENT;
    const qs_id id =
        tensor < n->input_count ? step->in[tensor] : step->out[tensor - n->input_count];
    *out = (qsim_tensor){.dtype = QSIM_UNDEFINED, .dims = dims};
    if (id == QS_NONE)
        return QSIM_OK;
    const qs_value *v = &run->plan->values[id];
    out->dtype = v->dtype;
    out->rank = v->rank > 0 ? v->rank : 0;
    for (int32_t i = 0; i < out->rank; i++)
        dims[i] = v->dims[i].size;
    out->bytes = (size_t)value_bytes(run->plan, id);
    return QSIM_OK;
}

/* ---- events ---- */

int qsim_run_profile_begin(qsim_run *run, qsim_profile_fn event, void *user) {
    if (!run || !event)
        return QSIM_E_ARGUMENT;
    if (run->profile)
        return QSIM_E_STATE;
    run->profile = event;
    run->profile_user = user;
    run->executions = 0;
    return QSIM_OK;
}

int64_t qsim_run_profile_end(qsim_run *run) {
    if (!run || !run->profile)
        return QSIM_E_STATE;
    run->profile = NULL;
    return run->executions;
}

void qs_run_report(qsim_run *run, uint64_t began) {
    const qs_plan *plan = run->plan;
    const uint64_t ended = qs_clock_ns();
    qsim_profile_event e = {.struct_size = sizeof(e),
                            .execution = run->executions++,
                            .start_ns = began,
                            .duration_ns = ended - began,
                            .step = -1};
    run->profile(run->profile_user, &e);
    e.start_ns = plan->began_ns;
    const size_t steps = plan->timed, count = steps + (plan->deferred && steps == plan->step_count);
    for (size_t i = 0; i < count && run->profile; i++) {
        e.step = i < steps ? (int32_t)i : QSIM_STEP_DEFERRED;
        e.duration_ns = (i < steps ? plan->began_ns + plan->ended[i] : ended) - e.start_ns;
        run->profile(run->profile_user, &e);
        e.start_ns += e.duration_ns;
    }
}
