/* SPDX-License-Identifier: MIT */
/*
 * Tiles (QSIM_ISA_AMX): selected where the system reports them; a process that is refused them
 * gets the next instruction set, and gets tiles once the reason is gone. Which products are packed
 * for tiles.
 */
#define _GNU_SOURCE /* sigaltstack */
#include "base/ctx.h"
#include "kernel/i8.h"
#include "kernel/table.h"
#include "op/int8/conv_i8.h"
#include "test.h"

#include <signal.h>

#if defined(QK_AMX) && defined(__linux__)
/* Linux lists the features of CPU and kernel: an answer independent of the library's CPUID. */
static bool system_says(const char *flag) {
    static char line[16384];
    bool found = false;
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && !found && fgets(line, sizeof(line), f))
        found = strncmp(line, "flags", 5) == 0 && strstr(line, flag);
    if (f)
        fclose(f);
    return found;
}
#endif

static int32_t isa_of(int32_t wanted, int *code) {
    const qsim_ctx_options o = {.struct_size = sizeof(o), .threads = 1, .isa = wanted};
    qsim_ctx *c = NULL;
    *code = qsim_ctx_create(&o, &c, NULL);
    const int32_t isa = qsim_ctx_isa(c);
    qsim_ctx_free(c);
    return isa;
}

static void test_found(void) {
#if defined(QK_AMX) && defined(__linux__)
    const bool tiles = system_says(" amx_int8") && system_says(" amx_tile");
    CHECK_INT(qsim_isa_available(QSIM_ISA_AMX), tiles && system_says(" avx512_vnni"));
#elif !defined(QK_AMX)
    CHECK_INT(qsim_isa_available(QSIM_ISA_AMX), 0);
#endif
}

/* A signal frame with tiles exceeds an alternate stack of the minimum size: tiles are refused. */
static void test_refused(void) {
    static char small[2048];
    stack_t stack = {.ss_sp = small, .ss_size = sizeof(small)}, none = {.ss_flags = SS_DISABLE};
    int code;
    if (!qsim_isa_available(QSIM_ISA_AMX) || sigaltstack(&stack, NULL))
        return;
    const int32_t isa = isa_of(QSIM_ISA_AUTO, &code);
    CHECK_INT(code, QSIM_OK);
    CHECK_INT(isa, QSIM_ISA_AVX512VNNI);
    isa_of(QSIM_ISA_AMX, &code);
    CHECK_INT(code, QSIM_E_UNSUPPORTED);
    CHECK_INT(sigaltstack(&none, NULL), 0);
    CHECK_INT(isa_of(QSIM_ISA_AUTO, &code), QSIM_ISA_AMX);
    CHECK_INT(isa_of(QSIM_ISA_AVX512VNNI, &code), QSIM_ISA_AVX512VNNI);
}

#ifdef QK_AMX
/* Whether a product of these rows, terms and columns is packed for tiles. */
static bool takes_tiles(int64_t rows, int32_t terms, int32_t columns) {
    qs_conv_i8_weights w = {
        .groups = 1, .n = columns, .kh = 1, .kw = 1, .c = terms, .rows = rows, .contiguous = true};
    CHECK(qs_conv_i8_weights_layout(&qk_i8_amx, &w));
    CHECK(w.t == &qk_i8_amx || w.t == qk_i8_amx.below);
    CHECK_INT(w.form.k4 % (w.t->tiles ? 16 : 1), 0);
    return w.t->tiles;
}

/* Packing for tiles needs no CPU with tiles. */
static void test_rule(void) {
    CHECK(takes_tiles(64, 64, 64)); /* 2^18 multiplications */
    CHECK(!takes_tiles(63, 64, 64));
    CHECK(takes_tiles(1, 4096, 64));  /* for few rows the kernel decides when it runs */
    CHECK(takes_tiles(0, 64, 64));    /* also for an unknown number of rows */
    CHECK(takes_tiles(3136, 32, 64)); /* half of each tile is padding: as fast as vectors */
    CHECK(!takes_tiles(3136, 28, 64));
    CHECK(!takes_tiles(0, 28, 64));
    CHECK(takes_tiles(3136, 48, 32));
    CHECK(!takes_tiles(3136, 44, 32));
    CHECK(!takes_tiles(3136, 64, 16)); /* three quarters of a pair of tiles are padding */
    qs_conv_i8_weights depthwise = {.groups = 256,
                                    .n = 1,
                                    .kh = 3,
                                    .kw = 3,
                                    .c = 1,
                                    .stride_h = 1,
                                    .stride_w = 1,
                                    .rows = 3136};
    CHECK(qs_conv_i8_weights_layout(&qk_i8_amx, &depthwise));
    CHECK(depthwise.t == qk_i8_amx.below);
}
#endif

int main(void) {
#ifdef QK_AMX
    test_rule();
#endif
    test_found();
    test_refused();
    return test_done();
}
