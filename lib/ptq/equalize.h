/* SPDX-License-Identifier: MIT */
/*
 * Equalization: each channel of a tensor is multiplied by a factor above 0 in the constants of its
 * producer, and divided by it again in the weights of the layers that read it. Only operators that
 * commute with such a factor, as ReLU and pooling do, may be between the two, so that the network
 * computes the same. (Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias
 * Correction", 2019, section 4.1; Xiao et al., "SmoothQuant", 2023.)
 */
#ifndef QS_EQUALIZE_H
#define QS_EQUALIZE_H

#include "ptq/quantizer.h"

/* A tensor that carries the factors, and the axis of its channels. */
typedef struct qs_carrier {
    qs_id value;
    int32_t axis;
} qs_carrier;

/* A tensor whose channels can be multiplied by factors, and the nodes that this changes. */
typedef struct qs_site {
    size_t channels;
    qs_id producer;  /* of the first tensor */
    bool normalized; /* its producer is a normalization or an x a + b, not a layer with weights */
    float most;      /* upper bound of a Clip on the way; infinity: none */
    qs_id gains[3];  /* constants that the first tensor is linear in, the weights first */
    size_t gain_count;
    qs_carrier *tensors; /* recipes name the first */
    size_t tensor_count, tensor_capacity;
    qs_id *readers; /* layers with weights; none: factors cannot be moved */
    size_t reader_count, reader_capacity;
} qs_site;

/* Finds the site that begins with a tensor. Errors: NOMEM. */
int qs_site_find(qsim_ctx *ctx, const qs_graph *g, const qs_uses *uses, qs_id tensor, qs_site *out);
void qs_site_free(qsim_ctx *ctx, qs_site *s);

/* Maps the index of a weight to the output and the input channel that it connects. */
typedef struct qs_weight_map {
    size_t outputs, inputs; /* channels on either side */
    size_t depth, taps, groups;
    bool outputs_first; /* the weights of an output are contiguous */
} qs_weight_map;

qs_weight_map qs_weight_map_of(const qs_graph *g, const qs_node *n);
/* The output and the input channel that weight `i` belongs to. */
static inline size_t qs_weight_output(const qs_weight_map *s, size_t i) {
    return s->outputs_first ? i / s->depth : i % s->outputs;
}
static inline size_t qs_weight_input(const qs_weight_map *s, size_t i) {
    const size_t k = s->outputs_first ? i % s->depth : i / s->outputs;
    const size_t group = qs_weight_output(s, i) / (s->outputs / s->groups);
    return group * (s->inputs / s->groups) + k / s->taps;
}

/* Fills q->scaled by the recipe. Errors: NOT_FOUND, UNSUPPORTED, MISMATCH, NOMEM. */
int qs_equalize_find(qs_quantizer *q);
/* Multiplies and divides the constants of q's graph by these factors. Errors: NOMEM. */
int qs_equalize_apply(qs_quantizer *q);
/* Renames tensors that carry factors, since they differ from those of the float network. */
int qs_equalize_rename(qs_quantizer *q);

#endif
