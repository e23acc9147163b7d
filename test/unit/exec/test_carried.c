/* SPDX-License-Identifier: MIT */
/*
 * Sequences that a Loop carries, sequences of any number of slices and sequences that subgraphs
 * capture, read in every way, beside plain loops: what PyTorch makes of lists in loops.
 */
#include <stdbool.h>
#include <stdio.h>

#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

enum { MOST = 4, ROWS = 2, COLUMNS = 3, PART = ROWS * COLUMNS };

static const int64_t any[] = {-1, -1, -1}, none = 0;

/* A node with up to three attributes that are integers, whose names end the list with NULL. */
static void node(proto *g, const char *op, const char *const *in, const char *out,
                 const char *const *names, const int64_t *values) {
    proto n = {0}, a = {0};
    for (int i = 0; in[i]; i++)
        proto_text(&n, 1, in[i]);
    proto_text(&n, 2, out);
    proto_text(&n, 4, op);
    for (int i = 0; names && names[i]; i++) {
        proto_text(&a, 1, names[i]);
        proto_int(&a, 3, values[i]);
        proto_int(&a, 20, 2);
        proto_take(&n, 5, &a);
    }
    proto_take(g, 1, &n);
    proto_free(&n);
    proto_free(&a);
}

#define IN(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define NAMES(...)  ((const char *const[]){__VA_ARGS__, NULL})
#define VALUES(...) ((const int64_t[]){__VA_ARGS__})

static int load(proto *g, qsim_model **m, qsim_error *e) {
    proto model = {0};
    proto_text(g, 2, "g");
    proto_model(&model, g);
    const qsim_load_options o = {.struct_size = sizeof(o), .flags = QSIM_LOAD_COPY};
    const int code = qsim_model_load_memory(NULL, model.data, model.size, &o, m, e);
    proto_free(&model);
    proto_free(g);
    return code;
}

/* The inputs of every model here: a trip count, parts, a state and a position. */
static void inputs(proto *g) {
    proto_value(g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(g, 11, "x", QSIM_FLOAT, any, 3);
    proto_value(g, 11, "h", QSIM_FLOAT, any, 2);
    proto_value(g, 11, "p", QSIM_INT64, NULL, 0);
}

/* The body: s, a sequence, gets the part of x at `trip`, or the indices of its numbers above 0. */
static void body(proto *b, bool ragged) {
    proto_name(b, 11, "trip");
    proto_name(b, 11, "go");
    proto_name(b, 11, "s");
    proto_name(b, 11, "h");
    node(b, "Gather", IN("x", "trip"), "part", NULL, NULL);
    if (ragged) {
        node(b, "Relu", IN("part"), "above", NULL, NULL);
        node(b, "NonZero", IN("above"), "at", NULL, NULL);
        node(b, "Transpose", IN("at"), "v", NULL, NULL);
    } else {
        node(b, "Identity", IN("part"), "v", NULL, NULL);
    }
    node(b, "SequenceInsert", IN("s", "v"), "grown", NULL, NULL);
    node(b, "Identity", IN("go"), "more", NULL, NULL);
    node(b, "Add", IN("h", "part"), "sum", NULL, NULL);
    proto_name(b, 12, "more");
    proto_name(b, 12, "grown");
    proto_name(b, 12, "sum");
    proto_name(b, 12, "part");
}

/* s = a Loop of m times over x, beside a state and a scan output; `first`: it begins with `h`. */
static void loop(proto *g, bool ragged, bool first) {
    proto b = {0}, n = {0};
    body(&b, ragged);
    inputs(g);
    if (first)
        node(g, "SequenceConstruct", IN("h"), "begin", NULL, NULL);
    else if (ragged)
        node(g, "SequenceEmpty", (const char *const[]){NULL}, "begin", NAMES("dtype"),
             VALUES(QSIM_INT64));
    else
        node(g, "SequenceEmpty", (const char *const[]){NULL}, "begin", NULL, NULL);
    proto_text(&n, 1, "m");
    proto_text(&n, 1, "");
    proto_text(&n, 1, "begin");
    proto_text(&n, 1, "h");
    proto_text(&n, 2, "s");
    proto_text(&n, 2, "total");
    proto_text(&n, 2, "parts");
    proto_text(&n, 4, "Loop");
    proto_graph(&n, "body", &b);
    proto_take(g, 1, &n);
    proto_free(&b);
    proto_free(&n);
}

typedef struct live {
    qsim_model *model;
    qsim_session *session;
    qsim_run *run;
} live;

static int begin(live *l, proto *g, int32_t level, qsim_error *e) {
    const qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    *l = (live){0};
    int code = load(g, &l->model, e);
    if (!code)
        code = qsim_session_create(l->model, &o, &l->session, e);
    return code ? code : qsim_run_create(l->session, &l->run, e);
}

static void end(live *l) {
    qsim_run_free(l->run);
    qsim_session_free(l->session);
    qsim_model_free(l->model);
}

static float x[MOST * PART], h[PART];

/* Runs the Loop `m` times; p is a position. */
static int run(live *l, int64_t m, int64_t p, qsim_tensor *out, size_t count, qsim_error *e) {
    static const int64_t all[] = {MOST, ROWS, COLUMNS};
    const qsim_tensor in[4] = {{QSIM_INT64, 0, NULL, &m, sizeof(m)},
                               {QSIM_FLOAT, 3, all, x, sizeof(x)},
                               {QSIM_FLOAT, 2, all + 1, h, sizeof(h)},
                               {QSIM_INT64, 0, NULL, &p, sizeof(p)}};
    memset(out, 0, count * sizeof(*out));
    return qsim_run_execute(l->run, in, 4, out, count, e);
}

/* Element (i, r, c) of `count` parts is at ((i * rows + r) * columns + c) if the axes are so. */
static const float *part(int64_t i, bool first) {
    return first ? (i == 0 ? h : x + (i - 1) * PART) : x + i * PART;
}

/* The parts joined along `axis`, a new one if `stacks`. */
static void check_joined(const qsim_tensor *y, int64_t parts, bool first, int axis, bool stacks) {
    const int64_t outer = axis == 0 ? 1 : axis == 1 ? ROWS : PART, inner = PART / outer;
    CHECK_INT(y->rank, 2 + stacks);
    CHECK_INT(y->bytes, (size_t)parts * PART * sizeof(float));
    for (int k = 0; k < y->rank; k++) {
        static const int64_t sizes[] = {ROWS, COLUMNS};
        const int64_t own = k == axis && stacks ? 1 : sizes[k - (stacks && k > axis)];
        CHECK_INT(y->dims[k], k == axis ? own * parts : own);
    }
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < parts; i++)
            CHECK(memcmp((const float *)y->data + (o * parts + i) * inner,
                         part(i, first) + o * inner, (size_t)inner * sizeof(float)) == 0);
}

/* ConcatFromSequence of s in five ways, SequenceAt p and SequenceLength; then the other outputs. */
static void readers(proto *g) {
    static const char *const joined[] = {"y0", "y1", "y2", "y3", "y4"};
    static const int64_t forms[][2] = {{0, 0}, {-1, 0}, {0, 1}, {1, 1}, {-1, 1}};
    for (int i = 0; i < 5; i++) {
        node(g, "ConcatFromSequence", IN("s"), joined[i], NAMES("axis", "new_axis"), forms[i]);
        proto_name(g, 12, joined[i]);
    }
    node(g, "SequenceAt", IN("s", "p"), "at", NULL, NULL);
    node(g, "SequenceLength", IN("s"), "length", NULL, NULL);
    proto_name(g, 12, "at");
    proto_name(g, 12, "length");
}

static void check_readers(const qsim_tensor *out, int64_t parts, bool first, int64_t p) {
    static const int axes[] = {0, 1, 0, 1, 2};
    for (int i = 0; i < 5; i++)
        check_joined(&out[i], parts, first, axes[i], i > 1);
    CHECK_INT(out[5].rank, 2);
    CHECK(memcmp(out[5].data, part(p, first), PART * sizeof(float)) == 0);
    CHECK_INT(out[6].rank, 0);
    CHECK_INT(*(const int64_t *)out[6].data, parts);
}

static void test_loop(bool first, int32_t level) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[9];
    loop(&g, false, first);
    readers(&g);
    proto_name(&g, 12, "total");
    proto_name(&g, 12, "parts");
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = MOST; m > 0; m--) {
        const int64_t parts = m + first;
        for (int64_t p = -parts; p < parts; p++) {
            CHECK_INT(run(&l, m, p, out, 9, &e), QSIM_OK);
            check_readers(out, parts, first, p < 0 ? p + parts : p);
            CHECK_INT(out[8].dims[0], m);
            CHECK(memcmp(out[8].data, x, (size_t)m * PART * sizeof(float)) == 0);
            float total = h[PART - 1];
            for (int64_t i = 0; i < m; i++)
                total += x[i * PART + PART - 1];
            CHECK(((const float *)out[7].data)[PART - 1] == total);
        }
        CHECK(run(&l, m, parts, out, 9, &e) != QSIM_OK); /* no such position */
    }
    end(&l);
}

/* Lists of indices, of other lengths each time, joined; none of them is read as it is. */
static void test_ragged(int32_t level) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1];
    loop(&g, true, false);
    node(&g, "ConcatFromSequence", IN("s"), "y", NAMES("axis"), &none);
    proto_name(&g, 12, "y");
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = MOST; m >= 0; m--) {
        const int64_t *at;
        int64_t count = 0;
        CHECK_INT(run(&l, m, 0, out, 1, &e), QSIM_OK);
        CHECK_INT(out[0].dtype, QSIM_INT64);
        CHECK_INT(out[0].rank, 2);
        CHECK_INT(out[0].dims[1], 2);
        at = out[0].data;
        for (int64_t i = 0; i < m * PART; i++) {
            if (x[i] <= 0)
                continue;
            CHECK_INT(at[2 * count], i % PART / COLUMNS);
            CHECK_INT(at[2 * count + 1], i % COLUMNS);
            count++;
        }
        CHECK_INT(out[0].dims[0], count);
    }
    end(&l);
}

/* What differs in size cannot be stacked: the run says so. */
static void test_sizes_that_change(void) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1];
    loop(&g, true, false);
    node(&g, "SequenceLength", IN("s"), "y", NULL, NULL);
    proto_name(&g, 12, "y");
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_INT(run(&l, MOST, 0, out, 1, &e), QSIM_E_SHAPE);
    CHECK(strstr(e.message, "changes its sizes") != NULL);
    end(&l);
}

/* A tensor cut into slices whose number is not in the file; `keeps` their axis. */
static void test_slices(bool keeps) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[7];
    inputs(&g);
    node(&g, "SplitToSequence", IN("x"), "s", NAMES("axis", "keepdims"), VALUES(0, keeps));
    readers(&g);
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t p = -MOST; p < MOST; p++) {
        CHECK_INT(run(&l, 0, p, out, 7, &e), QSIM_OK);
        if (!keeps) {
            check_readers(out, MOST, false, p < 0 ? p + MOST : p);
            continue;
        }
        /* parts of sizes (1, ROWS, COLUMNS) */
        CHECK(out[0].rank == 3 && memcmp(out[0].data, x, sizeof(x)) == 0);
        CHECK(out[1].rank == 3 && out[1].dims[0] == 1 && out[1].dims[2] == MOST * COLUMNS);
        CHECK(((const float *)out[1].data)[COLUMNS] == x[PART]);
        CHECK(out[2].rank == 4 && out[2].dims[1] == 1 && memcmp(out[2].data, x, sizeof(x)) == 0);
        CHECK(out[3].rank == 4 && out[3].dims[0] == 1 && memcmp(out[3].data, x, sizeof(x)) == 0);
        CHECK(out[4].rank == 4 && out[4].dims[0] == 1 && out[4].dims[3] == MOST);
        CHECK(((const float *)out[4].data)[1] == x[PART]);
        CHECK(out[5].rank == 3 && out[5].dims[0] == 1);
        CHECK(memcmp(out[5].data, x + (p < 0 ? p + MOST : p) * PART, PART * sizeof(float)) == 0);
        CHECK_INT(*(const int64_t *)out[6].data, MOST);
    }
    end(&l);
}

/* ---- sequences that subgraphs capture ---- */

/* Adds a node with one subgraph or two; names of inputs and outputs end with NULL. */
static void control(proto *g, const char *op, const char *const *in, const char *const *out,
                    const char *const *names, proto *graphs) {
    proto n = {0};
    for (int i = 0; in[i]; i++)
        proto_text(&n, 1, in[i]);
    for (int i = 0; out[i]; i++)
        proto_text(&n, 2, out[i]);
    proto_text(&n, 4, op);
    for (int i = 0; names[i]; i++) {
        proto_graph(&n, names[i], &graphs[i]);
        proto_free(&graphs[i]);
    }
    proto_take(g, 1, &n);
    proto_free(&n);
}

/* Begins a body whose iteration is `trip`, and gives it the condition it was given. */
static proto body_begin(const char *trip, const char *go, const char *more) {
    proto b = {0};
    proto_name(&b, 11, trip);
    proto_name(&b, 11, go);
    node(&b, "Identity", IN(go), more, NULL, NULL);
    proto_name(&b, 12, more);
    return b;
}

/* list = parts of s + h, which grows, by an If; counts = the length of s each time. */
static void growing(proto *g) {
    proto b = body_begin("i", "go", "more"), either[2] = {{0}, {0}};
    proto_name(&b, 11, "list0");
    node(&b, "SequenceAt", IN("s", "i"), "part", NULL, NULL);
    node(&b, "SequenceLength", IN("s"), "length", NULL, NULL);
    node(&either[0], "Add", IN("part", "h"), "up", NULL, NULL);
    node(&either[1], "Sub", IN("part", "h"), "down", NULL, NULL);
    proto_name(&either[0], 12, "up");
    proto_name(&either[1], 12, "down");
    control(&b, "If", IN("go"), IN("moved"), NAMES("then_branch", "else_branch"), either);
    node(&b, "SequenceInsert", IN("list0", "moved"), "list1", NULL, NULL);
    proto_name(&b, 12, "list1");
    proto_name(&b, 12, "length");
    node(g, "SequenceEmpty", (const char *const[]){NULL}, "empty", NULL, NULL);
    control(g, "Loop", IN("m", "", "empty"), IN("list", "counts"), NAMES("body"), &b);
}

/* back = part 0 of the list, then from its last to its second, each plus tensor p of two. */
static void backwards(proto *g) {
    proto b = body_begin("j", "go1", "more1");
    node(&b, "Neg", IN("j"), "from_end", NULL, NULL);
    node(&b, "SequenceAt", IN("list", "from_end"), "v", NULL, NULL);
    node(&b, "SequenceAt", IN("two", "p"), "w", NULL, NULL);
    node(&b, "Add", IN("v", "w"), "sum", NULL, NULL);
    proto_name(&b, 12, "sum");
    node(g, "Add", IN("h", "h"), "twice", NULL, NULL);
    node(g, "SequenceConstruct", IN("h"), "one", NULL, NULL);
    node(g, "SequenceInsert", IN("one", "twice"), "two", NULL, NULL);
    control(g, "Loop", IN("m", ""), IN("back"), NAMES("body"), &b);
}

/* products = all parts of s times all parts of s, by a Loop in a Loop. */
static void nested(proto *g) {
    proto inner = body_begin("k", "go2", "more2"), outer = body_begin("n", "go3", "more3");
    node(&inner, "SequenceAt", IN("s", "k"), "a", NULL, NULL);
    node(&inner, "Mul", IN("a", "b"), "ab", NULL, NULL);
    proto_name(&inner, 12, "ab");
    node(&outer, "SequenceAt", IN("s", "n"), "b", NULL, NULL);
    control(&outer, "Loop", IN("m", ""), IN("row"), NAMES("body"), &inner);
    proto_name(&outer, 12, "row");
    control(g, "Loop", IN("m", ""), IN("products"), NAMES("body"), &outer);
}

/* chosen = part p of s if p < m, else tensor p of two. */
static void branches(proto *g) {
    proto either[2] = {{0}, {0}};
    node(&either[0], "SequenceAt", IN("s", "p"), "c", NULL, NULL);
    proto_name(&either[0], 12, "c");
    node(&either[1], "SequenceAt", IN("two", "p"), "d", NULL, NULL);
    node(&either[1], "Relu", IN("d"), "e", NULL, NULL);
    proto_name(&either[1], 12, "e");
    node(g, "Less", IN("p", "m"), "less", NULL, NULL);
    control(g, "If", IN("less"), IN("chosen"), NAMES("then_branch", "else_branch"), either);
}

static void check_captured(const qsim_tensor *out, int64_t m, int64_t p) {
    const float *back = out[0].data, *products = out[2].data, *chosen = out[3].data;
    const float factor = p == 0 || p == -2 ? 1 : 2;
    CHECK_INT(out[0].dims[0], m);
    CHECK_INT(out[2].dims[0] * 10 + out[2].dims[1], m * 11);
    for (int64_t i = 0; i < m; i++) {
        CHECK_INT(((const int64_t *)out[1].data)[i], MOST);
        for (int k = 0; k < PART; k++) {
            const int64_t from = i == 0 ? 0 : m - i;
            CHECK(back[i * PART + k] == x[from * PART + k] + h[k] + factor * h[k]);
            for (int64_t j = 0; j < m; j++)
                CHECK(products[(i * m + j) * PART + k] == x[i * PART + k] * x[j * PART + k]);
        }
    }
    for (int k = 0; k < PART; k++)
        CHECK(chosen[k] == (p < m ? x[(p < 0 ? p + MOST : p) * PART + k] : factor * h[k]));
}

static void test_captured(int32_t level) {
    static const char *const names[] = {"back", "counts", "products", "chosen"};
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[4];
    proto_value(&g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, any, 3);
    proto_value(&g, 11, "h", QSIM_FLOAT, any, 2);
    proto_value(&g, 11, "p", QSIM_INT64, NULL, 0);
    node(&g, "SplitToSequence", IN("x"), "s", NAMES("keepdims"), &none);
    growing(&g);
    backwards(&g);
    nested(&g);
    branches(&g);
    for (size_t i = 0; i < 4; i++)
        proto_name(&g, 12, names[i]);
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = 1; m <= MOST; m++)
        for (int64_t p = -2; p < 2; p++) {
            CHECK_INT(run(&l, m, p, out, 4, &e), QSIM_OK);
            check_captured(out, m, p);
        }
    end(&l);
}

/* ---- lists that the body reads and changes ---- */

/*
 * s begins with h. Each time, part p of s plus part `trip` of x is put before part `trip` of s, and
 * part `trip` of x behind s; part p of all is taken out after the Loop.
 */
static void changing(proto *g) {
    proto b = body_begin("i", "go", "more");
    proto_name(&b, 11, "s");
    node(&b, "SequenceLength", IN("s"), "length", NULL, NULL);
    node(&b, "SequenceAt", IN("s", "p"), "chosen", NULL, NULL);
    node(&b, "Gather", IN("x", "i"), "part", NULL, NULL);
    node(&b, "Add", IN("chosen", "part"), "sum", NULL, NULL);
    node(&b, "SequenceInsert", IN("s", "sum", "i"), "more_s", NULL, NULL);
    node(&b, "SequenceInsert", IN("more_s", "part"), "most_s", NULL, NULL);
    proto_name(&b, 12, "most_s");
    proto_name(&b, 12, "length");
    node(g, "SequenceConstruct", IN("h"), "begin", NULL, NULL);
    control(g, "Loop", IN("m", "", "begin"), IN("all", "lengths"), NAMES("body"), &b);
    node(g, "SequenceErase", IN("all", "p"), "rest", NULL, NULL);
    node(g, "ConcatFromSequence", IN("rest"), "y", NAMES("axis", "new_axis"), VALUES(0, 1));
}

typedef struct kept {
    int64_t count;
    float at[2 * MOST + 2][PART];
} kept;

static void put(kept *s, int64_t at, const float *part) {
    memmove(s->at[at + 1], s->at[at], (size_t)(s->count - at) * sizeof(s->at[0]));
    memcpy(s->at[at], part, sizeof(s->at[0]));
    s->count++;
}

static void test_changing(int32_t level) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[2];
    proto_value(&g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, any, 3);
    proto_value(&g, 11, "h", QSIM_FLOAT, any, 2);
    proto_value(&g, 11, "p", QSIM_INT64, NULL, 0);
    changing(&g);
    proto_name(&g, 12, "y");
    proto_name(&g, 12, "lengths");
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = 1; m <= MOST; m++)
        for (int64_t p = -1; p < 1; p++) {
            kept s = {0};
            put(&s, 0, h);
            for (int64_t i = 0; i < m; i++) {
                float sum[PART];
                for (int k = 0; k < PART; k++)
                    sum[k] = s.at[p < 0 ? s.count + p : p][k] + x[i * PART + k];
                put(&s, i, sum);
                put(&s, s.count, x + i * PART);
            }
            const int64_t gone = p < 0 ? s.count + p : p;
            memmove(s.at[gone], s.at[gone + 1], (size_t)(--s.count - gone) * sizeof(s.at[0]));
            CHECK_INT(run(&l, m, p, out, 2, &e), QSIM_OK);
            CHECK_STR(e.message, "");
            CHECK_INT(out[0].dims[0], s.count);
            CHECK(out[0].data && memcmp(out[0].data, s.at, (size_t)s.count * sizeof(s.at[0])) == 0);
            for (int64_t i = 0; i < m; i++)
                CHECK_INT(((const int64_t *)out[1].data)[i], 1 + 2 * i);
        }
    CHECK(run(&l, 2, 5, out, 2, &e) != QSIM_OK); /* no such part */
    end(&l);
}

/* Positions from -n to n of a list that grew: an insertion behind the Loop, and what is none. */
static void test_positions(void) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1];
    loop(&g, false, false);
    node(&g, "SequenceInsert", IN("s", "h", "p"), "t", NULL, NULL);
    node(&g, "ConcatFromSequence", IN("t"), "y", NAMES("axis", "new_axis"), VALUES(0, 1));
    proto_name(&g, 12, "y");
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    for (int64_t p = -MOST - 2; p <= MOST + 2; p++) {
        const bool legal = p >= -MOST && p <= MOST;
        const int64_t at = p < 0 ? p + MOST : p;
        CHECK((run(&l, MOST, p, out, 1, &e) == QSIM_OK) == legal);
        for (int64_t i = 0; i <= MOST && legal; i++)
            CHECK(memcmp((const float *)out[0].data + i * PART,
                         i == at ? h : x + (i - (i > at)) * PART, PART * sizeof(float)) == 0);
    }
    end(&l);
}

/* ---- refusals ---- */

/* A Loop with this node in the body or behind it is refused with these words. */
static void refused(const char *inside, const char *behind, const char *words) {
    proto g = {0}, b = {0}, n = {0};
    qsim_model *m = NULL;
    qsim_error e = {0};
    proto_name(&b, 11, "trip");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "s");
    proto_node(&b, "Identity", NULL, "go", NULL, "more");
    if (strcmp(inside, "at 0") == 0) {
        node(&b, "SequenceInsert", IN("s", "h", "trip"), "grown", NULL, NULL);
    } else if (strcmp(inside, "twice") == 0) {
        proto_node(&b, "SequenceInsert", NULL, "s", "h", "one");
        proto_node(&b, "SequenceInsert", NULL, "one", "h", "grown");
    } else if (strcmp(inside, "tensor") == 0) {
        proto_node(&b, "Identity", NULL, "h", NULL, "grown");
    } else {
        proto_node(&b, "SequenceInsert", NULL, "s", "h", "grown");
        if (*inside == 'S')
            proto_node(&b, inside, NULL, "s", NULL, "read");
    }
    proto_name(&b, 12, "more");
    proto_name(&b, 12, strcmp(inside, "same") == 0 ? "s" : "grown");
    if (*inside == 'S')
        proto_name(&b, 12, "read");
    proto_value(&g, 11, "h", QSIM_FLOAT, any, 2);
    proto_value(&g, 11, "m", QSIM_INT64, NULL, 0);
    node(&g, "SequenceEmpty", (const char *const[]){NULL}, "begin", NULL, NULL);
    proto_text(&n, 1, "m");
    proto_text(&n, 1, "");
    proto_text(&n, 1, "begin");
    proto_text(&n, 2, *behind ? "all" : "y");
    if (*inside == 'S')
        proto_text(&n, 2, "other");
    proto_text(&n, 4, "Loop");
    proto_graph(&n, "body", &b);
    proto_take(&g, 1, &n);
    if (*behind)
        proto_node(&g, behind, NULL, "all", strcmp(behind, "SequenceInsert") ? NULL : "h", "t");
    if (*behind)
        proto_node(&g, "SequenceLength", NULL, "t", NULL, "y");
    proto_name(&g, 12, "y");
    CHECK_INT(load(&g, &m, &e), QSIM_E_UNSUPPORTED);
    if (!strstr(e.message, words))
        CHECK_STR(e.message, words);
    qsim_model_free(m);
    proto_free(&b);
    proto_free(&n);
}

static void test_refusals(void) {
    static const char shape[] = "whose shape is not known",
                      other[] = "no sequence that the body makes";
    refused("", "", "output 'y' is a sequence, not a tensor");
    refused("", "Relu", "'all' is a sequence, not a tensor");
    refused("SequenceLength", "", shape);
    refused("twice", "", shape);
    refused("at 0", "", shape);
    refused("tensor", "", other);
    refused("same", "", other);
}

int main(void) {
    for (int i = 0; i < MOST * PART; i++)
        x[i] = (float)((i * 7 + i / PART) % 11 - 5);
    for (int i = 0; i < PART; i++)
        h[i] = (float)(i + 100);
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        test_loop(false, level);
        test_loop(true, level);
        test_ragged(level);
        test_captured(level);
        test_changing(level);
    }
    test_positions();
    test_sizes_that_change();
    test_slices(false);
    test_slices(true);
    test_refusals();
    return test_done();
}
