/* SPDX-License-Identifier: MIT */
/*
 * Sequences of tensors: random ones are made, changed and read at every position, and compared with
 * a list that the test keeps. Optional values; refusals.
 */
#include "net.h"

#define SIZE   6 /* elements of each tensor, (2, 3) */
#define SOURCE 5 /* tensors to choose from */
#define MOST   8

/* A sequence as the test keeps it: which of the sources each tensor is. */
typedef struct list {
    int count, at[MOST];
} list;

static float data[SOURCE * SIZE];
static const int64_t one_dims[] = {2, 3}, all_dims[] = {SOURCE, 2, 3},
                     flat_dims[] = {2 * SOURCE, 3};

/* The inputs of every net. */
static void give(qsim_tensor in[SOURCE + 2]) {
    for (int i = 0; i < SOURCE; i++)
        in[i] = net_tensor(QSIM_FLOAT, 2, one_dims, data + i * SIZE);
    in[SOURCE] = net_tensor(QSIM_FLOAT, 3, all_dims, data);
    in[SOURCE + 1] = net_tensor(QSIM_FLOAT, 2, flat_dims, data);
}

static void constant(net *n, const char *name, int64_t v) {
    net_const(n, name, QSIM_INT64, 0, NULL, &v);
}

static const char *text(char *to, const char *base, int index) {
    snprintf(to, 32, "%s%d", base, index);
    return to;
}

static void begin(net *n, qsim_ctx *ctx) {
    char name[32];
    net_begin(n, ctx, 15);
    for (int i = 0; i < SOURCE; i++)
        net_input(n, text(name, "x", i), QSIM_FLOAT, NET_DIMS(2, 3));
    net_input(n, "all", QSIM_FLOAT, NET_DIMS(SOURCE, 2, 3));
    net_input(n, "flat", QSIM_FLOAT, NET_DIMS(2 * SOURCE, 3));
}

/* ---- making one ---- */

static void construct(net *n, list *l, uint64_t *seed) {
    char inputs[64] = "", name[32];
    l->count = 1 + (int)(test_random(seed) % 4);
    for (int i = 0; i < l->count; i++) {
        l->at[i] = (int)(test_random(seed) % SOURCE);
        strcat(inputs, i ? "," : "");
        strcat(inputs, text(name, "x", l->at[i]));
    }
    net_node(n, "", "SequenceConstruct", inputs, "s0");
}

/* The parts of one tensor: a new axis gone, rows of two by a number, or by a list. */
static void split(net *n, list *l, uint64_t *seed) {
    static const int64_t twos[SOURCE] = {2, 2, 2, 2, 2};
    const int how = (int)(test_random(seed) % 3);
    l->count = SOURCE;
    for (int i = 0; i < SOURCE; i++)
        l->at[i] = i;
    if (how == 1)
        constant(n, "split", 2);
    else if (how == 2)
        net_const(n, "split", QSIM_INT64, NET_DIMS(SOURCE), twos);
    const qs_id node = net_node(n, "", "SplitToSequence", how ? "flat,split" : "all", "s0");
    if (how == 0)
        qs_node_set_int(n->g, node, "keepdims", 0);
}

/* A position of a list, 0 to bound, counted from either end, or left out. */
static int position(net *n, const char *name, int bound, int length, bool may_lack, int left_out,
                    uint64_t *seed, bool *lacks) {
    const int at = (int)(test_random(seed) % (uint64_t)(bound + 1));
    *lacks = may_lack && test_random(seed) % 3 == 0;
    if (*lacks)
        return left_out;
    constant(n, name, test_random(seed) % 2 && at < length ? at - length : at);
    return at;
}

static void change(net *n, list *l, int index, uint64_t *seed) {
    char in[96], out[32], at[32];
    bool lacks;
    text(out, "s", index + 1);
    text(at, "p", index);
    if (l->count < MOST && (l->count == 0 || test_random(seed) % 2)) {
        const int source = (int)(test_random(seed) % SOURCE);
        const int p = position(n, at, l->count, l->count, true, l->count, seed, &lacks);
        snprintf(in, sizeof(in), "s%d,x%d%s%s", index, source, lacks ? "" : ",", lacks ? "" : at);
        net_node(n, "", "SequenceInsert", in, out);
        memmove(&l->at[p + 1], &l->at[p], (size_t)(l->count - p) * sizeof(int));
        l->at[p] = source;
        l->count++;
    } else {
        const int p = position(n, at, l->count - 1, l->count, true, l->count - 1, seed, &lacks);
        snprintf(in, sizeof(in), "s%d%s%s", index, lacks ? "" : ",", lacks ? "" : at);
        net_node(n, "", "SequenceErase", in, out);
        l->count--;
        memmove(&l->at[p], &l->at[p + 1], (size_t)(l->count - p) * sizeof(int));
    }
}

/* ---- reading it ---- */

/* Element (r, c) of tensor i of the list. */
static float element(const list *l, int i, int r, int c) {
    return data[l->at[i] * SIZE + r * 3 + c];
}

/* Readers of sequence `s`: every position from both ends, joined in three ways, its length. */
static void read_list(net *n, const char *s, const list *l) {
    char in[64], name[32], out[32];
    for (int i = -l->count; i < l->count; i++) {
        constant(n, text(name, "at", i + MOST), i);
        snprintf(in, sizeof(in), "%s,%s", s, name);
        net_node(n, "", "SequenceAt", in, text(out, "y", i + MOST));
        net_output(n, out);
    }
    net_node(n, "", "SequenceLength", s, "length");
    net_output(n, "length");
    for (int way = 0; way < 3 && l->count > 0; way++) {
        const qs_id node = net_node(n, "", "ConcatFromSequence", s, text(out, "joined", way));
        qs_node_set_int(n->g, node, "axis", way == 0 ? 0 : -1);
        qs_node_set_int(n->g, node, "new_axis", way == 2);
        net_output(n, out);
    }
}

static void compare(const qsim_tensor *out, const list *l) {
    const int n = l->count;
    const float *rows = out[2 * n + 1].data, *columns = out[2 * n + 2].data,
                *last = out[2 * n + 3].data;
    CHECK_INT(*(const int64_t *)out[2 * n].data, n);
    for (int i = 0; i < n; i++)
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 3; c++) {
                const float want = element(l, i, r, c);
                CHECK(((const float *)out[i].data)[r * 3 + c] == want);     /* from the end */
                CHECK(((const float *)out[n + i].data)[r * 3 + c] == want); /* from the start */
                CHECK(rows[(i * 2 + r) * 3 + c] == want);
                CHECK(columns[r * 3 * n + i * 3 + c] == want);
                CHECK(last[(r * 3 + c) * n + i] == want);
            }
}

static void test_random_sequences(qsim_ctx *ctx) {
    static float y[2 * MOST + 3][MOST * SIZE];
    int64_t length;
    for (uint64_t k = 0; k < 200; k++) {
        uint64_t seed = k + 1;
        net n;
        list l = {0};
        char s[32];
        begin(&n, ctx);
        const int base = (int)(test_random(&seed) % 3), changes = (int)(test_random(&seed) % 5);
        if (base == 0)
            construct(&n, &l, &seed);
        else if (base == 1)
            split(&n, &l, &seed);
        else
            net_node(&n, "", "SequenceEmpty", "", "s0");
        for (int i = 0; i < changes; i++)
            change(&n, &l, i, &seed);
        read_list(&n, text(s, "s", changes), &l);
        NET_OK(&n, net_end(&n));
        qsim_tensor in[SOURCE + 2], out[2 * MOST + 4];
        give(in);
        const size_t outputs = n.g->output_count;
        const int64_t c = l.count, shapes[3][3] = {{2 * c, 3, 0}, {2, 3 * c, 0}, {2, 3, c}};
        for (int i = 0; i < 2 * l.count; i++)
            out[i] = net_tensor(QSIM_FLOAT, 2, one_dims, y[i]);
        out[2 * c] = net_tensor(QSIM_INT64, 0, NULL, &length);
        for (int i = 0; i < 3; i++)
            out[2 * c + 1 + i] = net_tensor(QSIM_FLOAT, i == 2 ? 3 : 2, shapes[i], y[2 * MOST + i]);
        for (int level = 0; level < 2; level++) {
            memset(y, 0, sizeof(y));
            length = -1;
            NET_OK(&n, net_run(&n, level ? QSIM_LEVEL_ALL : QSIM_LEVEL_DISABLE, false, in,
                               SOURCE + 2, out, outputs));
            if (l.count > 0)
                compare(out, &l);
            CHECK_INT(length, l.count);
        }
        net_free(&n);
    }
}

/* ---- parts of unequal sizes, an axis without a size ---- */

static void test_last_part(qsim_ctx *ctx) {
    net n;
    float y[6];
    begin(&n, ctx);
    constant(&n, "split", 2);
    constant(&n, "one", 1);
    const qs_id node = net_node(&n, "", "SplitToSequence", "x0,split", "s");
    qs_node_set_int(n.g, node, "axis", -1);
    net_node(&n, "", "SequenceAt", "s,one", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    qsim_tensor in[SOURCE + 2];
    give(in);
    qsim_tensor out = net_tensor(QSIM_FLOAT, NET_DIMS(2, 1), y);
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, in, SOURCE + 2, &out, 1));
    CHECK(y[0] == data[2] && y[1] == data[5]);
    net_free(&n);
}

static void test_optional(qsim_ctx *ctx) {
    net n;
    float y[SIZE];
    bool has[2] = {false, true};
    net_begin(&n, ctx, 18);
    net_input(&n, "x", QSIM_FLOAT, NET_DIMS(2, 3));
    net_node(&n, "", "Optional", "x", "o");
    net_node(&n, "", "OptionalGetElement", "o", "y");
    net_node(&n, "", "OptionalHasElement", "o", "has");
    net_node(&n, "", "OptionalHasElement", "", "none");
    net_output(&n, "y");
    net_output(&n, "has");
    net_output(&n, "none");
    NET_OK(&n, net_end(&n));
    const qsim_tensor in = net_tensor(QSIM_FLOAT, NET_DIMS(2, 3), data);
    qsim_tensor out[3] = {net_tensor(QSIM_FLOAT, NET_DIMS(2, 3), y),
                          net_tensor(QSIM_BOOL, 0, NULL, &has[0]),
                          net_tensor(QSIM_BOOL, 0, NULL, &has[1])};
    NET_OK(&n, net_run(&n, QSIM_LEVEL_ALL, false, &in, 1, out, 3));
    CHECK(memcmp(y, data, sizeof(y)) == 0);
    CHECK(has[0] && !has[1]);
    net_free(&n);
}

/* ---- refusals ---- */

/* Loading a net with these nodes ends with this code, and these words in the message. */
static void refused(qsim_ctx *ctx, const char *const nodes[][3], size_t count, int code,
                    const char *words) {
    static const int64_t parts[2] = {2, 2};
    net n;
    begin(&n, ctx);
    net_input(&n, "i", QSIM_INT64, 0, NULL);
    net_input(&n, "wide", QSIM_FLOAT, NET_DIMS(2, 4));
    net_input(&n, "free", QSIM_FLOAT, NET_DIMS(-1, 3));
    constant(&n, "two", 2);
    constant(&n, "zero", 0);
    net_const(&n, "parts", QSIM_INT64, NET_DIMS(2), parts);
    for (size_t k = 0; k < count; k++) {
        const qs_id node = net_node(&n, "", nodes[k][0], nodes[k][1], nodes[k][2]);
        if (strcmp(nodes[k][0], "ConcatFromSequence") == 0)
            qs_node_set_int(n.g, node, "axis", 0);
    }
    net_output(&n, "y");
    CHECK_INT(net_end(&n), code);
    if (!strstr(n.error.message, words))
        CHECK_STR(n.error.message, words);
    net_free(&n);
}

#define REFUSED(code, words, ...)                                                                  \
    do {                                                                                           \
        static const char *const nodes[][3] = {__VA_ARGS__};                                       \
        refused(ctx, nodes, QS_COUNT(nodes), code, words);                                         \
    } while (0)

/* How many inputs and outputs there may be. */
static void test_counts(qsim_ctx *ctx) {
    REFUSED(QSIM_E_GRAPH, "1 inputs, expected 2 ", {"SequenceConstruct", "x0", "s"},
            {"SequenceAt", "s", "y"});
    REFUSED(QSIM_E_GRAPH, "1 inputs, expected 2 to 3 ", {"SequenceConstruct", "x0", "s"},
            {"SequenceInsert", "s", "t"}, {"SequenceLength", "t", "y"});
    REFUSED(QSIM_E_GRAPH, "0 inputs, expected 1 or more ", {"SequenceConstruct", "", "s"},
            {"SequenceLength", "s", "y"});
    REFUSED(QSIM_E_GRAPH, "2 outputs, expected 1 ", {"SequenceConstruct", "x0", "s"},
            {"SequenceLength", "s", "y,z"});
}

static void test_refusals(qsim_ctx *ctx) {
    REFUSED(QSIM_E_UNSUPPORTED, "'y' is a sequence, not a tensor",
            {"SequenceConstruct", "x0", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "'s' is a sequence, not a tensor", {"SequenceConstruct", "x0", "s"},
            {"Relu", "s", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "'s' is a sequence", {"SequenceConstruct", "x0", "s"},
            {"SequenceConstruct", "s", "t"}, {"SequenceLength", "t", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "'s' is a sequence", {"SequenceConstruct", "x0", "s"},
            {"Sum", "x0,s,x1", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "'s' is a sequence", {"SequenceConstruct", "x0", "s"},
            {"Sum", "x0,x1,s", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "an optional without a value", {"Optional", "", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "'x0' is no sequence", {"SequenceLength", "x0", "y"});
    REFUSED(QSIM_E_UNSUPPORTED, "position 'i' is not a constant",
            {"SequenceConstruct", "x0,wide", "s"}, {"SequenceAt", "s,i", "y"});
    REFUSED(QSIM_E_VALUE, "position 2 is outside of a sequence of 1",
            {"SequenceConstruct", "x0", "s"}, {"SequenceAt", "s,two", "y"});
    REFUSED(QSIM_E_VALUE, "position 2 is outside of a sequence of 1",
            {"SequenceConstruct", "x0", "s"}, {"SequenceInsert", "s,x1,two", "t"},
            {"SequenceLength", "t", "y"});
    REFUSED(QSIM_E_VALUE, "outside of a sequence of 0", {"SequenceEmpty", "", "s"},
            {"SequenceErase", "s", "t"}, {"SequenceLength", "t", "y"});
    REFUSED(QSIM_E_VALUE, "the sequence is empty", {"SequenceEmpty", "", "s"},
            {"ConcatFromSequence", "s", "y"});
    REFUSED(QSIM_E_DTYPE, "tensor 1 of the sequence is int64, the first float",
            {"SequenceConstruct", "x0,i", "s"}, {"SequenceLength", "s", "y"});
    REFUSED(QSIM_E_SHAPE, "tensors of ranks 2 and 3", {"SequenceConstruct", "x0,all", "s"},
            {"ConcatFromSequence", "s", "y"});
    REFUSED(QSIM_E_SHAPE, "axis 1 has sizes 3 and 4", {"SequenceConstruct", "x0,wide", "s"},
            {"ConcatFromSequence", "s", "y"});
    REFUSED(QSIM_E_SHAPE, "the parts have 4 of 10", {"SplitToSequence", "flat,parts", "s"},
            {"SequenceLength", "s", "y"});
    REFUSED(QSIM_E_SHAPE, "part 1 of 2 does not fit axis 0", {"SplitToSequence", "x0,parts", "s"},
            {"SequenceLength", "s", "y"});
    REFUSED(QSIM_E_VALUE, "split is 0", {"SplitToSequence", "flat,zero", "s"},
            {"SequenceLength", "s", "y"});
}

/* 512 insertions are taken, one more is refused. */
static void test_limit(qsim_ctx *ctx) {
    for (int inserts = 512; inserts <= 513; inserts++) {
        net n;
        char in[64], out[32];
        begin(&n, ctx);
        net_node(&n, "", "SequenceEmpty", "", "s0");
        for (int i = 0; i < inserts; i++) {
            snprintf(in, sizeof(in), "s%d,x0", i);
            net_node(&n, "", "SequenceInsert", in, text(out, "s", i + 1));
        }
        net_node(&n, "", "SequenceLength", out, "y");
        net_output(&n, "y");
        CHECK_INT(net_end(&n), inserts == 512 ? 0 : QSIM_E_LIMIT);
        net_free(&n);
    }
}

int main(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), 0);
    for (int i = 0; i < SOURCE * SIZE; i++)
        data[i] = (float)(i * i - 7 * i);
    test_random_sequences(ctx);
    test_last_part(ctx);
    test_optional(ctx);
    test_counts(ctx);
    test_refusals(ctx);
    test_limit(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
