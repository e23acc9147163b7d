/* SPDX-License-Identifier: MIT */
#include "op/nn/window.h"

/* Index in a window's lists of axis i of the node's spatial axes. */
static int32_t slot_of(const qs_window *w, int32_t i) {
    return (i + 2 * QS_WINDOW_AXES - 1 - w->axes) % QS_WINDOW_AXES;
}

/* Reads a list of one positive number per axis. */
static int read_sizes(const qs_infer *x, const char *name, const qs_window *w,
                      int64_t out[QS_WINDOW_AXES]) {
    int64_t list[QS_WINDOW_AXES];
    int32_t count;
    int code = qs_infer_attr_ints(x, name, list, QS_WINDOW_AXES, &count);
    if (code || count == QS_ABSENT)
        return code;
    if (count != w->axes)
        return qs_infer_fail(x, QSIM_E_SHAPE, "attribute %s has %d elements for %d spatial axes",
                             name, (int)count, (int)w->axes);
    for (int32_t i = 0; i < count; i++) {
        if (list[i] < 1 || list[i] > QS_WINDOW_LIMIT)
            return qs_infer_fail(x, QSIM_E_VALUE, "attribute %s has the element %lld", name,
                                 (long long)list[i]);
        out[slot_of(w, i)] = list[i];
    }
    return QSIM_OK;
}

static int read_pads(const qs_infer *x, qs_window *w) {
    int64_t list[2 * QS_WINDOW_AXES];
    int32_t count;
    int code = qs_infer_attr_ints(x, "pads", list, 2 * QS_WINDOW_AXES, &count);
    if (code || count == QS_ABSENT)
        return code;
    if (count != 2 * w->axes)
        return qs_infer_fail(x, QSIM_E_SHAPE, "attribute pads has %d elements for %d spatial axes",
                             (int)count, (int)w->axes);
    for (int32_t i = 0; i < count; i++) {
        if (list[i] < 0 || list[i] > QS_WINDOW_LIMIT)
            return qs_infer_fail(x, QSIM_E_VALUE, "attribute pads has the element %lld",
                                 (long long)list[i]);
        if (i < w->axes)
            w->before[slot_of(w, i)] = list[i];
        else
            w->after[slot_of(w, i - w->axes)] = list[i];
    }
    return QSIM_OK;
}

static int read_kernel(const qs_infer *x, const qs_dim *kernel, qs_window *w) {
    int code = read_sizes(x, "kernel_shape", w, w->kernel);
    if (code)
        return code;
    bool given = qs_node_attr(x->node, "kernel_shape") != NULL;
    if (!given && !kernel)
        return qs_infer_fail(x, QSIM_E_GRAPH, "attribute '%s' is missing", "kernel_shape");
    for (int32_t i = 0; kernel && i < w->axes; i++) {
        int64_t *k = &w->kernel[slot_of(w, i)];
        if (given && kernel[i].size >= 0 && kernel[i].size != *k)
            return qs_infer_fail(x, QSIM_E_SHAPE, "kernel_shape is %lld but the weights have %lld",
                                 (long long)*k, (long long)kernel[i].size);
        if (!given)
            *k = kernel[i].size;
        if (*k == 0 || *k > QS_WINDOW_LIMIT)
            return qs_infer_fail(x, QSIM_E_SHAPE, "the kernel's axis %d is %lld", (int)i,
                                 (long long)*k);
    }
    return QSIM_OK;
}

/* Computes output size and padding of one axis. */
static int size_axis(const qs_infer *x, qs_window *w, int32_t i, bool same, bool lower) {
    if (w->in[i] < 0 || w->kernel[i] < 0) {
        w->out[i] = -1;
        return QSIM_OK;
    }
    int64_t in = w->in[i], s = w->stride[i], span = 0;
    if (in > QS_WINDOW_LIMIT)
        return qs_infer_fail(x, QSIM_E_LIMIT, "axis of size %lld", (long long)in);
    span = (w->kernel[i] - 1) * w->dilation[i] + 1;
    if (same && span > QS_WINDOW_LIMIT)
        return qs_infer_fail(x, QSIM_E_LIMIT, "the window spans %lld elements", (long long)span);
    if (same) {
        w->out[i] = (in + s - 1) / s;
        int64_t total = (w->out[i] - 1) * s + span - in;
        total = total > 0 ? total : 0;
        w->before[i] = lower ? total - total / 2 : total / 2;
        w->after[i] = total - w->before[i];
        return QSIM_OK;
    }
    int64_t last = in + w->before[i] + w->after[i] - span;
    if (last < 0 && !(w->ceil_mode && last + s > 0)) /* up to -1 + 1 windows */
        return qs_infer_fail(x, QSIM_E_SHAPE,
                             "the window spans %lld elements of an axis that has %lld with padding",
                             (long long)span, (long long)(last + span));
    w->out[i] = (w->ceil_mode ? last + s - 1 : last) / s + 1;
    /* The last window has to begin inside the image or the padding before it. */
    if (w->ceil_mode && (w->out[i] - 1) * s >= in + w->before[i])
        w->out[i]--;
    if (w->out[i] > QS_WINDOW_LIMIT)
        return qs_infer_fail(x, QSIM_E_LIMIT, "axis of size %lld", (long long)w->out[i]);
    return QSIM_OK;
}

static int read_input(const qs_infer *x, int32_t index, qs_window *w) {
    const qs_value *v = qs_infer_in(x, index);
    w->axes = v->rank - 2;
    if (w->axes < 1 || w->axes > QS_WINDOW_AXES)
        return qs_infer_fail(x, v->rank < 3 ? QSIM_E_SHAPE : QSIM_E_UNSUPPORTED,
                             "input %d has rank %d; 3 to 5 are supported", (int)index,
                             (int)v->rank);
    w->channels_last = qs_node_int(x->node, "channels_last", 0) != 0;
    w->batch = v->dims[0];
    w->channels = v->dims[w->channels_last ? v->rank - 1 : 1];
    for (int32_t i = 0; i < QS_WINDOW_AXES; i++) {
        w->kernel[i] = w->stride[i] = w->dilation[i] = w->in[i] = 1;
        w->before[i] = w->after[i] = 0;
    }
    for (int32_t i = 0; i < w->axes; i++)
        w->in[slot_of(w, i)] = v->dims[i + (w->channels_last ? 1 : 2)].size;
    return QSIM_OK;
}

int qs_window_infer(const qs_infer *x, int32_t index, const qs_dim *kernel, qs_window *w) {
    memset(w, 0, sizeof(*w));
    int code = read_input(x, index, w);
    if (!code)
        code = read_kernel(x, kernel, w);
    if (!code)
        code = read_sizes(x, "strides", w, w->stride);
    if (!code)
        code = read_sizes(x, "dilations", w, w->dilation);
    if (code)
        return code;
    w->ceil_mode = qs_node_int(x->node, "ceil_mode", 0) != 0;
    int32_t pad;
    code = qs_infer_word(x, "auto_pad", QS_AUTO_PADS, &pad);
    const bool lower = pad == QS_PAD_LOWER, same = lower || pad == QS_PAD_UPPER;
    if (!code && !same && pad != QS_PAD_VALID)
        code = read_pads(x, w);
    for (int32_t i = 0; i < QS_WINDOW_AXES; i++)
        w->out[i] = 1;
    for (int32_t i = 0; i < w->axes && !code; i++)
        code = size_axis(x, w, slot_of(w, i), same, lower);
    return code;
}

int32_t qs_window_dims(const qs_window *w, qs_dim channels, qs_dim dims[QS_WINDOW_AXES + 2]) {
    int32_t rank = w->axes + 2, first = w->channels_last ? 1 : 2;
    dims[0] = w->batch;
    dims[w->channels_last ? rank - 1 : 1] = channels;
    for (int32_t i = 0; i < w->axes; i++)
        dims[first + i] = (qs_dim){w->out[slot_of(w, i)], NULL};
    return rank;
}

/* Checks channels and groups against weights. */
QS_COLD static int check_groups(const qs_infer *x, const qs_window *window, const qs_value *w) {
    const int64_t group = qs_node_int(x->node, "group", 1);
    const int64_t c = window->channels.size, cg = w->dims[1].size, m = w->dims[0].size;
    if (group < 1 || (m >= 0 && m % group != 0))
        return qs_infer_fail(x, QSIM_E_VALUE, "group is %lld for %lld output channels",
                             (long long)group, (long long)m);
    if (c >= 0 && cg >= 0 && (c % group != 0 || c / group != cg))
        return qs_infer_fail(
            x, QSIM_E_SHAPE,
            "the input has %lld channels, but the weights take %lld in each of %lld groups",
            (long long)c, (long long)cg, (long long)group);
    return QSIM_OK;
}

QS_COLD int qs_window_convolve(const qs_infer *x, int32_t image, int32_t weights, int32_t bias,
                               int32_t dtype) {
    const qs_value *v = qs_infer_in(x, image), *w = qs_infer_in(x, weights);
    qs_window window;
    if (v->rank < 0 || w->rank < 0)
        return qs_infer_unknown(x, dtype);
    int code = qs_infer_rank(x, weights, v->rank);
    if (!code)
        code = qs_window_infer(x, image, w->dims + 2, &window);
    if (!code)
        code = check_groups(x, &window, w);
    if (!code && bias >= 0)
        code = qs_infer_list(x, bias, w->dims[0].size);
    if (code)
        return code;
    qs_dim dims[QS_WINDOW_AXES + 2];
    const int32_t rank = qs_window_dims(&window, w->dims[0], dims);
    return qs_infer_out(x, 0, dtype, rank, dims);
}

int qs_window_into(const qs_infer *x, int32_t index) {
    const qs_value *over = x->node->input_count > index ? x->in[index] : NULL;
    const int32_t rank = x->out[0].rank;
    const int64_t into = qs_node_int(x->node, "into", 0);
    const int64_t column = qs_node_int(x->node, "column", 0);
    qs_dim dims[QSIM_MAX_RANK];
    if (into == 0 || rank < 3)
        return QSIM_OK;
    qs_value_dims(&x->out[0], dims);
    bool fits = column >= 0 && column <= into && dims[rank - 1].size <= into - column;
    dims[rank - 1] = (qs_dim){into, NULL};
    fits = fits && (!over || over->rank < 0 || over->rank == rank);
    for (int32_t i = 0; fits && over && i < rank && over->rank == rank; i++)
        fits = over->dims[i].size < 0 || dims[i].size < 0 || over->dims[i].size == dims[i].size;
    return fits ? qs_infer_out(x, 0, x->out[0].dtype, rank, dims)
                : qs_infer_fail(x, QSIM_E_SHAPE, "the results do not fit the tensor they go into");
}

qs_geometry qs_window_geometry(const qs_window *w) {
    return (qs_geometry){.n = (size_t)w->batch.size,
                         .c = (size_t)w->channels.size,
                         .h = (size_t)w->in[0],
                         .w = (size_t)w->in[1],
                         .oh = (size_t)w->out[0],
                         .ow = (size_t)w->out[1],
                         .sh = (size_t)w->stride[0],
                         .sw = (size_t)w->stride[1],
                         .dh = (size_t)w->dilation[0],
                         .dw = (size_t)w->dilation[1],
                         .top = (size_t)w->before[0],
                         .left = (size_t)w->before[1]};
}
