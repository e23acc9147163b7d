/* SPDX-License-Identifier: MIT */
/* Writes the recipe file; recipe_parse.c reads it. */
#include "ptq/recipe.h"

#include <stdio.h>

#include "base/file.h"
#include "ptq/no_memory.h"

#include <qsim/quant.h>

/* Text that grows. */
typedef struct writer {
    qsim_ctx *ctx;
    char *text;
    size_t size, capacity;
    bool failed;
} writer;

static void put(writer *s, const char *text, size_t n) {
    if (!s->failed && qs_grow(s->ctx, (void **)&s->text, &s->capacity, s->size + n, 1)) {
        memcpy(s->text + s->size, text, n);
        s->size += n;
    } else {
        s->failed = true;
    }
}

static void put_text(writer *s, const char *text) {
    put(s, text, strlen(text));
}

static void put_number(writer *s, int64_t value) {
    char digits[24];
    put(s, digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)value));
}

/* Writes at most nine decimals, with a point in every locale. */
static void put_percentile(writer *s, double value) {
    char digits[32];
    const long long parts = (long long)(value * 1e9 + 0.5);
    int n = snprintf(digits, sizeof(digits), "%lld.%09lld", parts / 1000000000, parts % 1000000000);
    while (digits[n - 1] == '0')
        n--;
    put(s, digits, (size_t)(digits[n - 1] == '.' ? n - 1 : n));
}

/* Writes a float as -0x1.800000p+3: exactly. */
static void put_float(writer *s, float value) {
    char text[32];
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const uint32_t fraction = bits & 0x7fffff, biased = bits >> 23 & 0xff;
    const int exponent = biased ? (int)biased - 127 : fraction ? -126 : 0;
    const int n = snprintf(text, sizeof(text), "%s0x%d.%06xp%+d", bits >> 31 ? "-" : "", biased > 0,
                           (unsigned)fraction << 1, exponent);
    put(s, text, (size_t)n);
}

/* Writes a short decimal for people, with a point in every locale. */
static void put_decimal(writer *s, float value) {
    char text[48];
    const int n = snprintf(text, sizeof(text), "%.6g", (double)value);
    for (int i = 0; i < n; i++)
        if (!strchr("0123456789+-e", text[i]))
            text[i] = '.';
    put(s, text, (size_t)n);
}

static void put_name(writer *s, const char *name) {
    put_text(s, "\"");
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        char escaped[8];
        if (*p < 0x20 || *p == 0x7f)
            put(s, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\x%02x", *p));
        else if (*p == '"' || *p == '\\')
            put(s, escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\%c", *p));
        else
            put(s, (const char *)p, 1);
    }
    put_text(s, "\"");
}

static void put_words(writer *s, const char *key, const char *word) {
    put_text(s, key);
    put_text(s, word);
}

/* Writes the number of factors or shifts, then each of them. */
static void put_numbers(writer *s, const qsim_recipe_entry *e) {
    put_text(s, " ");
    put_number(s, e->shift_count);
    for (int64_t i = 0; i < e->shift_count; i++) {
        put_text(s, " ");
        put_float(s, e->shift[i]);
    }
}

static void put_layer(writer *s, const qsim_recipe_entry *e) {
    put_words(s, " weights ", qs_word_text(qs_recipe_weight_types, e->dtype));
    if (e->dtype == QSIM_FLOAT16)
        return;
    put_words(s, " ", qs_word_text(qs_recipe_granularities, e->granularity));
    if (e->granularity == QSIM_GRANULARITY_BLOCK) {
        put_text(s, " ");
        put_number(s, e->block);
    }
    put_text(s, e->symmetric ? " symmetric" : " asymmetric");
    if (e->flags & QSIM_RECIPE_REDUCED)
        put_text(s, " reduced");
    if (e->flags & QSIM_RECIPE_PAIRED)
        put_text(s, " paired");
    if (e->rounding != QSIM_ROUNDING_NEAREST)
        put_words(s, " rounding ", qs_word_text(qs_recipe_roundings, e->rounding));
    if (e->bias_correction)
        put_words(s, " bias-correction ", qs_word_text(qs_recipe_switches, e->bias_correction));
    if (e->shift)
        put_numbers(s, e);
}

static void put_tensor(writer *s, const qsim_recipe_entry *e) {
    put_words(s, " ", qs_word_text(qs_recipe_tensor_types, e->dtype));
    put_text(s, e->symmetric ? " symmetric" : " asymmetric");
    if (e->flags & QSIM_RECIPE_RANGE) {
        put_text(s, " range ");
        put_float(s, e->low);
        put_text(s, " ");
        put_float(s, e->high);
    }
    if (e->flags & QSIM_RECIPE_METHOD) {
        put_words(s, " method ", qs_word_text(qs_recipe_methods, e->method));
        if (e->method == QSIM_METHOD_PERCENTILE) {
            put_text(s, " ");
            put_percentile(s, e->percentile);
        }
    }
    if (e->flags & QSIM_RECIPE_RANGE) {
        put_text(s, " # ");
        put_decimal(s, e->low);
        put_text(s, " ");
        put_decimal(s, e->high);
    }
}

static void put_entry(writer *s, const qsim_recipe_entry *e) {
    put_text(s, e->kind == QSIM_RECIPE_LAYER    ? "layer "
                : e->kind == QSIM_RECIPE_TENSOR ? "tensor "
                                                : "equalize ");
    put_name(s, e->name);
    if (e->kind == QSIM_RECIPE_EQUALIZE)
        put_numbers(s, e);
    else if (e->action == QSIM_RECIPE_FLOAT)
        put_text(s, " float");
    else if (e->action == QSIM_RECIPE_INTEGER)
        put_text(s, " integer");
    else if (e->kind == QSIM_RECIPE_LAYER)
        put_layer(s, e);
    else
        put_tensor(s, e);
    put_text(s, "\n");
}

/* Writes the recipe to s->text, which the caller frees; NOMEM. */
static int write_text(const qsim_recipe *r, writer *s) {
    *s = (writer){.ctx = r->ctx};
    put_text(s, "qsim-recipe 1\n");
    if (r->model[0]) {
        put_words(s, "model ", r->model);
        put_text(s, "\n");
    }
    if (r->calibration[0]) {
        put_words(s, "calibration ", r->calibration);
        put_text(s, "\n");
    }
    for (size_t i = 0; i < r->count; i++)
        put_entry(s, &r->entries[i]);
    if (!s->failed)
        return QSIM_OK;
    qs_free(r->ctx, s->text);
    return QSIM_E_NOMEM;
}

int qsim_recipe_text(const qsim_recipe *recipe, void *buffer, size_t capacity, size_t *need,
                     qsim_error *error) {
    writer s;
    qs_error_clear(error);
    if (!recipe || !need || (capacity > 0 && !buffer))
        return qs_fail_missing(error, "recipe");
    int code = write_text(recipe, &s);
    if (code)
        return qs_no_memory_in("recipe", code, error);
    *need = s.size;
    if (capacity >= s.size)
        memcpy(buffer, s.text, s.size);
    qs_free(recipe->ctx, s.text);
    return QSIM_OK;
}

int qsim_recipe_save(const qsim_recipe *recipe, const char *path, int32_t replace,
                     qsim_error *error) {
    qs_out file;
    writer s;
    qs_error_clear(error);
    if (!recipe || !path)
        return qs_fail_missing(error, "recipe");
    int code = write_text(recipe, &s);
    if (code)
        return qs_no_memory_in("recipe", code, error);
    code = qs_out_open(recipe->ctx, path, replace != 0, &file, error);
    if (!code) {
        (void)qs_out_write(&file, s.text, s.size); /* qs_out_commit reports it */
        code = qs_out_commit(&file, error);
    }
    qs_free(recipe->ctx, s.text);
    return code;
}
