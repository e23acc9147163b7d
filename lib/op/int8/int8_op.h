/* SPDX-License-Identifier: MIT */
/*
 * Functions that QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger share: checks of their
 * quantization parameters, packing, lowering and execution.
 *
 * Lowering needs u8 activations (a pass turns s8 into u8). Integer sums are exact. If every
 * parameter is constant, packing proves that for these weights; else lowering proves it for the
 * worst weights. Sums that may overflow are refused.
 */
#ifndef QS_INT8_OP_H
#define QS_INT8_OP_H

#include "op/int8/int8_prepare.h"
#include "op/rules.h"

/* Which input is what; -1: the operator has none. */
typedef struct qs_i8_roles {
    int32_t x, w, x_scale, x_zp, w_scale, w_zp, y_scale, y_zp, bias;
} qs_i8_roles;

#define QS_I8_QLINEAR                                                                              \
    { 0, 3, 1, 2, 4, 5, 6, 7, 8 }
/* Input of the internal QLinearConv: the tensor that it writes its channels into (op/window.h). */
#define QS_I8_CONV_OVER 9
#define QS_I8_INTEGER                                                                              \
    { 0, 1, -1, 2, -1, 3, -1, -1, -1 }

/*
 * Types of all inputs; scales and zero points have 1 element, or `columns` for those of w, or, with
 * `rows` (a matrix product), any number for those of x; columns -1: any number.
 */
int qs_i8_check(const qs_infer *x, const qs_i8_roles *r, int64_t columns, bool rows);

/* Type of the output. */
int32_t qs_i8_out_type(const qs_infer *x, const qs_i8_roles *r);

/* The weights as the operator stores them. */
typedef struct qs_i8_shape {
    qs_conv_i8_weights w; /* the given fields */
    qk_source_i8 source;  /* w is set later */
    int64_t group_stride;
    int64_t matrices; /* of weights, one after the other */
} qs_i8_shape;

/* Packs constant weights and, where all else is constant too, the epilogue. */
int qs_i8_pack(qs_pack *p, const qs_i8_roles *r, const qs_i8_shape *shape);

/* Functions that process blocks of results in place, as soon as they are computed. */
typedef void qs_i8_after(const void *arg, const qs_conv_i8_block *block);

/*
 * Sums that become floats where the kernels make them: of one product of constant weights, with one
 * scale of x. Its scales and what is added are the lists that qs_i8_pack_floats has found.
 */
typedef struct qs_i8_floats {
    float low, high;
    int32_t into, column; /* op/window.h */
    qs_i8_after *after;   /* takes them, or NULL */
    bool direct;          /* found; else sums are left */
} qs_i8_floats;

/* Which inputs of a scaled operator (op_scaled_int8.c) tell how. */
enum { QS_I8_X_SCALE = 4, QS_I8_W_SCALE, QS_I8_ADD };

/* Whether all is known to be as it has to be, so that the sums are never wanted. */
bool qs_i8_makes_floats(const qs_pack *p);
/* To be called after qs_i8_pack. */
int qs_i8_pack_floats(qs_pack *p);

typedef struct qs_i8_plan {
    /* given */
    qs_i8_floats floats;
    const qs_i8_roles *roles;
    qs_i8_shape shape;
    qs_conv_i8 conv; /* geometry; a matrix product has batch 1, h = ho = rows, wd = wo = 1 */
    int64_t batches; /* of matrix products, else 1 */
    const int64_t *x_matrix, *w_matrix; /* of each batch; NULL: 0 */
    int64_t x_bytes, y_elements;        /* of one batch */
    /* found by qs_i8_lower */
    const struct qs_i8_packed *packed;
    qs_conv_i8_post post;
    int32_t lo, hi, tasks;
    int32_t x_zps, x_scales, w_scales, w_zps; /* elements of the lists */
    int32_t input_count;
    bool w_signed, int32_out, rows;
    bool prepared; /* weights and epilogue are packed: conv is all there is to run */
    size_t weights_bytes, epilogue_bytes, row_bytes, conv_bytes, task_bytes;
} qs_i8_plan;

/* ConvInteger and MatMulInteger, whose sums may become floats (op_scaled_int8.c). */
int qs_convinteger_lower(qs_lower *l, const qs_i8_floats *how);
int qs_matmulinteger_lower(qs_lower *l, const qs_i8_floats *how);

/* Executes a step that these two made. */
void qs_i8_run(const qs_step *s, const qs_frame *f, const void *after_arg);

/* Completes a plan made with qs_lower_params and makes it the step's. */
int qs_i8_lower(qs_lower *l, qs_i8_plan *plan);

#endif
