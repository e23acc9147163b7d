/* SPDX-License-Identifier: MIT */
/*
 * Quantize/dequantize patterns to integer operators: docs/QUANTIZATION.md, section 10. Every match
 * starts at a QuantizeLinear and goes back to its producers. The float nodes that it replaces stay
 * until no node reads them.
 *
 * With p->standard the integer operators are those of ONNX files, on u8 and s8; otherwise they are
 * operators of domain "qsim", on u8 activations.
 */
#ifndef QS_QDQ_H
#define QS_QDQ_H

#include "pass/pass.h"

/* Nodes of an element-wise expression that becomes a table, with the one that dequantizes its
 * input. */
#define QS_TABLE_NODES 16

/* A float value that is a dequantized tensor with one scale. */
typedef struct qs_quantized {
    qs_id x;         /* the integers */
    qs_id scale, zp; /* constants of one element; zp may be QS_NONE */
    float s;
    int32_t z;
    int32_t dtype;
} qs_quantized;

/* A QuantizeLinear that is being matched. */
typedef struct qs_target {
    qs_quantized q; /* its output */
    qs_id node;     /* the QuantizeLinear */
    qs_id core;     /* the node whose result it quantizes, Relu and Clip skipped; or QS_NONE */
    qs_id value;    /* the result of the core */
    int32_t lo, hi; /* bounds by the skipped Relu and Clip, as integers */
    bool bounded;   /* tighter than the type */
} qs_target;

typedef struct qs_qdq {
    qs_pass *p;
    qs_graph *g;
    /* Of the graph when the pass began: */
    size_t *position; /* by node: its place in the order */
    size_t positions;
    qs_id *quantized; /* by value: the QuantizeLinear that a match has added for it, or QS_NONE */
    size_t values;
    qs_uses uses;
} qs_qdq;

/* Whether a value is a dequantized tensor of 8 bits: of u8, or with p->standard of s8. */
bool qs_qdq_source(const qs_qdq *d, qs_id value, qs_quantized *q);
/* The same, but constants of s8 are made u8 if need be. *found: it is such a value. */
int qs_qdq_operand(qs_qdq *d, qs_id value, qs_quantized *q, bool *found);
/* Quantizes a number by the parameters of a tensor. */
int32_t qs_qdq_quantize(const qs_quantized *q, double v);
/*
 * The zero point of a tensor, made if it is left out; negative: error. With p->standard scale and
 * zero point are made scalars, since ONNX Runtime refuses others in com.microsoft's operators.
 */
qs_id qs_qdq_zero_point(qs_qdq *d, qs_quantized *q);
/*
 * Replaces the QuantizeLinear by a node that makes its output, with the attributes of node
 * `attributes_of` (QS_NONE: none); negative: error.
 */
qs_id qs_qdq_replace(qs_qdq *d, const qs_target *t, const char *domain, const char *op_type,
                     const qs_id *inputs, int32_t input_count, qs_id attributes_of);
int qs_qdq_set_bounds(qs_qdq *d, const qs_target *t, qs_id node);

/* The patterns. Each sets *done if it has matched and replaced the target. */
/* qdq_product.c: Conv, Gemm, MatMul, MatMul + Add */
int qs_qdq_product(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_binary(qs_qdq *d, qs_target *t, bool *done); /* qdq_simple.c: Add, Mul */
int qs_qdq_pool(qs_qdq *d, qs_target *t, bool *done);   /* average pools */
int qs_qdq_concat(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_softmax(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_layernorm(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_move(qs_qdq *d, qs_target *t, bool *done); /* qdq_move.c: MaxPool, Reshape, ... */
int qs_qdq_propagate_q(qs_qdq *d, qs_target *t,
                       bool *done);                    /* qdq_propagate.c: to before movement */
int qs_qdq_table(qs_qdq *d, qs_target *t, bool *done); /* qdq_table.c: functions of one tensor */
/* Whether a node moves elements of one operand, all else being constant. */
bool qs_qdq_is_movement(const qs_graph *g, const qs_node *n);
/* Replaces the target by its core, a movement, on the integers of x. */
int qs_qdq_move_integers(qs_qdq *d, const qs_target *t, const qs_quantized *x);
/*
 * Moves DequantizeLinear from before movement to after it, so that later patterns find the scale.
 */
int qs_qdq_propagate_dq(qs_qdq *d);
/* Whether the target's scale and bounds are those of `from`. */
bool qs_qdq_same(const qs_target *t, const qs_quantized *from);

#endif
