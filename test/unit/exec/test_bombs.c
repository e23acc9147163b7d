/* SPDX-License-Identifier: MIT */
/*
 * Small models that need much memory or time: tensors of gigabytes from a few bytes of shape,
 * arithmetic without end, inputs that repeat. Under limits of 64 MiB and a second the
 * small form of each gives its outputs, the large form one clear error, in a process that takes no
 * more than 32 MiB above the limit.
 */
#include "process_memory.h"
#include "proto.h"
#include "test.h"

#include <qsim/qsim.h>

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB    ((size_t)1 << 20)
#define MEMORY (64 * MIB)
#define ABOVE  (32 * MIB)

/* Nodes of `op`, whose input and output names are lists. */
static void node(qsim_builder *b, const char *op, const char *in, const char *out) {
    qsim_builder_node(b, "", op, "", in, out);
}

static void ints(qsim_builder *b, const char *name, size_t count, int64_t p, int64_t q, int64_t r,
                 int64_t s) {
    const int64_t values[] = {p, q, r, s}, dims[] = {(int64_t)count};
    const qsim_tensor t = {QSIM_INT64, 1, dims, (void *)(uintptr_t)values, count * 8};
    qsim_builder_constant(b, name, &t);
}

static void one_int(qsim_builder *b, const char *name, int64_t value) {
    qsim_builder_constant_as(b, name, "int64[]", &value);
}

/* y = x + the largest of a tensor. */
static void largest(qsim_builder *b, const char *of) {
    node(b, "ReduceMax", of, "most");
    qsim_builder_attr_int(b, "keepdims", 0);
    node(b, "Add", "x,most", "y");
}

/* ---- a shape in the file, or made from it: n numbers ---- */

static void filled(qsim_builder *b, int64_t n) {
    ints(b, "s", 1, n, 0, 0, 0);
    node(b, "ConstantOfShape", "s", "c");
    largest(b, "c");
}

static void expanded(qsim_builder *b, int64_t n) {
    ints(b, "s", 2, n / 4, 4, 0, 0);
    node(b, "Expand", "x,s", "e");
    largest(b, "e");
}

static void tiled(qsim_builder *b, int64_t n) {
    ints(b, "s", 2, n / 4, 1, 0, 0);
    node(b, "Tile", "x,s", "e");
    largest(b, "e");
}

static void padded(qsim_builder *b, int64_t n) {
    ints(b, "s", 4, 0, 0, n / 4, 0);
    node(b, "Pad", "x,s", "e");
    largest(b, "e");
}

static void counted(qsim_builder *b, int64_t n) {
    one_int(b, "from", 0);
    one_int(b, "to", n);
    one_int(b, "by", 1);
    node(b, "Range", "from,to,by", "e");
    node(b, "Cast", "e", "f");
    qsim_builder_attr_int(b, "to", QSIM_FLOAT);
    largest(b, "f");
}

static void one_hot(qsim_builder *b, int64_t n) {
    one_int(b, "depth", n);
    ints(b, "at", 1, 1, 0, 0, 0);
    qsim_builder_constant_as(b, "v", "float[2]", (const float[]){0, 1});
    node(b, "OneHot", "at,depth,v", "e");
    largest(b, "e");
}

static void resized(qsim_builder *b, int64_t n) {
    int64_t side = 1;
    while (side * side < n)
        side *= 2;
    ints(b, "to", 4, 1, 1, 1, 4);
    ints(b, "s", 4, 1, 1, side, side);
    node(b, "Reshape", "x,to", "square");
    node(b, "Resize", "square,,,s", "e");
    qsim_builder_attr_string(b, "mode", "linear");
    largest(b, "e");
}

/* Each node doubles the size of its input. */
static void doubled(qsim_builder *b, int64_t n) {
    char in[64] = "x,x", out[16] = "";
    for (int k = 0; n > 4; n /= 2, k++) {
        snprintf(out, sizeof(out), "v%d", k);
        node(b, "Concat", in, out);
        qsim_builder_attr_int(b, "axis", 0);
        snprintf(in, sizeof(in), "%s,%s", out, out);
    }
    largest(b, out);
}

/* As doubled(), from a constant: load could compute it. */
static void folded(qsim_builder *b, int64_t n) {
    char in[64] = "w,w", out[16] = "";
    qsim_builder_constant_as(b, "w", "float[4]", (const float[]){1, 2, 3, 4});
    for (int k = 0; n > 4; n /= 2, k++) {
        snprintf(out, sizeof(out), "v%d", k);
        node(b, "Concat", in, out);
        qsim_builder_attr_int(b, "axis", 0);
        snprintf(in, sizeof(in), "%s,%s", out, out);
    }
    largest(b, out);
}

/* ---- arithmetic: the tensors are small ---- */

static void square(qsim_builder *b, int64_t side) {
    ints(b, "s", 2, side, side, 0, 0);
    node(b, "ConstantOfShape", "s", "c0");
}

/* A chain of n products; each squares the matrix before it. */
static void products(qsim_builder *b, int64_t n) {
    char in[72] = "c0,c0", out[32] = "c0";
    square(b, n > 10 ? 1024 : 16);
    for (int64_t k = 0; k < n; k++) {
        snprintf(out, sizeof(out), "c%lld", (long long)k + 1);
        node(b, "MatMul", in, out);
        snprintf(in, sizeof(in), "%s,%s", out, out);
    }
    largest(b, out);
}

static void recurrent(qsim_builder *b, int64_t n) {
    const float w[4] = {0.1f, 0.1f, 0.1f, 0.1f};
    ints(b, "s", 3, n, 1, 1, 0);
    node(b, "ConstantOfShape", "s", "e");
    qsim_builder_constant_as(b, "W", "float[1,4,1]", w);
    qsim_builder_constant_as(b, "R", "float[1,4,1]", w);
    node(b, "LSTM", "e,W,R", ",last");
    qsim_builder_attr_int(b, "hidden_size", 1);
    largest(b, "last");
}

static void convolved(qsim_builder *b, int64_t n) {
    const int64_t side = n > 100 ? 1024 : 16;
    ints(b, "s", 4, 1, 4, side, side);
    ints(b, "k", 4, 4, 4, side / 2, side / 2);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "ConstantOfShape", "k", "w");
    node(b, "Conv", "e,w", "c");
    largest(b, "c");
}

static void pooled(qsim_builder *b, int64_t n) {
    const int64_t side = n > 100 ? 2048 : 16, window[] = {side / 2, side / 2};
    ints(b, "s", 4, 1, 1, side, side);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "AveragePool", "e", "c");
    qsim_builder_attr_ints(b, "kernel_shape", window, 2);
    largest(b, "c");
}

/* A bin of n by n samples. */
static void sampled(qsim_builder *b, int64_t n) {
    ints(b, "s", 4, 1, 1, 8, 8);
    ints(b, "r", 2, 1, 4, 0, 0);
    ints(b, "i", 1, 0, 0, 0, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "ConstantOfShape", "r", "regions");
    node(b, "RoiAlign", "e,regions,i", "c");
    qsim_builder_attr_int(b, "sampling_ratio", n);
    largest(b, "c");
}

/* Windows of n numbers, nearly all of them padding. */
static void bordered(qsim_builder *b, int64_t n) {
    const int64_t pads[] = {n / 2, n / 2};
    ints(b, "s", 3, 1, 1, 4, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "LpPool", "e", "c");
    qsim_builder_attr_ints(b, "kernel_shape", &n, 1);
    qsim_builder_attr_ints(b, "pads", pads, 2);
    largest(b, "c");
}

/* A kernel of n taps over 4 numbers. */
static void spread(qsim_builder *b, int64_t n) {
    ints(b, "s", 3, 1, 1, 4, 0);
    ints(b, "k", 3, 1, 1, n, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "ConstantOfShape", "k", "w");
    node(b, "ConvTranspose", "e,w", "c");
    largest(b, "c");
}

/* A kernel of n - 1 taps that are n - 1 phases, over 4 numbers. */
static void phased(qsim_builder *b, int64_t n) {
    ints(b, "s", 3, 1, 1, 4, 0);
    ints(b, "k", 3, 1, 1, n - 1, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "ConstantOfShape", "k", "w");
    node(b, "ConvTranspose", "e,w", "c");
    qsim_builder_attr_ints(b, "strides", &n, 1);
    largest(b, "c");
}

/* Sums over all of n channels, for each of them. */
static void neighbours(qsim_builder *b, int64_t n) {
    ints(b, "s", 3, 1, n, 1, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "LRN", "e", "c");
    qsim_builder_attr_int(b, "size", (int64_t)1 << 40);
    largest(b, "c");
}

/* A mean over n rows without columns. */
static void columnless(qsim_builder *b, int64_t n) {
    ints(b, "s", 4, 1, 1, n, 0);
    node(b, "ConstantOfShape", "s", "e");
    node(b, "GlobalAveragePool", "e", "c");
    largest(b, "c");
}

/* One node with n inputs. */
static void wide(qsim_builder *b, const char *op, int64_t n) {
    char *in = malloc((size_t)n * 2);
    for (int64_t i = 0; in && i < n; i++)
        memcpy(in + 2 * i, "x,", 2);
    if (in)
        in[2 * n - 1] = 0;
    node(b, op, in, "e");
    if (strcmp(op, "Concat") == 0)
        qsim_builder_attr_int(b, "axis", 0);
    largest(b, "e");
    free(in);
}

static void summed(qsim_builder *b, int64_t n) {
    wide(b, "Sum", n);
}
static void joined(qsim_builder *b, int64_t n) {
    wide(b, "Concat", n);
}

/* Twelve tensors of n numbers, all needed by the last node. */
static void alive(qsim_builder *b, int64_t n) {
    char out[16], all[64] = "";
    qsim_builder_constant_as(b, "s", "int64[1]", &n);
    qsim_builder_constant_as(b, "one", "float[1]", (const float[]){1});
    for (int k = 0; k < 12; k++) {
        snprintf(out, sizeof(out), "c%d", k);
        node(b, "ConstantOfShape", "s", out);
        snprintf(all, sizeof(all), "%s,one", out);
        snprintf(out, sizeof(out), "a%d", k);
        node(b, "Add", all, out);
    }
    node(b, "Concat", "a0,a1,a2,a3,a4,a5,a6,a7,a8,a9,a10,a11", "e");
    qsim_builder_attr_int(b, "axis", 0);
    largest(b, "e");
}

static const struct {
    const char *name;
    void (*make)(qsim_builder *b, int64_t n);
    int64_t small, large;
    bool passes; /* the large model passes, too: its work is small */
} bombs[] = {
    {"ConstantOfShape", filled, 64, 1 << 28, false},
    {"ConstantOfShape beyond any memory", filled, 64, INT64_MAX / 8, false},
    {"Expand", expanded, 64, (int64_t)15 << 28, false},
    {"Tile", tiled, 64, (int64_t)15 << 28, false},
    {"Pad", padded, 64, (int64_t)15 << 28, false},
    {"Range", counted, 64, 1 << 30, false},
    {"OneHot", one_hot, 64, (int64_t)15 << 28, false},
    {"Resize", resized, 64, (int64_t)15 << 28, false},
    {"Concat of itself", doubled, 64, (int64_t)1 << 31, false},
    {"Concat of a constant", folded, 64, (int64_t)1 << 31, false},
    {"tensors that live at once", alive, 64, 1 << 22, false},
    {"MatMul", products, 3, 1000, false},
    {"LSTM", recurrent, 64, 12 << 20, false},
    {"Conv", convolved, 1, 1000, false},
    {"AveragePool", pooled, 1, 1000, false},
    {"RoiAlign", sampled, 4, INT32_MAX, false},
    {"LpPool", bordered, 64, 1 << 30, false},
    {"ConvTranspose", spread, 64, 1 << 20, false},
    {"ConvTranspose by phases", phased, 64, 1 << 17, true},
    {"LRN", neighbours, 64, 1 << 22, false},
    {"GlobalAveragePool", columnless, 64, (int64_t)1 << 40, true},
    {"Sum", summed, 3, 20000, true},
    {"Concat", joined, 3, 20000, true},
};

static int run(qsim_ctx *ctx, const void *file, size_t size, qsim_error *e) {
    const int64_t dims[] = {1, 4};
    float numbers[4] = {0};
    const qsim_tensor x = {QSIM_FLOAT, 2, dims, numbers, sizeof(numbers)};
    qsim_tensor y = {0};
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_model_load_memory(ctx, file, size, NULL, &m, e);
    if (!code)
        code = qsim_session_create(m, NULL, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_execute(r, &x, 1, &y, 1, e);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    return code;
}

/* Runs in a child process; 0, or what is wrong. */
static int child(const void *file, size_t size, bool passes) {
    const size_t before = process_memory("VmRSS:");
    const qsim_limits limits = {
        .struct_size = sizeof(limits), .memory = MEMORY, .milliseconds = passes ? 60000 : 1000};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .limits = &limits};
    qsim_ctx *ctx;
    qsim_error e = {0};
    test_failures = 0; /* failures so far belong to the parent */
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), QSIM_OK);
    const int code = run(ctx, file, size, &e);
    if (passes)
        CHECK_INT(code, QSIM_OK);
    else
        CHECK(code == QSIM_E_NOMEM || code == QSIM_E_LIMIT || code == QSIM_E_TIME);
    CHECK(passes || e.message[0]);
    if (test_failures)
        fprintf(stderr, "%d %s (%s)\n", code, e.message, e.hint);
    CHECK(qsim_ctx_memory(ctx) < MIB);
    qsim_ctx_free(ctx);
    CHECK(process_memory("VmHWM:") <= before + MEMORY + ABOVE);
    return test_failures != 0;
}

/* The model's file; NULL: it cannot be built, which is a failure only where it has to pass. */
static void *build(size_t which, int64_t n, bool passes, size_t *size) {
    qsim_builder *b;
    qsim_model *m = NULL;
    qsim_error e = {0};
    void *file = NULL;
    CHECK_INT(qsim_builder_create(NULL, 13, "bomb", &b, &e), QSIM_OK);
    qsim_builder_input_as(b, "x", "float[1,4]");
    bombs[which].make(b, n);
    qsim_builder_output_as(b, "y", NULL);
    const int code = qsim_builder_finish(b, &m, &e);
    if (code && passes)
        fprintf(stderr, "%d %s\n", code, e.message);
    CHECK(!code || !passes || code == TEST_WIDE(QSIM_OK)); /* a tensor of over 4 GB */
    if (!code && qsim_model_save_memory(m, NULL, 0, size, NULL) != QSIM_E_INTERNAL)
        file = malloc(*size);
    if (file)
        CHECK_INT(qsim_model_save_memory(m, file, *size, size, NULL), QSIM_OK);
    qsim_model_free(m);
    qsim_builder_free(b);
    return file;
}

static void check(size_t which, int64_t n, bool passes) {
    size_t size;
    int how = 0;
    void *file = build(which, n, passes, &size);
    const pid_t pid = file ? fork() : -1;
    if (pid == 0)
        _exit(child(file, size, passes));
    CHECK(!file || (pid > 0 && waitpid(pid, &how, 0) == pid));
    CHECK_INT(how, 0);
    if (how)
        fprintf(stderr, "in %s of %lld\n", bombs[which].name, (long long)n);
    free(file);
}

int main(void) {
    for (size_t i = 0; i < sizeof(bombs) / sizeof(bombs[0]); i++) {
        check(i, bombs[i].small, true);
        check(i, bombs[i].large, bombs[i].passes);
    }
    return test_done();
}
