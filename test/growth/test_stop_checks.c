/* SPDX-License-Identifier: MIT */
/*
 * Work between two checks for a stop. Every basic block of operators, C kernels and quantization is
 * counted, and every 16 bytes copied or set, from one check to the next, in steps over millions of
 * elements, in the creation of sessions that pack or fold as many, and in layers on plain buffers:
 * their number may not depend on how long a row, a sum of products or a window of a pool is. The
 * channels of one pixel are not divided: half a million of them is within the bound. In graphs of
 * many layers it is the work of walks over all nodes and values, as sorting them. Each execution
 * is repeated and stopped at half of its checks: no more work than that may follow, however often
 * it is begun again. Nothing is timed. With an argument: the cases whose operator it is, and their
 * figures; "all": every one.
 */
#define _GNU_SOURCE
#include <qsim/qsim.h>

#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stop_checks.h"
#include "test.h"

/* Most work between two checks: some ms of the C kernels. */
#define MOST 6000000

static uint64_t work, last, gap, checks;
static uint64_t stop_at; /* the check that stops; 0: none */
static qsim_ctx *shared;
static bool tells; /* of every case */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    work++;
}

static void checked(void) {
    if (++checks == stop_at)
        qsim_ctx_cancel(shared, 1);
    else if (stop_at && checks > stop_at) /* the work since is one gap */
        return;
    gap = work - last > gap ? work - last : gap;
    last = work;
}

/* With a time limit each check reads the clock, and nothing else in a step does. */
int clock_gettime(clockid_t clock, struct timespec *t) {
    checked();
    return (int)syscall(SYS_clock_gettime, clock, t);
}

/* A plan is made before a run's time counts: there checks are these calls. */
int __real_qs_stop_code(const qsim_ctx *ctx);
int __wrap_qs_stop_code(const qsim_ctx *ctx);

int __wrap_qs_stop_code(const qsim_ctx *ctx) {
    checked();
    return __real_qs_stop_code(ctx);
}

void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *to, int byte, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int byte, size_t n);

void *__wrap_memcpy(void *to, const void *from, size_t n) {
    work += n / 16;
    return __real_memcpy(to, from, n);
}

void *__wrap_memmove(void *to, const void *from, size_t n) {
    work += n / 16;
    return __real_memmove(to, from, n);
}

void *__wrap_memset(void *to, int byte, size_t n) {
    work += n / 16;
    return __real_memset(to, byte, n);
}

/* ---- a case as text ---- */

/* The next word, ended by a blank or the end; false: there is none. */
static bool next_word(const char **at, char *word, size_t capacity) {
    size_t n = 0;
    while (**at == ' ')
        ++*at;
    while (**at && **at != ' ' && n + 1 < capacity)
        word[n++] = *(*at)++;
    word[n] = 0;
    return n > 0;
}

static size_t numbers(const char *text, int64_t *values, size_t capacity) {
    size_t n = 0;
    for (char *end; n < capacity; text = end + (*end == ',')) {
        const long long v = strtoll(text, &end, 10);
        if (end == text)
            break;
        values[n++] = v;
    }
    return n;
}

/* name=3, name=0.5, name=[1,2], name='text' */
static void attributes(qsim_builder *b, const char *text) {
    char word[128];
    int64_t values[16];
    while (next_word(&text, word, sizeof(word))) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = 0;
        if (*value == '[')
            qsim_builder_attr_ints(b, word, values, numbers(value + 1, values, 16));
        else if (*value == '\'')
            value[strlen(value) - 1] = 0, qsim_builder_attr_string(b, word, value + 1);
        else if (strchr(value, '.'))
            qsim_builder_attr_float(b, word, strtof(value, NULL));
        else
            qsim_builder_attr_int(b, word, strtoll(value, NULL, 10));
    }
}

static void fill(qsim_tensor *t, int64_t below) {
    uint32_t seed = 88172645u;
    const size_t n = t->bytes * 8 / (size_t)qsim_dtype_bits(t->dtype);
    for (size_t i = 0; t->data && i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        const uint32_t draw = seed >> 8;
        const int64_t whole = (int64_t)(draw % (uint32_t)below);
        switch (t->dtype) {
        case QSIM_FLOAT: ((float *)t->data)[i] = (float)draw / 8388608.0f - 1.0f; break;
        case QSIM_DOUBLE: ((double *)t->data)[i] = draw / 8388608.0 - 1.0; break;
        case QSIM_FLOAT16: ((uint16_t *)t->data)[i] = (uint16_t)(draw % 0x3c00); break;
        case QSIM_INT64: ((int64_t *)t->data)[i] = whole; break;
        case QSIM_INT32: ((int32_t *)t->data)[i] = (int32_t)whole; break;
        default: ((uint8_t *)t->data)[i] = (uint8_t)whole; break;
        }
    }
}

#define INPUTS 12

static float many[(size_t)8 << 20]; /* of constants that are not written out */

/* An input's word: TYPE of what is given to the run, TYPE<N with numbers below N, TYPE=1,2 of a
 * constant, TYPE! of one with random elements; "-": left out. */
static int input(qsim_builder *b, char *word, char *names, int index, int64_t *below) {
    int64_t values[16];
    float floats[16];
    char name[3] = {(char)('a' + index), 0, 0};
    char *constant = strchr(word, '='), *most = strchr(word, '<'), *random = strchr(word, '!');
    strcat(names, index ? "," : "");
    if (*word == '-')
        return 0;
    strcat(names, name);
    *below = most ? strtoll(most + 1, NULL, 10) : 100;
    if (constant)
        *constant = 0;
    if (most)
        *most = 0;
    if (random) {
        *random = 0;
        CHECK_INT(qsim_builder_constant_as(b, name, word, many), QSIM_OK);
        return 0;
    }
    if (!constant)
        return qsim_builder_input_as(b, name, word) == QSIM_OK;
    const size_t n = numbers(constant + 1, values, 16);
    for (size_t i = 0; i < n; i++)
        floats[i] = (float)values[i];
    for (size_t i = 0; i < n && (word[0] == 'u' || strncmp(word, "int8", 4) == 0); i++)
        ((uint8_t *)floats)[i] = (uint8_t)values[i];
    qsim_builder_constant_as(
        b, name, word, *word == 'f' || *word == 'u' || word[3] == '8' ? (void *)floats : values);
    return 0;
}

static qsim_model *build(qsim_ctx *ctx, const stop_case *c, int64_t *below) {
    char word[128], names[64] = "", outputs[32] = "";
    const char *text = c->inputs, *domain = c->domain ? c->domain : "";
    qsim_builder *b = NULL;
    qsim_model *m = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_builder_create(ctx, c->opset ? c->opset : 21, c->op, &b, &e), QSIM_OK);
    if (*domain)
        qsim_builder_import(b, domain, 1);
    for (int i = 0, given = 0; i < INPUTS && next_word(&text, word, sizeof(word)); i++)
        given += input(b, word, names, i, &below[given]);
    const int count = c->outputs ? c->outputs : 1;
    for (int i = 0; i < count; i++)
        sprintf(outputs + strlen(outputs), i ? ",y%d" : "y%d", i);
    qsim_builder_node(b, domain, c->op, "", names, outputs);
    attributes(b, c->attributes ? c->attributes : "");
    for (int i = 0; i < count; i++)
        sprintf(word, "y%d", i), qsim_builder_output_as(b, word, NULL);
    if (qsim_builder_finish(b, &m, &e))
        fprintf(stderr, "%s %s: %s\n", c->op, c->inputs, e.message);
    qsim_builder_free(b);
    return m;
}

/* ---- */

static uint64_t begin_counting(void) {
    checks = gap = 0;
    last = work;
    return work;
}

static void judge_by(uint64_t most, const char *op, const char *inputs, const char *more,
                     uint64_t before) {
    gap = work - last > gap ? work - last : gap;
    if (gap > most || tells)
        fprintf(stderr, "%s %s %s: %llu of work between two of %llu checks, %llu in all\n", op,
                inputs, more, (unsigned long long)gap, (unsigned long long)checks,
                (unsigned long long)(work - before));
    CHECK(gap <= most);
}

static void judge(const char *op, const char *inputs, const char *more, uint64_t before) {
    judge_by(MOST, op, inputs, more, before);
}

/* Executes once more, stopped at half of the checks that it made. */
static void stop_halfway(qsim_run *r, const stop_case *c, const qsim_tensor *x, size_t count) {
    qsim_tensor y[4] = {{0}};
    if (checks < 10) /* most are those of a run's beginning and end */
        return;
    stop_at = checks / 2;
    const uint64_t before = begin_counting();
    const int code = qsim_run_execute(r, x, count, y, (size_t)(c->outputs ? c->outputs : 1), NULL);
    stop_at = 0;
    qsim_ctx_cancel(shared, 0);
    if (code != QSIM_E_CANCELLED)
        fprintf(stderr, "%s: code %d of one that is cancelled\n", c->op, code);
    CHECK_INT(code, QSIM_E_CANCELLED);
    judge(c->op, c->inputs, "stopped", before);
}

/* The session's creation, in which constants are packed or folded, and one execution. */
static void execute(const qsim_model *m, const stop_case *c, const int64_t *below) {
    qsim_session *s = NULL;
    qsim_run *r = NULL;
    qsim_error e = {0};
    qsim_tensor x[INPUTS], y[4] = {{0}};
    const size_t count = (size_t)qsim_model_input_count(m);
    for (size_t i = 0; i < count; i++) {
        qsim_value_info v = {.struct_size = sizeof(v)};
        CHECK_INT(qsim_model_input(m, (int32_t)i, &v), QSIM_OK);
        x[i] = (qsim_tensor){v.dtype, v.rank, v.dims, NULL, 0};
        CHECK_INT(qsim_tensor_size(v.dtype, v.rank, v.dims, NULL, &x[i].bytes), QSIM_OK);
        x[i].data = malloc(x[i].bytes);
        fill(&x[i], below[i]);
    }
    uint64_t before = begin_counting();
    int code = qsim_session_create(m, NULL, &s, &e);
    judge(c->op, c->inputs, "session", before);
    if (!code)
        code = qsim_run_create(s, &r, &e);
    before = begin_counting();
    if (!code)
        code = qsim_run_execute(r, x, count, y, (size_t)(c->outputs ? c->outputs : 1), &e);
    if (code)
        fprintf(stderr, "%s: %s\n", c->op, e.message);
    CHECK_INT(code, QSIM_OK);
    judge(c->op, c->inputs, c->attributes ? c->attributes : "", before);
    if (!code)
        stop_halfway(r, c, x, count);
    for (size_t i = 0; i < count; i++)
        free(x[i].data);
    qsim_run_free(r);
    qsim_session_free(s);
}

/* ---- layers on plain buffers ---- */

typedef struct layer_case {
    const char *name;
    int64_t x[4], w[4], y[4];
    int32_t rank, groups;
} layer_case;

static const layer_case layer_cases[] = {
    {"linear, columns", {1, 1}, {4194304, 1}, {1, 4194304}, 2, 0},
    {"linear, rows", {4194304, 1}, {1, 1}, {4194304, 1}, 2, 0},
    {"linear, terms", {1, 1048576}, {2, 1048576}, {1, 2}, 2, 0},
    {"conv2d", {1, 4, 1024, 1024}, {4, 4, 3, 3}, {1, 4, 1022, 1022}, 4, 1},
    {"conv2d, depthwise", {1, 524288, 1, 1}, {524288, 1, 1, 1}, {1, 524288, 1, 1}, 4, 524288},
};

static void execute_layer(qsim_ctx *ctx, const layer_case *c, int32_t dtype) {
    static const float multiplier = 1.0f / 65536;
    const bool sums = dtype == QSIM_INT32;
    const qsim_op_options o = {.struct_size = sizeof(o),
                               .groups = c->groups,
                               .multiplier = sums ? NULL : &multiplier,
                               .multipliers = sums ? 0 : 1};
    qsim_tensor t[3] = {{QSIM_UINT8, c->rank, c->x, NULL, 0},
                        {QSIM_INT8, c->rank, c->w, NULL, 0},
                        {dtype, c->rank, c->y, NULL, 0}};
    qsim_error e = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_INT(qsim_tensor_size(t[i].dtype, c->rank, t[i].dims, NULL, &t[i].bytes), QSIM_OK);
        t[i].data = malloc(t[i].bytes);
        fill(&t[i], 3);
    }
    const uint64_t before = begin_counting();
    const int code = (c->rank == 2 ? qsim_linear : qsim_conv2d)(ctx, &t[0], &t[1], &o, &t[2], &e);
    if (code)
        fprintf(stderr, "%s: %s\n", c->name, e.message);
    CHECK_INT(code, QSIM_OK);
    judge(c->name, qsim_dtype_name(dtype), "", before);
    for (int i = 0; i < 3; i++)
        free(t[i].data);
}

/* ---- quantization ---- */

#define LAYERS 240
#define WIDE   16

/* Ranges of many tensors by searches over histograms, and the hash of these histograms. */
static void quantize(void) {
    static const int64_t dims[] = {512, WIDE};
    static float values[512 * WIDE];
    const qsim_quantize_options o = {.struct_size = sizeof(o), .method = QSIM_METHOD_MSE};
    qsim_tensor x = {QSIM_FLOAT, 2, dims, values, sizeof(values)};
    qsim_builder *b = NULL;
    qsim_model *m = NULL, *q = NULL;
    qsim_calibration *c = NULL;
    char name[16], inputs[16];
    fill(&x, 100);
    CHECK_INT(qsim_builder_create(shared, 17, "layers", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "y0", "float[N,16]");
    for (int i = 0; i < LAYERS; i++) {
        sprintf(name, "w%d", i), qsim_builder_constant_as(b, name, "float[16,16]", many);
        sprintf(inputs, "y0,w%d", i), sprintf(name, "p%d", i);
        qsim_builder_node(b, "", "MatMul", "", inputs, name);
        sprintf(inputs, "p%d", i), sprintf(name, "y%d", i + 1);
        qsim_builder_node(b, "", "Tanh", "", inputs, name);
        qsim_builder_output_as(b, name, NULL);
    }
    CHECK_INT(qsim_builder_finish(b, &m, NULL), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_calibration_create(m, NULL, &c, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(c, &x, 1, NULL), QSIM_OK);
    uint64_t before = begin_counting();
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_OK);
    judge("qsim_quantize", "mse", "", before);
    qsim_model_free(q);
    stop_at = checks / 2;
    before = begin_counting();
    CHECK_INT(qsim_quantize(m, c, &o, &q, NULL), QSIM_E_CANCELLED);
    stop_at = 0;
    qsim_ctx_cancel(shared, 0);
    judge("qsim_quantize", "mse", "stopped", before);
    qsim_calibration_free(c);
    qsim_model_free(m);
}

/* ---- graphs of many layers ---- */

#define MANY          20000
#define SIDE          4
#define MOST_OF_WALKS 15000000 /* of some walks over 120,000 nodes and 180,000 values */

typedef struct deep {
    qsim_model *model, *quantized;
    qsim_calibration *calibration;
} deep;

static int deep_session(deep *d) {
    qsim_session *s = NULL;
    const int code = qsim_session_create(d->model, NULL, &s, NULL);
    qsim_session_free(s);
    return code;
}

static int deep_integers(deep *d) {
    qsim_session *s = NULL;
    const int code = qsim_session_create(d->quantized, NULL, &s, NULL);
    qsim_session_free(s);
    return code;
}

static int deep_calibration(deep *d) {
    qsim_calibration *c = NULL;
    const int code = qsim_calibration_create(d->model, NULL, &c, NULL);
    qsim_calibration_free(c);
    return code;
}

static int deep_quantize(deep *d) {
    const qsim_quantize_options o = {.struct_size = sizeof(o), .format = QSIM_FORMAT_QOPERATOR};
    qsim_model *q = NULL;
    const int code = qsim_quantize(d->model, d->calibration, &o, &q, NULL);
    qsim_model_free(q);
    return code;
}

static int deep_convert(deep *d) {
    qsim_model *m = NULL;
    const int code = qsim_model_convert_to(d->quantized, QSIM_FORMAT_FLOAT, &m, NULL);
    qsim_model_free(m);
    return code;
}

static int deep_optimize(deep *d) {
    qsim_model *m = NULL;
    const int code = qsim_model_optimize(d->quantized, QSIM_LEVEL_ALL, &m, NULL);
    qsim_model_free(m);
    return code;
}

static int deep_pairs(deep *d) {
    const int32_t count = qsim_model_pairs(d->model, d->quantized, NULL, NULL, NULL);
    return count < 0 ? count : QSIM_OK;
}

/* A chain of convolutions by one, so that what counts is the number of nodes and values. */
static void build_deep(deep *d) {
    static const int64_t dims[] = {1, SIDE, 1, 1};
    static const float one[SIDE * SIDE] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    static float values[SIDE] = {1, -1, 2, -2};
    const qsim_tensor x = {QSIM_FLOAT, 4, dims, values, sizeof(values)};
    qsim_builder *b = NULL;
    char name[16], inputs[40];
    CHECK_INT(qsim_builder_create(shared, 17, "deep", &b, NULL), QSIM_OK);
    qsim_builder_input_as(b, "y0", "float[N,4,1,1]");
    for (int i = 0; i < MANY; i++) {
        sprintf(name, "w%d", i), qsim_builder_constant_as(b, name, "float[4,4,1,1]", one);
        sprintf(inputs, "y%d,w%d", i, i), sprintf(name, "y%d", i + 1);
        qsim_builder_node(b, "", "Conv", "", inputs, name);
    }
    qsim_builder_output_as(b, name, NULL);
    CHECK_INT(qsim_builder_finish(b, &d->model, NULL), QSIM_OK);
    qsim_builder_free(b);
    CHECK_INT(qsim_calibration_create(d->model, NULL, &d->calibration, NULL), QSIM_OK);
    CHECK_INT(qsim_calibration_feed(d->calibration, &x, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_quantize(d->model, d->calibration, NULL, &d->quantized, NULL), QSIM_OK);
}

static void walk_deep(void) {
    static const struct {
        const char *name;
        int (*run)(deep *d);
    } jobs[] = {{"session", deep_session},
                {"session of integers", deep_integers},
                {"calibration", deep_calibration},
                {"quantize", deep_quantize},
                {"convert", deep_convert},
                {"optimize", deep_optimize},
                {"pairs", deep_pairs}};
    deep d = {NULL, NULL, NULL};
    build_deep(&d);
    for (size_t i = 0; i < sizeof(jobs) / sizeof(*jobs); i++) {
        const uint64_t before = begin_counting();
        CHECK_INT(jobs[i].run(&d), QSIM_OK);
        judge_by(MOST_OF_WALKS, "layers", jobs[i].name, "", before);
    }
    qsim_calibration_free(d.calibration);
    qsim_model_free(d.quantized);
    qsim_model_free(d.model);
}

int main(int argc, char **argv) {
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = QSIM_ISA_C};
    const qsim_limits limits = {.struct_size = sizeof(limits), .milliseconds = 1u << 30};
    o.limits = &limits;
    tells = argc > 1;
    CHECK_INT(qsim_ctx_create(&o, &shared, NULL), QSIM_OK);
    qsim_tensor constants = {QSIM_FLOAT, 0, NULL, many, sizeof(many)};
    fill(&constants, 100);
    for (size_t i = 0;
         i < sizeof(layer_cases) / sizeof(*layer_cases) && (argc < 2 || !strcmp(argv[1], "all"));
         i++) {
        execute_layer(shared, &layer_cases[i], QSIM_INT32);
        execute_layer(shared, &layer_cases[i], QSIM_UINT8);
    }
    if (argc < 2 || !strcmp(argv[1], "all") || !strcmp(argv[1], "quantize"))
        quantize();
    if (argc < 2 || !strcmp(argv[1], "all") || !strcmp(argv[1], "layers"))
        walk_deep();
    for (int i = 0; i < stop_case_count; i++) {
        int64_t below[INPUTS];
        if (argc > 1 && strcmp(argv[1], "all") && strcmp(argv[1], stop_cases[i].op))
            continue;
        qsim_model *m = build(shared, &stop_cases[i], below);
        CHECK(m != NULL);
        if (m)
            execute(m, &stop_cases[i], below);
        qsim_model_free(m);
    }
    qsim_ctx_free(shared);
    return test_done();
}
