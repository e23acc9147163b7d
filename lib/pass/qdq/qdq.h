/* SPDX-License-Identifier: MIT */
/*
 * Quantize/dequantize patterns to integer operators: docs/QUANTIZATION.md, section 10. Every match
 * starts at a QuantizeLinear and looks back; the float nodes it replaces stay until no node reads
 * them.
 *
 * With p->standard only operators of ONNX files are made and both signs are left as they are;
 * otherwise operators of domain "qsim", on u8 activations and s8 weights.
 */
#ifndef QS_QDQ_H
#define QS_QDQ_H

#include "pass/pass.h"

/* A float value that is a dequantized tensor, per tensor. */
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
    qs_id core;     /* node before the activation, or QS_NONE */
    qs_id value;    /* what the core makes */
    int32_t lo, hi; /* bounds of the activation, in quantized units */
    bool bounded;   /* tighter than the type */
} qs_target;

typedef struct qs_qdq {
    qs_pass *p;
    qs_graph *g;
    size_t *position; /* of the nodes when the pass began, in order */
    size_t positions;
    qs_id *above; /* by value when the pass began: the QuantizeLinear of it that a match has made */
    size_t values;
    qs_uses uses; /* of the values when the pass began */
} qs_qdq;

/* Whether a value is a dequantized tensor of 8 bits (u8 only, if not standard). */
bool qs_qdq_source(const qs_qdq *d, qs_id value, qs_quantized *q);
/* The same; makes s8 constants unsigned where u8 is needed. *found: it is such a value. */
int qs_qdq_operand(qs_qdq *d, qs_id value, qs_quantized *q, bool *found);
/* The value as an integer of that tensor. */
int32_t qs_qdq_quantize(const qs_quantized *q, double v);
/* Its zero point as a constant, made if it was left out; negative: error. */
qs_id qs_qdq_zero_point(qs_qdq *d, qs_quantized *q);
/* Replaces the QuantizeLinear by the node that makes the target's integers. */
int qs_qdq_replace(qs_qdq *d, const qs_target *t, const char *domain, const char *op_type,
                   const qs_id *inputs, int32_t input_count, qs_id attributes_of, qs_id *made);
int qs_qdq_set_bounds(qs_qdq *d, const qs_target *t, qs_id node);

/* Each sets *done if it matched. */
int qs_qdq_conv(qs_qdq *d, qs_target *t, bool *done);    /* qdq_product.c */
int qs_qdq_product(qs_qdq *d, qs_target *t, bool *done); /* Gemm, MatMul, MatMul + Add */
int qs_qdq_binary(qs_qdq *d, qs_target *t, bool *done);  /* qdq_simple.c: Add, Mul */
int qs_qdq_pool(qs_qdq *d, qs_target *t, bool *done);    /* average pools */
int qs_qdq_concat(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_softmax(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_layernorm(qs_qdq *d, qs_target *t, bool *done);
int qs_qdq_move(qs_qdq *d, qs_target *t, bool *done);  /* qdq_move.c: MaxPool, Reshape, ... */
int qs_qdq_above(qs_qdq *d, qs_target *t, bool *done); /* qdq_above.c: quantized before it moves */
int qs_qdq_table(qs_qdq *d, qs_target *t, bool *done); /* qdq_table.c: functions of one tensor */
/* Whether a node moves elements of one operand, all else being constant. */
bool qs_qdq_is_movement(const qs_graph *g, const qs_node *n);
/* Makes a copy of x, an operand of the target's core, the target itself, in integers. */
int qs_qdq_move_directly(qs_qdq *d, const qs_target *t, const qs_quantized *x);
/*
 * Movement of dequantized tensors becomes movement of integers, so that later patterns see their
 * scale.
 */
int qs_qdq_sink(qs_qdq *d);
/* Whether the target's scale and bounds are those of `from`. */
bool qs_qdq_same(const qs_target *t, const qs_quantized *from);

#endif
