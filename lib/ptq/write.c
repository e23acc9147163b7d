/* SPDX-License-Identifier: MIT */
/* Adds values, constants and nodes of quantization, with names made from existing ones. */
#include "base/ctx.h"
#include "op/op.h"
#include "ptq/quantizer.h"

const char *qs_write_joined(qs_quantizer *q, const char *base, const char *suffix) {
    size_t n = strlen(base), m = strlen(suffix);
    char *text = qs_arena_alloc(&q->g->arena, n + m + 1, 1);
    if (!text)
        return NULL;
    memcpy(text, base, n);
    memcpy(text + n, suffix, m);
    return text;
}

const char *qs_write_name(qs_quantizer *q, const char *base, const char *suffix) {
    const char *text = qs_write_joined(q, base, suffix);
    return text ? qs_graph_fresh_name(q->g, text) : NULL;
}

/* Whether a value is this constant. */
static bool is_same(const qs_value *v, int32_t dtype, int32_t rank, const int64_t *dims,
                    const void *data) {
    const qs_const *c = v->data;
    bool same = c && c->dtype == dtype && c->rank == rank;
    for (int32_t i = 0; i < rank && same; i++)
        same = c->dims[i] == dims[i];
    return same && (c->bytes == 0 || memcmp(c->data, data, c->bytes) == 0);
}

qs_id qs_write_value(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                     qs_id like) {
    const char *name = qs_write_name(q, base, suffix);
    qs_id id = name && like >= 0 ? qs_graph_add_value(q->g, name) : QSIM_E_NOMEM;
    if (id >= 0) {
        q->g->values[id].dtype = dtype;
        q->g->values[id].rank = q->g->values[like].rank;
        q->g->values[id].dims = q->g->values[like].dims;
    }
    return id;
}

qs_id qs_write_constant(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                        int32_t rank, const int64_t *dims, const void *data) {
    const char *text = qs_write_joined(q, base, suffix);
    const qs_id old = text ? qs_graph_find(q->g, text) : QSIM_E_NOMEM;
    if (old >= 0 && is_same(&q->g->values[old], dtype, rank, dims, data))
        return old; /* a constant that several layers share is written once */
    const char *name = text ? qs_graph_fresh_name(q->g, text) : NULL;
    return name ? qs_graph_add_const(q->g, name, dtype, rank, dims, data, true) : QSIM_E_NOMEM;
}

/* Packs codes of 4 bits, two in a byte, the first in the low half; other codes are not changed. */
static const void *packed(qs_quantizer *q, int32_t dtype, const uint8_t *codes, size_t count) {
    if (!qs_is_narrow(dtype))
        return codes;
    uint8_t *to = qs_arena_alloc(&q->g->arena, count / 2 + 1, 1);
    for (size_t i = 0; to && i < count; i++)
        to[i / 2] = (uint8_t)(i % 2 ? to[i / 2] | codes[i] << 4 : codes[i] & 15);
    return to;
}

qs_id qs_write_zero_points(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                           const int32_t *zero_point, int32_t rank, const int64_t *dims) {
    size_t count = 1;
    for (int32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    uint8_t *bytes = qs_arena_alloc(&q->g->arena, count + 1, sizeof(int32_t));
    for (size_t i = 0; bytes && i < count; i++) {
        int32_t zp = zero_point ? zero_point[i] : 0;
        if (dtype == QSIM_INT32)
            memcpy(bytes + 4 * i, &zp, sizeof(zp));
        else if (qs_is_wide(dtype))
            memcpy(bytes + 2 * i, &(uint16_t){(uint16_t)zp}, 2);
        else
            bytes[i] = (uint8_t)zp;
    }
    const void *data = bytes ? packed(q, dtype, bytes, count) : NULL;
    return data ? qs_write_constant(q, base, suffix, dtype, rank, dims, data) : QSIM_E_NOMEM;
}

qs_id qs_write_node(qs_quantizer *q, const char *op, const char *base, qs_id x, qs_id scale,
                    qs_id zero, qs_id y) {
    const char *start = qs_write_joined(q, base, "_");
    const char *name = start ? qs_write_joined(q, start, op) : NULL;
    if (!name || x < 0 || scale < 0 || zero < QS_NONE || y < 0)
        return QSIM_E_NOMEM;
    const qs_id inputs[3] = {x, scale, zero};
    return qs_graph_add_node(q->g, "", op, name, inputs, zero == QS_NONE ? 2 : 3, &y, 1);
}

/*
 * Sizes of the scales of blocks: those of the weights, with the number of blocks for the input's
 * axis.
 */
static int32_t block_dims(const qs_const *c, const qs_codes *codes, int32_t axis, int64_t *dims) {
    for (int32_t i = 0; i < c->rank; i++)
        dims[i] = i == axis ? c->dims[i] : 1;
    dims[1 - axis] = (int64_t)codes->blocks;
    return c->rank;
}

/*
 * Transposes scales and zero points of blocks to [blocks, channels], for weights whose input axis
 * comes first; false: out of memory.
 */
static bool turn_blocks(qs_quantizer *q, qs_codes *codes) {
    const size_t channels = codes->count / codes->blocks;
    float *scale = qs_arena_alloc(&q->g->arena, codes->count, sizeof(*scale));
    int32_t *zero = qs_arena_alloc(&q->g->arena, codes->count, sizeof(*zero));
    for (size_t c = 0; scale && zero && c < channels; c++)
        for (size_t b = 0; b < codes->blocks; b++) {
            scale[b * channels + c] = codes->scale[c * codes->blocks + b];
            zero[b * channels + c] = codes->zero_point[c * codes->blocks + b];
        }
    codes->scale = scale;
    codes->zero_point = zero;
    return scale && zero;
}

qs_id qs_write_dequantized(qs_quantizer *q, qs_id original, int32_t dtype, const qs_codes *from,
                           int32_t axis) {
    const qs_const *c = q->g->values[original].data;
    const char *base = q->g->values[original].name;
    qs_codes codes = *from;
    int64_t dims[QSIM_MAX_RANK] = {(int64_t)codes.count};
    int32_t rank = codes.count > 1;
    const bool bias = dtype == QSIM_INT32, blocks = codes.blocks > 0;
    if (blocks)
        rank = block_dims(c, &codes, axis, dims);
    if (blocks && axis == 1 && !turn_blocks(q, &codes))
        return QSIM_E_NOMEM;
    const void *data = packed(q, dtype, codes.data, c->elements);
    qs_id v = data ? qs_write_constant(q, base, "_quantized", dtype, c->rank, c->dims, data)
                   : QSIM_E_NOMEM;
    qs_id s = qs_write_constant(q, base, bias ? "_quantized_scale" : "_scale", QSIM_FLOAT, rank,
                                dims, codes.scale);
    qs_id z = qs_write_zero_points(q, base, bias ? "_quantized_zero_point" : "_zero_point", dtype,
                                   codes.zero_point, rank, dims);
    qs_id y = qs_write_value(q, base, "_DequantizeLinear_Output", QSIM_FLOAT, original);
    qs_id node = qs_write_node(q, "DequantizeLinear", base, v, s, z, y);
    if (node < 0 || (rank > 0 && qs_node_set_int(q->g, node, "axis", blocks ? 1 - axis : axis)) ||
        (blocks && qs_node_set_int(q->g, node, "block_size", (int64_t)codes.block)))
        return QSIM_E_NOMEM;
    return y;
}

int qs_write_progress(qs_quantizer *q, qs_id node, size_t done, size_t total) {
    const qsim_quantize_options *o = &q->options;
    const bool ended =
        o->progress && o->progress(o->progress_user, qs_node_label(q->g, node), done, total);
    return qs_go_on_unless(q->ctx, ended, q->model->name, q->error);
}

int qs_write_finish(qs_quantizer *q) {
    int code = QSIM_OK;
    for (size_t i = q->node_count; i < q->g->node_count && !code; i++) {
        code = qs_go_on(q->ctx, q->model->name, q->error);
        if (!code)
            code = qs_op_resolve(q->g, (qs_id)i, q->model->name, q->error);
    }
    if (!code)
        code = qs_graph_sort(q->g, q->error);
    return code ? code : qs_op_infer_graph(q->g, q->model->name, q->error);
}
