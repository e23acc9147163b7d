/* SPDX-License-Identifier: MIT */
/*
 * The blocks of f32_depthwise.h that pay with 32 vector registers: depthwise_f32 for the tables of
 * AVX-512 and of NEON. Before including it, define the macros of f32_tile.h.
 */
#ifndef QK_F32_DEPTHWISE_BLOCKS_H
#define QK_F32_DEPTHWISE_BLOCKS_H

#define DW_WIDEST 4
#include "kernel/f32_depthwise.h"
#include "kernel/f32_depthwise_3x3.h"

DW_ONE(5, 1, 3)
DW_ONE(5, 1, 4)
DW_TWO(5, 3)
DW_TWO(5, 4)
DW_ONE(5, 2, 3)
DW_ONE(5, 2, 4)

static void depthwise_f32(const qk_depthwise_f32 *d) {
    static const dw_kind kinds[] = {
        {5, 1, {[3] = dw_5_1_3, dw_5_1_4}, {[3] = dw_5_twice_3, dw_5_twice_4}},
        {5, 2, {[3] = dw_5_2_3, dw_5_2_4}, {NULL}},
    };
    if (is_depthwise_3x3(d))
        depthwise_3x3(d);
    else
        dw_image(d, kinds, QS_COUNT(kinds));
}

#endif
