/* SPDX-License-Identifier: MIT */
/* The machine's limits: the best of many runs of the loops of peaks.h on all threads. */
#include "kernel/context.h"
#include "kernel/peaks.h"
#include "kernel/table.h"

#include <qsim/profile.h>

/* Time for one limit: long enough to reach the clock rate that the CPU keeps. */
#define MEASURE_NS 40000000u
/* Time for one round: long against starting the threads. */
#define ROUND_NS 500000u

#if !QK_X86
qk_peak qk_peak_int8(int32_t isa) {
    (void)isa;
    return (qk_peak){NULL, 0};
}

qk_peak qk_peak_float(int32_t isa) {
    (void)isa;
    return (qk_peak){NULL, 0};
}

qk_peak qk_peak_tiles(void) {
    return (qk_peak){NULL, 0};
}

qk_read_fn qk_peak_read(void) {
    return NULL;
}

bool qk_two_ports(void) {
    return false;
}
#endif

/* The measurement of one limit: `turns` turns of `loop` or `read` on each thread. */
typedef struct trial {
    void (*loop)(int64_t turns);
    qk_read_fn read;
    const uint8_t *memory;
    size_t bytes; /* memory per thread */
    int64_t turns;
} trial;

static void work(void *arg, size_t index) {
    const trial *t = arg;
    if (t->loop)
        t->loop(t->turns);
    for (int64_t i = 0; !t->loop && i < t->turns; i++)
        t->read(t->memory + index * t->bytes, t->bytes);
}

static uint64_t time_round(const qsim_ctx *ctx, trial *t) {
    uint64_t start = qs_clock_ns();
    qs_parallel(ctx, (size_t)ctx->threads, work, t);
    return qs_clock_ns() - start;
}

/* The shortest of three rounds: other programs lengthen a round that does almost nothing. */
static uint64_t time_rounds(const qsim_ctx *ctx, trial *t) {
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        const uint64_t ns = time_round(ctx, t);
        least = ns < least ? ns : least;
    }
    return least;
}

/* The best rate, in turns of all threads per nanosecond. */
static double best_rate(const qsim_ctx *ctx, trial *t) {
    const uint64_t start = qs_clock_ns();
    double best = 0;
    int rounds = 0;
    t->turns = 1;
    while (time_rounds(ctx, t) < ROUND_NS && t->turns < INT64_MAX / 4)
        t->turns *= 2;
    do {
        const double ns = (double)time_round(ctx, t) + 1;
        const double rate = (double)t->turns * ctx->threads / ns;
        best = rate > best ? rate : best;
    } while (!qs_stopped(ctx) && (qs_clock_ns() - start < MEASURE_NS || ++rounds < 6));
    return best;
}

static double measure_peak(const qsim_ctx *ctx, qk_peak peak) {
    trial t = {.loop = peak.loop};
    return peak.loop ? peak.macs * best_rate(ctx, &t) : 0;
}

static int measure_memory(qsim_ctx *ctx, qsim_machine *m, qsim_error *error) {
    /*
     * Bytes per thread: well inside each level of cache of today's CPUs; the last one, memory, for
     * all threads.
     */
    static const size_t sizes[QSIM_MEMORY_LEVELS] = {16 << 10, 192 << 10, 3 << 20, 0};
    const size_t share = ((size_t)64 << 20) / (size_t)ctx->threads;
    const size_t last = (share < sizes[2] * 2 ? sizes[2] * 2 : share) / 512 * 512;
    trial t = {.read = qk_peak_read()};
    size_t total;
    if (!t.read)
        return QSIM_OK;
    uint8_t *memory = qs_mul(last, (size_t)ctx->threads, &total) ? qs_alloc(ctx, total, 1) : NULL;
    if (!memory)
        return qs_fail(error, QSIM_E_NOMEM, "machine: out of memory for measuring its bandwidth");
    memset(memory, 1, total);
    t.memory = memory;
    for (int i = 0; i < QSIM_MEMORY_LEVELS; i++) {
        t.bytes = sizes[i] ? sizes[i] : last;
        m->read_bytes[i] = (int64_t)(t.bytes * (size_t)ctx->threads);
        m->read_gbs[i] = (double)t.bytes * best_rate(ctx, &t);
    }
    /* A level is never slower than the next one, unless other programs ran meanwhile. */
    for (int i = QSIM_MEMORY_LEVELS - 2; i >= 0; i--)
        if (m->read_gbs[i] < m->read_gbs[i + 1])
            m->read_gbs[i] = m->read_gbs[i + 1];
    qs_free(ctx, memory);
    return QSIM_OK;
}

int qsim_machine_measure(qsim_ctx *ctx, qsim_machine *out, qsim_error *error) {
    qsim_machine own = {0};
    qs_error_clear(error);
    if (!out || out->struct_size < sizeof(out->struct_size))
        return qs_fail(error, QSIM_E_ARGUMENT, "machine: no place for the result");
    int code = qs_ctx_hold(ctx, &ctx, error);
    if (code)
        return code;
    own.threads = ctx->threads;
    own.int8_gmacs = measure_peak(ctx, qk_peak_int8(ctx->isa));
    own.float_gmacs = measure_peak(ctx, qk_peak_float(ctx->isa));
    own.tile_gmacs = ctx->isa == QSIM_ISA_AMX ? measure_peak(ctx, qk_peak_tiles()) : 0;
    code = measure_memory(ctx, &own, error);
    if (!code)
        code = qs_go_on(ctx, "machine", error);
    qs_ctx_drop(ctx);
    return code ? code : qs_give(out, &own, sizeof(own));
}
