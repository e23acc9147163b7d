/* SPDX-License-Identifier: MIT */
#include "common/labels.h"

#include <stdlib.h>

/* Converts labels of a text table, which are floats, to integers. */
static int whole_numbers(const tool *t, const char *path, const float *in, size_t count,
                         int64_t *out) {
    for (size_t i = 0; i < count; i++) {
        bool inside = in[i] >= 0 && in[i] <= 1e7f;
        out[i] = inside ? (int64_t)in[i] : -1;
        if ((float)out[i] < in[i] || !inside)
            return tool_fail(t, QSIM_E_VALUE, "%s: label %zu is %g, not a class number", path, i,
                             (double)in[i]);
    }
    return EXIT_OK;
}

static int read_all(const tool *t, source *y, int64_t **labels, int64_t *count) {
    qsim_error e;
    const qsim_array *a = &y->array;
    int64_t n = (int64_t)a->elements;
    if (a->rank < 1 || a->dims[0] != n)
        return tool_fail(t, QSIM_E_SHAPE, "%s: labels need one number per sample", y->path);
    void *raw = tool_alloc(a->bytes, 1);
    *labels = tool_alloc(a->elements, sizeof(**labels));
    *count = n;
    int code = source_read(t, y, 0, a->dims[0], raw, a->bytes);
    if (code == EXIT_OK && y->table) {
        code = whole_numbers(t, y->path, raw, a->elements, *labels);
        free(raw);
        return code;
    }
    qsim_tensor from = {a->dtype, 1, &n, raw, a->bytes};
    qsim_tensor to = {QSIM_INT64, 1, &n, *labels, a->elements * sizeof(**labels)};
    if (code == EXIT_OK && qsim_tensor_convert(&from, &to, &e))
        code = tool_error(t, y->path, &e);
    free(raw);
    return code;
}

int labels_read(const tool *t, const char *path, const char *member, int64_t **labels,
                int64_t *count) {
    source y;
    int code = source_open(t, path, member, &y);
    if (code == EXIT_OK)
        code = read_all(t, &y, labels, count);
    source_close(&y);
    return code;
}
