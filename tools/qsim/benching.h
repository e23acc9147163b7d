/* SPDX-License-Identifier: MIT */
/* Measurements of qsim bench, which times models in turns, and their report. */
#ifndef QSIM_BENCHING_H
#define QSIM_BENCHING_H

#include "engine.h"
#include "inputs.h"
#include "latency.h"
#include "machine_limits.h"
#include "steps.h"

/* The message that a child process sends back. */
typedef struct cold {
    double load_ms, first_ms;
    int64_t peak_bytes;
} cold;

typedef struct subject {
    const char *file;
    engine engine;
    inputs inputs;
    cold cold;
    latency time;
    time_ratio speed; /* the first model's time over this one's */
} subject;

typedef struct bench {
    subject *subjects;
    size_t models;
    size_t warmup;        /* rounds before timing */
    bool steady;          /* the halves of the last rounds agreed */
    bool fixed;           /* --runs: the number of rounds is given, not found */
    double clock_ms;      /* cost of reading the clock */
    isa_counts isas;      /* of all models' steps */
    qsim_machine machine; /* measured where --steps or AMX's tiles call for it, else zeros */
} bench;

/* Load time, first run and peak memory in a process of its own. Prints what is wrong. */
int bench_cold(tool *t, const char *file, cold *c);

void bench_print(const tool *t, const bench *b);
void bench_markdown(const tool *t, const bench *b, text *out);
void bench_csv(const tool *t, const bench *b, text *out);
void bench_print_json(const tool *t, const bench *b);

#endif
