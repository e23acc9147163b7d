/* SPDX-License-Identifier: MIT */
/*
 * Sliding windows, shared by Conv, ConvInteger, QLinearConv and the pools: attributes kernel_shape,
 * strides, dilations, pads, auto_pad and ceil_mode, and the sizes that follow from them.
 *
 * Layout: tensors are [N, C, spatial...], or [N, spatial..., C] if the node has the internal
 * attribute channels_last = 1. One spatial axis counts as two, the first of size 1. Of three, the
 * first comes last in the lists below, so that the other two keep their places.
 */
#ifndef QS_WINDOW_H
#define QS_WINDOW_H

#include "op/rules.h"

#define QS_WINDOW_AXES 3
/*
 * Limit of strides, dilations, padding, and sizes of kernels and axes, for floats and bytes alike:
 * kernels count in int32, and products of two stay inside int64.
 */
#define QS_WINDOW_LIMIT ((int64_t)INT32_MAX)
/* Why an image that is not channels last has no step: the layout pass did not know its rank. */
#define QS_UNRANKED "the ranks, or last sizes, of its inputs must be in the file"

typedef struct qs_window {
    int32_t axes; /* spatial axes: 1 to 3 */
    bool channels_last, ceil_mode;
    /* The last two axes, then the one before them. */
    int64_t kernel[QS_WINDOW_AXES], stride[QS_WINDOW_AXES], dilation[QS_WINDOW_AXES];
    int64_t in[QS_WINDOW_AXES], out[QS_WINDOW_AXES]; /* -1: unknown */
    /* Padding, auto_pad resolved; 0 while `in` is unknown. */
    int64_t before[QS_WINDOW_AXES], after[QS_WINDOW_AXES];
    qs_dim batch, channels;
} qs_window;

/* The same for two spatial axes, in the types that loops over images use; every size is known. */
typedef struct qs_geometry {
    size_t n, h, w, c, oh,
        ow; /* images, their height, width and channels, the output's height and width */
    size_t sh, sw, dh, dw, top, left;
} qs_geometry;

qs_geometry qs_window_geometry(const qs_window *w);

/*
 * Reads the attributes of a node with windows over input `index` and computes the output's sizes.
 * `kernel`: the kernel's sizes from the weights (-1: unknown), with which the attribute
 * kernel_shape must agree. The input's rank must be known.
 */
int qs_window_infer(const qs_infer *x, int32_t index, const qs_dim *kernel, qs_window *w);

/* Sets the output's dims with these channels; returns the rank. */
int32_t qs_window_dims(const qs_window *w, qs_dim channels, qs_dim dims[QS_WINDOW_AXES + 2]);

/*
 * The shape rule of convolutions, whose image, weights (M, C / group, window...) and bias (-1:
 * none) are at these inputs: sets output 0, of type dtype.
 */
int qs_window_convolve(const qs_infer *x, int32_t image, int32_t weights, int32_t bias,
                       int32_t dtype);

/*
 * With the attribute "into" the results are channels "column" and following of a tensor of "into"
 * channels. If input `over` is present, it is that tensor with other channels already written, and
 * it is written in place. Changes output 0, which is inferred already, to the whole tensor.
 */
int qs_window_into(const qs_infer *x, int32_t over);

#define QS_INTO_ATTRS                                                                              \
    {"into", QSIM_ATTR_INT, 0, 0}, {                                                               \
        "column", QSIM_ATTR_INT, 0, 0                                                              \
    }

/* Attributes of every operator with windows; `since`: the first version that has them. */
#define QS_WINDOW_ATTRS(since)                                                                     \
    {"auto_pad", QSIM_ATTR_STRING, since, 0}, {"kernel_shape", QSIM_ATTR_INTS, since, 0},          \
        {"pads", QSIM_ATTR_INTS, since, 0}, {                                                      \
        "strides", QSIM_ATTR_INTS, since, 0                                                        \
    }

/* Attributes of convolutions. */
#define QS_CONV_ATTRS(since)                                                                       \
    QS_WINDOW_ATTRS(since), {"dilations", QSIM_ATTR_INTS, since, 0}, {                             \
        "group", QSIM_ATTR_INT, since, 0                                                           \
    }

#endif
