/* SPDX-License-Identifier: MIT */
/*
 * MatMulBnb4 of ONNX Runtime: y = a w with w (N, K) stored as bitsandbytes does, row by row in
 * blocks of one magnitude each, an element in 4 bits, the first of two in the high ones. It becomes
 * a MatMul with weights of floats.
 */
#include "base/ctx.h"
#include "op/expand.h"

enum { A, B, ABSMAX };

/* Quantiles of the normal distribution (NF4), and floats of a sign, two and one bits (FP4). */
static const float nf4[16] = {-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};
static const float fp4[8] = {0, 0.0052083333f, 2.0f / 3, 1, 1.0f / 3, 0.5f, 1.0f / 6, 0.25f};

static int64_t attr(const qs_node *n, const char *name) {
    return qs_node_int(n, name, 0);
}

QS_COLD static int infer_bnb4(qs_infer *x) {
    const int64_t k = attr(x->node, "K"), n = attr(x->node, "N"),
                  block = attr(x->node, "block_size");
    const int64_t type = attr(x->node, "quant_type"), most = INT32_MAX;
    const qs_dim dims[2] = {{k, NULL}, {n, NULL}};
    const qs_value in[2] = {*x->in[A], {.dtype = QSIM_FLOAT, .rank = 2, .dims = dims}};
    qs_const codes, absmax;
    int code = qs_infer_type(x, A, QS_T_FLOAT);
    if (!code)
        code = qs_infer_type(x, B, QS_T(QSIM_UINT8));
    if (!code)
        code = qs_infer_type(x, ABSMAX, QS_T_FLOAT);
    if (!code && (k < 1 || n < 1 || k > most || n > most || block < 1 || type < 0 || type > 1 ||
                  !qs_infer_const(x, B, &codes) || !qs_infer_const(x, ABSMAX, &absmax) ||
                  codes.elements != (size_t)((k * n + 1) / 2) ||
                  absmax.elements != (size_t)((k * n - 1) / block + 1)))
        code =
            qs_infer_fail(x, QSIM_E_VALUE,
                          "no constant weights of K %lld, N %lld, block_size %lld, quant_type %lld",
                          (long long)k, (long long)n, (long long)block, (long long)type);
    return code ? code : qs_expand_infer(x, "MatMul", in, 2);
}

static void expand_bnb4(qs_expand *e) {
    const qs_node *node = e->node;
    const qs_value *b = qs_expand_value(e, B), *absmax = qs_expand_value(e, ABSMAX);
    const size_t k = (size_t)attr(node, "K"), n = (size_t)attr(node, "N");
    const size_t block = (size_t)attr(node, "block_size");
    const bool normal = attr(node, "quant_type") == 1;
    if (!b->data || !absmax->data)
        return;
    float *w = qs_arena_alloc(&e->graph->arena, k * n, sizeof(*w)), most;
    if (!w) {
        qs_expand_no_memory(e);
        return;
    }
    const uint8_t *codes = b->data->data;
    for (size_t i = 0; i < k * n && !e->code; i++) {
        if ((i & 0x7fff) == 0x7fff)
            e->code = qs_go_on(e->graph->arena.ctx, e->model, e->error);
        const uint8_t c = i % 2 ? codes[i / 2] & 15 : codes[i / 2] >> 4;
        const float level = normal ? nf4[c] : c & 8 ? -fp4[c & 7] : fp4[c];
        memcpy(&most, (const char *)absmax->data->data + i / block * sizeof(most), sizeof(most));
        w[i % k * n + i / k] = level * most;
    }
    if (e->code)
        return;
    const int64_t dims[2] = {(int64_t)k, (int64_t)n};
    const qs_id a = qs_expand_in(e, A);
    const qs_id made = qs_graph_add_const(e->graph, NULL, QSIM_FLOAT, 2, dims, w, false);
    e->out[0] = made < 0 ? qs_expand_no_memory(e) : qs_expand_two(e, "MatMul", a, made);
}

static const qs_attr_rule bnb4_attrs[] = {{"K", QSIM_ATTR_INT, 1, 0},
                                          {"N", QSIM_ATTR_INT, 1, 0},
                                          {"block_size", QSIM_ATTR_INT, 1, 0},
                                          {"quant_type", QSIM_ATTR_INT, 1, 0},
                                          {"training_mode", QSIM_ATTR_INT, 1, 0}};

QS_OP(ms_bnb4, .domain = QS_DOMAIN_MICROSOFT, .name = "MatMulBnb4", .min_in = 3,
      QS_ATTRS(bnb4_attrs), .traits = QS_PLAIN, .infer = infer_bnb4, .expand = expand_bnb4);
