/* SPDX-License-Identifier: MIT */
/*
 * Writes products with 4-bit weights as MatMulNBits of com.microsoft, with blocks along the input.
 */
#include "ptq/quantizer.h"

/* Packs codes to [columns, blocks, block / 2] bytes, the first of two in the low half. */
static uint8_t *pack_codes(qs_quantizer *q, const qs_layer *l, const qs_codes *c, size_t blocks,
                           size_t block) {
    const uint8_t *from = c->data, flip = l->form.dtype == QSIM_INT4 ? 8 : 0;
    const size_t row = blocks * block / 2;
    uint8_t *to = qs_arena_alloc(&q->g->arena, l->channels * row + 1, 1);
    if (!to)
        return NULL;
    memset(to, flip || !c->blocks ? 0x88 : 0, l->channels * row);
    for (size_t n = 0; n < l->channels; n++)
        for (size_t k = 0; k < l->depth; k++) {
            const uint8_t code = (from[n * l->stride + k * l->step] + flip) & 15;
            uint8_t *at = &to[n * row + k / 2];
            *at = (uint8_t)(k % 2 ? (*at & 15) | code << 4 : (*at & 0xf0) | code);
        }
    return to;
}

/*
 * Packs zero points, those of each column from a new byte on; NULL with *failed false: all are 8.
 */
static uint8_t *pack_zeros(qs_quantizer *q, const qs_layer *l, const qs_codes *c, size_t blocks,
                           bool *failed) {
    const int32_t flip = l->form.dtype == QSIM_INT4 ? 8 : 0;
    const size_t row = (blocks + 1) / 2;
    bool any = false;
    for (size_t i = 0; i < c->count; i++)
        any |= c->zero_point[i] + flip != 8;
    *failed = false;
    if (!any)
        return NULL;
    uint8_t *to = qs_arena_alloc(&q->g->arena, l->channels * row + 1, 1);
    *failed = !to;
    for (size_t n = 0; to && n < l->channels; n++)
        for (size_t b = 0; b < blocks; b++) {
            const uint8_t zero = (uint8_t)(c->zero_point[n * blocks + b] + flip);
            uint8_t *at = &to[n * row + b / 2];
            *at = (uint8_t)(b % 2 ? *at | zero << 4 : zero);
        }
    return to;
}

/* The smallest block that holds a whole column. */
static size_t block_of_column(size_t depth) {
    size_t block = 16;
    while (block < depth)
        block *= 2;
    return block;
}

static bool set_sizes(qs_graph *g, qs_id node, const qs_layer *l, size_t block, int32_t level) {
    return !qs_node_set_int(g, node, "K", (int64_t)l->depth) &&
           !qs_node_set_int(g, node, "N", (int64_t)l->channels) &&
           !qs_node_set_int(g, node, "bits", 4) &&
           !qs_node_set_int(g, node, "block_size", (int64_t)block) &&
           !qs_node_set_int(g, node, "accuracy_level", level);
}

int qs_write_nbits(qs_quantizer *q, const qs_layer *l, const qs_codes *c, int32_t level) {
    qs_graph *g = q->g;
    const size_t blocks = c->blocks + !c->blocks,
                 block = c->blocks ? c->block : block_of_column(l->depth);
    const qs_node old = g->nodes[l->node];
    const char *base = g->values[old.inputs[1]].name;
    const int64_t dims[3] = {(int64_t)l->channels, (int64_t)blocks, (int64_t)block / 2};
    const int64_t zero_dims[2] = {dims[0], (int64_t)(blocks + 1) / 2};
    const qs_id bias = qs_node_input(&old, 2);
    bool failed;
    uint8_t *codes = pack_codes(q, l, c, blocks, block);
    uint8_t *zeros = pack_zeros(q, l, c, blocks, &failed);
    if (failed || !codes || qs_graph_set_import(g, "com.microsoft", 1))
        return QSIM_E_NOMEM;
    const qs_id in[6] = {
        old.inputs[0],
        qs_write_constant(q, base, "_Q4", QSIM_UINT8, 3, dims, codes),
        qs_write_constant(q, base, "_scales", QSIM_FLOAT, 2, dims, c->scale),
        zeros ? qs_write_constant(q, base, "_zero_points", QSIM_UINT8, 2, zero_dims, zeros)
              : QS_NONE,
        QS_NONE,
        bias};
    const char *name = qs_write_name(q, qs_node_label(g, l->node), "_Q4");
    qs_id node = QSIM_E_NOMEM;
    if (in[1] >= 0 && in[2] >= 0 && (!zeros || in[3] >= 0) && name) {
        qs_graph_remove_node(g, l->node);
        node = qs_graph_add_node(g, "com.microsoft", "MatMulNBits", name, in,
                                 bias != QS_NONE ? 6
                                 : zeros         ? 4
                                                 : 3,
                                 old.outputs, 1);
    }
    return node >= 0 && set_sizes(g, node, l, block, level) ? QSIM_OK : QSIM_E_NOMEM;
}
