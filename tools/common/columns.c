/* SPDX-License-Identifier: MIT */
#include "common/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

double table_number(double x) {
    return isnan(x) ? (double)NAN : x;
}

void table_cell(table *t, const char *format, ...) {
    char raw[1024];
    text cell = {0};
    va_list list;
    va_start(list, format);
    vsnprintf(raw, sizeof(raw), format, list);
    va_end(list);
    utf8_printable(&cell, raw, 96);
    t->cells = tool_grow(t->cells, t->count + 1, sizeof(*t->cells));
    t->cells[t->count++] = cell.data ? cell.data : tool_copy("");
}

void table_free(table *t) {
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->count = 0;
}

/* Prints a line without trailing padding. */
static void print_line(text *line, FILE *out) {
    while (line->size > 0 && line->data[line->size - 1] == ' ')
        line->size--;
    fwrite(line->data, 1, line->size, out);
    fputc('\n', out);
    line->size = 0;
}

void table_print(table *t, FILE *out) {
    size_t n = strlen(t->columns);
    text line = {0};
    size_t *width = tool_alloc(n, sizeof(*width));
    for (size_t i = 0; i < t->count; i++)
        if (text_columns(t->cells[i]) > width[i % n])
            width[i % n] = text_columns(t->cells[i]);
    for (size_t i = 0; i < t->count; i++) {
        size_t k = i % n;
        int pad = (int)(width[k] - text_columns(t->cells[i]));
        if (t->columns[k] == 'r')
            text_printf(&line, "%*s%s", pad, "", t->cells[i]);
        else
            text_printf(&line, "%s%*s", t->cells[i], pad, "");
        if (k + 1 < n)
            text_puts(&line, "  ");
        else
            print_line(&line, out);
    }
    text_free(&line);
    free(width);
    table_free(t);
}
