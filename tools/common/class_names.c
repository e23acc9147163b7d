/* SPDX-License-Identifier: MIT */
#include "common/class_names.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

/* The text after a line's own number ("0," or "0:" or "0" and a blank); NULL: without number. */
static const char *after_number(const char *line, size_t number) {
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%zu", number);
    if (strncmp(line, digits, (size_t)n) != 0 || !line[n] || !strchr(",;:\t ", line[n]))
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " ");
}

/* Drops the numbers, and a heading, from lines "NUMBER,NAME" that count from 0. */
static void drop_numbers(class_names *n) {
    size_t heading = n->count > 1 && !after_number(n->items[0], 0) && after_number(n->items[1], 0);
    for (size_t i = heading; i < n->count; i++)
        if (!after_number(n->items[i], i - heading))
            return;
    n->count -= heading;
    for (size_t i = 0; i < n->count; i++)
        n->items[i] = after_number(n->items[i + heading], i);
}

int class_names_read(const tool *t, class_names *n) {
    const char *path = args_value(&t->args, "labels"), *packaged = tool_packaged_labels(t);
    void *data;
    size_t size;
    memset(n, 0, sizeof(*n));
    if (!path && !packaged)
        return EXIT_OK;
    if (path) {
        int code = tool_read_all(t, path, &data, &size);
        if (code)
            return code;
        n->bytes = tool_grow(data, size + 1, 1);
        n->bytes[size] = 0;
    } else
        n->bytes = tool_copy(packaged);
    n->from = path ? path : "labels.txt of the package";
    for (char *line = utf8_behind_mark(n->bytes); *line;) {
        size_t length = strcspn(line, "\r\n");
        char *next = line + length + strspn(line + length, "\r\n");
        line[length] = 0;
        n->items = tool_grow(n->items, n->count + 1, sizeof(*n->items));
        n->items[n->count++] = line;
        line = next;
    }
    drop_numbers(n);
    return EXIT_OK;
}

int class_names_check(const tool *t, const class_names *n, size_t classes) {
    if (!n->bytes || n->count == classes)
        return EXIT_OK;
    return tool_fail(t, QSIM_E_VALUE, "%s: %zu name%s for %zu classes", n->from, n->count,
                     n->count == 1 ? "" : "s", classes);
}

const char *class_name(const class_names *n, size_t c, char buffer[24]) {
    if (c < n->count)
        return n->items[c];
    snprintf(buffer, 24, "%zu", c);
    return buffer;
}

int64_t class_of_name(const class_names *n, const char *name) {
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->items[i], name) == 0)
            return (int64_t)i;
    return -1;
}

void class_names_free(class_names *n) {
    free(n->bytes);
    free(n->items);
    memset(n, 0, sizeof(*n));
}
