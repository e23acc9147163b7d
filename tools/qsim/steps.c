/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include <string.h>

#include "common/columns.h"

int steps_open(const tool *t, const char *file, const qsim_model *m, steps *s) {
    qsim_error error;
    memset(s, 0, sizeof(*s));
    int code = engine_of_model(t, file, m, NULL, 0, &s->engine);
    if (code == EXIT_OK)
        code = inputs_open(t, m, true, &s->inputs);
    if (code == EXIT_OK &&
        qsim_run_reserve(s->engine.run, s->inputs.tensors, s->inputs.count, &error))
        code = tool_error(t, file, &error);
    return code;
}

void steps_close(steps *s) {
    inputs_close(&s->inputs);
    engine_close(&s->engine);
}

static bool step_at(const qsim_run *run, int32_t i, qsim_step_info *info) {
    *info = (qsim_step_info){.struct_size = sizeof(*info)};
    return qsim_run_step(run, i, info) == QSIM_OK;
}

void steps_print(const qsim_run *run) {
    table t = {.columns = "rllll"};
    const char *const heading[] = {"#", "operator", "kernel", "instructions", "node"};
    qsim_step_info info;
    for (size_t i = 0; i < 5; i++)
        table_cell(&t, "%s", heading[i]);
    for (int32_t i = 0; i < qsim_run_step_count(run); i++) {
        if (!step_at(run, i, &info))
            continue;
        table_cell(&t, "%d", i);
        table_cell(&t, "%s", info.op_type);
        table_cell(&t, "%s", info.kernel);
        table_cell(&t, "%s", qsim_isa_name(info.isa));
        table_cell(&t, "%s", info.node);
    }
    putchar('\n');
    table_print(&t, stdout);
}

void steps_json(json *j, const char *name, const qsim_run *run) {
    qsim_step_info info;
    json_array(j, name);
    for (int32_t i = 0; i < qsim_run_step_count(run); i++) {
        if (!step_at(run, i, &info))
            continue;
        json_object(j, NULL);
        json_string(j, "node", info.node);
        json_string(j, "operator", info.op_type);
        json_string(j, "kernel", info.kernel);
        json_string(j, "isa", qsim_isa_name(info.isa));
        json_end(j);
    }
    json_end(j);
}

void isa_counts_add(isa_counts *c, const qsim_run *run) {
    qsim_step_info info;
    for (int32_t i = 0; i < qsim_run_step_count(run); i++)
        if (step_at(run, i, &info) && info.isa >= 0 && info.isa < STEPS_ISAS)
            c->steps[info.isa]++;
}

void isa_counts_text(const isa_counts *c, text *out) {
    for (int32_t isa = 0; isa < STEPS_ISAS; isa++)
        if (c->steps[isa] > 0)
            text_printf(out, "%s%s %d", out->size ? ", " : "", qsim_isa_name(isa),
                        (int)c->steps[isa]);
}

void isa_counts_json(const isa_counts *c, json *j) {
    json_line(j, "isas");
    for (int32_t isa = 0; isa < STEPS_ISAS; isa++)
        if (c->steps[isa] > 0)
            json_int(j, qsim_isa_name(isa), c->steps[isa]);
    json_end(j);
}
