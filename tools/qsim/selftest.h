/* SPDX-License-Identifier: MIT */
/* qsim selftest: one model with every instruction set and other numbers of threads, bit for bit. */
#ifndef QSIM_SELFTEST_H
#define QSIM_SELFTEST_H

#include "common/tool.h"

/* Kernels and threads whose results are compared with those of plain C on one thread. */
typedef struct selftest_way {
    qsim_ctx *ctx;
    int32_t isa, threads;
    int64_t tensors, different; /* that were compared, and that differ */
} selftest_way;

typedef struct selftest {
    const tool *t;
    qsim_ctx *plain; /* of the reference */
    selftest_way *ways;
    size_t way_count;
    int64_t models;
    text fault; /* the first difference, a sentence; empty: there is none */
} selftest;

/*
 * Makes the contexts: each instruction set of this CPU or the one of --isa, on one thread and on
 * those of -T, two at least if -T is not 1. Zeroes `s` first; it may be closed either way.
 */
int selftest_open(const tool *t, selftest *s);
void selftest_close(selftest *s);

/*
 * Executes a model, twice in each way, and compares its outputs and, in a session of its own, where
 * no tensor is fused away, the results of all nodes. `name`: of the model, for messages.
 */
int selftest_model(selftest *s, const char *name, const qsim_model *m, const qsim_tensor *inputs,
                   size_t count);

/* The network that a seed draws. */
typedef struct selftest_network {
    qsim_model *model;
    qsim_tensor input;
    int64_t dims[4];
    float *numbers;
} selftest_network;

/* A few layers and what networks have between them, in t->ctx. `n` may be freed either way. */
int selftest_draw(const tool *t, uint64_t seed, selftest_network *n);
void selftest_network_free(selftest_network *n);

/* Tests the network of a seed in floats and in each quantized form; plain C calibrates it. */
int selftest_network_forms(selftest *s, uint64_t seed);

#endif
