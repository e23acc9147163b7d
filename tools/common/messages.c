/* SPDX-License-Identifier: MIT */
/* Errors with their exit codes, warnings and notes of the tools. */
#include <string.h>

#include "common/progress.h"
#include "common/tool.h"
#include "common/utf8.h"

int tool_exit_code(int code) {
    switch (code) {
    case QSIM_OK: return EXIT_OK;
    case QSIM_E_ARGUMENT:
    case QSIM_E_NOT_FOUND: return EXIT_USAGE;
    case QSIM_E_NOMEM: return EXIT_MEMORY;
    case QSIM_E_IO:
    case QSIM_E_EXISTS: return EXIT_IO;
    case QSIM_E_CANCELLED: return EXIT_INTERRUPTED;
    case QSIM_E_TIME: return EXIT_BOUND;
    case QSIM_E_INTERNAL:
    case QSIM_E_VERSION:
    case QSIM_E_STATE: return EXIT_INTERNAL;
    default: return EXIT_DATA;
    }
}

void tool_keep_errors(const tool *t, kept_error *kept) {
    t->state->error = kept;
}

static void keep_error(kept_error *kept, int code, const char *line, const char *hint) {
    kept_error_free(kept);
    kept->code = code;
    text_puts(&kept->line, line);
    text_puts(&kept->hint, hint ? hint : "");
}

static void print_error(const tool *t, int code, const char *line, const char *hint) {
    text printable = {0}, second = {0};
    if (t->state->error) {
        keep_error(t->state->error, code, line, hint);
        return;
    }
    progress_clear(t);
    utf8_printable(&printable, line, 380);
    fprintf(stderr, "qsim: %s\n", printable.data);
    if (hint && *hint)
        utf8_printable(&second, hint, 300);
    if (code == QSIM_E_NOMEM && !second.size && tool_memory_limit() && !strstr(line, "'memory'"))
        text_printf(&second, "the limit is --memory %s", tool_memory_limit());
    if (code == QSIM_E_NOMEM && tool_is_written())
        text_printf(&second, "%s%s", second.size ? "; " : "", tool_is_written());
    if (second.size)
        fprintf(stderr, "hint: %s\n", second.data);
    if (t->json) {
        json j = {0};
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_object(&j, "error");
        json_int(&j, "code", code);
        json_string(&j, "name", qsim_error_name(code));
        json_string(&j, "message", printable.data);
        json_end(&j);
        json_end(&j);
        fputs(j.out.data, stdout);
        text_free(&j.out);
    }
    text_free(&printable);
    text_free(&second);
}

int tool_print_kept(const tool *t, kept_error *kept, const char *hint) {
    const int code = kept->code;
    print_error(t, code, kept->line.data, kept->hint.size ? kept->hint.data : hint);
    kept_error_free(kept);
    return code ? tool_exit_code(code) : EXIT_INTERNAL;
}

void kept_error_free(kept_error *kept) {
    text_free(&kept->line);
    text_free(&kept->hint);
    kept->code = QSIM_OK;
}

void tool_assume(const tool *t, const char *sentence) {
    text *assumed = &t->state->assumed;
    if (t->no_assumed)
        return;
    if (!sentence)
        assumed->size = 0;
    else if (assumed->size == 0)
        text_puts(assumed, sentence);
}

/* The sentence of hints and warnings about sizes that were made up; none: nothing is added. */
static void add_assumed(const tool *t, text *out) {
    if (!t->no_assumed && t->state->assumed.size)
        text_puts(out, t->state->assumed.data);
}

void tool_warn_assumed(const tool *t) {
    text line = {0};
    add_assumed(t, &line);
    if (line.size)
        tool_warn(t, "%s", line.data);
    text_free(&line);
}

int tool_error(const tool *t, const char *subject, const qsim_error *e) {
    text line = {0};
    const char *message = e->message[0] ? e->message : qsim_error_text(e->code);
    if (e->code == QSIM_E_CANCELLED && tool_interrupted())
        message = "interrupted";
    if (subject && strncmp(message, subject, strlen(subject)) != 0) {
        /* A long path is shortened, so that the reason stays visible. */
        utf8_printable(&line, subject, 160);
        text_puts(&line, ": ");
    }
    text_puts(&line, message);
    text hint = {0};
    text_puts(&hint, e->hint);
    const bool by_size = e->code == QSIM_E_SHAPE || e->code == QSIM_E_VALUE;
    if (hint.size == 0 && by_size)
        add_assumed(t, &hint);
    if (hint.size == 0 && e->code == QSIM_E_SHAPE && t->state->together > 1 && !t->no_assumed)
        text_printf(&hint, "runs take %lld samples at once: --batch 1 if the model takes one",
                    (long long)t->state->together);
    if (hint.size == 0 && e->code == QSIM_E_IO && subject && strstr(subject, "://"))
        text_puts(&hint, "qsim opens no network: download the file first");
    else if (hint.size == 0 && e->code == QSIM_E_IO && subject && strncmp(subject, "~/", 2) == 0)
        text_puts(
            &hint,
            "a ~ in quotes stays as it is; without them the shell puts the home folder there");
    print_error(t, e->code, line.data, hint.data);
    text_free(&hint);
    text_free(&line);
    return e->code ? tool_exit_code(e->code)
                   : EXIT_INTERNAL; /* also for a failure without a code */
}

int tool_written(const tool *t, const char *path, int code, const qsim_error *e) {
    if (code)
        return tool_error(t, path, e);
    tool_note_written();
    return EXIT_OK;
}

int tool_fail(const tool *t, int code, const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    print_error(t, code, line, NULL);
    return tool_exit_code(code);
}

int tool_go_on(const tool *t, const char *file, int code) {
    return code == EXIT_OK && tool_interrupted()
               ? tool_fail(t, QSIM_E_CANCELLED, "%s: interrupted", file)
               : code;
}

int tool_usage(const tool *t, const char *hint, const char *format, ...) {
    char line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    print_error(t, QSIM_E_ARGUMENT, line, hint);
    return EXIT_USAGE;
}

static void say(const tool *t, const char *kind, const char *format, va_list list) {
    char line[2048];
    text printable = {0};
    if (t->quiet)
        return;
    vsnprintf(line, sizeof(line), format, list);
    utf8_printable(&printable, line, 400);
    progress_clear(t);
    fprintf(stderr, "qsim: %s%s\n", kind, printable.data);
    text_free(&printable);
}

void tool_note(const tool *t, const char *format, ...) {
    va_list list;
    va_start(list, format);
    say(t, "", format, list);
    va_end(list);
}

void tool_keep_warnings(const tool *t, text *lines) {
    t->state->warnings = lines;
}

void tool_warn(const tool *t, const char *format, ...) {
    text *kept = t->state->warnings;
    va_list list;
    va_start(list, format);
    if (kept) {
        char line[2048];
        va_list again;
        va_copy(again, list);
        vsnprintf(line, sizeof(line), format, again);
        va_end(again);
        utf8_printable(kept, line, 400);
        text_puts(kept, "\n");
    }
    say(t, "warning: ", format, list);
    va_end(list);
}
