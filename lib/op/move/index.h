/* SPDX-License-Identifier: MIT */
/* Indices in int32 and int64 tensors; negative ones count from the end. */
#ifndef QS_INDEX_H
#define QS_INDEX_H

#include "op/rules.h"

#define QS_T_INDEX (QS_T(QSIM_INT32) | QS_T(QSIM_INT64))

/* Index i of int64 (wide) or int32 data at any address. */
static inline int64_t qs_index_at(const void *data, bool wide, size_t i) {
    int64_t index = 0;
    int32_t narrow;
    if (wide) {
        memcpy(&index, (const char *)data + i * 8, 8);
        return index;
    }
    memcpy(&narrow, (const char *)data + i * 4, 4);
    return narrow;
}

/* Turns an index in [-size, size) into one in [0, size); -1 for any other. */
static inline int64_t qs_index_wrap(int64_t index, int64_t size) {
    index = index < 0 ? index + size : index;
    return index >= 0 && index < size ? index : -1;
}

/* The place of the first of n indices that is outside [-size, size); n: there is none. */
size_t qs_index_find_outside(const void *indices, bool wide, size_t n, int64_t size);

/*
 * Element i of y becomes element i * step + index * along of x, by n indices in [-size, size) of an
 * axis whose elements are `along` apart.
 */
typedef struct qs_gathering {
    int64_t size;
    size_t step, along, bytes; /* bytes of an element */
    bool wide;                 /* indices are int64 */
} qs_gathering;
void qs_index_gather(const qs_gathering *g, const char *x, const void *indices, char *y, size_t n);

static inline void qs_copy_element(char *y, const char *x, size_t bytes) {
    switch (bytes) {
    case 1: *y = *x; break;
    case 2: memcpy(y, x, 2); break;
    case 4: memcpy(y, x, 4); break;
    default: memcpy(y, x, bytes);
    }
}

/*
 * Element i of numeric data as an integer: floats lose their fraction, numbers beyond int64 give
 * its nearest bound, NaN 0.
 */
int64_t qs_number_at(const void *data, int32_t dtype, size_t i);

/* Reads input `index`, one number of any type, as an integer; *known: whether it is constant. */
int qs_infer_number(const qs_infer *x, int32_t index, int64_t *number, bool *known);

/* Fails if input `index` is constant and has an index outside [-size, size). size < 0: unknown. */
int qs_infer_indices(const qs_infer *x, int32_t index, int64_t size);

/* Reports from a step an index outside an axis of `size`. */
void qs_index_outside(const qs_frame *f, int64_t index, int64_t size, int32_t axis);

#endif
