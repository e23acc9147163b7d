/* SPDX-License-Identifier: MIT */
/* All verbs. */
#ifndef QSIM_VERBS_H
#define QSIM_VERBS_H

#include "common/tool.h"

extern const verb verb_info, verb_check, verb_run, verb_bench, verb_calibrate, verb_quantize,
    verb_compare, verb_eval, verb_profile, verb_optimize, verb_package, verb_unpack,
    verb_run_config, verb_sweep, verb_sensitivity, verb_auto, verb_convert, verb_saturation,
    verb_selftest;

struct qsim_package;
/* Lists the entries, as JSON or as a table. */
void print_package(const tool *t, const struct qsim_package *package, const char *path);

/* Applies the options of the --config file as if they stood first on the command line. */
int config_options(tool *t);
struct config;
/* Adds an option's value as text; its kind follows from its name in the help. Returns what is
 * wrong with it, or NULL. */
const char *config_value(const option *o, const struct config *c, text *out);

/* All verbs, terminated by NULL. */
extern const verb *const all_verbs[];

#endif
