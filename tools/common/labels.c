/* SPDX-License-Identifier: MIT */
#include "common/labels.h"

#include <stdlib.h>

#include "common/feed.h"

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

static int refuse_shape(const tool *t, const source *y) {
    const qsim_array *a = &y->array;
    char shape[256];
    qsim_error e = {.code = QSIM_E_SHAPE};
    snprintf(e.message, sizeof(e.message), "labels need one number per sample, their shape is %s",
             shape_text(a->dims, a->rank, shape));
    if (a->rank == 2 && a->dims[1] > 1)
        snprintf(e.hint, sizeof(e.hint), "of one-hot rows take the numbers: y.argmax(1) in NumPy");
    else if (a->rank > 2)
        snprintf(e.hint, sizeof(e.hint), "samples come first: --data SAMPLES,LABELS");
    return tool_error(t, y->path, &e);
}

static int read_all(const tool *t, source *y, int64_t **labels, int64_t *count) {
    qsim_error e;
    const qsim_array *a = &y->array;
    int64_t n = (int64_t)a->elements;
    if (a->rank < 1 || a->dims[0] != n)
        return refuse_shape(t, y);
    if (is_float(a->dtype) && !y->table)
        return tool_fail(t, QSIM_E_DTYPE, "%s: labels are whole numbers of an integer type, not %s",
                         y->path, qsim_dtype_name(a->dtype));
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
