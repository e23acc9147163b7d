/* SPDX-License-Identifier: MIT */
/* Shapes, also in messages. */
#ifndef QS_TENSOR_SHAPE_H
#define QS_TENSOR_SHAPE_H

#include "base/base.h"

/* Copies a tensor's sizes. No memcpy: dims may be NULL where there are none. */
void qs_tensor_dims(const qsim_tensor *t, int64_t *to);

/* Writes sizes as "[1,3,224,224]", shortened to fit. Returns `text`. */
const char *qs_shape_text(char *text, size_t capacity, int32_t rank, const int64_t *dims);

#endif
