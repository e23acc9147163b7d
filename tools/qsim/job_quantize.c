/* SPDX-License-Identifier: MIT */
/* Runs a quantization pass with the options of qsim quantize. */
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/progress.h"
#include "job.h"
#include "verbs.h"

static const char *picked(const job_pass *p, const size_t *picks, const char *name) {
    for (size_t i = 0; i < p->choice_count; i++)
        if (strcmp(p->choices[i].option, name) == 0 && p->choices[i].count > 0)
            return p->choices[i].values[picks ? picks[i] : 0];
    return NULL;
}

const char *job_recipe(const job_pass *p) {
    return picked(p, NULL, "save-recipe");
}

/* Is the option valid with the picked mode and method? Others may be tried, too. */
static bool applies(const job_pass *p, const size_t *picks, const char *name) {
    if (p->automatic || p->action != ACTION_QUANTIZE)
        return true;
    return job_applies(picked(p, picks, "mode"), picked(p, picks, "method"),
                       picked(p, picks, "weights"), name);
}

/* Is any value of a choice one that begins like this? NULL as a value: without the option. */
static bool any_value(const job_pass *p, const char *name, const char *begin) {
    for (size_t i = 0; i < p->choice_count; i++)
        for (size_t k = 0; strcmp(p->choices[i].option, name) == 0 && k < p->choices[i].count; k++)
            if (p->choices[i].values[k] &&
                strncmp(p->choices[i].values[k], begin, strlen(begin)) == 0)
                return true;
    return false;
}

void job_command(const job_pass *p, const size_t *picks, text *out) {
    text_printf(out, "qsim %s", job_verb(p)->name);
    for (size_t i = 0; i < p->choice_count; i++) {
        const job_choice *c = &p->choices[i];
        if (picks && !applies(p, picks, c->option))
            continue;
        size_t first = picks ? picks[i] : 0, end = picks ? first + 1 : c->count;
        if (c->count == 0 || (end - first == 1 && !c->values[first]))
            continue;
        text_printf(out, " --%s", c->option);
        for (size_t v = first; v < end; v++) {
            const char *value = c->values[v] ? c->values[v] : "none";
            if (!*value)
                continue;
            if (v > first) /* further values of a search */
                text_printf(out, "|%s", value);
            else
                text_shell_word(out, value);
        }
    }
    if (p->data.spec)
        text_printf(out, " --data %s", p->data.spec);
    if (p->data.preprocess)
        text_printf(out, " --preprocess %s", p->data.preprocess);
    for (size_t k = 0; job_shape(&p->data, k); k++)
        text_printf(out, " --shape %s", job_shape(&p->data, k));
    if (p->data.limit > 0)
        text_printf(out, " --limit %lld", (long long)p->data.limit);
    if (p->data.skip > 0)
        text_printf(out, " --skip %lld", (long long)p->data.skip);
}

int job_give_option(const tool *t, tool *own, const char *name, const char *value) {
    text problem = {0};
    bool good = args_give_before(&own->args, args_option(own->args.verb, name), value, &problem);
    int code = good ? EXIT_OK : tool_usage(t, NULL, "%s", problem.data);
    text_free(&problem);
    return code;
}

/* In reverse order, since each option is put before the others. */
int job_give(const tool *t, const job_pass *p, const size_t *picks, tool *own) {
    int code = EXIT_OK;
    for (size_t i = p->choice_count; i-- > 0 && code == EXIT_OK;) {
        const job_choice *c = &p->choices[i];
        const char *value = c->count ? c->values[picks ? picks[i] : 0] : NULL;
        if (!value || !applies(p, picks, c->option))
            continue;
        code = job_give_option(t, own, c->option, *value ? value : NULL);
    }
    return code;
}

/* ---- the run ---- */

/*
 * The options of a calibration. One that is kept serves the other candidates, too: it covers all
 * tensors, and has what rounding by GPTQ needs if any of them rounds so.
 */
static qsim_quantize_options calibrated(const job_pass *p, const quantizing *q, bool kept) {
    qsim_quantize_options o = q->options;
    const bool whole = any_value(p, "weights", "int4"), half = any_value(p, "weights", "uint4");
    o.keep_moments = any_value(p, "refine", "");
    if (kept && (whole || half) && o.weight_type != QSIM_INT4 && o.weight_type != QSIM_UINT4)
        o.weight_type = whole ? QSIM_INT4 : QSIM_UINT4;
    return o;
}

static int calibrate(const tool *t, const tool *named, const job_pass *p, quantizing *q,
                     qsim_calibration **kept) {
    static const char *const everything[1] = {"*"};
    const qsim_quantize_options quantized = calibrated(p, q, kept != NULL);
    const bool ranges = kept && any_value(p, "mode", "static");
    const qsim_calibration_options o = {.struct_size = sizeof(o),
                                        .tensors = everything,
                                        .tensor_count = ranges,
                                        .quantize = &quantized};
    const char *path = args_value(&named->args, "calibration");
    tool own;
    if (kept && *kept) {
        q->calibration = *kept;
        return EXIT_OK;
    }
    if (!path && !p->data.spec)
        return tool_usage(t, "\"data_config\": {\"data_dir\": \"X.npy\"} names it",
                          "passes.%s: a static quantization needs data to calibrate on", p->name);
    job_tool(t, &p->data, q->model, &own);
    int code =
        path ? calibration_open(t, path, &q->calibration) : dataset_open(&own, q->model, &q->data);
    if (code == EXIT_OK && !path)
        (void)dataset_hold_out(q->data, DATASET_HELD_OUT);
    if (code == EXIT_OK && !path)
        code = calibrate_data(&own, q->file, q->model, &o, q->data, &q->calibration);
    dataset_close(q->data);
    job_tool_close(&own);
    q->data = NULL;
    if (kept)
        *kept = q->calibration;
    return code;
}

/* Is there anything to calibrate for: ranges, or by the data means of biases and moments? */
static bool needs_calibration(const tool *own, const job_pass *p, const quantizing *q) {
    const bool given = p->data.spec || args_has(&own->args, "calibration");
    const bool narrow = q->options.weight_type == QSIM_INT4 || q->options.weight_type == QSIM_UINT4;
    if (q->options.mode == QSIM_MODE_STATIC)
        return given || !recipe_has_ranges(q);
    return given && (!q->options.no_bias_correction || (narrow && !q->options.no_gptq));
}

/* Runs the searches that options ask for (--search, --equalize, …) on the data of the pass. */
static int search(const tool *t, const tool *own, const job_pass *p, quantizing *q) {
    tool with;
    job_tool(t, &p->data, q->model, &with);
    int code = dataset_open(&with, q->model, &q->data);
    if (code == EXIT_OK && !args_has(&own->args, "calibration"))
        (void)dataset_hold_out(q->data, DATASET_HELD_OUT);
    if (code == EXIT_OK)
        code = quantize_search(own, q);
    dataset_close(q->data);
    q->data = NULL;
    job_tool_close(&with);
    return code;
}

static int quantize(const tool *t, const tool *own, const job_pass *p, quantizing *q,
                    qsim_calibration **kept) {
    progress bar;
    qsim_error e;
    int code = EXIT_OK;
    q->judges &= p->data.spec != NULL;
    if (p->automatic)
        code = job_auto(t, own, p, q);
    else if (needs_calibration(own, p, q))
        code = calibrate(t, own, p, q, kept);
    if (code == EXIT_OK && !p->automatic && quantize_searches(own, q))
        code = search(t, own, p, q);
    if (code)
        return code;
    if (job_recipe(p) && qsim_recipe_create(t->ctx, &q->decided, &e))
        return tool_error(t, q->file, &e);
    q->options.decided = q->decided;
    progress_begin(&bar, t);
    q->options.progress = progress_step;
    q->options.progress_user = &bar;
    code = qsim_quantize(q->model, q->calibration, &q->options, &q->result, &e);
    progress_end(&bar);
    return code ? tool_error(t, q->file, &e) : tool_list_model(t, q->file, q->result);
}

int job_quantize(const tool *t, const job *j, const job_pass *p, const size_t *picks,
                 const qsim_model *m, qsim_calibration **kept, job_made *made) {
    /* const is cast away: quantize_options and the calibration only read the model. */
    quantizing q = {.file = j->model, .output = p->name, .model = (qsim_model *)(uintptr_t)m};
    tool own = *t;
    memset(&own.args, 0, sizeof(own.args));
    own.args.verb = job_verb(p);
    int code = job_give(t, p, picks, &own);
    if (code == EXIT_OK && (p->op_types || p->bits == 4))
        code = job_give_types(t, p, m, &own);
    if (code == EXIT_OK && !p->automatic && !quantize_search_fits(&own))
        code = EXIT_USAGE;
    if (code == EXIT_OK)
        code = quantize_options(&own, &q);
    if (code == EXIT_OK)
        code = recipe_open(&own, &q);
    if (code == EXIT_OK)
        code = quantize(t, &own, p, &q, kept);
    if (code != EXIT_OK) {
        qsim_model_free(q.result);
        qsim_recipe_free(q.decided);
        q.result = NULL;
        q.decided = NULL;
    }
    *made = (job_made){q.result, q.decided};
    if (!kept)
        qsim_calibration_free(q.calibration);
    else if (p->automatic) {
        qsim_calibration_free(*kept); /* of the candidate before */
        *kept = q.calibration;
    }
    qsim_recipe_free(q.recipe);
    quantize_attempts_free(&q);
    quantize_options_free(&q);
    args_free(&own.args);
    return code;
}
