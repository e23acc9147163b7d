/* SPDX-License-Identifier: MIT */
#include "common/json.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "common/utf8.h"

static void add_quoted(text *t, const char *s) {
    const unsigned char *p = (const unsigned char *)s;
    size_t left = strlen(s);
    text_puts(t, "\"");
    while (left > 0) {
        size_t n = utf8_length(p, left);
        if (n == 0)
            text_puts(t, "\xef\xbf\xbd"); /* U+FFFD */
        else if (*p == '"' || *p == '\\')
            text_printf(t, "\\%c", *p);
        else if (*p == '\n')
            text_puts(t, "\\n");
        else if (*p == '\t')
            text_puts(t, "\\t");
        else if (*p < 0x20 || *p == 0x7f)
            text_printf(t, "\\u%04x", *p);
        else
            text_add(t, (const char *)p, n);
        p += n ? n : 1;
        left -= n ? n : 1;
    }
    text_puts(t, "\"");
}

static void start(json *j, const char *key) {
    if (j->flat[j->depth]) {
        text_puts(&j->out, j->first[j->depth] ? "" : ", ");
        j->first[j->depth] = false;
    } else if (j->depth > 0) {
        text_puts(&j->out, j->first[j->depth] ? "\n" : ",\n");
        j->first[j->depth] = false;
        for (int i = 0; i < j->depth; i++)
            text_puts(&j->out, "  ");
    }
    if (key) {
        add_quoted(&j->out, key);
        text_puts(&j->out, ": ");
    }
}

static void open_scope(json *j, const char *key, const char *bracket, char close) {
    start(j, key);
    text_puts(&j->out, bracket);
    assert(j->depth < 15);
    j->depth++;
    j->close[j->depth] = close;
    j->first[j->depth] = true;
    j->flat[j->depth] = j->flat[j->depth - 1]; /* the outermost object is not flat */
}

void json_object(json *j, const char *key) {
    open_scope(j, key, "{", '}');
}

void json_array(json *j, const char *key) {
    open_scope(j, key, "[", ']');
}

void json_row(json *j, const char *key) {
    json_array(j, key);
    j->flat[j->depth] = true;
}

void json_line(json *j, const char *key) {
    json_object(j, key);
    j->flat[j->depth] = true;
}

void json_end(json *j) {
    bool empty = j->first[j->depth] || j->flat[j->depth];
    char close = j->close[j->depth--];
    if (!empty) {
        text_puts(&j->out, "\n");
        for (int i = 0; i < j->depth; i++)
            text_puts(&j->out, "  ");
    }
    text_add(&j->out, &close, 1);
    if (j->depth == 0)
        text_puts(&j->out, "\n");
}

void json_reopen(json *j) {
    assert(j->depth == 0);
    j->out.size -= sizeof("\n}\n") - 1;
    j->depth = 1;
}

void json_string(json *j, const char *key, const char *value) {
    if (!value) {
        json_null(j, key);
        return;
    }
    start(j, key);
    add_quoted(&j->out, value);
}

void json_int(json *j, const char *key, int64_t value) {
    start(j, key);
    text_printf(&j->out, "%lld", (long long)value);
}

void json_number(json *j, const char *key, double value) {
    if (!isfinite(value)) {
        json_null(j, key);
        return;
    }
    start(j, key);
    text_printf(&j->out, "%.9g", value);
}

void json_micros(json *j, const char *key, uint64_t nanoseconds) {
    start(j, key);
    text_printf(&j->out, "%llu.%03llu", (unsigned long long)(nanoseconds / 1000),
                (unsigned long long)(nanoseconds % 1000));
}

void json_bool(json *j, const char *key, bool value) {
    start(j, key);
    text_puts(&j->out, value ? "true" : "false");
}

void json_null(json *j, const char *key) {
    start(j, key);
    text_puts(&j->out, "null");
}
