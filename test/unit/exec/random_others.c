/* SPDX-License-Identifier: MIT */
/* Operators that networks chain less often. None of them jumps: levels may round differently. */
#include "random_graph.h"

#include "test.h"

#include <math.h>

static void ints(rg *g, const char *name, size_t count, const int64_t *v) {
    qsim_builder_attr_ints(g->b, name, v, count);
}

static bool same_sizes(rg *g, int32_t x) {
    return rg_made(g, x, g->t[x].rank, g->t[x].dims) >= 0;
}

/* An axis that counts no samples. */
static int64_t inner_axis(rg *g, int32_t x) {
    return 1 + rg_draw(g, (uint32_t)g->t[x].rank - 1);
}

static bool curve(rg *g) {
    static const struct {
        const char *op;
        int32_t since;
    } ops[] = {{"Elu", 6}, {"Selu", 6},  {"Celu", 12}, {"Softsign", 1}, {"Sin", 7},
               {"Cos", 7}, {"Atan", 7},  {"Tan", 7},   {"Asinh", 9},    {"Sinh", 9},
               {"Erf", 9}, {"Mish", 18}, {"Gelu", 20}, {"Log", 6},      {"Reciprocal", 6}};
    const uint32_t k = rg_draw(g, sizeof(ops) / sizeof(*ops));
    int32_t x = rg_pick(g, 0);
    if (g->opset < ops[k].since)
        return false;
    if (k >= 13 || k == 7 || k == 9) { /* bounded away from their poles */
        const char *low = rg_scalar(g, k >= 13 ? 0.25f : -1.25f), *high = rg_scalar(g, 1.25f);
        rg_node(g, "Clip", rg_text(g, "%s,%s,%s", rg_in(g, x), low, high));
        x = rg_made(g, x, g->t[x].rank, g->t[x].dims);
        /* As it is: a pair may round the bound to 0, the pole of Log and Reciprocal. */
        g->t[x].used++;
        rg_node(g, ops[k].op, g->t[x].name);
        return rg_made(g, x, g->t[x].rank, g->t[x].dims) >= 0;
    }
    return rg_unary(g, ops[k].op, x) >= 0;
}

/* Operators along one axis. */
static bool along(rg *g) {
    static const char *const ops[] = {"LogSoftmax", "LpNormalization", "CumSum"};
    const uint32_t k = rg_draw(g, 3);
    const int32_t x = rg_pick(g, 0);
    const int64_t axis = inner_axis(g, x);
    const char *from = rg_in(g, x);
    if (k == 2) {
        if (g->t[x].dims[axis] > 16)
            return false;
        rg_node(g, ops[k], rg_text(g, "%s,%s", from, rg_index(g, axis)));
        qsim_builder_attr_int(g->b, "exclusive", rg_draw(g, 2));
        qsim_builder_attr_int(g->b, "reverse", rg_draw(g, 2));
    } else {
        rg_node(g, ops[k], from);
        qsim_builder_attr_int(g->b, "axis", axis);
    }
    return same_sizes(g, x);
}

static bool top_k(rg *g) {
    const int32_t x = rg_pick(g, 0);
    const int64_t axis = inner_axis(g, x);
    const int64_t k = 1 + rg_draw(g, (uint32_t)g->t[x].dims[axis]);
    int64_t dims[5];
    memcpy(dims, g->t[x].dims, sizeof(dims));
    dims[axis] = k;
    const char *inputs = rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 1, &k));
    rg_many(g, "TopK", inputs, rg_text(g, "t%d,i%d", g->count, g->count));
    qsim_builder_attr_int(g->b, "axis", axis);
    qsim_builder_attr_int(g->b, "largest", rg_draw(g, 2));
    return rg_made(g, x, g->t[x].rank, dims) >= 0;
}

static bool reduced(rg *g) {
    static const char *const ops[] = {"ReduceL1", "ReduceL2", "ReduceLogSumExp"};
    const uint32_t op = rg_draw(g, 3);
    const int32_t x = rg_pick(g, 0);
    const int64_t axis = inner_axis(g, x);
    int64_t dims[5];
    memcpy(dims, g->t[x].dims, sizeof(dims));
    if (dims[axis] > 20)
        return false;
    dims[axis] = 1;
    if (g->opset < 18) {
        rg_node(g, ops[op], rg_in(g, x));
        ints(g, "axes", 1, &axis);
    } else {
        rg_node(g, ops[op], rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 1, &axis)));
    }
    return rg_made(g, x, g->t[x].rank, dims) >= 0;
}

/* Normalizations of images. */
static bool image_norm(rg *g) {
    const int32_t x = rg_pick(g, 4);
    if (x < 0)
        return false;
    const int64_t channels = g->t[x].dims[1];
    const uint32_t kind = rg_draw(g, g->opset >= 21 ? 4 : 3);
    const char *from = rg_in(g, x), *scale = "", *shift = "";
    if (kind != 1 && kind != 2) {
        scale = rg_floats(g, 1, &channels, 0.5f, 1);
        shift = rg_floats(g, 1, &channels, 0.2f, 0);
    }
    if (kind == 0) {
        rg_node(g, "InstanceNormalization", rg_text(g, "%s,%s,%s", from, scale, shift));
        qsim_builder_attr_float(g->b, "epsilon", 0.05f);
    } else if (kind == 1) {
        rg_node(g, "LRN", from);
        qsim_builder_attr_int(g->b, "size", RG_ONE_OF(g, 1, 3, 5));
        qsim_builder_attr_float(g->b, "alpha", 0.1f);
    } else if (kind == 2) {
        if (g->t[x].dims[2] * g->t[x].dims[3] < 4)
            return false;
        /* Its mean is 0 but for rounding, which has no scale of its own: a shift follows. */
        shift = rg_floats(g, 3, (int64_t[]){channels, 1, 1}, 0.2f, 0.5f);
        const char *normal = rg_text(g, "normal%d", g->nodes);
        rg_many(g, "MeanVarianceNormalization", from, normal);
        ints(g, "axes", 2, (int64_t[]){2, 3});
        rg_node(g, "Add", rg_text(g, "%s,%s", normal, shift));
    } else {
        rg_node(g, "GroupNormalization", rg_text(g, "%s,%s,%s", from, scale, shift));
        qsim_builder_attr_int(g->b, "num_groups", channels % 2 ? 1 : 2);
        qsim_builder_attr_float(g->b, "epsilon", 0.05f);
    }
    return same_sizes(g, x);
}

static bool image_pool(rg *g) {
    static const char *const ops[] = {"GlobalMaxPool", "GlobalLpPool", "LpPool"};
    const int32_t x = rg_pick(g, 4);
    const uint32_t k = rg_draw(g, 3);
    if (x < 0 || g->t[x].dims[2] < 2 || g->t[x].dims[3] < 2 ||
        g->t[x].dims[2] * g->t[x].dims[3] > 200)
        return false;
    const int64_t *d = g->t[x].dims, global[] = {d[0], d[1], 1, 1};
    const int64_t windows[] = {d[0], d[1], d[2] - 1, d[3] - 1};
    rg_node(g, ops[k], rg_in(g, x));
    if (k == 2)
        ints(g, "kernel_shape", 2, (int64_t[]){2, 2});
    return rg_made(g, x, 4, k == 2 ? windows : global) >= 0;
}

static bool blocks(rg *g) {
    const int32_t x = rg_pick(g, 4);
    const bool apart = rg_chance(g, 50);
    if (x < 0)
        return false;
    const int64_t *d = g->t[x].dims;
    if (apart ? d[1] % 4 != 0 : d[2] % 2 != 0 || d[3] % 2 != 0 || d[1] > 64)
        return false;
    const int64_t wide[] = {d[0], d[1] / 4, d[2] * 2, d[3] * 2};
    const int64_t deep[] = {d[0], d[1] * 4, d[2] / 2, d[3] / 2};
    rg_node(g, apart ? "DepthToSpace" : "SpaceToDepth", rg_in(g, x));
    qsim_builder_attr_int(g->b, "blocksize", 2);
    if (apart && rg_chance(g, 50))
        qsim_builder_attr_string(g->b, "mode", "CRD");
    return rg_made(g, x, 4, apart ? wide : deep) >= 0;
}

static bool triangle(rg *g) {
    const int32_t x = rg_pick(g, rg_chance(g, 50) ? 3 : 4);
    if (x < 0 || g->opset < 14)
        return false;
    rg_node(g, "Trilu", rg_text(g, "%s,%s", rg_in(g, x), rg_index(g, (int64_t)rg_draw(g, 5) - 2)));
    qsim_builder_attr_int(g->b, "upper", rg_draw(g, 2));
    return same_sizes(g, x);
}

/* The larger of two values, chosen by a comparison: a continuous function. */
static bool chosen(rg *g) {
    const int32_t x = rg_pick(g, 0), at = g->nodes;
    const char *least = rg_scalar(g, 0.125f);
    rg_many(g, rg_chance(g, 50) ? "Greater" : "GreaterOrEqual",
            rg_text(g, "%s,%s", g->t[x].name, least), rg_text(g, "larger%d", at));
    rg_node(g, "Where", rg_text(g, "larger%d,%s,%s", at, g->t[x].name, least));
    return same_sizes(g, x);
}

static bool einsum(rg *g) {
    const int32_t x = rg_pick(g, rg_chance(g, 50) ? 3 : 4);
    if (x < 0)
        return false;
    const rg_tensor *t = &g->t[x];
    const int64_t from = t->dims[t->rank == 3 ? 2 : 1], to = RG_ONE_OF(g, 1, 4, 9);
    int64_t dims[5];
    memcpy(dims, t->dims, sizeof(dims));
    dims[t->rank == 3 ? 2 : 1] = to;
    if (from > 64)
        return false;
    const char *w = rg_floats(g, 2, (int64_t[]){to, from}, 1.7f / sqrtf((float)from), 0);
    rg_node(g, "Einsum", rg_text(g, "%s,%s", rg_in(g, x), w));
    qsim_builder_attr_string(g->b, "equation", t->rank == 3 ? "btd,ed->bte" : "bchw,dc->bdhw");
    return rg_made(g, x, g->t[x].rank, dims) >= 0;
}

/* Operators of opset 23: one norm, and attention of one head. */
static bool newest(rg *g) {
    const int32_t x = rg_pick(g, 3);
    if (x < 0 || g->opset < 23 || g->t[x].dims[1] > 40)
        return false;
    const int64_t last = g->t[x].dims[2];
    const char *from = rg_in(g, x);
    if (rg_chance(g, 50)) {
        rg_node(g, "RMSNormalization", rg_text(g, "%s,%s", from, rg_floats(g, 1, &last, 0.5f, 1)));
        qsim_builder_attr_float(g->b, "epsilon", 0.05f);
    } else {
        rg_node(g, "Attention", rg_text(g, "%s,%s,%s", from, from, from));
        qsim_builder_attr_int(g->b, "q_num_heads", 1);
        qsim_builder_attr_int(g->b, "kv_num_heads", 1);
        qsim_builder_attr_int(g->b, "is_causal", rg_draw(g, 2));
    }
    return same_sizes(g, x);
}

bool rg_other(rg *g) {
    const uint32_t kind = rg_draw(g, 100);
    return kind < 25   ? curve(g)
           : kind < 40 ? along(g)
           : kind < 47 ? top_k(g)
           : kind < 55 ? reduced(g)
           : kind < 65 ? image_norm(g)
           : kind < 72 ? image_pool(g)
           : kind < 80 ? blocks(g)
           : kind < 84 ? triangle(g)
           : kind < 90 ? chosen(g)
           : kind < 96 ? einsum(g)
                       : newest(g);
}
