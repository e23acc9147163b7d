/* SPDX-License-Identifier: MIT */
/*
 * Memory of a network: the arena compared with the largest set of live tensors, a process's peak
 * with weights and arena, and the pages of the file.
 */
#include "net.h"
#include "process_memory.h"

#include "exec/run.h"

#include <dirent.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

/* ---- the arena ---- */

static void check_arena(const qsim_run *r, const char *what) {
    const qs_plan *plan = r->plan;
    CHECK(plan && plan->live_bytes <= plan->arena_bytes);
    CHECK(plan && plan->arena_bytes - plan->live_bytes <= plan->live_bytes / 10);
    if (plan && plan->arena_bytes - plan->live_bytes > plan->live_bytes / 10)
        fprintf(stderr, "  %s: %zu bytes, %zu of them alive\n", what, plan->arena_bytes,
                plan->live_bytes);
}

/* A tensor of the network being made. */
typedef struct made {
    char name[16];
    int64_t channels;
} made;

static int64_t add_conv(net *n, const made *x, const char *y, uint64_t *state) {
    char weights[16], names[40];
    const int64_t channels = 4 * (1 + test_random(state) % 24);
    snprintf(weights, sizeof(weights), "w%.14s", y);
    snprintf(names, sizeof(names), "%.15s,%.15s", x->name, weights);
    net_random(n, weights, NET_DIMS(channels, x->channels, 1, 1), 3, 1);
    net_node(n, "", "Conv", names, y);
    return channels;
}

/* Branches that are added and concatenated at random; the last tensors are the outputs. */
static void branches(net *n, qsim_ctx *ctx, uint64_t seed) {
    uint64_t state = seed;
    made t[40] = {{"x", 16}};
    const int count = 8 + (int)(test_random(&state) % 32);
    net_begin(n, ctx, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(1, 16, 24, 24));
    for (int i = 1; i < count; i++) {
        char names[40];
        const int back = i > 4 ? 4 : i;
        const made *a = &t[i - 1 - (int)(test_random(&state) % (uint32_t)back)], *b = &t[i - 1];
        snprintf(t[i].name, sizeof(t[i].name), "t%d", i);
        snprintf(names, sizeof(names), "%.15s,%.15s", a->name, b->name);
        t[i].channels = b->channels;
        const uint32_t kind = test_random(&state) % 4;
        if (kind == 0 && a->channels == b->channels) {
            net_node(n, "", "Add", names, t[i].name);
        } else if (kind == 1 && a != b && a->channels + b->channels < 200) {
            qs_id id = net_node(n, "", "Concat", names, t[i].name);
            CHECK_INT(qs_node_set_int(n->g, id, "axis", 1), 0);
            t[i].channels = a->channels + b->channels;
        } else if (kind == 2) {
            net_node(n, "", "Sigmoid", b->name, t[i].name);
        } else {
            t[i].channels = add_conv(n, b, t[i].name, &state);
        }
    }
    net_output(n, t[count - 1].name);
    NET_OK(n, net_end(n));
}

static void generated(qsim_ctx *ctx) {
    for (uint64_t seed = 1; seed <= 100; seed++) {
        net n;
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        branches(&n, ctx, seed);
        NET_OK(&n, qsim_session_create(n.model, NULL, &s, &n.error));
        NET_OK(&n, qsim_run_create(s, &r, &n.error));
        if (r)
            check_arena(r, "generated");
        qsim_run_free(r);
        qsim_session_free(s);
        net_free(&n);
    }
}

/* ---- a process ---- */

typedef enum weights { FLOATS, BYTES, TABLE } weights;

#if defined(__linux__) && !SANITIZED

/* Bytes of a mapped file that are in memory. */
static size_t resident(const char *path) {
    char line[512];
    size_t kb = 0;
    bool ours = false;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof(line), f)) {
        if (strchr(line, '-') && strchr(line, '-') < strchr(line, ' '))
            ours = strstr(line, path) != NULL;
        if (ours && strncmp(line, "Rss:", 4) == 0)
            kb += strtoul(line + 4, NULL, 10);
    }
    if (f)
        fclose(f);
    return kb * 1024;
}

/* Layers of 4 MB of weights. */
static void make_file(qsim_ctx *ctx, const char *path, int layers) {
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "t0", QSIM_FLOAT, NET_DIMS(1, 1024));
    for (int i = 0; i < layers; i++) {
        char x[16], w[16], names[40], y[16];
        snprintf(x, sizeof(x), "t%d", i);
        snprintf(w, sizeof(w), "w%d", i);
        snprintf(y, sizeof(y), "t%d", i + 1);
        snprintf(names, sizeof(names), "%.15s,%.15s", x, w);
        net_random(&n, w, NET_DIMS(1024, 1024), (uint64_t)i, 0.1f);
        net_node(&n, "", "MatMul", names, y);
        if (i + 1 == layers)
            net_output(&n, y);
    }
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_model_save(n.model, path, NULL, &n.error));
    net_free(&n);
}

/* As make_file, with unsigned 8-bit weights, as dynamic quantization writes them. */
static void make_bytes(qsim_ctx *ctx, const char *path, int layers) {
    static uint8_t bytes[4 << 20];
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "t0", QSIM_UINT8, NET_DIMS(1, 2048));
    net_byte(&n, "z", QSIM_UINT8, 131);
    for (int i = 0; i < layers; i++) {
        char w[16], names[40], sums[16], y[16];
        snprintf(w, sizeof(w), "w%d", i);
        snprintf(sums, sizeof(sums), "s%d", i);
        snprintf(y, sizeof(y), "t%d", i + 1);
        snprintf(names, sizeof(names), "t%d,%.15s,,z", i, w);
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)(k * 7 / 5 + (size_t)i);
        net_const(&n, w, QSIM_UINT8, NET_DIMS(2048, 2048), bytes);
        net_node(&n, "", "MatMulInteger", names, sums);
        CHECK_INT(qs_node_set_int(n.g, net_node(&n, "", "Cast", sums, y), "to", QSIM_UINT8), 0);
        if (i + 1 == layers)
            net_output(&n, y);
    }
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_model_save(n.model, path, NULL, &n.error));
    net_free(&n);
}

/* One table of 32 MB, of which rows are read where they stand. */
static void make_table(qsim_ctx *ctx, const char *path) {
    net n;
    net_begin(&n, ctx, 13);
    net_input(&n, "rows", QSIM_INT64, NET_DIMS(2));
    net_random(&n, "table", NET_DIMS(1 << 15, 256), 1, 0.1f);
    net_node(&n, "", "Gather", "table,rows", "y");
    net_output(&n, "y");
    NET_OK(&n, net_end(&n));
    NET_OK(&n, qsim_model_save(n.model, path, NULL, &n.error));
    net_free(&n);
}

/* Runs in a process of its own, which has allocated nothing before. */
static void load_and_run(const char *path, weights kind) {
    _Alignas(8) static float x[1024]; /* zeros of any type */
    const int64_t floats[] = {1, 1024}, bytes[] = {1, 2048}, rows[] = {2};
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_tensor in = kind == FLOATS  ? net_tensor(QSIM_FLOAT, 2, floats, x)
                     : kind == BYTES ? net_tensor(QSIM_UINT8, 2, bytes, x)
                                     : net_tensor(QSIM_INT64, 1, rows, x);
    qsim_tensor out = {0};
    qsim_ctx *ctx = NULL;
    qsim_model *m = NULL;
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    const size_t before = process_memory("VmRSS:");
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    CHECK_INT(qsim_model_load(ctx, path, NULL, &m, NULL), 0);
    CHECK_INT(qsim_session_create(m, NULL, &s, NULL), 0);
    CHECK(resident(path) < 2 * MB);
    CHECK_INT(qsim_run_create(s, &r, NULL), 0);
    CHECK_INT(qsim_run_execute(r, &in, 1, &out, 1, NULL), 0);
    CHECK(process_memory("VmHWM:") <=
          before + qsim_session_bytes(s) + qsim_run_arena_bytes(r) + 8 * MB);
    qsim_run_free(r);
    qsim_session_free(s);
    qsim_model_free(m);
    qsim_ctx_free(ctx);
}

static void peak(qsim_ctx *ctx, weights kind) {
    char path[] = "memory_use_XXXXXX";
    int fd = mkstemp(path), ended = -1;
    CHECK(fd >= 0);
    close(fd);
    unlink(path); /* the name is what counts */
    if (kind == TABLE)
        make_table(ctx, path);
    else if (kind == BYTES)
        make_bytes(ctx, path, 8);
    else
        make_file(ctx, path, 8);
    pid_t child = fork();
    if (child == 0) {
        test_failures = 0;
#if defined(__GLIBC__)
        mallopt(M_PERTURB, 0); /* the test runner's setting writes to unused memory */
#endif
        load_and_run(path, kind);
        _exit(test_failures != 0);
    }
    CHECK(child > 0 && waitpid(child, &ended, 0) == child);
    CHECK_INT(ended, 0);
    unlink(path);
}

#else
static void peak(qsim_ctx *ctx, weights kind) {
    (void)ctx;
    (void)kind;
}
#endif

/* ---- the shared models ---- */

/* Reserves a run with 1 for an open first axis, and 320 for each other open axis. */
static int reserve(qsim_run *r, const qsim_model *m, int32_t inputs, qsim_error *error) {
    qsim_tensor t[8] = {{0}};
    int64_t dims[8][8];
    int code = inputs <= 8 ? 0 : QSIM_E_LIMIT;
    for (int32_t i = 0; i < inputs && !code; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        code = qsim_model_input(m, i, &v);
        for (int32_t d = 0; d < v.rank && !code; d++)
            dims[i][d] = v.dims[d] >= 0 ? v.dims[d] : d == 0 ? 1 : 320;
        t[i] = net_tensor(v.dtype, v.rank, dims[i], NULL);
        t[i].data = calloc(t[i].bytes + 1, 1);
    }
    if (!code)
        code = qsim_run_reserve(r, t, (size_t)inputs, error);
    for (int32_t i = 0; i < inputs && i < 8; i++)
        free(t[i].data);
    return code;
}

static void shared(qsim_ctx *ctx) {
    char index[1024], path[1300];
    test_shared("models/INDEX.md", index);
    *strrchr(index, '/') = 0;
    DIR *folder = opendir(index);
    long before = test_checks;
    for (struct dirent *e; folder && (e = readdir(folder));) {
        const char *dot = strrchr(e->d_name, '.');
        qsim_error error = {0};
        qsim_model *m = NULL;
        qsim_session *s = NULL;
        qsim_run *r = NULL;
        if (!dot || strcmp(dot, ".onnx") != 0)
            continue;
        snprintf(path, sizeof(path), "%s/%.255s", index, e->d_name);
        CHECK_INT(qsim_model_load(ctx, path, NULL, &m, &error), 0);
        CHECK_INT(qsim_session_create(m, NULL, &s, &error), 0);
        CHECK_INT(qsim_run_create(s, &r, &error), 0);
        if (r && !r->plan)
            CHECK_INT(reserve(r, m, qsim_session_input_count(s), &error), 0);
        if (r)
            check_arena(r, e->d_name);
        qsim_run_free(r);
        qsim_session_free(s);
        qsim_model_free(m);
    }
    CHECK(test_checks > before);
    if (folder)
        closedir(folder);
}

int main(void) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1};
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), 0);
    generated(ctx);
    for (weights kind = FLOATS; kind <= TABLE; kind++)
        peak(ctx, kind);
    shared(ctx);
    qsim_ctx_free(ctx);
    return test_done();
}
