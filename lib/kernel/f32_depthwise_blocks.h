/* SPDX-License-Identifier: MIT */
/*
 * The blocks of f32_depthwise.h that pay where there are 32 vector registers: depthwise_f32 for the
 * tables of AVX-512 and of NEON. Before use what f32_tile.h wants.
 */
#ifndef QK_F32_DEPTHWISE_BLOCKS_H
#define QK_F32_DEPTHWISE_BLOCKS_H

#define DW_WIDEST 7
#include "kernel/f32_depthwise.h"

DW_ONE(3, 1, 1)
DW_ONE(3, 1, 2)
DW_ONE(3, 1, 3)
DW_ONE(3, 1, 4)
DW_ONE(3, 1, 5)
DW_ONE(3, 1, 6)
DW_ONE(3, 1, 7)
DW_TWO(3, 1)
DW_TWO(3, 2)
DW_TWO(3, 3)
DW_TWO(3, 4)
DW_TWO(3, 5)
DW_TWO(3, 6)
DW_TWO(3, 7)
DW_ONE(3, 2, 2)
DW_ONE(3, 2, 3)
DW_ONE(3, 2, 4)
DW_ONE(3, 2, 6)
DW_ONE(5, 1, 1)
DW_ONE(5, 1, 2)
DW_ONE(5, 1, 3)
DW_ONE(5, 1, 4)
DW_ONE(5, 1, 6)
DW_TWO(5, 1)
DW_TWO(5, 2)
DW_TWO(5, 3)
DW_TWO(5, 4)
DW_ONE(5, 2, 2)
DW_ONE(5, 2, 3)
DW_ONE(5, 2, 4)

static void depthwise_f32(const qk_depthwise_f32 *d) {
    static const dw_kind kinds[] = {
        {3,
         1,
         {NULL, dw_3_1_1, dw_3_1_2, dw_3_1_3, dw_3_1_4, dw_3_1_5, dw_3_1_6, dw_3_1_7},
         {NULL, dw_3_twice_1, dw_3_twice_2, dw_3_twice_3, dw_3_twice_4, dw_3_twice_5, dw_3_twice_6,
          dw_3_twice_7}},
        {3, 2, {NULL, dw_3_1_1, dw_3_2_2, dw_3_2_3, dw_3_2_4, NULL, dw_3_2_6}, {NULL}},
        {5,
         1,
         {NULL, dw_5_1_1, dw_5_1_2, dw_5_1_3, dw_5_1_4, NULL, dw_5_1_6},
         {NULL, dw_5_twice_1, dw_5_twice_2, dw_5_twice_3, dw_5_twice_4}},
        {5, 2, {NULL, dw_5_1_1, dw_5_2_2, dw_5_2_3, dw_5_2_4}, {NULL}},
    };
    dw_image(d, kinds, QS_COUNT(kinds));
}

#endif
