/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

static const struct qk_table table_c = {.isa = QSIM_ISA_C};

const struct qk_table *qk_table_get(int32_t isa) {
    return isa == QSIM_ISA_C ? &table_c : NULL;
}
