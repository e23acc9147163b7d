/* SPDX-License-Identifier: MIT */
#include "taps.h"

#include <stdlib.h>
#include <string.h>

static void add(taps *t, const char *a, const char *b) {
    t->a = tool_grow(t->a, t->count + 1, sizeof(*t->a));
    t->b = tool_grow(t->b, t->count + 1, sizeof(*t->b));
    t->a[t->count] = a;
    t->b[t->count++] = b;
}

void taps_free(taps *t) {
    free(t->a);
    free(t->b);
    memset(t, 0, sizeof(*t));
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *find(const char *const *names, size_t count, const char *name) {
    const char *const *hit = count ? bsearch(&name, names, count, sizeof(*names), by_name) : NULL;
    return hit ? *hit : NULL;
}

static bool is_output(const qsim_model *m, const char *name) {
    for (int32_t i = 0; i < qsim_model_output_count(m); i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_output(m, i, &v) == QSIM_OK && strcmp(v.name, name) == 0)
            return true;
    }
    return false;
}

/* Sorted names of a model's float tensors that are neither constants nor outputs. */
static const char **float_names(const qsim_model *m, size_t *count) {
    int32_t n = qsim_model_value_count(m);
    const char **names = tool_alloc((size_t)n, sizeof(*names));
    *count = 0;
    for (int32_t i = 0; i < n; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(m, i, &v) == QSIM_OK && v.dtype == QSIM_FLOAT && !v.data && *v.name &&
            !is_output(m, v.name))
            names[(*count)++] = v.name;
    }
    if (*count > 0)
        qsort(names, *count, sizeof(*names), by_name);
    return names;
}

/* Sorted names that integer nodes produce or QuantizeLinear reads: inside an integer operator. */
static const char **fused_names(const qsim_model *m, size_t *count) {
    const char **names = NULL;
    *count = 0;
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) != QSIM_OK)
            continue;
        bool dequantizes = strcmp(n.op_type, "DequantizeLinear") == 0;
        int32_t made = n.integer && !dequantizes ? n.output_count : 0;
        int32_t read = strcmp(n.op_type, "QuantizeLinear") == 0 && n.input_count > 0;
        names = tool_grow(names, *count + (size_t)made + 1, sizeof(*names));
        for (int32_t k = 0; k < made; k++)
            names[(*count)++] = n.outputs[k];
        if (read)
            names[(*count)++] = n.inputs[0];
    }
    if (*count > 0)
        qsort(names, *count, sizeof(*names), by_name);
    return names;
}

void taps_layers(const qsim_model *a, const qsim_model *b, taps *out) {
    size_t a_count, b_count, fused_count;
    const char **a_names = float_names(a, &a_count), **b_names = float_names(b, &b_count);
    const char **fused = fused_names(b, &fused_count);
    text key = {0};
    for (int32_t i = 0; i < qsim_model_node_count(a); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(a, i, &n) != QSIM_OK)
            continue;
        for (int32_t k = 0; k < n.output_count; k++) {
            const char *name = find(a_names, a_count, n.outputs[k]);
            if (!name)
                continue;
            key.size = 0;
            text_printf(&key, "%s_DequantizeLinear_Output", name);
            const char *other = find(b_names, b_count, key.data);
            if (!other && !find(fused, fused_count, name))
                other = find(b_names, b_count, name);
            if (other)
                add(out, name, other);
        }
    }
    text_free(&key);
    free(a_names);
    free(b_names);
    free(fused);
}

int taps_outputs(const tool *t, const qsim_model *a, const qsim_model *b, taps *out) {
    int32_t count = qsim_model_output_count(a);
    if (count == 0 || qsim_model_output_count(b) != count)
        return tool_fail(t, QSIM_E_SHAPE, "the models have %d and %d outputs", count,
                         qsim_model_output_count(b));
    for (int32_t i = 0; i < count; i++) {
        qsim_value_info x = {.struct_size = sizeof(x)}, y = {.struct_size = sizeof(y)};
        if (qsim_model_output(a, i, &x) || qsim_model_output(b, i, &y))
            return tool_fail(t, QSIM_E_INTERNAL, "no output %d", i);
        add(out, x.name, y.name);
    }
    return EXIT_OK;
}
