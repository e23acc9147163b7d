/* SPDX-License-Identifier: MIT */
/*
 * Trace events in the format of Chrome and Perfetto: an array of complete events, cat Session or
 * Node, with the names of ONNX Runtime's profiles, so that scripts for those work.
 */
#include <string.h>
#include <unistd.h>

#include "profiling.h"

static void begin_event(const profiling *p, json *j, const char *cat, const char *name,
                        uint64_t start, uint64_t duration) {
    json_line(j, NULL);
    json_string(j, "cat", cat);
    json_int(j, "pid", (int64_t)getpid());
    json_int(j, "tid", (int64_t)getpid());
    json_micros(j, "dur", duration);
    json_micros(j, "ts", start > p->origin ? start - p->origin : 0);
    json_string(j, "ph", "X");
    json_string(j, "name", name);
    json_object(j, "args");
}

static void end_event(json *j) {
    json_end(j);
    json_end(j);
}

static void session_event(const profiling *p, json *j, const char *name, uint64_t start,
                          uint64_t end) {
    if (end < start)
        return; /* not reached */
    begin_event(p, j, "Session", name, start, end - start);
    end_event(j);
}

/* [{"float": [1, 3, 8, 8]}, ...] for tensors from..to of a step; omitted ones are skipped. */
static void tensors(const profiling *p, json *j, const char *key, size_t step, int32_t from,
                    int32_t to) {
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
    json_array(j, key);
    for (int32_t i = from; i < to; i++) {
        if (qsim_run_step_tensor(p->engine.run, (int32_t)step, i, dims, &t) ||
            t.dtype == QSIM_UNDEFINED)
            continue;
        json_object(j, NULL);
        json_array(j, t.dtype == QSIM_FLOAT ? "float" : qsim_dtype_name(t.dtype));
        for (int32_t k = 0; k < t.rank; k++)
            json_int(j, NULL, dims[k]);
        json_end(j);
        json_end(j);
    }
    json_end(j);
}

static void node_event(const profiling *p, json *j, const qsim_profile_event *e) {
    const qsim_step_info *s = &p->steps[e->step].info;
    const char *node = *s->node ? s->node : s->op_type;
    text name = {0}, index = {0};
    text_printf(&name, "%s_kernel_time", node);
    text_printf(&index, "%d", (int)e->step);
    begin_event(p, j, "Node", name.data, e->start_ns, e->duration_ns);
    json_string(j, "op_name", s->op_type);
    json_string(j, "op_type", s->op_type);
    json_string(j, "node", node);
    json_string(j, "provider", "CPUExecutionProvider");
    json_string(j, "node_index", index.data);
    json_string(j, "kernel", s->kernel);
    json_int(j, "macs", s->macs);
    json_int(j, "bytes_read", s->bytes_read);
    json_int(j, "bytes_written", s->bytes_written);
    tensors(p, j, "input_type_shape", (size_t)e->step, 0, s->input_count);
    tensors(p, j, "output_type_shape", (size_t)e->step, s->input_count,
            s->input_count + s->output_count);
    json_int(j, "run", e->execution);
    end_event(j);
    text_free(&name);
    text_free(&index);
}

void trace_write(const profiling *p, json *j) {
    json_array(j, NULL);
    session_event(p, j, "model_loading_uri", p->origin, p->loaded);
    session_event(p, j, "session_initialization", p->loaded, p->ready);
    for (size_t i = 0; i < p->event_count; i++) {
        const qsim_profile_event *e = &p->events[i];
        if (e->step < 0)
            session_event(p, j, e->step == QSIM_STEP_DEFERRED ? "deferred_nodes" : "model_run",
                          e->start_ns, e->start_ns + e->duration_ns);
        else
            node_event(p, j, e);
    }
    json_end(j);
}
