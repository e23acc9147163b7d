/* SPDX-License-Identifier: MIT */
/*
 * Functions that QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger share: checks of their
 * quantization parameters, packing, lowering and execution.
 *
 * Lowering needs u8 activations (a pass turns s8 into u8). Integer sums are exact. If every
 * parameter is constant, packing proves that for these weights; else lowering proves it for the
 * worst weights, and biases are added in 64 bits. Sums that may overflow are refused.
 */
#ifndef QS_INT8_OP_H
#define QS_INT8_OP_H

#include "op/int8/int8_prepare.h"
#include "op/rules.h"

/* Index of each input; -1: the operator has no such input. */
typedef struct qs_i8_roles {
    int32_t x, w, x_scale, x_zp, w_scale, w_zp, y_scale, y_zp, bias;
} qs_i8_roles;

#define QS_I8_QLINEAR                                                                              \
    { 0, 3, 1, 2, 4, 5, 6, 7, 8 }
/* Input of the internal QLinearConv: the tensor that its channels go into (op/nn/window.h). */
#define QS_I8_CONV_OVER 9
#define QS_I8_INTEGER                                                                              \
    { 0, 1, -1, 2, -1, 3, -1, -1, -1 }

/*
 * Checks the types of all inputs and the lengths of scales and zero points: 1 element, or `columns`
 * for w (-1: any number), or with `rows` (a matrix product) any number for x.
 */
int qs_i8_check(const qs_infer *x, const qs_i8_roles *r, int64_t columns, bool rows);

/* Type of the output. */
int32_t qs_i8_out_type(const qs_infer *x, const qs_i8_roles *r);

/* Layout of the weights in the operator's input. */
typedef struct qs_i8_shape {
    qs_conv_i8_weights w; /* the fields that the caller sets */
    qk_source_i8 source;  /* source.w is set later */
    int64_t group_stride;
    int64_t matrices; /* contiguous weight matrices */
} qs_i8_shape;

/* What packing leaves for all plans. */
typedef struct qs_i8_packed {
    qs_conv_i8_weights layout;
    qs_i8_weights weights;
    qs_i8_epilogue epilogue;
    bool complete, wide;    /* the epilogue is packed, too; see qs_i8_rules */
    qs_i8_columns *columns; /* for float results, or NULL */
    /* Source of the packed weights, and weights packed earlier from the same constant. */
    qk_source_i8 source;
    qs_i8_list w_zp;
    int64_t group_stride;
    const struct qs_i8_packed *before;
} qs_i8_packed;

/* Packs constant weights and, if all parameters are constant, too, the epilogue. */
int qs_i8_pack(qs_pack *p, const qs_i8_roles *r, const qs_i8_shape *shape);

/* Processes a block of results as soon as it is computed (qs_conv_i8.after). */
typedef void qs_i8_after(const void *arg, const qs_conv_i8_block *block);

/*
 * Float results from the kernels' epilogue: for one product with constant weights and one scale of
 * x. Scales and added values were packed by qs_i8_pack_floats.
 */
typedef struct qs_i8_floats {
    float low, high;
    int32_t into, column; /* attributes, see op/nn/window.h */
    qs_i8_after *after;   /* processes blocks of results, or NULL */
    bool integers;        /* input QS_I8_ADD is added to the sums */
    bool direct;          /* set by qs_i8_lower: kernels make floats; else the results are sums */
} qs_i8_floats;

/* Inputs of a scaled operator (op_scaled_int8.c) that turn sums into floats. */
enum { QS_I8_X_SCALE = 4, QS_I8_W_SCALE, QS_I8_ADD };

/* Whether the kernels make floats in every run, so that int32 sums are never needed. */
bool qs_i8_makes_floats(const qs_pack *p);
/* To be called after qs_i8_pack. */
int qs_i8_pack_floats(qs_pack *p);

typedef struct qs_i8_plan {
    /* set by the caller */
    qs_i8_floats floats;
    const qs_i8_roles *roles;
    qs_i8_shape shape;
    qs_conv_i8 conv; /* geometry; a matrix product has batch 1, h = ho = rows, wd = wo = 1 */
    int64_t batches; /* of matrix products, else 1 */
    const int64_t *x_matrix, *w_matrix; /* index of each batch's matrix; NULL: 0 */
    int64_t x_bytes, y_elements;        /* of one matrix */
    /* set by qs_i8_lower */
    const struct qs_i8_packed *packed;
    qs_conv_i8_post post;
    int32_t lo, hi, tasks;
    int32_t x_zps, x_scales, w_scales, w_zps; /* lengths of the lists */
    int32_t input_count;
    bool w_signed, int32_out, rows;
    bool wide;     /* as in qs_i8_rules */
    bool prepared; /* weights and epilogue are packed: execution only runs conv */
    size_t weights_bytes, epilogue_bytes, row_bytes, conv_bytes, task_bytes;
} qs_i8_plan;

/* Lower ConvInteger and MatMulInteger, whose sums may become floats (op_scaled_int8.c). */
int qs_convinteger_lower(qs_lower *l, const qs_i8_floats *how);
int qs_matmulinteger_lower(qs_lower *l, const qs_i8_floats *how);

/* The steps that qs_i8_lower makes: weights and epilogue are packed, or are packed in each run. */
void qs_i8_run_prepared(const qs_step *s, const qs_frame *f);
void qs_i8_run_preparing(const qs_step *s, const qs_frame *f);

/* Executes a step that these two have lowered. */
void qs_i8_run(const qs_step *s, const qs_frame *f, const void *after_arg);

/* The elements of a list of scales or zero points; 0: it is left out. */
int32_t qs_i8_length(const qs_value *list);
/* Attribute "lo" or "hi", within a byte. */
int32_t qs_i8_bound(const qs_node *n, const char *name, int32_t fallback);

/* Completes a plan allocated by qs_lower_params and sets up the step to run it. */
int qs_i8_lower(qs_lower *l, qs_i8_plan *plan);

#endif
