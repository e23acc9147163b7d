/* SPDX-License-Identifier: MIT */
/* TopK: the k greatest or smallest elements along an axis and their indices, best first. */
#include "kernel/elementary.h"
#include "op/move/index.h"

#define INPUT_K 10 /* first version whose k is an input */

QS_COLD static int topk_sizes(const qs_infer *x, int32_t *axis, int64_t *k, bool *known) {
    const qs_attr *attr = qs_node_attr(x->node, "k");
    const int32_t rank = x->in[0]->rank;
    int code = QSIM_OK;
    if (x->node->version >= INPUT_K) {
        code = qs_infer_type(x, 1, QS_T(QSIM_INT64));
        code = code ? code : qs_infer_number(x, 1, k, known);
    } else {
        *known = attr != NULL;
        *k = attr ? attr->u.i : 0;
        if (!attr)
            code = qs_infer_fail(x, QSIM_E_GRAPH, "attribute k is left out");
    }
    if (code || rank < 0)
        return code;
    code = qs_infer_axis(x, qs_node_int(x->node, "axis", -1), rank, axis);
    if (code || !*known)
        return code;
    const int64_t size = x->in[0]->dims[*axis].size;
    if (*k < 0 || (size >= 0 && *k > size))
        return qs_infer_fail(x, QSIM_E_VALUE, "k is %lld for an axis of size %lld", (long long)*k,
                             (long long)size);
    return QSIM_OK;
}

QS_COLD static int infer_topk(qs_infer *x) {
    const qs_value *in = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    int32_t axis = 0;
    int64_t k = -1;
    bool known = false;
    int code = qs_infer_type(x, 0, x->node->version < 11 ? QS_T_REAL : QS_T_ARITH);
    if (!code)
        code = topk_sizes(x, &axis, &k, &known);
    for (int32_t i = 0; i < in->rank; i++)
        dims[i] = i == axis ? (qs_dim){known ? k : -1, NULL} : in->dims[i];
    if (!code)
        code = qs_infer_out(x, 0, in->dtype, in->rank, dims);
    return code ? code : qs_infer_out(x, 1, QSIM_INT64, in->rank, dims);
}

typedef struct topk_params {
    int32_t dtype;
    bool smallest;
    size_t outer, count, inner, k, bytes;
} topk_params;

/* Keys have the order of elements: the better the element, the greater its key. */
typedef struct ranked {
    uint64_t key;
    size_t index;
} ranked;

typedef struct topk_job {
    const qsim_ctx *ctx;
    const topk_params *p;
    const char *x;
    char *y;
    int64_t *indices;
    ranked *heaps; /* k entries per row */
} topk_job;

/* The bits of a float as an integer of the same order; -0 equals +0, NaN is greater than all. */
static uint64_t float_key(uint64_t bits, uint64_t sign, uint64_t infinity) {
    if ((bits & ~sign) > infinity)
        return UINT64_MAX;
    if (bits == sign)
        bits = 0;
    return bits & sign ? ~bits & (sign - 1) : bits | sign;
}

#define SIGNED_KEY(v) ((uint64_t)(int64_t)(v) ^ (uint64_t)1 << 63)

static uint64_t key_of(const char *x, int32_t dtype) {
    uint64_t bits = 0;
    switch (dtype) {
    case QSIM_FLOAT: {
        uint32_t u;
        memcpy(&u, x, 4);
        return float_key(u, 0x80000000u, 0x7f800000u);
    }
    case QSIM_DOUBLE: memcpy(&bits, x, 8); return float_key(bits, 1ull << 63, 0x7ffull << 52);
    case QSIM_INT8:
    case QSIM_INT16:
    case QSIM_INT32:
    case QSIM_INT64: return SIGNED_KEY(qs_number_at(x, dtype, 0));
    case QSIM_UINT64: memcpy(&bits, x, 8); return bits;
    default: return (uint64_t)qs_number_at(x, dtype, 0);
    }
}

/* Whether a is worse than b; of equal elements the one with the higher index is. */
static bool is_worse(const ranked *a, const ranked *b) {
    return a->key != b->key ? a->key < b->key : a->index > b->index;
}

/* Sifts heap[at] down in a heap of n whose root is the worst. */
static void sink(ranked *heap, size_t n, size_t at) {
    const ranked moved = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && is_worse(&heap[child + 1], &heap[child]);
        if (!is_worse(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

#define BLOCK ((size_t)16) /* elements that are looked through together */

/*
 * The first index, not below i, of a float of the row that may be better than element `worst`; at
 * most the next index at which a stop is checked. A comparison with a NaN tells nothing.
 */
static size_t next_better(const topk_params *p, const float *x, size_t i, size_t worst) {
    const size_t step = p->inner, check = i | 0x7fff, end = check < p->count ? check : p->count;
    const uint32_t sign = p->smallest ? 0x80000000u : 0;
    const float limit = qk_flip(x[worst * step], sign);
    for (int32_t better = 0; step == 1 && i + BLOCK <= end; i += BLOCK) {
        for (size_t n = 0; n < BLOCK; n++)
            better |= !(qk_flip(x[i + n], sign) <= limit);
        if (better)
            break;
    }
    while (i < end && qk_flip(x[i * step], sign) <= limit)
        i++;
    return i;
}

/* Leaves the k best of a row in heap, best first; false if the run was stopped. */
static bool rank_row(const topk_job *j, const char *x, ranked *heap) {
    const topk_params *p = j->p;
    const size_t k = p->k, step = p->inner * p->bytes;
    for (size_t i = 0; i < p->count; i++) {
        if (i >= k && p->dtype == QSIM_FLOAT)
            i = next_better(p, (const float *)(const void *)x, i, heap[0].index);
        if (i == p->count)
            break;
        if (qs_stopped_at(j->ctx, i))
            return false;
        const uint64_t key = key_of(x + i * step, p->dtype);
        const ranked r = {p->smallest ? ~key : key, i};
        if (i < k) {
            heap[i] = r;
            for (size_t at = k / 2; i == k - 1 && at-- > 0;) {
                if (qs_stopped_at(j->ctx, at))
                    return false;
                sink(heap, k, at);
            }
        } else if (r.key > heap[0].key) {
            heap[0] = r;
            sink(heap, k, 0);
        }
    }
    for (size_t n = k; n-- > 1;) {
        const ranked worst = heap[0];
        heap[0] = heap[n];
        heap[n] = worst;
        if (qs_stopped_at(j->ctx, 4 * n + 3)) /* from the root down: longer than other items */
            return false;
        sink(heap, n, 0);
    }
    return true;
}

static void topk_rows(const void *arg, size_t begin, size_t end) {
    const topk_job *j = arg;
    const topk_params *p = j->p;
    for (size_t r = begin; r < end; r++) {
        const size_t o = r / p->inner, i = r % p->inner;
        const char *x = j->x + (o * p->count * p->inner + i) * p->bytes;
        ranked *heap = j->heaps + r * p->k;
        if (!rank_row(j, x, heap))
            return;
        for (size_t n = 0; n < p->k && !qs_stopped_at(j->ctx, n); n++) {
            const size_t at = (o * p->k + n) * p->inner + i;
            if (j->y)
                qs_copy_element(j->y + at * p->bytes, x + heap[n].index * p->inner * p->bytes,
                                p->bytes);
            if (j->indices)
                j->indices[at] = (int64_t)heap[n].index;
        }
    }
}

static void run_topk(const qs_step *s, const qs_frame *f) {
    const topk_params *p = s->params;
    const topk_job j = {
        f->ctx, p, qs_step_in(s, f, 0), qs_step_out(s, f, 0), qs_step_out(s, f, 1), f->scratch};
    if (p->k)
        qs_ranges(f->ctx, p->outer * p->inner, QS_GRAIN / 8 / p->count + 1, topk_rows, &j);
}

QS_COLD static int lower_topk(qs_lower *l) {
    const qs_value *x = qs_lower_in(l, 0);
    qs_infer rules;
    int32_t axis = 0;
    int64_t k = 0;
    bool known = false;
    qs_lower_infer(l, &rules);
    int code = topk_sizes(&rules, &axis, &k, &known);
    if (!code && !known)
        code = qs_infer_fail(&rules, QSIM_E_UNSUPPORTED, "k is not constant");
    if (code)
        return code;
    topk_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->dtype = x->dtype;
    p->smallest = qs_node_int(l->node, "largest", 1) == 0;
    p->outer = (size_t)qs_dims_product(x->dims, 0, axis);
    p->count = (size_t)x->dims[axis].size;
    p->inner = (size_t)qs_dims_product(x->dims, axis + 1, x->rank);
    p->k = (size_t)k;
    p->bytes = qs_dtype_bytes(x->dtype);
    if (!qs_mul(p->outer * p->inner, p->k * sizeof(ranked), &l->step->scratch))
        return qs_infer_fail(&rules, QSIM_E_LIMIT, "larger than memory can be");
    l->step->run = run_topk;
    return QSIM_OK;
}

QS_COLD static int upgrade_topk(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    const qs_attr *a = qs_node_attr(&g->nodes[node], "k");
    const int64_t k = a ? a->u.i : 0;
    if (!a || g->nodes[node].version >= INPUT_K || to < INPUT_K)
        return QSIM_OK;
    if (qs_node_set_ints(g, node, "k", &k, 1) != QSIM_OK)
        return qs_op_no_memory(error);
    return qs_upgrade_ints_to_input(g, node, "k", 1, error);
}

static const qs_attr_rule topk_attrs[] = {{"axis", QSIM_ATTR_INT, 1, 0},
                                          {"k", QSIM_ATTR_INT, 1, 9},
                                          {"largest", QSIM_ATTR_INT, 11, 0},
                                          {"sorted", QSIM_ATTR_INT, 11, 0}};

QS_OP(topk, .name = "TopK", .min_in = 1, .min_out = 2,
      QS_MORE(QS_HISTORY(.later = {{INPUT_K, 2, 2, 2}}, .upgrade = upgrade_topk)),
      QS_ATTRS(topk_attrs), .traits = QS_OMITS_OUTPUTS | QS_READS_EXACTLY, .shape_inputs = 1 << 1,
      .kernel = QS_KERNEL_TOP_K, .infer = infer_topk, .lower = lower_topk);
