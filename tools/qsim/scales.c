/* SPDX-License-Identifier: MIT */
#include "scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/quant.h>

#include "common/columns.h"

/* A tensor in 8 bits or another quantized type. */
typedef struct scaled {
    const char *tensor, *op_type;
    qsim_value_info scale, zero; /* constants; rank -2: not constant, or missing */
} scaled;

typedef struct listing {
    const qsim_model *m;
    qsim_value_info *values; /* constants by name */
    size_t value_count;
    scaled *items;
    size_t count;
} listing;

static int by_name(const void *a, const void *b) {
    return strcmp(((const qsim_value_info *)a)->name, ((const qsim_value_info *)b)->name);
}

static void read_constants(listing *l) {
    const int32_t n = qsim_model_value_count(l->m);
    l->values = tool_alloc((size_t)n, sizeof(*l->values));
    for (int32_t i = 0; i < n; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        if (qsim_model_value(l->m, i, &v) == QSIM_OK && v.data)
            l->values[l->value_count++] = v;
    }
    if (l->value_count > 0)
        qsort(l->values, l->value_count, sizeof(*l->values), by_name);
}

static qsim_value_info constant(const listing *l, const char *name) {
    const qsim_value_info key = {.name = name, .rank = -2};
    const qsim_value_info *hit =
        l->value_count ? bsearch(&key, l->values, l->value_count, sizeof(key), by_name) : NULL;
    return hit ? *hit : key;
}

static void add(listing *l, const qsim_node_info *n, const char *tensor, int32_t scale,
                int32_t zero) {
    if (scale >= n->input_count)
        return;
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->items[i].tensor, tensor) == 0)
            return;
    l->items = tool_grow(l->items, l->count + 1, sizeof(*l->items));
    l->items[l->count++] = (scaled){tensor, n->op_type, constant(l, n->inputs[scale]),
                                    constant(l, zero < n->input_count ? n->inputs[zero] : "")};
}

/* Adds the operands of a QLinear operator with their scales and zero points, then its output. */
static void add_linear(listing *l, const qsim_node_info *n) {
    int32_t i = 0;
    if (strcmp(n->op_type, "QLinearConcat") == 0) {
        add(l, n, n->outputs[0], 0, 1);
        for (i = 2; i + 2 < n->input_count; i += 3)
            add(l, n, n->inputs[i], i + 1, i + 2);
        return;
    }
    for (; i + 2 < n->input_count && i < 6 && n->input_count - i >= 5; i += 3)
        add(l, n, n->inputs[i], i + 1, i + 2);
    add(l, n, n->outputs[0], i, i + 1);
}

static void collect(const qsim_model *m, listing *l) {
    *l = (listing){.m = m};
    read_constants(l);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        if (qsim_model_node(m, i, &n) || n.input_count < 2 || n.output_count < 1)
            continue;
        if (strcmp(n.op_type, "QuantizeLinear") == 0)
            add(l, &n, n.outputs[0], 1, 2);
        else if (strcmp(n.op_type, "DequantizeLinear") == 0)
            add(l, &n, n.inputs[0], 1, 2);
        else if (strncmp(n.op_type, "QLinear", 7) == 0)
            add_linear(l, &n);
    }
}

static void discard(listing *l) {
    free(l->values);
    free(l->items);
}

/* ---- numbers ---- */

static size_t count_of(const qsim_value_info *v) {
    return v->rank >= -1 && v->dtype == QSIM_FLOAT ? v->bytes / sizeof(float) : 0;
}

static double scale_at(const scaled *s, size_t i) {
    float f;
    memcpy(&f, (const char *)s->scale.data + i * sizeof(f), sizeof(f));
    return (double)f;
}

static long long zero_at(const scaled *s, size_t i) {
    const unsigned char *p = s->zero.data;
    int32_t wide;
    if (s->zero.rank < -1 || !p || s->zero.bytes == 0)
        return 0;
    switch (s->zero.dtype) {
    case QSIM_UINT8: return p[i < s->zero.bytes ? i : 0];
    case QSIM_INT8: return (signed char)p[i < s->zero.bytes ? i : 0];
    case QSIM_INT32:
        memcpy(&wide, p + 4 * (4 * i < s->zero.bytes ? i : 0), sizeof(wide));
        return wide;
    default: return 0;
    }
}

static const char *type_of(const scaled *s) {
    return s->zero.rank >= -1 ? qsim_dtype_name(s->zero.dtype) : "uint8";
}

/* Prints the real values of the least and the greatest code, if there is one scale. */
static void put_range(table *rows, const scaled *s) {
    int32_t low, high;
    const int32_t dtype = s->zero.rank >= -1 ? s->zero.dtype : QSIM_UINT8;
    if (count_of(&s->scale) != 1 || qsim_dtype_limits(dtype, 0, &low, &high))
        table_cell(rows, "-");
    else
        table_cell(rows, "%.6g to %.6g", (double)(low - zero_at(s, 0)) * scale_at(s, 0),
                   (double)(high - zero_at(s, 0)) * scale_at(s, 0));
}

void scales_print(const qsim_model *m) {
    static const char *const heading[] = {"tensor", "type",       "scales",
                                          "scale",  "zero point", "stands for"};
    table rows = {.columns = "llrrrl"};
    listing l;
    collect(m, &l);
    for (size_t i = 0; i < 6; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < l.count; i++) {
        const scaled *s = &l.items[i];
        const size_t n = count_of(&s->scale);
        double low = INFINITY, high = -INFINITY;
        for (size_t k = 0; k < n; k++) {
            low = fmin(low, scale_at(s, k));
            high = fmax(high, scale_at(s, k));
        }
        table_cell(&rows, "%s", s->tensor);
        table_cell(&rows, "%s", type_of(s));
        table_cell(&rows, n ? "%zu" : "computed", n);
        if (n == 0)
            table_cell(&rows, "-");
        else if (n == 1)
            table_cell(&rows, "%.9g", low);
        else
            table_cell(&rows, "%.4g to %.4g", low, high);
        table_cell(&rows, "%lld", zero_at(s, 0));
        put_range(&rows, s);
    }
    putchar('\n');
    if (l.count > 0)
        table_print(&rows, stdout);
    else
        printf("no tensor has a scale\n");
    table_free(&rows);
    discard(&l);
}

void scales_json(json *j, const qsim_model *m) {
    listing l;
    collect(m, &l);
    json_array(j, "quantization");
    for (size_t i = 0; i < l.count; i++) {
        const scaled *s = &l.items[i];
        const size_t n = count_of(&s->scale);
        json_object(j, NULL);
        json_string(j, "tensor", s->tensor);
        json_string(j, "type", type_of(s));
        json_row(j, "scale");
        for (size_t k = 0; k < n; k++)
            json_number(j, NULL, scale_at(s, k));
        json_end(j);
        json_row(j, "zero_point");
        for (size_t k = 0; k < n; k++)
            json_int(j, NULL, zero_at(s, k));
        json_end(j);
        json_end(j);
    }
    json_end(j);
    discard(&l);
}
