/* SPDX-License-Identifier: MIT */
/*
 * Unique: the distinct elements, or the distinct parts along an axis, with the index of each one's
 * first appearance, the index of each input's part among them, and the number of its appearances.
 */
#include "op/rules.h"

/* ---- sizes ---- */

static int infer_unique(qs_infer *x) {
    const qs_value *v = x->in[0];
    const qs_attr *axis = qs_node_attr(x->node, "axis");
    qs_dim dims[QSIM_MAX_RANK], count = {-1, NULL}, length = {-1, NULL};
    int32_t at = 0, rank = axis ? v->rank : 1;
    int code = qs_infer_type(x, 0, QS_T_ARITH | QS_T(QSIM_BOOL));
    if (!code && v->rank >= 0 && axis)
        code = qs_infer_axis(x, axis->u.i, v->rank, &at);
    if (code)
        return code;
    if (v->rank >= 0) {
        length = (qs_dim){axis ? v->dims[at].size : qs_dims_product(v->dims, 0, v->rank), NULL};
        qs_value_dims(v, dims);
        count.size = x->bounds ? length.size : -1;
    }
    dims[at] = count;
    code = qs_infer_out(x, 0, v->dtype, rank, dims);
    for (int32_t i = 1; i < x->node->output_count && !code; i++)
        if (x->node->outputs[i] != QS_NONE)
            code = qs_infer_out(x, i, QSIM_INT64, 1, i == 2 ? &length : &count);
    return code;
}

/* ---- order ---- */

typedef struct unique_params {
    int32_t dtype, axis;
    bool sorted;
    size_t count;                 /* number of parts */
    bool given[4];                /* whether the output is present */
    size_t outer, inner, element; /* a part is `outer` pieces of `inner` elements */
} unique_params;

/* Elements compared between two checks for a stop. */
#define CANCEL_INTERVAL 32768

typedef struct parts {
    const qsim_ctx *ctx;
    const unique_params *p;
    const uint8_t *x;
    size_t work;
    bool stopped; /* the run was stopped: results are meaningless */
} parts;

/* NaN is equal to itself and comes last, as in numpy. */
#define COMPARE(T)                                                                                 \
    {                                                                                              \
        T u, v;                                                                                    \
        memcpy(&u, a, sizeof(u));                                                                  \
        memcpy(&v, b, sizeof(v));                                                                  \
        return u < v ? -1 : u > v ? 1 : (u != u) - (v != v);                                       \
    }

static int compare_elements(int32_t dtype, const uint8_t *a, const uint8_t *b) {
    switch (dtype) {
    case QSIM_FLOAT: COMPARE(float)
    case QSIM_DOUBLE: COMPARE(double)
    case QSIM_INT8: COMPARE(int8_t)
    case QSIM_INT16: COMPARE(int16_t)
    case QSIM_INT32: COMPARE(int32_t)
    case QSIM_INT64: COMPARE(int64_t)
    case QSIM_UINT16: COMPARE(uint16_t)
    case QSIM_UINT32: COMPARE(uint32_t)
    case QSIM_UINT64: COMPARE(uint64_t)
    default: COMPARE(uint8_t)
    }
}

/* Counts compared elements and checks for a stop now and then; false: stop. */
static bool not_cancelled(parts *s, size_t elements) {
    s->work += elements;
    if (s->work > CANCEL_INTERVAL) {
        s->work = 0;
        s->stopped = s->stopped || qs_stopped(s->ctx);
    }
    return !s->stopped;
}

static int compare_parts(parts *s, size_t i, size_t j) {
    const unique_params *p = s->p;
    const size_t piece = p->inner * p->element;
    for (size_t o = 0; o < p->outer; o++) {
        const uint8_t *a = s->x + (o * p->count + i) * piece;
        const uint8_t *b = s->x + (o * p->count + j) * piece;
        for (size_t k = 0; k < piece && not_cancelled(s, 1); k += p->element) {
            const int c = compare_elements(p->dtype, a + k, b + k);
            if (c)
                return c;
        }
    }
    return 0;
}

/* Merge sort from the bottom up: stable, without recursion; `list` and `other` swap roles. */
static size_t *sort_parts(parts *s, size_t *list, size_t *other) {
    const size_t n = s->p->count;
    for (size_t width = 1; width < n && !s->stopped; width *= 2) {
        for (size_t begin = 0; begin < n && not_cancelled(s, 1); begin += 2 * width) {
            const size_t middle = begin + width < n ? begin + width : n;
            const size_t end = begin + 2 * width < n ? begin + 2 * width : n;
            size_t a = begin, b = middle, k = begin;
            while (a < middle && b < end && !s->stopped)
                other[k++] = compare_parts(s, list[b], list[a]) < 0 ? list[b++] : list[a++];
            while (a < middle)
                other[k++] = list[a++];
            while (b < end)
                other[k++] = list[b++];
        }
        size_t *swap = list;
        list = other;
        other = swap;
    }
    return list;
}

/* ---- the step ---- */

/* Outputs; NULL if left out. */
typedef struct results {
    uint8_t *y;
    int64_t *first, *place, *times;
} results;

static void give_part(parts *s, const results *r, size_t count, size_t to, size_t from) {
    const unique_params *p = s->p;
    const size_t piece = p->inner * p->element;
    for (size_t o = 0; o < p->outer && not_cancelled(s, p->inner); o++)
        qs_copy(s->ctx, r->y + (o * count + to) * piece, s->x + (o * p->count + from) * piece,
                piece);
    if (r->first)
        r->first[to] = (int64_t)from;
}

/*
 * order: parts, sorted, equal ones by index. group[i]: index of part i's value among the distinct
 * ones, in sorted order; head[g]: its first appearance; rank[g]: its index in the results.
 */
static void run_unique(const qs_step *s, const qs_frame *f) {
    const unique_params *p = s->params;
    parts all = {.ctx = f->ctx, .p = p, .x = qs_step_in(s, f, 0)};
    const results r = {qs_step_out(s, f, 0), p->given[1] ? qs_step_out(s, f, 1) : NULL,
                       p->given[2] ? qs_step_out(s, f, 2) : NULL,
                       p->given[3] ? qs_step_out(s, f, 3) : NULL};
    const size_t n = p->count;
    size_t *list = f->scratch, *other = list + n, *group = other + n, *head = group + n;
    size_t *rank = head + n, count = 0;
    for (size_t i = 0; i < n; i++)
        list[i] = i;
    const size_t *order = sort_parts(&all, list, other);
    for (size_t i = 0; i < n && not_cancelled(&all, 1); i++) {
        if (i == 0 || compare_parts(&all, order[i - 1], order[i]) != 0)
            head[count++] = order[i];
        group[order[i]] = count - 1;
    }
    if (all.stopped)
        return;
    size_t next = 0;
    for (size_t g = 0; g < count; g++)
        rank[g] = g;
    for (size_t i = 0; i < n && !p->sorted; i++)
        if (head[group[i]] == i)
            rank[group[i]] = next++;
    for (size_t g = 0; g < count && not_cancelled(&all, 1); g++)
        give_part(&all, &r, count, rank[g], head[g]);
    if (r.times)
        memset(r.times, 0, count * sizeof(*r.times));
    for (size_t i = 0; i < n && not_cancelled(&all, 1); i++) {
        if (r.place)
            r.place[i] = (int64_t)rank[group[i]];
        if (r.times)
            r.times[rank[group[i]]]++;
    }
    f->sizes[0][p->axis] = f->sizes[1][0] = f->sizes[3][0] = (int64_t)count;
}

static int lower_unique(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    const qs_attr *axis = qs_node_attr(l->node, "axis");
    unique_params *p = qs_lower_params(l, sizeof(*p));
    size_t scratch;
    if (!p)
        return QSIM_E_NOMEM;
    p->dtype = x->dtype;
    p->sorted = qs_node_int(l->node, "sorted", 1) != 0;
    p->count = qs_value_elements(x);
    for (int32_t i = 0; i < l->node->output_count; i++)
        p->given[i] = l->node->outputs[i] != QS_NONE;
    p->outer = p->inner = 1;
    p->element = qs_dtype_bytes(x->dtype);
    if (axis) {
        p->axis = (int32_t)(axis->u.i < 0 ? axis->u.i + x->rank : axis->u.i);
        p->count = (size_t)x->dims[p->axis].size;
        for (int32_t i = 0; i < x->rank; i++)
            *(i < p->axis ? &p->outer : &p->inner) *= i == p->axis ? 1 : (size_t)x->dims[i].size;
    }
    if (!qs_mul(p->count, 5 * sizeof(size_t), &scratch))
        return QSIM_E_LIMIT;
    l->step->scratch = scratch + sizeof(size_t);
    l->step->run = run_unique;
    return QSIM_OK;
}

static const qs_attr_rule unique_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                            {"sorted", QSIM_ATTR_INT, 1, 0}};

QS_OP(unique, .name = "Unique", .since = 11, .min_in = 1, .max_out = 4, QS_ATTRS(unique_attrs),
      .traits = QS_BOUNDS, .kernel = QS_KERNEL_UNIQUE, .infer = infer_unique,
      .lower = lower_unique);
