/* SPDX-License-Identifier: MIT */
/*
 * worker: runs one model on one engine in its own process, on command, and prints the time of each
 * run. benchlib.py alternates between the workers of several engines.
 */
#ifndef BENCH_WORKER_H
#define BENCH_WORKER_H

#include <stddef.h>
#include <stdint.h>

#define WORKER_INPUTS 32
#define WORKER_RANK   8

typedef struct worker_job {
    const char *model;
    const char *library; /* ONNX Runtime's shared library */
    const char *isa;     /* of ours; NULL: the best */
    int64_t batch;       /* in place of an unknown first size, or second of three (states) */
    int64_t side;        /* in place of the other unknown sizes */
    int64_t past;  /* tokens in a language model's caches, `side` new ones; -1: no such model */
    int64_t grow;  /* so many runs have one token more in their caches each, then again; or 0 */
    int64_t grown; /* tokens that the caches have more than `past` now */
    long pause_us; /* before each run */
    int32_t threads;
    char refusal[512]; /* why opening or running failed */
} worker_job;

/* A made-up input. */
typedef struct worker_tensor {
    int64_t dims[WORKER_RANK];
    void *data;
    size_t bytes;
    int32_t dtype; /* ONNX TensorProto number, which is ONNX Runtime's too */
    int32_t rank;
    int32_t growing; /* the axis of the tokens in the caches; -1: none */
} worker_tensor;

typedef struct worker_engine {
    const char *name;
    int (*prepare)(worker_job *job); /* set-up of the process, not timed; may be NULL */
    int (*open)(worker_job *job);    /* 0, or -1 with job->refusal set; as the other two */
    int (*run)(worker_job *job);
} worker_engine;

extern const worker_engine worker_qsim, worker_ort, worker_onednn;

/*
 * Puts sizes in place of the unknown (negative) ones of input `t` and fills it: floats in [-1, 1),
 * bytes of any value, wider integers 0 or 1, always the same. Integers of a language model are 1: a
 * token, a place, and a mask that hides nothing. The memory lives as long as the process. -1 if it
 * cannot make up numbers of this type.
 */
int worker_make_up(const worker_job *job, const char *name, worker_tensor *t);
/* Before a run: the caches have one token more, or `past` of them again. */
void worker_grow(worker_job *job, worker_tensor *t, size_t count);

#endif
