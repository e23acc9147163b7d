/* SPDX-License-Identifier: MIT */
/* Recipes: entries by kind and name. recipe_parse.c reads the file, recipe_text.c writes it. */
#include "ptq/recipe.h"

#include <math.h>

#include "kernel/context.h"
#include "ptq/no_memory.h"

#include <qsim/quant.h>

/* ---- life ---- */

static const char no_memory[] = "recipe: out of memory";

int qsim_recipe_create(qsim_ctx *ctx, qsim_recipe **out, qsim_error *error) {
    qs_error_clear(error);
    if (!out)
        return qs_fail(error, QSIM_E_ARGUMENT, "recipe: no place for one");
    *out = NULL;
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    qsim_recipe *r = qs_calloc(ctx, 1, sizeof(*r));
    if (!r) {
        qs_ctx_drop(ctx);
        return qs_fail(error, QSIM_E_NOMEM, no_memory);
    }
    r->ctx = ctx;
    qs_arena_init(&r->arena, ctx);
    for (int i = 0; i < 3; i++) {
        r->names[i] = qs_names_create(ctx);
        if (!r->names[i]) {
            qsim_recipe_free(r);
            return qs_fail(error, QSIM_E_NOMEM, no_memory);
        }
    }
    *out = r;
    return QSIM_OK;
}

void qsim_recipe_free(qsim_recipe *recipe) {
    if (!recipe)
        return;
    qsim_ctx *ctx = recipe->ctx;
    for (int i = 0; i < 3; i++)
        if (recipe->names[i])
            qs_names_free(ctx, recipe->names[i]);
    qs_arena_free(&recipe->arena);
    qs_free(ctx, recipe->entries);
    qs_free(ctx, recipe);
    qs_ctx_drop(ctx);
}

/* ---- which entries are valid ---- */

static const char *shift_fault(const qsim_recipe_entry *e) {
    const bool given = e->bias_correction == QSIM_BIAS_CORRECTION_GIVEN;
    if (given ? !e->shift || e->shift_count < 1 || e->shift_count > INT32_MAX
              : e->shift || e->shift_count)
        return "numbers of bias correction go with 'bias-correction given'";
    for (int64_t i = 0; i < e->shift_count; i++)
        if (!isfinite(e->shift[i]))
            return "a bias correction is not finite";
    return NULL;
}

static const char *layer_fault(const qsim_recipe_entry *e) {
    const bool block = e->granularity == QSIM_GRANULARITY_BLOCK;
    if (!qs_word_text(qs_recipe_weight_types, e->dtype))
        return "weights have no such type";
    if (!qs_word_text(qs_recipe_granularities, e->granularity))
        return "there is no such granularity";
    if (block ? e->block < 1 || e->block > INT32_MAX : e->block != 0)
        return "the size of blocks is out of range";
    if (!qs_word_text(qs_recipe_roundings, e->rounding))
        return "there is no such rounding";
    if (e->bias_correction && !qs_word_text(qs_recipe_switches, e->bias_correction))
        return "bias correction is neither on nor off nor given";
    if ((e->flags && e->flags != QSIM_RECIPE_REDUCED && e->flags != QSIM_RECIPE_PAIRED) ||
        e->method || e->low != 0 || e->high != 0 || e->percentile != 0)
        return "a layer has no range";
    return shift_fault(e);
}

static const char *tensor_fault(const qsim_recipe_entry *e) {
    const bool range = (e->flags & QSIM_RECIPE_RANGE) != 0;
    const bool method = (e->flags & QSIM_RECIPE_METHOD) != 0;
    const bool percentile = method && e->method == QSIM_METHOD_PERCENTILE;
    if (!qs_word_text(qs_recipe_tensor_types, e->dtype))
        return "tensors have no such type";
    if ((e->flags & ~(QSIM_RECIPE_RANGE | QSIM_RECIPE_METHOD)) || e->granularity || e->block ||
        e->rounding || e->bias_correction || e->shift || e->shift_count)
        return "a tensor has no weights";
    if (range ? !isfinite(e->low) || !isfinite(e->high) || e->low > e->high
              : e->low != 0 || e->high != 0)
        return "the ends of the range are not finite, or in the wrong order";
    if (method ? !qs_word_text(qs_recipe_methods, e->method) : e->method != 0)
        return "there is no such method";
    if (percentile ? !(e->percentile > 0 && e->percentile <= 100) : e->percentile != 0)
        return "the percentile is not in (0, 100]";
    return NULL;
}

/* What is wrong with an entry of factors, which may have nothing else. */
static const char *factor_fault(const qsim_recipe_entry *e) {
    const qsim_recipe_entry bare = {.struct_size = e->struct_size,
                                    .name = e->name,
                                    .kind = e->kind,
                                    .shift = e->shift,
                                    .shift_count = e->shift_count};
    if (memcmp(e, &bare, sizeof(bare)) != 0 || !e->shift || e->shift_count < 1 ||
        e->shift_count > INT32_MAX)
        return "an equalized tensor has factors and no other setting";
    for (int64_t i = 0; i < e->shift_count; i++)
        if (!(e->shift[i] >= 0x1p-60f && e->shift[i] <= 0x1p60f))
            return "a factor is not above 0, or out of range";
    return NULL;
}

const char *qs_recipe_fault(const qsim_recipe_entry *e) {
    const qsim_recipe_entry bare = {
        .struct_size = e->struct_size, .name = e->name, .kind = e->kind, .action = e->action};
    if (e->kind == QSIM_RECIPE_EQUALIZE)
        return factor_fault(e);
    if (e->kind != QSIM_RECIPE_LAYER && e->kind != QSIM_RECIPE_TENSOR)
        return "it is neither a layer nor a tensor";
    if (e->reserved || e->symmetric < 0 || e->symmetric > 1)
        return "a field is out of range";
    if (e->action == QSIM_RECIPE_FLOAT ||
        (e->action == QSIM_RECIPE_INTEGER && e->kind == QSIM_RECIPE_LAYER))
        return memcmp(e, &bare, sizeof(bare)) == 0 ? NULL
                                                   : "float and integer take no other setting";
    if (e->action != QSIM_RECIPE_QUANTIZE)
        return "there is no such action";
    return e->kind == QSIM_RECIPE_LAYER ? layer_fault(e) : tensor_fault(e);
}

/* ---- entries ---- */

int qs_recipe_put(qsim_recipe *r, const qsim_recipe_entry *entry, const char *name) {
    struct qs_names *names = r->names[entry->kind - 1];
    qs_id at = qs_names_find(names, name);
    const size_t shifts = (size_t)entry->shift_count;
    float *shift = shifts ? qs_arena_alloc(&r->arena, shifts, sizeof(*shift)) : NULL;
    if (shifts && !shift)
        return QSIM_E_NOMEM;
    if (shifts)
        memcpy(shift, entry->shift, shifts * sizeof(*shift));
    if (at == QS_NONE) {
        name = qs_arena_string(&r->arena, name, strlen(name));
        at = (qs_id)r->count;
        if (!name || r->count >= INT32_MAX ||
            !qs_grow(r->ctx, (void **)&r->entries, &r->capacity, r->count, sizeof(*r->entries)) ||
            qs_names_put(r->ctx, names, name, at))
            return QSIM_E_NOMEM;
        r->count++;
    } else {
        name = r->entries[at].name;
    }
    r->entries[at] = *entry;
    r->entries[at].name = name;
    r->entries[at].struct_size = sizeof(*entry);
    r->entries[at].shift = shift;
    if (entry->percentile > 0) /* rounded as in the text */
        r->entries[at].percentile = rint(entry->percentile * 1e9) / 1e9;
    return QSIM_OK;
}

const qsim_recipe_entry *qs_recipe_find(const qsim_recipe *r, int32_t kind, const char *name) {
    qs_id at = r && name && *name ? qs_names_find(r->names[kind - 1], name) : QS_NONE;
    return at == QS_NONE ? NULL : &r->entries[at];
}

int qsim_recipe_set(qsim_recipe *recipe, const qsim_recipe_entry *entry, qsim_error *error) {
    qsim_recipe_entry own;
    qs_error_clear(error);
    if (!recipe || !entry)
        return qs_fail_missing(error, "recipe");
    int code = QS_OPTIONS(own, entry, error);
    if (code)
        return code;
    if (!own.name || !own.name[0])
        return qs_fail(error, QSIM_E_ARGUMENT, "recipe: an entry has no name");
    const char *fault = qs_recipe_fault(&own);
    if (fault)
        return qs_fail(error, QSIM_E_ARGUMENT, "recipe: '%s': %s", own.name, fault);
    return qs_no_memory_in("recipe", qs_recipe_put(recipe, &own, own.name), error);
}

int32_t qsim_recipe_count(const qsim_recipe *recipe) {
    return recipe ? (int32_t)recipe->count : 0;
}

int qsim_recipe_get(const qsim_recipe *recipe, int32_t index, qsim_recipe_entry *entry) {
    if (index < 0 || index >= qsim_recipe_count(recipe))
        return QSIM_E_ARGUMENT;
    return qs_give(entry, &recipe->entries[index], sizeof(*entry));
}

int32_t qsim_recipe_find(const qsim_recipe *recipe, int32_t kind, const char *name) {
    if (kind < QSIM_RECIPE_LAYER || kind > QSIM_RECIPE_EQUALIZE)
        return QSIM_E_NOT_FOUND;
    const qsim_recipe_entry *e = qs_recipe_find(recipe, kind, name);
    return e ? (int32_t)(e - recipe->entries) : QSIM_E_NOT_FOUND;
}

/* ---- merging ---- */

int qsim_recipe_merge(qsim_recipe *into, const qsim_recipe *from, qsim_error *error) {
    int code = QSIM_OK;
    qs_error_clear(error);
    if (!into || !from)
        return qs_fail_missing(error, "recipe");
    if (into->model[0] && from->model[0] && strcmp(into->model, from->model) != 0)
        return qs_fail(error, QSIM_E_MISMATCH, "recipe: the two belong to different models");
    if (into == from)
        return QSIM_OK;
    if (!into->model[0])
        memcpy(into->model, from->model, sizeof(into->model));
    if (!into->calibration[0])
        memcpy(into->calibration, from->calibration, sizeof(into->calibration));
    for (size_t i = 0; i < from->count && !code; i++)
        code = qs_recipe_put(into, &from->entries[i], from->entries[i].name);
    return qs_no_memory_in("recipe", code, error);
}

const char *qsim_recipe_model(const qsim_recipe *recipe) {
    return recipe ? recipe->model : "";
}

const char *qsim_recipe_calibration(const qsim_recipe *recipe) {
    return recipe ? recipe->calibration : "";
}
