/* SPDX-License-Identifier: MIT */
/*
 * --html FILE: one page with charts, pictures and the printed report. The file is self-contained: a
 * browser needs no network for it.
 */
#ifndef TOOL_PAGE_H
#define TOOL_PAGE_H

#include "common/tool.h"

#define OPTION_HTML                                                                                \
    { "html", "FILE", "also write a page with charts, as one HTML file", 0, NULL }

typedef struct page {
    const char *path;            /* NULL: no page; these functions then do nothing */
    text report, warnings, body; /* in this order */
    FILE *captured;              /* output printed between page_report_begin and page_report_end */
    int terminal;                /* standard output during that time */
} page;

/*
 * False after an error if the file of --html cannot be written. Warnings printed from then on
 * become part of the page.
 */
bool page_open(const tool *t, page *p, int *code);
void page_heading(page *p, const char *heading);
/* Adds a sentence below a heading. */
void page_note(page *p, const char *note);
/* Adds a chart of SVG text, and empties that. */
void page_chart(page *p, text *svg);
/* The same at half of the width: two such charts stand side by side. */
void page_half_chart(page *p, text *svg);
/* Adds lines as they are printed in a report, and frees them. */
void page_lines(page *p, text *lines);
/* Adds a picture of interleaved RGB (channels 3) or grey (1) with a caption. */
void page_picture(page *p, const unsigned char *pixels, int32_t width, int32_t height,
                  int32_t channels, const char *caption);
/*
 * Text printed between the two calls becomes part of the page; with --json it goes to the page
 * alone.
 */
void page_report_begin(const tool *t, page *p);
void page_report_end(const tool *t, page *p);
/* Writes the page and frees it; returns `code`, or the error of writing if that is 0. */
int page_close(const tool *t, page *p, const char *title, int code);

#endif
