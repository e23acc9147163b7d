/* SPDX-License-Identifier: MIT */
/* Names of a model's classes, from --labels or the model's package. */
#ifndef TOOL_CLASS_NAMES_H
#define TOOL_CLASS_NAMES_H

#include "common/tool.h"

typedef struct class_names {
    char *bytes;
    const char **items; /* NULL: there are none */
    size_t count;
    const char *from; /* the file, for messages */
} class_names;

/* One name a line, or "NUMBER,NAME" lines that count from 0. Prints what is wrong. */
int class_names_read(const tool *t, class_names *n);
/* An error unless there are no names, or one for each class. */
int class_names_check(const tool *t, const class_names *n, size_t classes);
/* The name, or the number where there are none. */
const char *class_name(const class_names *n, size_t c, char buffer[24]);
/* The class of this name, -1: none. */
int64_t class_of_name(const class_names *n, const char *name);
void class_names_free(class_names *n);

#endif
