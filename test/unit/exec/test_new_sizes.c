/* SPDX-License-Identifier: MIT */
/*
 * Executions whose sizes are all new, as of a language model that reads its own words: what
 * planning allocates does not grow with the number of nodes, and the arena seldom grows.
 */
#include "heap.h"
#include "net.h"

#include "exec/run.h"

#include <limits.h>
#include <math.h>

#define WIDTH 16384 /* of a row, which has more bytes than all lists of a plan */
#define ROWS  32
#define NODES 40

typedef struct counts {
    test_heap heap;
    long large; /* requests for a row or more */
    size_t all; /* bytes of all requests */
} counts;

static void *count_alloc(void *user, size_t size, size_t align) {
    counts *c = user;
    c->large += size >= WIDTH * sizeof(float);
    return test_heap_alloc(&c->heap, size, align);
}

static void count_free(void *user, void *ptr, size_t size) {
    counts *c = user;
    test_heap_free(&c->heap, ptr, size);
}

/* Softmax after Softmax: no pass makes one node of two. The last rows are nearly constant. */
static void make(net *n, qsim_ctx *ctx, int nodes) {
    char from[16] = "x", to[16];
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, WIDTH));
    for (int i = 0; i < nodes; i++) {
        snprintf(to, sizeof(to), "y%d", i);
        net_node(n, "", "Softmax", from, to);
        memcpy(from, to, sizeof(from));
    }
    net_output(n, from);
    NET_OK(n, net_end(n));
}

/* Executes 1 row, then 2, and so on; returns the least number of requests of an execution. */
static long least_requests(int nodes, long *large) {
    static float x[ROWS * WIDTH];
    counts c = {.large = 0};
    const qsim_allocator a = {count_alloc, count_free, &c};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .allocator = &a};
    qsim_ctx *ctx;
    qsim_session *s;
    qsim_run *r;
    net n;
    long least = LONG_MAX, before = 0;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    make(&n, ctx, nodes);
    NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
    NET_OK(&n, qsim_run_create(s, &r, &n.error));
    *large = 0;
    for (int64_t rows = 1; rows <= ROWS; rows++) {
        const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(rows, WIDTH), x);
        qsim_tensor out = {0};
        const long calls = c.heap.calls;
        before = c.large;
        NET_OK(&n, qsim_run_execute(r, &in, 1, &out, 1, &n.error));
        *large += c.large - before;
        least = c.heap.calls - calls < least ? c.heap.calls - calls : least;
        CHECK_INT(out.dims[0], rows);
        CHECK(fabsf(((const float *)out.data)[rows * WIDTH - 1] - 1.0f / WIDTH) < 1e-7f);
    }
    qsim_run_free(r);
    qsim_session_free(s);
    net_free(&n);
    qsim_ctx_free(ctx);
    CHECK_INT(c.heap.live, 0);
    return least;
}

/* ---- plans that keep parts of the one before ---- */

#define HEAD   8
#define LAYERS 60 /* products and Softmax that know nothing of the cache */

/*
 * One head of attention over a cache, as exporters write it: the mask and the rows of a table of
 * places come from the cache's length. `length`, an input, is the size of one output and the end of
 * another.
 */
static void make_attention(net *n, qsim_ctx *ctx) {
    const int64_t one = 1, zero = 0;
    char from[16] = "mixed", product[16], to[16];
    net_begin(n, ctx, 13);
    net_input(n, "q", QSIM_FLOAT, NET_DIMS(-1, HEAD));
    net_input(n, "past", QSIM_FLOAT, NET_DIMS(-1, HEAD));
    net_input(n, "length", QSIM_INT64, NET_DIMS(1));
    net_random(n, "w", NET_DIMS(HEAD, HEAD), 3, 1);
    net_random(n, "places", NET_DIMS(256, HEAD), 4, 1);
    net_const(n, "zero", QSIM_INT64, 0, NULL, &zero);
    net_const(n, "one", QSIM_INT64, 0, NULL, &one);
    net_const(n, "first", QSIM_INT64, NET_DIMS(1), &zero);
    net_float(n, "limit", 3);
    net_float(n, "low", -9);
    net_node(n, "", "MatMul", "q,w", "key");
    CHECK_INT(qs_node_set_int(n->g, net_node(n, "", "Concat", "past,key", "present"), "axis", 0),
              0);
    net_node(n, "", "Shape", "present", "shape");
    net_node(n, "", "Gather", "shape,zero", "total");
    net_node(n, "", "Range", "zero,total,one", "range");
    CHECK_INT(qs_node_set_int(n->g, net_node(n, "", "Cast", "range", "place"), "to", QSIM_FLOAT),
              0);
    net_node(n, "", "Less", "place,limit", "near");
    net_node(n, "", "Gather", "places,range", "rotation");
    net_node(n, "", "Mul", "present,rotation", "rotated");
    net_node(n, "", "Transpose", "rotated", "columns");
    net_node(n, "", "MatMul", "q,columns", "scores");
    net_node(n, "", "Where", "near,low,scores", "masked");
    net_node(n, "", "Softmax", "masked", "weights");
    net_node(n, "", "MatMul", "weights,present", "mixed");
    for (int i = 0; i < LAYERS; i++) {
        snprintf(product, sizeof(product), "p%d", i);
        snprintf(to, sizeof(to), "h%d", i);
        net_node(n, "", "MatMul", i % 3 ? "q,w" : "mixed,w", product);
        net_node(n, "", "Softmax", product, to);
        memcpy(from, to, sizeof(from));
        net_output(n, to);
    }
    net_node(n, "", "Expand", "limit,length", "wide");
    net_node(n, "", "Slice", "present,first,length", "oldest");
    net_output(n, "present");
    net_output(n, "wide");
    net_output(n, "oldest");
    NET_OK(n, net_end(n));
}

#define OUTPUTS (LAYERS + 3)

static bool same_tensor(const qsim_tensor *a, const qsim_tensor *b) {
    bool same = a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes;
    for (int32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same && memcmp(a->data, b->data, a->bytes) == 0;
}

/* A session, and a run that lasts. */
typedef struct decoder {
    qsim_session *session;
    qsim_run *run;
    net n;
    float x[2][256 * HEAD];
} decoder;

/* Number of steps that the run's plan has from the one before. */
static size_t kept_steps(const qs_plan *now, const qs_plan *before) {
    size_t count = 0;
    for (size_t i = 0; before && i < now->step_count; i++)
        for (size_t k = 0; k < before->step_count; k++)
            count += now->steps[i].params && now->steps[i].params == before->steps[k].params;
    return count;
}

/* Executes the run that lasts and one of its own; returns how many steps the first one kept. */
static size_t step(decoder *d, int64_t tokens, int64_t past, int64_t length) {
    const qsim_tensor in[3] = {net_tensor(QSIM_FLOAT, NET_DIMS(tokens, HEAD), d->x[0]),
                               net_tensor(QSIM_FLOAT, NET_DIMS(past, HEAD), d->x[1]),
                               net_tensor(QSIM_INT64, NET_DIMS(1), &length)};
    qsim_tensor out[OUTPUTS] = {{0}}, wanted[OUTPUTS] = {{0}};
    qsim_run *fresh;
    int bad = 0;
    const qs_plan *before = d->run->plan;
    NET_OK(&d->n, qsim_run_execute(d->run, in, 3, out, OUTPUTS, &d->n.error));
    const size_t kept = kept_steps(d->run->plan, before);
    NET_OK(&d->n, qsim_run_create(d->session, &fresh, &d->n.error));
    NET_OK(&d->n, qsim_run_execute(fresh, in, 3, wanted, OUTPUTS, &d->n.error));
    for (int i = 0; i < OUTPUTS; i++)
        bad += !same_tensor(&out[i], &wanted[i]);
    CHECK_INT(bad, 0);
    CHECK_INT(out[LAYERS].dims[0], past + tokens);
    CHECK_INT(out[LAYERS + 1].dims[0], length);
    qsim_run_free(fresh);
    return kept;
}

static void check_decoder(void) {
    static decoder d;
    test_heap heap = {0};
    const qsim_allocator a = test_heap_allocator(&heap);
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .allocator = &a};
    qsim_ctx *ctx;
    uint64_t state = 6;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    make_attention(&d.n, ctx);
    NET_OK(&d.n, qsim_session_create(d.n.model, NULL, &d.session, &d.n.error));
    NET_OK(&d.n, qsim_run_create(d.session, &d.run, &d.n.error));
    for (int i = 0; i < 2 * 256 * HEAD; i++)
        d.x[i / (256 * HEAD)][i % (256 * HEAD)] = (float)(test_random(&state) % 1000) / 500 - 1;
    /* Few plans start anew; all others keep the layers. */
    int few = 0;
    for (int64_t past = 4; past < 36; past++)
        few += step(&d, 1, past, 2) < 2 * LAYERS;
    CHECK(few < 8);
    /* Everything changes from one to the next, or only the value of an input, or nothing. */
    for (int i = 0; i < 60; i++)
        step(&d, 1 + (int64_t)(test_random(&state) % 3), (int64_t)(test_random(&state) % 6),
             (int64_t)(test_random(&state) % 2));
    qsim_run_free(d.run);
    qsim_session_free(d.session);
    net_free(&d.n);
    qsim_ctx_free(ctx);
    CHECK_INT(heap.live, 0);
}

int main(void) {
    check_decoder();
    long large, few = least_requests(1, &large);
    const long many = least_requests(NODES, &large);
    /* Arenas double, so that the lists of 40 nodes take a few blocks more. */
    if (many > few + 16)
        fprintf(stderr, "%ld requests for a plan of 1 node, %ld for one of %d\n", few, many, NODES);
    CHECK(many <= few + 16);
    /* Each time the arena grows it gets a quarter more: from 1 row to 32 in 17 steps. */
    long steps = 1;
    for (double size = 1; size < ROWS; size *= 1.25)
        steps++;
    if (large > steps)
        fprintf(stderr, "the arena grew %ld times, %ld are enough\n", large, steps);
    CHECK(large <= steps);
    return test_done();
}
