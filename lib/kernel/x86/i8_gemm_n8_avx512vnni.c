/* SPDX-License-Identifier: MIT */
/*
 * INT8 products, AVX-512 VNNI, panels of 8 columns, compiled for speed: each row of a tile needs a
 * register for its pointer, which gcc, compiling for size, would load again for each dword.
 */
#include "kernel/i8.h"

#ifdef QK_AVX512VNNI
#include "kernel/x86/i8_gemm_tile_avx512.h"

#define FINISH_ANY_8(NR) FINISH_##NR##x8
TILE(8, 8, INLINE)

TARGET int32_t qk_rows_8_avx512vnni(const qk_gemm_u8s8 *g, sink *s, kind how, gatherer *ahead) {
    return whole_tiles(tile_8x8, 8, 8, g, s, how, ahead);
}
#endif
