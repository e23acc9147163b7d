/* SPDX-License-Identifier: MIT */
/* The recipe file: reading it, word by word. recipe_text.c writes it. */
#include "ptq/recipe.h"

#include <math.h>

#include "base/file.h"
#include "kernel/context.h"

#include <qsim/quant.h>

typedef struct reader {
    const char *p, *end;
    const char *word; /* the one that was read last */
    size_t length;
    const char *name; /* of the data, for messages */
    size_t line;
    qsim_error *error;
} reader;

static int bad(const reader *r, const char *what) {
    return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s", r->name, r->line, what);
}

/* Names the word that was read last. */
static int bad_word(const reader *r, const char *what) {
    const int shown = r->length < 40 ? (int)r->length : 40;
    if (r->length == 0)
        return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s, but the line ends", r->name,
                       r->line, what);
    return qs_fail(r->error, QSIM_E_FORMAT, "%s: line %zu: %s, not '%.*s'", r->name, r->line, what,
                   shown, r->word);
}

/* ---- words ---- */

static bool ends_word(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '#';
}

/* The next word of the line; false at its end. */
static bool next_word(reader *r) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
    r->word = r->p;
    while (r->p < r->end && !ends_word(*r->p))
        r->p++;
    r->length = (size_t)(r->p - r->word);
    return r->length > 0;
}

static bool is(const reader *r, const char *word) {
    return strlen(word) == r->length && memcmp(r->word, word, r->length) == 0;
}

static void next_line(reader *r) {
    while (r->p < r->end && *r->p != '\n')
        r->p++;
    if (r->p < r->end)
        r->p++;
    r->line++;
}

/* The first word of the next line that has one. */
static bool find_line(reader *r) {
    while (!next_word(r)) {
        if (r->p == r->end)
            return false;
        next_line(r);
    }
    return true;
}

static int end_line(reader *r) {
    if (next_word(r))
        return bad_word(r, "expected the end of the line");
    next_line(r);
    return QSIM_OK;
}

/* ---- numbers ---- */

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 1.8p+2, after 0x: `value` is exact up to 13 digits. */
static bool take_hexadecimal(const char *p, const char *end, double *value) {
    double mantissa = 0;
    int digits = 0, point = -1, exponent = 0, sign = 1;
    for (; p < end && (*p == '.' || digit(*p) >= 0); p++) {
        if (*p == '.' && (point >= 0 || digits != 1))
            return false;
        if (*p == '.')
            point = digits;
        else if (++digits > 13)
            return false;
        else
            mantissa = mantissa * 16 + digit(*p);
    }
    if (digits == 0 || end - p < 2 || *p++ != 'p')
        return false;
    if (*p == '+' || *p == '-')
        sign = *p++ == '-' ? -1 : 1;
    if (p == end || end - p > 4)
        return false;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        exponent = exponent * 10 + digit(*p);
    }
    *value = ldexp(mantissa, sign * exponent - 4 * (point < 0 ? 0 : digits - point));
    return true;
}

/* 99.99: up to 15 digits, so that one division rounds once. */
static bool take_decimal(const char *p, const char *end, double *value) {
    double whole = 0, scale = 1;
    int digits = 0;
    bool point = false;
    for (; p < end; p++) {
        if (*p == '.' && !point && digits > 0) {
            point = true;
            continue;
        }
        if (*p < '0' || *p > '9' || ++digits > 15)
            return false;
        whole = whole * 10 + digit(*p);
        scale *= point ? 10 : 1;
    }
    *value = whole / scale;
    return digits > 0;
}

static bool take_number(reader *r, double *value) {
    if (!next_word(r))
        return false;
    const char *p = r->word, *end = p + r->length;
    const bool negative = *p == '-';
    p += negative;
    const bool hexadecimal = end - p > 2 && p[0] == '0' && p[1] == 'x';
    if (!(hexadecimal ? take_hexadecimal(p + 2, end, value) : take_decimal(p, end, value)))
        return false;
    *value = negative ? -*value : *value;
    return isfinite(*value);
}

/* ---- names ---- */

/* One byte of a quoted name at *p, escapes undone; -1: malformed. */
static int unescape(const char **p, const char *close) {
    char c = *(*p)++;
    if (c != '\\')
        return c ? (unsigned char)c : -1;
    c = *p < close ? *(*p)++ : 0;
    if (c == '"' || c == '\\')
        return c;
    if (c != 'x' || close - *p < 2)
        return -1;
    const int high = digit((*p)[0]), low = digit((*p)[1]);
    *p += 2;
    return high < 0 || low < 0 || high + low == 0 ? -1 : high * 16 + low;
}

/* A quoted name, in the recipe's arena. */
static int take_name(reader *r, qsim_recipe *recipe, char **name) {
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
    if (r->p == r->end || *r->p != '"')
        return bad(r, "expected a name in quotation marks");
    const char *p = r->p + 1, *close = p;
    while (close < r->end && *close != '"' && *close != '\n')
        close += *close == '\\' && close + 1 < r->end ? 2 : 1;
    if (close >= r->end || *close != '"')
        return bad(r, "the name does not end");
    char *out = qs_arena_alloc(&recipe->arena, (size_t)(close - p) + 1, 1);
    if (!out)
        return qs_fail(r->error, QSIM_E_NOMEM, "%s: out of memory", r->name);
    for (*name = out; p < close;) {
        const int c = unescape(&p, close);
        if (c < 0)
            return bad(r, "the name is malformed");
        *out++ = (char)c;
    }
    r->p = close + 1;
    if (out == *name || (r->p < r->end && !ends_word(*r->p)))
        return bad(r, "the name is malformed");
    return QSIM_OK;
}

/* ---- entries ---- */

static int take_word(reader *r, const qs_word *words, const char *expected, int32_t *number) {
    if (!next_word(r) || !qs_word_number(words, r->word, r->length, number))
        return bad_word(r, expected);
    return QSIM_OK;
}

static int take_block(reader *r, qsim_recipe_entry *e) {
    double size;
    if (e->granularity != QSIM_GRANULARITY_BLOCK)
        return QSIM_OK;
    if (!take_number(r, &size) || !(size >= 1 && size <= INT32_MAX) || size != floor(size))
        return bad_word(r, "expected the size of blocks");
    e->block = (int64_t)size;
    return QSIM_OK;
}

static int take_method(reader *r, qsim_recipe_entry *e) {
    int code = take_word(r, qs_recipe_methods, "expected a method", &e->method);
    e->flags |= QSIM_RECIPE_METHOD;
    if (!code && e->method == QSIM_METHOD_PERCENTILE &&
        (!take_number(r, &e->percentile) || !(e->percentile > 0 && e->percentile <= 100)))
        code = bad_word(r, "expected a percentile in (0, 100]");
    return code;
}

static int take_range(reader *r, qsim_recipe_entry *e) {
    double low, high;
    if (!take_number(r, &low) || !take_number(r, &high))
        return bad_word(r, "expected the two ends of the range");
    e->flags |= QSIM_RECIPE_RANGE;
    e->low = (float)low + 0.0f;
    e->high = (float)high + 0.0f;
    return QSIM_OK;
}

/* What a word after the type settles; each can be settled once. 0: not known. */
static uint32_t settles(const reader *r) {
    int32_t number;
    if (qs_word_number(qs_recipe_granularities, r->word, r->length, &number))
        return 1;
    return is(r, "symmetric") || is(r, "asymmetric") ? 2
           : is(r, "reduced")                        ? 4
           : is(r, "rounding")                       ? 8
           : is(r, "bias-correction")                ? 16
           : is(r, "range")                          ? 32
           : is(r, "method")                         ? 64
                                                     : 0;
}

/* A word after the type; one that this version does not know is refused by name. */
static int take_key(reader *r, qsim_recipe_entry *e) {
    const bool layer = e->kind == QSIM_RECIPE_LAYER;
    if (is(r, "symmetric") || is(r, "asymmetric")) {
        e->symmetric = is(r, "symmetric");
        return QSIM_OK;
    }
    if (layer && qs_word_number(qs_recipe_granularities, r->word, r->length, &e->granularity))
        return take_block(r, e);
    if (layer && is(r, "reduced")) {
        e->flags |= QSIM_RECIPE_REDUCED;
        return QSIM_OK;
    }
    if (layer && is(r, "rounding"))
        return take_word(r, qs_recipe_roundings, "expected a rounding", &e->rounding);
    if (layer && is(r, "bias-correction"))
        return take_word(r, qs_recipe_switches, "expected on or off", &e->bias_correction);
    if (!layer && is(r, "range"))
        return take_range(r, e);
    if (!layer && is(r, "method"))
        return take_method(r, e);
    return bad_word(r, layer ? "expected what version 1 knows of a layer"
                             : "expected what version 1 knows of a tensor");
}

/* Everything after the name. */
static int take_entry(reader *r, qsim_recipe_entry *e) {
    const bool layer = e->kind == QSIM_RECIPE_LAYER;
    int code = QSIM_OK;
    if (!next_word(r))
        return bad_word(r, "expected what becomes of it");
    if (is(r, "float") || (layer && is(r, "integer"))) {
        e->action = is(r, "float") ? QSIM_RECIPE_FLOAT : QSIM_RECIPE_INTEGER;
        return QSIM_OK;
    }
    e->symmetric = layer;
    if (layer && !is(r, "weights"))
        return bad_word(r, "expected weights, float or integer");
    if (layer)
        code = take_word(r, qs_recipe_weight_types, "expected a type of weights", &e->dtype);
    else if (!qs_word_number(qs_recipe_tensor_types, r->word, r->length, &e->dtype))
        code = bad_word(r, "expected a type or float");
    for (uint32_t seen = 0; !code && next_word(r);) {
        const uint32_t now = settles(r);
        code = seen & now ? bad_word(r, "expected what the line does not say already")
                          : take_key(r, e);
        seen |= now;
    }
    return code;
}

static int take_line(reader *r, qsim_recipe *recipe) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    char *name = NULL;
    if (!is(r, "layer") && !is(r, "tensor"))
        return bad_word(r, "expected layer or tensor");
    e.kind = is(r, "layer") ? QSIM_RECIPE_LAYER : QSIM_RECIPE_TENSOR;
    int code = take_name(r, recipe, &name);
    if (!code)
        code = take_entry(r, &e);
    if (code)
        return code;
    const char *fault = qs_recipe_fault(&e);
    if (fault)
        return bad(r, fault);
    if (qs_recipe_find(recipe, e.kind, name))
        return bad(r, "the name stands twice");
    code = end_line(r);
    return code ? code : qs_recipe_put(recipe, &e, name, r->error);
}

/* ---- header ---- */

static int take_hash(reader *r, char hash[65]) {
    bool good = next_word(r) && r->length == 64 && !hash[0];
    for (size_t i = 0; good && i < 64; i++)
        good = digit(r->word[i]) >= 0;
    if (!good)
        return bad_word(r, "expected 64 hexadecimal digits, once");
    memcpy(hash, r->word, 64);
    return end_line(r);
}

static int take_header(reader *r) {
    double version;
    if (!find_line(r) || !is(r, "qsim-recipe") || !take_number(r, &version))
        return bad(r, "not a recipe");
    if (version != 1)
        return qs_fail(r->error, QSIM_E_UNSUPPORTED, "%s: recipe version %.*s is not known",
                       r->name, r->length < 40 ? (int)r->length : 40, r->word);
    return end_line(r);
}

int qsim_recipe_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                            qsim_recipe **out, qsim_error *error) {
    qsim_recipe *recipe;
    qs_error_clear(error);
    if (out)
        *out = NULL;
    if ((size > 0 && !data) || !out)
        return qs_fail(error, QSIM_E_ARGUMENT, "recipe: an argument is missing");
    int code = qsim_recipe_create(ctx, &recipe, error);
    if (code)
        return code;
    reader r = {.p = size ? data : "", .name = name ? name : "(memory)", .line = 1, .error = error};
    r.end = r.p + size;
    code = take_header(&r);
    while (!code && find_line(&r)) {
        if (is(&r, "model"))
            code = take_hash(&r, recipe->model);
        else if (is(&r, "calibration"))
            code = take_hash(&r, recipe->calibration);
        else
            code = take_line(&r, recipe);
    }
    if (code) {
        qsim_recipe_free(recipe);
        return code;
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
        return qs_fail(error, QSIM_E_ARGUMENT, "recipe: an argument is missing");
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
