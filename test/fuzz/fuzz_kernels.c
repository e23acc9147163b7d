/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as the choices of a kernel's check: case, instruction set, sizes and
 * values. The kernel gives the C kernel's results, and touches no other memory.
 */
#include <string.h>

#include "kernel/checkkernel.h"

#include "fuzz.h"

static const struct {
    const ck_case *cases;
    const size_t *count;
} families[] = {{ck_cases_i8, &ck_cases_i8_count},    {ck_cases_conv_i8, &ck_cases_conv_i8_count},
                {ck_cases_f32, &ck_cases_f32_count},  {ck_cases_ew, &ck_cases_ew_count},
                {ck_cases_u8, &ck_cases_u8_count},    {ck_cases_nbits, &ck_cases_nbits_count},
                {ck_cases_pool, &ck_cases_pool_count}};

/* The table of an instruction set, or that of C if this CPU lacks it. */
static const qk_table *table(int32_t isa, bool two_ports) {
    if (isa >= QS_ISA_COUNT || !qsim_isa_available(isa) || !qs_cpu_take_isa(isa))
        isa = QSIM_ISA_C;
    return two_ports && qk_table_two_ports(isa) ? qk_table_two_ports(isa) : qk_table_get(isa);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_bytes b = {data, size};
    const size_t family = fuzz_below(&b, QS_COUNT(families));
    const ck_case *k = &families[family].cases[fuzz_below(&b, *families[family].count)];
    const int32_t isa = 1 + (int32_t)fuzz_below(&b, 8);
    ck_state s = {.c = qk_table_get(QSIM_ISA_C), .t = table(isa, fuzz_byte(&b) % 2), .random = 1};
    s.isa = qsim_isa_name(isa);
    s.name = k->name;
    s.choices = b.data;
    s.left = b.left;
    k->check(&s);
    ck_free(&s);
    if (s.failures)
        abort();
    return 0;
}

/* One case per family. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    if (index >= QS_COUNT(families) || capacity < 64)
        return 0;
    for (size_t i = 0; i < 64; i++)
        buffer[i] = (uint8_t)(i * 37 + index);
    buffer[0] = (uint8_t)(index % QS_COUNT(families));
    buffer[1] = (uint8_t)index;
    buffer[2] = (uint8_t)(3 + index);
    return 64;
}
