/* SPDX-License-Identifier: MIT */
/*
 * JSON written by people: parsed strictly (no comments, no NaN, no duplicate keys, at most 32
 * levels) into a tree that keeps the file's order and the path of each value.
 */
#ifndef TOOL_CONFIG_H
#define TOOL_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define CONFIG_MOST_BYTES (8u << 20)
#define CONFIG_MOST_DEPTH 32

typedef enum config_kind {
    CONFIG_NULL,
    CONFIG_BOOL,
    CONFIG_INT,
    CONFIG_REAL,
    CONFIG_STRING,
    CONFIG_ARRAY,
    CONFIG_OBJECT
} config_kind;

typedef struct config {
    config_kind kind;
    bool truth;
    char *key; /* in an object, else NULL */
    char *string;
    int64_t whole;
    double number; /* of integers, too */
    const struct config *parent;
    struct config *items; /* items of an array or object */
    size_t count;
} config;

/* Parses one object. On failure `problem` says what and where; c is empty. c must not be moved. */
bool config_parse(const void *data, size_t size, config *c, text *problem);
void config_free(config *c);

/* The value of a key; NULL: not there, or c is NULL or no object. */
const config *config_get(const config *c, const char *key);
/* Writes the path of a value, as "passes.quant.config.nodes_to_exclude[2]"; nothing for the root.
 */
void config_path(const config *c, text *out);
/* The kind of a value for messages: "a string". */
const char *config_kind_name(const config *c);

#endif
