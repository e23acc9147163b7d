/* SPDX-License-Identifier: MIT */
/*
 * worker ENGINE MODEL [threads=N] [batch=N] [side=N] [past=N] [grow=N] [isa=NAME] [library=FILE]
 *        [pause=US]
 *
 * Opens the model, runs it once, prints `ready LOAD_US FIRST_RUN_US PEAK_KB` or `refused TEXT`.
 * Then each line `run N` on its standard input is answered by one line of N times in microseconds;
 * with `pause`, each run comes after so many microseconds of sleep, as in an application that waits
 * for its next input.
 */
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* oneDNN is in a program of its own, so that its memory does not count for other engines. */
#ifdef WITH_ONEDNN
static const worker_engine *const engines[] = {&worker_onednn};
#else
static const worker_engine *const engines[] = {&worker_qsim, &worker_ort};
#endif

static double clock_us(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/*
 * One thread is timed by the processor time of the process, so that a neighbour on the same
 * processor does not count; several by the clock on the wall.
 */
static clockid_t clock_of(const worker_job *job) {
    return job->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
}

static size_t element_bytes(int32_t dtype) {
    switch (dtype) {
    case 2:
    case 3:
    case 9: return 1;
    case 1:
    case 6: return 4;
    case 10: return 2;
    case 7:
    case 11: return 8;
    default: return 0;
    }
}

static void fill(const worker_job *job, worker_tensor *t, size_t count) {
    uint32_t random = 12345;
    for (size_t i = 0; i < count; i++) {
        random = random * 1664525u + 1013904223u;
        uint32_t top = random >> 8;
        switch (t->dtype) {
        case 1: ((float *)t->data)[i] = (float)top / 8388608.0f - 1.0f; break;
        case 11: ((double *)t->data)[i] = (double)top / 8388608.0 - 1.0; break;
        case 6: ((int32_t *)t->data)[i] = (int32_t)(top >> 23); break;
        case 10: ((uint16_t *)t->data)[i] = (uint16_t)((top & 0x8fffu) | 0x3000u); break;
        case 7: ((int64_t *)t->data)[i] = job->past < 0 ? (int64_t)(top >> 23) : 1; break;
        case 9: ((uint8_t *)t->data)[i] = (uint8_t)(top >> 23); break;
        default: ((uint8_t *)t->data)[i] = (uint8_t)(top >> 16); break;
        }
    }
}

/* Microseconds spent on making up inputs, which are subtracted from the time of loading. */
static double made_us;

/* In place of the unknown size of an axis. Caches are [batch, heads, tokens, width]. */
static int64_t size_of(const worker_job *job, const char *name, int32_t rank, int32_t axis) {
    if (axis == 0 || (axis == 1 && rank == 3))
        return job->batch;
    if (job->past < 0)
        return job->side;
    return rank == 4 ? job->past : strstr(name, "mask") ? job->past + job->side : job->side;
}

static size_t count_of(const worker_tensor *t) {
    size_t count = 1;
    for (int32_t i = 0; i < t->rank; i++)
        count *= (size_t)t->dims[i];
    return count;
}

void worker_grow(worker_job *job, worker_tensor *t, size_t count) {
    const int64_t next = job->grown + 1 < job->grow ? job->grown + 1 : 0;
    for (size_t i = 0; i < count; i++) {
        if (t[i].growing < 0)
            continue;
        t[i].dims[t[i].growing] += next - job->grown;
        t[i].bytes = count_of(&t[i]) * element_bytes(t[i].dtype);
    }
    job->grown = next;
}

int worker_make_up(const worker_job *job, const char *name, worker_tensor *t) {
    const double start = clock_us(clock_of(job));
    t->growing = -1;
    for (int32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0) {
            t->dims[i] = size_of(job, name, t->rank, i);
            if (i > 0 && job->past >= 0 && (t->rank == 4 || strstr(name, "mask")))
                t->growing = i;
        }
    const size_t count = count_of(t);
    const size_t more = t->growing < 0 || !job->grow ? 0 : count / (size_t)t->dims[t->growing];
    t->bytes = count * element_bytes(t->dtype);
    t->data = malloc(t->bytes + more * (size_t)job->grow * element_bytes(t->dtype) + 64);
    if (!t->data || element_bytes(t->dtype) == 0)
        return -1;
    fill(job, t, count + more * (size_t)job->grow);
    made_us += clock_us(clock_of(job)) - start;
    return 0;
}

static long number(const char *text, long least, long greatest) {
    char *end = NULL;
    long n = strtol(text, &end, 10);
    return *end || n < least || n > greatest ? -1 : n;
}

static int parse(int argc, char **argv, worker_job *job) {
    for (int i = 3; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return -1;
        *value++ = '\0';
        if (strcmp(argv[i], "threads") == 0)
            job->threads = (int32_t)number(value, 1, 1024);
        else if (strcmp(argv[i], "batch") == 0)
            job->batch = number(value, 1, 1 << 20);
        else if (strcmp(argv[i], "side") == 0)
            job->side = number(value, 1, 1 << 20);
        else if (strcmp(argv[i], "past") == 0)
            job->past = number(value, 0, 1 << 20);
        else if (strcmp(argv[i], "grow") == 0)
            job->grow = number(value, 0, 1 << 20);
        else if (strcmp(argv[i], "pause") == 0)
            job->pause_us = number(value, 0, 1000000);
        else if (strcmp(argv[i], "isa") == 0)
            job->isa = value;
        else if (strcmp(argv[i], "library") == 0)
            job->library = value;
        else
            return -1;
    }
    return job->threads < 1 || job->batch < 1 || job->side < 1 || job->pause_us < 0 ||
                   job->grow < 0 || (job->grow && job->past < 1)
               ? -1
               : 0;
}

static int refused(worker_job *job) {
    for (char *c = job->refusal; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    printf("refused %s\n", job->refusal);
    return 1;
}

/* Short runs are timed several at a time: reading the processor's time costs some 0.2 us. */
static long group_of(double run_us) {
    return run_us < 50 ? (long)(50 / (run_us + 0.05)) + 1 : 1;
}

static void rest(const worker_job *job) {
    const struct timespec t = {job->pause_us / 1000000, job->pause_us % 1000000 * 1000};
    if (job->pause_us)
        nanosleep(&t, NULL);
}

static int answer(const worker_engine *engine, worker_job *job, long runs) {
    const clockid_t clock = clock_of(job);
    double *times = malloc((size_t)runs * sizeof(*times));
    long count = 0, group = 1;
    int code = times ? 0 : -1;
    for (long done = 0; !code && done < runs; done += group, count++) {
        group = count && !job->pause_us ? group_of(times[count - 1]) : 1;
        group = group < runs - done ? group : runs - done;
        rest(job);
        double start = clock_us(clock);
        for (long i = 0; !code && i < group; i++)
            code = engine->run(job);
        times[count] = (clock_us(clock) - start) / (double)group;
    }
    for (long i = 0; !code && i < count; i++)
        printf("%s%.3f", i ? " " : "", times[i]);
    if (!code)
        printf("\n");
    free(times);
    return code;
}

/* Not getrusage, which includes the parent's memory before exec replaced it. */
static long peak_kb(void) {
    char line[128];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kb = strtol(line + 6, NULL, 10);
    if (f)
        fclose(f);
    return kb;
}

static int serve(const worker_engine *engine, worker_job *job) {
    if (engine->prepare && engine->prepare(job))
        return refused(job);
    const clockid_t clock = clock_of(job);
    double start = clock_us(clock);
    if (engine->open(job))
        return refused(job);
    double opened = clock_us(clock);
    if (engine->run(job))
        return refused(job);
    double ran = clock_us(clock);
    printf("ready %.1f %.1f %ld\n", opened - start - made_us, ran - opened, peak_kb());
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        long runs = strncmp(line, "run ", 4) ? -1 : number(line + 4, 1, 1000000);
        if (runs < 0)
            break;
        if (answer(engine, job, runs))
            return refused(job);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv) {
    worker_job job = {.batch = 1, .side = 320, .past = -1, .threads = 1};
    const worker_engine *engine = NULL;
    for (size_t i = 0; argc > 2 && i < sizeof(engines) / sizeof(*engines); i++)
        if (strcmp(argv[1], engines[i]->name) == 0)
            engine = engines[i];
    if (!engine || parse(argc, argv, &job)) {
        fprintf(stderr, "usage: worker ENGINE MODEL [threads=N] [batch=N] [side=N] [past=N] "
                        "[grow=N] [isa=NAME] [library=FILE] [pause=US]\n");
        return 2;
    }
    job.model = argv[2];
    return serve(engine, &job);
}
