/* SPDX-License-Identifier: MIT */
#include "kernel/u8_loops.h"

QK_U8_INSTANCE(c, , c);
