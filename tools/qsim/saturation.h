/* SPDX-License-Identifier: MIT */
/*
 * What a quantized model computes on x86 CPUs without VNNI in runtimes that add two products in 16
 * bits there (vpmaddubsw), as ONNX Runtime does: of a uint8 activation and an int8 weight each, so
 * that the sum of both may saturate. libqsim's sums never do.
 *
 * Layers are simulated one after the other. The part of the model between them runs as it is; the
 * result of a layer is its exact sum plus what saturation changes, and feeds the next parts.
 */
#ifndef QSIM_SATURATION_H
#define QSIM_SATURATION_H

#include "engine.h"
#include "name_index.h"
#include "quantized.h"
#include "tensor_pairs.h"

enum { SATURATION_AXES = 3 }; /* of images */

/* A layer of uint8 activations and int8 weights. Names are the model's. */
typedef struct saturation_layer {
    qsim_node_info node;
    const char *codes;  /* the tensor of the activations' codes */
    uint8_t zero;       /* their zero point; as uint8, as are int8 codes, plus 128 */
    bool is_signed;     /* codes are int8 */
    float scale;        /* of activations; 1 if the result is in int32 */
    const void *scales; /* floats, of weights; NULL: 1 */
    size_t scale_count; /* 1: for all columns */
    /* As stored: [columns, channels, taps], or if `by_row` [channels, columns]. */
    const int8_t *weights;
    bool by_row;
    int64_t columns, channels, groups, taps; /* columns in all groups; channels of one */
    int32_t axes;                            /* of images; 0: a product of matrices */
    int64_t kernel[SATURATION_AXES], stride[SATURATION_AXES], dilation[SATURATION_AXES];
    int64_t pad[SATURATION_AXES]; /* before each axis; < 0: half of what the sizes need */
    bool same_lower;              /* an odd one of such padding stands before the axis */
    int8_t *pairs;                /* [groups, pairs, 2, columns of a group] */
    /* What was found. */
    uint64_t sums, saturated; /* sums of two products */
    double signal, noise;     /* of results */
} saturation_layer;

typedef struct saturation {
    const char *file;
    qsim_model *model;
    saturation_layer *layers;
    size_t count;
    size_t exact;   /* layers on integers that other runtimes compute exactly, as depthwise ones */
    bool is_signed; /* some layers have int8 codes, of which ONNX Runtime turns most into uint8 */
    text unknown;   /* names of layers on integers that are not simulated, with commas */
    tensor_names tensors;
    bool *in_part;        /* by node: whether the part at hand has it; false between parts */
    name_index makers;    /* by tensor: the node */
    name_index results;   /* by tensor: the layer */
    tensor_pairs outputs; /* exact and simulated ones */
    bool *has_classes;    /* of outputs */
    int64_t samples;
} saturation;

/* Finds the layers of s->model. */
void saturation_find(saturation *s);
void saturation_close(saturation *s);

/*
 * Adds to a layer's exact result what saturation changes: `codes` of activations, `result` float or
 * int32, written in place. Counts in the layer. Ends early once `stopped` says so; NULL: never.
 */
void saturation_add(saturation_layer *l, const qsim_tensor *codes, qsim_tensor *result,
                    bool (*stopped)(void));

/*
 * The part of the model that computes tensors from its inputs and from results of layers, of which
 * it has only `layer`; s->count: none. Prints errors.
 */
int saturation_make_part(const tool *t, const saturation *s, const char *const *tensors,
                         size_t count, size_t layer, qsim_model **out);

void saturation_print(const tool *t, const saturation *s);
void saturation_print_json(const tool *t, const saturation *s);

#endif
