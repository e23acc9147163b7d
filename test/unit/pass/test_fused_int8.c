/* SPDX-License-Identifier: MIT */
/*
 * Operators between integer convolutions: each network has the same bits at every level, and at
 * the highest level the remaining steps are counted.
 */
#include "net.h"

#define H    9
#define W    7
#define C    12
#define SIZE (C * H * W)

/* "t" -> "t_q" quantized -> "t_d" dequantized, by the scale and zero point of `as`. */
static void pair(net *n, const char *t, const char *as) {
    char in[96], out[48], back[96];
    snprintf(in, sizeof(in), "%s,%s_s,%s_z", t, as, as);
    snprintf(out, sizeof(out), "%s_q", t);
    snprintf(back, sizeof(back), "%s_q,%s_s,%s_z", t, as, as);
    net_node(n, "", "QuantizeLinear", in, out);
    snprintf(out, sizeof(out), "%s_d", t);
    net_node(n, "", "DequantizeLinear", back, out);
}

static void scale(net *n, const char *t, float s, int z) {
    char name[48];
    snprintf(name, sizeof(name), "%s_s", t);
    net_float(n, name, s);
    snprintf(name, sizeof(name), "%s_z", t);
    net_byte(n, name, QSIM_UINT8, z);
}

/* w_d: s8 weights [outs, ins, k, k], dequantized. */
static void weights(net *n, const char *name, int64_t outs, int64_t ins, int64_t k) {
    int8_t w[2 * C * C * 9];
    char t[48], in[96], out[48];
    const int64_t dims[] = {outs, ins, k, k};
    uint64_t seed = (uint64_t)name[1];
    for (int64_t i = 0; i < outs * ins * k * k; i++)
        w[i] = (int8_t)(test_random(&seed) >> 16);
    snprintf(t, sizeof(t), "%s_w", name);
    net_const(n, t, QSIM_INT8, 4, dims, w);
    snprintf(t, sizeof(t), "%s_ws", name);
    net_float(n, t, 0.004f);
    snprintf(t, sizeof(t), "%s_wz", name);
    net_byte(n, t, QSIM_INT8, 0);
    snprintf(in, sizeof(in), "%s_w,%s_ws,%s_wz", name, name, name);
    snprintf(out, sizeof(out), "%s_wd", name);
    net_node(n, "", "DequantizeLinear", in, out);
}

/* y = quantized convolution `name` of x_d: y_q, y_d. */
static void grouped(net *n, const char *x, const char *y, int64_t outs, int64_t ins, int64_t k,
                    int64_t groups) {
    const int64_t pads[] = {k / 2, k / 2, k / 2, k / 2};
    char in[96];
    weights(n, y, outs, ins / groups, k);
    snprintf(in, sizeof(in), "%s_d,%s_wd", x, y);
    const qs_id id = net_node(n, "", "Conv", in, y);
    net_ints(n, id, "pads", 4, pads);
    CHECK_INT(qs_node_set_int(n->g, id, "group", groups), 0);
    pair(n, y, y);
}

static void conv(net *n, const char *x, const char *y, int64_t outs, int64_t ins, int64_t k) {
    grouped(n, x, y, outs, ins, k, 1);
}

/* An image of these sizes, -1: not known. */
static void begin_sized(net *n, qsim_ctx *ctx, int64_t h, int64_t w) {
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(1, C, h, w));
    scale(n, "x", 0.02f, 100);
    pair(n, "x", "x");
}

static void begin(net *n, qsim_ctx *ctx) {
    begin_sized(n, ctx, H, W);
}

/* Runs at a level; returns how many steps run `kernel` (NULL: all steps). */
static int run_of(net *n, int32_t level, const char *kernel, const qsim_tensor *in, float *y,
                  size_t bytes) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int found = 0;
    qsim_tensor out = {.data = y, .bytes = bytes};
    NET_OK(n, qs_session_compile(n->model, &o, 0, &s, &n->error));
    NET_OK(n, qsim_run_create(s, &r, &n->error));
    NET_OK(n, qsim_run_execute(r, in, 1, &out, 1, &n->error));
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info info = {.struct_size = sizeof(info)};
        CHECK_INT(qsim_run_step(r, i, &info), 0);
        found += !kernel || strcmp(info.kernel, kernel) == 0;
    }
    qsim_run_free(r);
    qsim_session_free(s);
    return found;
}

static int run(net *n, int32_t level, const char *kernel, float *y, size_t bytes) {
    static float x[SIZE];
    const int64_t dims[] = {1, C, H, W};
    for (size_t i = 0; i < SIZE; i++)
        x[i] = (float)((int)(i * 7919 % 257) - 100) * 0.02f;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 4, dims, x);
    return run_of(n, level, kernel, &in, y, bytes);
}

/* Compares the bits of both levels; returns the number of a kernel's steps at the higher level. */
static int same(net *n, const char *kernel) {
    static float plain[4 * SIZE], best[4 * SIZE];
    memset(plain, 1, sizeof(plain));
    memset(best, 1, sizeof(best));
    run(n, QSIM_LEVEL_DISABLE, NULL, plain, sizeof(plain));
    int found = run(n, QSIM_LEVEL_ALL, kernel, best, sizeof(best));
    CHECK(memcmp(plain, best, sizeof(best)) == 0);
    return found;
}

/* A channel shuffle and a Dropout whose mask has a name, quantized between all their nodes. */
static void shuffle(void) {
    net n;
    const int64_t apart[] = {1, 2, C / 2, H, W}, shape[] = {1, C, H, W}, five = 5, four = 4;
    const int64_t perm[] = {0, 2, 1, 3, 4};
    begin(&n, NULL);
    scale(&n, "a", 0.05f, 120);
    scale(&n, "b", 0.1f, 120);
    conv(&n, "x", "a", C, C, 1);
    net_const(&n, "apart", QSIM_INT64, 1, &five, apart);
    net_const(&n, "shape", QSIM_INT64, 1, &four, shape);
    net_node(&n, "", "Reshape", "a_d,apart", "g");
    pair(&n, "g", "a");
    net_ints(&n, net_node(&n, "", "Transpose", "g_d", "t"), "perm", 5, perm);
    pair(&n, "t", "a");
    net_node(&n, "", "Reshape", "t_d,shape", "s");
    pair(&n, "s", "a");
    net_node(&n, "", "Dropout", "s_d", "d,mask");
    pair(&n, "d", "a");
    conv(&n, "d", "b", C, C, 1);
    net_output(&n, "b_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "transpose"), 3);
    CHECK_INT(same(&n, NULL), 7);
    net_free(&n);
}

/* Q(hardswish) as exporters write it: x * Q(clip(x + 3, 0, 6) / 6), then a table of that. */
static void tables(void) {
    net n;
    begin(&n, NULL);
    scale(&n, "a", 0.05f, 120);
    scale(&n, "g", 1.0f / 255, 0);
    scale(&n, "h", 0.04f, 20);
    scale(&n, "t", 0.01f, 128);
    conv(&n, "x", "a", C, C, 1);
    net_node(&n, "", "HardSigmoid", "a_d", "g");
    pair(&n, "g", "g");
    net_node(&n, "", "Mul", "a_d,g_d", "h");
    pair(&n, "h", "h");
    net_node(&n, "", "Tanh", "h_d", "t");
    pair(&n, "t", "t");
    net_output(&n, "t_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "gemm int8 table"), 1);
    CHECK_INT(same(&n, "table"), 0);
    CHECK_INT(same(&n, "qlinear mul"), 0);
    net_free(&n);
}

/* Resize by repetition moves bytes; the change of scale after it is a table. */
static void resize(void) {
    net n;
    const float scales[] = {1, 1, 2, 2};
    const int64_t four = 4;
    begin(&n, NULL);
    scale(&n, "a", 0.05f, 120);
    scale(&n, "r", 0.06f, 110);
    scale(&n, "b", 0.1f, 120);
    conv(&n, "x", "a", C, C, 1);
    net_const(&n, "scales", QSIM_FLOAT, 1, &four, scales);
    net_node(&n, "", "Resize", "a_d,,scales", "r");
    pair(&n, "r", "r");
    conv(&n, "r", "b", 2, C, 3);
    net_output(&n, "b_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "dequantize"), 1);
    CHECK_INT(same(&n, "table"), 1);
    net_free(&n);
}

/* Sums after convolutions, by either name: one side, both, with Relu, and one that is read twice
 * and stays. */
static void residual(bool relu, int64_t k) {
    net n;
    begin(&n, NULL);
    scale(&n, "a", 0.05f, 120);
    scale(&n, "b", 0.06f, 110);
    scale(&n, "s", 0.07f, 100);
    scale(&n, "c", 0.08f, 130);
    scale(&n, "t", 0.09f, 0);
    scale(&n, "u", 0.2f, 128);
    conv(&n, "x", "a", C, C, 1);
    conv(&n, "a", "b", C, C, k);
    net_node(&n, "", k == 1 ? "Sum" : "Add", "b_d,a_d", "s");
    pair(&n, "s", "s");
    conv(&n, "s", "c", C, C, k);
    net_node(&n, "", "Add", "s_d,c_d", relu ? "t0" : "t");
    if (relu)
        net_node(&n, "", "Relu", "t0", "t");
    pair(&n, "t", "t");
    net_node(&n, "", "Add", "t_d,s_d", "u");
    pair(&n, "u", "u");
    net_output(&n, "u_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "gemm int8 add"), 2);
    CHECK_INT(same(&n, "qlinear add"), 1);
    net_free(&n);
}

/*
 * A curve after each of four convolutions, one of which is depthwise and one grouped; a sum after
 * the third, and a curve after that: four steps, whatever the image's size, which nothing says.
 */
static void chain(qsim_ctx *ctx, bool known) {
    net n;
    const char *scales[] = {"a", "b", "c", "d", "p", "q", "r", "s", "t", "u"};
    begin_sized(&n, ctx, known ? H : -1, known ? W : -1);
    for (int i = 0; i < 10; i++)
        scale(&n, scales[i], 0.05f + 0.01f * (float)(i % 4), 100 + 3 * i);
    conv(&n, "x", "a", C, C, 3);
    net_node(&n, "", "HardSigmoid", "a_d", "p");
    pair(&n, "p", "p");
    grouped(&n, "p", "b", C, C, 3, C);
    net_node(&n, "", "Sigmoid", "b_d", "q");
    pair(&n, "q", "q");
    conv(&n, "q", "c", C, C, 1);
    net_node(&n, "", "Tanh", "c_d", "r");
    pair(&n, "r", "r");
    net_node(&n, "", "Add", "p_d,r_d", "s");
    pair(&n, "s", "s");
    net_node(&n, "", "LeakyRelu", "s_d", "t");
    pair(&n, "t", "t");
    grouped(&n, "t", "d", C, C, 3, 3);
    net_node(&n, "", "LeakyRelu", "d_d", "u");
    pair(&n, "u", "u");
    net_output(&n, "u_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "table"), 0);
    CHECK_INT(same(&n, "qlinear add"), 0);
    CHECK_INT(same(&n, "gemm int8 table"), 2);
    CHECK_INT(same(&n, "depthwise int8 table"), 1);
    CHECK_INT(same(&n, "gemm int8 add"), 1);
    net_free(&n);
}

/* Products of a matrix, few rows whose columns several threads share or many: a curve, then a sum.
 */
static void matrix(qsim_ctx *ctx, int64_t rows) {
    enum { DEPTH = 20, COLUMNS = 200 };
    net n;
    int8_t w[DEPTH * COLUMNS], v[COLUMNS * COLUMNS];
    static float x[3 * 40 * DEPTH], y[2][3 * 40 * COLUMNS];
    const char *scales[] = {"x", "a", "p", "b", "s"};
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof(w); i++)
        w[i] = (int8_t)(test_random(&seed) >> 16);
    for (size_t i = 0; i < sizeof(v); i++)
        v[i] = (int8_t)(test_random(&seed) >> 16);
    net_begin(&n, ctx, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(3, rows, DEPTH));
    for (int i = 0; i < 5; i++)
        scale(&n, scales[i], 0.02f + 0.01f * (float)i, 100 + 7 * i);
    pair(&n, "x", "x");
    net_const(&n, "w", QSIM_INT8, NET_DIMS(DEPTH, COLUMNS), w);
    net_const(&n, "v", QSIM_INT8, NET_DIMS(COLUMNS, COLUMNS), v);
    net_float(&n, "ws", 0.003f);
    net_byte(&n, "wz", QSIM_INT8, 0);
    net_node(&n, "", "DequantizeLinear", "w,ws,wz", "wd");
    net_node(&n, "", "DequantizeLinear", "v,ws,wz", "vd");
    net_node(&n, "", "MatMul", "x_d,wd", "a");
    pair(&n, "a", "a");
    net_node(&n, "", "Tanh", "a_d", "p");
    pair(&n, "p", "p");
    net_node(&n, "", "MatMul", "p_d,vd", "b");
    pair(&n, "b", "b");
    net_node(&n, "", "Add", "b_d,p_d", "s");
    pair(&n, "s", "s");
    net_output(&n, "s_d");
    NET_OK(&n, net_end(&n));
    const int64_t dims[] = {3, rows, DEPTH};
    for (size_t i = 0; i < QS_COUNT(x); i++)
        x[i] = (float)((int)(i * 7919 % 257) - 100) * 0.02f;
    const qsim_tensor in = net_tensor(QSIM_FLOAT, 3, dims, x);
    const size_t bytes = (size_t)(3 * rows * COLUMNS) * sizeof(float);
    CHECK_INT(run_of(&n, QSIM_LEVEL_DISABLE, NULL, &in, y[0], bytes), 6);
    CHECK_INT(run_of(&n, QSIM_LEVEL_ALL, NULL, &in, y[1], bytes), 4);
    CHECK(memcmp(y[0], y[1], bytes) == 0);
    net_free(&n);
}

static void list(net *n, const char *name, int64_t v) {
    const int64_t one = 1;
    net_const(n, name, QSIM_INT64, 1, &one, &v);
}

/* Slices of slices, joined and quantized: the floats are quantized once, bytes are sliced once. */
static void focus(void) {
    net n;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, C, H, W));
    scale(&n, "j", 0.02f, 100);
    scale(&n, "a", 0.1f, 120);
    list(&n, "0", 0);
    list(&n, "1", 1);
    list(&n, "2", 2);
    list(&n, "3", 3);
    list(&n, "end", INT64_MAX);
    net_node(&n, "", "Slice", "x,0,end,1,2", "e");
    net_node(&n, "", "Slice", "x,1,end,1,2", "o");
    net_node(&n, "", "Slice", "e,0,3,3", "el");
    net_node(&n, "", "Slice", "e,3,end,3", "er");
    net_node(&n, "", "Slice", "o,0,3,3", "ol");
    net_node(&n, "", "Slice", "o,3,end,3", "or");
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "el,or,ol,er", "j"), "axis", 3);
    pair(&n, "j", "j");
    conv(&n, "j", "a", C, C / 2, 3);
    net_output(&n, "a_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "quantize"), 1);
    CHECK_INT(same(&n, "select"), 4);
    CHECK_INT(same(&n, NULL), 10);
    net_free(&n);
}

/* A Slice whose end is known at run time only is not joined with the next Slice. */
static void end_as_input(void) {
    net n;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    float x[24];
    int64_t end = 3;
    for (int i = 0; i < 24; i++)
        x[i] = (float)i;
    net_begin(&n, NULL, 13);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(4, 6));
    net_input(&n, "to", QSIM_INT64, NET_DIMS(1));
    list(&n, "0", 0);
    list(&n, "1", 1);
    list(&n, "4", 4);
    net_node(&n, "", "Slice", "x,1,to,0", "rows");
    net_node(&n, "", "Slice", "rows,1,4,1", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    NET_OK(&n, qsim_run_create(s, &r, &n.error));
    const int64_t dx[] = {4, 6}, one = 1;
    const qsim_tensor in[] = {net_tensor(QSIM_FLOAT, 2, dx, x),
                              net_tensor(QSIM_INT64, 1, &one, &end)};
    for (end = 2; end <= 4; end++) {
        qsim_tensor y = {0};
        NET_OK(&n, qsim_run_execute(r, in, 2, &y, 1, &n.error));
        CHECK(y.rank == 2 && y.dims[0] == end - 1 && y.dims[1] == 3);
        CHECK_NEAR(((const float *)y.data)[3 * (end - 1) - 1], 6 * (end - 1) + 3, 0);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
}

/* Curves on dequantized bytes of a convolution, as detectors' heads give them out: tables. */
static void heads(void) {
    static const char *const curves[] = {"Sigmoid", "Tanh", "Exp", "Erf", "Silu", "HardSwish"};
    for (size_t i = 0; i < QS_COUNT(curves); i++) {
        net n;
        net_begin(&n, NULL, 14);
        net_input(&n, "x", QSIM_FLOAT, NET_DIMS(1, C, H, W));
        scale(&n, "x", 0.02f, 100);
        pair(&n, "x", "x");
        scale(&n, "a", 0.1f, 120);
        conv(&n, "x", "a", C, C, 1);
        if (strcmp(curves[i], "Silu") == 0) {
            net_node(&n, "", "Sigmoid", "a_d", "s");
            net_node(&n, "", "Mul", "a_d,s", "y");
        } else {
            net_node(&n, "", curves[i], "a_d", "y");
        }
        net_output(&n, "y");
        NET_OK(&n, net_end(&n));
        CHECK_INT(same(&n, "lookup"), i < 5);
        CHECK_INT(same(&n, "dequantize"), i == 5);
        net_free(&n);
    }
}

/* Two convolutions of c channels, joined, shuffled and split after `first` channels, or not. */
static void unit(int64_t c, int64_t first) {
    net n;
    const int64_t apart[] = {1, 2, c, H, W}, shape[] = {1, 2 * c, H, W};
    const int64_t perm[] = {0, 2, 1, 3, 4}, parts[] = {first, 2 * c - first};
    const char *scales[] = {"a", "b", "j", "p", "q", "y"};
    begin(&n, NULL);
    for (int i = 0; i < 6; i++)
        scale(&n, scales[i], 0.05f + 0.01f * (float)(i % 3), 100 + i);
    conv(&n, "x", "a", c, C, 1);
    conv(&n, "x", "b", c, C, 1);
    qs_node_set_int(n.g, net_node(&n, "", "Concat", "a_d,b_d", "j"), "axis", 1);
    pair(&n, "j", "j");
    net_const(&n, "apart", QSIM_INT64, NET_DIMS(5), apart);
    net_const(&n, "shape", QSIM_INT64, NET_DIMS(4), shape);
    net_const(&n, "parts", QSIM_INT64, NET_DIMS(2), parts);
    net_node(&n, "", "Reshape", "j_d,apart", "g");
    net_ints(&n, net_node(&n, "", "Transpose", "g", "t"), "perm", 5, perm);
    net_node(&n, "", "Reshape", "t,shape", first < 2 * c ? "s" : "s_d");
    if (first < 2 * c)
        qs_node_set_int(n.g, net_node(&n, "", "Split", "s,parts", "l_d,r_d"), "axis", 1);
    conv(&n, first < 2 * c ? "l" : "s", "p", 3, first, 1);
    if (first < 2 * c)
        conv(&n, "r", "q", 3, 2 * c - first, 1);
    net_node(&n, "", "Mul", first < 2 * c ? "p_d,q_d" : "p_d,p_d", "y");
    pair(&n, "y", "y");
    net_output(&n, "y_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "shuffle"), 1);
    CHECK_INT(same(&n, "qlinear concat"), 0);
    CHECK_INT(same(&n, "split"), 0);
    CHECK_INT(same(&n, "transpose"), 2);
    net_free(&n);
}

/*
 * Convolutions of one input, one of them depthwise, perhaps with a curve, one with a sum after it,
 * two pools, and the input, which is inserted; joined as floats or as bytes. What is joined has the
 * scale of all but the input, the maximum and, perhaps, the last convolution.
 */
static void joined(qsim_ctx *ctx, bool equal, bool bytes) {
    net n;
    const char *scales[] = {"a", "b", "c", "d", "e", "t", "s", "j", "y", "v"};
    const int64_t kernel[] = {3, 3}, pads[] = {1, 1, 1, 1};
    begin(&n, ctx);
    for (int i = 0; i < 10; i++)
        scale(&n, scales[i], i == 2 && !equal ? 0.2f : 0.1f, 120);
    conv(&n, "x", "a", 16, C, 3);
    conv(&n, "x", "b", 5, C, 1);
    conv(&n, "x", "c", 7, C, 1);
    grouped(&n, "x", "d", C, C, 3, C);
    net_node(&n, "", equal ? "Identity" : "LeakyRelu", "d_d", "t");
    pair(&n, "t", "t");
    conv(&n, "x", "e", C, C, 1);
    net_node(&n, "", "Add", "e_d,x_d", "s");
    pair(&n, "s", "s");
    for (int i = 0; i < 2; i++) {
        const qs_id pool = net_node(&n, "", i ? "AveragePool" : "MaxPool", "x_d", i ? "v" : "m");
        net_ints(&n, pool, "kernel_shape", 2, kernel);
        net_ints(&n, pool, "pads", 4, pads);
    }
    pair(&n, "m", "x");
    pair(&n, "v", "v");
    CHECK_INT(qs_graph_set_import(n.g, "com.microsoft", 1), 0);
    qs_id id = bytes ? net_node(&n, "com.microsoft", "QLinearConcat",
                                "j_s,j_z,b_q,b_s,b_z,a_q,a_s,a_z,m_q,x_s,x_z,t_q,t_s,t_z,s_q,s_s,"
                                "s_z,c_q,c_s,c_z,x_q,x_s,x_z,v_q,v_s,v_z",
                                "j_q")
                     : net_node(&n, "", "Concat", "b_d,a_d,m_d,t_d,s_d,c_d,x_d,v_d", "j");
    qs_node_set_int(n.g, id, "axis", 1);
    if (bytes)
        net_node(&n, "", "DequantizeLinear", "j_q,j_s,j_z", "j_d");
    else
        pair(&n, "j", "j");
    conv(&n, "j", "y", 3, 16 + 5 + 7 + 5 * C, 1);
    net_output(&n, "y_d");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "concat"), 0);
    CHECK_INT(same(&n, "qlinear concat"), 0);
    CHECK_INT(same(&n, "insert"), 1);
    CHECK_INT(same(&n, "pool"), 2);
    CHECK_INT(same(&n, "table"), 0);
    CHECK_INT(same(&n, "gemm int8"), equal ? 4 : 3);
    CHECK_INT(same(&n, "gemm int8 table"), !equal);
    CHECK_INT(same(&n, "gemm int8 add"), 1);
    CHECK_INT(same(&n, "depthwise int8 table"), !equal);
    CHECK_INT(same(&n, "depthwise int8"), equal);
    net_free(&n);
}

static void float_conv(net *n, const char *x, const char *y, int64_t outs, int64_t ins) {
    float w[C * 3 * C];
    char t[48], in[96];
    const int64_t dims[] = {outs, ins, 1, 1};
    uint64_t seed = (uint64_t)y[0];
    for (int64_t i = 0; i < outs * ins; i++)
        w[i] = (float)((int)(test_random(&seed) % 256) - 128) / 512.0f;
    snprintf(t, sizeof(t), "%s_w", y);
    net_const(n, t, QSIM_FLOAT, 4, dims, w);
    snprintf(in, sizeof(in), "%s,%s", x, t);
    net_node(n, "", "Conv", in, y);
}

/*
 * Maps of half the size, doubled and joined, as detectors have it: each doubles its pixels where
 * they belong. One is read twice, and inserted.
 */
static void pyramid(qsim_ctx *ctx, bool bytes, bool equal) {
    net n;
    const float scales[] = {1, 1, 2, 2};
    const int64_t four = 4, outs[] = {17, 12, 2};
    const char *names[] = {"a", "b", "c", "k", "o"};
    begin(&n, ctx);
    net_const(&n, "scales", QSIM_FLOAT, 1, &four, scales);
    for (int i = 0; i < 5; i++)
        scale(&n, names[i], i && !equal ? 0.02f * (float)i : 0.05f, 120);
    for (int i = 0; i < 3; i++) {
        char in[48], out[16];
        if (bytes)
            conv(&n, "x", names[i], outs[i], C, 1);
        else
            float_conv(&n, "x", names[i], outs[i], C);
        snprintf(in, sizeof(in), "%s%s,,scales", names[i], bytes ? "_d" : "");
        snprintf(out, sizeof(out), "r%s", names[i]);
        net_node(&n, "", "Resize", in, out);
        if (bytes)
            pair(&n, out, names[i]);
    }
    const qs_id id = net_node(&n, "", "Concat", bytes ? "rb_d,rc_d,ra_d,rc_d" : "rb,rc,ra,rc", "k");
    qs_node_set_int(n.g, id, "axis", 1);
    if (bytes) {
        pair(&n, "k", "k");
        conv(&n, "k", "o", 1, 33, 1);
    } else {
        float_conv(&n, "k", "o", 1, 33);
    }
    net_output(&n, bytes ? "o_d" : "o");
    NET_OK(&n, net_end(&n));
    CHECK_INT(same(&n, "concat"), 0);
    CHECK_INT(same(&n, "qlinear concat"), 0);
    CHECK_INT(same(&n, "resize"), 3);
    CHECK_INT(same(&n, "insert"), 2);
    net_free(&n);
}

/* Runs the cases with this CPU's kernels and with those of C, with threads and without. */
static void of_contexts(void) {
    for (int i = 0; i < 4; i++) {
        const qsim_ctx_options o = {.struct_size = sizeof(o),
                                    .isa = i / 2 ? QSIM_ISA_C : QSIM_ISA_AUTO,
                                    .threads = i % 2 ? 3 : 1};
        qsim_ctx *ctx = NULL;
        CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
        for (int k = 0; k < 4; k++)
            joined(ctx, k % 2, k / 2);
        for (int k = 0; k < 2; k++) {
            chain(ctx, k);
            matrix(ctx, k ? 40 : 1);
            pyramid(ctx, true, k);
        }
        pyramid(ctx, false, true);
        qsim_ctx_free(ctx);
    }
}

int main(void) {
    of_contexts();
    unit(20, 20);
    unit(20, 13);
    unit(35, 35);
    unit(6, 8);
    unit(20, 40);
    focus();
    end_as_input();
    heads();
    residual(false, 1);
    residual(false, 3);
    residual(true, 3);
    tables();
    resize();
    shuffle();
    return test_done();
}
