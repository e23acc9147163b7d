/* SPDX-License-Identifier: MIT */
/* Memory whose touch cancels: what a call does after that can be told without a clock. */
#ifndef TOUCH_TRAP_H
#define TOUCH_TRAP_H

#include <qsim/qsim.h>

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "test.h"

#define PAGE 65536 /* a multiple of the system's page */

/* Memory whose first touch cancels the context, unless NULL, and whose second touch, if it has one,
 * is recorded. */
static struct {
    qsim_ctx *ctx;
    uint8_t *page, *last;
    atomic_bool touched, last_touched; /* lock-free: written in a signal handler */
} trap;

static void on_touch(int number, siginfo_t *info, void *unused) {
    const uint8_t *at = info->si_addr;
    (void)number;
    (void)unused;
    if (trap.page && at >= trap.page && at < trap.page + PAGE) {
        mprotect(trap.page, PAGE, PROT_READ | PROT_WRITE);
        qsim_ctx_cancel(trap.ctx, 1);
        atomic_store(&trap.touched, true);
    } else if (trap.last && at >= trap.last && at < trap.last + PAGE) {
        mprotect(trap.last, PAGE, PROT_READ | PROT_WRITE);
        atomic_store(&trap.last_touched, true);
    } else {
        signal(SIGSEGV, SIG_DFL);
    }
}

static void set_trap(qsim_ctx *ctx, uint8_t *page, uint8_t *last) {
    const struct sigaction action = {.sa_sigaction = on_touch, .sa_flags = SA_SIGINFO};
    trap.ctx = ctx;
    trap.page = page;
    trap.last = last;
    atomic_store(&trap.touched, false);
    atomic_store(&trap.last_touched, false);
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    CHECK(mprotect(page, PAGE, PROT_NONE) == 0);
    CHECK(!last || mprotect(last, PAGE, PROT_NONE) == 0);
}

static uint8_t *pages(size_t bytes) {
    uint8_t *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    CHECK(p != NULL);
    return p;
}

#endif
