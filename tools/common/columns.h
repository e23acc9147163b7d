/* SPDX-License-Identifier: MIT */
/* Aligned text tables. */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

#include <stdio.h>

#include "common/text.h"

/*
 * `columns` has one letter per column: 'l' left, 'r' right. Cells are added row by row; the first
 * row is the heading.
 */
typedef struct table {
    const char *columns;
    char **cells;
    size_t count;
} table;

/* x; a NaN loses its sign, which means nothing. */
double table_number(double x);
void table_cell(table *t, const char *format, ...) TOOL_PRINTF(2, 3);
/* Prints the table and empties it. Control bytes in cells are escaped. */
void table_print(table *t, FILE *out);
/* Writes it as Markdown, whose columns also stand below one another as text, and empties it. */
void table_markdown(table *t, text *out);
/* Empties the table without printing. */
void table_free(table *t);

#endif
