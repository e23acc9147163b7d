/* SPDX-License-Identifier: MIT */
/*
 * MatMulNBits and GatherBlockQuantized of ONNX Runtime in operators of ONNX, for files: weights in
 * blocks along the last axis of rows become a DequantizeLinear with a block size, of which a MatMul
 * or Gather reads. Both hold the same codes, scales and zero points; accuracy_level, which allows
 * ONNX Runtime to round activations, has no counterpart.
 */
#include "base/ctx.h"
#include "op/expand.h"
#include "op/nn/codes.h"

enum { SCALES = 2, ZEROS, GROUPS, BIAS };

/* Rows of `blocks` blocks of `block` codes, the last of which may be cut. */
typedef struct table {
    int64_t rows, width, bits, block, blocks;
    int32_t dtype; /* of codes */
    bool packed;   /* bytes of the file hold codes; rows of zero points begin at a byte */
} table;

static qs_id constant(qs_expand *e, int32_t dtype, int64_t rows, int64_t columns,
                      const void *data) {
    const int64_t dims[2] = {rows, columns};
    const qs_id made = qs_graph_add_const(e->graph, NULL, dtype, 2, dims, data, false);
    return made < 0 ? qs_expand_no_memory(e) : made;
}

static uint8_t *alloc_codes(qs_expand *e, const table *t, int64_t count) {
    uint8_t *data = qs_arena_alloc(&e->graph->arena, (size_t)(count * t->bits + 7) / 8 + 1, 1);
    if (!data)
        qs_expand_no_memory(e);
    return data;
}

/* An input's constant; NULL: it has none. Values move when others are added, constants do not. */
static const qs_const *constant_in(const qs_expand *e, int32_t index) {
    const qs_value *v = qs_expand_value(e, index);
    return v ? v->data : NULL;
}

/* Zero points without gaps between rows; packed ones that are left out are half of the range. */
static qs_id zero_points(qs_expand *e, const table *t) {
    const qs_const *given = constant_in(e, ZEROS);
    const int64_t row = (t->blocks * t->bits + 7) / 8, half = 1 << (t->bits - 1);
    if (!given && !t->packed)
        return QS_NONE;
    const uint8_t *from = given ? given->data : NULL;
    uint8_t *to = t->packed ? alloc_codes(e, t, t->rows * t->blocks) : NULL;
    for (int64_t i = 0; to && i < t->rows * t->blocks; i++) {
        const int64_t code =
            from ? qs_code_at(from + i / t->blocks * row, t->bits, i % t->blocks) : half;
        to[i * t->bits / 8] |= (uint8_t)(code << i * t->bits % 8);
    }
    return e->code ? QS_NONE : constant(e, t->dtype, t->rows, t->blocks, to ? to : from);
}

/* The floats of the codes in input `index`, (rows, width); QS_NONE: they are not all constant. */
static qs_id dequantized(qs_expand *e, int32_t index, const table *t) {
    const qs_const *codes = constant_in(e, index), *scales = constant_in(e, SCALES),
                   *zeros = constant_in(e, ZEROS);
    if (!codes || !scales || (zeros ? zeros->dtype != codes->dtype : qs_expand_in(e, ZEROS) >= 0))
        return QS_NONE;
    const qs_id parts[3] = {constant(e, t->dtype, t->rows, t->width, codes->data),
                            constant(e, scales->dtype, t->rows, t->blocks, scales->data),
                            zero_points(e, t)};
    const qs_id y = qs_expand_add(e, "DequantizeLinear", parts[0], parts[1], parts[2]);
    qs_expand_int(e, y, "axis", 1);
    qs_expand_int(e, y, "block_size", t->block);
    return y;
}

static int32_t type_of(int64_t bits) {
    return bits == 8 ? QSIM_UINT8 : bits == 4 ? QSIM_UINT4 : QSIM_UINT2;
}

void qs_expand_nbits(qs_expand *e) {
    const qs_node *n = e->node;
    if (!e->only_onnx || qs_expand_in(e, GROUPS) != QS_NONE)
        return;
    const int64_t k = qs_node_int(n, "K", 0), block = qs_node_int(n, "block_size", 0),
                  from[1] = {0}, to[1] = {k}, axis[1] = {1};
    table t = {.rows = qs_node_int(n, "N", 0),
               .bits = qs_node_int(n, "bits", 4),
               .block = block,
               .blocks = (k + block - 1) / block,
               .packed = true};
    t.width = t.blocks * block;
    t.dtype = type_of(t.bits);
    qs_id w = dequantized(e, 1, &t);
    if (w == QS_NONE)
        return;
    if (t.width > k) {
        const qs_id in[4] = {w, qs_expand_list(e, from, 1), qs_expand_list(e, to, 1),
                             qs_expand_list(e, axis, 1)};
        w = qs_expand_many(e, "Slice", in, 4, 1);
    }
    w = qs_expand_transpose(e, w, (const int64_t[]){1, 0}, 2);
    e->out[0] = qs_expand_two(e, "MatMul", qs_expand_in(e, 0), w);
    if (qs_expand_in(e, BIAS) != QS_NONE)
        e->out[0] = qs_expand_two(e, "Add", e->out[0], qs_expand_in(e, BIAS));
}

void qs_expand_gather_blocks(qs_expand *e) {
    const qs_value *v = qs_expand_value(e, 0);
    int64_t dims[QSIM_MAX_RANK];
    table t = {.packed = v->dtype == QSIM_UINT8, .block = qs_node_int(e->node, "block_size", 128)};
    if (!e->only_onnx || !v->data)
        return;
    const int32_t rank = v->data->rank;
    t.bits = t.packed ? qs_node_int(e->node, "bits", 4) : 4;
    t.dtype = t.packed ? type_of(t.bits) : v->dtype;
    t.width = v->data->dims[rank - 1] * (t.packed ? 8 / t.bits : 1);
    t.blocks = (t.width + t.block - 1) / t.block;
    t.rows = 1;
    for (int32_t i = 0; i < rank; i++) {
        dims[i] = i < rank - 1 ? v->data->dims[i] : t.width;
        t.rows *= i < rank - 1 ? dims[i] : 1;
    }
    qs_id w = dequantized(e, 0, &t);
    if (w == QS_NONE)
        return;
    if (rank != 2)
        w = qs_expand_reshape(e, w, dims, rank);
    e->out[0] = qs_expand_two(e, "Gather", w, qs_expand_in(e, 1));
}
