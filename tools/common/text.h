/* SPDX-License-Identifier: MIT */
/*
 * Growing text. Without memory the program ends with exit code 6 (tool_alloc), so these functions
 * do not fail.
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
    char *data; /* terminated by NUL after the first addition */
    size_t size, capacity;
} text;

void text_add(text *t, const char *bytes, size_t size);
void text_puts(text *t, const char *string);
void text_printf(text *t, const char *format, ...) TOOL_PRINTF(2, 3);
/* Adds a field of a CSV file, quoted if necessary (RFC 4180). */
void text_csv(text *t, const char *field);
/* Adds a blank and a word of a command line, quoted if a shell would expand it. */
void text_shell_word(text *t, const char *word);
void text_free(text *t);

/*
 * Never NULL: a lack of memory ends the program. `tool_alloc` zeroes; count * size is checked for
 * overflow. Freed with free().
 */
void *tool_alloc(size_t count, size_t size);
void *tool_grow(void *old, size_t count, size_t size);
char *tool_copy(const char *string);
/* Ends the program for want of this many bytes; 0: their number is not known. */
void tool_no_memory(double bytes);
/* The limit of --memory, which hints of errors name: noted once, kept while the program runs. */
void tool_note_limit(const char *memory);
const char *tool_memory_limit(void);
/* From now on messages of a lack of memory say that files which were written before are there. */
void tool_note_written(void);
/* The words for that, which allocate nothing; NULL: nothing was written. */
const char *tool_is_written(void);

/* Columns of a UTF-8 string (one per code point). */
size_t text_columns(const char *string);

#endif
