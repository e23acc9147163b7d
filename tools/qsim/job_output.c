/* SPDX-License-Identifier: MIT */
/* Writes the output of a run: models, metrics.json, a package, and the table. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/package.h>

#include "common/columns.h"
#include "common/system.h"
#include "job.h"

void job_path(const job *j, const job_flow *f, const char *name, text *out) {
    text_puts(out, j->output_dir);
    if (j->output_name && *j->output_name)
        text_printf(out, "/%s", j->output_name);
    if (f && f->name)
        text_printf(out, "/%s", f->name);
    text_printf(out, "/%s", name);
}

/* ---- folders ---- */

/* Makes all folders of a file's path. */
static int make_folders(const tool *t, const job *j, char *path) {
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (system_make_folder(path) == 0)
            text_add(j->made, path, strlen(path) + 1);
        else if (errno != EEXIST) {
            int code =
                tool_fail(t, QSIM_E_IO, "%s: cannot make the folder: %s", path, strerror(errno));
            *slash = '/';
            return code;
        }
        *slash = '/';
    }
    return EXIT_OK;
}

void job_drop_folders(text *made) {
    while (made->size > 0) {
        for (made->size--; made->size > 0 && made->data[made->size - 1];)
            made->size--;
        system_remove_folder(made->data + made->size);
    }
}

static int prepare(const tool *t, const job *j, const job_flow *f, const char *name,
                   const char *suffix) {
    text path = {0};
    int code;
    job_path(j, f, name, &path);
    text_puts(&path, suffix);
    code = make_folders(t, j, path.data);
    if (code == EXIT_OK) {
        char *slash = strrchr(path.data, '/');
        *slash = 0;
        if (!system_may_write_into(path.data))
            code = tool_fail(t, QSIM_E_IO, "%s: cannot write into the folder: %s", path.data,
                             strerror(errno));
        *slash = '/';
    }
    if (code == EXIT_OK && tool_may_write(t, path.data, &code))
        (void)tool_refuses_input(t, path.data,
                                 system_same_file(path.data, j->model) ? j->model : NULL, &code);
    text_free(&path);
    return code;
}

int job_prepare_output(const tool *t, const job *j) {
    int code = EXIT_OK;
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++)
        code = prepare(t, j, &j->flows[i], "model.onnx", "");
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++)
        for (size_t k = 0; k < j->flows[i].count && code == EXIT_OK; k++)
            if (j->flows[i].passes[k].action == ACTION_SENSITIVITY)
                code = prepare(t, j, &j->flows[i], "sensitivity.csv", "");
            else if (job_recipe(&j->flows[i].passes[k]))
                code = prepare(t, j, &j->flows[i], job_recipe(&j->flows[i].passes[k]), "");
    if (code == EXIT_OK)
        code = prepare(t, j, NULL, "metrics.json", "");
    if (code == EXIT_OK && j->package)
        code = prepare(t, j, NULL, j->package, ".zip");
    return code;
}

/* ---- metrics.json ---- */

static void report_result(const job *j, const job_result *r, json *out) {
    json_object(out, "metrics");
    for (size_t i = 0; i < j->metric_count; i++) {
        text name = {0};
        text_printf(&name, "%s-%s", j->metrics[i].name, j->metrics[i].sub);
        json_object(out, name.data);
        json_number(out, "value", r->values[i]);
        json_int(out, "priority", j->metrics[i].priority);
        json_bool(out, "higher_is_better", j->metrics[i].higher);
        json_end(out);
        text_free(&name);
    }
    json_end(out);
    json_int(out, "bytes", r->bytes);
    json_number(out, "mean_ms", r->mean_ms);
    json_number(out, "samples_per_second", r->throughput);
    json_number(out, "top1", r->accuracy);
    json_number(out, "max_abs", r->max_abs);
    json_number(out, "sqnr_db", r->sqnr);
}

static void report_model(const job *j, const job_flow *f, const job_best *b, json *out) {
    text path = {0};
    size_t at = 0;
    job_path(j, f, "model.onnx", &path);
    json_object(out, NULL);
    json_string(out, "file", path.data);
    json_array(out, "passes");
    for (size_t i = 0; i < f->count; at += f->passes[i++].choice_count) {
        text command = {0};
        json_object(out, NULL);
        json_string(out, "name", f->passes[i].name);
        json_string(out, "type", f->passes[i].type);
        if (f->passes[i].action == ACTION_QUANTIZE) {
            job_command(&f->passes[i], b->picks + at, &command);
            json_string(out, "command", command.data);
        }
        if (i < b->recipe_count && b->recipes[i]) {
            text recipe = {0};
            job_path(j, f, job_recipe(&f->passes[i]), &recipe);
            json_string(out, "recipe", recipe.data);
            text_free(&recipe);
        }
        json_end(out);
        text_free(&command);
    }
    json_end(out);
    report_result(j, &b->result, out);
    json_bool(out, "goals_met", b->result.good);
    json_int(out, "candidates", (int64_t)b->tried);
    job_candidates_json(j, b, out);
    if (b->session.data)
        json_string(out, "session", b->session.data);
    pace_json(&b->pace, out);
    judge_json(&b->judged, NULL, out);
    json_end(out);
    text_free(&path);
}

void job_report(const job *j, const job_result *base, const job_best *best, json *out) {
    json_object(out, NULL);
    json_int(out, "schema", 1);
    json_string(out, "config", j->file);
    json_object(out, "input_model");
    json_string(out, "file", j->model);
    if (j->evaluate_input)
        report_result(j, base, out);
    json_end(out);
    json_array(out, "output_models");
    for (size_t i = 0; i < j->flow_count; i++)
        report_model(j, &j->flows[i], &best[i], out);
    json_end(out);
    json_end(out);
}

/* ---- the files ---- */

static int write_models(const tool *t, const job *j, const qsim_model *input,
                        const job_best *best) {
    qsim_save_options options = {.struct_size = sizeof(options),
                                 .flags = t->force ? QSIM_SAVE_REPLACE : 0};
    int code = EXIT_OK;
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++) {
        text path = {0};
        qsim_error e;
        job_path(j, &j->flows[i], "model.onnx", &path);
        const qsim_model *m = best[i].model ? best[i].model : input;
        code = tool_written(t, path.data, qsim_model_save(m, path.data, &options, &e), &e);
        text_free(&path);
    }
    return code;
}

static int write_recipes(const tool *t, const job *j, const job_flow *f, const job_best *best) {
    int code = EXIT_OK;
    for (size_t i = 0; i < best->recipe_count && code == EXIT_OK; i++) {
        text path = {0};
        qsim_error e;
        if (!best->recipes[i])
            continue;
        job_path(j, f, job_recipe(&f->passes[i]), &path);
        code = qsim_recipe_save(best->recipes[i], path.data, t->force, &e);
        code = tool_written(t, path.data, code, &e);
        text_free(&path);
    }
    return code;
}

static int add_model(const tool *t, const job *j, const job_flow *f, qsim_packer *w) {
    text path = {0}, name = {0};
    qsim_error e;
    job_path(j, f, "model.onnx", &path);
    text_printf(&name, "%s%smodel.onnx", f->name ? f->name : "", f->name ? "-" : "");
    int code =
        qsim_packer_model(w, path.data, name.data, &e) ? tool_error(t, path.data, &e) : EXIT_OK;
    text_free(&path);
    text_free(&name);
    return code;
}

static int fill_package(const tool *t, const job *j, const text *report, qsim_packer *w) {
    qsim_error e;
    int code = EXIT_OK;
    const char *line = NULL;
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++)
        code = add_model(t, j, &j->flows[i], w);
    for (size_t i = 0; i < j->pass_count && !line; i++)
        line = j->passes[i].data.preprocess;
    if (code == EXIT_OK &&
        qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, report->data, report->size, &e))
        code = tool_error(t, j->file, &e);
    if (code == EXIT_OK && line &&
        qsim_packer_add(w, QSIM_ROLE_PREPROCESS, NULL, line, strlen(line), &e))
        code = tool_error(t, j->file, &e);
    return code;
}

static int write_package(const tool *t, const job *j, const text *report) {
    qsim_packer *w;
    qsim_error e;
    text path = {0};
    if (qsim_packer_create(t->ctx, &w, &e))
        return tool_error(t, NULL, &e);
    int code = fill_package(t, j, report, w);
    job_path(j, NULL, j->package, &path);
    text_puts(&path, ".zip");
    const int32_t flags = t->force ? QSIM_PACK_REPLACE : 0;
    if (code == EXIT_OK)
        code = tool_written(t, path.data, qsim_packer_save(w, path.data, flags, &e), &e);
    qsim_packer_free(w);
    text_free(&path);
    return code;
}

int job_write(const tool *t, const job *j, const qsim_model *input, const job_result *base,
              const job_best *best) {
    json report = {0};
    text path = {0};
    job_report(j, base, best, &report);
    job_path(j, NULL, "metrics.json", &path);
    int code = write_models(t, j, input, best);
    for (size_t i = 0; i < j->flow_count && code == EXIT_OK; i++)
        code = write_recipes(t, j, &j->flows[i], &best[i]);
    if (code == EXIT_OK)
        code = tool_write(t, path.data, report.out.data, report.out.size);
    if (code == EXIT_OK && j->package)
        code = write_package(t, j, &report.out);
    text_free(&report.out);
    text_free(&path);
    return code;
}

/* ---- the table ---- */

static void result_row(table *rows, const char *name, const job_result *r, bool input) {
    char b[32];
    table_cell(rows, "%s", name);
    table_cell(rows, "%s", tool_bytes((double)r->bytes, b));
    table_cell(rows, "%s", tool_time(r->mean_ms, b));
    table_cell(rows, "%s", tool_rate(r->throughput, b));
    if (isnan(r->accuracy))
        table_cell(rows, "-");
    else
        table_cell(rows, "%.2f %%", r->accuracy);
    if (input) {
        table_cell(rows, "-");
        table_cell(rows, "-");
        return;
    }
    table_cell(rows, "%.3g", r->max_abs);
    table_cell(rows, "%.2f dB", r->sqnr);
}

void job_print_table(const job *j, const job_result *base, const job_best *best) {
    static const char *const heading[] = {"model", "size",     "latency", "samples",
                                          "top-1", "max diff", "SQNR"};
    table rows = {.columns = "lrrrrrr"};
    for (size_t i = 0; i < 7; i++)
        table_cell(&rows, "%s", heading[i]);
    if (j->evaluate_input)
        result_row(&rows, j->model, base, true);
    for (size_t i = 0; i < j->flow_count; i++) {
        text path = {0};
        job_path(j, &j->flows[i], "model.onnx", &path);
        result_row(&rows, path.data, &best[i].result, false);
        text_free(&path);
    }
    putchar('\n');
    table_print(&rows, stdout);
}
