/* SPDX-License-Identifier: MIT */
/* Tables of numbers as text. */
#ifndef TOOL_CSV_H
#define TOOL_CSV_H

#include <stdbool.h>
#include <stddef.h>

typedef struct csv {
    float *values; /* row by row; freed with free() */
    size_t rows, columns;
} csv;

/*
 * Rows of numbers with commas, semicolons, tabs or blanks between them; the first row may be a
 * heading, lines that are empty or begin with '#' are none. `lines` ends with a NUL byte and is
 * changed. On failure false, `line` (from 1) and `why` (static text).
 */
bool csv_parse(char *lines, csv *out, size_t *line, const char **why);

#endif
