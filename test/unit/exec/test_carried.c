/* SPDX-License-Identifier: MIT */
/*
 * Sequences that a Loop carries and sequences of any number of slices, read in every way, beside
 * plain loops: what PyTorch makes of lists that grow in loops.
 */
#include "lists.h"

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
    lists_fill();
    for (int32_t level = QSIM_LEVEL_DISABLE; level <= QSIM_LEVEL_ALL; level++) {
        test_loop(false, level);
        test_loop(true, level);
        test_ragged(level);
    }
    test_sizes_that_change();
    test_slices(false);
    test_slices(true);
    test_refusals();
    return test_done();
}
