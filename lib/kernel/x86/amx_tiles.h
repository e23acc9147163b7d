/* SPDX-License-Identifier: MIT */
/*
 * The tile instructions of AMX, which test/kernel emulates in C. In assembly, as gcc 12's
 * intrinsics name as inputs only 8 of a configuration's 64 bytes and none that tileloadd reads: the
 * compiler could drop stores before them or move them after them. Tiles are named by literal
 * numbers.
 */
#ifndef QK_AMX_TILES_H
#define QK_AMX_TILES_H

#include "base/base.h"

/* The operand of ldtilecfg: rows of each tile, and their bytes. */
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_config;

_Static_assert(sizeof(tile_config) == 64, "as the instruction reads it");

#ifndef QK_TILES_EMULATED
#define TILE_CONFIG(c)  __asm__ volatile("ldtilecfg %0" : : "m"(*(c)))
#define TILE_RELEASE()  __asm__ volatile("tilerelease" : : : "memory")
#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)
/* Loads rows of a tile, `stride` bytes apart; T1: a hint to keep them in the second-level cache. */
#define TILE_LOAD(tile, from, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(stride))                                           \
                     : "memory")
#define TILE_LOAD_T1(tile, from, stride)                                                           \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile                                          \
                     :                                                                             \
                     : "r"(from), "r"((int64_t)(stride))                                           \
                     : "memory")
#define TILE_STORE(tile, to, stride)                                                               \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"(to), "r"((int64_t)(stride))                                             \
                     : "memory")
/* sums += a x b: u8 rows, s8 columns, four of each in a dword; sums wrap */
#define TILE_DOT(sums, a, b) __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #sums : :)
#endif

#endif
