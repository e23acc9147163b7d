/* SPDX-License-Identifier: MIT */
#include "kernel/ew_loops.h"

QK_EW_INSTANCE(c, )
