/* SPDX-License-Identifier: MIT */
#include "common/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the whole program, because tool_alloc, which ends it, is told nothing else. */
static bool written;
static const char *memory_limit; /* as --memory gave it; NULL: none */

void tool_note_limit(const char *memory) {
    memory_limit = memory;
}

const char *tool_memory_limit(void) {
    return memory_limit;
}

void tool_note_written(void) {
    written = true;
}

const char *tool_is_written(void) {
    return written ? "files that were written before this are complete" : NULL;
}

void tool_no_memory(double bytes) {
    if (bytes > 0)
        fprintf(stderr, "qsim: out of memory: %.0f bytes are needed\n", bytes);
    else
        fputs("qsim: out of memory\n", stderr);
    if (memory_limit || written)
        fprintf(stderr, "hint: %s%s%s%s\n", memory_limit ? "the limit is --memory " : "",
                memory_limit ? memory_limit : "", memory_limit && written ? "; " : "",
                written ? tool_is_written() : "");
    exit(6);
}

static void *or_die(void *p, size_t count, size_t size) {
    if (!p)
        tool_no_memory((double)count * (double)size);
    return p;
}

void *tool_alloc(size_t count, size_t size) {
    return or_die(calloc(count ? count : 1, size ? size : 1), count, size);
}

void *tool_grow(void *old, size_t count, size_t size) {
    if (size > 0 && count > SIZE_MAX / size)
        or_die(NULL, count, size);
    return or_die(realloc(old, count > 0 && size > 0 ? count * size : 1), count, size);
}

char *tool_copy(const char *string) {
    size_t n = strlen(string) + 1;
    return memcpy(tool_alloc(n, 1), string, n);
}

void text_add(text *t, const char *bytes, size_t size) {
    if (t->capacity - t->size <= size) {
        t->capacity = (t->size + size) + (t->size + size) / 2 + 64;
        t->data = tool_grow(t->data, t->capacity, 1);
    }
    memcpy(t->data + t->size, bytes, size);
    t->size += size;
    t->data[t->size] = 0;
}

void text_puts(text *t, const char *string) {
    text_add(t, string, strlen(string));
}

void text_printf(text *t, const char *format, ...) {
    char small[512], *p = small;
    va_list args, again;
    if (!format)
        return;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    if (n >= (int)sizeof(small)) {
        p = tool_alloc((size_t)n + 1, 1);
        vsnprintf(p, (size_t)n + 1, format, again);
    }
    va_end(again);
    text_add(t, p, n > 0 ? (size_t)n : 0);
    if (p != small)
        free(p);
}

void text_csv(text *t, const char *field) {
    if (!strpbrk(field, ",\"\r\n")) {
        text_puts(t, field);
        return;
    }
    text_puts(t, "\"");
    for (; *field; field++)
        text_printf(t, *field == '"' ? "\"\"" : "%c", *field);
    text_puts(t, "\"");
}

void text_shell_word(text *t, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=,:+@%";
    text_puts(t, " ");
    if (*word && !word[strspn(word, plain)]) {
        text_puts(t, word);
        return;
    }
    text_puts(t, "'");
    for (; *word; word++)
        text_printf(t, *word == '\'' ? "'\\''" : "%c", *word);
    text_puts(t, "'");
}

void text_free(text *t) {
    free(t->data);
    memset(t, 0, sizeof(*t));
}

size_t text_columns(const char *string) {
    size_t n = 0;
    for (; *string; string++)
        n += ((unsigned char)*string & 0xc0) != 0x80;
    return n;
}
