/* SPDX-License-Identifier: MIT */
#include "common/columns.h"

#include <assert.h>
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

static size_t *widths(const table *t, size_t n) {
    size_t *width = tool_alloc(n, sizeof(*width));
    for (size_t i = 0; i < t->count; i++)
        if (text_columns(t->cells[i]) > width[i % n])
            width[i % n] = text_columns(t->cells[i]);
    return width;
}

static void put_cell(text *out, const char *cell, char column, size_t width) {
    const int pad = (int)(width - text_columns(cell));
    if (column == 'r')
        text_printf(out, "%*s%s", pad, "", cell);
    else
        text_printf(out, "%s%*s", cell, pad, "");
}

void table_markdown(table *t, text *out) {
    const size_t n = strlen(t->columns);
    assert(n > 0);
    size_t *width = widths(t, n);
    for (size_t i = 0; i < t->count; i++) {
        if (i == n) { /* below the heading */
            for (size_t k = 0; k < n; k++) {
                text_puts(out, "|-");
                for (size_t c = 0; c < width[k]; c++)
                    text_puts(out, "-");
                text_puts(out, t->columns[k] == 'r' ? ":" : "-");
            }
            text_puts(out, "|\n");
        }
        text_puts(out, "| ");
        put_cell(out, t->cells[i], t->columns[i % n], width[i % n]);
        text_puts(out, i % n + 1 < n ? " " : " |\n");
    }
    free(width);
    table_free(t);
}

void table_print(table *t, FILE *out) {
    size_t n = strlen(t->columns);
    text line = {0};
    size_t *width = widths(t, n);
    for (size_t i = 0; i < t->count; i++) {
        size_t k = i % n;
        put_cell(&line, t->cells[i], t->columns[k], width[k]);
        if (k + 1 < n)
            text_puts(&line, "  ");
        else
            print_line(&line, out);
    }
    text_free(&line);
    free(width);
    table_free(t);
}
