/* SPDX-License-Identifier: MIT */
/* Slice and Pad: each axis of the result maps its indices to those of the input's axis. */
#include "op/rules.h"

/* Input index of index i of a result's axis. */
typedef enum axis_mode {
    AXIS_STEP, /* start + i * step */
    AXIS_FILL, /* i - lead; outside the input: the fill value */
    AXIS_EDGE,
    AXIS_REFLECT,
    AXIS_WRAP
} axis_mode;

typedef struct axis_map {
    axis_mode mode;
    int64_t start, step; /* of AXIS_STEP; a lead is -start */
    int64_t in, out;     /* sizes */
} axis_map;

/* Index in the input, or -1: the fill value. */
static int64_t axis_source(const axis_map *w, int64_t i) {
    int64_t j = w->start + i * w->step;
    if (j >= 0 && j < w->in)
        return j;
    switch (w->mode) {
    case AXIS_EDGE: return j < 0 ? 0 : w->in - 1;
    case AXIS_REFLECT: return j < 0 ? -j : 2 * (w->in - 1) - j;
    case AXIS_WRAP: j %= w->in; return j < 0 ? j + w->in : j;
    default: return -1;
    }
}

typedef struct select_params {
    int32_t rank;
    size_t element, rows;
    size_t from; /* bytes to add to the axes' starts */
    const axis_map *axes;
    size_t strides[QSIM_MAX_RANK]; /* of the input, in bytes */
    size_t first, run;             /* last axis: `run` contiguous elements from `first` on */
    uint64_t fill;
    int32_t value; /* index of the input with the fill value; 0: `fill` */
    bool filled;   /* the last axis consists of its run and fill values */
} select_params;

static void put(char *y, const char *x, size_t element) {
    switch (element) {
    case 1: *y = *x; break;
    case 2: memcpy(y, x, 2); break;
    case 4: memcpy(y, x, 4); break;
    default: memcpy(y, x, 8); break;
    }
}

QS_NOINLINE static void fill_row(const qsim_ctx *ctx, char *y, size_t n, const char *fill,
                                 size_t element) {
    const bool same = memcmp(fill, fill + 1, element - 1) == 0; /* all bytes are equal */
    for (size_t at = 0, count; (count = qs_piece(ctx, at, n)); at += count)
        if (same)
            memset(y + at * element, *fill, count * element);
        else
            for (size_t i = at; i < at + count; i++)
                put(y + i * element, fill, element);
}

/* Computes one row of the last axis; x NULL: the whole row is filled. */
static void select_row(const qsim_ctx *ctx, const select_params *p, const char *x, char *y,
                       const char *fill) {
    const axis_map *w = &p->axes[p->rank - 1];
    size_t n = (size_t)w->out, e = p->element, from = x ? p->first : n;
    if (!x) {
        fill_row(ctx, y, n, fill, e);
        return;
    }
    if (w->mode == AXIS_STEP && w->step != 1) {
        qs_copy_many_rows(ctx, x + w->start * (int64_t)e, (ptrdiff_t)w->step * (ptrdiff_t)e, y,
                          (ptrdiff_t)e, e, n);
        return;
    }
    if (p->filled) { /* fill values around the run */
        fill_row(ctx, y, from, fill, e);
        qs_copy(ctx, y + from * e, x + (size_t)axis_source(w, (int64_t)from) * e, p->run * e);
        fill_row(ctx, y + (from + p->run) * e, n - from - p->run, fill, e);
        return;
    }
    for (size_t i = 0; i < n && !qs_stopped_at(ctx, i); i++) {
        if (i == from && p->run) {
            qs_copy(ctx, y + i * e, x + (size_t)axis_source(w, (int64_t)i) * e, p->run * e);
            i += p->run - 1;
            continue;
        }
        int64_t j = axis_source(w, (int64_t)i);
        put(y + i * e, j < 0 ? fill : x + (size_t)j * e, e);
    }
}

typedef struct select_job {
    const qsim_ctx *ctx;
    const select_params *p;
    const char *x, *fill;
    char *y;
} select_job;

/* Address in the input of row r of the result; NULL: outside. */
static const char *row_at(const select_job *job, size_t r) {
    const select_params *p = job->p;
    size_t at = p->from;
    for (int32_t i = p->rank - 2; i >= 0; i--) {
        const int64_t j = axis_source(&p->axes[i], (int64_t)(r % (size_t)p->axes[i].out));
        r /= (size_t)p->axes[i].out;
        if (j < 0)
            return NULL;
        at += (size_t)j * p->strides[i];
    }
    return job->x + at;
}

#define FEW ((size_t)16) /* columns that are copied by themselves */

/* Copies rows at a constant step: their run, and around it fill values or column by column. */
static void select_rows(const qsim_ctx *ctx, const select_params *p, const char *x, char *y,
                        const char *fill, size_t rows) {
    const axis_map *last = &p->axes[p->rank - 1], *next = &p->axes[p->rank - 2];
    const size_t n = (size_t)last->out, e = p->element;
    const ptrdiff_t step = (ptrdiff_t)next->step * (ptrdiff_t)p->strides[p->rank - 2];
    if (p->filled && p->run < n)
        fill_row(ctx, y, n * rows, fill, e);
    for (size_t k = p->filled ? n : 0; k < n; k += k == p->first ? p->run : 1)
        if (k != p->first)
            qs_copy_many_rows(ctx, x + (size_t)axis_source(last, (int64_t)k) * e, step, y + k * e,
                              (ptrdiff_t)(n * e), e, rows);
    qs_copy_many_rows(ctx, x + (size_t)axis_source(last, (int64_t)p->first) * e, step,
                      y + p->first * e, (ptrdiff_t)(n * e), p->run * e, rows);
}

static void select_range(const void *arg, size_t begin, size_t end) {
    const select_job *job = arg;
    const select_params *p = job->p;
    const size_t out = (size_t)p->axes[p->rank - 1].out, row = out * p->element;
    const axis_map *next = p->rank > 1 ? &p->axes[p->rank - 2] : NULL;
    const bool few = p->filled || out - p->run <= FEW;
    const bool together = next && p->run > 0 && (p->run == out || (few && row < 1024));
    for (size_t r = begin, rows; r < end; r += rows) {
        const char *x = row_at(job, r);
        char *y = job->y + r * row;
        rows = 1;
        if (x && together) {
            const size_t at = r % (size_t)next->out, rest = (size_t)next->out - at;
            rows = rest < end - r ? rest : end - r;
            if (next->mode != AXIS_STEP) { /* up to the end of the input */
                const int64_t from = next->start + (int64_t)at, inside = next->in - from;
                const size_t most = from >= 0 && inside > 0 ? (size_t)inside : 1;
                rows = most < rows ? most : rows;
            }
            select_rows(job->ctx, p, x, y, job->fill, rows);
        } else {
            select_row(job->ctx, p, x, y, job->fill);
        }
    }
}

static void run_select(const qs_step *s, const qs_frame *f) {
    const select_params *p = s->params;
    const char *fill = p->value ? qs_step_in(s, f, p->value) : NULL;
    select_job job = {f->ctx, p, qs_step_in(s, f, 0), fill ? fill : (const char *)&p->fill,
                      qs_step_out(s, f, 0)};
    size_t row = (size_t)p->axes[p->rank - 1].out;
    qs_ranges(f->ctx, p->rows, QS_GRAIN / (row + 1) + 1, select_range, &job);
}

/* Finds the contiguous part of the last axis, w. */
static void find_run(select_params *p, const axis_map *w) {
    if (w->step != 1)
        return;
    int64_t first = w->start < 0 ? -w->start : 0, end = w->in - w->start;
    end = end > w->out ? w->out : end;
    if (first < end) {
        p->first = (size_t)first;
        p->run = (size_t)(end - first);
        p->filled = w->mode == AXIS_FILL;
    }
}

/* Whether a result is one run of bytes from *from on: single indices, a range, whole axes. */
QS_COLD static bool is_run(const select_params *p, const axis_map *axes, size_t *from) {
    bool whole = true, empty = false;
    *from = 0;
    for (int32_t i = p->rank - 1; i >= 0; i--) {
        const axis_map *w = &axes[i];
        if (w->out != 1 && (w->step != 1 || !whole))
            return false;
        whole = whole && w->start == 0 && w->out == w->in;
        empty = empty || w->out == 0;
        *from += (size_t)w->start * p->strides[i];
    }
    return !empty;
}

/*
 * Makes rows long: drops axes of one index, which only set a start, and merges whole axes with the
 * axis before them; elements of the last axis may then be any step apart.
 */
QS_COLD static void merge_axes(select_params *p, axis_map *axes) {
    int32_t n = 0;
    for (int32_t i = 0; i < p->rank; i++) {
        const axis_map w = axes[i];
        axis_map *last = n > 0 ? &axes[n - 1] : NULL;
        const bool whole = w.mode == AXIS_STEP && w.step == 1 && w.out == w.in;
        if (w.mode == AXIS_STEP && w.out == 1) {
            p->from += (size_t)w.start * p->strides[i];
        } else if (last && last->step == 1 && last->mode <= AXIS_FILL && whole &&
                   p->strides[n - 1] == p->strides[i] * (size_t)w.in) {
            *last =
                (axis_map){last->mode, last->start * w.in, 1, last->in * w.in, last->out * w.in};
            p->strides[n - 1] = p->strides[i];
        } else {
            p->strides[n] = p->strides[i];
            axes[n++] = w;
        }
    }
    if (n == 0 || (axes[n - 1].mode != AXIS_STEP && p->strides[n - 1] != p->element)) {
        p->strides[n] = p->element;
        axes[n++] = (axis_map){AXIS_STEP, 0, 1, 1, 1};
    }
    axis_map *last = &axes[n - 1];
    if (last->mode == AXIS_STEP) {
        const int64_t stride = last->in == 1 ? 1 : (int64_t)(p->strides[n - 1] / p->element);
        *last = (axis_map){AXIS_STEP, last->start * stride, last->step * stride, last->in * stride,
                           last->out};
    }
    p->rank = n;
    p->rows = 1;
    for (int32_t i = 0; i + 1 < n; i++)
        p->rows *= (size_t)axes[i].out;
    if (last->out == 0)
        p->rows = 0;
}

/* `views`: a result that is one run of the input's bytes becomes a view (qs_step). */
QS_COLD static int lower_select(qs_lower *l, const axis_map *axes, bool views) {
    const qs_value *x = qs_lower_in(l, 0);
    select_params *p = qs_lower_params(l, sizeof(*p));
    axis_map own[QSIM_MAX_RANK + 1];
    size_t from, stride = qs_dtype_bytes(x->dtype);
    if (!p)
        return QSIM_E_NOMEM;
    p->rank = x->rank;
    p->element = stride;
    for (int32_t i = x->rank - 1; i >= 0; i--) {
        own[i] = axes[i];
        /* axes that stay inside the input need no other mode */
        if (own[i].step == 1 && own[i].start >= 0 && own[i].out <= own[i].in - own[i].start)
            own[i].mode = AXIS_STEP;
        p->strides[i] = stride;
        stride *= (size_t)own[i].in;
    }
    if (views && is_run(p, own, &from)) {
        l->step->views = qs_arena_copy(l->arena, &from, sizeof(from));
        if (!l->step->views)
            return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    }
    merge_axes(p, own);
    find_run(p, &own[p->rank - 1]);
    p->axes = qs_arena_copy(l->arena, own, (size_t)p->rank * sizeof(*own));
    if (!p->axes)
        return qs_fail(l->error, QSIM_E_NOMEM, "out of memory");
    l->step->run = run_select;
    return QSIM_OK;
}

QS_COLD static int infer_select(const qs_infer *x, const axis_map *axes) {
    qs_dim dims[QSIM_MAX_RANK];
    const qs_value *in = x->in[0];
    for (int32_t i = 0; i < in->rank; i++) {
        bool same = axes[i].out < 0 && axes[i].in == -2; /* unchanged */
        dims[i] = same ? in->dims[i] : (qs_dim){axes[i].out, NULL};
    }
    return qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

/* Maps every axis to itself; in = -2 marks an unchanged axis of unknown size. */
static void whole_axes(const qs_value *v, axis_map *axes) {
    for (int32_t i = 0; i < v->rank; i++) {
        int64_t size = v->dims[i].size;
        axes[i] = (axis_map){AXIS_STEP, 0, 1, size < 0 ? -2 : size, size};
    }
}

/* ---- Slice ---- */

typedef struct slice_spec {
    int64_t starts[QSIM_MAX_RANK], ends[QSIM_MAX_RANK], axes[QSIM_MAX_RANK], steps[QSIM_MAX_RANK];
    int32_t count, given; /* of starts, QS_DYNAMIC: not constant; of axes */
} slice_spec;

QS_COLD static int slice_lists(const qs_infer *x, slice_spec *s, int32_t counts[4]) {
    static const char *const names[] = {"starts", "ends", "axes"};
    int64_t *const lists[] = {s->starts, s->ends, s->axes, s->steps};
    bool attrs = x->node->version < 10;
    int code = QSIM_OK;
    counts[3] = QS_ABSENT;
    for (int32_t i = 0; i < (attrs ? 3 : 4) && !code; i++)
        code = attrs ? qs_infer_attr_ints(x, names[i], lists[i], QSIM_MAX_RANK, &counts[i])
                     : qs_infer_ints(x, i + 1, lists[i], QSIM_MAX_RANK, &counts[i]);
    return code;
}

QS_COLD static int slice_read(const qs_infer *x, slice_spec *s) {
    int32_t counts[4];
    int code = slice_lists(x, s, counts);
    if (code)
        return code;
    if (counts[0] == QS_ABSENT || counts[1] == QS_ABSENT)
        return qs_infer_fail(x, QSIM_E_GRAPH, "starts or ends are missing");
    s->count = counts[0];
    for (int32_t i = 0; i < 4; i++)
        s->count = counts[i] == QS_DYNAMIC ? QS_DYNAMIC : s->count;
    for (int32_t i = 1; i < 4 && s->count >= 0; i++)
        if (counts[i] != QS_ABSENT && counts[i] != s->count)
            return qs_infer_fail(x, QSIM_E_SHAPE, "starts has %d elements, another list %d",
                                 (int)s->count, (int)counts[i]);
    for (int32_t i = 0; i < s->count; i++) {
        s->axes[i] = counts[2] == QS_ABSENT ? i : s->axes[i];
        s->steps[i] = counts[3] == QS_ABSENT ? 1 : s->steps[i];
        if (s->steps[i] == 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "a step of 0");
    }
    s->given = s->count < 0 ? counts[2] : s->count;
    return QSIM_OK;
}

/* Clamps v, which counts from the end if negative, to [lo, hi]. */
static int64_t slice_clamp(int64_t v, int64_t size, int64_t lo, int64_t hi) {
    if (v < 0)
        v = v < -size ? lo : v + size;
    return v < lo ? lo : v > hi ? hi : v;
}

static void slice_axis(axis_map *w, int64_t size, int64_t start, int64_t end, int64_t step) {
    bool back = step < 0;
    start = slice_clamp(start, size, 0, back ? size - 1 : size);
    end = slice_clamp(end, size, back ? -1 : 0, back ? size - 1 : size);
    int64_t span = back ? start - end : end - start;
    uint64_t by = back ? (uint64_t)0 - (uint64_t)step : (uint64_t)step;
    int64_t count = size > 0 && span > 0 ? (int64_t)(((uint64_t)span - 1) / by + 1) : 0;
    *w = (axis_map){AXIS_STEP, start, count > 1 ? step : 1, size, count};
}

QS_COLD static int slice_axes(const qs_infer *x, axis_map *axes) {
    slice_spec s;
    uint32_t mask = 0;
    const qs_value *in = x->in[0];
    int code = slice_read(x, &s);
    if (!code)
        code = qs_known_cut(x, s.axes, s.given, &mask);
    if (code)
        return code;
    whole_axes(in, axes);
    for (int32_t i = 0; i < in->rank; i++)
        if (s.count == QS_DYNAMIC && mask >> i & 1)
            axes[i] = (axis_map){AXIS_STEP, 0, 1, -1, -1};
    for (int32_t i = 0; i < s.count; i++) {
        int32_t axis = (int32_t)(s.axes[i] < 0 ? s.axes[i] + in->rank : s.axes[i]);
        int64_t size = in->dims[axis].size;
        bool whole = s.starts[i] == 0 && s.ends[i] >= INT32_MAX && s.steps[i] == 1;
        if (size < 0 && !whole)
            axes[axis] = (axis_map){AXIS_STEP, 0, 1, -1, -1};
        else if (size >= 0)
            slice_axis(&axes[axis], size, s.starts[i], s.ends[i], s.steps[i]);
    }
    return QSIM_OK;
}

QS_COLD static int infer_slice(qs_infer *x) {
    axis_map axes[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code && x->in[0]->rank < 0)
        return qs_infer_unknown(x, x->in[0]->dtype);
    if (!code)
        code = slice_axes(x, axes);
    return code ? code : infer_select(x, axes);
}

QS_COLD static int lower_slice(qs_lower *l) {
    axis_map axes[QSIM_MAX_RANK];
    qs_infer x;
    qs_lower_infer(l, &x);
    int code = slice_axes(&x, axes);
    return code ? code : lower_select(l, axes, true);
}

QS_COLD static int upgrade_slice(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    if (g->nodes[node].version >= 10 || to < 10)
        return QSIM_OK;
    int code = qs_upgrade_ints_to_input(g, node, "starts", 1, error);
    if (!code)
        code = qs_upgrade_ints_to_input(g, node, "ends", 2, error);
    return code ? code : qs_upgrade_ints_to_input(g, node, "axes", 3, error);
}

static const qs_attr_rule slice_attrs[] = {{"starts", QSIM_ATTR_INTS, 1, 9},
                                           {"ends", QSIM_ATTR_INTS, 1, 9},
                                           {"axes", QSIM_ATTR_INTS, 1, 9}};

QS_OP(slice, .name = "Slice", .min_in = 1, QS_ATTRS(slice_attrs),
      QS_MORE(QS_HISTORY(.later = {{10, 3, 5, 1}}, .upgrade = upgrade_slice)),
      .kind = QS_KIND_MOVEMENT, .traits = QS_MOVES | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4, .kernel = QS_KERNEL_SELECT,
      .infer = infer_slice, .lower = lower_slice);

/* ---- Pad ---- */

QS_COLD static int pad_mode(const qs_infer *x, axis_mode *mode) {
    static const axis_mode modes[] = {AXIS_FILL, AXIS_EDGE, AXIS_REFLECT, AXIS_WRAP};
    const bool wraps = x->node->version >= 19;
    int32_t which;
    const int code = qs_infer_word(
        x, "mode", wraps ? "constant|edge|reflect|wrap" : "constant|edge|reflect", &which);
    *mode = modes[which < 0 ? 0 : which];
    return code;
}

/* Reads pads: `count` / 2 leads, then as many tails, for the axes in `axes`. */
QS_COLD static int pad_read(const qs_infer *x, int64_t *pads, int32_t *count, int64_t *axes,
                            int32_t *axis_count) {
    *axis_count = QS_ABSENT;
    if (x->node->version < 11)
        return qs_infer_attr_ints(x, x->node->version < 2 ? "paddings" : "pads", pads,
                                  2 * QSIM_MAX_RANK, count);
    int code = qs_infer_ints(x, 1, pads, 2 * QSIM_MAX_RANK, count);
    if (!code && x->node->input_count > 3)
        code = qs_infer_ints(x, 3, axes, QSIM_MAX_RANK, axis_count);
    return code;
}

QS_COLD static int pad_axis(const qs_infer *x, axis_map *w, axis_mode mode, int64_t lead,
                            int64_t tail) {
    int64_t size = w->in, out = -1;
    if (size == -2) {
        *w = (axis_map){mode, 0, 1, lead || tail ? -1 : -2, -1};
        return QSIM_OK;
    }
    if (lead == INT64_MIN || !qs_add64(size, lead, &out) || !qs_add64(out, tail, &out) || out < 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "pads %lld and %lld around %lld", (long long)lead,
                             (long long)tail, (long long)size);
    if (mode == AXIS_REFLECT && (lead >= size || tail >= size) && (lead > 0 || tail > 0))
        return qs_infer_fail(x, QSIM_E_VALUE, "a reflection of %lld is wider than the axis of %lld",
                             (long long)(lead > tail ? lead : tail), (long long)size);
    if (mode != AXIS_FILL && size == 0 && out > 0)
        return qs_infer_fail(x, QSIM_E_VALUE, "an empty axis has nothing to repeat");
    *w = (axis_map){mode, -lead, 1, size, out};
    return QSIM_OK;
}

QS_COLD static int pad_axes(const qs_infer *x, axis_map *maps) {
    int64_t pads[2 * QSIM_MAX_RANK], axes[QSIM_MAX_RANK];
    int32_t count, given, rank = x->in[0]->rank;
    uint32_t mask;
    axis_mode mode = AXIS_FILL;
    int code = pad_mode(x, &mode);
    if (!code)
        code = pad_read(x, pads, &count, axes, &given);
    if (code)
        return code;
    if (count == QS_ABSENT)
        return qs_infer_fail(x, QSIM_E_GRAPH, "no pads are given");
    whole_axes(x->in[0], maps);
    if (count == QS_DYNAMIC || given == QS_DYNAMIC) {
        for (int32_t i = 0; i < rank; i++)
            maps[i] = (axis_map){mode, 0, 1, -1, -1};
        return QSIM_OK;
    }
    for (int32_t i = 0; i < rank && given == QS_ABSENT; i++)
        axes[i] = i;
    int32_t n = given == QS_ABSENT ? rank : given;
    code = qs_infer_axes(x, axes, n, rank, &mask);
    if (!code && count != 2 * n)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "%d pads for %d axes", (int)count, (int)n);
    for (int32_t i = 0; i < n && !code; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        code = pad_axis(x, &maps[axis], mode, pads[i], pads[i + n]);
    }
    return code;
}

QS_COLD static int infer_pad(qs_infer *x) {
    axis_map axes[QSIM_MAX_RANK];
    const qs_value *value = qs_infer_in(x, 2);
    int code = qs_infer_type(x, 0, x->node->version < 11 ? QS_T_REAL : QS_T_BYTES);
    if (!code)
        code = qs_infer_same_type(x, 0, 2);
    if (!code && value && value->rank > 0 && qs_dims_product(value->dims, 0, value->rank) != 1)
        code = qs_infer_fail(x, QSIM_E_SHAPE, "the fill value is not a scalar");
    if (!code && x->in[0]->rank < 0)
        return qs_infer_unknown(x, x->in[0]->dtype);
    if (!code)
        code = pad_axes(x, axes);
    return code ? code : infer_select(x, axes);
}

QS_COLD static int lower_pad(qs_lower *l) {
    axis_map axes[QSIM_MAX_RANK];
    qs_infer x;
    qs_lower_infer(l, &x);
    int code = pad_axes(&x, axes);
    if (!code)
        code = lower_select(l, axes, false);
    if (code)
        return code;
    select_params *p = (select_params *)(uintptr_t)l->step->params;
    float value = qs_node_float(l->node, "value", 0);
    double wide = (double)value;
    if (qs_lower_in(l, 0)->dtype == QSIM_DOUBLE)
        memcpy(&p->fill, &wide, sizeof(wide));
    else
        memcpy(&p->fill, &value, sizeof(value));
    p->value = qs_lower_in(l, 2) ? 2 : 0;
    return QSIM_OK;
}

QS_COLD static int upgrade_pad(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    int32_t version = g->nodes[node].version;
    if (version >= 11 || to < 11)
        return QSIM_OK;
    int code = qs_upgrade_ints_to_input(g, node, version < 2 ? "paddings" : "pads", 1, error);
    if (code || !qs_node_attr(&g->nodes[node], "value"))
        return code;
    bool wide = g->values[g->nodes[node].inputs[0]].dtype == QSIM_DOUBLE;
    float value = qs_node_float(&g->nodes[node], "value", 0);
    double d = (double)value;
    const qs_id fill = qs_upgrade_const(g, "pad_value", wide ? QSIM_DOUBLE : QSIM_FLOAT, 0, NULL,
                                        wide ? (const void *)&d : (const void *)&value);
    return qs_upgrade_input(g, node, "value", 2, fill, error);
}

static const qs_attr_rule pad_attrs[] = {{"paddings", QSIM_ATTR_INTS, 1, 1},
                                         {"pads", QSIM_ATTR_INTS, 2, 10},
                                         {"value", QSIM_ATTR_FLOAT, 1, 10},
                                         {"mode", QSIM_ATTR_STRING, 1, 0}};

/* Pad has integer types from version 11 on. */
static uint32_t pad_moves(const qs_graph *g, const qs_node *n) {
    (void)g;
    return n->version >= 11 ? QS_MOVES | QS_KEEPS : 0;
}

QS_OP(pad, .name = "Pad", .min_in = 1, QS_ATTRS(pad_attrs), .traits = QS_READS_EXACTLY,
      QS_MORE(QS_HISTORY(.later = {{11, 2, 3, 1}, {18, 2, 4, 1}}, .upgrade = upgrade_pad),
              .also = pad_moves),
      .shape_inputs = 1 << 1 | 1 << 3, .setting_inputs = 1 << 2, .kind = QS_KIND_MOVEMENT,
      .kernel = QS_KERNEL_SELECT, .infer = infer_pad, .lower = lower_pad);
