/* SPDX-License-Identifier: MIT */
/* The parts of a random network: its numbers, and its layers. */
#ifndef QSIM_SELFTEST_LAYERS_H
#define QSIM_SELFTEST_LAYERS_H

#include <qsim/model.h>

#include <stdbool.h>

/* A network under construction; `last` is its newest tensor. */
typedef struct drawing {
    qsim_builder *b;
    uint64_t state;
    int32_t count, rank; /* of nodes so far; of `last` */
    int64_t dims[4];     /* of `last` */
    char last[16];
    char earlier[16]; /* a tensor of the same sizes; "": there is none */
} drawing;

/* Windows along two axes of an image. */
typedef struct windows {
    int64_t size[2], stride[2], dilation[2], pads[4], out[2];
} windows;

/* ---- numbers ---- */

int64_t draw_between(drawing *d, int64_t low, int64_t high);
/* True once in `of` times. */
bool draw_chance(drawing *d, int64_t of);
/* Of channels: sizes that kernels are made for, and others. */
int64_t draw_channels(drawing *d);
/* Between -1 and 1; freed with free(). */
float *draw_numbers(drawing *d, size_t count);
/* Of `last`, drawn so that each result has one position at least. */
windows draw_windows(drawing *d, bool dilated);

size_t count_of(const int64_t *dims, int32_t rank);

/* ---- nodes ---- */

/* The name of a constant of the next node: "w" of node t3 is t3w. */
void name_constant(const drawing *d, char letter, char name[16]);
/* Numbers between -most and most. */
void add_constant(drawing *d, char letter, int32_t rank, const int64_t *dims, float most);
/* A node that reads `last`, `second` unless that is NULL, and its constants, a letter for each. */
void add_node(drawing *d, const char *op, const char *second, const char *constants);
/* The attributes of the node added last, whose result is the new `last`. */
void give_windows(drawing *d, const windows *w, bool dilated);
/* A convolution of images (rank 4), a product or a recurrent layer of rows (rank 3). */
void add_layer(drawing *d);

#endif
