/* SPDX-License-Identifier: MIT */
/* Element-wise operators, and operators that move elements. */
#include "random_graph.h"

#include "test.h"

static void ints(rg *g, const char *name, size_t count, const int64_t *v) {
    qsim_builder_attr_ints(g->b, name, v, count);
}

/* ---- element by element ---- */

int32_t rg_unary(rg *g, const char *op, int32_t x) {
    rg_node(g, op, rg_in(g, x));
    return rg_made(g, x, g->t[x].rank, g->t[x].dims);
}

int32_t rg_binary(rg *g, const char *op, int32_t x, int32_t y) {
    int64_t dims[5];
    const int32_t rank = g->t[x].rank;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = g->t[x].dims[i] == 1 ? g->t[y].dims[i] : g->t[x].dims[i];
    rg_node(g, op, rg_both(g, x, y));
    int32_t z = rg_announce(g, x, rank, dims);
    int32_t px = g->t[x].power, py = g->t[y].power;
    g->t[z].power = strcmp(op, "Mul") == 0 ? px + py : px > py ? px : py;
    rg_written(g, z);
    return z;
}

/* `op` with a constant on the right, or on the left. */
static int32_t with_constant(rg *g, const char *op, int32_t x, const char *c, bool left) {
    const char *name = rg_in(g, x);
    rg_node(g, op, rg_text(g, "%s,%s", left ? c : name, left ? name : c));
    return rg_made(g, x, g->t[x].rank, g->t[x].dims);
}

static int32_t clip(rg *g, int32_t x, float low, float high, uint32_t which) {
    const char *l = which & 1 ? rg_scalar(g, low) : "", *h = which & 2 ? rg_scalar(g, high) : "";
    rg_node(g, "Clip", rg_text(g, "%s,%s%s%s", rg_in(g, x), l, *h ? "," : "", h));
    return rg_made(g, x, g->t[x].rank, g->t[x].dims);
}

/* x * clip(x + 3, 0, 6) / 6, in one of the forms that exporters write. */
static int32_t hard_swish(rg *g, int32_t x) {
    if (rg_chance(g, 40))
        return g->opset >= 14 ? rg_unary(g, "HardSwish", x) : rg_unary(g, "Relu", x);
    int32_t y;
    if (rg_chance(g, 50)) {
        rg_node(g, "HardSigmoid", rg_in(g, x));
        qsim_builder_attr_float(g->b, "alpha", 1.0f / 6);
        y = rg_made(g, x, g->t[x].rank, g->t[x].dims);
        return rg_binary(g, "Mul", x, y);
    }
    y = with_constant(g, "Add", x, rg_scalar(g, 3), rg_chance(g, 20));
    y = clip(g, y, 0, 6, 3);
    if (rg_chance(g, 50)) {
        y = rg_binary(g, "Mul", x, y);
        return with_constant(g, "Div", y, rg_scalar(g, 6), false);
    }
    y = with_constant(g, "Div", y, rg_scalar(g, 6), false);
    return rg_binary(g, "Mul", x, y);
}

static int32_t gelu(rg *g, int32_t x) {
    if (g->opset >= 20 && rg_chance(g, 60))
        return rg_unary(g, "Gelu", x);
    int32_t y = with_constant(g, "Div", x, rg_scalar(g, 1.41421356f), false);
    y = rg_unary(g, "Erf", y);
    y = with_constant(g, "Add", y, rg_scalar(g, 1), false);
    y = rg_binary(g, "Mul", x, y);
    return with_constant(g, "Mul", y, rg_scalar(g, 0.5f), false);
}

static int32_t prelu(rg *g, int32_t x) {
    const rg_tensor *t = &g->t[x];
    const int64_t dims[] = {t->rank == 4 ? t->dims[1] : t->dims[t->rank - 1], 1, 1};
    const char *slope = rg_floats(g, t->rank == 4 ? 3 : 1, dims, 0.5f, 0.1f);
    return with_constant(g, "PRelu", x, slope, false);
}

int32_t rg_activation(rg *g, int32_t x) {
    const uint32_t kind = rg_draw(g, 100);
    if (kind < 35)
        return rg_unary(g, "Relu", x);
    if (kind < 50)
        return clip(g, x, 0, 6, 3);
    if (kind < 54)
        return clip(g, x, -0.5f, 0.75f, 1 + rg_draw(g, 3));
    if (kind < 58)
        return rg_unary(g, "LeakyRelu", x);
    if (kind < 62)
        return prelu(g, x);
    if (kind < 68)
        return rg_unary(g, rg_chance(g, 50) ? "Sigmoid" : "Tanh", x);
    if (kind < 72)
        return rg_unary(g, rg_chance(g, 50) ? "HardSigmoid" : "Softplus", x);
    if (g->t[x].power > 3)
        return rg_unary(g, "Relu", x);
    if (kind < 82)
        return hard_swish(g, x);
    if (kind < 92)
        return rg_binary(g, "Mul", x, rg_unary(g, "Sigmoid", x));
    return gelu(g, x);
}

static bool same_shape(const rg_tensor *a, const rg_tensor *b) {
    return a->rank == b->rank && memcmp(a->dims, b->dims, (size_t)a->rank * sizeof(*a->dims)) == 0;
}

/* Two activations of one shape, or one of them with axes of 1. */
static bool pair(rg *g) {
    static const char *const ops[] = {"Add", "Add", "Add", "Mul", "Sub", "Max", "Min"};
    const char *op = ops[rg_draw(g, 7)];
    int32_t x = rg_pick(g, 0), y = -1;
    for (int32_t i = g->count - 1; i >= 0 && y < 0; i--) {
        const rg_tensor *a = &g->t[x], *b = &g->t[i];
        bool fits = a->rank == b->rank && (i != x || rg_chance(g, 20));
        for (int32_t k = 0; fits && k < a->rank; k++)
            fits = a->dims[k] == b->dims[k] || (k > 0 && (a->dims[k] == 1 || b->dims[k] == 1));
        if (fits && (same_shape(a, b) || rg_chance(g, 70)))
            y = i;
    }
    if (y < 0 || (strcmp(op, "Mul") == 0 && g->t[x].power + g->t[y].power > 5))
        return false;
    size_t size = 1;
    for (int32_t i = 0; i < g->t[x].rank; i++)
        size *= (size_t)(g->t[x].dims[i] > g->t[y].dims[i] ? g->t[x].dims[i] : g->t[y].dims[i]);
    if (size > 200000)
        return false;
    rg_binary(g, op, x, y);
    return true;
}

static bool scaled(rg *g) {
    static const char *const ops[] = {"Add", "Mul", "Sub", "Mul", "Add", "Div"};
    const uint32_t op = rg_draw(g, 6);
    int32_t x = rg_pick(g, 0);
    const rg_tensor *t = &g->t[x];
    const int64_t channel[] = {1, t->dims[1], 1, 1};
    const float around = op == 5 ? 2 : op & 1 ? 0.7f : 0;
    const char *c = rg_chance(g, 40)   ? rg_scalar(g, around + 0.25f)
                    : t->rank == 4     ? rg_chance(g, 50) ? rg_floats(g, 4, channel, 0.5f, around)
                                                          : rg_floats(g, 3, channel + 1, 0.5f, around)
                        : rg_chance(g, 50) ? rg_floats(g, 1, &t->dims[t->rank - 1], 0.5f, around)
                                       : rg_floats(g, t->rank - 1, t->dims + 1, 0.5f, around);
    with_constant(g, ops[op], x, c, op != 5 && rg_chance(g, 20));
    return true;
}

/* Add or Mul with a constant of one element, or of one for each channel. */
static bool shifted(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0)
        return false;
    const int64_t channel[] = {g->t[x].dims[1], 1, 1};
    const bool scalar = rg_chance(g, 30);
    const char *c = rg_weight(g, scalar ? 1 : 3, scalar ? &channel[1] : channel, 1, 0);
    with_constant(g, rg_chance(g, 50) ? "Add" : "Mul", x, c, rg_chance(g, 20));
    return true;
}

/* A sum, maximum, minimum or mean of three tensors of one shape. */
static bool variadic(rg *g) {
    static const char *const ops[] = {"Sum", "Max", "Min", "Mean"};
    int32_t x = rg_pick(g, 0), y = x;
    for (int32_t i = g->count - 1; i >= 0 && y == x; i--)
        if (i != x && same_shape(&g->t[i], &g->t[x]))
            y = i;
    const char *both = rg_both(g, x, y);
    rg_node(g, ops[rg_draw(g, 4)], rg_text(g, "%s,%s", both, rg_in(g, x)));
    int32_t z = rg_announce(g, x, g->t[x].rank, g->t[x].dims);
    g->t[z].power = g->t[y].power > g->t[x].power ? g->t[y].power : g->t[x].power;
    rg_written(g, z);
    return true;
}

static bool simple(rg *g) {
    static const char *const ops[] = {"Neg", "Abs", "Softplus", "Exp", "Sqrt"};
    const uint32_t op = rg_draw(g, 5);
    int32_t x = rg_pick(g, 0);
    if (op == 3)
        x = clip(g, x, -3, 2, 3);
    if (op == 4)
        x = clip(g, x, 0.25f, 9, 3);
    return rg_unary(g, ops[op], x) >= 0;
}

bool rg_curve(rg *g) {
    const uint32_t kind = rg_draw(g, 100);
    if (kind < 50)
        return rg_activation(g, rg_pick(g, 0)) >= 0;
    return kind < 80   ? pair(g)
           : kind < 90 ? scaled(g)
           : kind < 94 ? shifted(g)
           : kind < 97 ? variadic(g)
                       : simple(g);
}

/* ---- moving ---- */

static bool concat(rg *g) {
    int32_t x = rg_pick(g, 0);
    const int32_t rank = g->t[x].rank;
    const int32_t axis =
        rank > 2 && rg_chance(g, 25) ? 2 + (int32_t)rg_draw(g, (uint32_t)rank - 2) : 1;
    int32_t parts[4], count = 0;
    const int32_t want = 2 + (int32_t)rg_draw(g, 3);
    int64_t dims[5], sum = 0;
    memcpy(dims, g->t[x].dims, sizeof(dims));
    for (int32_t i = g->count - 1; i >= 0 && count < want; i--) {
        bool fits = g->t[i].rank == rank && (i == x || rg_chance(g, 80));
        for (int32_t k = 0; k < rank && fits; k++)
            fits = k == axis || g->t[i].dims[k] == dims[k];
        if (fits)
            parts[count++] = i;
    }
    if (count == 0 || (count == 1 && rg_chance(g, 60)))
        return false;
    if (count == 1 || (count < 4 && rg_chance(g, 12))) {
        parts[count] = parts[rg_draw(g, (uint32_t)count)]; /* the same tensor twice */
        count++;
    }
    const char *names = "";
    int32_t power = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t p = parts[i];
        names = rg_text(g, "%s%s%s", names, i ? "," : "", rg_in(g, p));
        sum += g->t[p].dims[axis];
        power = g->t[p].power > power ? g->t[p].power : power;
    }
    if (sum > 300)
        return false;
    dims[axis] = sum;
    rg_node(g, "Concat", names);
    qsim_builder_attr_int(g->b, "axis", rg_chance(g, 50) ? axis : axis - rank);
    int32_t y = rg_announce(g, x, rank, dims);
    g->t[y].power = power;
    rg_written(g, y);
    return true;
}

static bool split(rg *g) {
    int32_t x = rg_pick(g, 0);
    const int32_t rank = g->t[x].rank;
    const int32_t axis = 1 + (rank > 2 && rg_chance(g, 15));
    const int64_t size = g->t[x].dims[axis];
    if (size < 2)
        return false;
    int64_t dims[5], parts[] = {size / 2, size - size / 2};
    if (rg_chance(g, 40))
        parts[0] = 1 + rg_draw(g, (uint32_t)size - 1);
    parts[1] = size - parts[0];
    memcpy(dims, g->t[x].dims, sizeof(dims));
    const char *sizes = rg_ints(g, 2, parts);
    const char *from = rg_in(g, x);
    int32_t y[2];
    for (int i = 0; i < 2; i++) {
        dims[axis] = parts[i];
        y[i] = rg_announce(g, x, rank, dims);
    }
    rg_many(g, "Split", rg_text(g, "%s,%s", from, sizes),
            rg_text(g, "%s,%s", g->t[y[0]].name, g->t[y[1]].name));
    qsim_builder_attr_int(g->b, "axis", axis);
    rg_written(g, y[0]);
    rg_written(g, y[1]);
    return true;
}

static int32_t slice_of(rg *g, int32_t x, size_t axes, const int64_t *axis, const int64_t *start,
                        const int64_t *step) {
    int64_t dims[5], end[2];
    memcpy(dims, g->t[x].dims, sizeof(dims));
    for (size_t i = 0; i < axes; i++) {
        int64_t size = dims[axis[i]];
        end[i] = step[i] > 0 ? (rg_chance(g, 60) ? INT64_MAX : size) : INT64_MIN + 1;
        dims[axis[i]] = step[i] > 0 ? (size - start[i] + step[i] - 1) / step[i] : start[i] + 1;
    }
    const char *s = rg_ints(g, axes, start), *e = rg_ints(g, axes, end),
               *a = rg_ints(g, axes, axis);
    const char *t = rg_ints(g, axes, step);
    rg_node(g, "Slice", rg_text(g, "%s,%s,%s,%s,%s", rg_in(g, x), s, e, a, t));
    return rg_made(g, x, g->t[x].rank, dims);
}

static bool slice(rg *g) {
    int32_t x = rg_pick(g, 0);
    const int64_t axis = 1 + rg_draw(g, (uint32_t)g->t[x].rank - 1), size = g->t[x].dims[axis];
    int64_t start = rg_draw(g, (uint32_t)size), step = RG_ONE_OF(g, 1, 1, 2, -1, 3);
    slice_of(g, x, 1, &axis, &start, &step);
    return true;
}

/* Four strided slices concatenated, as in the first layer of detectors. */
static bool focus(rg *g) {
    int32_t x = rg_pick(g, 4), part[4];
    static const int64_t axes[] = {2, 3}, steps[] = {2, 2};
    if (x < 0 || g->t[x].dims[2] % 2 || g->t[x].dims[3] % 2 || g->t[x].dims[1] > 33)
        return false;
    for (int i = 0; i < 4; i++)
        part[i] = slice_of(g, x, 2, axes, (int64_t[]){i & 1, i >> 1}, steps);
    int64_t dims[5];
    memcpy(dims, g->t[part[0]].dims, sizeof(dims));
    dims[1] *= 4;
    const char *front = rg_both(g, part[0], part[1]), *rest = rg_both(g, part[2], part[3]);
    rg_node(g, "Concat", rg_text(g, "%s,%s", front, rest));
    qsim_builder_attr_int(g->b, "axis", 1);
    rg_made(g, x, 4, dims);
    return true;
}

static int32_t reshape(rg *g, int32_t x, int32_t rank, const int64_t *dims) {
    int64_t target[5];
    memcpy(target, dims, (size_t)rank * sizeof(*dims));
    target[0] = g->fixed ? g->batch : rg_chance(g, 50) ? 0 : -1;
    rg_node(g, "Reshape", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, (size_t)rank, target)));
    return rg_made(g, x, rank, dims);
}

static int32_t transpose(rg *g, int32_t x, const int64_t *perm) {
    int64_t dims[5];
    const int32_t rank = g->t[x].rank;
    for (int32_t i = 0; i < rank; i++)
        dims[i] = g->t[x].dims[perm[i]];
    rg_node(g, "Transpose", rg_in(g, x));
    ints(g, "perm", (size_t)rank, perm);
    return rg_made(g, x, rank, dims);
}

static bool shuffle(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0)
        return false;
    int64_t d[4];
    memcpy(d, g->t[x].dims, sizeof(d));
    const int64_t groups = d[1] % 2 == 0 ? RG_ONE_OF(g, 2, 2, d[1] / 2) : d[1] % 3 == 0 ? 3 : 1;
    int32_t y = reshape(g, x, 5, (int64_t[]){d[0], groups, d[1] / groups, d[2], d[3]});
    y = transpose(g, y, (int64_t[]){0, 2, 1, 3, 4});
    reshape(g, y, 4, d);
    return true;
}

static bool reform(rg *g) {
    int32_t x = rg_pick(g, 0);
    int64_t d[5];
    memcpy(d, g->t[x].dims, sizeof(d));
    switch (g->t[x].rank) {
    case 4:
        switch (rg_draw(g, 5)) {
        case 0:
            rg_node(g, "Flatten", rg_in(g, x));
            rg_made(g, x, 2, (int64_t[]){d[0], d[1] * d[2] * d[3]});
            break;
        case 1: reshape(g, x, 3, (int64_t[]){d[0], d[1], d[2] * d[3]}); break;
        case 2: transpose(g, x, (int64_t[]){0, 2, 3, 1}); break;
        case 3: transpose(g, x, (int64_t[]){0, 3, 1, 2}); break;
        default:
            x = reshape(g, x, 3, (int64_t[]){d[0], d[1], d[2] * d[3]});
            transpose(g, x, (int64_t[]){0, 2, 1});
        }
        return true;
    case 3:
        if (rg_chance(g, 40)) {
            transpose(g, x, (int64_t[]){0, 2, 1});
        } else if (rg_chance(g, 50)) {
            reshape(g, x, 2, (int64_t[]){d[0], d[1] * d[2]});
        } else {
            const bool third = rg_chance(g, 50);
            const char *at = rg_ints(g, 1, (int64_t[]){third ? 3 : 2});
            rg_node(g, "Unsqueeze", rg_text(g, "%s,%s", rg_in(g, x), at));
            rg_made(g, x, 4, (int64_t[]){d[0], d[1], third ? d[2] : 1, third ? 1 : d[2]});
        }
        return true;
    case 2:
        if (d[1] % 4 == 0 && rg_chance(g, 50))
            reshape(g, x, 4, (int64_t[]){d[0], d[1] / 4, 2, 2});
        else
            reshape(g, x, 4, (int64_t[]){d[0], d[1], 1, 1});
        return true;
    default: return false;
    }
}

static bool resize(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0 || g->t[x].dims[2] * g->t[x].dims[3] > 200)
        return false;
    int64_t d[4];
    memcpy(d, g->t[x].dims, sizeof(d));
    const char *reads = rg_in(g, x);
    const bool linear = rg_chance(g, 45), align = linear && rg_chance(g, 30);
    d[2] *= 2;
    d[3] *= 2;
    if (rg_chance(g, 60) || !g->fixed) {
        static const float twice[] = {1, 1, 2, 2};
        const char *scales = rg_text(g, "c%d", g->constants++);
        qsim_builder_constant_as(g->b, scales, "float[4]", twice);
        rg_node(g, "Resize", rg_text(g, "%s,,%s", reads, scales));
    } else {
        d[2] = 1 + rg_draw(g, 12);
        d[3] = 1 + rg_draw(g, 12);
        rg_node(g, "Resize", rg_text(g, "%s,,,%s", reads, rg_ints(g, 4, d)));
    }
    qsim_builder_attr_string(g->b, "mode", linear ? "linear" : "nearest");
    qsim_builder_attr_string(g->b, "coordinate_transformation_mode",
                             align    ? "align_corners"
                             : linear ? "half_pixel"
                                      : "asymmetric");
    if (!linear)
        qsim_builder_attr_string(g->b, "nearest_mode", "floor");
    rg_made(g, x, 4, d);
    return true;
}

static bool pad(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0)
        return false;
    int64_t d[4], pads[8] = {0};
    static const char *const modes[] = {"constant", "constant", "reflect", "edge"};
    const uint32_t mode = rg_draw(g, 4);
    memcpy(d, g->t[x].dims, sizeof(d));
    for (int i = 2; i < 4; i++) {
        pads[i] = rg_draw(g, 3);
        pads[4 + i] = rg_draw(g, 3);
        if (mode == 2 && (d[i] <= pads[i] || d[i] <= pads[4 + i]))
            return false;
        d[i] += pads[i] + pads[4 + i];
    }
    const char *sizes = rg_ints(g, 8, pads);
    const char *value = mode == 0 ? rg_scalar(g, rg_chance(g, 60) ? 0 : 0.5f) : "";
    rg_node(g, "Pad", rg_text(g, "%s,%s%s%s", rg_in(g, x), sizes, *value ? "," : "", value));
    qsim_builder_attr_string(g->b, "mode", modes[mode]);
    rg_made(g, x, 4, d);
    return true;
}

static bool gather(rg *g) {
    int32_t x = rg_pick(g, 0);
    int64_t dims[5], index[8];
    const size_t count = 1 + rg_draw(g, 8);
    memcpy(dims, g->t[x].dims, sizeof(dims));
    for (size_t i = 0; i < count; i++)
        index[i] = rg_draw(g, (uint32_t)dims[1]);
    dims[1] = (int64_t)count;
    rg_node(g, "Gather", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, count, index)));
    qsim_builder_attr_int(g->b, "axis", 1);
    rg_made(g, x, g->t[x].rank, dims);
    return true;
}

static bool squeeze(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0 || g->t[x].dims[2] != 1 || g->t[x].dims[3] != 1)
        return rg_unary(g, rg_chance(g, 60) ? "Identity" : "Dropout", rg_pick(g, 0)) >= 0;
    rg_node(g, "Squeeze", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 2, (int64_t[]){2, 3})));
    rg_made(g, x, 2, g->t[x].dims);
    return true;
}

/* A tensor repeated along an axis. */
static bool tile(rg *g) {
    int32_t x = rg_pick(g, 0);
    const int32_t rank = g->t[x].rank, axis = 1 + (int32_t)rg_draw(g, (uint32_t)rank - 1);
    int64_t dims[5], times[] = {1, 1, 1, 1, 1};
    memcpy(dims, g->t[x].dims, sizeof(dims));
    if (dims[axis] > 32)
        return false;
    times[axis] = 2;
    dims[axis] *= 2;
    rg_node(g, "Tile", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, (size_t)rank, times)));
    rg_made(g, x, rank, dims);
    return true;
}

/* One pixel, repeated over the image. */
static bool expand(rg *g) {
    int32_t x = rg_pick(g, 4);
    if (x < 0 || g->t[x].dims[2] != 1 || g->t[x].dims[3] != 1)
        return false;
    const int64_t size = RG_ONE_OF(g, 2, 5, 7);
    const int64_t dims[] = {g->t[x].dims[0], g->t[x].dims[1], size, size};
    const int64_t target[] = {1, rg_chance(g, 50) ? 1 : dims[1], size, size};
    rg_node(g, "Expand", rg_text(g, "%s,%s", rg_in(g, x), rg_ints(g, 4, target)));
    rg_made(g, x, 4, dims);
    return true;
}

bool rg_move(rg *g) {
    const uint32_t kind = rg_draw(g, 100);
    return kind < 30   ? concat(g)
           : kind < 42 ? split(g)
           : kind < 50 ? slice(g)
           : kind < 53 ? focus(g)
           : kind < 61 ? shuffle(g)
           : kind < 75 ? reform(g)
           : kind < 83 ? resize(g)
           : kind < 89 ? pad(g)
           : kind < 92 ? gather(g)
           : kind < 94 ? tile(g)
           : kind < 96 ? expand(g)
                       : squeeze(g);
}
