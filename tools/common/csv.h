/* SPDX-License-Identifier: MIT */
/* Text tables of numbers. */
#ifndef TOOL_CSV_H
#define TOOL_CSV_H

#include <stdbool.h>
#include <stddef.h>

typedef struct csv {
    float *values; /* row by row; the caller frees them */
    size_t rows, columns;
    size_t field;  /* on failure: the field (from 1) that is no number; 0: something else */
    char word[32]; /* the beginning of that field */
} csv;

/*
 * Parses rows of numbers, which may be quoted, separated by commas, semicolons, tabs or blanks. The
 * first row may be a heading; empty lines and lines that begin with '#' are skipped. `lines` ends
 * with a NUL byte and is changed. On failure: false, `line` (from 1) and `why` (static text).
 */
bool csv_parse(char *lines, csv *out, size_t *line, const char **why);

#endif
