/* SPDX-License-Identifier: MIT */
#include "kernel/ew_loops.h"
#include "kernel/table.h"

QK_EW_INSTANCE(c, )

#if QK_X86
QK_EW_INSTANCE(cfma, __attribute__((target("fma"))))
#endif
