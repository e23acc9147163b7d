/* SPDX-License-Identifier: MIT */
/* The operators that models may have, as a table or the array "operators". */
#ifndef QSIM_OPERATOR_LIST_H
#define QSIM_OPERATOR_LIST_H

#include "common/json.h"
#include "common/tool.h"

int operators_print(const tool *t);
int operators_json(const tool *t, json *j);

#endif
