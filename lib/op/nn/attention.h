/* SPDX-License-Identifier: MIT */
/*
 * Scaled dot product attention, to which ONNX's and ONNX Runtime's operators are lowered. For each
 * batch, head and query at position p, and each key j:
 *
 *     score = scale * sum(q k); score = cap * tanh(score / cap); score += mask
 *     y = sum over j of softmax(score) * v
 *
 * with the sums in order, each step a fused multiply-add, and the softmax as in reduce.h. A key
 * takes part if it is among the batch's used ones, inside the window around p and, with `causal`,
 * not after p. A query without any such key, or whose mask is -inf at all of them, gives zeros.
 * Whether a share of 0 times a value that is not finite counts depends on how many queries are
 * computed together.
 */
#ifndef QS_ATTENTION_H
#define QS_ATTENTION_H

#include "kernel/f32.h"
#include "op/rules.h"

/* Strides in elements. */
typedef struct qs_heads {
    size_t batch, head, row;
} qs_heads;

enum { QS_MASK_NONE, QS_MASK_BOOL, QS_MASK_FLOAT };

/* The scores that are an output, numbered as in ONNX's qk_matmul_output_mode. */
enum { QS_QK_NONE = -1, QS_QK_PRODUCT, QS_QK_CAPPED, QS_QK_MASKED, QS_QK_SOFTMAX };

typedef struct qs_attention {
    size_t batches, heads, kv_heads, queries, keys, width, v_width;
    qs_heads q, k, v, y, mask;
    int32_t mask_kind;
    size_t mask_keys; /* keys that the mask covers; it is -inf for the rest */
    float scale, cap; /* cap 0: none */
    double scale64;   /* of doubles */
    bool causal;
    bool precise;        /* the softmax in double */
    bool smooth;         /* softmax has one more score without a value: 0 or the head's sink */
    int64_t left, right; /* of the window: keys before and after the query's; -1: all */
    int32_t qk_mode;

    /* Set by qs_attention_plan. */
    const qk_f32 *kernels;
    size_t rows, together; /* of a block at most; heads of a block at most */
    bool v_in_place;       /* values are not packed */
    size_t k_floats, v_floats, score_floats, bias_floats, q_floats, slices, slice_floats;
} qs_attention;

/* Per batch: the position of its first query, and the number of its used keys. */
typedef struct qs_attention_keys {
    int64_t first, used;
} qs_attention_keys;

/* Floats, or doubles for qs_attention64_run. */
typedef struct qs_attention_data {
    const void *q, *k, *v;
    const void *mask;
    const float *sinks; /* one per head, with `smooth`; NULL: 0 */
    const qs_attention_keys *of;
    void *y, *qk;  /* qk: (batch, head, query, key), dense */
    void *scratch; /* 64-byte aligned */
    /*
     * Writes the keys or values of item (batch, key head) into k or v just before they are read.
     * Any thread calls it, once for each item. NULL: k and v are complete.
     */
    void (*prepare)(const void *arg, size_t item, bool values);
    const void *arg;
} qs_attention_data;

/* Completes a plan; *bytes: the step's scratch memory, a multiple of 64. */
int qs_attention_plan(qs_lower *l, qs_attention *a, size_t *bytes);
void qs_attention_run(const qsim_ctx *ctx, const qs_attention *a, const qs_attention_data *data);

/* The same for doubles, without sinks: sums in order, each product rounded, softmax_precise. */
int qs_attention64_plan(qs_lower *l, qs_attention *a, size_t *bytes);
void qs_attention64_run(const qsim_ctx *ctx, const qs_attention *a, const qs_attention_data *data);

/* Sets the keys [begin, end) that a query at `position` may attend to: end <= used. */
void qs_attention_visible(const qs_attention *a, int64_t position, int64_t used, int64_t *begin,
                          int64_t *end);

/*
 * A cache of keys or values (batch, head, entry, width): `past` entries, then `fresh` ones, which
 * are read with the strides `from`.
 */
typedef struct qs_cache {
    size_t batches, heads, past, fresh, width, element; /* element: bytes of one */
    qs_heads from;
} qs_cache;

/* Writes item (batch, head) of the cache. */
void qs_cache_join(const qs_cache *c, const void *past, const void *fresh, void *to, size_t item);

/* Strides of dense (batch, head, row, width), and of (batch, row, head * width). */
qs_heads qs_heads_dense(size_t heads, size_t rows, size_t width);
qs_heads qs_heads_packed(size_t heads, size_t rows, size_t width);

#endif
