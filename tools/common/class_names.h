/* SPDX-License-Identifier: MIT */
/* Names of a model's classes, from --labels or the model's package. */
#ifndef TOOL_CLASS_NAMES_H
#define TOOL_CLASS_NAMES_H

#include "common/tool.h"

typedef struct class_names {
    char *bytes;
    const char **items; /* NULL: no names */
    size_t count;
    const char *from; /* the file, for messages */
} class_names;

/* Reads a name per line, or "NUMBER,NAME" lines that count from 0. Prints errors. */
int class_names_read(const tool *t, class_names *n);
/* Checks that there are no names, or one per class. */
int class_names_check(const tool *t, const class_names *n, size_t classes);
/* The name of a class, or its number if there are no names. */
const char *class_name(const class_names *n, size_t c, char buffer[24]);
/* The class with this name; -1: none. */
int64_t class_of_name(const class_names *n, const char *name);
void class_names_free(class_names *n);

#endif
