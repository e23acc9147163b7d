/* SPDX-License-Identifier: MIT */
/* Tile: repeats the input along every axis. Expand: repeats axes of size 1, by broadcasting. */
#include "op/rules.h"

#include "base/ctx.h"

/* A constant of one number, which version 1 gives in the input's type; QS_DYNAMIC: none. */
QS_COLD static int64_t number(const qs_graph *g, const qs_node *n, int32_t index) {
    const qs_const *c = qs_node_const(g, n, index);
    float v;
    if (!c || c->elements != 1 || c->dtype != QSIM_FLOAT)
        return QS_DYNAMIC;
    memcpy(&v, c->data, sizeof(v));
    return v >= 0 && v < 1e9f ? (int64_t)v : QS_DYNAMIC;
}

/* Version 1 has a number of tiles and an axis in place of the list. False: not constants. */
QS_COLD static bool read_first(const qs_graph *g, const qs_node *n, int32_t rank,
                               int64_t *repeats) {
    const int64_t tiles = number(g, n, 1), axis = number(g, n, 2);
    for (int32_t i = 0; i < rank; i++)
        repeats[i] = i == axis ? tiles : 1;
    return tiles >= 0 && axis >= 0 && axis < rank;
}

QS_COLD static int upgrade_tile(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    int64_t repeats[QSIM_MAX_RANK], rank = g->values[g->nodes[node].inputs[0]].rank;
    if (to < 6 || g->nodes[node].version >= 6)
        return QSIM_OK;
    if (!read_first(g, &g->nodes[node], (int32_t)rank, repeats))
        return qs_fail(error, QSIM_E_UNSUPPORTED, "Tile '%s': unknown rank", g->nodes[node].name);
    const qs_id list = qs_upgrade_const(g, "repeats", QSIM_INT64, 1, &rank, repeats);
    if (list < 0)
        return qs_op_no_memory(error);
    qs_node_set_input(g, node, 1, list);
    qs_node_set_input(g, node, 2, QS_NONE);
    g->nodes[node].input_count = 2;
    return QSIM_OK;
}

static int infer_tile(qs_infer *x) {
    const qs_value *in = x->in[0];
    int64_t repeats[QSIM_MAX_RANK];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t count = in->rank;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code && x->node->version >= 6)
        code = qs_infer_ints(x, 1, repeats, QSIM_MAX_RANK, &count);
    else if (!code && in->rank >= 0 && !read_first(x->graph, x->node, in->rank, repeats))
        code = qs_infer_fail(x, QSIM_E_UNSUPPORTED, "tiles and axis are no float constants");
    if (code || in->rank < 0)
        return code ? code : qs_infer_unknown(x, in->dtype);
    if (count >= 0 && count != in->rank)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d repeats for an input of rank %d", (int)count,
                             (int)in->rank);
    for (int32_t i = 0; i < in->rank; i++) {
        const int64_t size = in->dims[i].size, times = count < 0 ? -1 : repeats[i];
        if (count >= 0 && times < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d is repeated %lld times", (int)i,
                                 (long long)times);
        dims[i] = times == 1 ? in->dims[i] : (qs_dim){-1, NULL};
        if (size >= 0 && times >= 0 && !qs_mul64(size, times, &dims[i].size))
            return qs_infer_fail(x, QSIM_E_LIMIT, "axis %d becomes %lld times %lld", (int)i,
                                 (long long)size, (long long)times);
    }
    return qs_infer_out(x, 0, in->dtype, in->rank, dims);
}

QS_COLD static int infer_expand(qs_infer *x) {
    int64_t shape[QSIM_MAX_RANK];
    int32_t count, rank = -1;
    qs_dim given[QSIM_MAX_RANK], dims[QSIM_MAX_RANK];
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_ints(x, 1, shape, QSIM_MAX_RANK, &count);
    if (code)
        return code;
    const bool computed = count == QS_DYNAMIC;
    if (computed)
        count = qs_known_sizes(x->graph, x->values, x->node->inputs[1], given);
    if (count < 0)
        return qs_infer_unknown(x, x->in[0]->dtype);
    for (int32_t i = 0; i < count && !computed; i++) {
        if (shape[i] < 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d of the shape is %lld", (int)i,
                                 (long long)shape[i]);
        given[i] = (qs_dim){shape[i], NULL};
    }
    qs_value target = {.rank = count, .dims = given};
    code = qs_infer_broadcast(x, x->in[0], &target, &rank, dims);
    return code ? code : qs_infer_out(x, 0, x->in[0]->dtype, rank, dims);
}

/*
 * A row of the result is `run` bytes of the input `times` times. The other axes, the outermost one
 * first, select the run: an axis of `size` in the input is there dim / size times. Threads get
 * blocks: the rows of the axes from `inner` on.
 */
typedef struct tile_axis {
    size_t dim, size, stride; /* stride: bytes of the input */
    size_t block;             /* bytes of the result that one index selects */
} tile_axis;

typedef struct tile_params {
    int32_t rank, inner;
    size_t blocks, run, times;
    tile_axis axes[QSIM_MAX_RANK];
} tile_params;

typedef struct tile_job {
    const qsim_ctx *ctx;
    const tile_params *p;
    const char *x;
    char *y;
} tile_job;

/* Fills y with copies of an element of 1, 2, 4 or 8 bytes. */
static void repeat_element(const char *x, char *y, size_t run, size_t total) {
    typedef uint64_t pair __attribute__((vector_size(16)));
    uint64_t v = 0;
    memcpy(&v, x, run);
    for (size_t bytes = run; bytes < sizeof(v); bytes *= 2)
        v |= v << 8 * bytes;
    const pair two = {v, v};
    size_t at = 0;
    for (; at + sizeof(two) <= total; at += sizeof(two))
        memcpy(y + at, &two, sizeof(two));
    memcpy(y + at, &two, total - at);
}

/* Appends copies of the bytes written so far to y's first `done`, doubling them each time. */
static void repeat_bytes(const qsim_ctx *ctx, char *y, size_t done, size_t total) {
    while (done < total) {
        const size_t n = done < total - done ? done : total - done;
        if (qs_copy(ctx, y + done, y, n))
            return;
        done += n;
    }
}

static void repeat_run(const qsim_ctx *ctx, const char *x, char *y, size_t run, size_t times) {
    const size_t total = run * times;
    if (run <= 8 && (run & (run - 1)) == 0 && total <= QS_COPY_PIECE)
        repeat_element(x, y, run, total);
    else if (!qs_copy(ctx, y, x, run))
        repeat_bytes(ctx, y, run, total);
}

#define FEW 64 /* bytes of a row: rows are filled an element of each at a time */

/* Fills `count` rows of the innermost axis. */
static void fill_rows(const tile_params *p, const char *x, char *y, size_t count) {
    const tile_axis *a = &p->axes[p->rank - 1];
    for (size_t t = 0; t < p->times; t++)
        qs_copy_rows(x, (ptrdiff_t)a->stride, y + t * p->run, (ptrdiff_t)a->block, p->run, count);
}

/* Fills what the axes from `axis` on select; what an axis repeats is copied in the result. */
static void fill(const tile_job *job, int32_t axis, const char *x, char *y) {
    const tile_params *p = job->p;
    const tile_axis *a = &p->axes[axis];
    if (axis == p->rank) {
        repeat_run(job->ctx, x, y, p->run, p->times);
        return;
    }
    if (axis + 1 == p->rank && a->block <= FEW)
        fill_rows(p, x, y, a->size);
    else
        for (size_t i = 0; i < a->size; i++)
            fill(job, axis + 1, x + i * a->stride, y + i * a->block);
    repeat_bytes(job->ctx, y, a->size * a->block, a->dim * a->block);
}

static void tile_range(const void *arg, size_t begin, size_t end) {
    const tile_job *job = arg;
    const tile_params *p = job->p;
    const tile_axis *last = p->inner ? &p->axes[p->inner - 1] : NULL;
    for (size_t i = begin, n = 1; i < end && !qs_stopped(job->ctx); i += n) {
        size_t at = 0, rest = i;
        for (int32_t k = p->inner; k-- > 0; rest /= p->axes[k].dim)
            at += rest % p->axes[k].dim % p->axes[k].size * p->axes[k].stride;
        char *y = job->y + (last ? i * last->block : 0);
        if (last && p->inner == p->rank && last->block <= FEW) {
            n = last->size - i % last->dim % last->size;
            n = n < end - i ? n : end - i;
            fill_rows(p, job->x + at, y, n);
        } else {
            fill(job, p->inner, job->x + at, y);
        }
    }
}

static void run_tile(const qs_step *s, const qs_frame *f) {
    const tile_params *p = s->params;
    tile_job job = {f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0)};
    const size_t block = p->inner ? p->axes[p->inner - 1].block : SIZE_MAX;
    qs_ranges(f->ctx, p->blocks, QS_GRAIN * 4 / (block / 2 + 1) + 1, tile_range, &job);
}

#define BLOCK ((size_t)32768) /* half of a first-level cache */

/* Size of x along axis i of y; x may have fewer axes. */
static size_t size_along(const qs_value *x, const qs_value *y, int32_t i) {
    const int32_t k = i - (y->rank - x->rank);
    return k < 0 ? 1 : (size_t)x->dims[k].size;
}

/* Adds an axis within those of before; two adjacent axes that are not repeated are merged. */
static void push_axis(tile_params *p, size_t dim, size_t size) {
    tile_axis *last = p->rank ? &p->axes[p->rank - 1] : NULL;
    if (last && dim == size && last->dim == last->size)
        last->dim = last->size *= dim;
    else
        p->axes[p->rank++] = (tile_axis){.dim = dim, .size = size};
}

/* Sets strides, and cuts blocks of at most BLOCK bytes, as far as axes allow. */
static void cut_blocks(tile_params *p) {
    size_t stride = p->run, block = p->run * p->times;
    p->inner = p->rank;
    for (int32_t i = p->rank; i-- > 0; stride *= p->axes[i].size, block *= p->axes[i].dim) {
        p->axes[i].stride = stride;
        p->axes[i].block = block;
        p->inner = block * p->axes[i].dim <= BLOCK ? i : p->inner;
    }
    p->blocks = 1;
    for (int32_t i = 0; i < p->inner; i++)
        p->blocks *= p->axes[i].dim;
}

static int lower_tile(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0), *y = qs_lower_out(l, 0);
    tile_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    l->step->run = run_tile;
    if (qs_value_elements(y) == 0)
        return QSIM_OK; /* no blocks */
    p->run = qs_dtype_bytes(x->dtype);
    p->times = 1;
    int32_t axis = y->rank;
    while (axis > 0 && (p->times == 1 || size_along(x, y, axis - 1) == 1)) {
        const size_t size = size_along(x, y, --axis);
        p->run *= size;
        p->times *= (size_t)y->dims[axis].size / size;
    }
    for (int32_t i = 0; i < axis; i++)
        push_axis(p, (size_t)y->dims[i].size, size_along(x, y, i));
    cut_blocks(p);
    l->alias = p->times == 1;
    return QSIM_OK;
}

QS_OP(tile, .name = "Tile", .min_in = 3,
      QS_MORE(QS_HISTORY(.later = {{6, 2, 2, 1}}, .upgrade = upgrade_tile)),
      .traits = QS_MOVES | QS_KEEPS | QS_READS_EXACTLY, .shape_inputs = 1 << 1,
      .setting_inputs = 1 << 2, .kernel = QS_KERNEL_TILE, .infer = infer_tile, .lower = lower_tile);

QS_OP(expand, .name = "Expand", .since = 8, .min_in = 2,
      .traits = QS_MOVES | QS_KEEPS | QS_READS_EXACTLY, .shape_inputs = 1 << 1,
      .kernel = QS_KERNEL_EXPAND, .infer = infer_expand, .lower = lower_tile);
