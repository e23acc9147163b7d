/* SPDX-License-Identifier: MIT */
/* The report of qsim auto, and the command that repeats its result. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/columns.h"
#include "ladder.h"
#include "modelinfo.h"

static bool has_classes(const ladder *l) {
    return l->count == 0 || !isnan(l->attempts[0].judgement.agreement);
}

const char *ladder_unit(const ladder *l) {
    return has_classes(l) ? "points" : "%";
}

/* ---- the command that repeats the result ---- */

static void put_option(const tool *t, text *out, const char *name) {
    const char *value;
    for (size_t i = 0; (value = args_repeated(&t->args, name, i)) != NULL; i++) {
        text_printf(out, " --%s", name);
        text_shell_word(out, value);
    }
}

static void put_float(text *out, const char *layer) {
    text rule = {0};
    for (const char *c = layer; *c; c++)
        text_printf(&rule, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
    text_puts(&rule, "=fp32");
    text_puts(out, " --set");
    text_shell_word(out, rule.data);
    text_free(&rule);
}

/* Does an entry of a recipe say more than options of qsim quantize can? */
static bool needs_recipe(const ladder *l, const qsim_recipe_entry *e) {
    const bool wide = e->dtype == QSIM_UINT16 || e->dtype == QSIM_INT16;
    if (e->kind == QSIM_RECIPE_EQUALIZE || e->action != QSIM_RECIPE_QUANTIZE)
        return e->kind == QSIM_RECIPE_EQUALIZE;
    return e->kind == QSIM_RECIPE_LAYER || (wide && e->dtype != l->q->options.activation_type);
}

static const char *mode_name(const ladder *l) {
    static const char *const modes[] = {"static", "dynamic", "weights"};
    return modes[l->mode];
}

bool ladder_needs_recipe(const ladder *l) {
    if (l->mode != QSIM_MODE_STATIC) /* else qsim quantize decides on the correction of biases */
        return true;
    for (int32_t i = 0; i < qsim_recipe_count(l->q->recipe); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(l->q->recipe, i, &e) == QSIM_OK && needs_recipe(l, &e))
            return true;
    }
    return false;
}

void ladder_command(ladder *l) {
    static const char *const kept[] = {"data",   "skip", "batch",   "shape",        "preprocess",
                                       "recipe", "set",  "weights", "weight-scheme"};
    static const char *const flags[] = {"no-bias-correction", "reduce-range", "reduce-pairs",
                                        "skip-unreadable"};
    const tool *t = l->tool;
    const qsim_recipe *found = l->q->recipe;
    int32_t method = l->q->options.method;
    double cut = l->q->options.percentile;
    text_puts(&l->command, "qsim quantize");
    text_shell_word(&l->command, l->q->file);
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        if (!l->recipe || (strcmp(kept[i], "recipe") != 0 && strcmp(kept[i], "set") != 0))
            put_option(t, &l->command, kept[i]);
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        if (args_has(&t->args, flags[i]))
            text_printf(&l->command, " --%s", flags[i]);
    if (l->mode != QSIM_MODE_STATIC) {
        text_printf(&l->command, " --mode %s", mode_name(l));
    } else {
        put_option(t, &l->command, "activations");
        if (args_has(&t->args, "split-curves"))
            text_puts(&l->command, " --split-curves");
        if (args_has(&t->args, "symmetric"))
            text_puts(&l->command, " --symmetric");
    }
    const int64_t last = dataset_number(l->q->data, (int64_t)l->seen.samples - 1);
    int64_t skip;
    (void)tool_int(t, "skip", 0, INT64_MAX, 0, &skip);
    text_printf(&l->command, " --limit %lld --held-out 0", (long long)(last + 1 - skip));
    if (l->recipe) {
        text_puts(&l->command, " --recipe");
        text_shell_word(&l->command, l->recipe);
        text_puts(&l->command, " -o");
        text_shell_word(&l->command, l->q->output);
        return;
    }
    for (int32_t i = 0; i < qsim_recipe_count(found); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(found, i, &e))
            continue;
        if (e.kind == QSIM_RECIPE_TENSOR && e.flags & QSIM_RECIPE_METHOD) {
            method = e.method;
            cut = e.percentile;
        } else if (e.kind == QSIM_RECIPE_LAYER && e.action == QSIM_RECIPE_FLOAT) {
            put_float(&l->command, e.name);
        }
    }
    text_printf(&l->command, " --method %s", range_methods[method]);
    if (method == QSIM_METHOD_PERCENTILE)
        text_printf(&l->command, " --percentile %.9g", cut > 0 ? cut : 99.999);
    text_puts(&l->command, " -o");
    text_shell_word(&l->command, l->q->output);
}

/* ---- report ---- */

const trial_result *ladder_result(const ladder *l) {
    return &l->trial.of[l->kept_plain ? 0 : 1];
}

static const attempt *chosen(const ladder *l) {
    const attempt *best = l->attempts; /* the first is plain */
    for (size_t i = 0; i < l->count && !l->kept_plain; i++)
        if (l->attempts[i].kept)
            best = &l->attempts[i];
    return best;
}

/* One line on the trial. */
static void put_verdict(const ladder *l, text *out) {
    const trial *t = &l->trial;
    const trial_result *result = ladder_result(l);
    const char *what = t->labelled ? "top-1" : has_classes(l) ? "agreement" : "relative error";
    text_printf(out, "%llu %ssample%s%s: ", (unsigned long long)t->samples,
                l->on_unseen ? "unseen " : "", tool_plural((int64_t)t->samples),
                l->on_unseen ? "" : ", searched with, too (too few to keep any apart)");
    if (t->labelled)
        text_printf(out, "top-1 %.2f %%, float %.2f %%, ", result->top1, t->float_top1);
    text_printf(out, "%s %s %.2f %s", what, result->drop < 0 ? "gained" : "lost",
                fabs(result->drop), ladder_unit(l));
    if (!isnan(result->error))
        text_printf(out, " ± %.2f", result->error);
    if (!isnan(result->p))
        text_printf(out, ", McNemar p = %.3g", result->p);
    text_printf(out, "; %s %.6f, %s %.6f", has_classes(l) ? "KL" : "noise / signal", result->loss,
                l->kept_plain ? "the search's best" : "plain quantization",
                t->of[l->kept_plain ? 1 : 0].loss);
}

void ladder_print(const ladder *l) {
    const attempt *r = chosen(l);
    text line = {0};
    put_verdict(l, &line);
    printf("\n");
    table_line("chosen", "%s%s%s", r->what,
               l->kept_plain ? ": what was found loses more on unseen samples" : "",
               l->interrupted ? " (interrupted)"
               : l->over      ? " (the time is over)"
                              : "");
    table_line("trial", "%s", line.data);
    table_line("output", "%s", l->q->output);
    if (l->recipe)
        table_line("recipe", "%s", l->recipe);
    table_line("again", "%s", l->command.data);
    text_free(&line);
}

static void json_result(json *j, const char *key, const trial_result *r) {
    json_object(j, key);
    json_number(j, "loss", r->loss);
    json_number(j, "agreement", r->agreement);
    json_number(j, "top1", r->top1);
    json_number(j, "drop", r->drop);
    json_number(j, "standard_error", r->error);
    json_number(j, "mcnemar_p", r->p);
    json_end(j);
}

static void json_attempt(json *j, const attempt *r) {
    json_object(j, NULL);
    json_string(j, "what", r->what);
    json_number(j, "loss", r->judgement.loss);
    json_number(j, "agreement", r->judgement.agreement);
    json_number(j, "top1", r->judgement.top1);
    json_int(j, "bytes", r->bytes);
    json_number(j, "us", r->microseconds);
    json_number(j, "seconds", r->seconds);
    json_int(j, "floats", r->floats);
    json_bool(j, "kept", r->kept);
    json_bool(j, "met", r->met);
    json_end(j);
}

void ladder_json(const ladder *l, json *j) {
    json_object(j, NULL);
    json_int(j, "schema", 1);
    json_string(j, "file", l->q->output);
    json_string(j, "model", l->q->file);
    json_int(j, "bytes", qsim_model_bytes(l->q->result));
    json_string(j, "goal", ladder_goals[l->goal]);
    json_number(j, "max_drop", l->max_drop);
    json_string(j, "measure", has_classes(l) ? "kl" : "relative_error");
    json_array(j, "attempts");
    for (size_t i = 0; i < l->count; i++)
        json_attempt(j, &l->attempts[i]);
    json_end(j);
    json_string(j, "chosen", chosen(l)->what);
    json_string(j, "mode", mode_name(l));
    json_bool(j, "met", l->met);
    json_bool(j, "interrupted", l->interrupted);
    json_bool(j, "time_over", l->over);
    json_object(j, "trial");
    json_bool(j, "unseen", l->on_unseen);
    json_bool(j, "kept_plain", l->kept_plain);
    json_int(j, "samples", (int64_t)l->trial.samples);
    json_number(j, "float_top1", l->trial.float_top1);
    json_result(j, "plain", &l->trial.of[0]);
    json_result(j, "found", &l->trial.of[1]);
    json_end(j);
    json_string(j, "command", l->command.data);
    if (l->recipe)
        json_string(j, "recipe", l->recipe);
    json_end(j);
}

static void put_markdown(const ladder *l, text *out) {
    char agreement[16], top1[16], bytes[32], time[32];
    text_printf(out, "# %s: chosen: %s\n\n", tool_base_name(l->q->file), chosen(l)->what);
    text_printf(out, "Goal %s, at most %g %s lost: %s.\n\n", ladder_goals[l->goal], l->max_drop,
                ladder_unit(l), l->met ? "met" : "not met");
    put_verdict(l, out);
    text_puts(out, ".\n\n| attempt | loss | agreement | top-1 | size | a sample | kept |\n"
                   "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < l->count; i++) {
        const attempt *r = &l->attempts[i];
        ladder_percent(agreement, r->judgement.agreement);
        ladder_percent(top1, r->judgement.top1);
        text_printf(out, "| %s | %.6f | %s | %s | %s | %s | %s |\n", r->what, r->judgement.loss,
                    agreement, top1, tool_bytes((double)r->bytes, bytes),
                    tool_time(r->microseconds / 1e3, time), r->kept ? "yes" : "");
    }
    text_printf(out,
                "\nAn attempt is kept where it is better by the goal than the best before it; loss "
                "is %s.\nThe same model again:\n\n    %s\n",
                has_classes(l) ? "the KL divergence from the float model" : "noise / signal",
                l->command.data);
}

int ladder_report(const ladder *l, const char *path) {
    const char *dot = strrchr(path, '.');
    text out = {0};
    json j = {0};
    if (dot && strcmp(dot, ".json") == 0) {
        ladder_json(l, &j);
        text_puts(&j.out, "\n");
        out = j.out;
    } else {
        put_markdown(l, &out);
    }
    int code = tool_write(l->tool, path, out.data, out.size);
    text_free(&out);
    return code;
}

void ladder_free(ladder *l) {
    for (size_t i = 0; i < l->count; i++)
        free(l->attempts[i].what);
    free(l->attempts);
    text_free(&l->command);
    samples_free(&l->seen);
    samples_free(&l->unseen);
    costs_free(&l->costs);
    free(l->own_recipe);
}
