/* SPDX-License-Identifier: MIT */
/* The state of a verb: its arguments and context, its messages and exit codes. */
#ifndef TOOL_TOOL_H
#define TOOL_TOOL_H

#include <stdbool.h>
#include <stdio.h>

#include <qsim/base.h>
#include <qsim/model.h>
#include <qsim/session.h>

#include "common/args.h"
#include "common/json.h"

enum {
    EXIT_OK = 0,
    EXIT_INTERNAL = 1,
    EXIT_USAGE = 2,
    EXIT_BOUND = 3,
    EXIT_DATA = 4,
    EXIT_IO = 5,
    EXIT_MEMORY = 6,
    EXIT_INTERRUPTED = 130
};

/* An error that was kept instead of printed. */
typedef struct kept_error {
    int code; /* QSIM_E_*, QSIM_OK: none */
    text line, hint;
} kept_error;

/* A file that --skip-unreadable left out. */
typedef struct skipped_file {
    char *path, *reason;
} skipped_file;

/* What a verb remembers while it runs; copies of its `tool` share it. */
typedef struct tool_state {
    text assumed;          /* a sentence about sizes of free axes that were made up */
    int64_t together;      /* samples that a run takes at once, of a data set; 0: none was opened */
    kept_error *error;     /* errors are kept there; NULL: they are printed */
    text *warnings;        /* each warning is added there, too; NULL: nowhere */
    skipped_file *skipped; /* each file once, however many data sets read it */
    size_t skipped_count;
    char *preprocess, *labels; /* of the first package that has them */
    text other_models;         /* of the last package: "P.zip:a.onnx, P.zip:b.onnx" */
    void *model_bytes;         /* of the model from standard input, which uses them */
    bool mean_warned;          /* the warning of a mean in pixels was printed */
    bool bar_drawn;            /* a bar of progress is on the terminal now */
} tool_state;

typedef struct tool {
    args args;
    bool quiet, verbose, json, force;
    int32_t threads, isa;
    qsim_ctx *ctx;
    tool_state *state;
    bool no_assumed; /* made-up sizes are not recorded: no option --shape would give them */
} tool;

/* Reads the common options and makes the context. `threads` is the verb's default, `state` empty.
 */
int tool_start(tool *t, int32_t threads);
void tool_stop(tool *t);
/* Limits of the context from --memory and --time; false after a usage error. For tool_start. */
bool tool_limits(const tool *t, qsim_limits *limits);

/* Makes another context with the command's limits; the caller frees it. */
int tool_context(const tool *t, int32_t isa, int32_t threads, qsim_ctx **ctx);
/* Is it an instruction set of this CPU, and the one of --isa if that is given? */
bool tool_takes_isa(const tool *t, int32_t isa);

/* The exit code of a QSIM_E_* code. */
int tool_exit_code(int code);

/*
 * Print `qsim: [SUBJECT: ]message` and a hint to stderr, with --json also JSON to stdout, and
 * return the exit code. `subject` (a file) may be NULL and is left out if the message begins with
 * it.
 */
int tool_error(const tool *t, const char *subject, const qsim_error *e);
/* The same for a call that returned `code`; after a success EXIT_OK, and the file counts as
 * written. */
int tool_written(const tool *t, const char *path, int code, const qsim_error *e);
int tool_fail(const tool *t, int code, const char *format, ...) TOOL_PRINTF(3, 4);
/* Between steps that do not notice Ctrl-C: `code`, or the failure that the work was interrupted. */
int tool_go_on(const tool *t, const char *file, int code);
int tool_usage(const tool *t, const char *hint, const char *format, ...) TOOL_PRINTF(3, 4);
/* Keeps errors from now on, the last one; NULL: they are printed again. */
void tool_keep_errors(const tool *t, kept_error *kept);
/* Prints an error that was kept, with `hint` if it has none, and frees it; returns the exit code.
 */
int tool_print_kept(const tool *t, kept_error *kept, const char *hint);
void kept_error_free(kept_error *kept);

/*
 * Records a sentence about sizes of made-up data that no option gave: errors about sizes then have
 * it as their hint, the first one. NULL: forgets it.
 */
void tool_assume(const tool *t, const char *sentence);
/* Warns of it, where results depend on sizes that nobody gave. */
void tool_warn_assumed(const tool *t);
/* Silent with -q; a note says what was chosen, a warning what may be wrong. */
void tool_note(const tool *t, const char *format, ...) TOOL_PRINTF(2, 3);
void tool_warn(const tool *t, const char *format, ...) TOOL_PRINTF(2, 3);
/* Adds each warning from now on to `lines`, also those that --quiet hides; NULL ends that. */
void tool_keep_warnings(const tool *t, text *lines);

/* Prints a finished JSON object to stdout. */
int tool_print_json(const tool *t, json *j);
/* Flushes stdout; a full disk or closed pipe becomes EXIT_IO. */
int tool_finish(const tool *t, int code);

/* Numbers of options; false after a usage error. */
bool tool_int(const tool *t, const char *name, int64_t low, int64_t high, int64_t fallback,
              int64_t *out);
bool tool_number(const tool *t, const char *name, double low, double high, double fallback,
                 double *out);
/* The same from 0 to 100; warns of a share between 0 and 1, which is probably meant as such. */
bool tool_percent(const tool *t, const char *name, double fallback, double *out);
/* Checks the number of operands; false after a usage error. */
bool tool_operands(const tool *t, size_t low, size_t high);
/*
 * False after an error if `path` cannot be written: empty name, missing folder, a directory, a file
 * that the command line reads, or an existing file without -f. To be called before long work.
 */
bool tool_may_write(const tool *t, const char *path, int *code);
/* The same for a model: names that promise another format than ONNX are refused, too. */
bool tool_may_write_model(const tool *t, const char *path, int *code);
/* True after an error if `output` is the file `input`; false if that is NULL. */
bool tool_refuses_input(const tool *t, const char *output, const char *input, int *code);
/* Writes bytes atomically, or to stdout where `path` is "-". */
int tool_write(const tool *t, const char *path, const void *data, size_t size);

/* ---- interruption ---- */

/*
 * After this call the first Ctrl-C sets a flag and cancels work with `ctx`, which may be NULL; the
 * second one ends the program.
 */
void tool_catch_interrupt(qsim_ctx *ctx);
/* Lets the context work after Ctrl-C, to finish what was found; it is not cancelled again. */
void tool_after_interrupt(void);
bool tool_interrupted(void);
/*
 * Between these two calls Ctrl-C cancels work with the context also if tool_catch_interrupt was
 * given none, or tool_after_interrupt was called. `before`: what tool_begin_work has returned.
 */
qsim_ctx *tool_begin_work(qsim_ctx *ctx);
void tool_end_work(qsim_ctx *ctx, qsim_ctx *before);
/* Sets the run that Ctrl-C cancels; NULL: none. */
void tool_cancel_on_interrupt(qsim_run *run);

/* ---- models ---- */

/* Is this file a package? */
bool tool_is_package(const tool *t, const char *path);
/*
 * Loads a model, printing errors: a file, "-" for stdin, a package or one model of it (P.zip:NAME).
 * `flags` as in qsim_load_options.
 */
int tool_load_model(const tool *t, const char *path, int32_t flags, qsim_model **model);
/*
 * Makes the lists of a model's nodes and tensors, which may fail for lack of memory; afterwards
 * reading them cannot fail. The functions that load models call it.
 */
int tool_list_model(const tool *t, const char *path, const qsim_model *model);
/* Writes a model to a file, atomically, or to stdout where `path` is "-". */
int tool_save_model(const tool *t, const qsim_model *model, const char *path);
/* --preprocess, or the preprocessing of a loaded model's package; NULL: neither. */
const char *tool_preprocess(const tool *t, bool *packaged);
/* The class names of such a package, one per line; NULL: none. */
const char *tool_packaged_labels(const tool *t);
/* Reads all of stdin or a file. Freed with free(). */
int tool_read_all(const tool *t, const char *path, void **data, size_t *size);

/* Write sizes and times for people: "80.2 KB" (units of 1024), "1.23 ms", "12.3 µs". */
const char *tool_bytes(double bytes, char buffer[32]);
const char *tool_time(double milliseconds, char buffer[32]);
/* Writes a rate as "26030/s" or "1.23/s". */
const char *tool_rate(double per_second, char buffer[32]);
/* The ending of a plural: "s", or "" for a count of 1. */
const char *tool_plural(int64_t count);
/* The last component of a path. */
const char *tool_base_name(const char *path);
/* Milliseconds of a monotonic clock. */
double tool_now(void);

#endif
