/* SPDX-License-Identifier: MIT */
/*
 * Col2Im, which adds the columns of windows up to an image, and MaxUnpool, which puts maxima back
 * at MaxPool's indices.
 */
#include "op/elementwise/dense.h"
#include "op/rules.h"

#define LIST (2 * QSIM_MAX_RANK)

/* Reads a list of `count` numbers, none below `least`; `fallback` if the attribute is absent. */
QS_COLD static int read_list(const qs_infer *x, const char *name, int32_t count, int64_t least,
                             int64_t fallback, int64_t *out) {
    int32_t found;
    int code = qs_infer_attr_ints(x, name, out, LIST, &found);
    for (int32_t i = 0; found == QS_ABSENT && i < count; i++)
        out[i] = fallback;
    if (!code && found != QS_ABSENT && found != count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "attribute %s has %d elements, expected %d", name,
                             (int)found, (int)count);
    for (int32_t i = 0; i < count && !code; i++)
        if (out[i] < least || out[i] > INT32_MAX)
            return qs_infer_fail(x, QSIM_E_VALUE, "attribute %s has the element %lld", name,
                                 (long long)out[i]);
    return code;
}

/* ---- Col2Im ---- */

#define FOLD_AXES (QSIM_MAX_RANK - 2)

typedef struct fold_axis {
    int64_t size, block, stride, dilation, before, after, steps;
} fold_axis;

typedef struct fold_form {
    int32_t axes;
    int64_t area, blocks, steps; /* products over the axes */
    fold_axis a[FOLD_AXES];
} fold_form;

QS_COLD static int size_fold(const qs_infer *x, fold_form *f) {
    f->area = f->blocks = f->steps = 1;
    for (int32_t i = 0; i < f->axes; i++) {
        fold_axis *a = &f->a[i];
        if (a->size < 0 || a->size > INT32_MAX || a->block < 1 || a->block > INT32_MAX)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d: an image of %lld, a block of %lld",
                                 (int)i, (long long)a->size, (long long)a->block);
        const int64_t span = (a->block - 1) * a->dilation + 1;
        const int64_t last = a->size + a->before + a->after - span;
        if (last < 0)
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d: a block spans %lld of %lld", (int)i,
                                 (long long)span, (long long)(last + span));
        a->steps = last / a->stride + 1;
        if (!qs_mul64(f->area, a->size, &f->area) || !qs_mul64(f->blocks, a->block, &f->blocks) ||
            !qs_mul64(f->steps, a->steps, &f->steps))
            return qs_infer_fail(x, QSIM_E_LIMIT, "the image is too large");
    }
    return QSIM_OK;
}

/* Reads sizes and attributes; *known: whether the shapes are constant. */
QS_COLD static int read_fold(const qs_infer *x, fold_form *f, bool *known) {
    int64_t image[LIST], block[LIST], strides[LIST], dilations[LIST], pads[LIST];
    int32_t count, of_block;
    int code = qs_infer_ints(x, 1, image, FOLD_AXES, &count);
    if (!code)
        code = qs_infer_ints(x, 2, block, FOLD_AXES, &of_block);
    *known = !code && count != QS_DYNAMIC && of_block != QS_DYNAMIC;
    if (code || !*known)
        return code;
    if (count != of_block || count < 1)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the image has %d axes, the block %d", (int)count,
                             (int)of_block);
    f->axes = count;
    code = read_list(x, "strides", count, 1, 1, strides);
    if (!code)
        code = read_list(x, "dilations", count, 1, 1, dilations);
    if (!code)
        code = read_list(x, "pads", 2 * count, 0, 0, pads);
    for (int32_t i = 0; i < count && !code; i++)
        f->a[i] =
            (fold_axis){image[i], block[i], strides[i], dilations[i], pads[i], pads[count + i], 0};
    return code ? code : size_fold(x, f);
}

QS_COLD static int infer_col2im(qs_infer *x) {
    const qs_value *v = x->in[0];
    fold_form f = {0};
    bool known;
    qs_dim dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_ARITH);
    if (!code)
        code = qs_infer_rank(x, 0, 3);
    if (!code)
        code = read_fold(x, &f, &known);
    if (code || !known || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    const int64_t rows = v->dims[1].size, columns = v->dims[2].size;
    if ((rows >= 0 && rows % f.blocks) || (columns >= 0 && columns != f.steps))
        return qs_infer_fail(
            x, QSIM_E_SHAPE, "%lld x %lld columns, expected channels of %lld x %lld",
            (long long)rows, (long long)columns, (long long)f.blocks, (long long)f.steps);
    dims[0] = v->dims[0];
    dims[1] = (qs_dim){rows < 0 ? -1 : rows / f.blocks, NULL};
    for (int32_t i = 0; i < f.axes; i++)
        dims[2 + i] = (qs_dim){f.a[i].size, NULL};
    return qs_infer_out(x, 0, v->dtype, f.axes + 2, dims);
}

typedef struct fold_params {
    fold_form f;
    size_t planes;
    qs_dense add;
} fold_params;

typedef struct fold_job {
    const qsim_ctx *ctx;
    const fold_params *p;
    const uint8_t *x;
    uint8_t *y;
} fold_job;

/* Place of entry `block` of a window at `step` along an axis; negative or from a->size on: outside.
 */
QS_COLD static int64_t place_along(const fold_axis *a, int64_t block, int64_t step) {
    return step * a->stride + block * a->dilation - a->before;
}

/*
 * Index in the image where row `row` of the steps begins for entry `block` of the window, the last
 * axis left out; -1: outside. A row runs along the last axis.
 */
QS_COLD static int64_t place_of(const fold_form *f, int64_t block, int64_t row) {
    const int32_t last = f->axes - 1;
    int64_t at = 0, unit = f->a[last].size;
    block /= f->a[last].block;
    for (int32_t i = last; i-- > 0;) {
        const fold_axis *a = &f->a[i];
        const int64_t k = place_along(a, block % a->block, row % a->steps);
        if (k < 0 || k >= a->size)
            return -1;
        at += k * unit;
        unit *= a->size;
        row /= a->steps;
        block /= a->block;
    }
    return at;
}

/* Adds n numbers to places of the image that are a stride of the last axis apart. */
QS_COLD static void add_row(const fold_params *p, uint8_t *y, const uint8_t *x, size_t n) {
    const size_t stride = (size_t)p->f.a[p->f.axes - 1].stride, bytes = p->add.from;
    const size_t together = stride == 1 ? n : 1;
    for (size_t i = 0; i < n; i += together) {
        uint8_t *at = y + i * stride * bytes;
        qs_dense_run(&p->add, at, 1, x + i * bytes, 1, at, together);
    }
}

/* Adds entry `block` of all windows of one plane. */
QS_COLD static void fold_block(const fold_job *j, int64_t block, const uint8_t *x, uint8_t *y) {
    const fold_form *f = &j->p->f;
    const fold_axis *a = &f->a[f->axes - 1];
    const int64_t bytes = (int64_t)j->p->add.from;
    int64_t begin = 0, end = a->steps; /* the steps whose entry is in the image */
    while (begin < end && place_along(a, block % a->block, begin) < 0)
        begin++;
    while (begin < end && place_along(a, block % a->block, end - 1) >= a->size)
        end--;
    const int64_t first = place_along(a, block % a->block, begin);
    size_t done = 0;
    for (int64_t row = 0; row < f->steps / a->steps; row++) {
        const int64_t at = place_of(f, block, row);
        if (qs_stopped_after(j->ctx, &done, (size_t)((end - begin) * bytes)))
            return;
        if (at >= 0 && begin < end)
            add_row(j->p, y + (at + first) * bytes, x + (row * a->steps + begin) * bytes,
                    (size_t)(end - begin));
    }
}

QS_COLD static void fold_range(const void *arg, size_t begin, size_t end) {
    const fold_job *j = arg;
    const fold_form *f = &j->p->f;
    const size_t bytes = j->p->add.from;
    for (size_t plane = begin; plane < end; plane++) {
        uint8_t *y = j->y + plane * (size_t)f->area * bytes;
        const uint8_t *x = j->x + plane * (size_t)(f->blocks * f->steps) * bytes;
        memset(y, 0, (size_t)f->area * bytes);
        for (int64_t b = 0; b < f->blocks && !qs_stopped(j->ctx); b++)
            fold_block(j, b, x + (size_t)(b * f->steps) * bytes, y);
    }
}

QS_COLD static void run_col2im(const qs_step *s, const qs_frame *f) {
    const fold_params *p = s->params;
    const fold_job j = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    const size_t work = (size_t)(p->f.blocks * p->f.steps) * 8;
    qs_ranges(f->ctx, p->planes, 1 + QS_GRAIN / (1 + work), fold_range, &j);
}

QS_COLD static int lower_col2im(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    qs_infer x;
    bool known;
    fold_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    int code = read_fold(&x, &p->f, &known);
    p->planes = (size_t)qs_dims_product(y->dims, 0, 2);
    p->add = qs_dense_of(&qs_dense_plus, v->dtype);
    l->step->run = run_col2im;
    return code;
}

static const qs_attr_rule fold_attrs[] = {{"dilations", QSIM_ATTR_INTS, 18, 0},
                                          {"pads", QSIM_ATTR_INTS, 18, 0},
                                          {"strides", QSIM_ATTR_INTS, 18, 0}};

QS_OP(col2im, .name = "Col2Im", .since = 18, .min_in = 3, QS_ATTRS(fold_attrs), .traits = QS_PLAIN,
      .shape_inputs = 1 << 1 | 1 << 2, .kernel = QS_KERNEL_COL2IM, .infer = infer_col2im,
      .lower = lower_col2im);

/* ---- MaxUnpool ---- */

/* Reads the sizes of the result: output_shape, or those that the windows cover. */
QS_COLD static int unpooled_dims(const qs_infer *x, const qs_value *v, qs_dim *dims, bool *known) {
    int64_t kernel[LIST], strides[LIST], pads[LIST], given[LIST];
    int32_t count;
    const int32_t axes = v->rank - 2;
    int code = qs_infer_ints(x, 2, given, LIST, &count);
    if (!code && !qs_node_attr(x->node, "kernel_shape"))
        return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "kernel_shape");
    code = code ? code : read_list(x, "kernel_shape", axes, 1, 1, kernel);
    code = code ? code : read_list(x, "strides", axes, 1, 1, strides);
    code = code ? code : read_list(x, "pads", 2 * axes, 0, 0, pads);
    *known = count != QS_DYNAMIC;
    if (code || !*known)
        return code;
    if (count != QS_ABSENT && count != v->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "output_shape has %d sizes of a tensor of rank %d",
                             (int)count, (int)v->rank);
    for (int32_t i = 0; i < v->rank; i++) {
        int64_t size = v->dims[i].size;
        dims[i] = v->dims[i];
        if (count == QS_ABSENT && (i < 2 || size < 0))
            continue;
        if (size > INT32_MAX && i >= 2)
            return qs_infer_fail(x, QSIM_E_LIMIT, "axis of size %lld", (long long)size);
        if (count == QS_ABSENT)
            size = (size - 1) * strides[i - 2] + kernel[i - 2] - pads[i - 2] - pads[axes + i - 2];
        else
            size = given[i];
        if (size < 0 || (i < 2 && v->dims[i].size >= 0 && v->dims[i].size != size))
            return qs_infer_fail(x, QSIM_E_SHAPE, "axis %d of the result has size %lld", (int)i,
                                 (long long)size);
        dims[i] = (qs_dim){size, NULL};
    }
    return QSIM_OK;
}

QS_COLD static int infer_maxunpool(qs_infer *x) {
    const qs_value *v = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    bool known = true;
    int code = qs_infer_type(x, 0, QS_T_REAL);
    if (!code)
        code = qs_infer_type(x, 1, QS_T(QSIM_INT64));
    if (!code)
        code = qs_infer_least_rank(x, 0, 3);
    if (code || v->rank < 0)
        return code ? code : qs_infer_unknown(x, v->dtype);
    code = qs_infer_rank(x, 1, v->rank);
    for (int32_t i = 0; i < v->rank && !code; i++)
        code = qs_infer_size(x, 1, i, v->dims[i].size);
    if (!code)
        code = unpooled_dims(x, v, dims, &known);
    for (int32_t i = 0; !known && i < v->rank; i++)
        dims[i] = i < 2 ? v->dims[i] : (qs_dim){-1, NULL};
    return code ? code : qs_infer_out(x, 0, v->dtype, v->rank, dims);
}

typedef struct unpool_params {
    size_t count, bytes, results;
    int32_t rank;
    int64_t from[QSIM_MAX_RANK],
        to[QSIM_MAX_RANK]; /* sizes of the tensor that was pooled, and of the result */
} unpool_params;

/*
 * Converts an index into the tensor that was pooled to an index into the result, which output_shape
 * may make larger; -1: outside.
 */
QS_COLD static int64_t unpooled_index(const unpool_params *p, int64_t at) {
    int64_t to = 0, unit = 1;
    for (int32_t i = p->rank; i-- > 0; at /= p->from[i]) {
        if (p->from[i] == 0 || at < 0 || at % p->from[i] >= p->to[i])
            return -1;
        to += at % p->from[i] * unit;
        unit *= p->to[i];
    }
    return at == 0 ? to : -1;
}

/* Writes maxima in order: of two at one index the later one remains. */
QS_COLD static void run_maxunpool(const qs_step *s, const qs_frame *f) {
    const unpool_params *p = s->params;
    const uint8_t *x = qs_step_in(s, f, 0);
    const int64_t *at = qs_step_in(s, f, 1);
    uint8_t *y = qs_step_out(s, f, 0);
    memset(y, 0, p->results * p->bytes);
    for (size_t i = 0; i < p->count && !qs_stopped_at(f->ctx, i); i++) {
        const int64_t to = unpooled_index(p, at[i]);
        if (to >= 0)
            memcpy(y + (size_t)to * p->bytes, x + i * p->bytes, p->bytes);
        else
            qs_step_outside(f, "index", at[i], 0, (int64_t)p->results, -1);
    }
}

QS_COLD static int lower_maxunpool(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    int64_t kernel[LIST], strides[LIST], pads[LIST];
    qs_infer x;
    unpool_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    qs_lower_infer(l, &x);
    const int32_t axes = v->rank - 2;
    int code = read_list(&x, "kernel_shape", axes, 1, 1, kernel);
    code = code ? code : read_list(&x, "strides", axes, 1, 1, strides);
    code = code ? code : read_list(&x, "pads", 2 * axes, 0, 0, pads);
    for (int32_t i = 0; i < v->rank && !code; i++) {
        p->from[i] = v->dims[i].size;
        p->to[i] = y->dims[i].size;
        if (i >= 2)
            p->from[i] = (p->from[i] - 1) * strides[i - 2] + kernel[i - 2] - pads[i - 2] -
                         pads[axes + i - 2];
    }
    p->rank = v->rank;
    p->count = qs_value_elements(v);
    p->results = qs_value_elements(y);
    p->bytes = qs_dtype_bytes(v->dtype);
    l->step->run = run_maxunpool;
    return code;
}

static const qs_attr_rule unpool_attrs[] = {{"kernel_shape", QSIM_ATTR_INTS, 9, 0},
                                            {"pads", QSIM_ATTR_INTS, 9, 0},
                                            {"strides", QSIM_ATTR_INTS, 9, 0}};

QS_OP(maxunpool, .name = "MaxUnpool", .since = 9, .min_in = 2, .max_in = 3, QS_ATTRS(unpool_attrs),
      .traits = QS_PLAIN, .setting_inputs = 1 << 1, .shape_inputs = 1 << 2,
      .kernel = QS_KERNEL_UNPOOL, .infer = infer_maxunpool, .lower = lower_maxunpool);
