/* SPDX-License-Identifier: MIT */
#ifndef QSIM_VERBS_H
#define QSIM_VERBS_H

#include "common/tool.h"

extern const verb verb_info, verb_check, verb_run, verb_bench, verb_calibrate, verb_quantize,
    verb_compare, verb_eval;

/* All verbs, ended by NULL. */
extern const verb *const all_verbs[];

#endif
