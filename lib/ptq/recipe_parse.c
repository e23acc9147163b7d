/* SPDX-License-Identifier: MIT */
/* Reads the recipe file word by word; recipe_text.c writes it. */
#include "ptq/lines.h"
#include "ptq/recipe.h"

#include <math.h>

#include "base/file.h"
#include "kernel/context.h"
#include "ptq/no_memory.h"

#include <qsim/quant.h>

/* ---- entries ---- */

static int read_word(qs_lines *r, const qs_word *words, const char *expected, int32_t *number) {
    if (!qs_lines_word(r) || !qs_word_number(words, r->word, r->length, number))
        return qs_lines_bad_word(r, expected);
    return QSIM_OK;
}

static int read_block(qs_lines *r, qsim_recipe_entry *e) {
    double size;
    if (e->granularity != QSIM_GRANULARITY_BLOCK)
        return QSIM_OK;
    if (!qs_lines_number(r, &size) || !(size >= 1 && size <= INT32_MAX) || size != floor(size))
        return qs_lines_bad_word(r, "expected the size of blocks");
    e->block = (int64_t)size;
    return QSIM_OK;
}

static int read_method(qs_lines *r, qsim_recipe_entry *e) {
    int code = read_word(r, qs_recipe_methods, "expected a method", &e->method);
    e->flags |= QSIM_RECIPE_METHOD;
    if (!code && e->method == QSIM_METHOD_PERCENTILE &&
        (!qs_lines_number(r, &e->percentile) || !(e->percentile > 0 && e->percentile <= 100)))
        code = qs_lines_bad_word(r, "expected a percentile in (0, 100]");
    return code;
}

static int read_range(qs_lines *r, qsim_recipe_entry *e) {
    double low, high;
    if (!qs_lines_number(r, &low) || !qs_lines_number(r, &high))
        return qs_lines_bad_word(r, "expected the two ends of the range");
    e->flags |= QSIM_RECIPE_RANGE;
    e->low = (float)low + 0.0f;
    e->high = (float)high + 0.0f;
    return QSIM_OK;
}

/* Reads a count, and as many numbers. */
static int read_numbers(qs_lines *r, qsim_recipe *recipe, qsim_recipe_entry *e) {
    double count, value;
    /* A number and a space in front of it take two bytes at least. */
    if (!qs_lines_number(r, &count) || !(count >= 1 && count <= (double)(r->end - r->p) / 2) ||
        count != floor(count))
        return qs_lines_bad_word(r, "expected the number of channels");
    float *shift = qs_arena_alloc(&recipe->arena, (size_t)count, sizeof(*shift));
    if (!shift)
        return QSIM_E_NOMEM;
    e->shift = shift;
    for (e->shift_count = 0; e->shift_count < (int64_t)count; e->shift_count++) {
        if (!qs_lines_number(r, &value))
            return qs_lines_bad_word(r, "expected a number for each channel");
        shift[e->shift_count] = (float)value + 0.0f;
    }
    return QSIM_OK;
}

static int read_correction(qs_lines *r, qsim_recipe *recipe, qsim_recipe_entry *e) {
    int code = read_word(r, qs_recipe_switches, "expected on, off or given", &e->bias_correction);
    return code || e->bias_correction != QSIM_BIAS_CORRECTION_GIVEN ? code
                                                                    : read_numbers(r, recipe, e);
}

/* The setting that the last word begins, as a bit, since each may occur once; 0: unknown word. */
static uint32_t setting_of(const qs_lines *r) {
    int32_t number;
    if (qs_word_number(qs_recipe_granularities, r->word, r->length, &number))
        return 1;
    return qs_lines_is(r, "symmetric") || qs_lines_is(r, "asymmetric") ? 2
           : qs_lines_is(r, "reduced") || qs_lines_is(r, "paired")     ? 4
           : qs_lines_is(r, "rounding")                                ? 8
           : qs_lines_is(r, "bias-correction")                         ? 16
           : qs_lines_is(r, "range")                                   ? 32
           : qs_lines_is(r, "method")                                  ? 64
                                                                       : 0;
}

/* Reads a setting after the type; one that this version does not know is refused by name. */
static int read_setting(qs_lines *r, qsim_recipe *recipe, qsim_recipe_entry *e) {
    const bool layer = e->kind == QSIM_RECIPE_LAYER;
    if (qs_lines_is(r, "symmetric") || qs_lines_is(r, "asymmetric")) {
        e->symmetric = qs_lines_is(r, "symmetric");
        return QSIM_OK;
    }
    if (layer && qs_word_number(qs_recipe_granularities, r->word, r->length, &e->granularity))
        return read_block(r, e);
    if (layer && (qs_lines_is(r, "reduced") || qs_lines_is(r, "paired"))) {
        e->flags |= qs_lines_is(r, "paired") ? QSIM_RECIPE_PAIRED : QSIM_RECIPE_REDUCED;
        return QSIM_OK;
    }
    if (layer && qs_lines_is(r, "rounding"))
        return read_word(r, qs_recipe_roundings, "expected a rounding", &e->rounding);
    if (layer && qs_lines_is(r, "bias-correction"))
        return read_correction(r, recipe, e);
    if (!layer && qs_lines_is(r, "range"))
        return read_range(r, e);
    if (!layer && qs_lines_is(r, "method"))
        return read_method(r, e);
    return qs_lines_bad_word(r, layer ? "expected a setting of layers"
                                      : "expected a setting of tensors");
}

/* Reads the settings after the name. */
static int read_entry(qs_lines *r, qsim_recipe *recipe, qsim_recipe_entry *e) {
    const bool layer = e->kind == QSIM_RECIPE_LAYER;
    int code = QSIM_OK;
    if (e->kind == QSIM_RECIPE_EQUALIZE)
        return read_numbers(r, recipe, e);
    if (!qs_lines_word(r))
        return qs_lines_bad_word(r, layer ? "expected weights, float or integer"
                                          : "expected a type or float");
    if (qs_lines_is(r, "float") || (layer && qs_lines_is(r, "integer"))) {
        e->action = qs_lines_is(r, "float") ? QSIM_RECIPE_FLOAT : QSIM_RECIPE_INTEGER;
        return QSIM_OK;
    }
    e->symmetric = layer;
    if (layer && !qs_lines_is(r, "weights"))
        return qs_lines_bad_word(r, "expected weights, float or integer");
    if (layer)
        code = read_word(r, qs_recipe_weight_types, "expected a type of weights", &e->dtype);
    else if (!qs_word_number(qs_recipe_tensor_types, r->word, r->length, &e->dtype))
        code = qs_lines_bad_word(r, "expected a type or float");
    for (uint32_t seen = 0; !code && qs_lines_word(r);) {
        const uint32_t now = setting_of(r);
        code = seen & now
                   ? qs_lines_bad_word(r, "expected a setting that the line does not have yet")
                   : read_setting(r, recipe, e);
        seen |= now;
    }
    return code;
}

static int read_line(qs_lines *r, qsim_recipe *recipe) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    char *name = NULL;
    size_t length = 0;
    e.kind = qs_lines_is(r, "layer")      ? QSIM_RECIPE_LAYER
             : qs_lines_is(r, "tensor")   ? QSIM_RECIPE_TENSOR
             : qs_lines_is(r, "equalize") ? QSIM_RECIPE_EQUALIZE
                                          : 0;
    if (!e.kind)
        return qs_lines_bad_word(r, "expected layer, tensor or equalize");
    int code = qs_lines_name(r, &recipe->arena, &name, &length);
    if (!code)
        code = read_entry(r, recipe, &e);
    if (code)
        return code;
    const char *fault = qs_recipe_fault(&e);
    if (fault)
        return qs_lines_bad(r, fault);
    if (qs_recipe_find(recipe, e.kind, name))
        return qs_lines_bad(r, "the name appears twice");
    code = qs_lines_end(r);
    return code ? code : qs_recipe_put(recipe, &e, name);
}

/* ---- header ---- */

static int read_header(qs_lines *r) {
    double version;
    if (!qs_lines_find(r) || !qs_lines_is(r, "qsim-recipe") || !qs_lines_number(r, &version))
        return qs_lines_bad(r, "not a recipe");
    if (version != 1)
        return qs_fail(r->error, QSIM_E_UNSUPPORTED, "%s: recipe version %.*s is not known",
                       r->name, r->length < 40 ? (int)r->length : 40, r->word);
    return qs_lines_end(r);
}

int qsim_recipe_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                            qsim_recipe **out, qsim_error *error) {
    qsim_recipe *recipe;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if ((size > 0 && !data) || !out)
        return qs_fail_missing(error, "recipe");
    int code = qsim_recipe_create(ctx, &recipe, error);
    if (code)
        return code;
    qs_lines r = qs_lines_of(data, size, name, error);
    code = read_header(&r);
    while (!code && qs_lines_find(&r)) {
        if ((code = qs_go_on(recipe->ctx, r.name, error)))
            break;
        if (qs_lines_is(&r, "model"))
            code = qs_lines_hash(&r, recipe->model);
        else if (qs_lines_is(&r, "calibration"))
            code = qs_lines_hash(&r, recipe->calibration);
        else
            code = read_line(&r, recipe);
    }
    if (code) {
        qsim_recipe_free(recipe);
        return qs_no_memory_in(r.name, code, error);
    }
    *out = recipe;
    return QSIM_OK;
}

int qsim_recipe_load(qsim_ctx *ctx, const char *path, qsim_recipe **out, qsim_error *error) {
    qs_map map;
    qsim_ctx *held;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if (!path || !out)
        return qs_fail_missing(error, "recipe");
    int code = qs_ctx_hold(ctx, &held, error);
    if (code)
        return code;
    code = qs_map_open(held, path, true, &map, error);
    if (!code) {
        code = qsim_recipe_load_memory(held, map.data, map.size, path, out, error);
        qs_map_close(held, &map);
    }
    qs_ctx_drop(held);
    return code;
}
