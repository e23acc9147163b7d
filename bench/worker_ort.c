/* SPDX-License-Identifier: MIT */
/*
 * ONNX Runtime through its C interface, opened at run time, without another language in between.
 * The interface is a table of function pointers whose indices never change; this file names those
 * that it calls. They return a status that is NULL on success, except the functions that release
 * objects and the two that read an error.
 */
#include "worker.h"

#include <dlfcn.h>
#include <stdio.h>

enum {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_INTRA_OP_THREADS = 24,
    SET_INTER_OP_THREADS = 25,
    SESSION_INPUT_COUNT = 30,
    SESSION_OUTPUT_COUNT = 31,
    SESSION_INPUT_TYPE = 33,
    SESSION_INPUT_NAME = 36,
    SESSION_OUTPUT_NAME = 37,
    CREATE_TENSOR_WITH_DATA = 49,
    CAST_TO_TENSOR_INFO = 55,
    ELEMENT_TYPE = 60,
    DIMENSION_COUNT = 61,
    DIMENSIONS = 62,
    CREATE_CPU_MEMORY_INFO = 69,
    DEFAULT_ALLOCATOR = 78,
    RELEASE_VALUE = 96,
    INTERFACE_VERSION = 11,
    ERRORS_ONLY = 3,
};

typedef void (*any_fn)(void);
typedef void *(*take2)(void *, void *);
typedef void *(*take4)(void *, size_t, void *, void *);
typedef struct api_base {
    const any_fn *(*get_api)(uint32_t version);
    const char *(*version)(void);
} api_base;

static struct {
    const any_fn *api;
    void *env, *session, *memory;
    void *values[WORKER_INPUTS];
    const char *input_names[WORKER_INPUTS], *output_names[WORKER_INPUTS];
    worker_tensor made[WORKER_INPUTS];
    size_t input_count, output_count;
} state;

static int failed(worker_job *job, const char *text) {
    snprintf(job->refusal, sizeof(job->refusal), "%s", text);
    return -1;
}

static int check(worker_job *job, void *status) {
    if (!status)
        return 0;
    const char *(*message)(void *) = (const char *(*)(void *))state.api[GET_ERROR_MESSAGE];
    return failed(job, message(status));
}

#define CALL(type, number, ...) check(job, ((type)state.api[number])(__VA_ARGS__))

/* Opens the library and its environment, which all sessions of a process share. */
static int prepare(worker_job *job) {
    void *library = job->library ? dlopen(job->library, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return failed(job, job->library ? dlerror() : "library=FILE is missing");
    union {
        void *pointer;
        const api_base *(*function)(void);
    } symbol = {dlsym(library, "OrtGetApiBase")};
    if (!symbol.pointer)
        return failed(job, "no OrtGetApiBase in the library");
    state.api = symbol.function()->get_api(INTERFACE_VERSION);
    if (!state.api)
        return failed(job, "the library is too old");
    typedef void *(*create_env)(int, const char *, void **);
    return CALL(create_env, CREATE_ENV, ERRORS_ONLY, "bench", &state.env);
}

static int create_session(worker_job *job) {
    typedef void *(*set_int)(void *, int);
    typedef void *(*new_session)(void *, const char *, void *, void **);
    typedef void *(*cpu_memory)(int, int, void **);
    void *options = NULL;
    if (check(job, ((void *(*)(void **))state.api[CREATE_SESSION_OPTIONS])(&options)) ||
        CALL(set_int, SET_INTRA_OP_THREADS, options, (int)job->threads) ||
        CALL(set_int, SET_INTER_OP_THREADS, options, 1) ||
        CALL(new_session, CREATE_SESSION, state.env, job->model, options, &state.session) ||
        CALL(cpu_memory, CREATE_CPU_MEMORY_INFO, 0, 0, &state.memory))
        return -1;
    return CALL(take2, SESSION_INPUT_COUNT, state.session, &state.input_count) ||
           CALL(take2, SESSION_OUTPUT_COUNT, state.session, &state.output_count);
}

static int make_value(worker_job *job, size_t i) {
    typedef void *(*with_data)(void *, void *, size_t, const int64_t *, size_t, int, void **);
    worker_tensor *t = &state.made[i];
    return CALL(with_data, CREATE_TENSOR_WITH_DATA, state.memory, t->data, t->bytes, t->dims,
                (size_t)t->rank, (int)t->dtype, &state.values[i]);
}

static int make_input(worker_job *job, size_t i, void *allocator) {
    typedef void *(*get_dims)(const void *, int64_t *, size_t);
    worker_tensor *t = &state.made[i];
    void *type = NULL;
    const void *info = NULL;
    int dtype = 0;
    size_t rank = 0;
    if (CALL(take4, SESSION_INPUT_NAME, state.session, i, allocator, &state.input_names[i]) ||
        check(job, ((void *(*)(void *, size_t, void **))state.api[SESSION_INPUT_TYPE])(
                       state.session, i, &type)) ||
        CALL(take2, CAST_TO_TENSOR_INFO, type, (void *)&info))
        return -1;
    void *tensor = (void *)(uintptr_t)info;
    if (!tensor || CALL(take2, ELEMENT_TYPE, tensor, &dtype) ||
        CALL(take2, DIMENSION_COUNT, tensor, &rank) || rank > WORKER_RANK ||
        CALL(get_dims, DIMENSIONS, tensor, t->dims, rank))
        return failed(job, "an input is no tensor that can be made up");
    t->dtype = (int32_t)dtype;
    t->rank = (int32_t)rank;
    if (worker_make_up(job, state.input_names[i], t))
        return failed(job, "an input's type cannot be made up");
    return make_value(job, i);
}

static int open_model(worker_job *job) {
    void *allocator = NULL;
    if (create_session(job) ||
        check(job, ((void *(*)(void **))state.api[DEFAULT_ALLOCATOR])(&allocator)))
        return -1;
    if (state.input_count > WORKER_INPUTS || state.output_count > WORKER_INPUTS)
        return failed(job, "too many inputs or outputs");
    for (size_t i = 0; i < state.output_count; i++)
        if (CALL(take4, SESSION_OUTPUT_NAME, state.session, i, allocator, &state.output_names[i]))
            return -1;
    for (size_t i = 0; i < state.input_count; i++)
        if (make_input(job, i, allocator))
            return -1;
    return 0;
}

/* A tensor of ONNX Runtime has its sizes for life. */
static int grow_inputs(worker_job *job) {
    worker_grow(job, state.made, state.input_count);
    for (size_t i = 0; i < state.input_count; i++) {
        if (state.made[i].growing < 0)
            continue;
        ((void (*)(void *))state.api[RELEASE_VALUE])(state.values[i]);
        if (make_value(job, i))
            return -1;
    }
    return 0;
}

static int run_model(worker_job *job) {
    typedef void *(*run)(void *, void *, const char *const *, void *const *, size_t,
                         const char *const *, size_t, void **);
    void *results[WORKER_INPUTS] = {NULL};
    if (job->grow && grow_inputs(job))
        return -1;
    if (CALL(run, RUN, state.session, NULL, state.input_names, state.values, state.input_count,
             state.output_names, state.output_count, results))
        return -1;
    for (size_t i = 0; i < state.output_count; i++)
        ((void (*)(void *))state.api[RELEASE_VALUE])(results[i]);
    return 0;
}

const worker_engine worker_ort = {"ort", prepare, open_model, run_model};
