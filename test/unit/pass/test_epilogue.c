/* SPDX-License-Identifier: MIT */
/*
 * Operators after float convolutions: sums and curves run on each band of the results, with the
 * bits of the separate operators, for any number of threads; the tests count such steps. Factors of
 * channels and a sum become one step.
 */
#include "net.h"

#define C    64
#define MOST (C * 400)

static void conv(net *n, const char *x, const char *y, int64_t groups, int64_t k) {
    const int64_t dims[] = {C, C / groups, k, k}, bias[] = {C};
    const int64_t pads[] = {k / 2, k / 2, k / 2, k / 2};
    char w[24], b[24], in[80];
    snprintf(w, sizeof(w), "%s_w", y);
    snprintf(b, sizeof(b), "%s_b", y);
    net_random(n, w, 4, dims, (uint64_t)y[0], 0.1f);
    net_random(n, b, 1, bias, (uint64_t)y[0] + 1, 0.5f);
    snprintf(in, sizeof(in), "%s,%s,%s", x, w, b);
    const qs_id id = net_node(n, "", "Conv", in, y);
    net_ints(n, id, "pads", 4, pads);
    CHECK_INT(qs_node_set_int(n->g, id, "group", groups), 0);
}

typedef struct image {
    int64_t dims[4];
    float x[MOST];
} image;

static void begin(net *n, qsim_ctx *ctx, image *x, int64_t h, int64_t w) {
    uint64_t state = 5;
    const int64_t dims[] = {2, C, h, w};
    memcpy(x->dims, dims, sizeof(dims));
    CHECK(2 * C * h * w <= MOST);
    for (size_t i = 0; i < MOST; i++)
        x->x[i] = (float)(test_random(&state) >> 8) * (4.0f / 16777216.0f) - 2;
    net_begin(n, ctx, 14);
    net_input(n, "x", QSIM_FLOAT, 4, dims);
}

/* Runs at a level; returns how many steps run `kernel`. */
static int run(net *n, int32_t level, image *x, const char *kernel, float *y) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int found = 0;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, x->dims, x->x);
    qsim_tensor out = {.data = y, .bytes = MOST * sizeof(float)};
    NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, &in, 1, &out, 1, &n->error));
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), 0);
        found += strcmp(info.kernel, kernel) == 0;
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return found;
}

/* Compares the levels' bits; `before` steps of `kernel` at the lowest, `count` at the highest. */
static void same(net *n, image *x, const char *kernel, int count, int before) {
    static float plain[MOST], best[MOST];
    net_output(n, "y");
    NET_OK(n, net_end(n));
    memset(plain, 1, sizeof(plain));
    memset(best, 1, sizeof(best));
    CHECK_INT(run(n, QSIM_LEVEL_DISABLE, x, kernel, plain), before);
    CHECK_INT(run(n, QSIM_LEVEL_ALL, x, kernel, best), count);
    CHECK(memcmp(plain, best, sizeof(best)) == 0);
    net_free(n);
}

/* Sums on either side, with a Relu and without; the last sum's operand is read twice and stays. */
static void sums(qsim_ctx *ctx, image *x, int64_t h, int64_t w, int64_t groups, int64_t k) {
    net n;
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", 1, 1);
    conv(&n, "a", "b", groups, k);
    net_node(&n, "", "Add", "b,a", "s");
    net_node(&n, "", "Relu", "s", "t");
    conv(&n, "t", "c", groups, k);
    net_node(&n, "", "Add", "t,c", "u");
    conv(&n, "u", "d", groups, k);
    net_node(&n, "", "Relu", "d", "e");
    net_node(&n, "", "Add", "d,e", "y");
    same(&n, x, "conv add", 2, 0);
}

static void curves(qsim_ctx *ctx, image *x, int64_t h, int64_t w, int64_t k) {
    net n;
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", 1, k);
    net_node(&n, "", "Sigmoid", "a", "as");
    net_node(&n, "", "Mul", "a,as", "am");
    conv(&n, "am", "b", 2, k);
    net_node(&n, "", "HardSwish", "b", "bh");
    conv(&n, "bh", "c", 1, 1);
    net_node(&n, "", "Sigmoid", "c", "y");
    same(&n, x, "conv curve", 3, 0);
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", C, 3);
    net_node(&n, "", "HardSwish", "a", "y");
    same(&n, x, "depthwise curve", 1, 0);
    begin(&n, ctx, x, h, w); /* a curve, a sum, a curve */
    conv(&n, "x", "a", 1, k);
    net_node(&n, "", "HardSwish", "a", "ah");
    conv(&n, "ah", "b", 1, k);
    net_node(&n, "", "HardSwish", "b", "bh");
    net_node(&n, "", "Add", "bh,ah", "s");
    net_node(&n, "", "Sigmoid", "s", "y");
    same(&n, x, "conv add", 1, 0);
}

/* Each operator with a curve, with parameters of its own, ends the convolution before it. */
static void every_curve(qsim_ctx *ctx, image *x) {
    int found = 0;
    for (size_t i = 0; i < qs_op_count(); i++) {
        const qs_op *op = qs_op_at(i);
        const bool bounds = qs_same(op->name, "Relu"); /* Relu is the convolution's own bound */
        net n;
        if (!qs_op_more_of(op)->curve || op->domain)
            continue;
        begin(&n, ctx, x, 9, 11);
        CHECK_INT(qs_graph_set_import(n.g, "", qs_op_newest_opset()), 0);
        conv(&n, "x", "a", 1, 3);
        const qs_id id = net_node(&n, "", op->name, "a", "b");
        for (int k = 0; k < op->attr_count; k++)
            if (qs_same(op->attrs[k].name, "alpha") || qs_same(op->attrs[k].name, "beta"))
                CHECK_INT(qs_node_set_float(n.g, id, op->attrs[k].name, 0.375f), 0);
        conv(&n, "b", "y", 1, 1);
        same(&n, x, "conv curve", !bounds, 0);
        found++;
    }
    CHECK(found >= 15); /* a new operator needs no change here */
}

/* A pool of x with the shape of an image: 3x3, the same size. */
static void pool(net *n, const char *op, const char *x, const char *y) {
    const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
    const qs_id id = net_node(n, "", op, x, y);
    net_ints(n, id, "kernel_shape", 2, kernel);
    net_ints(n, id, "pads", 4, pads);
}

/* Channels joined: of plain, depthwise, summed and curved convolutions; of pools; then one that
 * must stay. */
static void joined(qsim_ctx *ctx, image *x, int64_t h, int64_t w) {
    net n;
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", 1, 3);
    net_node(&n, "", "Relu", "a", "ar");
    conv(&n, "ar", "b", 2, 1);
    net_node(&n, "", "HardSwish", "b", "bh");
    conv(&n, "ar", "c", C, 3);
    conv(&n, "ar", "d", 1, 3);
    net_node(&n, "", "Add", "d,ar", "e");
    CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Concat", "e,c,bh", "f"), "axis", 1), 0);
    net_node(&n, "", "Split", "f", "g,i,j");
    CHECK_INT(qs_node_set_int(n.g, n.g->values[net_value(&n, "g")].producer, "axis", 1), 0);
    net_node(&n, "", "Mul", "g,i", "k");
    net_node(&n, "", "Add", "k,j", "y");
    same(&n, x, "concat", 0, 1);
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", 1, 3);
    pool(&n, "MaxPool", "a", "b");
    conv(&n, "a", "c", 1, 1);
    pool(&n, "AveragePool", "a", "d");
    CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Concat", "b,c,d", "f"), "axis", 1), 0);
    net_node(&n, "", "Split", "f", "g,i,j");
    CHECK_INT(qs_node_set_int(n.g, n.g->values[net_value(&n, "g")].producer, "axis", 1), 0);
    net_node(&n, "", "Mul", "g,i", "k");
    net_node(&n, "", "Add", "k,j", "y");
    same(&n, x, "concat", 0, 1);
    begin(&n, ctx, x, h, w); /* one operand is read twice */
    conv(&n, "x", "a", 1, 1);
    conv(&n, "a", "b", 1, 3);
    CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Concat", "a,b", "f"), "axis", 1), 0);
    net_node(&n, "", "Split", "f", "g,i");
    CHECK_INT(qs_node_set_int(n.g, n.g->values[net_value(&n, "g")].producer, "axis", 1), 0);
    net_node(&n, "", "Sub", "g,i", "y");
    same(&n, x, "concat", 1, 1);
}

/* Channels of two tensors interleaved, then split after `first` of them. */
static void shuffled(qsim_ctx *ctx, image *x, int64_t h, int64_t w, int64_t first) {
    net n;
    const int64_t apart[] = {2, 2, C, h, w}, shape[] = {2, 2 * C, h, w}, perm[] = {0, 2, 1, 3, 4};
    const int64_t parts[] = {first, 2 * C - first}, five = 5, four = 4, two = 2;
    begin(&n, ctx, x, h, w);
    conv(&n, "x", "a", 1, 1);
    conv(&n, "x", "b", C, 3);
    CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Concat", "a,b", "c"), "axis", 1), 0);
    net_const(&n, "apart", QSIM_INT64, 1, &five, apart);
    net_const(&n, "shape", QSIM_INT64, 1, &four, shape);
    net_const(&n, "parts", QSIM_INT64, 1, &two, parts);
    net_node(&n, "", "Reshape", "c,apart", "d");
    net_ints(&n, net_node(&n, "", "Transpose", "d", "e"), "perm", 5, perm);
    net_node(&n, "", "Reshape", "e,shape", "f");
    const qs_id split = net_node(&n, "", "Split", "f,parts", "g,i");
    CHECK_INT(qs_node_set_int(n.g, split, "axis", 1), 0);
    if (first == C) {
        net_node(&n, "", "Mul", "g,i", "y");
    } else {
        net_node(&n, "", "Relu", "g", "j");
        CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Concat", "i,j", "y"), "axis", 1), 0);
    }
    same(&n, x, "shuffle", 1, 0);
}

/* Squeeze-and-excite followed by a sum with the image itself or another, on either side. */
static void excited(qsim_ctx *ctx, image *x, int64_t h, int64_t w) {
    net n;
    for (int k = 0; k < 8; k++) {
        char product[8], sum[16];
        begin(&n, ctx, x, h, w);
        conv(&n, "x", "a", 1, 1);
        net_node(&n, "", "GlobalAveragePool", "a", "p");
        conv(&n, "p", "f", 1, 1);
        net_node(&n, "", "Sigmoid", "f", "g");
        snprintf(product, sizeof(product), k & 1 ? "g,a" : "a,g");
        net_node(&n, "", "Mul", product, "m");
        snprintf(sum, sizeof(sum), k & 2 ? "m,%s" : "%s,m", k & 4 ? "a" : "x");
        net_node(&n, "", "Add", sum, "s");
        net_node(&n, "", "Relu", "s", "y");
        same(&n, x, "mul add", 1, 0);
    }
    begin(&n, ctx, x, h, w); /* one factor for all images */
    net_random(&n, "g", NET_DIMS(1, C, 1, 1), 3, 1);
    conv(&n, "x", "a", C, 3);
    net_node(&n, "", "Relu", "a", "b");
    net_node(&n, "", "Mul", "b,g", "m");
    net_node(&n, "", "Add", "x,m", "y");
    same(&n, x, "mul add", 1, 0);
    begin(&n, ctx, x, h, w); /* a product that is read twice */
    conv(&n, "x", "a", C, 3);
    net_node(&n, "", "GlobalAveragePool", "a", "g");
    net_node(&n, "", "Mul", "a,g", "m");
    net_node(&n, "", "Add", "a,m", "s");
    net_node(&n, "", "Mul", "s,m", "y");
    same(&n, x, "mul add", 0, 0);
}

int main(void) {
    static image x;
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = threads};
        qsim_ctx *ctx = NULL;
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
        for (int64_t groups = 1; groups <= 2; groups++) {
            sums(ctx, &x, 9, 11, groups, 1);
            sums(ctx, &x, 9, 11, groups, 3);
            sums(ctx, &x, 1, 190, groups, 3); /* one line: threads share its channels */
        }
        joined(ctx, &x, 9, 11);
        joined(ctx, &x, 1, 190);
        excited(ctx, &x, 9, 11);
        excited(ctx, &x, 1, 1);
        curves(ctx, &x, 9, 11, 3);
        every_curve(ctx, &x);
        curves(ctx, &x, 1, 190, 1);
        shuffled(ctx, &x, 9, 11, C);
        shuffled(ctx, &x, 9, 11, 37);
        qsim_ctx_free(ctx);
    }
    return test_done();
}
