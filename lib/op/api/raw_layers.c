/* SPDX-License-Identifier: MIT */
/* qsim_conv2d and qsim_linear: the code of int8 operators applied to the caller's buffers. */
#include <math.h>

#include "base/ctx.h"
#include "base/slices.h"
#include "op/int8/int8_prepare.h"

#include <qsim/op.h>

typedef struct layer {
    qsim_ctx *ctx; /* the view: once something has seen a stop, all stays stopped */
    qsim_ctx view;
    qs_stop stop;
    const char *name; /* of the function, in messages */
    const qsim_tensor *x, *w, *y;
    qsim_op_options o;
    qsim_error *error;
    qs_conv_i8 conv;
    qk_source_i8 source;
    int64_t group_stride;
    bool swap; /* the caller's buffers are NCHW, converted to NHWC */
    int32_t x_flip, y_flip;
    qs_i8_list w_zp;
    qs_i8_rules rules;
} layer;

/* ---- checks ---- */

static int check_tensor(const layer *k, const qsim_tensor *t, const char *name, int32_t rank) {
    size_t bytes;
    if (!t || !t->data || !t->dims)
        return qs_fail(k->error, QSIM_E_ARGUMENT, "%s is NULL", name);
    if (t->rank != rank)
        return qs_fail(k->error, QSIM_E_SHAPE, "%s has rank %d, expected %d", name, (int)t->rank,
                       (int)rank);
    for (int32_t i = 0; i < rank; i++)
        if (t->dims[i] < 1 || t->dims[i] > INT32_MAX)
            return qs_fail(k->error, QSIM_E_SHAPE, "%s has an axis of %lld", name,
                           (long long)t->dims[i]);
    int code = qsim_tensor_size(t->dtype, rank, t->dims, NULL, &bytes);
    if (code)
        return qs_fail(k->error, code, "%s has no size", name);
    if (t->bytes < bytes)
        return qs_fail(k->error, QSIM_E_ARGUMENT, "%s has %zu bytes, needs %zu", name, t->bytes,
                       bytes);
    return QSIM_OK;
}

static bool is_8bit(const qsim_tensor *t) {
    return t->dtype == QSIM_UINT8 || t->dtype == QSIM_INT8;
}

static int check_tensors(const layer *k, int32_t rank) {
    int code = check_tensor(k, k->x, "x", rank);
    if (!code)
        code = check_tensor(k, k->w, "w", rank);
    if (!code)
        code = check_tensor(k, k->y, "y", rank);
    if (code)
        return code;
    if (!is_8bit(k->x) || !is_8bit(k->w))
        return qs_fail(k->error, QSIM_E_DTYPE, "x is %s and w is %s; both have to be 8 bits",
                       qsim_dtype_name(k->x->dtype), qsim_dtype_name(k->w->dtype));
    if (k->o.multipliers ? !is_8bit(k->y) : k->y->dtype != QSIM_INT32)
        return qs_fail(k->error, QSIM_E_DTYPE, "y is %s %s multipliers",
                       qsim_dtype_name(k->y->dtype), k->o.multipliers ? "with" : "without");
    return QSIM_OK;
}

static int check_point(const layer *k, const char *name, int32_t dtype, int32_t v) {
    int32_t low = dtype == QSIM_INT8 ? -128 : 0;
    if (v < low || v > low + 255)
        return qs_fail(k->error, QSIM_E_VALUE, "%s is %d, beyond %s", name, (int)v,
                       qsim_dtype_name(dtype));
    return QSIM_OK;
}

static int check_values(layer *k, int64_t columns) {
    qsim_op_options *o = &k->o;
    if ((o->w_zero_points &&
         (!o->w_zero_point || (o->w_zero_points != 1 && o->w_zero_points != (size_t)columns))) ||
        (o->multipliers &&
         (!o->multiplier || (o->multipliers != 1 && o->multipliers != (size_t)columns))))
        return qs_fail(k->error, QSIM_E_ARGUMENT,
                       "w_zero_points and multipliers have to be 0, 1 or %lld", (long long)columns);
    int code = check_point(k, "x_zero_point", k->x->dtype, o->x_zero_point);
    for (size_t i = 0; i < o->w_zero_points && !code && !qs_stopped_at(k->ctx, i); i++)
        code = check_point(k, "w_zero_point", k->w->dtype, o->w_zero_point[i]);
    for (size_t i = 0; i < o->multipliers && !code && !qs_stopped_at(k->ctx, i); i++)
        if (!isfinite(o->multiplier[i]))
            code = qs_fail(k->error, QSIM_E_VALUE, "multiplier %zu is not finite", i);
    if (code || !o->multipliers)
        return code;
    if (o->lo == 0 && o->hi == 0) {
        o->lo = k->y->dtype == QSIM_INT8 ? -128 : 0;
        o->hi = o->lo + 255;
    }
    code = check_point(k, "y_zero_point", k->y->dtype, o->y_zero_point);
    if (!code)
        code = check_point(k, "lo", k->y->dtype, o->lo);
    if (!code)
        code = check_point(k, "hi", k->y->dtype, o->hi);
    if (!code && o->lo > o->hi)
        code = qs_fail(k->error, QSIM_E_VALUE, "lo is %d and hi %d", (int)o->lo, (int)o->hi);
    return code;
}

/* ---- execution ---- */

typedef struct matrices {
    size_t count, rows, columns;
} matrices;

/*
 * Copies matrices of rows x columns elements as columns x rows, with `flip` applied to their bytes.
 * Ends early where work has to end.
 */
static void turn(const layer *k, matrices m, const uint8_t *from, size_t size, int32_t flip,
                 uint8_t *to) {
    const size_t rows = m.rows, columns = m.columns;
    size_t i = 0;
    for (size_t n = 0; n < m.count; n++, to += rows * columns * size)
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++, i++) {
                if (qs_stopped_at(k->ctx, i))
                    return;
                if (size == 1)
                    to[c * rows + r] = (uint8_t)(from[i] ^ flip);
                else
                    memcpy(to + 4 * (c * rows + r), from + 4 * i, 4);
            }
}

/* Copies x as u8, channels last, followed by the readable bytes that kernels need. */
static uint8_t *import_x(const layer *k, size_t bytes) {
    uint8_t *to = bytes > SIZE_MAX - 64 ? NULL : qs_alloc(k->ctx, bytes + 64, 1);
    if (!to)
        return NULL;
    const size_t channels = k->swap ? (size_t)k->x->dims[1] : 1;
    const size_t images = k->swap ? (size_t)k->x->dims[0] : 1;
    const matrices m = {images, channels, bytes / images / channels};
    turn(k, m, k->x->data, 1, k->x_flip, to);
    memset(to + bytes, 0, 64);
    return to;
}

static void export_y(const layer *k, const uint8_t *from, size_t elements) {
    const size_t channels = k->swap ? (size_t)k->y->dims[1] : 1;
    const size_t images = k->swap ? (size_t)k->y->dims[0] : 1;
    const matrices m = {images, elements / images / channels, channels};
    turn(k, m, from, k->o.multipliers ? 1 : 4, k->y_flip, k->y->data);
}

static void make_rules(layer *k, uint8_t *points) {
    const qsim_op_options *o = &k->o;
    bool to_s8 = o->multipliers && k->y->dtype == QSIM_INT8;
    k->x_flip = k->x->dtype == QSIM_INT8 ? 0x80 : 0;
    k->y_flip = to_s8 ? 0x80 : 0;
    for (size_t i = 0; i < o->w_zero_points; i++)
        points[i] = (uint8_t)o->w_zero_point[i];
    k->source.w = k->w->data;
    k->source.ctx = k->ctx;
    k->source.flip = k->w->dtype == QSIM_UINT8 ? 0x80 : 0;
    k->w_zp = (qs_i8_list){o->w_zero_points ? points : NULL, (int32_t)o->w_zero_points,
                           k->w->dtype == QSIM_INT8};
    k->rules = (qs_i8_rules){.ctx = k->ctx,
                             .int32_out = !o->multipliers,
                             .w_scale = o->multiplier,
                             .w_scales = (int32_t)o->multipliers,
                             .mult = true,
                             .bias = o->bias,
                             .x_zp = o->x_zero_point + k->x_flip,
                             .y_zp = o->y_zero_point + k->y_flip,
                             .lo = o->lo + k->y_flip,
                             .hi = o->hi + k->y_flip};
    k->conv.x_zp = (uint8_t)k->rules.x_zp;
}

typedef struct buffers {
    uint8_t *points, *x, *y;
    void *weights, *epilogue, *scratch;
    int32_t *offset;
} buffers;

static int prove(layer *k, bool *clamp) {
    int32_t column = 0;
    int64_t bound = 0;
    if (k->rules.int32_out)
        return QSIM_OK;
    const size_t columns = (size_t)k->conv.w.groups * (size_t)k->conv.w.n;
    int64_t *sums = qs_alloc(k->ctx, columns, 2 * sizeof(*sums));
    if (!sums)
        return qs_fail(k->error, QSIM_E_NOMEM, "out of memory");
    const qs_i8_totals totals = {sums, sums + columns};
    qs_i8_sum_up(&k->conv.w, &k->source, k->group_stride, &k->w_zp, &totals);
    const bool fits =
        qs_stopped(k->ctx) || qs_i8_prove(&k->conv.w, &totals, &k->rules, clamp, &column, &bound);
    qs_free(k->ctx, sums);
    const int code = qs_go_on(k->ctx, k->name, k->error); /* a stop leaves the sums incomplete */
    if (fits || code)
        return code;
    return qs_fail(k->error, QSIM_E_UNSUPPORTED,
                   "sums of output channel %d may reach %lld and leave int32", (int)column,
                   (long long)bound);
}

static int prepare(layer *k, buffers *b, qs_i8_epilogue *e) {
    size_t weights, epilogue, scratch;
    bool clamp = true;
    int code = prove(k, &clamp);
    if (code)
        return code;
    qs_i8_choose(&k->conv.w, &k->w_zp, k->source.flip, true, k->rules.wide);
    if (!k->rules.int32_out && !clamp && k->conv.w.zero_points != QS_ZP_COLUMN)
        k->conv.w.result = QS_RESULT_BYTES;
    if (!qs_conv_i8_weights_layout(k->ctx->kernels->i8, &k->conv.w) ||
        !qs_i8_weights_bytes(&k->conv.w, &weights) || !qs_i8_epilogue_bytes(&k->conv.w, &epilogue))
        return qs_fail(k->error, QSIM_E_LIMIT, "the weights are too large");
    b->weights = qs_alloc(k->ctx, weights, 1);
    b->epilogue = qs_alloc(k->ctx, epilogue, 1);
    b->offset = qs_alloc(k->ctx, qs_conv_i8_offsets(&k->conv.w), sizeof(*b->offset));
    if (!b->weights || !b->epilogue || !b->offset)
        return qs_fail(k->error, QSIM_E_NOMEM, "out of memory");
    qs_i8_weights packed;
    qs_i8_weights_fill(&k->conv.w, &k->source, k->group_stride, &k->w_zp, NULL, b->weights,
                       &packed);
    qs_i8_epilogue_fill(&k->conv.w, &packed, &k->rules, b->epilogue, e);
    e->o.clamp = clamp;
    k->conv.b = packed.b;
    k->conv.w_zp = packed.row_zp;
    k->conv.o = e->o;
    k->conv.post = e->use_post ? &e->post : NULL;
    const size_t slices = qs_slice_count(k->ctx, SIZE_MAX, qs_conv_i8_ns(&k->conv));
    if (!qs_conv_i8_make_plan(&k->conv, (int32_t)slices, b->offset, &scratch) ||
        scratch > SIZE_MAX - 64)
        return qs_fail(k->error, QSIM_E_LIMIT, "the layer is too large");
    b->scratch = qs_alloc(k->ctx, scratch + 64, 1);
    return b->scratch ? QSIM_OK : qs_fail(k->error, QSIM_E_NOMEM, "out of memory");
}

static int run_buffers(layer *k, buffers *b) {
    qs_i8_epilogue e;
    size_t x_bytes = 0, y_elements = 0;
    qsim_tensor_size(QSIM_UINT8, k->x->rank, k->x->dims, NULL, &x_bytes);
    qsim_tensor_size(QSIM_UINT8, k->y->rank, k->y->dims, NULL, &y_elements);
    int code = qs_go_on(k->ctx, k->name, k->error);
    if (code)
        return code;
    b->points = qs_alloc(k->ctx, k->o.w_zero_points + 1, 1);
    if (!b->points)
        return qs_fail(k->error, QSIM_E_NOMEM, "out of memory");
    make_rules(k, b->points);
    code = prepare(k, b, &e);
    if (!code)
        code = qs_go_on(k->ctx, k->name, k->error);
    if (code)
        return code;
    b->x = import_x(k, x_bytes);
    b->y = qs_alloc(k->ctx, y_elements, k->o.multipliers ? 1 : 4);
    if (!b->x || !b->y)
        return qs_fail(k->error, QSIM_E_NOMEM, "out of memory");
    uint64_t saved = qs_fp_enter();
    qs_conv_i8_run(k->ctx, &k->conv, b->x, b->y, b->scratch, false);
    qs_fp_restore(saved);
    code = qs_go_on(k->ctx, k->name, k->error);
    if (code)
        return code;
    export_y(k, b->y, y_elements);
    return qs_go_on(k->ctx, k->name, k->error);
}

static int run_layer(layer *k) {
    buffers b = {0};
    const int code = run_buffers(k, &b);
    qs_free(k->ctx, b.points);
    qs_free(k->ctx, b.x);
    qs_free(k->ctx, b.y);
    qs_free(k->ctx, b.weights);
    qs_free(k->ctx, b.epilogue);
    qs_free(k->ctx, b.offset);
    qs_free(k->ctx, b.scratch);
    return qs_leave(k->ctx, code, k->error);
}

/* ---- the two layers ---- */

static int begin(layer *k, qsim_ctx *ctx, const qsim_op_options *options) {
    qs_error_clear(k->error);
    if (!ctx)
        return qs_fail(k->error, QSIM_E_ARGUMENT, "ctx is NULL");
    k->stop.outer = ctx->stop;
    qs_ctx_view(ctx, &k->stop, &k->view);
    k->ctx = &k->view;
    int code = QS_OPTIONS(k->o, options, k->error);
    if (!code && (k->o.flags & ~QSIM_OP_NHWC) != 0)
        code = qs_fail(k->error, QSIM_E_VERSION, "unknown flags %d", (int)k->o.flags);
    return code;
}

static int positive(const layer *k, const char *name, int32_t *v) {
    if (*v < 0)
        return qs_fail(k->error, QSIM_E_VALUE, "%s is %d", name, (int)*v);
    if (*v == 0)
        *v = 1;
    return QSIM_OK;
}

static int check_geometry(layer *k) {
    qsim_op_options *o = &k->o;
    int code = positive(k, "groups", &o->groups);
    if (!code)
        code = positive(k, "stride_h", &o->stride_h);
    if (!code)
        code = positive(k, "stride_w", &o->stride_w);
    if (!code)
        code = positive(k, "dilation_h", &o->dilation_h);
    if (!code)
        code = positive(k, "dilation_w", &o->dilation_w);
    if (!code && (o->pad_top < 0 || o->pad_left < 0 || o->pad_bottom < 0 || o->pad_right < 0))
        code = qs_fail(k->error, QSIM_E_VALUE, "a pad is negative");
    return code;
}

/* Size of an output axis; 0 if the kernel does not fit. */
static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                        int64_t before, int64_t after) {
    int64_t last = in + before + after - (kernel - 1) * dilation - 1;
    return last < 0 ? 0 : last / stride + 1;
}

static int conv_shapes(layer *k) {
    const qsim_op_options *o = &k->o;
    const int64_t *x = k->x->dims, *w = k->w->dims, *y = k->y->dims;
    int32_t c = k->swap ? 1 : 3, h = k->swap ? 2 : 1;
    if (x[c] % o->groups || w[0] % o->groups || x[c] / o->groups != w[1])
        return qs_fail(k->error, QSIM_E_SHAPE,
                       "%lld channels into %lld in %d groups: the weights take %lld each",
                       (long long)x[c], (long long)w[0], (int)o->groups, (long long)w[1]);
    int64_t ho = out_size(x[h], w[2], o->stride_h, o->dilation_h, o->pad_top, o->pad_bottom);
    int64_t wo = out_size(x[h + 1], w[3], o->stride_w, o->dilation_w, o->pad_left, o->pad_right);
    if (y[0] != x[0] || y[c] != w[0] || y[h] != ho || y[h + 1] != wo)
        return qs_fail(k->error, QSIM_E_SHAPE,
                       "y has to be %lld images of %lld x %lld with %lld channels", (long long)x[0],
                       (long long)ho, (long long)wo, (long long)w[0]);
    int64_t terms = w[1] * w[2], n = w[0] / o->groups;
    if (!qs_mul64(terms, w[3], &terms) || terms > INT32_MAX)
        return qs_fail(k->error, QSIM_E_LIMIT, "the kernel is too large");
    k->conv = (qs_conv_i8){.g = {.batch = x[0],
                                 .h = (int32_t)x[h],
                                 .wd = (int32_t)x[h + 1],
                                 .ho = (int32_t)ho,
                                 .wo = (int32_t)wo,
                                 .stride_h = o->stride_h,
                                 .stride_w = o->stride_w,
                                 .dilation_h = o->dilation_h,
                                 .dilation_w = o->dilation_w,
                                 .pad_top = o->pad_top,
                                 .pad_left = o->pad_left}};
    k->conv.w = (qs_conv_i8_weights){.groups = o->groups,
                                     .n = (int32_t)n,
                                     .kh = (int32_t)w[2],
                                     .kw = (int32_t)w[3],
                                     .c = (int32_t)w[1],
                                     .contiguous = o->dilation_w == 1,
                                     .stride_h = o->stride_h,
                                     .stride_w = o->stride_w};
    k->source = (qk_source_i8){.n = (int32_t)n,
                               .kh = (int32_t)w[2],
                               .kw = (int32_t)w[3],
                               .c = (int32_t)w[1],
                               .sn = terms,
                               .sy = w[3],
                               .sx = 1,
                               .sc = w[2] * w[3]};
    k->group_stride = terms * n;
    return QSIM_OK;
}

int qsim_conv2d(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                const qsim_op_options *options, const qsim_tensor *y, qsim_error *error) {
    layer k = {.name = "qsim_conv2d", .x = x, .w = w, .y = y, .error = error};
    int code = begin(&k, ctx, options);
    if (!code)
        code = check_tensors(&k, 4);
    if (!code)
        code = check_values(&k, w->dims[0]);
    if (!code)
        code = check_geometry(&k);
    k.swap = !(k.o.flags & QSIM_OP_NHWC);
    if (!code)
        code = conv_shapes(&k);
    return code ? code : run_layer(&k);
}

static bool has_geometry(const qsim_op_options *o) {
    return o->groups > 1 || o->stride_h > 1 || o->stride_w > 1 || o->dilation_h > 1 ||
           o->dilation_w > 1 || o->pad_top || o->pad_left || o->pad_bottom || o->pad_right;
}

int qsim_linear(qsim_ctx *ctx, const qsim_tensor *x, const qsim_tensor *w,
                const qsim_op_options *options, const qsim_tensor *y, qsim_error *error) {
    layer k = {.name = "qsim_linear", .x = x, .w = w, .y = y, .error = error};
    int code = begin(&k, ctx, options);
    if (!code)
        code = check_tensors(&k, 2);
    if (!code)
        code = check_values(&k, w->dims[0]);
    if (code)
        return code;
    if (has_geometry(&k.o))
        return qs_fail(error, QSIM_E_ARGUMENT, "a linear layer has no groups, strides or pads");
    if (x->dims[1] != w->dims[1] || y->dims[0] != x->dims[0] || y->dims[1] != w->dims[0])
        return qs_fail(error, QSIM_E_SHAPE, "x is %lld x %lld, w %lld x %lld, y %lld x %lld",
                       (long long)x->dims[0], (long long)x->dims[1], (long long)w->dims[0],
                       (long long)w->dims[1], (long long)y->dims[0], (long long)y->dims[1]);
    int32_t rows = (int32_t)x->dims[0], n = (int32_t)w->dims[0], terms = (int32_t)w->dims[1];
    k.conv = qs_i8_rows(rows);
    k.conv.w =
        (qs_conv_i8_weights){.groups = 1, .n = n, .kh = 1, .kw = 1, .c = terms, .contiguous = true};
    k.source = (qk_source_i8){.n = n, .kh = 1, .kw = 1, .c = terms, .sn = terms, .sc = 1};
    return run_layer(&k);
}
