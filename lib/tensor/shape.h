/* SPDX-License-Identifier: MIT */
/* Shapes in messages. */
#ifndef QS_TENSOR_SHAPE_H
#define QS_TENSOR_SHAPE_H

#include <stddef.h>
#include <stdint.h>

/* Writes sizes as "[1,3,224,224]", shortened to fit. Returns `text`. */
const char *qs_shape_text(char *text, size_t capacity, int32_t rank, const int64_t *dims);

#endif
