/* SPDX-License-Identifier: MIT */
/*
 * Replaces a MatMul or Gemm and the DequantizeLinear of its constant weights of 4 bits by
 * MatMulNBits, which keeps them in 4 bits. The sums are the same, bit for bit.
 */
#include "pass/pass.h"

#define MOST_BLOCK 65536

/*
 * K x N weights, (N, K) in memory if `transposed`, with a scale and a zero point for each block of
 * a column, for each column, or for all. Both of a block are at column * column_step + block *
 * block_step.
 */
typedef struct weights {
    const qs_const *codes, *scale, *zero; /* zero NULL: all are 0 */
    bool transposed;
    int64_t k, n, block, blocks;
    int64_t column_step, block_step; /* of scale and zero */
} weights;

/* The smallest block that holds a whole column. */
static int64_t block_of_column(int64_t k) {
    int64_t block = 16;
    while (block < k)
        block *= 2;
    return block;
}

static bool read_blocks(const qs_node *dq, weights *w) {
    const int64_t axis = qs_node_int(dq, "axis", 1), block = qs_node_int(dq, "block_size", 0);
    const bool along_k = (axis < 0 ? axis + 2 : axis) == w->transposed;
    const int64_t count = (int64_t)w->scale->elements;
    w->block = block ? block : block_of_column(w->k);
    w->blocks = (w->k + w->block - 1) / w->block;
    if (w->block < 16 || w->block > MOST_BLOCK || (w->block & (w->block - 1)))
        return false;
    if (block) {
        w->column_step = w->transposed ? w->blocks : 1;
        w->block_step = w->transposed ? 1 : w->n;
        return along_k && count == w->n * w->blocks;
    }
    w->column_step = count > 1;
    return count == 1 || (!along_k && count == w->n);
}

static bool read_weights(const qs_graph *g, const qs_node *dq, bool transposed, weights *w) {
    *w = (weights){.codes = qs_node_const(g, dq, 0),
                   .scale = qs_node_const(g, dq, 1),
                   .zero = qs_node_const(g, dq, 2),
                   .transposed = transposed};
    const qs_const *c = w->codes;
    if (!c || c->rank != 2 || (c->dtype != QSIM_INT4 && c->dtype != QSIM_UINT4) ||
        c->elements == 0 || c->dims[!transposed] > INT32_MAX || c->dims[transposed] > MOST_BLOCK)
        return false;
    if (!w->scale || w->scale->dtype != QSIM_FLOAT ||
        (qs_node_input(dq, 2) != QS_NONE &&
         (!w->zero || w->zero->dtype != c->dtype || w->zero->elements != w->scale->elements)))
        return false;
    w->k = c->dims[transposed];
    w->n = c->dims[!transposed];
    return read_blocks(dq, w);
}

static bool is_plain_gemm(const qs_node *n) {
    return !qs_node_int(n, "transA", 0) && qs_node_float(n, "alpha", 1.0f) == 1.0f &&
           qs_node_float(n, "beta", 1.0f) == 1.0f;
}

/* Whether a Gemm has no bias, or a constant one with a number for each column. */
static bool fits_bias(const qs_graph *g, const qs_node *n, int64_t columns) {
    const qs_const *bias = qs_node_floats(g, n, 2);
    return qs_node_input(n, 2) == QS_NONE ||
           (bias && bias->elements == (size_t)columns && bias->dims[bias->rank - 1] == columns);
}

/* The DequantizeLinear of the weights; QS_NONE: the node is another one. */
static qs_id match_product(const qs_graph *g, const qs_uses *uses, const qs_node *n, weights *w) {
    const bool gemm = qs_node_is_onnx(n, "Gemm");
    if ((!gemm && !qs_node_is_onnx(n, "MatMul")) || g->values[n->inputs[0]].data)
        return QS_NONE;
    const qs_id v = n->inputs[1], dq = qs_pass_producer(g, v, "DequantizeLinear");
    const bool transposed = qs_node_int(n, "transB", 0) != 0;
    if (dq == QS_NONE || qs_only_reader(g, uses, v) == QS_NONE ||
        g->values[v].dtype != QSIM_FLOAT || !read_weights(g, &g->nodes[dq], transposed, w))
        return QS_NONE;
    return !gemm || (is_plain_gemm(n) && fits_bias(g, n, w->n)) ? dq : QS_NONE;
}

/* The number that makes codes unsigned, as MatMulNBits has them, by addition. */
static uint8_t code_offset(const weights *w) {
    return w->codes->dtype == QSIM_INT4 ? 8 : 0;
}

/* Stores code i of a row; the first of two is in the low half of their byte. */
static void store_code(uint8_t *row, int64_t i, uint8_t code) {
    row[i / 2] = (uint8_t)(i % 2 ? (row[i / 2] & 15) | code << 4 : (row[i / 2] & 0xf0) | code);
}

static qs_id pack_codes(qs_pass *p, const weights *w) {
    const int64_t dims[3] = {w->n, w->blocks, w->block / 2};
    const size_t row = (size_t)(w->blocks * w->block / 2);
    uint8_t *to = qs_arena_alloc(&p->graph->arena, (size_t)w->n, row);
    if (!to)
        return qs_pass_no_memory(p);
    memset(to, 0x88, (size_t)w->n * row);
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t k = 0; k < w->k; k++) {
            const uint8_t code =
                qs_const_code4(w->codes, (size_t)(w->transposed ? n * w->k + k : k * w->n + n));
            store_code(to + (size_t)n * row, k, (code + code_offset(w)) & 15);
        }
    return qs_pass_placed_const(p, QSIM_UINT8, 3, dims, to);
}

static qs_id pack_scales(qs_pass *p, const weights *w) {
    const int64_t dims[2] = {w->n, w->blocks};
    float *to = qs_arena_alloc(&p->graph->arena, (size_t)w->n, (size_t)w->blocks * sizeof(*to));
    if (!to)
        return qs_pass_no_memory(p);
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t b = 0; b < w->blocks; b++)
            to[n * w->blocks + b] =
                (float)qs_const_at(w->scale, (size_t)(n * w->column_step + b * w->block_step));
    return qs_pass_placed_const(p, QSIM_FLOAT, 2, dims, to);
}

/* The zero points, those of each column from a new byte on; QS_NONE: all are 8, the default. */
static qs_id pack_zeros(qs_pass *p, const weights *w) {
    const int64_t dims[2] = {w->n, (w->blocks + 1) / 2};
    uint8_t *to = qs_arena_alloc(&p->graph->arena, (size_t)w->n, (size_t)dims[1]);
    bool others = false;
    if (!to)
        return qs_pass_no_memory(p);
    memset(to, 0, (size_t)(w->n * dims[1]));
    for (int64_t n = 0; n < w->n; n++)
        for (int64_t b = 0; b < w->blocks; b++) {
            const int64_t at = n * w->column_step + b * w->block_step;
            const uint8_t zero = w->zero ? qs_const_code4(w->zero, (size_t)at) : 0;
            store_code(to + n * dims[1], b, (zero + code_offset(w)) & 15);
            others |= ((zero + code_offset(w)) & 15) != 8;
        }
    if (!others)
        return QS_NONE;
    return qs_pass_placed_const(p, QSIM_UINT8, 2, dims, to);
}

static int replace_node(qs_pass *p, qs_id node, const weights *w) {
    qs_graph *g = p->graph;
    const qs_id codes = pack_codes(p, w), scales = codes < 0 ? codes : pack_scales(p, w);
    const qs_id zeros = scales < 0 ? scales : pack_zeros(p, w);
    if (codes < 0 || scales < 0 || (zeros < 0 && zeros != QS_NONE))
        return QSIM_E_NOMEM;
    const qs_node old = g->nodes[node];
    const qs_id in[6] = {old.inputs[0], codes, scales, zeros, QS_NONE, qs_node_input(&old, 2)};
    const int32_t count = in[5] != QS_NONE ? 6 : zeros != QS_NONE ? 4 : 3;
    qs_graph_remove_node(g, node);
    const qs_id id =
        qs_pass_node(p, "com.microsoft", "MatMulNBits", old.name, 1, in, count, old.outputs, 1);
    if (id < 0)
        return id;
    return qs_node_set_int(g, id, "K", w->k) || qs_node_set_int(g, id, "N", w->n) ||
                   qs_node_set_int(g, id, "bits", 4) ||
                   qs_node_set_int(g, id, "block_size", w->block)
               ? qs_pass_no_memory(p)
               : QSIM_OK;
}

static int replace_product(qs_pass *p, const qs_uses *uses, qs_id node, bool *changed) {
    weights w;
    if (match_product(p->graph, uses, &p->graph->nodes[node], &w) == QS_NONE)
        return QSIM_OK;
    *changed = true;
    return replace_node(p, node, &w);
}

int qs_pass_nbits(qs_pass *p) {
    return qs_pass_nodes(p, replace_product);
}
