/* SPDX-License-Identifier: MIT */
/* qsim info without a model. */
#ifndef QSIM_LIBRARY_INFO_H
#define QSIM_LIBRARY_INFO_H

#include "common/tool.h"

/* Describes the library; with --ops its operators, with --limits this machine. */
int library_info(const tool *t);

#endif
