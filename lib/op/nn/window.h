/* SPDX-License-Identifier: MIT */
/*
 * Sliding windows: what Conv, ConvInteger, QLinearConv and the pools share. Attributes
 * kernel_shape, strides, dilations, pads, auto_pad and ceil_mode, and the sizes that follow from
 * them.
 *
 * Layout. Tensors are [N, C, spatial...], or [N, spatial..., C] where the node carries the internal
 * attribute channels_last = 1. One spatial axis counts as two, the first of size 1. Of three, the
 * first comes last in the lists below, so that the other two are where they always are.
 */
#ifndef QS_WINDOW_H
#define QS_WINDOW_H

#include "op/rules.h"

#define QS_WINDOW_AXES 3
/*
 * The most that a stride, a dilation, padding, a kernel's or an axis's size may be, of floats and
 * of bytes alike: kernels count in int32, and products of two stay inside int64.
 */
#define QS_WINDOW_LIMIT ((int64_t)INT32_MAX)

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

/* The same as what walks over images counts with; every size is known. */
typedef struct qs_geometry {
    size_t n, h, w, c, oh, ow; /* images, their sizes and channels, the output's sizes */
    size_t sh, sw, dh, dw, top, left;
} qs_geometry;

qs_geometry qs_window_geometry(const qs_window *w);

/*
 * Reads the attributes of a node whose input `index` is windowed; `kernel` gives the kernel's sizes
 * (from the weights, -1 unknown) where there is no attribute kernel_shape, which must agree. The
 * input's rank must be known. Then computes the output's sizes.
 */
int qs_window_infer(const qs_infer *x, int32_t index, const qs_dim *kernel, qs_window *w);

/* Dims of the output with that many channels; returns the rank. */
int32_t qs_window_dims(const qs_window *w, qs_dim channels, qs_dim dims[QS_WINDOW_AXES + 2]);

/*
 * With the attribute "into" a convolution's results are channels "column" and following of a tensor
 * of "into" channels: written over the input `over`, which holds others of them, if it is there.
 * Makes output 0, inferred before, the whole tensor.
 */
int qs_window_into(const qs_infer *x, int32_t over);

#define QS_INTO_ATTRS                                                                              \
    {"into", QS_ATTR_INT, 0, 0}, {                                                                 \
        "column", QS_ATTR_INT, 0, 0                                                                \
    }

/* The rows of `common` that every windowed operator has; `since` is the version from which on. */
#define QS_WINDOW_ATTRS(since)                                                                     \
    {"auto_pad", QS_ATTR_STRING, since, 0}, {"kernel_shape", QS_ATTR_INTS, since, 0},              \
        {"pads", QS_ATTR_INTS, since, 0}, {                                                        \
        "strides", QS_ATTR_INTS, since, 0                                                          \
    }

/* Those of convolutions. */
#define QS_CONV_ATTRS(since)                                                                       \
    QS_WINDOW_ATTRS(since), {"dilations", QS_ATTR_INTS, since, 0}, {                               \
        "group", QS_ATTR_INT, since, 0                                                             \
    }

#endif
