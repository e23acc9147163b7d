/* SPDX-License-Identifier: MIT */
/* Timing of steps, profiles, and the machine's limits. */
#include "net.h"

#include <qsim/profile.h>

/* y = relu(x w + x) * -1, of which the session makes three steps; all shapes are open. */
static void make(net *n, qsim_run **r) {
    qsim_session *s = NULL;
    net_begin(n, NULL, 13);
    net_input(n, "x", QSIM_FLOAT, NET_DIMS(-1, 3));
    net_random(n, "w", NET_DIMS(3, 3), 1, 1);
    net_node(n, "", "MatMul", "x,w", "m");
    const qs_id soft = net_node(n, "", "Softmax", "m", "p");
    n->g->nodes[soft].name = ""; /* goes by its output's name */
    net_node(n, "", "Neg", "p", "y");
    net_output(n, "y");
    NET_OK(n, net_end(n));
    NET_OK(n, qsim_session_create(n->model, NULL, &s, &n->error));
    NET_OK(n, qsim_run_create(s, r, &n->error));
    qsim_session_free(s);
}

static int execute(qsim_run *r, int64_t rows) {
    static float x[30];
    const int64_t dims[] = {rows, 3};
    qsim_tensor out = {0}, in = net_tensor(QSIM_FLOAT, 2, dims, x);
    return qsim_run_execute(r, &in, 1, &out, 1, NULL);
}

/* ---- steps ---- */

static void steps(void) {
    net n;
    qsim_run *r;
    uint64_t last = 0;
    int64_t dims[QSIM_MAX_RANK];
    qsim_tensor t;
    make(&n, &r);
    CHECK_INT(qsim_run_step_count(r), 0);
    CHECK_INT(qsim_run_step_tensor(r, 0, 0, dims, &t), QSIM_E_ARGUMENT);
    qsim_run_set_timing(r, 1);
    CHECK_INT(execute(r, 5), 0);
    CHECK_INT(qsim_run_step_count(r), 3);
    for (int32_t i = 0; i < 3; i++) {
        qsim_step_info s = {.struct_size = sizeof(s)};
        CHECK_INT(qsim_run_step(r, i, &s), 0);
        CHECK_STR(s.node, i == 0 ? "m" : i == 1 ? "p" : "y");
        CHECK(s.start_ns >= last);
        last = s.start_ns + s.nanoseconds;
        CHECK_INT(s.bytes_written, 5 * 3 * 4);
        CHECK_INT(s.bytes_read, 5 * 3 * 4 + (i == 0 ? 9 * 4 : 0));
        CHECK_INT(s.macs, i == 0 ? 45 : 0);
        CHECK_INT(s.output_count, 1);
        CHECK_INT(qsim_run_step_tensor(r, i, s.input_count, dims, &t), 0);
        CHECK_INT(t.dtype, QSIM_FLOAT);
        CHECK_INT(t.rank, 2);
        CHECK_INT(t.dims[0], 5);
        CHECK_INT(t.dims[1], 3);
        CHECK_INT(t.bytes, 60);
        CHECK_INT(qsim_run_step_tensor(r, i, s.input_count + 1, dims, &t), QSIM_E_ARGUMENT);
    }
    CHECK_INT(qsim_run_step_tensor(r, 0, 1, dims, &t), 0);
    CHECK_INT(t.dims[0], 3); /* w */
    CHECK_INT(qsim_run_step_tensor(r, 0, -1, dims, &t), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_run_step_tensor(r, 0, 0, NULL, &t), QSIM_E_ARGUMENT);
    qsim_run_free(r);
    net_free(&n);
}

/* ---- events ---- */

typedef struct log {
    qsim_profile_event events[64];
    int32_t count;
    qsim_run *cancel; /* to be cancelled by the next event */
} event_log;

static void on_event(void *user, const qsim_profile_event *e) {
    event_log *l = user;
    if (l->count < 64)
        l->events[l->count++] = *e;
    if (l->cancel)
        qsim_run_cancel(l->cancel);
    l->cancel = NULL;
}

static void events(void) {
    net n;
    qsim_run *r;
    event_log l = {.count = 0};
    make(&n, &r);
    CHECK_INT(qsim_run_profile_begin(NULL, on_event, &l), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_run_profile_begin(r, NULL, &l), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_run_profile_end(r), QSIM_E_STATE);
    CHECK_INT(qsim_run_profile_begin(r, on_event, &l), 0);
    CHECK_INT(qsim_run_profile_begin(r, on_event, &l), QSIM_E_STATE);
    for (int64_t rows = 1; rows <= 2; rows++)
        CHECK_INT(execute(r, rows), 0);
    CHECK_INT(execute(r, -1), QSIM_E_SHAPE); /* the execution never began: no event is sent */
    CHECK_INT(l.count, 8);
    for (int32_t i = 0; i < l.count; i++) {
        const qsim_profile_event *e = &l.events[i], *all = &l.events[i / 4 * 4];
        CHECK_INT(e->struct_size, sizeof(*e));
        CHECK_INT(e->execution, i / 4);
        CHECK_INT(e->step, i % 4 - 1);
        CHECK(e->start_ns >= all->start_ns);
        /* A step's times are converted from ticks separately: equal within rounding. */
        CHECK(e->start_ns + e->duration_ns <= all->start_ns + all->duration_ns + 8);
    }
    CHECK(l.events[4].start_ns >= l.events[0].start_ns + l.events[0].duration_ns);
    CHECK_INT(qsim_run_profile_end(r), 2);
    CHECK_INT(execute(r, 1), 0);
    CHECK_INT(l.count, 8);
    qsim_run_free(r);
    net_free(&n);
}

/* A cancelled run sends its events: here only that of the run. */
static void cancelled(void) {
    net n;
    qsim_run *r;
    event_log l = {.count = 0};
    make(&n, &r);
    CHECK_INT(qsim_run_profile_begin(r, on_event, &l), 0);
    l.cancel = r;
    CHECK_INT(execute(r, 2), 0);
    CHECK_INT(l.count, 4);
    CHECK_INT(execute(r, 2), QSIM_E_CANCELLED);
    CHECK_INT(l.count, 5);
    CHECK_INT(l.events[4].step, -1);
    CHECK_INT(execute(r, 2), 0);
    CHECK_INT(qsim_run_profile_end(r), 3);
    qsim_run_free(r);
    net_free(&n);
}

/* ---- machine ---- */

/* Are limits of products known for an instruction set? */
static bool has_limits(int32_t isa) {
    return isa == QSIM_ISA_AVX2 || isa == QSIM_ISA_AVXVNNI || isa == QSIM_ISA_AVX512VNNI ||
           isa == QSIM_ISA_AMX;
}

/* The first call is for C. */
static void machine_of(int32_t isa) {
    static bool memory_known;
    qsim_machine m = {.struct_size = sizeof(m)};
    qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 2, .isa = isa};
    qsim_ctx *ctx;
    qsim_error e;
    CHECK_INT(qsim_ctx_create(&o, &ctx, &e), 0);
    CHECK_INT(qsim_machine_measure(ctx, &m, &e), 0);
    CHECK_INT(m.threads, 2);
    CHECK_INT(m.int8_gmacs > 0, has_limits(isa));
    CHECK_INT(m.float_gmacs > 0, has_limits(isa));
    CHECK_INT(m.tile_gmacs > 0, isa == QSIM_ISA_AMX);
    if (isa == QSIM_ISA_C)
        memory_known = m.read_gbs[0] > 0;
    /* A build without kernels for AVX2 has the loop that reads, too. */
    CHECK(memory_known || !qsim_isa_available(QSIM_ISA_AVX2));
    for (int i = 0; i < QSIM_MEMORY_LEVELS; i++) {
        /* What memory gives is known with all instruction sets of a CPU, or with none. */
        CHECK((m.read_gbs[i] > 0) == memory_known);
        CHECK(i == 0 || m.read_bytes[i] >= m.read_bytes[i - 1]);
        CHECK(i == 0 || m.read_gbs[i] <= m.read_gbs[i - 1]);
    }
    qsim_ctx_free(ctx);
}

static void machine(void) {
    qsim_machine none = {0};
    qsim_error e;
    CHECK_INT(qsim_machine_measure(NULL, &none, &e), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_machine_measure(NULL, NULL, &e), QSIM_E_ARGUMENT);
    for (int32_t isa = QSIM_ISA_C; qsim_isa_name(isa); isa++)
        if (qsim_isa_available(isa))
            machine_of(isa);
}

int main(void) {
    steps();
    events();
    cancelled();
    machine();
    return test_done();
}
