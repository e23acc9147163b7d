/* SPDX-License-Identifier: MIT */
/*
 * Sequences that subgraphs capture, and those that a Loop carries and its body reads and changes,
 * beside plain loops.
 */
#include "lists.h"

/* ---- sequences that subgraphs capture ---- */

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
    inputs(&g);
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
    inputs(&g);
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

/* ---- lists that begin with what an earlier Loop gave, and what is not known ---- */

/* A Loop of m times that appends part `trip` of x to a list, by names of their own. */
static void appending(proto *g, const char *from, const char *to, const char *trip) {
    proto b = body_begin(trip, "go", "more");
    proto_name(&b, 11, "s");
    node(&b, "Gather", IN("x", trip), "part", NULL, NULL);
    node(&b, "SequenceInsert", IN("s", "part"), "grown", NULL, NULL);
    proto_name(&b, 12, "grown");
    control(g, "Loop", IN("m", "", from), IN(to), NAMES("body"), &b);
}

static void test_two_loops(int32_t level) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[2];
    inputs(&g);
    node(&g, "SequenceEmpty", (const char *const[]){NULL}, "empty", NULL, NULL);
    appending(&g, "empty", "once", "i");
    appending(&g, "once", "twice", "j");
    node(&g, "ConcatFromSequence", IN("once"), "y", NAMES("axis", "new_axis"), VALUES(0, 1));
    node(&g, "ConcatFromSequence", IN("twice"), "z", NAMES("axis", "new_axis"), VALUES(0, 1));
    proto_name(&g, 12, "y");
    proto_name(&g, 12, "z");
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = 1; m <= MOST; m++) {
        const size_t bytes = (size_t)m * PART * sizeof(float);
        CHECK_INT(run(&l, m, 0, out, 2, &e), QSIM_OK);
        CHECK_INT(out[0].bytes, bytes);
        CHECK_INT(out[1].bytes, 2 * bytes);
        CHECK(memcmp(out[0].data, x, bytes) == 0 && memcmp(out[1].data, x, bytes) == 0);
        CHECK(memcmp((const char *)out[1].data + bytes, x, bytes) == 0);
    }
    end(&l);
}

/* A first tensor of unknown rank is not taken for no tensor. */
static void test_unknown_rank(void) {
    proto g = {0}, b = body_begin("i", "go", "more");
    qsim_model *m = NULL;
    qsim_error e = {0};
    static const int64_t sizes[] = {MOST, ROWS, COLUMNS};
    proto_value(&g, 11, "m", QSIM_INT64, NULL, 0);
    proto_value(&g, 11, "x", QSIM_FLOAT, sizes, 3);
    proto_value(&g, 11, "shape", QSIM_INT64, any, 1);
    node(&g, "Reshape", IN("x", "shape"), "u", NULL, NULL);
    node(&g, "SequenceConstruct", IN("u"), "begin", NULL, NULL);
    proto_name(&b, 11, "s");
    node(&b, "Gather", IN("x", "i"), "part", NULL, NULL);
    node(&b, "SequenceInsert", IN("s", "part", "i"), "grown", NULL, NULL);
    proto_name(&b, 12, "grown");
    control(&g, "Loop", IN("m", "", "begin"), IN("all"), NAMES("body"), &b);
    node(&g, "ConcatFromSequence", IN("all"), "y", NAMES("axis", "new_axis"), VALUES(0, 1));
    proto_name(&g, 12, "y");
    CHECK_INT(load(&g, &m, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "whose shape is not known") != NULL);
    qsim_model_free(m);
}

/* A sequence inside a model is no tensor: it is not given out, and calibration observes none. */
static void test_not_observed(void) {
    static const int64_t all[] = {MOST, ROWS, COLUMNS};
    static const char *const names[] = {"all"};
    const qsim_session_options o = {.struct_size = sizeof(o), .outputs = names, .output_count = 1};
    int64_t m = 2, p = 0;
    const qsim_tensor in[4] = {{QSIM_INT64, 0, NULL, &m, sizeof(m)},
                               {QSIM_FLOAT, 3, all, x, sizeof(x)},
                               {QSIM_FLOAT, 2, all + 1, h, sizeof(h)},
                               {QSIM_INT64, 0, NULL, &p, sizeof(p)}};
    proto g = {0};
    qsim_model *model = NULL;
    qsim_session *s = NULL;
    qsim_calibration *c = NULL;
    qsim_error e = {0};
    inputs(&g);
    changing(&g);
    proto_name(&g, 12, "y");
    proto_name(&g, 12, "lengths");
    CHECK_INT(load(&g, &model, &e), QSIM_OK);
    CHECK_INT(qsim_session_create(model, &o, &s, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "'all' is a sequence of tensors") != NULL);
    CHECK_INT(qsim_calibration_create(model, NULL, &c, &e), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, in, 4, &e), QSIM_OK);
    for (int32_t i = 0; i < qsim_calibration_count(c); i++)
        CHECK(strcmp(qsim_calibration_name(c, i), "all") != 0 &&
              strcmp(qsim_calibration_name(c, i), "begin") != 0);
    qsim_calibration_free(c);
    qsim_session_free(s);
    qsim_model_free(model);
}

int main(void) {
    lists_fill();
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        test_captured(level);
        test_changing(level);
        test_two_loops(level);
    }
    test_positions();
    test_unknown_rank();
    test_not_observed();
    return test_done();
}
