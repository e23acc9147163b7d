/* SPDX-License-Identifier: MIT */
#include "profiling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_shape(const profiling *p, int32_t step, int32_t tensor, text *out) {
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
    if (qsim_run_step_tensor(p->engine.run, step, tensor, dims, &t) || t.rank == 0)
        return;
    text_puts(out, out->size && out->data[out->size - 1] != ' ' ? " [" : "[");
    for (int32_t i = 0; i < t.rank; i++)
        text_printf(out, i ? ",%lld" : "%lld", (long long)dims[i]);
    text_puts(out, "]");
}

/* Is this a vector? Scales and biases are left out of the shapes that are printed. */
static bool is_vector(const profiling *p, int32_t step, int32_t tensor) {
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
    return qsim_run_step_tensor(p->engine.run, step, tensor, dims, &t) || t.rank < 2;
}

static char *shapes_of(const profiling *p, int32_t step, const qsim_step_info *info) {
    text s = {0};
    for (int32_t i = 0; i < info->input_count; i++)
        if (i == 0 || !is_vector(p, step, i))
            add_shape(p, step, i, &s);
    text_puts(&s, s.size ? " -> " : "-> ");
    for (int32_t i = 0; i < info->output_count; i++)
        add_shape(p, step, info->input_count + i, &s);
    return s.data;
}

void profiling_describe(profiling *p) {
    p->step_count = (size_t)qsim_run_step_count(p->engine.run);
    p->steps = tool_alloc(p->step_count, sizeof(*p->steps));
    for (size_t i = 0; i < p->step_count; i++) {
        profiled_step *s = &p->steps[i];
        s->info.struct_size = sizeof(s->info);
        qsim_run_step(p->engine.run, (int32_t)i, &s->info);
        s->shapes = shapes_of(p, (int32_t)i, &s->info);
    }
}

/* ---- limits ---- */

static bool is_integer(const profiling *p, int32_t step) {
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
    return qsim_run_step_tensor(p->engine.run, step, 0, dims, &t) == QSIM_OK &&
           (t.dtype == QSIM_UINT8 || t.dtype == QSIM_INT8);
}

/* Measured bandwidth of the fastest memory that holds `bytes`. */
static double bandwidth(const qsim_machine *m, double bytes) {
    double speed = 0;
    for (int level = 0; level < QSIM_MEMORY_LEVELS; level++) {
        if (!(m->read_gbs[level] > 0))
            continue;
        speed = m->read_gbs[level];
        if ((double)m->read_bytes[level] >= bytes)
            break;
    }
    return speed;
}

/* The longer of computing at the peak rate and moving every byte once. 1 ns = 1 / GHz. */
static double ideal_ns(const profiling *p, int32_t step) {
    const qsim_step_info *i = &p->steps[step].info;
    const double integers = i->isa == QSIM_ISA_AMX ? p->machine.tile_gmacs : p->machine.int8_gmacs;
    const double peak = is_integer(p, step) ? integers : p->machine.float_gmacs;
    const double bytes = (double)(i->bytes_read + i->bytes_written);
    const double speed = bandwidth(&p->machine, bytes);
    if (!(peak > 0) || !(speed > 0))
        return NAN;
    return fmax((double)i->macs / peak, bytes / speed);
}

void profiling_summarize(profiling *p) {
    latency_summarize(&p->plain);
    latency_summarize(&p->timed);
    latency_summarize(&p->deferred);
    for (size_t i = 0; i < p->step_count; i++) {
        profiled_step *s = &p->steps[i];
        latency_summarize(&s->time);
        s->ns = s->time.median;
        s->ideal = ideal_ns(p, (int32_t)i);
    }
}

double profiling_overhead(const profiling *p, double *percent) {
    const double ms = p->timed.min - p->plain.min;
    *percent = p->plain.min > 0 ? 100 * ms / p->plain.min : 0;
    return p->step_count ? 1e6 * ms / (double)p->step_count : 0;
}

void profiling_free(profiling *p) {
    for (size_t i = 0; i < p->step_count; i++) {
        latency_free(&p->steps[i].time);
        free(p->steps[i].shapes);
    }
    free(p->steps);
    free(p->events);
    latency_free(&p->plain);
    latency_free(&p->timed);
    latency_free(&p->deferred);
    inputs_close(&p->inputs);
    engine_close(&p->engine);
}
