/* SPDX-License-Identifier: MIT */
/*
 * Element-wise kernels in vectors of 8 floats for all instruction sets. Where memory is the limit,
 * half a cache line at a time is as fast as a copy, a whole line at a time reaches 50 to 95 % of
 * that. Sums are limited by the latency of additions, whatever the width.
 */
#ifndef QK_EW_X86_H
#define QK_EW_X86_H

#include "kernel/ew.h"

void qk_map_avx2(qk_curve f, const float *param, const float *x, float *y, size_t n);
void qk_cast_avx2(qk_cast how, const void *x, void *y, size_t n);
void qk_divide_avx2(const float *x, float d, float *y, size_t n);
void qk_subtract_avx2(const float *x, float a, float b, float *y, size_t n);
void qk_normalize_avx2(const qk_norm *how, const float *x, float *y, size_t n, size_t rows);
void qk_bound_avx2(const float *a, const float *b, float lo, float hi, float *y, size_t n);
void qk_muladd_avx2(const float *x, const float *f, const float *b, float lo, float hi, float *y,
                    size_t n);
void qk_scale_avx2(const void *x, const qk_scale *how, float *y, size_t n);
size_t qk_add_sums_avx2(double *high, double *low, const double *x, size_t count);
uint16_t qk_add_table_avx2(uint16_t *restrict into, const uint16_t *restrict from, size_t n);
float qk_sum_avx2(const float *x, float unused, size_t n);
float qk_sum_squares_avx2(const float *x, float shift, size_t n);

#endif
