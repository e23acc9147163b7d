/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution on the image itself, x86, INT8 to bytes without a clamp or to floats: what
 * its kernels get, and the driver that they share, i8_dw_split.c.
 *
 * Two rows of output are computed at a time. A dword holds 4 vertical neighbours of one channel, or
 * 2 as words. Where both rows need no more dwords than one, they share them: the second row uses
 * its weights moved down by the stride.
 *
 * Where the last channels fill half or a quarter of the lanes, several ranges of columns are
 * computed side by side.
 */
#ifndef QK_I8_DW_SPLIT_H
#define QK_I8_DW_SPLIT_H

#include "kernel/i8.h"

/* Of an instruction set: how sums become results. */
struct epilogue;

/* What halves of the widest vector, of 64 bytes, write that begin at quarters. */
#define DW_STORED (64 + 64 / 4)

/* A pair of rows of output: weights, requantization, addresses of results. */
typedef struct dw_job {
    const int8_t *w, *v; /* weights for the first and the second row of output */
    ptrdiff_t more;      /* bytes from there to the second set, or 0 */
    ptrdiff_t moved;     /* bytes from w to v */
    const int32_t *bias;
    const float *mult;
    const float *scale, *add; /* for results in floats */
    uint8_t *first, *second;
    int32_t n, wo;   /* columns of output: of a range, of the whole row */
    int32_t whole;   /* columns that every range has */
    ptrdiff_t pixel; /* bytes of an output pixel */
    int32_t cols;
    bool limits;
    int32_t stride, dilation, kw;         /* along the width */
    int32_t groups, stored, second_group; /* groups of rows: of the kernel, of both rows of
                                             output; first of the second row */
    int32_t rows;                         /* rows of output at a time */
} dw_job;

/* The rows that are read for a column that is outside of the image in all or some ranges. */
typedef struct dw_outside {
    const uint8_t *zeros[8], *some[8]; /* rows of zero points; those of `bytes` */
    uint8_t bytes[8][DW_STORED];
} dw_outside;

/* Rows of the image that a kernel reads, and the row of zero points that stands for the outside. */
typedef struct dw_rows {
    const uint8_t *row[8], *zeros;
    dw_outside *outside;
    /* In bytes: the step from column to column, a row, the step from range to range. */
    ptrdiff_t across;
    size_t end;
    ptrdiff_t q;
} dw_rows;

/* A kernel: one or two rows of output, one block of channels; `at`: offset of the first column. */
typedef void (*dw_fn)(const dw_rows *s, const dw_job *o, ptrdiff_t at, const struct epilogue *e);

/* A row of the table of kernels: the windows that it suits; 0 is any. The first fit is taken. */
typedef struct dw_choice {
    int32_t kernel;            /* rows and columns of the kernel */
    int32_t stride;            /* along both axes */
    int32_t ranges;            /* ranges of columns side by side in a vector */
    uint32_t needs, wants_not; /* bits of enum dw_trait */
    dw_fn run;
} dw_choice;

enum dw_trait {
    DW_FLOATS = 1,  /* results are floats */
    DW_SETS = 2,    /* the block has a second set of weights */
    DW_DILATED = 4, /* along either axis */
};

/* The kernels of an instruction set. */
typedef struct dw_kernels {
    const dw_choice *choices; /* the last of them fit any size */
    int32_t bytes;            /* of a vector; channels of a block */
    int32_t group;            /* rows of the image in a dword: 4 bytes or 2 words */
} dw_kernels;

/* Divides the work and chooses kernels. */
void qk_window_split(const qk_window_u8s8 *d, const dw_kernels *kernels, const struct epilogue *e);

#endif
