/* SPDX-License-Identifier: MIT */
#include "common/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/text.h"
#include "common/utf8.h"

typedef struct reader {
    csv *out;
    size_t count, capacity, columns;
    const char *why;
} reader;

/* The separator of a line: the first of these characters that it contains. */
static char separator(const char *line) {
    static const char candidates[] = ";,\t";
    for (const char *c = candidates; *c; c++)
        if (strchr(line, *c))
            return *c;
    return ' ';
}

/* Reads a decimal number, perhaps in quotes; strtod's words and hexadecimal numbers are refused. */
static bool number(const char *s, float *out) {
    char *end;
    const char *at = s + strspn(s, " \t");
    const bool quoted = *at == '"';
    at += quoted;
    if (!*at || !strchr("-+.0123456789", *at) || strpbrk(at, "xX"))
        return false;
    double v = strtod(at, &end);
    *out = (float)v;
    if (quoted && *end++ != '"')
        return false;
    return isfinite(v) && isfinite(*out) && !end[strspn(end, " \t\r")];
}

static void put(reader *r, float value) {
    if (r->count == r->capacity) {
        r->capacity = r->capacity * 2 + 256;
        r->out->values = tool_grow(r->out->values, r->capacity, sizeof(float));
    }
    r->out->values[r->count++] = value;
}

/* Notes the field that is no number. */
static void refuse(reader *r, const char *field, size_t place, char between) {
    const char *at = field + strspn(field, " \t");
    size_t n = strcspn(at, "\r");
    r->out->field = place;
    n = n < sizeof(r->out->word) ? n : sizeof(r->out->word) - 1;
    memcpy(r->out->word, at, n);
    r->out->word[n] = 0;
    r->why = between == ';' && strchr(at, ',') ? "is not a number: decimals have a point, no comma"
                                               : "is not a number";
}

/* Reads the numbers of one line; false: a field is not a number. */
static bool read_row(reader *r, char *line) {
    char between = separator(line);
    size_t first = r->count;
    for (char *at = line; at;) {
        float value;
        char *next = strchr(at, between);
        if (next)
            *next++ = 0;
        if (next && between == ' ')
            next += strspn(next, " ");
        if (!number(at, &value)) {
            refuse(r, at, r->count - first + 1, between);
            r->count = first;
            return false;
        }
        put(r, value);
        at = next;
    }
    r->columns = r->count - first;
    return true;
}

/* A heading begins with a name; a first line of numbers with one that is none is a sample. */
static bool is_heading(const char *line) {
    const char *at = line + strspn(line, " \t\"");
    return !(*at && strchr("-+.0123456789", *at)) && strncasecmp(at, "nan", 3) != 0 &&
           strncasecmp(at, "inf", 3) != 0;
}

static void trim(char *line) {
    size_t n = strlen(line);
    while (n > 0 && (line[n - 1] == '\r' || line[n - 1] == ' '))
        line[--n] = 0;
}

bool csv_parse(char *lines, csv *out, size_t *number_of_line, const char **why) {
    reader r = {.out = out};
    memset(out, 0, sizeof(*out));
    *number_of_line = 0;
    bool heading = false;
    for (char *line = utf8_behind_mark(lines), *next; line; line = next) {
        ++*number_of_line;
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        trim(line);
        line += strspn(line, " ");
        if (!*line || *line == '#')
            continue;
        const bool names = is_heading(line);
        bool good = read_row(&r, line);
        if (!good && names && out->rows == 0 && !heading) {
            heading = true;
            out->field = 0;
            continue;
        }
        if (good && out->rows > 0 && r.columns != out->columns) {
            r.why = "it has not as many fields as the lines before it";
            good = false;
        }
        if (!good) {
            *why = r.why;
            return false;
        }
        out->columns = r.columns;
        out->rows++;
    }
    *why = "there are no numbers in it";
    return out->rows > 0;
}
