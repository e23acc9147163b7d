/* SPDX-License-Identifier: MIT */
#include "kernel/table.h"

#include "kernel/i8.h"

static const qk_table tables[] = {
    {.isa = QSIM_ISA_C, .i8 = &qk_i8_c},
};

const struct qk_table *qk_table_get(int32_t isa) {
    for (size_t i = 0; i < QS_COUNT(tables); i++)
        if (tables[i].isa == isa)
            return &tables[i];
    return NULL;
}
