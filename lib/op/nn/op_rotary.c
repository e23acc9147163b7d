/* SPDX-License-Identifier: MIT */
/*
 * RotaryEmbedding of ONNX (X, cos, sin, position_ids) and of ONNX Runtime (x, position_ids, cos,
 * sin). x is (batch, heads, sequence, size) or (batch, sequence, heads * size); the caches are
 * (positions, half) or, without position_ids, (batch, sequence, half).
 */
#include "op/nn/rotary.h"

#include "op/expand.h"

/* Indices of inputs. */
typedef struct places {
    int32_t positions, cosine, sine;
} places;

static places places_of(const qs_node *n) {
    return n->domain[0] ? (places){1, 2, 3} : (places){3, 1, 2};
}

/* Sizes of a node; -1: unknown. */
typedef struct form {
    int64_t batches, sequence, heads, size, half;
} form;

static int check_types(const qs_infer *x, const places *at) {
    int code = qs_infer_type(x, 0, QS_T_FLOAT);
    if (!code)
        code = qs_infer_type(x, at->cosine, QS_T_FLOAT);
    if (!code)
        code = qs_infer_type(x, at->sine, QS_T_FLOAT);
    if (!code && qs_infer_in(x, at->positions))
        code = qs_infer_type(x, at->positions, QS_T(QSIM_INT64));
    if (!code && qs_node_int(x->node, "is_packed_batching", 0) != 0)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "is_packed_batching is not supported");
    if (!code && qs_node_float(x->node, "scale", 1.0f) != 1.0f)
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED, "a scale other than 1 is not supported");
    return code;
}

/* Last size of a cache: half of the numbers that are rotated. */
static int64_t cache_half(const qs_infer *x, int32_t index) {
    const qs_value *v = qs_infer_in(x, index);
    return v && v->rank > 0 ? v->dims[v->rank - 1].size : -1;
}

static int heads_of(const qs_infer *x, form *f) {
    const qs_value *v = x->in[0];
    const int64_t given = qs_node_int(x->node, "num_heads", 0);
    const int64_t rotated = qs_node_int(x->node, "rotary_embedding_dim", 0);
    const bool packed = v->rank == 3;
    const int64_t last = v->dims[v->rank - 1].size;
    f->batches = v->dims[0].size;
    f->sequence = v->dims[packed ? 1 : 2].size;
    f->heads = packed ? given : v->dims[1].size;
    f->size = packed ? -1 : last;
    if (given < 0 || rotated < 0 || rotated % 2)
        return qs_infer_fail(x, QSIM_E_VALUE, "num_heads is %lld, rotary_embedding_dim %lld",
                             (long long)given, (long long)rotated);
    if (packed && given == 0) { /* ONNX Runtime's operator may take it from the caches */
        if (!x->node->domain[0] || rotated)
            return qs_infer_fail(x, QSIM_E_VALUE, "num_heads is missing");
        f->size = f->half < 0 ? -1 : 2 * f->half;
        f->heads = f->size > 0 && last >= 0 ? last / f->size : -1;
    } else if (packed && last >= 0)
        f->size = last / given;
    if (packed && last >= 0 && f->heads >= 0 && f->size >= 0 && f->heads * f->size != last)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%lld numbers are not %lld heads of %lld",
                             (long long)last, (long long)f->heads, (long long)f->size);
    const int64_t whole = rotated ? rotated : f->size;
    if (f->half >= 0 && whole >= 0 && 2 * f->half != whole)
        return qs_infer_fail(x, QSIM_E_SHAPE, "the caches turn %lld numbers of %lld",
                             (long long)(2 * f->half), (long long)whole);
    if (f->half < 0 && whole >= 0)
        f->half = whole / 2;
    if (f->size >= 0 && f->half >= 0 && 2 * f->half > f->size)
        return qs_infer_fail(x, QSIM_E_SHAPE, "a head has %lld numbers, %lld are to be rotated",
                             (long long)f->size, (long long)(2 * f->half));
    return QSIM_OK;
}

static int check_caches(const qs_infer *x, const places *at, const form *f) {
    const qs_value *ids = qs_infer_in(x, at->positions);
    const int64_t sizes[3] = {f->batches, f->sequence, f->half};
    const int32_t first = ids ? 2 : 0;
    int64_t table[2] = {-1, f->half};
    int code = qs_infer_sizes(x, at->cosine, first ? 2 : 3, first ? table : sizes);
    const qs_value *cosine = qs_infer_in(x, at->cosine);
    if (!code && ids && cosine && cosine->rank == 2)
        table[0] = cosine->dims[0].size;
    if (!code)
        code = qs_infer_sizes(x, at->sine, first ? 2 : 3, first ? table : sizes);
    if (code || !ids)
        return code;
    if (x->node->domain[0] && ids->rank == 1) /* one position: that of the sequence's first entry */
        return qs_infer_sizes(x, at->positions, 1, (const int64_t[]){1});
    return qs_infer_sizes(x, at->positions, 2, sizes);
}

static int read_form(const qs_infer *x, form *f) {
    const places at = places_of(x->node);
    const int64_t sine = cache_half(x, at.sine);
    f->half = cache_half(x, at.cosine);
    if (f->half >= 0 && sine >= 0 && f->half != sine)
        return qs_infer_fail(x, QSIM_E_SHAPE, "cosines have %lld columns, sines %lld",
                             (long long)f->half, (long long)sine);
    int code = heads_of(x, f);
    return code ? code : check_caches(x, &at, f);
}

static int infer_rotary(qs_infer *x) {
    const qs_value *v = x->in[0];
    const places at = places_of(x->node);
    form f;
    int code = check_types(x, &at);
    if (!code && v->rank >= 0 && v->rank != 3 && v->rank != 4)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input 0 has rank %d, not 3 or 4", (int)v->rank);
    if (!code && v->rank >= 0)
        code = read_form(x, &f);
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct rotary_params {
    places at;
    size_t batches, heads, sequence, size, half, positions;
    bool packed, interleaved, offset; /* offset: one position for all */
    bool looked_up;
} rotary_params;

typedef struct rotary_job {
    const rotary_params *p;
    const float *x, *cosine, *sine;
    const int64_t *ids;
    float *y;
} rotary_job;

/* Row of the caches for an entry of a sequence. */
static size_t cache_row(const rotary_job *j, size_t batch, size_t at) {
    const rotary_params *p = j->p;
    if (!p->looked_up)
        return batch * p->sequence + at;
    return p->offset ? (size_t)j->ids[0] + at : (size_t)j->ids[batch * p->sequence + at];
}

static void rotary_rows(const void *arg, size_t begin, size_t end) {
    const rotary_job *j = arg;
    const rotary_params *p = j->p;
    for (size_t r = begin; r < end; r++) { /* rows in memory order */
        const size_t inner = p->packed ? p->heads : p->sequence;
        const size_t outer = p->packed ? p->sequence : p->heads;
        const size_t batch = r / inner / outer;
        const size_t row = cache_row(j, batch, p->packed ? r / inner % outer : r % inner);
        qs_rotate(j->x + r * p->size, j->cosine + row * p->half, j->sine + row * p->half,
                  j->y + r * p->size, p->size, p->half, p->interleaved);
    }
}

static bool positions_valid(const rotary_params *p, const int64_t *ids, const qs_frame *f) {
    const size_t count = p->offset ? 1 : p->batches * p->sequence;
    const int64_t last = (int64_t)p->positions - (p->offset ? (int64_t)p->sequence : 1);
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] > last) {
            qs_step_outside(f, "position", ids[i], 0, last + 1, -1);
            return false;
        }
    return true;
}

static void run_rotary(const qs_step *s, const qs_frame *f) {
    const rotary_params *p = s->params;
    const rotary_job j = {.p = p,
                          .x = qs_step_in(s, f, 0),
                          .cosine = qs_step_in(s, f, p->at.cosine),
                          .sine = qs_step_in(s, f, p->at.sine),
                          .ids = p->looked_up ? qs_step_in(s, f, p->at.positions) : NULL,
                          .y = qs_step_out(s, f, 0)};
    const size_t rows = p->batches * p->heads * p->sequence;
    if (rows && p->looked_up && !positions_valid(p, j.ids, f))
        return;
    qs_ranges(f->ctx, rows, QS_GRAIN / (p->size + 1) + 1, rotary_rows, &j);
}

static int lower_rotary(qs_lower *l) {
    qs_infer x;
    form f;
    qs_lower_infer(l, &x);
    int code = read_form(&x, &f);
    if (code)
        return code;
    rotary_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->at = places_of(l->node);
    const qs_value *ids = qs_lower_in(l, p->at.positions);
    p->batches = (size_t)f.batches;
    p->heads = (size_t)f.heads;
    p->sequence = (size_t)f.sequence;
    p->size = (size_t)f.size;
    p->half = (size_t)f.half;
    p->positions = (size_t)qs_lower_in(l, p->at.cosine)->dims[0].size;
    p->packed = x.in[0]->rank == 3;
    p->interleaved = qs_node_int(l->node, "interleaved", 0) != 0;
    p->looked_up = ids != NULL;
    p->offset = ids && ids->rank == 1;
    l->step->run = run_rotary;
    return QSIM_OK;
}

/*
 * Of files that are to have operators of ONNX alone: its operator, which wants the number of heads
 * of packed ones, and a position for each entry.
 */
static void expand_rotary(qs_expand *e) {
    static const char *const names[] = {"interleaved", "rotary_embedding_dim"};
    const qs_infer x = qs_expand_view(e);
    const qs_value *v = x.in[0], *ids = qs_expand_value(e, 1);
    form f;
    if (!e->only_onnx || !ids || ids->rank != 2 || v->rank < 0 || read_form(&x, &f) || f.heads < 0)
        return;
    const bool packed = v->rank == 3;
    const qs_id in[4] = {qs_expand_in(e, 0), qs_expand_in(e, 2), qs_expand_in(e, 3),
                         qs_expand_in(e, 1)};
    const qs_id y = qs_expand_many(e, "RotaryEmbedding", in, 4, 1);
    for (size_t i = 0; i < QS_COUNT(names); i++)
        qs_expand_copy(e, y, names[i], names[i]);
    if (packed)
        qs_expand_int(e, y, "num_heads", f.heads);
    e->out[0] = y;
}

static const qs_attr_rule rotary_attrs[] = {
    {"interleaved", QSIM_ATTR_INT, 1, 0},
    {"num_heads", QSIM_ATTR_INT, 1, 0},
    {"rotary_embedding_dim", QSIM_ATTR_INT, 1, 0},
    {"is_packed_batching", QSIM_ATTR_INT, 1, 0},
    {"scale", QSIM_ATTR_FLOAT, 1, 0},
};

/* The last two attributes are ONNX Runtime's. */
QS_OP(rotary, .name = "RotaryEmbedding", .since = 23, .min_in = 3, .max_in = 4,
      .attrs = rotary_attrs, .attr_count = 3, .traits = QS_PLAIN, .setting_inputs = 7 << 1,
      .kernel = QS_KERNEL_ROTARY, .infer = infer_rotary, .lower = lower_rotary);
QS_OP(ms_rotary, .domain = QS_DOMAIN_MICROSOFT, .name = "RotaryEmbedding", .min_in = 4,
      QS_ATTRS(rotary_attrs), .traits = QS_PLAIN, .setting_inputs = 7 << 1,
      .kernel = QS_KERNEL_ROTARY, .infer = infer_rotary, .lower = lower_rotary,
      .expand = expand_rotary);
