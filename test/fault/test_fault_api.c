/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of every public function can fail: one small job for each, repeated with the
 * first, second, … n-th allocation failing until it gets through, once and from then on. Each
 * failing pass must end with QSIM_E_NOMEM and give back every byte. With a number S as argument, of
 * those behind the 64th only each S-th fails.
 */
#include "heap.h"

#include <qsim/qsim.h>

#include <unistd.h>

#include "../fuzz/fuzz.h" /* its .npz */

/* Objects that jobs use, made without failures in the same context. */
typedef struct things {
    test_heap heap;
    qsim_ctx *ctx;
    qsim_model *model; /* opset 11, with BatchNormalization */
    qsim_model *old;   /* opset 9, with operators that have changed much */
    qsim_calibration *calibration, *loaded;
    const char *without; /* words that a message must not have; NULL: any */
    char folder[32], onnx[64], qcal[64], out[64], zip[64], below[64];
    uint8_t package[1 << 16]; /* bytes of the package in zip */
    size_t package_size;
    uint8_t npz[1024];
    size_t npz_size;
    int32_t part; /* of a job */
} things;

static float samples[2 * 64];
static const int64_t sample_dims[] = {2, 1, 8, 8};

static qsim_tensor input(void) {
    return (qsim_tensor){QSIM_FLOAT, 4, sample_dims, samples, sizeof(samples)};
}

static void constant(qsim_builder *b, const char *name, int32_t rank, const int64_t *dims) {
    static float w[512];
    uint64_t seed = (uint64_t)name[0] * 31 + 7;
    qsim_tensor t = {QSIM_FLOAT, rank, dims, w, 0};
    CHECK_INT(qsim_tensor_size(QSIM_FLOAT, rank, dims, NULL, &t.bytes), QSIM_OK);
    for (size_t i = 0; i < 512; i++)
        w[i] = (float)(test_random(&seed) % 200) / 200.0f + 0.1f;
    qsim_builder_constant(b, name, &t);
}

static int build(things *t, qsim_model **out, qsim_error *e) {
    const int64_t pads[] = {1, 1, 1, 1}, two[] = {2, 2}, x[] = {-1, 1, 8, 8}, y[] = {-1, 5};
    const char *const names[] = {"N", NULL, NULL, NULL};
    qsim_builder *b = NULL;
    int code = qsim_builder_create(t->ctx, 11, "g", &b, e);
    if (code)
        return code;
    qsim_builder_input(b, "x", QSIM_FLOAT, 4, x, names);
    constant(b, "w", 4, (int64_t[]){4, 1, 3, 3});
    constant(b, "s", 1, (int64_t[]){4});
    constant(b, "h", 1, (int64_t[]){4});
    constant(b, "m", 1, (int64_t[]){4});
    constant(b, "v", 1, (int64_t[]){4});
    constant(b, "k", 2, (int64_t[]){64, 5});
    constant(b, "d", 4, (int64_t[]){4, 1, 3, 3});
    qsim_builder_metadata(b, "author", "nobody");
    qsim_builder_node(b, "", "Conv", "conv", "x,w", "c");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_node(b, "", "BatchNormalization", "norm", "c,s,h,m,v", "n");
    qsim_builder_attr_float(b, "epsilon", 0.001f);
    qsim_builder_node(b, "", "Relu", "relu", "n", "r");
    qsim_builder_node(b, "", "Conv", "deep", "r,d", "g");
    qsim_builder_attr_ints(b, "pads", pads, 4);
    qsim_builder_attr_int(b, "group", 4);
    qsim_builder_attr_string(b, "auto_pad", "NOTSET");
    qsim_builder_node(b, "", "Add", "add", "r,g", "a");
    qsim_builder_node(b, "", "AveragePool", "pool", "a", "p");
    qsim_builder_attr_ints(b, "kernel_shape", two, 2);
    qsim_builder_attr_ints(b, "strides", two, 2);
    qsim_builder_node(b, "", "Flatten", "flat", "p", "f");
    qsim_builder_node(b, "", "MatMul", "fc", "f,k", "y");
    qsim_builder_node(b, "", "Softmax", "soft", "y", "q"); /* integer_io quantizes it */
    qsim_builder_output(b, "y", QSIM_FLOAT, 2, y, names);
    qsim_builder_output(b, "q", QSIM_FLOAT, 2, y, names);
    code = qsim_builder_finish(b, out, e);
    qsim_builder_free(b);
    return code;
}

/* ---- jobs ---- */

static int job_build(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    int code = build(t, &m, e);
    qsim_model_free(m);
    return code;
}

static int job_load(things *t, qsim_error *e) {
    static const int32_t flags[] = {0, QSIM_LOAD_COPY, QSIM_LOAD_INSPECT, QSIM_LOAD_CHECK};
    int code = QSIM_OK;
    for (int i = 0; i < 4 && !code; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = flags[i]};
        qsim_model *m = NULL;
        code = qsim_model_load(t->ctx, t->onnx, &o, &m, e);
        qsim_model_free(m);
    }
    return code;
}

/* For functions without a qsim_error. */
static int untold(int code, qsim_error *e) {
    e->code = code;
    return code;
}

static int job_look(things *t, qsim_error *e) {
    char hash[65];
    int code = qsim_model_check(t->model, NULL, NULL);
    return untold(code < 0 ? code : qsim_model_hash(t->model, hash), e);
}

static int job_operators(things *t, qsim_error *e) {
    qsim_operator_info op = {.struct_size = sizeof(op)};
    int code = QSIM_OK;
    for (int32_t i = 0; i < 3 && !code; i++)
        code = qsim_operator(t->ctx, i, &op);
    return untold(code, e);
}

static int job_save(things *t, qsim_error *e) {
    qsim_save_options o = {.struct_size = sizeof(o), .flags = QSIM_SAVE_REPLACE};
    return qsim_model_save(t->model, t->out, &o, e);
}

static int execute(const qsim_model *m, int32_t level, qsim_error *e) {
    qsim_session_options o = {.struct_size = sizeof(o), .level = level};
    qsim_tensor x = input(), y[2] = {{0}};
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    int code = qsim_session_create(m, &o, &s, e);
    if (!code)
        code = qsim_run_create(s, &r, e);
    if (!code)
        code = qsim_run_reserve(r, &x, 1, e);
    if (!code)
        code = qsim_run_execute(r, &x, 1, y, 2, e);
    qsim_session_free(s);
    qsim_run_free(r);
    return code;
}

static int job_optimize(things *t, qsim_error *e) {
    const int32_t level = QSIM_LEVEL_DISABLE + t->part;
    qsim_model *m = NULL;
    int code = qsim_model_optimize(t->model, level, &m, e);
    if (!code)
        code = execute(m, level, e);
    qsim_model_free(m);
    return code;
}

/* Models with integer inputs and outputs (parts 0 to 2), then in another form. */
static int job_derive(things *t, qsim_error *e) {
    const bool converts = t->part > 2;
    const qsim_quantize_options o = {.struct_size = sizeof(o),
                                     .format = converts ? QSIM_FORMAT_QOPERATOR : QSIM_FORMAT_QDQ};
    qsim_model *q = NULL, *m = NULL;
    double scale;
    int64_t zero_point;
    int code = qsim_quantize(t->model, t->calibration, &o, &q, e);
    if (!code && converts)
        code = qsim_model_convert_to(q, 2 * (t->part - 3), &m, e);
    else if (!code)
        code = qsim_model_integer_io(q, 1 + t->part, &m, e);
    if (!code && !converts && t->part != 1)
        code = qsim_model_scale(m, "x", &scale, &zero_point, e);
    qsim_model_free(q);
    qsim_model_free(m);
    return code;
}

/* Operators whose attributes became inputs, or that several newer ones replace. */
static int build_old(things *t, qsim_model **out, qsim_error *e) {
    const int64_t from[] = {0}, to[] = {2}, axis[] = {1};
    qsim_builder *b = NULL;
    int code = qsim_builder_create(t->ctx, 9, "g", &b, e);
    if (code)
        return code;
    qsim_builder_input_as(b, "x", "float[2,3,4]");
    qsim_builder_node(b, "", "Softmax", "soft", "x", "s");
    qsim_builder_node(b, "", "Clip", "clip", "s", "c");
    qsim_builder_attr_float(b, "max", 0.5f);
    qsim_builder_node(b, "", "Slice", "slice", "c", "p");
    qsim_builder_attr_ints(b, "starts", from, 1);
    qsim_builder_attr_ints(b, "ends", to, 1);
    qsim_builder_node(b, "", "ReduceSum", "sum", "p", "r");
    qsim_builder_attr_ints(b, "axes", axis, 1);
    qsim_builder_node(b, "", "Squeeze", "squeeze", "r", "y");
    qsim_builder_attr_ints(b, "axes", axis, 1);
    qsim_builder_output_as(b, "y", "float[2,4]");
    code = qsim_builder_finish(b, out, e);
    qsim_builder_free(b);
    return code;
}

static int job_upgrade(things *t, qsim_error *e) {
    qsim_model *m = NULL;
    int code = qsim_model_upgrade(t->part ? t->old : t->model, 21, &m, e);
    qsim_model_free(m);
    return code;
}

/* The least number of bins: a search for a range takes as long as there are many. */
static const qsim_calibration_options few_bins = {.struct_size = sizeof(few_bins), .bins = 128};

static int job_calibrate(things *t, qsim_error *e) {
    qsim_tensor x = input();
    qsim_calibration *c = NULL;
    int code = qsim_calibration_create(t->model, &few_bins, &c, e);
    for (int i = 0; i < 2 && !code; i++)
        code = qsim_calibration_feed(c, &x, 1, e);
    if (!code)
        code = qsim_calibration_merge(c, t->calibration, e);
    qsim_calibration_free(c);
    return code;
}

static int job_calibration_file(things *t, qsim_error *e) {
    qsim_calibration *c = NULL;
    int code = qsim_calibration_save(t->calibration, t->out, 1, e);
    if (!code)
        code = qsim_calibration_load(t->ctx, t->qcal, &c, e);
    if (!code)
        code = qsim_calibration_merge(c, t->loaded, e);
    qsim_calibration_free(c);
    return code;
}

/* A recipe by itself: made, written, read, merged. */
static int job_recipe(things *t, qsim_error *e) {
    const qsim_recipe_entry entry = {.struct_size = sizeof(entry),
                                     .name = "fc",
                                     .kind = QSIM_RECIPE_LAYER,
                                     .action = QSIM_RECIPE_FLOAT};
    qsim_recipe *a = NULL, *b = NULL;
    int code = qsim_recipe_create(t->ctx, &a, e);
    if (!code)
        code = qsim_recipe_set(a, &entry, e);
    if (!code)
        code = qsim_recipe_save(a, t->out, 1, e);
    if (!code)
        code = qsim_recipe_load(t->ctx, t->out, &b, e);
    if (!code)
        code = qsim_recipe_merge(b, a, e);
    qsim_recipe_free(a);
    qsim_recipe_free(b);
    return code;
}

static int job_quantize(things *t, qsim_error *e) {
    const int32_t i = t->part;
    qsim_rule rule = {sizeof(rule), "f*", QSIM_RULE_FLOAT, 0};
    qsim_quantize_options o = {.struct_size = sizeof(o), .format = i % 2};
    qsim_model *q = NULL;
    o.method = i;
    o.rules = &rule;
    o.rule_count = i == 3;
    o.weight_scheme = i % 3;
    o.weight_type = i % 3 == QSIM_WEIGHT_TENSOR_ASYMMETRIC ? QSIM_UINT8 : QSIM_INT8;
    int code = qsim_quantize(t->model, t->calibration, &o, &q, e);
    if (!code)
        code = execute(q, QSIM_LEVEL_ALL, e);
    qsim_model_free(q);
    return code;
}

static int job_quantize_modes(things *t, qsim_error *e) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .per_row = t->part == 1};
    qsim_model *q = NULL;
    o.mode = t->part < 2 ? QSIM_MODE_DYNAMIC : QSIM_MODE_WEIGHTS;
    int code = qsim_quantize(t->model, NULL, &o, &q, e);
    if (!code)
        code = execute(q, QSIM_LEVEL_ALL, e);
    qsim_model_free(q);
    return code;
}

static int job_layers(things *t, qsim_error *e) {
    int32_t n = qsim_quantize_layers(t->model, NULL, NULL, NULL, NULL, e);
    return n < 0 ? n : QSIM_OK;
}

static int score(void *user, const qsim_model *candidate, double *result) {
    (void)user, (void)candidate;
    *result = 50;
    return 0;
}

static int job_search(things *t, qsim_error *e) {
    double best;
    qsim_recipe *found = NULL, *decided = NULL;
    qsim_model *q = NULL;
    qsim_tensor x = input();
    qsim_search_options o = {.struct_size = sizeof(o),
                             .inputs = &x,
                             .input_count = 1,
                             .score = score,
                             .float_score = 50,
                             .steps = 2,
                             .methods = t->part == 0 ? "greedy" : "anneal"};
    int code = qsim_recipe_create(t->ctx, &found, e);
    if (!code)
        code = qsim_recipe_create(t->ctx, &decided, e);
    if (!code)
        code = qsim_search(t->model, t->calibration, NULL, &o, found, &best, e);
    qsim_quantize_options qo = {.struct_size = sizeof(qo), .recipe = found, .decided = decided};
    if (!code)
        code = qsim_quantize(t->model, t->calibration, &qo, &q, e);
    if (!code)
        code = qsim_recipe_save(decided, t->out, 1, e);
    qsim_recipe_free(found);
    qsim_recipe_free(decided);
    qsim_model_free(q);
    return code;
}

/* Judges a model of its own, whose lists of nodes and tensors are not made yet. */
static int job_verdict(things *t, qsim_error *e) {
    qsim_model *m = NULL, *q = NULL;
    qsim_verdict *v = NULL;
    qsim_tensor x = input();
    const qsim_verdict_options o = {.struct_size = sizeof(o), .calibration = t->calibration};
    int code = qsim_model_load(t->ctx, t->onnx, NULL, &m, e);
    if (!code)
        code = qsim_quantize(m, t->calibration, NULL, &q, e);
    if (!code)
        code = qsim_verdict_create(m, q, &o, &v, e);
    if (!code)
        code = qsim_verdict_feed(v, &x, 1, e);
    if (!code && qsim_verdict_grade(v) == QSIM_GRADE_NONE)
        code = QSIM_E_INTERNAL;
    qsim_verdict_free(v);
    qsim_model_free(q);
    qsim_model_free(m);
    return code;
}

static int job_npz(things *t, qsim_error *e) {
    qsim_npz *z = NULL;
    uint8_t out[4];
    int code = qsim_npz_open(t->ctx, t->npz, t->npz_size, &z, e);
    if (!code)
        code = qsim_npz_read(z, 0, out, sizeof(out), e);
    qsim_npz_free(z);
    return code;
}

static int job_package(things *t, qsim_error *e) {
    qsim_packer *w = NULL;
    int code = qsim_packer_create(t->ctx, &w, e);
    if (!code)
        code = qsim_packer_model(w, t->onnx, "m", e);
    if (!code)
        code = qsim_packer_add(w, QSIM_ROLE_LABELS, NULL, "a\nb\n", 4, e);
    if (!code)
        code = qsim_packer_add(w, QSIM_ROLE_REPORT, NULL, "{}", 2, e);
    if (!code)
        code = qsim_packer_option(w, "note", "text", e);
    if (!code)
        code = qsim_packer_save(w, t->out, QSIM_PACK_REPLACE | QSIM_PACK_DEFLATE, e);
    qsim_packer_free(w);
    return code;
}

static int job_unpack(things *t, qsim_error *e) {
    qsim_package *p = NULL;
    int code = qsim_package_open(t->ctx, t->zip, QSIM_LOAD_COPY, &p, e);
    if (!code)
        code = qsim_package_unpack(p, t->below, QSIM_UNPACK_REPLACE, e);
    qsim_package_free(p);
    return code;
}

static int job_load_package(things *t, qsim_error *e) {
    static const int32_t flags[] = {0, QSIM_LOAD_COPY};
    int code = QSIM_OK;
    for (int i = 0; i < 4 && !code; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = flags[i % 2]};
        qsim_model *m = NULL;
        code = i < 2 ? qsim_model_load(t->ctx, t->zip, &o, &m, e)
                     : qsim_model_load_memory(t->ctx, t->package, t->package_size, &o, &m, e);
        qsim_model_free(m);
    }
    return code;
}

static int job_files(things *t, qsim_error *e) {
    static const int32_t flags[] = {0, QSIM_FILE_COPY};
    qsim_bytes piece = {"text", 4};
    int code = qsim_file_write(t->ctx, t->out, QSIM_FILE_REPLACE, &piece, 1, e);
    for (int i = 0; i < 2 && !code; i++) {
        qsim_file *f = NULL;
        code = qsim_file_open(t->ctx, t->onnx, flags[i], &f, e);
        qsim_file_close(f);
    }
    return code;
}

static int job_observers(things *t, qsim_error *e) {
    qsim_observer *a = NULL, *b = NULL;
    float low, high;
    int code = qsim_observer_create(t->ctx, NULL, &a, e);
    if (!code)
        code = qsim_observer_create(t->ctx, NULL, &b, e);
    if (!code)
        code = untold(qsim_observer_feed(a, samples, 128), e);
    if (!code)
        code = untold(qsim_observer_merge(b, a), e);
    for (int32_t m = 0; m < 4 && !code; m++)
        code = untold(qsim_observer_range(b, m, 0, QSIM_UINT8, 0, &low, &high), e);
    qsim_observer_free(a);
    qsim_observer_free(b);
    return code;
}

static int job_layers_raw(things *t, qsim_error *e) {
    static uint8_t x[64], w[36], v[5 * 64];
    static int32_t y[4 * 36], z[5];
    const int64_t xd[] = {1, 1, 8, 8}, wd[] = {4, 1, 3, 3}, yd[] = {1, 4, 6, 6};
    const int64_t rd[] = {1, 64}, vd[] = {5, 64}, zd[] = {1, 5};
    qsim_tensor tx = {QSIM_UINT8, 4, xd, x, sizeof(x)}, tw = {QSIM_INT8, 4, wd, w, sizeof(w)};
    qsim_tensor ty = {QSIM_INT32, 4, yd, y, sizeof(y)}, tr = {QSIM_UINT8, 2, rd, x, sizeof(x)};
    qsim_tensor tv = {QSIM_INT8, 2, vd, v, sizeof(v)}, tz = {QSIM_INT32, 2, zd, z, sizeof(z)};
    int code = qsim_conv2d(t->ctx, &tx, &tw, NULL, &ty, e);
    return code ? code : qsim_linear(t->ctx, &tr, &tv, NULL, &tz, e);
}

static int job_context(things *t, qsim_error *e) {
    qsim_allocator a = test_heap_allocator(&t->heap);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 2};
    qsim_ctx *ctx = NULL;
    int code = qsim_ctx_create(&o, &ctx, e);
    qsim_ctx_free(ctx);
    return code;
}

/* ---- the loop ---- */

#define EACH 64 /* of the first requests fails, whatever the stride */
static long stride = 1;

/* Repeats a job with each of its requests failing; `after`: all later requests fail, too. Returns
 * their number. */
static long fail_each(things *t, int (*job)(things *, qsim_error *), bool after) {
    const long live = t->heap.live;
    const size_t bytes = t->heap.bytes;
    const long failures = test_failures;
    long at = 1;
    do {
        qsim_error e = {0};
        t->heap.calls = t->heap.failed = 0;
        t->heap.fail_after = after;
        t->heap.fail_at = at;
        int code = job(t, &e);
        t->heap.fail_at = 0;
        CHECK_INT(t->heap.live, live);
        CHECK_INT(t->heap.bytes, bytes);
        CHECK_INT(code, t->heap.failed ? QSIM_E_NOMEM : QSIM_OK);
        CHECK_INT(e.code, code);
        /* A message says what was being done, not what with. */
        CHECK(!t->without || (!strstr(e.message, t->without) && !strstr(e.message, "observer:")));
        at += at < EACH ? 1 : stride;
    } while (t->heap.failed && at < 200000 && test_failures < failures + 5);
    CHECK(t->heap.calls > 0); /* so that a request did fail */
    return t->heap.calls;
}

/* A job takes time that grows with the square of its requests: its parts are jobs of their own. */
static void run_job(things *t, const char *name, int (*job)(things *, qsim_error *),
                    int32_t parts) {
    const bool alone = job == job_calibrate || job == job_calibration_file || job == job_recipe;
    t->without = alone ? "quantization:" : NULL;
    for (t->part = 0; t->part < parts; t->part++) {
        const long failures = test_failures;
        const long n = fail_each(t, job, false);
        CHECK_INT(fail_each(t, job, true), n);
        fprintf(stderr, "%s %d: %ld allocations%s\n", name, t->part, n,
                test_failures > failures ? ", FAILED" : "");
    }
}

static void make_package(things *t) {
    qsim_packer *w = NULL;
    qsim_file *f = NULL;
    CHECK_INT(qsim_packer_create(NULL, &w, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_model(w, t->onnx, NULL, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_add(w, QSIM_ROLE_DATA, "sub/x", "text", 4, NULL), QSIM_OK);
    CHECK_INT(qsim_packer_save(w, t->zip, QSIM_PACK_DEFLATE, NULL), QSIM_OK);
    qsim_packer_free(w);
    CHECK_INT(qsim_file_open(NULL, t->zip, 0, &f, NULL), QSIM_OK);
    t->package_size = qsim_file_size(f);
    CHECK(t->package_size <= sizeof(t->package));
    memcpy(t->package, qsim_file_data(f), t->package_size);
    qsim_file_close(f);
}

static void remove_unpacked(const things *t) {
    static const char *const names[] = {"m.onnx", "manifest.json", "SHA256SUMS",
                                        "sub/x",  "sub",           ""};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", t->below, names[i]);
        CHECK_INT(remove(path), 0);
    }
}

static void setup(things *t) {
    qsim_allocator a = test_heap_allocator(&t->heap);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_save_options replace = {.struct_size = sizeof(replace), .flags = QSIM_SAVE_REPLACE};
    qsim_tensor x = input();
    uint64_t seed = 1;
    for (size_t i = 0; i < 128; i++)
        samples[i] = (float)(test_random(&seed) % 1000) / 1000.0f;
    strcpy(t->folder, "qsim-fault-XXXXXX");
    CHECK(mkdtemp(t->folder) != NULL);
    snprintf(t->onnx, sizeof(t->onnx), "%s/m.onnx", t->folder);
    snprintf(t->qcal, sizeof(t->qcal), "%s/m.qcal", t->folder);
    snprintf(t->out, sizeof(t->out), "%s/out", t->folder);
    snprintf(t->zip, sizeof(t->zip), "%s/p.zip", t->folder);
    snprintf(t->below, sizeof(t->below), "%s/below", t->folder);
    CHECK_INT(qsim_ctx_create(&o, &t->ctx, NULL), QSIM_OK);
    CHECK_INT(build(t, &t->model, NULL), QSIM_OK);
    CHECK_INT(build_old(t, &t->old, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save(t->model, t->onnx, &replace, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_create(t->model, &few_bins, &t->calibration, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(t->calibration, &x, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_save(t->calibration, t->qcal, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_load(t->ctx, t->qcal, &t->loaded, NULL), QSIM_OK);
    make_package(t);
    t->npz_size = fuzz_seed(0, t->npz, sizeof(t->npz));
    CHECK(t->npz_size > 0);
}

static void teardown(things *t) {
    qsim_calibration_free(t->calibration);
    qsim_calibration_free(t->loaded);
    qsim_model_free(t->model);
    qsim_model_free(t->old);
    qsim_ctx_free(t->ctx);
    CHECK_INT(t->heap.live, 0);
    unlink(t->onnx);
    unlink(t->qcal);
    unlink(t->out);
    unlink(t->zip);
    remove_unpacked(t);
    CHECK_INT(rmdir(t->folder), 0); /* no temporary file is left behind */
}

int main(int argc, char **argv) {
    if (argc > 1)
        stride = atol(argv[1]) > 0 ? atol(argv[1]) : 1;
    static const struct {
        const char *name;
        int (*job)(things *, qsim_error *);
        int32_t parts;
    } jobs[] = {{"build", job_build, 1},
                {"load", job_load, 1},
                {"look", job_look, 1},
                {"operators", job_operators, 1},
                {"save", job_save, 1},
                {"optimize", job_optimize, 4},
                {"derive", job_derive, 5},
                {"upgrade", job_upgrade, 2},
                {"calibrate", job_calibrate, 1},
                {"calibration file", job_calibration_file, 1},
                {"recipe", job_recipe, 1},
                {"quantize", job_quantize, 4},
                {"quantize modes", job_quantize_modes, 3},
                {"layers", job_layers, 1},
                {"search", job_search, 2},
                {"verdict", job_verdict, 1},
                {"npz", job_npz, 1},
                {"package", job_package, 1},
                {"unpack", job_unpack, 1},
                {"load package", job_load_package, 1},
                {"files", job_files, 1},
                {"observers", job_observers, 1},
                {"raw layers", job_layers_raw, 1},
                {"context", job_context, 1}};
    static things t;
    setup(&t);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
        run_job(&t, jobs[i].name, jobs[i].job, jobs[i].parts);
    teardown(&t);
    return test_done();
}
