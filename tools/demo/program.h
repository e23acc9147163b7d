/* SPDX-License-Identifier: MIT */
/* main() of a program that is one verb. */
#ifndef DEMO_PROGRAM_H
#define DEMO_PROGRAM_H

#include "common/tool.h"

/* Parses arguments, handles --help and --version, runs the verb; `threads`: default of -T. */
int program_main(const verb *v, int32_t threads, int argc, char **argv);

#endif
