/* SPDX-License-Identifier: MIT */
/*
 * The AMX kernels with tiles in plain C, for CPUs that have AVX-512 VNNI only. The source is the
 * same, so all is tested but the encoding of instructions, their speed and the system's permission.
 * Where the CPU would raise a fault, the program aborts.
 */
#include "checkkernel.h"

#ifdef QK_AMX
#define QK_TILES_EMULATED
#include <stdlib.h>

#include "kernel/x86/amx_tiles.h"

typedef struct tile {
    uint8_t row[16][64];
} tile;

static _Thread_local struct {
    tile_config c;
    tile t[8];
} tiles;

static void fault_unless(bool ok) {
    if (!ok)
        abort();
}

static void tiles_configure(const tile_config *c) {
    memset(&tiles, 0, sizeof(tiles));
    tiles.c = *c;
    fault_unless(c->palette == 1 && c->start_row == 0);
    for (size_t i = 0; i < sizeof(c->reserved); i++)
        fault_unless(c->reserved[i] == 0);
    for (size_t i = 0; i < 16; i++) {
        fault_unless(c->rows[i] <= (i < 8 ? 16 : 0) && c->bytes[i] <= (i < 8 ? 64 : 0));
        fault_unless((c->rows[i] == 0) == (c->bytes[i] == 0));
    }
}

static void tiles_release(void) {
    fault_unless(tiles.c.palette == 1); /* stricter than the CPU: one release per configuration */
    memset(&tiles, 0, sizeof(tiles));
}

static tile *tile_used(int i) {
    fault_unless(tiles.c.palette == 1 && tiles.c.rows[i] > 0);
    return &tiles.t[i];
}

static void tile_zero(int i) {
    *tile_used(i) = (tile){0};
}

/* Elements beyond a tile's rows and columns are zero. */
static void tile_load(int i, const void *from, int64_t stride) {
    tile *t = tile_used(i);
    memset(t, 0, sizeof(*t));
    for (int64_t r = 0; r < tiles.c.rows[i]; r++)
        memcpy(t->row[r], (const uint8_t *)from + r * stride, tiles.c.bytes[i]);
}

static void tile_store(int i, void *to, int64_t stride) {
    const tile *t = tile_used(i);
    for (int64_t r = 0; r < tiles.c.rows[i]; r++)
        memcpy((uint8_t *)to + r * stride, t->row[r], tiles.c.bytes[i]);
}

static uint32_t dot(const uint8_t *a, const tile *b, int terms, int column) {
    uint32_t sum = 0;
    for (int k = 0; k < terms; k++)
        sum += (uint32_t)(a[k] * (int8_t)b->row[k / 4][4 * column + k % 4]);
    return sum;
}

static void tile_dot(int sums, int a, int b) {
    const tile_config *c = &tiles.c;
    tile *d = tile_used(sums);
    const tile *x = tile_used(a), *w = tile_used(b);
    fault_unless(sums != a && sums != b && a != b && c->rows[sums] == c->rows[a] &&
                 c->bytes[sums] == c->bytes[b] && c->bytes[a] == 4 * c->rows[b] &&
                 c->bytes[b] % 4 == 0);
    for (int r = 0; r < c->rows[sums]; r++)
        for (int column = 0; column < c->bytes[b] / 4; column++) {
            uint32_t sum;
            memcpy(&sum, &d->row[r][4 * column], 4);
            sum += dot(x->row[r], w, c->bytes[a], column);
            memcpy(&d->row[r][4 * column], &sum, 4);
        }
}

#define TILE_CONFIG(c)                   tiles_configure(c)
#define TILE_RELEASE()                   tiles_release()
#define TILE_ZERO(tile)                  tile_zero(tile)
#define TILE_LOAD(tile, from, stride)    tile_load(tile, from, stride)
#define TILE_LOAD_T1(tile, from, stride) tile_load(tile, from, stride)
#define TILE_STORE(tile, to, stride)     tile_store(tile, to, stride)
#define TILE_DOT(sums, a, b)             tile_dot(sums, a, b)

extern const struct qk_i8 ck_i8_amxemulated;
#define TILES_FROM(m) 0
#define TABLE         ck_i8_amxemulated
#include "kernel/x86/i8_amx.h"

const qk_table *ck_table_amxemulated(void) {
    static qk_table table;
    if (!qsim_isa_available(QSIM_ISA_AVX512VNNI))
        return NULL;
    table = *qk_table_get(QSIM_ISA_AVX512VNNI);
    table.i8 = &ck_i8_amxemulated;
    return &table;
}
#else
const qk_table *ck_table_amxemulated(void) {
    return NULL;
}
#endif
