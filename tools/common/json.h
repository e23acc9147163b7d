/* SPDX-License-Identifier: MIT */
/*
 * A JSON writer into a text. Objects and arrays nest up to 15 deep; `key` is NULL inside arrays and
 * at the top. Strings are written as valid UTF-8, whatever their bytes; NaN and infinities as null.
 */
#ifndef TOOL_JSON_H
#define TOOL_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

typedef struct json {
    text out;
    int depth;
    char close[16];
    bool first[16], flat[16];
} json;

void json_object(json *j, const char *key);
void json_array(json *j, const char *key);
/* Begins an array of plain values on one line. */
void json_row(json *j, const char *key);
/* Begins an object on one line, with all that is in it. */
void json_line(json *j, const char *key);
void json_end(json *j);
/* Takes back the end of the outermost object, which has members: more can follow. */
void json_reopen(json *j);
void json_string(json *j, const char *key, const char *value); /* NULL: null */
void json_int(json *j, const char *key, int64_t value);
void json_number(json *j, const char *key, double value);
/* Nanoseconds as microseconds with three decimals. */
void json_micros(json *j, const char *key, uint64_t nanoseconds);
void json_bool(json *j, const char *key, bool value);
void json_null(json *j, const char *key);

#endif
