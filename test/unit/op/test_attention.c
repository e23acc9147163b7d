/* SPDX-License-Identifier: MIT */
/*
 * Attention against the definition in double, over random sizes and options; refusals; rows without
 * any key; counts of used keys.
 */
#include "op_harness.h"

#include <math.h>
#include <sys/mman.h>

#define MOST 4096

/* One node's sizes and options; -1 of a window: none. */
typedef struct setting {
    int64_t batches, kv_heads, group, queries, past, fresh, width, v_width;
    int64_t packed, causal, left, right, mode, mask_rank; /* mask_rank 0: no mask */
    bool bool_mask, used, precise, doubles;
    float scale, cap; /* 0: left out */
} setting;

typedef struct numbers {
    float q[MOST], k[MOST], v[MOST], past_k[MOST], past_v[MOST], mask[MOST];
    uint8_t allowed[MOST];
    int64_t used[4];
} numbers;

static void draw(uint64_t *seed, float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int32_t)(test_random(seed) % 2001) - 1000) / 500.0f;
}

/* Element `d` of entry `at` of a head, heads side by side or apart. */
static double entry(const float *x, int64_t packed, int64_t heads, int64_t rows, int64_t width,
                    const int64_t place[3], int64_t d) {
    const int64_t b = place[0], h = place[1], i = place[2];
    const int64_t row = packed ? (b * rows + i) * heads + h : (b * heads + h) * rows + i;
    return (double)x[row * width + d];
}

/* An element of the joined past and fresh keys or values. */
static double cached(const setting *s, const float *past, const float *fresh, int64_t width,
                     const int64_t place[3], int64_t d) {
    const int64_t old[3] = {place[0], place[1], place[2]};
    const int64_t late[3] = {place[0], place[1], place[2] - s->past};
    if (place[2] < s->past)
        return entry(past, 0, s->kv_heads, s->past, width, old, d);
    return entry(fresh, s->packed, s->kv_heads, s->fresh, width, late, d);
}

static double bias_of(const setting *s, const numbers *n, int64_t b, int64_t h, int64_t i,
                      int64_t j) {
    const int64_t keys = s->past + s->fresh, used = s->used ? n->used[b] : keys;
    const int64_t position = i + (s->past ? s->past : s->used ? used - s->queries : 0);
    if (j >= used || (s->causal && j > position) || (s->left >= 0 && position - j > s->left) ||
        (s->right >= 0 && j - position > s->right))
        return -INFINITY;
    int64_t at = i * keys + j;
    if (s->mask_rank == 4) /* (batch, 1, queries, keys) */
        at += b * s->queries * keys;
    else if (s->mask_rank == 3)
        at += h * s->queries * keys;
    if (!s->mask_rank)
        return 0;
    return s->bool_mask ? (n->allowed[at] ? 0 : -INFINITY) : (double)n->mask[at];
}

/* Scores of one query at the stage that `mode` selects, and its shares in p. */
static void shares_of(const setting *s, const numbers *n, int64_t b, int64_t h, int64_t i,
                      double *shown, double *p) {
    const int64_t keys = s->past + s->fresh, heads = s->kv_heads * s->group;
    const double scale = s->scale != 0 ? (double)s->scale : 1 / sqrt((double)s->width);
    double top = -INFINITY, sum = 0;
    bool any = false;
    for (int64_t j = 0; j < keys; j++) {
        double x = 0;
        for (int64_t d = 0; d < s->width; d++)
            x += entry(n->q, s->packed, heads, s->queries, s->width, (int64_t[]){b, h, i}, d) *
                 cached(s, n->past_k, n->k, s->width, (int64_t[]){b, h / s->group, j}, d);
        x *= scale;
        shown[j] = x;
        if (s->cap > 0)
            x = (double)s->cap * tanh(x / (double)s->cap);
        shown[j] = s->mode >= 1 ? x : shown[j];
        const double bias = bias_of(s, n, b, h, i, j);
        p[j] = x + bias;
        any = any || bias != -INFINITY;
        shown[j] = s->mode >= 2 ? p[j] : shown[j];
        top = p[j] > top ? p[j] : top;
    }
    for (int64_t j = 0; j < keys; j++) {
        p[j] = any ? exp(p[j] - top) : 0;
        sum += p[j];
    }
    for (int64_t j = 0; j < keys; j++) {
        p[j] = any ? p[j] / sum : 0;
        shown[j] = s->mode == 3 ? p[j] : shown[j];
    }
}

/* Element `at` of an output. */
static double given(const setting *s, const op_case *c, int32_t output, int64_t at) {
    const void *data = case_data(c, output);
    return s->doubles ? ((const double *)data)[at] : (double)((const float *)data)[at];
}

static void check_query(const setting *s, const numbers *n, const op_case *c, const int64_t at[3]) {
    const int64_t keys = s->past + s->fresh, heads = s->kv_heads * s->group;
    double shown[64], p[64];
    const double most = s->doubles ? 1e-13 : 1e-5;
    shares_of(s, n, at[0], at[1], at[2], shown, p);
    for (int64_t j = 0; j < keys; j++) {
        const double have =
            given(s, c, 3, ((at[0] * heads + at[1]) * s->queries + at[2]) * keys + j);
        CHECK(have == shown[j] || fabs(have - shown[j]) < 10 * most);
    }
    for (int64_t d = 0; d < s->v_width; d++) {
        double y = 0;
        for (int64_t j = 0; j < keys; j++)
            y += p[j] *
                 cached(s, n->past_v, n->v, s->v_width, (int64_t[]){at[0], at[1] / s->group, j}, d);
        const int64_t row = s->packed ? (at[0] * s->queries + at[2]) * heads + at[1]
                                      : (at[0] * heads + at[1]) * s->queries + at[2];
        CHECK_NEAR(given(s, c, 0, row * s->v_width + d), y, most);
    }
}

static void check_present(const setting *s, const numbers *n, const op_case *c) {
    const int64_t keys = s->past + s->fresh;
    for (int64_t i = 0; i < s->batches * s->kv_heads * keys; i++) {
        const int64_t at[3] = {i / keys / s->kv_heads, i / keys % s->kv_heads, i % keys};
        for (int64_t d = 0; d < s->width; d++)
            CHECK_NEAR(given(s, c, 1, i * s->width + d),
                       cached(s, n->past_k, n->k, s->width, at, d), 0);
        for (int64_t d = 0; d < s->v_width; d++)
            CHECK_NEAR(given(s, c, 2, i * s->v_width + d),
                       cached(s, n->past_v, n->v, s->v_width, at, d), 0);
    }
}

/* An input of floats or doubles. */
static void reals(op_case *c, const setting *s, int32_t rank, const int64_t *dims,
                  const float *data) {
    static double wide[MOST];
    for (size_t i = 0; i < MOST && s->doubles; i++)
        wide[i] = (double)data[i];
    case_input(c, s->doubles ? QSIM_DOUBLE : QSIM_FLOAT, rank, dims,
               s->doubles ? (const void *)wide : data);
}

static void rows(op_case *c, const setting *s, int64_t heads, int64_t count, int64_t width,
                 const float *data) {
    if (s->packed)
        reals(c, s, SHAPE(s->batches, count, heads * width), data);
    else
        reals(c, s, SHAPE(s->batches, heads, count, width), data);
}

static void add_inputs(op_case *c, const setting *s, const numbers *n) {
    const int64_t heads = s->kv_heads * s->group, keys = s->past + s->fresh;
    const int64_t mask[4] = {s->batches, 1, s->queries, keys},
                  by_head[3] = {heads, s->queries, keys};
    rows(c, s, heads, s->queries, s->width, n->q);
    rows(c, s, s->kv_heads, s->fresh, s->width, n->k);
    rows(c, s, s->kv_heads, s->fresh, s->v_width, n->v);
    const int64_t *dims = s->mask_rank == 3 ? by_head : mask + 4 - s->mask_rank;
    if (s->mask_rank && s->bool_mask)
        case_input(c, QSIM_BOOL, (int32_t)s->mask_rank, dims, n->allowed);
    else if (s->mask_rank)
        reals(c, s, (int32_t)s->mask_rank, dims, n->mask);
    else
        case_absent(c);
    if (s->past) {
        reals(c, s, SHAPE(s->batches, s->kv_heads, s->past, s->width), n->past_k);
        reals(c, s, SHAPE(s->batches, s->kv_heads, s->past, s->v_width), n->past_v);
    } else {
        case_absent(c);
        case_absent(c);
    }
    if (s->used)
        case_input(c, QSIM_INT64, SHAPE(s->batches), n->used);
}

static op_case *build(const setting *s, const numbers *n) {
    op_case *c = case_new("", "Attention", 25);
    add_inputs(c, s, n);
    case_node(c, 4);
    const int64_t heads[2] = {s->kv_heads * s->group, s->kv_heads};
    qs_node_set_int(c->g, c->node, "is_causal", s->causal);
    qs_node_set_int(c->g, c->node, "left_window_size", s->left);
    qs_node_set_int(c->g, c->node, "right_window_size", s->right);
    qs_node_set_int(c->g, c->node, "qk_matmul_output_mode", s->mode);
    if (s->precise)
        qs_node_set_int(c->g, c->node, "softmax_precision", QSIM_DOUBLE);
    if (s->packed) {
        qs_node_set_int(c->g, c->node, "q_num_heads", heads[0]);
        qs_node_set_int(c->g, c->node, "kv_num_heads", heads[1]);
    }
    if (s->scale != 0)
        qs_node_set_float(c->g, c->node, "scale", s->scale);
    if (s->cap != 0)
        qs_node_set_float(c->g, c->node, "softcap", s->cap);
    return c;
}

static void one(const setting *s, const numbers *n) {
    op_case *c = build(s, n);
    CHECK_INT(case_run(c), 0);
    const int64_t heads = s->kv_heads * s->group;
    for (int64_t i = 0; i < s->batches * heads * s->queries; i++)
        check_query(s, n, c,
                    (int64_t[]){i / s->queries / heads, i / s->queries % heads, i % s->queries});
    check_present(s, n, c);
    case_free(c);
}

static void fill(uint64_t *seed, numbers *n) {
    draw(seed, n->q, MOST);
    draw(seed, n->k, MOST);
    draw(seed, n->v, MOST);
    draw(seed, n->past_k, MOST);
    draw(seed, n->past_v, MOST);
    draw(seed, n->mask, MOST);
    for (size_t i = 0; i < MOST; i++) {
        n->allowed[i] = test_random(seed) % 3 != 0;
        n->mask[i] = test_random(seed) % 4 ? n->mask[i] : -INFINITY;
    }
}

static void test_random_settings(void) {
    uint64_t seed = 5;
    numbers *n = malloc(sizeof(*n));
    for (int i = 0; i < 60; i++) {
        const int64_t past = i % 3 ? (int64_t)(test_random(&seed) % 20) : 0;
        setting s = {.batches = 1 + test_random(&seed) % 2,
                     .kv_heads = 1 + test_random(&seed) % 2,
                     .group = 1 + test_random(&seed) % 3,
                     .queries = 1 + test_random(&seed) % 9,
                     .past = past,
                     .fresh = 1 + test_random(&seed) % 20,
                     .width = 1 + test_random(&seed) % 9,
                     .v_width = 1 + test_random(&seed) % 18,
                     .packed = i % 2};
        if (i % 4 == 3) { /* one head or two, of more than a block of queries has */
            s.batches = s.kv_heads = 1;
            s.group = 1 + test_random(&seed) % 2;
            s.queries = 1 + test_random(&seed) % 60;
            s.past %= 8;
            s.fresh = 1 + test_random(&seed) % 60;
            s.width = 1 + test_random(&seed) % 34;
            s.v_width = 1 + test_random(&seed) % 34;
        }
        s.causal = test_random(&seed) % 2;
        s.left = (int64_t)(test_random(&seed) % 6) - 1;
        s.right = (int64_t)(test_random(&seed) % 6) - 1;
        s.mode = test_random(&seed) % 4;
        s.mask_rank = (const int64_t[]){0, 2, 3, 4}[test_random(&seed) % 4];
        s.bool_mask = test_random(&seed) % 2;
        s.used = test_random(&seed) % 2;
        s.precise = test_random(&seed) % 4 == 0;
        s.scale = test_random(&seed) % 2 ? 0 : 0.3f;
        s.cap = test_random(&seed) % 2 ? 0 : 1.5f;
        fill(&seed, n);
        for (int b = 0; b < 2; b++)
            n->used[b] = (int64_t)(test_random(&seed) % (uint32_t)(s.past + s.fresh + 1));
        one(&s, n);
        s.doubles = true;
        one(&s, n);
    }
    free(n);
}

/* ---- several blocks of queries and panels of keys ---- */

#define QUERIES 150
#define PAST    30
#define KEYS    (PAST + QUERIES)
#define HEADS   4
#define LARGE   (2 * HEADS * KEYS * 80)

/* An input whose last byte is followed by a page that cannot be read. */
typedef struct guarded {
    char *map;
    size_t size; /* that can be read */
    void *was;
} guarded;

static guarded guard_input(op_case *c, int32_t input) {
    const qs_id id = c->in[input];
    const size_t page = 65536, bytes = c->bytes[id], size = qs_align(bytes, page) + page;
    guarded g = {aligned_alloc(page, size), size - page, c->data[id]};
    char *at = g.map + g.size - bytes;
    memcpy(at, g.was, bytes);
    CHECK_INT(mprotect(g.map + g.size, page, PROT_NONE), 0);
    c->data[id] = at;
    return g;
}

static void open_input(op_case *c, int32_t input, const guarded *g) {
    CHECK_INT(mprotect(g->map + g->size, 65536, PROT_READ | PROT_WRITE), 0);
    c->data[c->in[input]] = g->was;
    free(g->map);
}

static op_case *blocks(const setting *s, const float *x, int32_t outputs) {
    op_case *c = case_new("", "Attention", 25);
    case_input(c, QSIM_FLOAT, SHAPE(2, HEADS, s->queries, s->width), x);
    case_input(c, QSIM_FLOAT, SHAPE(2, s->kv_heads, QUERIES, s->width), x + 1000);
    case_input(c, QSIM_FLOAT, SHAPE(2, s->kv_heads, QUERIES, s->v_width), x + 2000);
    case_absent(c);
    if (s->past) {
        case_input(c, QSIM_FLOAT, SHAPE(2, s->kv_heads, s->past, s->width), x + 3000);
        case_input(c, QSIM_FLOAT, SHAPE(2, s->kv_heads, s->past, s->v_width), x + 4000);
    } else {
        case_absent(c);
        case_absent(c);
    }
    case_node(c, outputs);
    qs_node_set_int(c->g, c->node, "is_causal", s->causal);
    qs_node_set_int(c->g, c->node, "left_window_size", s->left);
    qs_node_set_int(c->g, c->node, "right_window_size", s->right);
    guarded g[6] = {{NULL, 0, NULL}};
    for (int32_t i = 0; i < 6; i++)
        if (c->in[i] != QS_NONE)
            g[i] = guard_input(c, i);
    CHECK_INT(case_run(c), 0);
    for (int32_t i = 0; i < 6; i++)
        if (g[i].map)
            open_input(c, i, &g[i]);
    return c;
}

/* With scores as an output all products are computed, else only those of visible keys: the same
 * bits, and nothing after an input is read. */
static void test_blocks(void) {
    static const int64_t settings[][8] = {
        /* kv heads, width, width of values, causal, left, right, queries, past */
        {4, 24, 64, 1, -1, -1, QUERIES, PAST}, {2, 64, 72, 1, -1, -1, QUERIES, PAST},
        {2, 17, 16, 1, 40, -1, QUERIES, PAST}, {4, 8, 5, 0, -1, 3, QUERIES, PAST},
        {1, 64, 64, 0, -1, -1, QUERIES, PAST}, {4, 24, 64, 1, -1, -1, QUERIES, 0},
        {4, 64, 40, 1, -1, -1, 1, PAST},       {2, 64, 136, 0, -1, 3, 2, 0},
        {1, 64, 64, 1, 7, -1, 12, PAST},       {1, 16, 72, 1, -1, -1, 20, 0}};
    float *x = malloc((LARGE + 5000) * sizeof(*x));
    uint64_t seed = 11;
    draw(&seed, x, LARGE + 5000);
    for (size_t i = 0; i < QS_COUNT(settings); i++) {
        const int64_t *k = settings[i];
        const setting s = {.kv_heads = k[0],
                           .width = k[1],
                           .v_width = k[2],
                           .causal = k[3] != 0,
                           .left = k[4],
                           .right = k[5],
                           .queries = k[6],
                           .past = k[7]};
        op_case *all = blocks(&s, x, 4), *few = blocks(&s, x, 1);
        CHECK(memcmp(case_data(all, 0), case_data(few, 0), few->bytes[few->out[0]]) == 0);
        case_free(all);
        case_free(few);
    }
    free(x);
}

/* By hand: two keys, the first query masked, the second sees the second key only. */
static void test_rows_without_keys(void) {
    static const float q[2] = {1, 1}, k[2] = {3, 4}, v[2] = {10, 20};
    static const uint8_t allowed[4] = {0, 0, 0, 1};
    op_case *c = case_new("", "Attention", 23);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 1), q);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 1), k);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 2, 1), v);
    case_input(c, QSIM_BOOL, SHAPE(2, 2), allowed);
    case_node(c, 1);
    CHECK_INT(case_run(c), 0);
    const float *y = case_data(c, 0);
    CHECK_NEAR(y[0], 0, 0);
    CHECK_NEAR(y[1], 20, 0);
    case_free(c);
}

/* A window beyond the used keys is empty: the result is zeros, and no value is read. */
static void test_window_behind(void) {
    static const float q[1] = {1}, k[1] = {1}, v[1] = {INFINITY}, past_k[3] = {1, 1, 1},
                       past_v[3] = {5, INFINITY, INFINITY};
    static const int64_t used[1] = {1};
    op_case *c = case_new("", "Attention", 25);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 1), q);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 1), k);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1, 1), v);
    case_absent(c);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 3, 1), past_k);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 3, 1), past_v);
    case_input(c, QSIM_INT64, SHAPE(1), used);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "left_window_size", 0);
    CHECK_INT(case_run(c), 0);
    CHECK_NEAR(((const float *)case_data(c, 0))[0], 0, 0);
    case_free(c);
}

static void test_refused(void) {
    static numbers n;
    const setting good = {2, 1, 2, 3, 0, 4, 5, 6, .left = -1, .right = -1};
    setting bad[8];
    for (size_t i = 0; i < QS_COUNT(bad); i++)
        bad[i] = good;
    bad[1].mode = 4;
    bad[2].left = -2;
    bad[3].right = -2;
    bad[4].cap = -1;
    bad[5].cap = INFINITY;
    bad[6].scale = NAN;
    bad[7].mode = -2;
    for (size_t i = 0; i < QS_COUNT(bad); i++) {
        op_case *c = build(&bad[i], &n);
        CHECK_INT(case_infer(c), i ? QSIM_E_VALUE : 0);
        case_free(c);
    }
    op_case *c = case_new("", "Attention", 23); /* three heads share two */
    case_input(c, QSIM_FLOAT, SHAPE(1, 3, 2, 4), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 4), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 4), NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    case_free(c);
    c = case_new("", "Attention", 23); /* values of another type */
    case_input(c, QSIM_DOUBLE, SHAPE(1, 2, 2, 4), NULL);
    case_input(c, QSIM_DOUBLE, SHAPE(1, 2, 2, 4), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 2, 4), NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_DTYPE);
    CHECK(strstr(c->error.message, "input 0 is double but input 2 is float") != NULL);
    case_free(c);
    c = case_new("", "Attention", 23); /* heads side by side of an unknown number */
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 4), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 4), NULL);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 4), NULL);
    case_node(c, 1);
    CHECK_INT(case_infer(c), QSIM_E_VALUE);
    case_free(c);
}

/* ---- GroupQueryAttention ---- */

/* One head of one number, a buffer of 4 entries, `queries` new ones that end at key `last`. */
static op_case *group(int64_t queries, int32_t last, int32_t total, int64_t window) {
    static const float q[3] = {0, 0, 0}, k[3] = {1, 2, 3}, v[3] = {10, 20, 60};
    static const float past_k[4] = {7, 8, 9, 9}, past_v[4] = {70, 80, 90, 90};
    op_case *c = case_new("com.microsoft", "GroupQueryAttention", 1);
    case_input(c, QSIM_FLOAT, SHAPE(1, queries, 1), q);
    case_input(c, QSIM_FLOAT, SHAPE(1, queries, 1), k);
    case_input(c, QSIM_FLOAT, SHAPE(1, queries, 1), v);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 4, 1), past_k);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 4, 1), past_v);
    case_input(c, QSIM_INT32, SHAPE(1), &last);
    case_const(c, QSIM_INT32, SHAPE(1), &total);
    case_node(c, 3);
    qs_node_set_int(c->g, c->node, "num_heads", 1);
    qs_node_set_int(c->g, c->node, "kv_num_heads", 1);
    qs_node_set_int(c->g, c->node, "local_window_size", window);
    return c;
}

/* By hand: all scores are 0, so results are averages of the values in sight. */
static void group_one(op_case *c, size_t queries, const float *y, const float *present_v) {
    CHECK_INT(case_run(c), 0);
    for (size_t i = 0; i < queries; i++)
        CHECK_NEAR(((const float *)case_data(c, 0))[i], y[i], 1e-5);
    for (size_t i = 0; i < 4; i++)
        CHECK_NEAR(((const float *)case_data(c, 2))[i], present_v[i], 0);
    case_free(c);
}

static void test_group(void) {
    group_one(group(3, 2, 3, -1), 3, (const float[]){10, 15, 30}, (const float[]){10, 20, 60, 0});
    group_one(group(3, 2, 3, 2), 3, (const float[]){10, 15, 40}, (const float[]){10, 20, 60, 0});
    group_one(group(1, 2, 3, -1), 1, (const float[]){160.0f / 3}, (const float[]){70, 80, 10, 0});
    group_one(group(2, 3, 4, -1), 2, (const float[]){160.0f / 3, 45},
              (const float[]){70, 80, 10, 20});
    for (int i = 0; i < 3; i++) { /* refused: no heads that share, an empty window, half a past */
        op_case *c = group(1, 0, 1, i == 1 ? 0 : -1);
        if (i == 0)
            qs_node_set_int(c->g, c->node, "kv_num_heads", 2);
        if (i == 2)
            qs_node_set_input(c->g, c->node, 4, QS_NONE);
        CHECK_INT(case_infer(c), QSIM_E_VALUE);
        case_free(c);
    }
}

/* What ONNX Runtime writes of quantized caches and others is accepted where it asks for none. */
static void test_group_extras(void) {
    static const char *const names[] = {"causal", "qk_output", "sliding_window_cache"};
    for (int i = 0; i < 8; i++) {
        op_case *c = group(1, 0, 1, -1);
        const bool other = i & 1;
        const qs_attr kind = {
            .name = "v_quant_type",
            .type = QSIM_ATTR_STRING,
            .u.s = {(const uint8_t *)(other ? "PER_TENSOR" : "NONE"), other ? 10 : 4}};
        if (i < 6)
            qs_node_set_int(c->g, c->node, names[i / 2], (i < 2) != other);
        else
            CHECK_INT(qs_node_set_attr(c->g, c->node, &kind), QSIM_OK);
        CHECK_INT(case_infer(c), other ? QSIM_E_UNSUPPORTED : QSIM_OK);
        case_free(c);
    }
}

/* The total that only the run knows is one number. */
static void test_group_total(void) {
    static const int32_t three[2] = {3, 3}, last = 2;
    for (int64_t n = 0; n < 3; n++) {
        op_case *c = case_new("com.microsoft", "GroupQueryAttention", 1);
        for (int i = 0; i < 3; i++)
            case_input(c, QSIM_FLOAT, SHAPE(1, 3, 1), (const float[]){1, 2, 3});
        case_absent(c);
        case_absent(c);
        case_input(c, QSIM_INT32, SHAPE(1), &last);
        case_input(c, QSIM_INT32, SHAPE(n), three);
        case_node(c, 1);
        qs_node_set_int(c->g, c->node, "num_heads", 1);
        qs_node_set_int(c->g, c->node, "kv_num_heads", 1);
        CHECK_INT(case_infer(c), n == 1 ? QSIM_OK : QSIM_E_VALUE);
        case_free(c);
    }
}

/* An operand of another size is named with its axis. */
static void test_group_sizes(void) {
    const float keys[2] = {1, 2};
    op_case *c = case_new("com.microsoft", "GroupQueryAttention", 1);
    const int32_t last = 0, total = 1;
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1), keys);
    case_input(c, QSIM_FLOAT, SHAPE(1, 1, 1), keys);
    case_input(c, QSIM_FLOAT, SHAPE(1, 2, 1), keys);
    case_absent(c);
    case_absent(c);
    case_input(c, QSIM_INT32, SHAPE(1), &last);
    case_const(c, QSIM_INT32, SHAPE(1), &total);
    case_node(c, 1);
    qs_node_set_int(c->g, c->node, "num_heads", 1);
    qs_node_set_int(c->g, c->node, "kv_num_heads", 1);
    CHECK_INT(case_infer(c), QSIM_E_SHAPE);
    CHECK(strstr(c->error.message, "axis 1 of input 2 is 2, expected 1") != NULL);
    case_free(c);
}

int main(void) {
    test_group();
    test_group_extras();
    test_group_total();
    test_group_sizes();
    test_random_settings();
    test_rows_without_keys();
    test_window_behind();
    test_blocks();
    test_refused();
    return test_done();
}
