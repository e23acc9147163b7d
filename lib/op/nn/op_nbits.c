/* SPDX-License-Identifier: MIT */
/*
 * MatMulNBits of ONNX Runtime: y = a w + bias with w (columns, K) stored as 2, 4 or 8 bits in
 * blocks along K, each with a scale and a zero point: w = (q - zero point) * scale. Inputs: a,
 * codes, scales, zero points, the block of each k, bias.
 *
 * accuracy_level 4 quantizes a to 8 bits block by block, its greatest magnitude to 127:
 *     y = sum over blocks of float(sum of qa * (q - zero point)) * (scale of a * scale of w)
 * where the inner sum is exact and the outer one in order, each product and sum rounded. Other
 * levels, float zero points and blocks in another order multiply floats.
 */
#include "op/expand.h"
#include "op/nn/nbits_product.h"

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

/* Longest block: an int32 holds the sum of this many products of at most 127 * 255. */
#define MOST_BLOCK 65536

typedef qs_nbits_form form;

static int read_form(const qs_infer *x, form *f) {
    const qs_node *n = x->node;
    const int64_t level = qs_node_int(n, "accuracy_level", 0);
    const qs_value *zeros = qs_infer_in(x, ZEROS);
    f->k = qs_node_int(n, "K", 0);
    f->n = qs_node_int(n, "N", 0);
    f->bits = qs_node_int(n, "bits", 4);
    f->block = qs_node_int(n, "block_size", 0);
    if (f->k < 1 || f->n < 1 || f->k > INT32_MAX || f->n > INT32_MAX)
        return qs_infer_fail(x, QSIM_E_VALUE, "K is %lld, N %lld", (long long)f->k,
                             (long long)f->n);
    if (f->bits != 2 && f->bits != 4 && f->bits != 8)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "bits is %lld, not 2, 4 or 8",
                             (long long)f->bits);
    if (f->block < 16 || f->block > MOST_BLOCK || (f->block & (f->block - 1)))
        return qs_infer_fail(x, QSIM_E_VALUE, "block_size is %lld, not a power of 2 from 16 to %d",
                             (long long)f->block, MOST_BLOCK);
    if (level < 0 || level > 4)
        return qs_infer_fail(x, QSIM_E_VALUE, "accuracy_level is %lld", (long long)level);
    f->blocks = (f->k + f->block - 1) / f->block;
    f->bytes = f->block * f->bits / 8;
    f->zero_bytes = (f->blocks * f->bits + 7) / 8;
    f->rounds = level == 4 && !qs_infer_in(x, GROUPS) && !(zeros && zeros->dtype == QSIM_FLOAT);
    return QSIM_OK;
}

/* Fails unless input `index`, if present, is constant and has `count` elements. */
static int check_constant(const qs_infer *x, int32_t index, uint32_t types, int64_t count) {
    qs_const c;
    if (!qs_infer_in(x, index))
        return QSIM_OK;
    int code = qs_infer_type(x, index, types);
    if (!code && !qs_infer_const(x, index, &c))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "input %d is not constant", (int)index);
    if (!code && c.elements != (size_t)count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %zu elements, expected %lld",
                             (int)index, c.elements, (long long)count);
    return code;
}

/* Checks the block of each k; the list is as long as K, or as K rounded up to whole blocks. */
static int check_groups(const qs_infer *x, const form *f) {
    qs_const c;
    if (!qs_infer_in(x, GROUPS))
        return QSIM_OK;
    const bool known = qs_infer_const(x, GROUPS, &c);
    const bool padded = known && c.elements == (size_t)(f->blocks * f->block);
    int code = check_constant(x, GROUPS, QS_T(QSIM_INT32), padded ? f->blocks * f->block : f->k);
    for (int64_t i = 0; i < f->k && !code; i++) {
        int32_t block;
        memcpy(&block, (const char *)c.data + (size_t)i * sizeof(block), sizeof(block));
        if (block < 0 || block >= f->blocks)
            code = qs_infer_fail(x, QSIM_E_VALUE, "g_idx %lld is %d of %lld blocks", (long long)i,
                                 (int)block, (long long)f->blocks);
    }
    return code;
}

static int infer_nbits(qs_infer *x) {
    const qs_value *a = x->in[A], *zeros = qs_infer_in(x, ZEROS);
    form f;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, A, QS_T_FLOAT);
    if (!code)
        code = read_form(x, &f);
    if (!code)
        code = check_constant(x, B, QS_T(QSIM_UINT8), f.n * f.blocks * f.bytes);
    if (!code)
        code = check_constant(x, SCALES, QS_T_FLOAT, f.n * f.blocks);
    if (!code)
        code =
            check_constant(x, ZEROS, QS_T_FLOAT | QS_T(QSIM_UINT8),
                           f.n * (zeros && zeros->dtype == QSIM_FLOAT ? f.blocks : f.zero_bytes));
    if (!code)
        code = check_groups(x, &f);
    if (!code && qs_infer_in(x, BIAS))
        code = check_constant(x, BIAS, QS_T_FLOAT, f.n);
    if (code || a->rank < 0)
        return code ? code : qs_infer_unknown(x, QSIM_FLOAT);
    if (a->rank < 1 || (a->dims[a->rank - 1].size >= 0 && a->dims[a->rank - 1].size != f.k))
        return qs_infer_fail(x, QSIM_E_SHAPE, "the last axis of input 0 is not K, %lld",
                             (long long)f.k);
    qs_value_dims(a, dims);
    dims[a->rank - 1] = (qs_dim){f.n, NULL};
    return qs_infer_out(x, 0, QSIM_FLOAT, a->rank, dims);
}

/* ---- steps ---- */

static int no_memory(qs_pack *p) {
    return qs_fail(p->error, QSIM_E_NOMEM, "out of memory");
}

/* Packs the constants, aligned for their elements, also those of Constant nodes. */
static int pack_nbits(qs_pack *p) {
    qs_infer x = {.graph = p->graph,
                  .node = p->node,
                  .node_id = p->node_id,
                  .model = p->model,
                  .values = p->graph->values,
                  .error = p->error};
    for (int32_t i = 0; i < p->node->input_count; i++)
        x.in[i] = p->node->inputs[i] == QS_NONE ? NULL : &p->graph->values[p->node->inputs[i]];
    qs_nbits *w = qs_arena_alloc(p->arena, 1, sizeof(*w));
    if (!w)
        return no_memory(p);
    *w = (qs_nbits){.bits = qs_pack_bytes(p, B)};
    int code = read_form(&x, &w->f);
    if (code)
        return code;
    const bool real = x.in[ZEROS] && x.in[ZEROS]->dtype == QSIM_FLOAT;
    w->scales = qs_pack_const(p, SCALES);
    w->zeros = real ? NULL : qs_pack_bytes(p, ZEROS);
    w->real_zeros = real ? qs_pack_const(p, ZEROS) : NULL;
    w->groups = qs_pack_const(p, GROUPS);
    if (!w->bits || !w->scales || (x.in[ZEROS] && !w->zeros && !w->real_zeros) ||
        (x.in[GROUPS] && !w->groups))
        return no_memory(p);
    p->result = w;
    return qs_nbits_pack(p, w);
}

static int lower_nbits(qs_lower *l) {
    const qs_value *a = qs_lower_in(l, A);
    return qs_nbits_lower(l, (size_t)qs_dims_product(a->dims, 0, a->rank - 1),
                          qs_lower_in(l, BIAS) ? BIAS : -1);
}

static const qs_attr_rule nbits_attrs[] = {
    {"K", QSIM_ATTR_INT, 1, 0},
    {"N", QSIM_ATTR_INT, 1, 0},
    {"bits", QSIM_ATTR_INT, 1, 0},
    {"block_size", QSIM_ATTR_INT, 1, 0},
    {"accuracy_level", QSIM_ATTR_INT, 1, 0},
};

QS_OP(ms_nbits, .domain = QS_DOMAIN_MICROSOFT, .name = "MatMulNBits", .min_in = 3, .max_in = 6,
      QS_ATTRS(nbits_attrs), .traits = QS_PLAIN, .setting_inputs = 0xf << 2,
      .kernel = QS_KERNEL_NBITS, .infer = infer_nbits, QS_MORE(.pack = pack_nbits),
      .lower = lower_nbits, .expand = qs_expand_nbits);
