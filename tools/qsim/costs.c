/* SPDX-License-Identifier: MIT */
#include "costs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"

static cost *add(costs *c, const char *unit) {
    c->items = tool_grow(c->items, c->count + 1, sizeof(*c->items));
    c->items[c->count] = (cost){tool_copy(unit), NAN, NAN};
    return &c->items[c->count++];
}

void costs_free(costs *c) {
    for (size_t i = 0; i < c->count; i++)
        free(c->items[i].unit);
    free(c->items);
    memset(c, 0, sizeof(*c));
}

void costs_say(void *user, const char *unit, double *in_float, double *in_integers) {
    costs *c = user;
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->items[i].unit, unit) == 0) {
            *in_float = c->items[i].float_us;
            *in_integers = c->items[i].us;
            return;
        }
    c->unknown = true;
}

/* ---- JSON ---- */

static bool read_json(const config *root, costs *c, text *problem) {
    const config *units = config_get(root, "units");
    if (!units || units->kind != CONFIG_ARRAY) {
        text_puts(problem, "there is no array 'units'");
        return false;
    }
    for (size_t i = 0; i < units->count; i++) {
        const config *name = config_get(&units->items[i], "name");
        const char *const keys[2] = {"float_us", "us"};
        if (!name || name->kind != CONFIG_STRING) {
            text_printf(problem, "units[%zu] has no name", i);
            return false;
        }
        cost *one = add(c, name->string);
        for (int k = 0; k < 2; k++) {
            const config *v = config_get(&units->items[i], keys[k]);
            if (!v || v->kind == CONFIG_NULL)
                continue;
            if ((v->kind != CONFIG_INT && v->kind != CONFIG_REAL) || !(v->number >= 0)) {
                text_printf(problem, "units[%zu].%s is not a time", i, keys[k]);
                return false;
            }
            *(k ? &one->us : &one->float_us) = v->number;
        }
    }
    return true;
}

/* ---- CSV ---- */

/* The next field, ended by a NUL; *at: the place after it, NULL at the end of the line. */
static char *next_field(char **at) {
    char *from = *at, *to = from, *begin = from;
    const bool quoted = *from == '"';
    from += quoted;
    while (*from && (quoted ? *from != '"' || from[1] == '"' : *from != ',')) {
        from += quoted && *from == '"';
        *to++ = *from++;
    }
    from += quoted && *from == '"';
    *at = *from == ',' ? from + 1 : NULL;
    *to = 0;
    return begin;
}

static bool read_time(const char *s, double *value) {
    char *end;
    if (!*s)
        return true;
    *value = strtod(s, &end);
    return end != s && !*end && isfinite(*value) && *value >= 0;
}

static bool read_row(char *line, const int columns[3], costs *c) {
    cost *one = add(c, "");
    bool good = true;
    int column = 0;
    for (char *at = line; at && good; column++) {
        char *field = next_field(&at);
        if (column == columns[0]) {
            free(one->unit);
            one->unit = tool_copy(field);
        } else if (column == columns[1])
            good = read_time(field, &one->float_us);
        else if (column == columns[2])
            good = read_time(field, &one->us);
    }
    return good && one->unit[0];
}

static bool read_csv(char *lines, costs *c, text *problem) {
    static const char *const names[3] = {"unit", "float_us", "us"};
    int columns[3] = {-1, -1, -1}, column = 0;
    size_t number = 1;
    char *line = lines, *next = line + strcspn(line, "\n");
    next += *next ? (*next = 0, 1) : 0;
    line[strcspn(line, "\r")] = 0;
    for (char *at = line; at; column++) {
        const char *field = next_field(&at);
        for (int k = 0; k < 3; k++)
            columns[k] = strcmp(field, names[k]) == 0 ? column : columns[k];
    }
    for (int k = 0; k < 3; k++)
        if (columns[k] < 0) {
            text_printf(problem, "line 1: there is no column '%s'", names[k]);
            return false;
        }
    for (line = next; *line; line = next) {
        next = line + strcspn(line, "\n");
        next += *next ? (*next = 0, 1) : 0;
        line[strcspn(line, "\r")] = 0;
        number++;
        if (*line && !read_row(line, columns, c)) {
            text_printf(problem, "line %zu: not a unit and its two times", number);
            return false;
        }
    }
    return true;
}

int costs_read(const tool *t, const char *path, costs *c) {
    text problem = {0};
    config root = {0};
    void *data;
    size_t size;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    char *bytes = tool_grow(data, size + 1, 1);
    bytes[size] = 0;
    bool good;
    if (bytes[strspn(bytes, " \t\r\n")] == '{')
        good = config_parse(bytes, size, &root, &problem) && read_json(&root, c, &problem);
    else
        good = read_csv(bytes, c, &problem);
    if (good && c->count == 0) {
        text_puts(&problem, "it has no unit");
        good = false;
    }
    if (!good)
        code = tool_fail(t, QSIM_E_FORMAT, "%s: %s", path, problem.data ? problem.data : "");
    config_free(&root);
    text_free(&problem);
    free(bytes);
    return code;
}
