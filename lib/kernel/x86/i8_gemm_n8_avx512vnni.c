/* SPDX-License-Identifier: MIT */
/*
 * Integer products with 8 columns: all rows of a tile need a register for their pointer, and small
 * code would load them again for each dword.
 */
#include "kernel/i8.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/i8_gemm_tile_avx512.h"

#define FINISH_ANY_8(NR) FINISH_##NR##x8
TILE(8, 8, INLINE)
WHOLE_TILES(8, 8)

TARGET int32_t qk_rows_8_avx512vnni(const qk_gemm_u8s8 *g, sink *s, kind how, gatherer *ahead) {
    return rows_8x8(g, s, how, ahead);
}
#endif
