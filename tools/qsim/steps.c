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
    s->count = code == EXIT_OK ? qsim_run_step_count(s->engine.run) : 0;
    return code;
}

void steps_print(const steps *s) {
    table t = {.columns = "rllll"};
    const char *const heading[] = {"#", "operator", "kernel", "instructions", "node"};
    for (size_t i = 0; i < 5; i++)
        table_cell(&t, "%s", heading[i]);
    for (int32_t i = 0; i < s->count; i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        if (qsim_run_step(s->engine.run, i, &info) != QSIM_OK)
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

void steps_json(json *j, const steps *s) {
    json_array(j, "steps");
    for (int32_t i = 0; i < s->count; i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        if (qsim_run_step(s->engine.run, i, &info) != QSIM_OK)
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

void steps_close(steps *s) {
    inputs_close(&s->inputs);
    engine_close(&s->engine);
}
