/* SPDX-License-Identifier: MIT */
/*
 * Sequences whose tensors differ in shape: Loops whose number of iterations is in the file, parts
 * of sizes that the model computes, and lists under other names.
 */
#include "lists.h"

static void list_of(proto *g, const char *name, const int64_t *v, int64_t count) {
    proto_constant(g, name, QSIM_INT64, count, v, (size_t)count * sizeof(*v));
}

static void number(proto *g, const char *name, int64_t v) {
    proto_constant(g, name, QSIM_INT64, -1, &v, sizeof(v));
}

static int64_t int_at(const qsim_tensor *t, int64_t i) {
    return ((const int64_t *)t->data)[i];
}

/* ---- Loops of a known number of iterations ---- */

/*
 * Iteration i of three appends rows 0 to i of x to the list, and the state grows by i. The
 * condition of the body is a constant.
 */
static void known_loop(proto *g) {
    proto b = {0}, either[2] = {{0}, {0}};
    proto_name(&b, 11, "i");
    proto_name(&b, 11, "go");
    proto_name(&b, 11, "list0");
    proto_name(&b, 11, "sum0");
    node(&b, "Identity", IN("yes"), "more", NULL, NULL);
    node(&b, "Add", IN("i", "one"), "next", NULL, NULL);
    node(&b, "Reshape", IN("next", "single"), "end", NULL, NULL);
    node(&b, "Slice", IN("x", "zero_list", "end"), "rows", NULL, NULL);
    node(&either[0], "Identity", IN("rows"), "kept", NULL, NULL);
    node(&either[1], "Neg", IN("rows"), "turned", NULL, NULL);
    proto_name(&either[0], 12, "kept");
    proto_name(&either[1], 12, "turned");
    node(&b, "Equal", IN("i", "one"), "second", NULL, NULL);
    node(&b, "Not", IN("second"), "other", NULL, NULL);
    control(&b, "If", IN("other"), IN("part"), NAMES("then_branch", "else_branch"), either);
    node(&b, "SequenceInsert", IN("list0", "part"), "list1", NULL, NULL);
    node(&b, "Add", IN("sum0", "i"), "sum1", NULL, NULL);
    proto_name(&b, 12, "more");
    proto_name(&b, 12, "list1");
    proto_name(&b, 12, "sum1");
    node(g, "SequenceEmpty", (const char *const[]){NULL}, "empty", NULL, NULL);
    control(g, "Loop", IN("three", "yes", "empty", "m"), IN("grown", "sum"), NAMES("body"), &b);
}

static void test_known(int32_t level) {
    static const char *const outputs[] = {"a", "b", "c", "d", "n", "sum"};
    proto g = {0}, yes = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[6];
    inputs(&g);
    proto_int(&yes, 2, QSIM_BOOL);
    proto_text(&yes, 8, "yes");
    proto_bytes(&yes, 9, "\1", 1);
    proto_take(&g, 5, &yes);
    proto_free(&yes);
    number(&g, "three", 3);
    number(&g, "one", 1);
    number(&g, "zero", 0);
    number(&g, "last", -1);
    list_of(&g, "zero_list", VALUES(0), 1);
    list_of(&g, "single", VALUES(1), 1);
    known_loop(&g);
    node(&g, "SequenceInsert", IN("grown", "h"), "s", NULL, NULL);
    node(&g, "SequenceAt", IN("s", "zero"), "a", NULL, NULL);
    node(&g, "SequenceAt", IN("s", "one"), "b", NULL, NULL);
    node(&g, "SequenceAt", IN("grown", "last"), "c", NULL, NULL);
    node(&g, "SequenceAt", IN("s", "last"), "d", NULL, NULL);
    node(&g, "SequenceLength", IN("s"), "n", NULL, NULL);
    for (int i = 0; i < 6; i++)
        proto_name(&g, 12, outputs[i]);
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(run(&l, 10, 0, out, 6, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int i = 0; i < 3; i++) {
        CHECK_INT(out[i].rank, 3);
        CHECK_INT(out[i].dims[0], i + 1);
        CHECK(((const float *)out[i].data)[PART - 1] == (i == 1 ? -1.0f : 1.0f) * x[PART - 1]);
    }
    CHECK(out[3].rank == 2 && memcmp(out[3].data, h, sizeof(h)) == 0);
    CHECK_INT(int_at(&out[4], 0), 4);
    CHECK_INT(int_at(&out[5], 0), 10 + 0 + 1 + 2);
    end(&l);
}

/* ---- parts of computed sizes ---- */

/* Cuts x along axis 0 into the list s: into parts of m, or of the listed sizes m and `second`. */
static void cut_by_computed(proto *g, bool listed, const char *second) {
    list_of(g, "single", VALUES(1), 1);
    if (listed) {
        node(g, "Reshape", IN("m", "single"), "size_0", NULL, NULL);
        node(g, "Reshape", IN(second, "single"), "size_1", NULL, NULL);
        node(g, "Concat", IN("size_0", "size_1"), "split", NAMES("axis"), &none);
    } else {
        node(g, "Identity", IN("m"), "split", NULL, NULL);
    }
    node(g, "SplitToSequence", IN("x", "split"), "s", NULL, NULL);
}

/* Parts of m, or m and the rest of the axis: part p, their number, and all of them joined. */
static void test_computed(bool listed, int32_t level) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[3];
    inputs(&g);
    number(&g, "all", MOST);
    node(&g, "Sub", IN("all", "m"), "left", NULL, NULL);
    cut_by_computed(&g, listed, "left");
    node(&g, "SequenceAt", IN("s", "p"), "y", NULL, NULL);
    node(&g, "SequenceLength", IN("s"), "n", NULL, NULL);
    node(&g, "ConcatFromSequence", IN("s"), "joined", NAMES("axis"), &none);
    proto_name(&g, 12, "y");
    proto_name(&g, 12, "n");
    proto_name(&g, 12, "joined");
    CHECK_INT(begin(&l, &g, level, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    for (int64_t m = 1; m <= MOST; m++) {
        const int64_t count = listed ? 2 : (MOST + m - 1) / m;
        for (int64_t p = -count; p < count; p++) {
            const int64_t at = p < 0 ? p + count : p, from = at * m;
            const int64_t size = from + m > MOST || (listed && at) ? MOST - from : m;
            CHECK_INT(run(&l, m, p, out, 3, &e), QSIM_OK);
            CHECK_STR(e.message, "");
            CHECK_INT(out[0].dims[0], size);
            CHECK(memcmp(out[0].data, x + from * PART, (size_t)size * PART * sizeof(float)) == 0);
            CHECK_INT(int_at(&out[1], 0), count);
            CHECK(out[2].bytes == sizeof(x) && memcmp(out[2].data, x, sizeof(x)) == 0);
        }
        CHECK(run(&l, m, count, out, 3, &e) != QSIM_OK); /* no such part */
        CHECK(run(&l, m, -count - 1, out, 3, &e) != QSIM_OK);
        e = (qsim_error){0};
    }
    end(&l);
}

/*
 * Sizes m and p that do not add up to the axis, or parts of a size m below 1, are refused when a
 * run computes them: where one part is taken, and where all are joined again.
 */
static void test_wrong_sizes(bool listed, bool joins) {
    static const int64_t lists[][2] = {{1, 2}, {3, 2}, {5, -1}, {-1, 5}, {INT64_MAX, 5}};
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1];
    inputs(&g);
    number(&g, "at", 0);
    cut_by_computed(&g, listed, "p");
    if (joins)
        node(&g, "ConcatFromSequence", IN("s"), "y", NAMES("axis"), &none);
    else
        node(&g, "SequenceAt", IN("s", "at"), "y", NULL, NULL);
    proto_name(&g, 12, "y");
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_INT(run(&l, 1, MOST - 1, out, 1, &e), QSIM_OK);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]) && listed; i++) {
        e = (qsim_error){0};
        CHECK(run(&l, lists[i][0], lists[i][1], out, 1, &e) != QSIM_OK);
        CHECK(strstr(e.message, "split size") != NULL);
    }
    for (int64_t m = -1; m <= 0 && !listed; m++) {
        e = (qsim_error){0};
        CHECK(run(&l, m, 0, out, 1, &e) != QSIM_OK);
    }
    CHECK_INT(run(&l, 2, MOST - 2, out, 1, &e), QSIM_OK);
    end(&l);
}

/* What torch.unbind becomes: split = 1 without the axis. A list of sizes keeps it. */
static void test_unbound(bool listed) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1];
    inputs(&g);
    if (listed)
        list_of(&g, "split", VALUES(1, 1, 1, 1), MOST);
    else
        number(&g, "split", 1);
    number(&g, "two", 2);
    node(&g, "SplitToSequence", IN("x", "split"), "s", NAMES("axis", "keepdims"), VALUES(0, 0));
    node(&g, "Identity", IN("s"), "t", NULL, NULL);
    node(&g, "SequenceAt", IN("t", "two"), "y", NULL, NULL);
    proto_name(&g, 12, "y");
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(run(&l, 0, 0, out, 1, &e), QSIM_OK);
    CHECK_INT(out[0].rank, 2 + listed);
    CHECK(memcmp(out[0].data, x + 2 * PART, PART * sizeof(float)) == 0);
    end(&l);
}

/* A list of a tensor whose rank is not in the file, read before a session knows it. */
static void test_unknown_rank(void) {
    proto g = {0}, either[2] = {{0}, {0}};
    live l;
    qsim_error e = {0};
    qsim_tensor out[2];
    inputs(&g);
    number(&g, "two", 2);
    number(&g, "one", 1);
    list_of(&g, "first", VALUES(0), 1);
    node(&g, "Unsqueeze", IN("h", "first"), "row", NULL, NULL);
    list_of(&g, "single", VALUES(1), 1);
    node(&g, "Shape", IN("row"), "sizes", NULL, NULL);
    node(&g, "Gather", IN("sizes", "first"), "size", NULL, NULL);
    node(&g, "Equal", IN("size", "single"), "is_row", NULL, NULL);
    node(&either[0], "Squeeze", IN("row", "first"), "flat", NULL, NULL);
    node(&either[1], "Identity", IN("x"), "full", NULL, NULL);
    proto_name(&either[0], 12, "flat");
    proto_name(&either[1], 12, "full");
    control(&g, "If", IN("is_row"), IN("t"), NAMES("then_branch", "else_branch"), either);
    node(&g, "SplitToSequence", IN("t", "one"), "s", NAMES("axis", "keepdims"), VALUES(1, 0));
    node(&g, "SequenceAt", IN("s", "two"), "y", NULL, NULL);
    node(&g, "ConcatFromSequence", IN("s"), "z", NAMES("axis", "new_axis"), VALUES(0, 1));
    proto_name(&g, 12, "y");
    proto_name(&g, 12, "z");
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(run(&l, 0, 0, out, 2, &e), QSIM_OK);
    CHECK_STR(e.message, "");
    CHECK_INT(out[0].rank, 1);
    CHECK_INT(out[0].dims[0], ROWS);
    CHECK_INT(out[1].rank, 2);
    CHECK_INT(out[1].dims[0], COLUMNS);
    for (int i = 0; i < ROWS; i++) {
        CHECK(((const float *)out[0].data)[i] == h[i * COLUMNS + 2]);
        CHECK(((const float *)out[1].data)[ROWS + i] == h[i * COLUMNS + 1]);
    }
    end(&l);
}

/* A rank that no run's shapes tell, of what is cut or of its sizes, is named as the reason. */
static void test_no_rank(bool sizes) {
    proto g = {0};
    live l;
    qsim_error e = {0};
    qsim_tensor out[1] = {{0}};
    proto_value(&g, 11, "x", QSIM_FLOAT, any, 3);
    proto_value(&g, 11, "m", QSIM_INT64, any, 1);
    proto_value(&g, 11, "shape", QSIM_INT64, any, 1);
    number(&g, "one", 1);
    node(&g, "Reshape", IN(sizes ? "m" : "x", "shape"), "u", NULL, NULL);
    node(&g, "SplitToSequence", sizes ? IN("x", "u") : IN("u", "one"), "s",
         NAMES("axis", "keepdims"), VALUES(0, 0));
    if (sizes)
        node(&g, "SequenceLength", IN("s"), "y", NULL, NULL);
    else
        node(&g, "ConcatFromSequence", IN("s"), "y", NAMES("axis", "new_axis"), VALUES(1, 1));
    proto_name(&g, 12, "y");
    static const int64_t all[] = {MOST, ROWS, COLUMNS}, single = 1, flat = -1;
    static const int64_t m = MOST;
    const qsim_tensor in[3] = {{QSIM_FLOAT, 3, all, x, sizeof(x)},
                               {QSIM_INT64, 1, &single, (void *)&m, sizeof(m)},
                               {QSIM_INT64, 1, &single, (void *)&flat, sizeof(flat)}};
    CHECK_INT(begin(&l, &g, QSIM_LEVEL_ALL, &e), QSIM_OK);
    CHECK_INT(qsim_run_execute(l.run, in, 3, out, 1, &e), QSIM_E_UNSUPPORTED);
    CHECK(strstr(e.message, "input ranks must be in the file (node 's'") != NULL);
    end(&l);
}

int main(void) {
    lists_fill();
    test_known(QSIM_LEVEL_ALL);
    test_known(QSIM_LEVEL_DISABLE);
    for (int listed = 0; listed < 2; listed++) {
        test_computed(listed, QSIM_LEVEL_ALL);
        test_computed(listed, QSIM_LEVEL_DISABLE);
        test_wrong_sizes(listed, false);
        test_wrong_sizes(listed, true);
        test_no_rank(listed);
        test_unbound(listed);
    }
    test_unknown_rank();
    return test_done();
}
