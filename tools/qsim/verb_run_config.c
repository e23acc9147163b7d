/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "modelinfo.h"
#include "pages.h"
#include "verbs.h"

static void say_passes(const tool *t, const job *j, const job_flow *f, const job_best *best) {
    size_t at = 0;
    for (size_t i = 0; i < f->count; at += f->passes[i++].choice_count) {
        const job_pass *p = &f->passes[i];
        text line = {0};
        if (p->action == ACTION_NOTHING)
            text_printf(&line, "not needed, because %s", p->because);
        else if (p->action == ACTION_TUNE)
            text_printf(&line, "fastest here with %s",
                        best->session.data ? best->session.data : "what was not measured");
        else
            job_command(p, best->picks + at, &line);
        table_line("pass", "%s (%s): %s", p->name, p->type, line.data);
        text_free(&line);
        if (i < best->recipe_count && best->recipes[i]) {
            job_path(j, f, job_recipe(p), &line);
            table_line("recipe", "%s  %d layers and tensors", line.data,
                       qsim_recipe_count(best->recipes[i]));
            text_free(&line);
        }
    }
    if (best->judged.verdict) {
        pace_print(&best->pace);
        judge_print(t, &best->judged);
    } else if (best->pace.why.size)
        pace_print(&best->pace);
    if (best->possible > 1)
        table_line("search", "%zu of %zu candidates tried, the best taken%s", best->tried,
                   best->possible, best->result.good ? "" : "; none meets every goal");
}

/* A model's bar: the latency of the table, else that of the verdict's. */
static page_model bar(const char *name, int64_t bytes, double mean_ms, double ms) {
    return (page_model){name, bytes, mean_ms > 0 ? mean_ms : ms};
}

static void draw_page(page *p, const job *j, const qsim_model *m, const job_result *base,
                      const job_best *best) {
    page_model *models = tool_alloc(j->flow_count + 1, sizeof(*models));
    text *paths = tool_alloc(j->flow_count, sizeof(*paths));
    models[0] = bar(j->model, qsim_model_bytes(m), base->mean_ms, best[0].pace.ms[0]);
    for (size_t i = 0; i < j->flow_count; i++) {
        job_path(j, &j->flows[i], "model.onnx", &paths[i]);
        const job_result *r = &best[i].result;
        models[i + 1] = bar(paths[i].data, r->bytes, r->mean_ms, best[i].pace.ms[1]);
    }
    page_models(p, models, j->flow_count + 1);
    for (size_t i = 0; i < j->flow_count; i++) {
        job_candidates_page(j, &best[i], p);
        page_layers(p, best[i].judged.verdict);
        if (best[i].calibration && best[i].has_ranges)
            page_ranges(p, RANGES_CHOSEN, best[i].calibration, best[i].judged.method,
                        best[i].percentile, best[i].judged.verdict, 24);
        text_free(&paths[i]);
    }
    free(paths);
    free(models);
}

static void say(const tool *t, const job *j, const job_result *base, const job_best *best) {
    for (size_t i = 0; i < j->flow_count; i++)
        say_passes(t, j, &j->flows[i], &best[i]);
    if (j->package)
        table_line("package", "%s/%s.zip", j->output_dir, j->package);
    job_print_table(j, base, best);
}

static void report(const tool *t, page *p, const job *j, const qsim_model *m,
                   const job_result *base, const job_best *best) {
    if (p->path)
        draw_page(p, j, m, base, best);
    if (!t->json || p->path) {
        page_report_begin(t, p);
        say(t, j, base, best);
        page_report_end(t, p);
    }
    if (t->json) {
        json out = {0};
        job_report(j, base, best, &out);
        tool_print_json(t, &out);
    }
}

static void say_input(const tool *t, const job *j, const qsim_model *m) {
    char b[32];
    if (t->json)
        return;
    for (const char *line = j->notes.data; line && *line; line = strchr(line, '\n') + 1)
        table_line("note", "%.*s", (int)strcspn(line, "\n"), line);
    table_line("model", "%s  %s  opset %lld  %d nodes", j->model,
               tool_bytes((double)qsim_model_bytes(m), b), (long long)qsim_model_opset(m, NULL),
               qsim_model_node_count(m));
    fflush(stdout);
}

static bool needs_base(const job *j) {
    for (size_t i = 0; i < j->metric_count; i++)
        if (j->metrics[i].goal > GOAL_THRESHOLD)
            return true;
    return j->evaluate_input;
}

static int run_flows(const tool *t, page *p, const job *j, const qsim_model *m, job_best *best) {
    job_result base = {0};
    int code = EXIT_OK;
    bool good = true, interrupted = false;
    if (needs_base(j))
        code = job_measure(t, j, m, m, j->model, NULL, &base);
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++) {
        code = job_run_flow(t, j, &j->flows[i], m, base.values ? &base : NULL, &best[i]);
        good &= best[i].result.good;
        interrupted |= best[i].interrupted;
    }
    if (code == EXIT_OK)
        code = job_write(t, j, m, &base, best);
    if (code == EXIT_OK)
        report(t, p, j, m, &base, best);
    free(base.values);
    if (code == EXIT_OK && interrupted) {
        fputs("hint: the best that was found until then is written\n", stderr);
        return EXIT_INTERRUPTED;
    }
    if (code == EXIT_OK && !good) {
        fprintf(stderr, "qsim: %s: a goal is not met\n", j->file);
        return EXIT_BOUND;
    }
    return code;
}

static int run_job(const tool *t, page *p, const job *j) {
    qsim_model *m = NULL;
    job_best *best = tool_alloc(j->flow_count, sizeof(*best));
    int code = tool_load_model(t, j->model, 0, &m);
    if (code == EXIT_OK)
        code = job_prepare_output(t, j);
    if (code == EXIT_OK) {
        tool_catch_interrupt(NULL);
        say_input(t, j, m);
        code = run_flows(t, p, j, m, best);
    }
    for (size_t i = 0; i < j->flow_count; i++)
        job_best_free(&best[i]);
    free(best);
    qsim_model_free(m);
    return code;
}

static int run(tool *t) {
    text made = {0};
    job j = {.output_dir = ".", .evaluate_input = true, .made = &made};
    job_trouble trouble = {0};
    page p;
    int wrong = EXIT_OK;
    void *data;
    size_t size;
    if (!tool_operands(t, 1, 1))
        return EXIT_USAGE;
    j.file = t->args.operands[0];
    if (!page_open(t, &p, &wrong))
        return wrong;
    int code = tool_read_all(t, j.file, &data, &size);
    if (code)
        return code;
    if (!job_read(&j, data, size, &trouble))
        code = tool_fail(t, trouble.code, "%s: %s", j.file, trouble.message.data);
    if (args_value(&t->args, "output-dir"))
        j.output_dir = args_value(&t->args, "output-dir");
    if (code == EXIT_OK && args_has(&t->args, "dry-run"))
        job_print(t, &j);
    else if (code == EXIT_OK)
        code = page_close(t, &p, "qsim run-config", run_job(t, &p, &j));
    if (code != EXIT_OK)
        job_drop_folders(&made);
    job_free(&j);
    free(data);
    text_free(&trouble.message);
    text_free(&trouble.hint);
    text_free(&made);
    return code;
}

static const option options[] = {
    {"output-dir", "DIR", "write below this folder instead of the configuration's", 'o', NULL},
    {"dry-run", NULL, "print the plan as JSON and stop", 'n', NULL},
    OPTION_SKIP_UNREADABLE,
    OPTION_HTML,
    OPTION_FORCE,
    {NULL, NULL, NULL, 0, NULL},
};

const verb verb_run_config = {"run-config",
                              "CONFIG.json",
                              "run an Olive configuration: quantize, measure, search",
                              options,
                              run,
                              false,
                              "config.json --dry-run"};
