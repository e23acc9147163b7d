/* SPDX-License-Identifier: MIT */
/* run-config --dry-run: the plan, as JSON. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

static void print_strings(json *j, const char *key, const config *list) {
    json_row(j, key);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind == CONFIG_STRING)
            json_string(j, NULL, list->items[i].string);
        else
            json_int(j, NULL, list->items[i].whole);
    json_end(j);
}

static void print_pass(json *j, const job_pass *p) {
    static const char *const actions[] = {"quantize", "tune", "nothing", "sensitivity"};
    json_object(j, NULL);
    json_string(j, "name", p->name);
    json_string(j, "type", p->type);
    json_string(j, "action", actions[p->action]);
    if (p->because)
        json_string(j, "because", p->because);
    if (p->action == ACTION_QUANTIZE || p->action == ACTION_SENSITIVITY) {
        text command = {0};
        job_command(p, NULL, &command);
        json_string(j, "command", command.data);
        text_free(&command);
    }
    if (p->op_types)
        print_strings(j, "op_types", p->op_types);
    if (p->threads)
        print_strings(j, "threads", p->threads);
    if (p->levels)
        print_strings(j, "levels", p->levels);
    json_end(j);
}

static void print_flow(json *j, const job *plan, const job_flow *f) {
    text path = {0};
    json_object(j, NULL);
    json_array(j, "passes");
    for (size_t i = 0; i < f->count; i++)
        print_pass(j, &f->passes[i]);
    json_end(j);
    job_path(plan, f, "model.onnx", &path);
    json_string(j, "output", path.data);
    json_end(j);
    text_free(&path);
}

static void print_metric(json *j, const job_metric *m) {
    static const char *const goals[] = {NULL,
                                        "threshold",
                                        "min-improvement",
                                        "percent-min-improvement",
                                        "max-degradation",
                                        "percent-max-degradation"};
    json_object(j, NULL);
    json_string(j, "name", m->name);
    json_string(j, "sub_type", m->sub);
    json_string(j, "better", m->higher ? "higher" : "lower");
    if (m->priority > 0)
        json_int(j, "priority", m->priority);
    if (m->goal != GOAL_NONE) {
        json_string(j, "goal", goals[m->goal]);
        json_number(j, "value", m->goal_value);
    }
    if (m->data.spec)
        json_string(j, "data", m->data.spec);
    json_end(j);
}

static void print_search(json *j, const job *plan) {
    if (!plan->search) {
        json_null(j, "search");
        return;
    }
    json_object(j, "search");
    json_string(j, "order", plan->pass_by_pass ? "pass-by-pass" : "joint");
    json_string(j, "algorithm", plan->algorithm == SEARCH_RANDOM ? "random" : "exhaustive");
    json_int(j, "seed", (int64_t)plan->seed);
    if (plan->samples > 0)
        json_int(j, "candidates", plan->samples);
    if (plan->seconds > 0)
        json_number(j, "seconds", plan->seconds);
    json_end(j);
}

static void print_notes(json *j, const job *plan) {
    json_array(j, "not_used");
    for (const char *line = plan->notes.data; line && *line; line = strchr(line, '\n') + 1) {
        text one = {0};
        text_add(&one, line, strcspn(line, "\n"));
        json_string(j, NULL, one.data);
        text_free(&one);
    }
    json_end(j);
}

void job_print(const tool *t, const job *plan) {
    json j = {0};
    text path = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "config", plan->file);
    json_string(&j, "input_model", plan->model);
    json_array(&j, "flows");
    for (size_t i = 0; i < plan->flow_count; i++)
        print_flow(&j, plan, &plan->flows[i]);
    json_end(&j);
    print_search(&j, plan);
    json_array(&j, "metrics");
    for (size_t i = 0; i < plan->metric_count; i++)
        print_metric(&j, &plan->metrics[i]);
    json_end(&j);
    json_bool(&j, "evaluate_input_model", plan->evaluate_input);
    job_path(plan, NULL, "metrics.json", &path);
    json_string(&j, "metrics_file", path.data);
    text_free(&path);
    if (plan->package) {
        job_path(plan, NULL, plan->package, &path);
        text_puts(&path, ".zip");
        json_string(&j, "package", path.data);
        text_free(&path);
    }
    print_notes(&j, plan);
    json_end(&j);
    tool_print_json(t, &j);
}
