/* SPDX-License-Identifier: MIT */
/* INT8 products, AMX. */
#include "kernel/i8.h"

#ifdef QK_AMX
#define TABLE qk_i8_amx
#include "kernel/x86/i8_amx.h"
#endif
