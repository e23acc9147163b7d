/* SPDX-License-Identifier: MIT */
/* The specification of the kernels on bytes. */
#include "kernel/u8_loops.h"

QK_U8_INSTANCE(c, , c);
