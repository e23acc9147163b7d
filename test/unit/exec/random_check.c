/* SPDX-License-Identifier: MIT */
#include "random_check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const rc_form_names[FORMS] = {"floats",  "static",  "qoperator",
                                          "dynamic", "weights", "pairs"};

/* ---- contexts: every instruction set with 1, 2 and 3 threads, memory filled and counted ---- */

typedef struct world {
    qsim_ctx *ctx;
    qsim_allocator allocator;
    size_t allocations;
    int32_t isa, threads;
    uint8_t fill;
} world;

#define MOST_ISAS 16
static world worlds[MOST_ISAS * 3];
static size_t world_count;
static rc_found found;

static void expect(bool good, const char *what) {
    found.checks++;
    if (good)
        return;
    found.failures++;
    fprintf(stderr, "failed: %s\n", what);
}

static void *take(void *user, size_t size, size_t align) {
    world *w = user;
    __atomic_add_fetch(&w->allocations, 1, __ATOMIC_RELAXED);
    size_t whole = (size + align - 1) / align * align;
    void *p = aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, whole ? whole : align);
    if (p)
        memset(p, w->fill, size);
    return p;
}

static void give_back(void *user, void *p, size_t size) {
    (void)user;
    (void)size;
    free(p);
}

void rc_begin(void) {
    static const uint8_t fills[] = {0x00, 0xff, 0x7f, 0x80, 0x3d, 0xc2};
    for (int32_t isa = QSIM_ISA_C; isa <= MOST_ISAS && qsim_isa_name(isa); isa++)
        for (int32_t threads = 1; threads <= 3 && qsim_isa_available(isa); threads++) {
            world *w = &worlds[world_count];
            w->isa = isa;
            w->threads = threads;
            w->fill = fills[world_count++ % sizeof(fills)];
            w->allocator = (qsim_allocator){take, give_back, w};
            qsim_ctx_options o = {.struct_size = sizeof(o),
                                  .allocator = &w->allocator,
                                  .threads = threads,
                                  .isa = isa};
            expect(qsim_ctx_create(&o, &w->ctx, NULL) == 0, "context");
        }
}

/* ---- comparison of results ---- */

static void complain(const rc_subject *s, const world *w, const char *what, const char *detail) {
    found.failures++;
    fprintf(stderr, "seed %d %s, %s with %d threads, %s: %s\n", (int)s->seed,
            rc_form_names[s->form], w ? qsim_isa_name(w->isa) : "?", w ? w->threads : 0, what,
            detail);
}

void rc_drop(rc_result *r) {
    for (int32_t i = 0; i < r->count; i++)
        free(r->t[i].data);
    r->count = 0;
}

static void keep(rc_result *r, const qsim_session *session, const qsim_tensor *t, int32_t count) {
    r->count = count;
    for (int32_t i = 0; i < count; i++) {
        r->t[i] = t[i];
        memcpy(r->dims[i], t[i].dims, (size_t)t[i].rank * sizeof(int64_t));
        r->t[i].dims = r->dims[i];
        r->t[i].data = malloc(t[i].bytes + 1);
        memcpy(r->t[i].data, t[i].data, t[i].bytes);
        snprintf(r->name[i], sizeof(r->name[i]), "%s", qsim_session_output_name(session, i));
    }
}

void rc_fail(const rc_subject *s, const char *what, const char *detail) {
    complain(s, NULL, what, detail);
}

void rc_check(bool good, const rc_subject *s, const char *what, const char *detail) {
    found.checks++;
    if (!good)
        complain(s, NULL, what, detail);
}

/* The largest difference, in parts of the largest value; 0 only where all bits are equal. */
static double apart(const qsim_tensor *a, const qsim_tensor *b) {
    if (a->dtype != b->dtype || a->bytes != b->bytes)
        return INFINITY;
    if (memcmp(a->data, b->data, a->bytes) == 0)
        return 0;
    if (a->dtype != QSIM_FLOAT)
        return INFINITY;
    const float *p = a->data, *q = b->data;
    double largest = 1e-30, most = 1e-30;
    for (size_t i = 0; i < a->bytes / sizeof(float); i++) {
        double d = fabs((double)p[i] - (double)q[i]);
        if (isnan(p[i]) != isnan(q[i]))
            return INFINITY;
        largest = fmax(largest, fabs((double)p[i]));
        most = d > most ? d : most;
    }
    return most / largest;
}

/* The first output of `a` that differs from its namesake in `b` by more than `within`, or -1. */
static int32_t different(const rc_result *a, const rc_result *b, double within, double *how) {
    for (int32_t i = 0; i < a->count; i++)
        for (int32_t k = 0; k < b->count; k++)
            if (strcmp(a->name[i], b->name[k]) == 0 && (*how = apart(&a->t[i], &b->t[k])) > within)
                return i;
    return -1;
}

static bool compare(const rc_subject *s, const world *w, const char *what, const rc_result *a,
                    const rc_result *b, double within) {
    char text[160];
    double how = 0;
    const int32_t i = different(a, b, within, &how);
    found.checks++;
    if (i < 0)
        return true;
    snprintf(text, sizeof(text), "output '%s' of %s differs by %.3g", a->name[i],
             qsim_dtype_name(a->t[i].dtype), how);
    complain(s, w, what, text);
    return false;
}
/* ---- running ---- */

void rc_save(rc_subject *s, const qsim_model *m) {
    expect(qsim_model_save_memory(m, NULL, 0, &s->size, NULL) == 0, "save");
    s->file = malloc(s->size + 1);
    expect(qsim_model_save_memory(m, s->file, s->size, &s->size, NULL) == 0, "save");
}

typedef struct machine {
    qsim_session *session;
    qsim_run *run;
    qsim_tensor y[RC_OUTPUTS];
    int32_t count;
} machine;

static void stop(machine *m) {
    qsim_run_free(m->run);
    qsim_session_free(m->session);
    memset(m, 0, sizeof(*m));
}

static bool start(const rc_subject *s, world *w, int32_t level, const char *const *names,
                  size_t count, machine *m) {
    qsim_error e = {.message = ""};
    qsim_model *model = NULL;
    memset(m, 0, sizeof(*m));
    int code = qsim_model_load_memory(w->ctx, s->file, s->size, NULL, &model, &e);
    qsim_session_options o = {
        .struct_size = sizeof(o), .outputs = names, .output_count = count, .level = level};
    if (!code)
        code = qsim_session_create(model, &o, &m->session, &e);
    if (!code)
        code = qsim_run_create(m->session, &m->run, &e);
    qsim_model_free(model);
    if (code) {
        complain(s, w, "start", e.message);
        stop(m);
        return false;
    }
    m->count = qsim_session_output_count(m->session);
    return true;
}

static bool execute(const rc_subject *s, const world *w, machine *m, const qsim_tensor *x,
                    const char *what) {
    qsim_error e = {.message = ""};
    memset(m->y, 0, sizeof(m->y));
    if (qsim_run_execute(m->run, x, s->input_count, m->y, (size_t)m->count, &e) == 0)
        return true;
    complain(s, w, what, e.message);
    return false;
}

/* The outputs of one execution. */
static bool once(const rc_subject *s, world *w, int32_t level, const char *const *names,
                 size_t count, rc_result *r) {
    machine m;
    r->count = 0;
    if (!start(s, w, level, names, count, &m))
        return false;
    bool good = execute(s, w, &m, s->x, "run");
    if (good)
        keep(r, m.session, m.y, m.count);
    stop(&m);
    return good;
}

static void ignore_event(void *user, const qsim_profile_event *event) {
    (void)user;
    (void)event;
}

/* Executes one run many times: with other data, a profile, outputs in the caller's memory. */
static void again_and_again(const rc_subject *s, world *w, const rc_result *want) {
    static rc_result got;
    machine m;
    qsim_error e = {.message = ""};
    if (!start(s, w, QSIM_LEVEL_ALL, NULL, 0, &m))
        return;
    bool good = execute(s, w, &m, s->x, "first run");
    if (good) {
        keep(&got, m.session, m.y, m.count);
        compare(s, w, "first run", want, &got, 0);
        rc_drop(&got);
    }
    const size_t before = w->allocations;
    good = good && execute(s, w, &m, s->other, "other data");
    good = good && execute(s, w, &m, s->x, "second run");
    if (good && w->allocations != before)
        complain(s, w, "second run", "it allocates");
    if (good) {
        keep(&got, m.session, m.y, m.count);
        compare(s, w, "second run", want, &got, 0);
        qsim_run_profile_begin(m.run, ignore_event, NULL);
        for (int32_t i = 0; i < got.count; i++) /* buffers of exactly the needed size */
            memset(got.t[i].data, 0xa5, got.t[i].bytes);
        for (int32_t i = 0; i < got.count; i++)
            m.y[i] = (qsim_tensor){.data = realloc(got.t[i].data, got.t[i].bytes + !got.t[i].bytes),
                                   .bytes = got.t[i].bytes};
        if (qsim_run_execute(m.run, s->x, s->input_count, m.y, (size_t)m.count, &e))
            complain(s, w, "profile", e.message);
        for (int32_t i = 0; i < got.count; i++)
            got.t[i].data = m.y[i].data;
        compare(s, w, "profile, own memory", want, &got, 0);
        rc_drop(&got);
    }
    stop(&m);
}

/* Sample by sample, in a run that has executed the whole batch. */
static void rows(const rc_subject *s, world *w, const rc_result *want) {
    machine m;
    if (!start(s, w, QSIM_LEVEL_ALL, NULL, 0, &m))
        return;
    bool good = true;
    for (int64_t row = 0; row < s->batch && good; row++) {
        qsim_tensor x[RG_INPUTS];
        int64_t dims[RG_INPUTS][5];
        void *copy[RG_INPUTS] = {NULL};
        if (row == 1)
            good = execute(s, w, &m, s->x, "batch between rows");
        for (size_t i = 0; i < s->input_count; i++) {
            x[i] = s->x[i];
            memcpy(dims[i], s->dims[i], sizeof(dims[i]));
            dims[i][0] = 1;
            x[i].dims = dims[i];
            x[i].bytes /= (size_t)s->batch;
            copy[i] = malloc(x[i].bytes + !x[i].bytes);
            x[i].data =
                memcpy(copy[i], (char *)s->x[i].data + (size_t)row * x[i].bytes, x[i].bytes);
        }
        good = good && execute(s, w, &m, x, "one row");
        for (int32_t i = 0; i < m.count && good; i++) {
            const qsim_tensor *y = &want->t[i];
            size_t bytes = y->bytes / (size_t)s->batch;
            found.checks++;
            if (m.y[i].bytes != bytes ||
                memcmp((char *)y->data + (size_t)row * bytes, m.y[i].data, bytes) != 0) {
                complain(s, w, "one row", want->name[i]);
                good = false;
            }
        }
        for (size_t i = 0; i < s->input_count; i++)
            free(copy[i]);
    }
    stop(&m);
}

/* A batch of 0, before and after a batch: outputs have 0 elements and the other axes' sizes. */
static void nothing(const rc_subject *s, world *w, const rc_result *want) {
    machine m;
    qsim_tensor x[RG_INPUTS];
    int64_t dims[RG_INPUTS][5];
    if (!start(s, w, QSIM_LEVEL_ALL, NULL, 0, &m))
        return;
    for (size_t i = 0; i < s->input_count; i++) {
        x[i] = s->x[i];
        memcpy(dims[i], s->dims[i], sizeof(dims[i]));
        dims[i][0] = 0;
        x[i].dims = dims[i];
        x[i].bytes = 0;
    }
    bool good = execute(s, w, &m, x, "no samples") && execute(s, w, &m, s->x, "batch after none") &&
                execute(s, w, &m, x, "no samples again");
    for (int32_t i = 0; i < m.count && good; i++) {
        const qsim_tensor *y = &m.y[i], *like = &want->t[i];
        found.checks++;
        if (y->bytes != 0 || y->rank != like->rank || y->dims[0] != 0 ||
            memcmp(y->dims + 1, like->dims + 1, (size_t)(y->rank - 1) * sizeof(int64_t)) != 0)
            complain(s, w, "no samples", want->name[i]);
    }
    stop(&m);
}

size_t rc_computed(const rc_subject *s, const char **names, qsim_model **model) {
    size_t count = 0;
    qsim_value_info v = {.struct_size = sizeof(v)};
    expect(qsim_model_load_memory(NULL, s->file, s->size, NULL, model, NULL) == 0, "load");
    for (int32_t i = 0; i < qsim_model_value_count(*model); i++)
        if (qsim_model_value(*model, i, &v) == 0 && !v.data && v.dtype && count < RC_OUTPUTS)
            names[count++] = v.name;
    return count;
}

/*
 * How far the outputs of a float graph move when its inputs move by a rounding error: an output
 * that differs by as much lost its digits in the graph itself, as in x - (x + y).
 */
static bool is_shaky(const rc_subject *s, world *w, const rc_result *want, double how,
                     int32_t output) {
    static rc_result got;
    rc_subject shaken = *s;
    double moved = 0;
    for (size_t i = 0; i < s->input_count; i++) {
        float *x = malloc(s->x[i].bytes + 1);
        memcpy(x, s->x[i].data, s->x[i].bytes);
        for (size_t k = 0; s->x[i].dtype == QSIM_FLOAT && k < s->x[i].bytes / sizeof(float); k++)
            x[k] *= k & 1 ? 1 + 0x1p-22f : 1 - 0x1p-22f;
        shaken.x[i].data = x;
    }
    if (once(&shaken, w, QSIM_LEVEL_DISABLE, NULL, 0, &got) && output < got.count)
        moved = apart(&want->t[output], &got.t[output]);
    rc_drop(&got);
    for (size_t i = 0; i < s->input_count; i++)
        free(shaken.x[i].data);
    found.shaky++;
    return how <= 4 * moved;
}

static void near(const rc_subject *s, world *w, const char *what, const rc_result *want,
                 const rc_result *got) {
    double how = 0;
    const int32_t i = different(want, got, 1e-5, &how);
    found.checks++;
    if (i >= 0 && (s->exact || !is_shaky(s, w, want, how, i)))
        compare(s, w, what, want, got, 1e-5);
}

/* Names of the 8-bit tensors that are computed. */
static size_t integers(const qsim_model *m, const char **names) {
    size_t count = 0;
    qsim_value_info v = {.struct_size = sizeof(v)};
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        if (qsim_model_value(m, i, &v) == 0 && !v.data && count < RC_OUTPUTS &&
            (v.dtype == QSIM_UINT8 || v.dtype == QSIM_INT8))
            names[count++] = v.name;
    return count;
}

/* The file of an optimized model, loaded again. */
static void optimized(const rc_subject *s, world *w, const qsim_model *model, int32_t level,
                      const rc_result *want, const rc_result *all) {
    static rc_result got;
    static const char *names[RC_OUTPUTS];
    rc_subject o = *s;
    qsim_model *made = NULL;
    qsim_error e = {.message = ""};
    if (qsim_model_optimize(model, level, &made, &e)) {
        complain(s, w, "optimize", e.message);
        return;
    }
    rc_save(&o, made);
    if (once(&o, w, QSIM_LEVEL_ALL, NULL, 0, &got))
        near(s, w, "optimized", want, &got);
    rc_drop(&got);
    size_t count = integers(made, names);
    if (s->exact && count && once(&o, w, QSIM_LEVEL_ALL, names, count, &got)) {
        compare(s, w, "optimized, all integers", all, &got, 0);
        rc_drop(&got);
    }
    free(o.file);
    qsim_model_free(made);
}

/* All levels, and all intermediate tensors at the first and last of them. */
static void levels(const rc_subject *s, const rc_result *want) {
    static rc_result got, low, high;
    static const char *names[RC_OUTPUTS];
    world *w = &worlds[world_count - 3]; /* the best instruction set, one thread */
    qsim_model *model = NULL;
    for (int32_t level = QSIM_LEVEL_DISABLE; level < QSIM_LEVEL_ALL; level++) {
        static const char *const what[] = {"", "level disable", "level basic", "level extended"};
        if (once(s, w, level, NULL, 0, &got))
            near(s, w, what[level], want, &got);
        rc_drop(&got);
    }
    size_t count = rc_computed(s, names, &model);
    if (once(s, w, QSIM_LEVEL_ALL, names, count, &high)) {
        near(s, w, "all tensors, level all", want, &high);
        if (once(s, w, QSIM_LEVEL_DISABLE, names, count, &low))
            compare(s, w, "all tensors, level all and disable", &low, &high, 1e-5);
    }
    for (int32_t level = QSIM_LEVEL_BASIC; level <= QSIM_LEVEL_ALL; level++)
        optimized(s, w, model, level, want, &low);
    rc_drop(&low);
    rc_drop(&high);
    qsim_model_free(model);
}

void rc_examine(const rc_subject *s) {
    static rc_result want;
    if (once(s, &worlds[0], QSIM_LEVEL_ALL, NULL, 0, &want)) {
        for (int32_t i = 0; i < want.count; i++)
            if (want.t[i].dtype == QSIM_FLOAT)
                for (size_t k = 0; k < want.t[i].bytes / sizeof(float); k++)
                    if (!isfinite(((float *)want.t[i].data)[k])) {
                        complain(s, &worlds[0], "run", "a value is not finite");
                        k = want.t[i].bytes;
                    }
        for (size_t i = 0; i < world_count; i += 3)
            again_and_again(s, &worlds[i + (s->seed + i / 3) % 3], &want);
        if (s->batch > 1 && !s->fixed && s->form != DYNAMIC)
            rows(s, &worlds[3 * (s->seed % (world_count / 3))], &want);
        if (!s->fixed)
            nothing(s, &worlds[3 * (s->seed % (world_count / 3))], &want);
        levels(s, &want);
    }
    rc_drop(&want);
}

bool rc_tensors(const rc_subject *s, const char *const *names, size_t count, rc_result *r) {
    return once(s, &worlds[world_count - 3], QSIM_LEVEL_DISABLE, names, count, r);
}

rc_found rc_sofar(void) {
    return found;
}

void rc_end(void) {
    for (size_t i = 0; i < world_count; i++)
        qsim_ctx_free(worlds[i].ctx);
}
