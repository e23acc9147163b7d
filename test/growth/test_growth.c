/* SPDX-License-Identifier: MIT */
/*
 * Growth of work with a graph. Every basic block of the layers that walk graphs is counted, and
 * every byte requested: twice the graph may be little more than twice the work (n log n is), in
 * each of the calls of a model's life. Nothing is timed.
 */
#include <qsim/qsim.h>

#include "families.h"
#include "test.h"

#define SMALL 1200
#define WORST 2.5 /* times the work for twice the graph */

static uint64_t blocks, bytes;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    blocks++;
}

static void *counting_alloc(void *user, size_t size, size_t align) {
    (void)user;
    bytes += size;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void counting_free(void *user, void *p, size_t size) {
    (void)user;
    (void)size;
    free(p);
}

enum {
    LOAD,
    SESSION,
    EXECUTE,
    STEPS,
    INSPECT,
    EVERY,
    OPTIMIZE,
    DYNAMIC,
    CALIBRATE,
    FEED,
    STATIC,
    SAVE,
    COMPARE,
    INTEGERS,
    CONVERT,
    STAGES
};
static const char *const stages[STAGES] = {
    "load",        "session", "execute",  "steps", "inspect", "every tensor", "optimize", "dynamic",
    "calibration", "feed",    "quantize", "save",  "compare", "integers",     "convert"};

typedef struct work {
    uint64_t blocks[STAGES], bytes[STAGES];
} work;

static work *counted;
static uint64_t blocks_before, bytes_before;

static void begin(void) {
    blocks_before = blocks;
    bytes_before = bytes;
}

static void end(int stage) {
    counted->blocks[stage] = blocks - blocks_before;
    counted->bytes[stage] = bytes - bytes_before;
}

/* Zeros for every input. */
static size_t make_inputs(const qsim_model *m, qsim_tensor **inputs) {
    static float zeros[1 << 16];
    const size_t count = (size_t)qsim_model_input_count(m);
    *inputs = calloc(count + 1, sizeof(**inputs));
    for (size_t i = 0; *inputs && i < count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_input(m, (int32_t)i, &v), QSIM_OK);
        qsim_tensor t = {v.dtype, v.rank, v.dims, zeros, 0};
        CHECK_INT(qsim_tensor_size(v.dtype, v.rank, v.dims, NULL, &t.bytes), QSIM_OK);
        (*inputs)[i] = t;
    }
    return count;
}

/* What qsim info asks for. */
static void inspect(const qsim_model *m) {
    begin();
    CHECK(qsim_model_parameters(m) >= 0);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_node_info n = {.struct_size = sizeof(n)};
        CHECK_INT(qsim_model_node(m, i, &n), QSIM_OK);
    }
    end(INSPECT);
}

/* A session with every tensor as output, like a comparison by layers. */
static void every_tensor(const qsim_model *m, qsim_error *e) {
    const size_t count = (size_t)qsim_model_value_count(m);
    const char **names = calloc(count + 1, sizeof(*names));
    qsim_session_options o = {.struct_size = sizeof(o), .outputs = names};
    qsim_session *s = NULL;
    for (size_t i = 0; names && i < count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_value(m, (int32_t)i, &v), QSIM_OK);
        if (!v.data && v.dtype != QSIM_UNDEFINED) /* no sequence */
            names[o.output_count++] = v.name;
    }
    begin();
    CHECK_INT(qsim_session_create(m, &o, &s, e), QSIM_OK);
    end(EVERY);
    qsim_session_free(s);
    free((void *)names);
}

static void execute(const qsim_model *m, const qsim_tensor *inputs, size_t count, qsim_error *e) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    begin();
    CHECK_INT(qsim_session_create(m, NULL, &s, e), QSIM_OK);
    end(SESSION);
    const size_t given = s ? (size_t)qsim_session_output_count(s) : 0;
    qsim_tensor *outputs = calloc(given + 1, sizeof(*outputs));
    begin();
    if (s && outputs)
        CHECK_INT(qsim_run_create(s, &r, e), QSIM_OK);
    if (r)
        CHECK_INT(qsim_run_execute(r, inputs, count, outputs, given, e), QSIM_OK);
    end(EXECUTE);
    begin();
    for (int32_t i = 0; i < qsim_run_step_count(r); i++) {
        qsim_step_info step = {.struct_size = sizeof(step)};
        CHECK_INT(qsim_run_step(r, i, &step), QSIM_OK);
    }
    end(STEPS);
    free(outputs);
    qsim_run_free(r);
    qsim_session_free(s);
}

/* Integers in place of floats outside of a quantized model, and other forms of it. */
static void change(const qsim_model *m) {
    begin();
    for (int32_t which = 1; which <= 2; which++) {
        qsim_model *made = NULL;
        const int code = qsim_model_integer_io(m, which, &made, NULL);
        CHECK(!code || code == QSIM_E_UNSUPPORTED);
        qsim_model_free(made);
    }
    end(INTEGERS);
    begin();
    for (int32_t format = 0; format <= 2; format += 2) {
        qsim_model *made = NULL;
        const int code = qsim_model_convert_to(m, format, &made, NULL);
        CHECK(!code || code == QSIM_E_UNSUPPORTED);
        qsim_model_free(made);
    }
    end(CONVERT);
}

static void quantize(const qsim_model *m, const qsim_tensor *inputs, size_t count, qsim_error *e) {
    qsim_quantize_options o = {.struct_size = sizeof(o), .mode = QSIM_MODE_DYNAMIC};
    qsim_calibration *c = NULL;
    qsim_model *q = NULL;
    size_t need;
    begin();
    int code = qsim_quantize(m, NULL, &o, &q, e); /* fails if there is nothing to quantize */
    end(DYNAMIC);
    CHECK(!code || code == QSIM_E_UNSUPPORTED || code == QSIM_E_STATE);
    qsim_model_free(q);
    q = NULL;
    begin();
    code = qsim_calibration_create(m, NULL, &c, e);
    end(CALIBRATE);
    if (code) { /* already quantized */
        change(m);
        return;
    }
    begin();
    CHECK_INT(qsim_calibration_feed(c, inputs, count, e), QSIM_OK);
    end(FEED);
    begin();
    code = qsim_quantize(m, c, NULL, &q, e);
    end(STATIC);
    begin();
    if (!code)
        CHECK_INT(qsim_model_save_memory(q, NULL, 0, &need, e), QSIM_OK);
    end(SAVE);
    begin();
    if (!code) /* which tensors of both belong together */
        CHECK(qsim_model_pairs(m, q, NULL, NULL, e) >= 0);
    end(COMPARE);
    if (q)
        change(q);
    qsim_model_free(q);
    qsim_calibration_free(c);
}

static void measure(const family *f, int n, qsim_ctx *ctx, work *into) {
    qsim_error e = {0};
    proto file = {0};
    qsim_tensor *inputs = NULL;
    qsim_model *m = NULL, *o = NULL;
    counted = into;
    f->write(&file, n);
    begin();
    CHECK_INT(qsim_model_load_memory(ctx, file.data, file.size, NULL, &m, &e), QSIM_OK);
    end(LOAD);
    if (m) {
        inspect(m); /* first of all: later calls find what it has made */
        const size_t count = make_inputs(m, &inputs);
        execute(m, inputs, count, &e);
        every_tensor(m, &e);
        begin();
        CHECK_INT(qsim_model_optimize(m, QSIM_LEVEL_ALL, &o, &e), QSIM_OK);
        end(OPTIMIZE);
        quantize(m, inputs, count, &e);
    }
    if (e.code)
        fprintf(stderr, "%s: %s\n", f->name, e.message);
    free(inputs);
    qsim_model_free(o);
    qsim_model_free(m);
    proto_free(&file);
}

/* Compares the work of two sizes; work up to `least`, which any call needs, is allowed. */
static void compare(const family *f, const char *stage, const char *what, uint64_t small,
                    uint64_t large, uint64_t least) {
    const double ratio = (double)large / (double)(small + 1);
    if (large > least && ratio > WORST) {
        fprintf(stderr, "%s, %s: %llu %s for %d, %llu for %d: %.2f times as many\n", f->name, stage,
                (unsigned long long)small, what, SMALL, (unsigned long long)large, 2 * SMALL,
                ratio);
        CHECK_FAIL("work grows faster than the graph");
    }
}

int main(int argc, char **argv) {
    const qsim_allocator allocator = {counting_alloc, counting_free, NULL};
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &allocator, .threads = 1};
    qsim_ctx *ctx;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    for (int i = 0; i < family_count; i++) {
        work small = {{0}, {0}}, large = {{0}, {0}};
        if (argc > 1 && strcmp(argv[1], families[i].name) != 0)
            continue;
        measure(&families[i], SMALL, ctx, &small);
        measure(&families[i], 2 * SMALL, ctx, &large);
        for (int k = 0; k < STAGES; k++) {
            compare(&families[i], stages[k], "blocks", small.blocks[k], large.blocks[k], 100000);
            compare(&families[i], stages[k], "bytes", small.bytes[k], large.bytes[k], 4 << 20);
            if (argc > 1)
                printf("%-12s %10llu %10llu blocks %10llu %10llu bytes\n", stages[k],
                       (unsigned long long)small.blocks[k], (unsigned long long)large.blocks[k],
                       (unsigned long long)small.bytes[k], (unsigned long long)large.bytes[k]);
        }
    }
    qsim_ctx_free(ctx);
    return test_done();
}
