/* SPDX-License-Identifier: MIT */
/* The kernel table: function pointers of one instruction set. */
#ifndef QK_TABLE_H
#define QK_TABLE_H

#include "base/base.h"

struct qk_table {
    int32_t isa;
};

/* The kernels for QSIM_ISA_*; NULL if this build has none. Static, immutable. */
const struct qk_table *qk_table_get(int32_t isa);

#endif
