/* SPDX-License-Identifier: MIT */
/* Untrusted text, made safe for a terminal. */
#ifndef TOOL_UTF8_H
#define TOOL_UTF8_H

#include <stddef.h>

#include "common/text.h"

/* Length of the well-formed UTF-8 sequence at s (RFC 3629), 0 if it is none. */
size_t utf8_length(const unsigned char *s, size_t left);

/* The text behind a byte order mark, which Windows' editors and spreadsheets write. */
char *utf8_behind_mark(char *s);

/*
 * Adds at most `limit` bytes of a string, safe for a terminal: control bytes and broken UTF-8 as
 * \xHH, longer strings with the middle left out.
 */
void utf8_printable(text *t, const char *s, size_t limit);

#endif
