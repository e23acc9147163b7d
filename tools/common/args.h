/* SPDX-License-Identifier: MIT */
/*
 * Command lines. A verb is a table of options and a function; --help, the completions, the manual
 * page's lists and the checks all come from the table.
 */
#ifndef TOOL_ARGS_H
#define TOOL_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

typedef struct option {
    const char *name;  /* without the dashes; NULL ends a table */
    const char *value; /* name of its value in the help; NULL: it takes none */
    const char *help;
    char letter;         /* the short form; 0: none */
    const char *choices; /* "a|b|c": nothing else is accepted */
} option;

/* Options that every verb has: help, version, quiet, verbose, json, threads, isa. */
extern const option common_options[];
/* Options of verbs that write files. */
#define OPTION_FORCE                                                                               \
    { "force", NULL, "replace existing output files", 'f', NULL }
#define OPTION_OUTPUT(what)                                                                        \
    { "output", "FILE", what, 'o', NULL }

struct tool;

typedef struct verb {
    const char *name;
    const char *operands; /* as in the usage line */
    const char *summary;
    const option *options;
    int (*run)(struct tool *t); /* returns the exit code */
    bool runs_nothing;          /* --threads and --isa have no effect and are not listed */
    const char *example;        /* what stands behind the name, for --help; NULL: none */
} verb;

/* Options common to all verbs; each verb lists those that it takes. */
const option *args_common(const verb *v);

typedef struct args {
    const verb *verb;
    struct {
        const option *option;
        const char *value;
    } * given;
    size_t given_count;
    const char **operands;
    size_t operand_count;
    char **owned; /* copies of values that are not in argv */
    size_t owned_count;
} args;

/* "qsim ", or "" for a program of its own, which is named after its verb: "qsim-demo". */
const char *args_prefix(const verb *v);

/* Parses argv[0..count). After a usage error `problem` describes it, `hint` suggests a remedy. */
bool args_parse(args *a, const verb *v, int count, char **argv, text *problem, text *hint);
/* An option of the verb or of all verbs; NULL: unknown. */
const option *args_option(const verb *v, const char *name);
/* Adds an option before all others; the value is copied. */
bool args_give_before(args *a, const option *o, const char *value, text *problem);
/* The option whose name is nearest to a word, or NULL. */
const char *args_nearest(const verb *v, const char *word);
void args_free(args *a);

bool args_has(const args *a, const char *name);
/* The last value given, or NULL. */
const char *args_value(const args *a, const char *name);
/* The i-th value of a repeated option, or NULL. */
const char *args_repeated(const args *a, const char *name, size_t i);

/* Strict numbers: the whole string, no spaces, in range. */
bool parse_int(const char *s, int64_t low, int64_t high, int64_t *out);
bool parse_uint64(const char *s, uint64_t *out);
bool parse_number(const char *s, double *out);

/* The name in a list, terminated by NULL, that was probably meant, or NULL. */
const char *closest(const char *word, const char *const *names);

void args_help(const verb *v, text *out);
/* A completion script for "bash", "zsh" or "fish"; false for other shells. */
bool args_completion(const verb *const *verbs, const char *shell, text *out);
/*
 * A page for man(1) from its template: the line "@SYNOPSIS@" becomes the usage of every verb,
 * "@USAGE VERB@" and "@OPTIONS VERB@" those of one, "@COMMON OPTIONS@" the options that every verb
 * has. False: a line names no verb; `out` then ends with that line.
 */
bool args_manual(const verb *const *verbs, const char *page, text *out);

#endif
