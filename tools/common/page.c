/* SPDX-License-Identifier: MIT */
#include "common/page.h"

#include <string.h>
#include <unistd.h>

#include "common/svg.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n<style>\n"
    "body{font:15px/1.5 'DejaVu Sans',Verdana,Helvetica,Arial,sans-serif;color:#222;"
    "max-width:1100px;margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #ddd}\n"
    "pre{background:#f6f6f6;padding:1em;overflow-x:auto;font:13px/1.4 'DejaVu Sans Mono',monospace}\n"
    "pre.wrapped{white-space:pre-wrap}\n"
    ".long{display:inline-block;box-sizing:border-box;width:100%;white-space:pre-wrap;"
    "overflow-wrap:anywhere;padding-left:12ch;text-indent:-12ch}\n"
    ".half{display:inline-block;width:49%;vertical-align:top}\n"
    "svg{display:block;max-width:100%;height:auto;margin:1em 0}\n"
    "figure{display:inline-block;margin:0 1em 1em 0;vertical-align:top;width:124px}\n"
    "figure img{width:96px;image-rendering:pixelated;border:1px solid #ddd}\n"
    "figcaption{font-size:12px;overflow-wrap:anywhere}\n"
    "</style>\n<title>";

bool page_open(const tool *t, page *p, int *code) {
    *p = (page){.path = args_value(&t->args, "html"), .terminal = -1};
    tool_keep_warnings(t, p->path ? &p->warnings : NULL);
    return !p->path || tool_may_write(t, p->path, code);
}

void page_heading(page *p, const char *heading) {
    if (!p->path)
        return;
    text_puts(&p->body, "<h2>");
    svg_escaped(&p->body, heading);
    text_puts(&p->body, "</h2>\n");
}

void page_note(page *p, const char *note) {
    if (!p->path)
        return;
    text_puts(&p->body, "<p>");
    svg_escaped(&p->body, note);
    text_puts(&p->body, "</p>\n");
}

void page_chart(page *p, text *svg) {
    if (p->path && svg->data)
        text_add(&p->body, svg->data, svg->size);
    svg->size = 0;
}

void page_half_chart(page *p, text *svg) {
    if (!p->path)
        return;
    text_puts(&p->body, "<div class=\"half\">");
    page_chart(p, svg);
    text_puts(&p->body, "</div>\n");
}

#define LONG_LINE  130
#define REPORT_KEY 12

/*
 * Adds printed lines. Long ones in words are wrapped, below the text behind their first word;
 * tables, which have blanks between columns, stay as they are.
 */
static void put_lines(text *out, char *lines) {
    text_puts(out, "<pre>");
    for (char *line = lines; *line;) {
        const size_t n = strcspn(line, "\n");
        char *next = line + n + (line[n] == '\n');
        line[n] = 0;
        const bool wrapped = n > LONG_LINE && !strstr(line + REPORT_KEY, "  ");
        text_puts(out, wrapped ? "<span class=\"long\">" : "");
        svg_escaped(out, line);
        text_puts(out, wrapped ? "</span>\n" : "\n");
        line = next;
    }
    text_puts(out, "</pre>\n");
}

void page_lines(page *p, text *lines) {
    if (p->path && lines->size)
        put_lines(&p->body, lines->data);
    text_free(lines);
}

/* ---- pictures ---- */

static void put_base64(text *out, const unsigned char *data, size_t size) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        const size_t n = size - i < 3 ? size - i : 3;
        const unsigned v = (unsigned)data[i] << 16 | (n > 1 ? (unsigned)data[i + 1] << 8 : 0) |
                           (n > 2 ? data[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]};
        memset(four + 1 + n, '=', 3 - n);
        text_add(out, four, 4);
    }
}

static void put_u32(text *out, uint32_t v) {
    const char bytes[4] = {(char)(v & 255), (char)(v >> 8 & 255), (char)(v >> 16 & 255),
                           (char)(v >> 24 & 255)};
    text_add(out, bytes, 4);
}

/* Writes a BMP: 24 bits, BGR, rows from bottom to top, each padded to 4 bytes. */
static void put_bmp(text *out, const unsigned char *pixels, int32_t width, int32_t height,
                    int32_t channels) {
    const size_t row = ((size_t)width * 3 + 3) / 4 * 4, bytes = row * (size_t)height;
    text_add(out, "BM", 2);
    put_u32(out, (uint32_t)(54 + bytes));
    put_u32(out, 0);
    put_u32(out, 54);
    put_u32(out, 40);
    put_u32(out, (uint32_t)width);
    put_u32(out, (uint32_t)height);
    put_u32(out, 1 | 24u << 16);
    for (int i = 0; i < 6; i++)
        put_u32(out, i == 1 ? (uint32_t)bytes : 0);
    for (int32_t y = height; y-- > 0;) {
        for (int32_t x = 0; x < width; x++) {
            const unsigned char *p =
                pixels + ((size_t)y * (size_t)width + (size_t)x) * (size_t)channels;
            const char bgr[3] = {(char)p[channels - 1], (char)p[channels / 2], (char)p[0]};
            text_add(out, bgr, 3);
        }
        text_add(out, "\0\0\0", row - (size_t)width * 3);
    }
}

void page_picture(page *p, const unsigned char *pixels, int32_t width, int32_t height,
                  int32_t channels, const char *caption) {
    text bmp = {0};
    if (!p->path)
        return;
    put_bmp(&bmp, pixels, width, height, channels);
    text_puts(&p->body, "<figure><img alt=\"\" src=\"data:image/bmp;base64,");
    put_base64(&p->body, (const unsigned char *)bmp.data, bmp.size);
    text_puts(&p->body, "\"><figcaption>");
    svg_escaped(&p->body, caption);
    text_puts(&p->body, "</figcaption></figure>\n");
    text_free(&bmp);
}

/* ---- the report ---- */

void page_report_begin(const tool *t, page *p) {
    (void)t;
    if (!p->path || !(p->captured = tmpfile()))
        return;
    fflush(stdout);
    p->terminal = dup(STDOUT_FILENO);
    dup2(fileno(p->captured), STDOUT_FILENO);
}

void page_report_end(const tool *t, page *p) {
    text report = {0};
    char block[4096];
    size_t n;
    if (!p->captured)
        return;
    fflush(stdout);
    dup2(p->terminal, STDOUT_FILENO);
    close(p->terminal);
    rewind(p->captured);
    while ((n = fread(block, 1, sizeof(block), p->captured)) > 0)
        text_add(&report, block, n);
    fclose(p->captured);
    p->captured = NULL;
    if (!report.size)
        return;
    if (!t->json)
        fwrite(report.data, 1, report.size, stdout);
    put_lines(&p->report, report.data);
    text_free(&report);
}

int page_close(const tool *t, page *p, const char *title, int code) {
    text all = {0};
    tool_keep_warnings(t, NULL);
    if (p->path && (code == EXIT_OK || code == EXIT_BOUND)) {
        text_puts(&all, head);
        svg_escaped(&all, title);
        text_puts(&all, "</title></head><body>\n<h1>");
        svg_escaped(&all, title);
        text_puts(&all, "</h1>\n");
        text_add(&all, p->report.data ? p->report.data : "", p->report.size);
        if (p->warnings.size) {
            text_puts(&all, "<h2>Warnings</h2>\n<pre class=\"wrapped\">");
            svg_escaped(&all, p->warnings.data);
            text_puts(&all, "</pre>\n");
        }
        text_add(&all, p->body.data ? p->body.data : "", p->body.size);
        text_puts(&all, "</body></html>\n");
        const int failed = tool_write(t, p->path, all.data, all.size);
        code = failed ? failed : code;
    }
    text_free(&all);
    text_free(&p->report);
    text_free(&p->warnings);
    text_free(&p->body);
    return code;
}
