/* SPDX-License-Identifier: MIT */
/* Resize, Upsample and Tile: values worked out by hand, both layouts, refusals. */
#include "op/rules.h"
#include "op_run.h"

#include <math.h>

/* Resize of a row of `n` numbers by `scale` to `count` numbers; 0 or a negative code. */
static int resize_any(int32_t dtype, const or_attr *attrs, int32_t attr_count, float scale,
                      int64_t n, int64_t *count, float *y) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    float *x = or_memory((size_t)n * sizeof(double)), *scales = or_memory(sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        if (dtype == QSIM_DOUBLE)
            ((double *)(void *)x)[i] = (double)i;
        else
            x[i] = (float)i;
    }
    *scales = scale;
    or_case c = {.domain = "", .op = "Resize", .version = 19, .inputs = 3, .outputs = 1};
    c.in[0] = (or_tensor){dtype, 1, {n}, x, false};
    c.in[2] = (or_tensor){QSIM_FLOAT, 1, {1}, scales, true};
    if (attr_count > 0)
        memcpy(c.attrs, attrs, (size_t)attr_count * sizeof(*attrs));
    c.attr_count = attr_count;
    or_result r = or_run(ctx, &c, false);
    if (!r.code) {
        *count = r.out[0].dims[0];
        for (int64_t i = 0; i < *count; i++)
            y[i] = dtype == QSIM_DOUBLE ? (float)((double *)r.out[0].data)[i]
                                        : ((float *)r.out[0].data)[i];
    }
    or_free(&r);
    free(x);
    free(scales);
    qsim_ctx_free(ctx);
    return r.code;
}

static int resize_row(const or_attr *attrs, int32_t attr_count, float scale, int64_t n,
                      int64_t *count, float *y) {
    return resize_any(QSIM_FLOAT, attrs, attr_count, scale, n, count, y);
}

static void check_row(const char *mode, const char *where, const char *rounding, float scale,
                      int64_t n, int64_t expected, const float *values) {
    const or_attr attrs[] = {or_string("mode", mode),
                             or_string("coordinate_transformation_mode", where),
                             or_string("nearest_mode", rounding)};
    for (int wide = 0; wide < 2; wide++) {
        float y[32];
        int64_t count = -1;
        CHECK_INT(resize_any(wide ? QSIM_DOUBLE : QSIM_FLOAT, attrs, 3, scale, n, &count, y), 0);
        CHECK_INT(count, expected);
        for (int64_t i = 0; i < count && i < expected; i++)
            CHECK_NEAR(y[i], values[i], 1e-6);
    }
}

#define VALUES(...)                                                                                \
    (const float[]) {                                                                              \
        __VA_ARGS__                                                                                \
    }

static void rows(void) {
    const char *f = "floor", *pf = "round_prefer_floor";
    check_row("nearest", "asymmetric", f, 2, 3, 6, VALUES(0, 0, 1, 1, 2, 2));
    check_row("nearest", "asymmetric", "ceil", 2, 3, 6, VALUES(0, 1, 1, 2, 2, 2));
    check_row("nearest", "half_pixel", pf, 0.5f, 6, 3, VALUES(0, 2, 4));
    check_row("nearest", "half_pixel", "round_prefer_ceil", 0.5f, 6, 3, VALUES(1, 3, 5));
    check_row("nearest", "tf_half_pixel_for_nn", f, 0.5f, 6, 3, VALUES(1, 3, 5));
    check_row("linear", "half_pixel", f, 2, 3, 6, VALUES(0, 0.25f, 0.75f, 1.25f, 1.75f, 2));
    check_row("linear", "align_corners", f, 2, 3, 6, VALUES(0, 0.4f, 0.8f, 1.2f, 1.6f, 2));
    check_row("linear", "asymmetric", f, 2, 3, 6, VALUES(0, 0.5f, 1, 1.5f, 2, 2));
    check_row("linear", "pytorch_half_pixel", f, 0.25f, 4, 1, VALUES(0));
    check_row("linear", "half_pixel", f, 0.25f, 4, 1, VALUES(1.5f));
    /* A cubic through a straight line is the line, away from its ends. */
    const or_attr cubic[] = {or_string("mode", "cubic"), or_float("cubic_coeff_a", -0.5f)};
    float y[32];
    int64_t count = 0;
    for (int wide = 0; wide < 2; wide++) {
        const int32_t dtype = wide ? QSIM_DOUBLE : QSIM_FLOAT;
        CHECK_INT(resize_any(dtype, cubic, 2, 2, 8, &count, y), 0);
        for (int64_t i = 4; i < 12; i++)
            CHECK_NEAR(y[i], (float)i / 2 - 0.25f, 1e-6);
    }
    /* Shrinking by 4 with antialias weighs neighbours (3, 5, 7, 7, 5, 3, 1 and 1) / 32. */
    const or_attr antialias[] = {or_string("mode", "linear"), or_int("antialias", 1)};
    CHECK_INT(resize_row(antialias, 2, 0.25f, 12, &count, y), 0);
    CHECK_INT(count, 3);
    CHECK_NEAR(y[1], 5.5f, 1e-6);
}

static void refuses(void) {
    float y[32];
    int64_t n;
    const or_attr bad[] = {or_string("mode", "quadratic"),
                           or_string("nearest_mode", "up"),
                           or_string("coordinate_transformation_mode", "corner"),
                           or_string("mode", "cubic"),
                           or_string("coordinate_transformation_mode", "tf_crop_and_resize"),
                           or_float("cubic_coeff_a", NAN)};
    for (size_t i = 0; i < QS_COUNT(bad); i++)
        CHECK_INT(resize_row(&bad[i], 1, 2, 3, &n, y), i == 3   ? QSIM_OK
                                                       : i == 4 ? QSIM_E_GRAPH
                                                                : QSIM_E_VALUE);
    CHECK_INT(resize_row(NULL, 0, NAN, 3, &n, y), QSIM_E_VALUE);
    CHECK_INT(resize_row(NULL, 0, INFINITY, 3, &n, y), QSIM_E_VALUE);
    CHECK_INT(resize_row(NULL, 0, -2, 3, &n, y), QSIM_E_VALUE);
    CHECK_INT(resize_row(NULL, 0, 0, 3, &n, y), QSIM_E_VALUE);
    CHECK_INT(resize_row(NULL, 0, 3e38f, 3, &n, y), QSIM_E_LIMIT);
}

/* ---- two axes ---- */

static float sample(size_t i) {
    return (float)(i * 2654435761u % 1000) / 100;
}

/* [2, 3, 5, 4] to [2, 3, 10, 6], channels second or last: the same numbers. */
static void layouts(qsim_ctx *ctx, const char *mode, int32_t dtype) {
    const size_t size = dtype == QSIM_FLOAT ? 4 : 1;
    int64_t sizes[4] = {2, 3, 10, 6};
    char *first = or_memory(120 * size), *last = or_memory(120 * size);
    for (size_t i = 0; i < 120; i++) {
        const size_t n = i / 60, c = i / 20 % 3, p = i % 20, at = (n * 20 + p) * 3 + c;
        const float v = sample(i);
        if (size == 4) {
            memcpy(first + i * 4, &v, 4);
            memcpy(last + at * 4, &v, 4);
        } else {
            first[i] = last[at] = (char)i;
        }
    }
    int64_t *list = or_memory(sizeof(sizes));
    memcpy(list, sizes, sizeof(sizes));
    or_case c = {.domain = "", .op = "Resize", .version = 13, .inputs = 4, .outputs = 1};
    c.in[0] = (or_tensor){dtype, 4, {2, 3, 5, 4}, first, false};
    c.in[3] = (or_tensor){QSIM_INT64, 1, {4}, list, true};
    c.attrs[0] = or_string("mode", mode);
    c.attr_count = 1;
    or_result a = or_run(ctx, &c, false);
    c.domain = "qsim";
    c.in[0] = (or_tensor){dtype, 4, {2, 5, 4, 3}, last, false};
    c.attrs[1] = or_int("channels_last", 1);
    c.attr_count = 2;
    or_result b = or_run(ctx, &c, false);
    CHECK_INT(a.code, 0);
    CHECK_INT(b.code, 0);
    CHECK_INT(b.out[0].dims[1], 10);
    CHECK_INT(b.out[0].dims[3], 3);
    size_t wrong = 0;
    for (size_t i = 0; i < 360 && !a.code && !b.code; i++) {
        const size_t n = i / 180, k = i / 60 % 3, p = i % 60, at = (n * 60 + p) * 3 + k;
        wrong +=
            memcmp((char *)a.out[0].data + i * size, (char *)b.out[0].data + at * size, size) != 0;
        const size_t from = n * 60 + k * 20 + p / 6 / 2 * 4 + (p % 6 * 4 + 1) / 6;
        if (strcmp(mode, "nearest") == 0)
            wrong += memcmp((char *)a.out[0].data + i * size, first + from * size, size) != 0;
    }
    CHECK_INT(wrong, 0);
    or_free(&a);
    or_free(&b);
    free(first);
    free(last);
    free(list);
}

/* A row by itself, and as both columns of a matrix: the same bits, outside of a region, too. */
static void lines(qsim_ctx *ctx, uint64_t *seed) {
    static const char *const where[] = {"half_pixel", "align_corners", "tf_crop_and_resize"};
    const int64_t in = 1 + (int64_t)(test_random(seed) % 90);
    float *x = or_memory((size_t)in * 4), *pairs = or_memory((size_t)in * 8);
    float *region = or_memory(16), *scales = or_memory(8);
    for (int64_t i = 0; i < in; i++)
        pairs[2 * i] = pairs[2 * i + 1] = x[i] = (float)(test_random(seed) % 2001) / 1000 - 1;
    const float scale = (float)(1 + test_random(seed) % 50) / 16.0f + 1.0f / (float)in;
    or_case c = {.domain = "", .op = "Resize", .version = 18, .inputs = 3, .outputs = 1};
    c.attrs[0] = or_string("mode", test_random(seed) % 2 ? "linear" : "cubic");
    c.attrs[1] = or_string("coordinate_transformation_mode", where[test_random(seed) % 3]);
    c.attrs[2] = or_int("antialias", (int64_t)(test_random(seed) % 2));
    c.attrs[3] = or_float("extrapolation_value", 7);
    c.attr_count = 4;
    c.in[0] = (or_tensor){QSIM_FLOAT, 1, {in}, x, false};
    region[0] = -0.2f, region[1] = 1.3f, scales[0] = scale;
    c.in[1] = (or_tensor){QSIM_FLOAT, 1, {2}, region, true};
    c.in[2] = (or_tensor){QSIM_FLOAT, 1, {1}, scales, true};
    or_result a = or_run(ctx, &c, false);
    c.in[0] = (or_tensor){QSIM_FLOAT, 2, {in, 2}, pairs, false};
    region[1] = 0, region[2] = 1.3f, region[3] = 1, scales[1] = 1;
    c.in[1].dims[0] = 4;
    c.in[2].dims[0] = 2;
    or_result b = or_run(ctx, &c, false);
    CHECK_INT(a.code, 0);
    CHECK_INT(b.code, 0);
    size_t wrong = 0;
    for (int64_t i = 0; !a.code && !b.code && i < a.out[0].dims[0] * 2; i++)
        wrong += memcmp((float *)a.out[0].data + i / 2, (float *)b.out[0].data + i, 4) != 0;
    CHECK_INT(wrong, 0);
    or_free(&a);
    or_free(&b);
    free(x);
    free(pairs);
    free(region);
    free(scales);
}

/* The element of the input that position i of n comes from: asymmetric, rounded down. */
static int64_t nearest_of(int64_t i, int64_t in, int64_t out) {
    const float scale = (float)out / (float)in, x = (float)i / scale;
    const int64_t from = (int64_t)floorf(x);
    return from < in ? from : in - 1;
}

/* Nearest, any sizes: pixels of one to many bytes, equal neighbours and rows, both layouts. */
static void nearest(qsim_ctx *ctx, uint64_t *seed) {
    const int32_t types[] = {QSIM_UINT8, QSIM_FLOAT, QSIM_DOUBLE};
    const int32_t type = types[test_random(seed) % 3];
    const size_t size = type == QSIM_UINT8 ? 1 : type == QSIM_FLOAT ? 4 : 8;
    const bool last = test_random(seed) % 2;
    int64_t from[4], to[4], *list = or_memory(sizeof(to));
    for (int i = 0; i < 4; i++) {
        from[i] = to[i] = 1 + (int64_t)(test_random(seed) % (i == (last ? 3 : 1) ? 40 : 9));
        if (i > 0 && i != (last ? 3 : 1))
            to[i] = test_random(seed) % 2 ? from[i] * (1 + (int64_t)(test_random(seed) % 3))
                                          : 1 + (int64_t)(test_random(seed) % 20);
    }
    or_tensor x = {type, 4, {from[0], from[1], from[2], from[3]}, NULL, false};
    const size_t bytes = or_elements(&x) * size;
    uint8_t *data = x.data = or_memory(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (uint8_t)test_random(seed);
    const int64_t sizes[4] = {to[0], to[last ? 3 : 1], to[last ? 1 : 2], to[last ? 2 : 3]};
    memcpy(list, sizes, sizeof(sizes));
    or_case c = {.domain = "qsim", .op = "Resize", .version = 13, .inputs = 4, .outputs = 1};
    c.in[0] = x;
    c.in[3] = (or_tensor){QSIM_INT64, 1, {4}, list, true};
    c.attrs[0] = or_string("mode", "nearest");
    c.attrs[1] = or_string("coordinate_transformation_mode", "asymmetric");
    c.attrs[2] = or_string("nearest_mode", "floor");
    c.attrs[3] = or_int("channels_last", last);
    c.attr_count = 4;
    or_result r = or_run(ctx, &c, false);
    CHECK_STR(r.error.message, "");
    size_t wrong = 0;
    for (int64_t i = 0; !r.code && i < to[0] * to[1] * to[2] * to[3]; i++) {
        const int64_t at[4] = {i / to[3] / to[2] / to[1], i / to[3] / to[2] % to[1],
                               i / to[3] % to[2], i % to[3]};
        int64_t k = 0;
        for (int a = 0; a < 4; a++)
            k = k * from[a] + nearest_of(at[a], from[a], to[a]);
        wrong +=
            memcmp((uint8_t *)r.out[0].data + (size_t)i * size, data + (size_t)k * size, size) != 0;
    }
    CHECK_INT(wrong, 0);
    or_free(&r);
    free(data);
    free(list);
}

/* Upsample and its later form give the same; each axis' rounding has to survive. */
static void upgrades(void) {
    float x[4] = {1, 2, 3, 4};
    const float up[2] = {1, 2}, mixed[2] = {0.5f, 2};
    for (int i = 0; i < 2; i++) {
        op_case *c = case_new("", "Upsample", 9);
        case_input(c, QSIM_FLOAT, 2, (const int64_t[]){2, 2}, x);
        case_const(c, QSIM_FLOAT, 1, (const int64_t[]){2}, i ? mixed : up);
        case_node(c, 1);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), i ? "float[1,4]" : "float[2,4]");
        const int code = qs_op_upgrade_graph(c->g, 13, "m", &c->error);
        CHECK_INT(code, i ? QSIM_E_UNSUPPORTED : 0);
        if (!i) {
            CHECK_STR(c->g->nodes[c->node].op_type, "Resize");
            CHECK_INT(qs_op_infer_graph(c->g, "m", &c->error), 0);
            CHECK_STR(case_shape(c, 0), "float[2,4]");
        }
        case_free(c);
    }
}

/* Scales that a model computes: those of Upsample do not shrink, those of Resize might. */
static void computed_scales(void) {
    const float x[4] = {1, 2, 3, 4}, scales[2] = {1, 2};
    for (int i = 0; i < 2; i++) {
        op_case *c = case_new("", i ? "Resize" : "Upsample", i ? 10 : 9);
        case_input(c, QSIM_FLOAT, 2, (const int64_t[]){2, 2}, x);
        case_input(c, QSIM_FLOAT, 1, (const int64_t[]){2}, scales);
        case_node(c, 1);
        const int code = qs_op_upgrade_graph(c->g, 13, "m", &c->error);
        CHECK_INT(code, i ? QSIM_E_UNSUPPORTED : 0);
        if (!i) {
            const qs_node *n = &c->g->nodes[c->node];
            CHECK_STR(n->op_type, "Resize");
            CHECK(qs_node_string_is(n, "nearest_mode", "floor", false));
            CHECK(n->input_count == 3 && n->inputs[1] == QS_NONE && n->inputs[2] != QS_NONE);
        }
        case_free(c);
    }
}

/* Before opset 7 there are two attributes; upgraded, they are a list, then an input. */
static void image_scales(void) {
    const float x[4] = {1, 2, 3, 4};
    for (int64_t to = 0; to <= 13; to = to == 0 ? 7 : to + 6) {
        op_case *c = case_new("", "Upsample", 6);
        case_input(c, QSIM_FLOAT, 4, (const int64_t[]){1, 1, 2, 2}, x);
        case_node(c, 1);
        const qs_attr height = {.name = "height_scale", .type = QSIM_ATTR_FLOAT, .u.f = 2};
        const qs_attr width = {.name = "width_scale", .type = QSIM_ATTR_FLOAT, .u.f = 3};
        const qs_attr mode = {
            .name = "mode", .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)"nearest", 7}};
        CHECK_INT(qs_node_set_attr(c->g, c->node, &height), 0);
        CHECK_INT(qs_node_set_attr(c->g, c->node, &width), 0);
        CHECK_INT(qs_node_set_attr(c->g, c->node, &mode), 0);
        if (to)
            CHECK_INT(qs_op_upgrade_graph(c->g, to, "m", &c->error), 0);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "float[1,1,4,6]");
        const float *y = case_data(c, 0);
        for (size_t i = 0; i < 24; i++)
            CHECK_NEAR(y[i], x[i / 12 * 2 + i % 6 / 3], 0);
        CHECK_STR(c->g->nodes[c->node].op_type, to == 13 ? "Resize" : "Upsample");
        case_free(c);
    }
}

/* ---- Tile ---- */

/* Before opset 6 a number of tiles along one axis, in the input's type. */
static void tiles_along_axis(void) {
    const float x[4] = {1, 2, 3, 4}, number = 3, axis = 0;
    for (int64_t to = 0; to <= 13; to += 13) {
        op_case *c = case_new("", "Tile", 5);
        case_input(c, QSIM_FLOAT, 2, (const int64_t[]){2, 2}, x);
        case_const(c, QSIM_FLOAT, 0, NULL, &number);
        case_const(c, QSIM_FLOAT, 0, NULL, &axis);
        case_node(c, 1);
        if (to)
            CHECK_INT(qs_op_upgrade_graph(c->g, to, "m", &c->error), 0);
        CHECK_INT(case_run(c), 0);
        CHECK_STR(case_shape(c, 0), "float[6,2]");
        const float *y = case_data(c, 0);
        for (size_t i = 0; i < 12; i++)
            CHECK_NEAR(y[i], x[i % 4], 0);
        case_free(c);
    }
}

static void tiles(qsim_ctx *ctx) {
    const int64_t repeats[3] = {2, 3, 1};
    int64_t *list = or_memory(sizeof(repeats));
    uint16_t *x = or_memory(12 * sizeof(*x));
    for (uint16_t i = 0; i < 12; i++)
        x[i] = i;
    memcpy(list, repeats, sizeof(repeats));
    or_case c = {.domain = "", .op = "Tile", .version = 13, .inputs = 2, .outputs = 1};
    c.in[0] = (or_tensor){QSIM_UINT16, 3, {2, 2, 3}, x, false};
    c.in[1] = (or_tensor){QSIM_INT64, 1, {3}, list, true};
    or_result r = or_run(ctx, &c, false);
    CHECK_INT(r.code, 0);
    CHECK_INT(r.out[0].dims[0] * 100 + r.out[0].dims[1] * 10 + r.out[0].dims[2], 463);
    const uint16_t *y = r.out[0].data;
    for (size_t i = 0; i < 72 && !r.code; i++)
        CHECK_INT(y[i], i / 18 % 2 * 6 + i / 3 % 6 % 2 * 3 + i % 3);
    or_free(&r);
    list[1] = -1;
    r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_E_VALUE);
    list[1] = INT64_MAX;
    r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_E_LIMIT);
    c.in[1].dims[0] = 2;
    r = or_run(ctx, &c, false);
    CHECK_INT(r.code, QSIM_E_SHAPE);
    free(list);
    free(x);
}

int main(void) {
    qsim_ctx *ctx[QS_ISA_COUNT];
    const int contexts = or_contexts(ctx, 3);
    rows();
    refuses();
    for (int i = 0; i < contexts; i++) {
        layouts(ctx[i], "nearest", QSIM_FLOAT);
        layouts(ctx[i], "nearest", QSIM_UINT8);
        layouts(ctx[i], "linear", QSIM_FLOAT);
        layouts(ctx[i], "cubic", QSIM_FLOAT);
    }
    uint64_t seed = 9;
    for (int i = 0; i < 200; i++)
        lines(ctx[i % contexts], &seed);
    for (int i = 0; i < 300; i++)
        nearest(ctx[i % contexts], &seed);
    upgrades();
    computed_scales();
    image_scales();
    tiles(ctx[0]);
    tiles_along_axis();
    for (int i = 0; i < contexts; i++)
        qsim_ctx_free(ctx[i]);
    return test_done();
}
