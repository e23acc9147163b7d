/* SPDX-License-Identifier: MIT */
/* Recipes of qsim quantize: reads, saves and prints them. */
#include <string.h>

#include "calibrating.h"
#include "common/columns.h"
#include "quantizing.h"

int recipe_open(const tool *t, quantizing *q) {
    const char *path = args_value(&t->args, "recipe");
    qsim_error e;
    if (!path)
        return EXIT_OK;
    if (qsim_recipe_load(t->ctx, path, &q->recipe, &e))
        return tool_error(t, path, &e);
    q->options.recipe = q->recipe;
    return EXIT_OK;
}

int recipe_save(const tool *t, const quantizing *q) {
    const char *path = args_value(&t->args, "save-recipe");
    qsim_error e;
    if (!path)
        return EXIT_OK;
    return tool_written(t, path, qsim_recipe_save(q->decided, path, t->force, &e), &e);
}

/* Does the recipe give every quantized tensor its range? Then no calibration is needed. */
bool recipe_has_ranges(const quantizing *q) {
    bool any = false;
    for (int32_t i = 0; i < qsim_recipe_count(q->recipe); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(q->recipe, i, &e) || e.kind != QSIM_RECIPE_TENSOR)
            continue;
        if (e.action == QSIM_RECIPE_QUANTIZE && !(e.flags & QSIM_RECIPE_RANGE))
            return false;
        any = true;
    }
    return any;
}

/* ---- ranges ---- */

/* The next tensor at *i or behind that is quantized with a range of its own; false: none is left.
 */
static bool next_range(const qsim_recipe *r, int32_t *i, qsim_recipe_entry *e) {
    for (; *i < qsim_recipe_count(r); ++*i) {
        *e = (qsim_recipe_entry){.struct_size = sizeof(*e)};
        if (qsim_recipe_get(r, *i, e) == QSIM_OK && e->kind == QSIM_RECIPE_TENSOR &&
            e->action == QSIM_RECIPE_QUANTIZE)
            return true;
    }
    return false;
}

static const char *method_of(const qsim_recipe_entry *e) {
    return e->flags & QSIM_RECIPE_METHOD ? range_methods[e->method] : "given";
}

const char *recipe_method(const quantizing *q) {
    const char *name = NULL;
    qsim_recipe_entry e;
    double percentile = 0;
    for (int32_t i = 0; next_range(q->decided, &i, &e); i++) {
        if (name && (name != method_of(&e) || percentile != e.percentile))
            return "mixed";
        name = method_of(&e);
        percentile = e.percentile;
    }
    return name ? name : range_methods[q->options.method];
}

void recipe_print_ranges(const quantizing *q) {
    const char *const heading[] = {"activation", "type", "low", "high", "range by"};
    table rows = {.columns = "llrrl"};
    qsim_recipe_entry e;
    for (size_t i = 0; i < 5; i++)
        table_cell(&rows, "%s", heading[i]);
    for (int32_t i = 0; next_range(q->decided, &i, &e); i++) {
        if (!(e.flags & QSIM_RECIPE_RANGE))
            continue;
        table_cell(&rows, "%s", e.name);
        table_cell(&rows, "%s%s", qsim_dtype_name(e.dtype), e.symmetric ? " symmetric" : "");
        table_cell(&rows, "%.6g", (double)e.low);
        table_cell(&rows, "%.6g", (double)e.high);
        table_cell(&rows, e.percentile > 0 ? "%s %.8g" : "%s", method_of(&e), e.percentile);
    }
    if (rows.count > 5) {
        putchar('\n');
        table_print(&rows, stdout);
    } else
        table_free(&rows);
}

/* ---- JSON ---- */

static void put_layer(json *j, const qsim_recipe_entry *e) {
    static const char *const granularities[] = {"channel", "tensor", "block"};
    static const char *const roundings[] = {"nearest", "gptq"};
    json_string(j, "weights", qsim_dtype_name(e->dtype));
    json_string(j, "granularity", granularities[e->granularity]);
    if (e->granularity == QSIM_GRANULARITY_BLOCK)
        json_int(j, "block", e->block);
    json_bool(j, "symmetric", e->symmetric);
    json_bool(j, "reduced", (e->flags & QSIM_RECIPE_REDUCED) != 0);
    json_bool(j, "paired", (e->flags & QSIM_RECIPE_PAIRED) != 0);
    json_string(j, "rounding", roundings[e->rounding]);
    if (e->bias_correction)
        json_bool(j, "bias_correction", e->bias_correction == QSIM_BIAS_CORRECTION_ON);
}

static void put_tensor(json *j, const qsim_recipe_entry *e) {
    json_string(j, "type", qsim_dtype_name(e->dtype));
    json_bool(j, "symmetric", e->symmetric);
    if (e->flags & QSIM_RECIPE_RANGE) {
        json_array(j, "range");
        json_number(j, NULL, (double)e->low);
        json_number(j, NULL, (double)e->high);
        json_end(j);
    }
    if (e->flags & QSIM_RECIPE_METHOD)
        json_string(j, "method", range_methods[e->method]);
    if (e->percentile > 0)
        json_number(j, "percentile", e->percentile);
}

static void put_entries(json *j, const qsim_recipe *r, int32_t kind) {
    for (int32_t i = 0; i < qsim_recipe_count(r); i++) {
        qsim_recipe_entry e = {.struct_size = sizeof(e)};
        if (qsim_recipe_get(r, i, &e) || e.kind != kind)
            continue;
        json_object(j, NULL);
        json_string(j, "name", e.name);
        if (e.action != QSIM_RECIPE_QUANTIZE)
            json_string(j, kind == QSIM_RECIPE_LAYER ? "weights" : "type",
                        e.action == QSIM_RECIPE_FLOAT ? "float" : "integer");
        else if (kind == QSIM_RECIPE_LAYER)
            put_layer(j, &e);
        else
            put_tensor(j, &e);
        json_end(j);
    }
}

void recipe_json(json *j, const quantizing *q) {
    json_object(j, "recipe");
    json_string(j, "model", qsim_recipe_model(q->decided));
    json_array(j, "layers");
    put_entries(j, q->decided, QSIM_RECIPE_LAYER);
    json_end(j);
    json_array(j, "tensors");
    put_entries(j, q->decided, QSIM_RECIPE_TENSOR);
    json_end(j);
    json_end(j);
}
