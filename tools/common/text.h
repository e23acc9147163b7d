/* SPDX-License-Identifier: MIT */
/*
 * Text that grows. Tools end with exit code 6 when there is no memory left (tool_alloc), so nothing
 * here fails.
 */
#ifndef TOOL_TEXT_H
#define TOOL_TEXT_H

#include <stdarg.h>
#include <stddef.h>

#if defined(__GNUC__)
#define TOOL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TOOL_PRINTF(fmt, args)
#endif

typedef struct text {
    char *data; /* NUL-terminated once anything was added */
    size_t size, room;
} text;

void text_add(text *t, const char *bytes, size_t size);
void text_puts(text *t, const char *string);
void text_printf(text *t, const char *format, ...) TOOL_PRINTF(2, 3);
/* A field of a CSV file, in quotes where it needs them (RFC 4180). */
void text_csv(text *t, const char *field);
/* A blank and a word of a command line, in quotes where a shell would read more into it. */
void text_shell_word(text *t, const char *word);
void text_free(text *t);

/* Never NULL. `tool_alloc` zeroes; count * size is checked. Freed with free(). */
void *tool_alloc(size_t count, size_t size);
void *tool_grow(void *old, size_t count, size_t size);
char *tool_copy(const char *string);

/* Columns that a UTF-8 string takes (one per code point). */
size_t text_columns(const char *string);

#endif
