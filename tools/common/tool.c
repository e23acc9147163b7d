/* SPDX-License-Identifier: MIT */
#include "common/tool.h"

#include "common/sample_files.h"
#include "common/system.h"
#include "common/unreadable.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Of the whole program, because a handler of signals is told nothing else. */
static volatile sig_atomic_t interrupted;
static qsim_run *volatile running;
static qsim_ctx *volatile working;

static int find_isa(const char *name) {
    for (int32_t i = QSIM_ISA_C; qsim_isa_name(i); i++)
        if (strcmp(qsim_isa_name(i), name) == 0)
            return i;
    return -1;
}

static void log_line(void *user, int32_t level, const char *line) {
    const tool *t = user;
    if (level < QSIM_LOG_INFO ? !t->quiet : t->verbose)
        fprintf(stderr, "qsim: %s\n", line);
}

/* Far more threads than CPUs: allowed, as in the library, but surely a mistake. */
static void warn_of_threads(const tool *t) {
    qsim_ctx *all;
    if (t->threads <= 8 || qsim_ctx_create(NULL, &all, NULL))
        return;
    const int cpus = (int)qsim_ctx_threads(all);
    if (t->threads / 4 >= cpus)
        tool_warn(t, "%d threads share %d CPU%s: they take turns, which is slower than -T %d",
                  (int)t->threads, cpus, cpus == 1 ? "" : "s", cpus);
    qsim_ctx_free(all);
}

int tool_start(tool *t, int32_t threads) {
    qsim_error e;
    int64_t n;
    t->quiet = args_has(&t->args, "quiet");
    t->verbose = args_has(&t->args, "verbose");
    t->json = args_has(&t->args, "json");
    t->force = args_has(&t->args, "force");
    const char *output = args_value(&t->args, "output");
    if (t->json && output && strcmp(output, "-") == 0)
        return tool_usage(t, NULL, "%s: --json and -o - both want standard output",
                          t->args.verb->name);
    if (!tool_int(t, "threads", 0, 1024, threads, &n))
        return EXIT_USAGE;
    t->threads = (int32_t)n;
    warn_of_threads(t);
    const char *isa = args_value(&t->args, "isa");
    if (isa) {
        t->isa = find_isa(isa);
        if (t->isa < 0 || !qsim_isa_available(t->isa))
            return tool_usage(t, NULL, "--isa %s: this CPU or this build does not have it", isa);
    }
    qsim_limits limits = {.struct_size = sizeof(limits)};
    if (!tool_limits(t, &limits))
        return EXIT_USAGE;
    qsim_ctx_options options = {.struct_size = sizeof(options),
                                .limits = &limits,
                                .log = log_line,
                                .log_user = t,
                                .threads = t->threads,
                                .isa = t->isa};
    return qsim_ctx_create(&options, &t->ctx, &e) ? tool_error(t, NULL, &e) : EXIT_OK;
}

int tool_context(const tool *t, int32_t isa, int32_t threads, qsim_ctx **ctx) {
    qsim_limits limits = {.struct_size = sizeof(limits)};
    const qsim_ctx_options options = {
        .struct_size = sizeof(options), .threads = threads, .isa = isa, .limits = &limits};
    qsim_error e;
    qsim_ctx_limits(t->ctx, &limits);
    return qsim_ctx_create(&options, ctx, &e) ? tool_error(t, NULL, &e) : EXIT_OK;
}

bool tool_takes_isa(const tool *t, int32_t isa) {
    return qsim_isa_available(isa) && (t->isa == QSIM_ISA_AUTO || t->isa == isa);
}

void tool_stop(tool *t) {
    working = NULL;
    qsim_ctx_free(t->ctx);
    args_free(&t->args);
    text_free(&t->state->assumed);
    text_free(&t->state->other_models);
    free(t->state->preprocess);
    free(t->state->labels);
    free(t->state->model_bytes);
}

int tool_print_json(const tool *t, json *j) {
    unreadable_json(t, j);
    fwrite(j->out.data, 1, j->out.size, stdout);
    text_free(&j->out);
    return EXIT_OK;
}

int tool_finish(const tool *t, int code) {
    (void)t;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "qsim: cannot write to standard output: %s\n", strerror(errno));
        return code ? code : EXIT_IO;
    }
    return code;
}

bool tool_int(const tool *t, const char *name, int64_t low, int64_t high, int64_t fallback,
              int64_t *out) {
    const char *s = args_value(&t->args, name);
    *out = fallback;
    if (!s || parse_int(s, low, high, out))
        return true;
    const size_t digits = strspn(s, "0123456789");
    const char *hint = digits > 0 && s[digits] ? "as in 1000: digits only" : NULL;
    if (high < INT64_MAX)
        tool_usage(t, hint, "--%s is '%s', not a whole number from %lld to %lld", name, s,
                   (long long)low, (long long)high);
    else
        tool_usage(t, hint, "--%s is '%s', not a whole number from %lld on", name, s,
                   (long long)low);
    return false;
}

bool tool_number(const tool *t, const char *name, double low, double high, double fallback,
                 double *out) {
    const char *s = args_value(&t->args, name);
    *out = fallback;
    if (!s || (parse_number(s, out) && *out >= low && *out <= high))
        return true;
    const bool percent = high == 100 && (strchr(s, '%') || (*out > 0 && *out < low));
    tool_usage(t, percent ? "percent without a sign, as in 99.9" : NULL,
               "--%s is '%s', not a number from %g to %g", name, s, low, high);
    return false;
}

bool tool_percent(const tool *t, const char *name, double fallback, double *out) {
    if (!tool_number(t, name, 0, 100, fallback, out))
        return false;
    if (*out > 0 && *out <= 1 && args_has(&t->args, name))
        tool_warn(t, "--%s is %g of 100 percent: almost everything passes", name, *out);
    return true;
}

/* The name of operand `n` in the usage line: in "MODEL... -o P.zip" operand 0 is MODEL. */
static const char *operand_name(const char *usage, size_t n, char name[16]) {
    for (; n > 0; n--)
        usage += strcspn(usage, " ") + 1;
    size_t size = strcspn(usage, " ");
    while (size > 0 && usage[size - 1] == '.')
        size--;
    snprintf(name, 16, "%.*s", (int)size, usage);
    return name;
}

/* What an operand was probably meant as, in place of the usage that is in `hint`. */
static const char *suggest_operand(const tool *t, const char *operand, text *hint) {
    const verb *v = t->args.verb;
    const size_t n = strlen(operand);
    const bool model = n > 5 && strcmp(operand + n - 5, ".onnx") == 0;
    const char *name = model                      ? "output"
                       : !sample_is_name(operand) ? NULL
                       : args_option(v, "input")  ? "input"
                                                  : "data";
    if (!name || !args_option(v, name))
        return hint->data;
    if (args_has(&t->args, name)) {
        if (!model && sample_is_name(args_value(&t->args, name))) {
            hint->size = 0;
            text_printf(hint,
                        "a pattern that the shell expands is several words: --%s '*.jpg' in quotes "
                        "is one, and so is a folder",
                        name);
        }
        return hint->data;
    }
    hint->size = 0;
    text_printf(hint, "did you mean --%s %s?", name, operand);
    return hint->data;
}

bool tool_operands(const tool *t, size_t low, size_t high) {
    size_t n = t->args.operand_count;
    char name[16];
    if (n >= low && n <= high)
        return true;
    text hint = {0};
    text_printf(&hint, "usage: %s%s [options] %s", args_prefix(t->args.verb), t->args.verb->name,
                t->args.verb->operands);
    if (n < low)
        tool_usage(t, hint.data, "%s: %s is missing", t->args.verb->name,
                   operand_name(t->args.verb->operands, n, name));
    else
        tool_usage(t, suggest_operand(t, t->args.operands[high], &hint),
                   "%s: one operand too many: '%s'", t->args.verb->name, t->args.operands[high]);
    text_free(&hint);
    return false;
}

/* ---- interruption ---- */

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
    qsim_ctx_cancel(working, 1);
    if (running)
        qsim_run_cancel(running);
}

void tool_catch_interrupt(qsim_ctx *ctx) {
    working = ctx;
    system_catch(on_interrupt);
}

void tool_after_interrupt(void) {
    qsim_ctx *ctx = working;
    working = NULL;
    qsim_ctx_cancel(ctx, 0);
}

bool tool_interrupted(void) {
    return interrupted != 0;
}

qsim_ctx *tool_begin_work(qsim_ctx *ctx) {
    qsim_ctx *before = working;
    working = ctx;
    return before;
}

void tool_end_work(qsim_ctx *ctx, qsim_ctx *before) {
    working = before;
    if (!before)
        qsim_ctx_cancel(ctx, 0);
}

void tool_cancel_on_interrupt(qsim_run *run) {
    running = run;
}
