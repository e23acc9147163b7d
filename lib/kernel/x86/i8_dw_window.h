/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution on the image itself by the kernels of dw_choices. Included last, after them
 * (i8_dw_rows.h).
 */
#ifndef QK_I8_DW_WINDOW_H
#define QK_I8_DW_WINDOW_H

#include "kernel/x86/i8_dw_rows.h"

TARGET static void window_u8s8(const qk_window_u8s8 *d) {
    static const dw_kernels kernels = {dw_choices, W_BYTES, W_GROUP};
    const epilogue e = epilogue_of(&d->o);
    qk_window_split(d, &kernels, &e);
}

#endif
