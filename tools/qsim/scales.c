/* SPDX-License-Identifier: MIT */
#include "scales.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/quant.h>

#include "common/columns.h"
#include "name_index.h"
#include "quantized.h"

/* A tensor in 8 bits or another quantized type. */
typedef struct scaled {
    const char *tensor;
    int32_t dtype;
    qsim_value_info scale, zero; /* constants; rank -2: not constant, or missing */
} scaled;

typedef struct listing {
    tensor_names all;
    scaled *items;
    size_t count, capacity;
} listing;

static qsim_value_info constant(const listing *l, const qsim_node_info *n, int32_t input) {
    const qsim_value_info none = {.rank = -2}, *v = input < n->input_count
                                                        ? tensor_named(&l->all, n->inputs[input])
                                                        : NULL;
    return v && v->data ? *v : none;
}

static void add(listing *l, const qsim_node_info *n, const quantized *q) {
    if (l->count == l->capacity) {
        l->capacity = 2 * l->capacity + 64;
        l->items = tool_grow(l->items, l->capacity, sizeof(*l->items));
    }
    l->items[l->count++] = (scaled){q->tensor, tensor_named(&l->all, q->tensor)->dtype,
                                    constant(l, n, q->scale), constant(l, n, q->zero)};
}

/* Keeps the first of the items of each tensor. */
static void drop_repeated(listing *l) {
    name_index first = {0};
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++)
        name_index_add(&first, l->items[i].tensor, (int32_t)i);
    name_index_sort(&first);
    for (size_t i = 0; i < l->count; i++)
        if (name_index_find(&first, l->items[i].tensor) == (int32_t)i)
            l->items[kept++] = l->items[i];
    l->count = kept;
    name_index_free(&first);
}

static void collect(const qsim_model *m, listing *l) {
    *l = (listing){.count = 0};
    tensor_names_read(m, &l->all);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        quantized q;
        int32_t from = 0;
        while (qsim_model_node(m, i, &n) == QSIM_OK && quantized_next(&l->all, &n, &from, &q))
            add(l, &n, &q);
    }
    drop_repeated(l);
}

static void discard(listing *l) {
    tensor_names_free(&l->all);
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

/* Prints the real values of the least and the greatest code, if there is one scale. */
static void put_range(table *rows, const scaled *s) {
    int32_t low, high;
    if (count_of(&s->scale) != 1 || qsim_dtype_limits(s->dtype, 0, &low, &high))
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
        table_cell(&rows, "%s", qsim_dtype_name(s->dtype));
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
        json_string(j, "type", qsim_dtype_name(s->dtype));
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
