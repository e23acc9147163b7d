/* SPDX-License-Identifier: MIT */
/* Vectors of 16 floats (AVX-512) for the templates of float kernels. */
#ifndef QK_F32_ZMM_H
#define QK_F32_ZMM_H

#include <immintrin.h>

#include "kernel/f32.h"

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define VEC    __m512
#define LANES  16

#define LOAD(p)      _mm512_loadu_ps(p)
#define STORE(p, v)  _mm512_storeu_ps(p, v)
#define SET1(x)      _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define ADD(a, b)    _mm512_add_ps(a, b)
/* maxps gives its second operand when one is NaN. */
#define MAX(a, b)            _mm512_max_ps(a, b)
#define MIN(a, b)            _mm512_min_ps(a, b)
#define STORE_FIRST(p, v, n) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1u), v)

/* f32_two_ports_avx512.c */
void qk_gemm_f32_two_ports(const qk_gemm_f32 *g);

#endif
