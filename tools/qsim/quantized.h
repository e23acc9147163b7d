/* SPDX-License-Identifier: MIT */
/* Quantized tensors of a node, found by the types and the order of its inputs. */
#ifndef QSIM_QUANTIZED_H
#define QSIM_QUANTIZED_H

#include <qsim/model.h>

#include "common/tool.h"

/* The tensors of a model by name. */
typedef struct tensor_names {
    qsim_value_info *items;
    size_t count;
} tensor_names;

void tensor_names_read(const qsim_model *m, tensor_names *all);
/* NULL: the model has no tensor of this name. */
const qsim_value_info *tensor_named(const tensor_names *all, const char *name);
void tensor_names_free(tensor_names *all);

/* Whether this type holds codes of quantized values, and nothing else in most models. */
bool is_codes(int32_t dtype);

/* A quantized tensor, and the indices of the inputs that are its scale and its zero point. */
typedef struct quantized {
    const char *tensor;
    int32_t at; /* the index of an input; -1: output 0 */
    int32_t scale, zero;
} quantized;

/*
 * The next quantized tensor from input *from on; false: there is none. In all operators of ONNX and
 * ONNX Runtime that take quantized tensors with their scales, each one is followed by its scale and
 * its zero point; scale and zero point that follow no tensor are those of output 0.
 */
bool quantized_next(const tensor_names *all, const qsim_node_info *n, int32_t *from, quantized *q);

#endif
