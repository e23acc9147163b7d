/* SPDX-License-Identifier: MIT */
/* Packing of s8 weights for the integer kernels, and the proof that their sums fit int32. */
#include "kernel/i8.h"

#include "base/ctx.h"
#include "kernel/transpose4.h"

int32_t qk_i8_panel(const qk_i8 *t, int32_t left) {
    static const uint8_t widths[8] = {8, 16, 24, 32, 32, 32, 32, 64};
    int32_t width = left > 48 ? 64 : left > 16 ? 32 : 16;
    if (t->tiles)
        return left > 32 ? 64 : 32;
    if (t->small_panels)
        return left > 64 ? 64 : widths[(left - 1) / 8];
    return width < t->widest ? width : t->widest;
}

int32_t qk_i8_panels(const qk_i8 *t, int32_t m, int32_t left) {
    if (m > t->panel_rows)
        return 0;
    if (left <= t->widest) /* saves a division, which takes time in a small product */
        return qk_i8_panel(t, left) == t->widest;
    const int32_t whole = left / t->widest;
    return whole +
           (left > whole * t->widest && qk_i8_panel(t, left - whole * t->widest) == t->widest);
}

/* Positions of n columns: the widths of all their panels. */
static int32_t all_positions(const qk_i8 *t, int32_t n) {
    int32_t total = 0;
    for (int32_t first = 0; first < n; first += qk_i8_panel(t, n - first))
        total += qk_i8_panel(t, n - first);
    return total;
}

int32_t qk_i8_column(const qk_i8 *t, int32_t width, int32_t position) {
    if (width == 24 || width == 8)
        return position;
    int32_t per_vector = 4 * t->lanes, vectors = width / per_vector;
    int32_t v = position / per_vector, rest = position % per_vector;
    return 4 * vectors * (rest / 4) + 4 * v + rest % 4;
}

void qk_i8_spread(const qk_i8 *t, int32_t columns, int32_t n, int32_t period, const void *in,
                  void *out) {
    const uint32_t *from = in;
    uint32_t *to = out;
    for (int32_t first = 0, width; first < columns; first += width) {
        width = qk_i8_panel(t, columns - first);
        for (int32_t p = 0; p < width; p += 4) {
            const int32_t four = first + qk_i8_column(t, width, p);
            for (int32_t c = four; c < four + 4; c++)
                *to++ = c < period && c < n ? from[c] : c < n ? from[c % period] : 0;
        }
    }
}

bool qk_i8_stopped(const qk_source_i8 *s) {
    return s->ctx && qs_stop_code(s->ctx);
}

static int32_t pixels_of(const qk_source_i8 *s) {
    return s->pixels > 1 ? s->pixels : 1;
}

bool qk_i8_form(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column,
                qk_form_i8 *f) {
    size_t k, segs, bytes, more = (size_t)pixels_of(s) - 1;
    if (!qs_mul((size_t)s->c, merged ? (size_t)s->kw : 1, &k) ||
        !qs_mul(more, (size_t)s->shift, &bytes) || !qs_add(k, bytes, &k) || k > INT32_MAX - 64)
        return false;
    if (!qs_mul((size_t)s->kh, merged ? 1 : (size_t)s->kw, &segs) ||
        !qs_mul(segs, s->split ? 2 : 1, &segs) || segs > INT32_MAX)
        return false;
    if (s->whole) {
        if (!qs_mul(k, segs, &k) || k > INT32_MAX - 64)
            return false;
        segs = 1;
    }
    if (s->n > (INT32_MAX - 65) / pixels_of(s))
        return false;
    f->segs = (int32_t)segs;
    f->k = (int32_t)k;
    const int32_t unit = t->tiles ? 64 : t->pairs ? 8 : 4;
    f->k4 = (f->k / unit + (f->k % unit > 0)) * (unit / 4);
    f->n = pixels_of(s) * s->n + (sum_column ? 1 : 0);
    f->positions = all_positions(t, f->n);
    if (!qs_mul(segs, 4 * (size_t)f->k4, &bytes) || !qs_mul(bytes, (size_t)f->positions, &bytes))
        return false;
    f->bytes = bytes;
    return true;
}

/* Weight of column n at byte j of segment seg. */
static int8_t weight_at(const qk_source_i8 *s, bool merged, int32_t n, int32_t seg, int32_t j) {
    const int32_t set = merged ? s->kh : s->kh * s->kw;
    const bool second = seg >= set;
    seg -= second ? set : 0;
    int32_t ky = merged ? seg : seg / s->kw;
    int32_t kx = merged ? j / s->c : seg % s->kw;
    int32_t c = merged ? j % s->c : j;
    uint8_t bits = (uint8_t)s->w[n * s->sn + ky * s->sy + kx * s->sx + c * s->sc];
    return s->split ? qk_i8_part((int8_t)(bits ^ s->flip) - s->zp[n], second)
                    : (int8_t)(bits ^ s->flip);
}

/* Weight of a packed column at byte j: several pixels shift it. */
static int8_t packed_weight(const qk_source_i8 *s, bool merged, int32_t n, int32_t seg, int32_t j) {
    if (s->whole)
        return weight_at(s, merged, n, j / (s->kw * s->c), j % (s->kw * s->c));
    int32_t at = j - n / s->n * s->shift;
    if (pixels_of(s) == 1)
        return weight_at(s, merged, n, seg, j);
    return at >= 0 && at < s->kw * s->c ? weight_at(s, merged, n % s->n, seg, at) : 0;
}

/*
 * The columns of a panel, and the distance at which weights are prefetched: as columns are packed
 * in turn, the hardware does not see what comes next.
 */
typedef struct packed_panel {
    int32_t columns[64], width;
    int64_t ahead; /* bytes; 0: weights were just read */
    bool second;   /* of a split source: the set that is packed */
} packed_panel;

/* Packs any source and form: several pixels, whole kernels, pairs of dwords. */
static void pack_any(const qk_i8 *t, const qk_source_i8 *s, const qk_form_i8 *f, bool merged,
                     const packed_panel *q, int8_t *b) {
    const int32_t unit = t->pairs ? 8 : 4;
    for (int32_t p = 0; p < q->width && !qk_i8_stopped(s); p++) {
        int32_t n = q->columns[p];
        int8_t *to = b + unit * p;
        for (int32_t seg = 0; seg < f->segs; seg++)
            for (int32_t j = 0; j < 4 * f->k4; j++) {
                int8_t w = 0;
                if (j < f->k && n < f->n)
                    w = n < pixels_of(s) * s->n ? packed_weight(s, merged, n, seg, j) : 1;
                size_t at = 4 * (size_t)seg * (size_t)f->k4 + (size_t)(j / unit * unit);
                to[at * (size_t)q->width + (size_t)(j % unit)] = w;
            }
    }
}

/* Bytes of a column packed at a time: the cache lines that they go to stay in the cache. */
#define RUN 64

/* Copies bytes [j, j + count) of one column's segment, which begins at `from`. */
static void gather_run(const qk_source_i8 *s, const int8_t *from, int32_t j, int32_t count,
                       uint8_t *to) {
    if (s->sc == 1 && (j % s->c + count <= s->c || s->sx == s->c)) {
        memcpy(to, from + j / s->c * s->sx + j % s->c, (size_t)count);
    } else {
        for (int32_t i = 0, run; i < count; i += run, j += run) {
            const int8_t *in = from + j / s->c * s->sx + j % s->c * s->sc;
            run = s->c - j % s->c < count - i ? s->c - j % s->c : count - i;
            for (int32_t r = 0; r < run; r++)
                to[i + r] = (uint8_t)in[r * s->sc];
        }
    }
    for (int32_t i = 0; i < count; i++)
        to[i] ^= s->flip;
}

/* Writes the dwords of four columns side by side, `step` bytes from one four to the next. */
static void interleave(const uint8_t *const from[4], int32_t bytes, uint8_t flip, int32_t step,
                       int8_t *to) {
    const uint32_t flips = flip * 0x01010101u;
    for (int32_t i = 0; i < bytes; i += 16, to += 4 * step) {
        uint8_t *const at[4] = {(uint8_t *)to, (uint8_t *)to + step, (uint8_t *)to + 2 * step,
                                (uint8_t *)to + 3 * step};
        qk_transpose_dwords(from, (size_t)i, flips, at);
    }
}

/* Replaces weights of a split source by the part that a set holds. */
static void take_part(int32_t zp, bool second, int32_t count, uint8_t *run) {
    for (int32_t i = 0; i < count; i++)
        run[i] = (uint8_t)qk_i8_part((int8_t)run[i] - zp, second);
}

/* Packs bytes [j, j + count) of a segment of four columns; `together`: those are contiguous. */
QS_COLD static void pack_run(const qk_source_i8 *s, const qk_form_i8 *f, const int8_t *segment,
                             const packed_panel *q, int32_t column, bool together, int32_t j,
                             int32_t count, int8_t *to) {
    const int32_t step = 4 * q->width;
    const uint8_t *from[4];
    uint8_t run[4][RUN] = {{0}}, last[4][16];
    const int32_t whole = together && column + 4 <= s->n ? count / 16 * 16 : 0;
    for (int32_t c = 0; c < 4; c++)
        from[c] = (const uint8_t *)segment + (column + c) * s->sn + j;
    if (whole)
        interleave(from, whole, s->flip, step, to);
    if (whole == count)
        return;
    for (int32_t c = 0; c < 4; c++) {
        if (column + c < s->n)
            gather_run(s, segment + (column + c) * s->sn, j + whole, count - whole, run[c]);
        if (column + c < s->n && s->split)
            take_part(s->zp[column + c], q->second, count, run[c]);
        const bool ones = column + c >= s->n && column + c < f->n;
        for (int32_t i = 0; i < count - whole && ones; i++)
            run[c][i] = 1;
        from[c] = run[c];
    }
    to += whole / 4 * step;
    const int32_t left = (count - whole) / 16 * 16, fours = (count - whole - left + 3) / 4;
    interleave(from, left, 0, step, to);
    uint8_t *const at[4] = {last[0], last[1], last[2], last[3]};
    if (fours)
        qk_transpose_dwords(from, (size_t)left, 0, at);
    for (int32_t i = 0; i < fours; i++)
        memcpy(to + (left / 4 + i) * step, last[i], 16);
}

/* Prefetches four cache lines to be written: memory never touched is in no cache. */
static void fetch_lines(int8_t *to) {
    for (int32_t i = 0; i < 4; i++)
        __builtin_prefetch(to + 64 * i, 1);
}

/* Packs a segment; the bytes of a column are contiguous or in strides. */
static void pack_rows(const qk_source_i8 *s, const qk_form_i8 *f, const int8_t *segment,
                      const packed_panel *q, int8_t *to) {
    const int32_t width = q->width;
    const bool together = s->sc == 1 && (f->k <= s->c || s->sx == s->c) && !s->split;
    for (int32_t j = 0; j < f->k && !qk_i8_stopped(s); j += RUN) {
        int32_t left = f->k - j < RUN ? f->k - j : RUN;
        for (int32_t p = 0; p < width; p += 4) {
            fetch_lines(to + (RUN + p) * width);
            for (int32_t c = 0; c < 4 && q->ahead; c++)
                __builtin_prefetch(segment + (q->columns[p] + c) * s->sn + q->ahead + j);
            pack_run(s, f, segment, q, q->columns[p], together, j, left, to + 4 * p);
        }
        to += (left + 3) / 4 * 4 * width;
    }
}

/* The most taps of kernels whose channels are transposed 16 at a time. */
#define MOST_TAPS 64

/* The address of the dword of a tap and channel in the panel at b. */
static int8_t *tap_place(const qk_source_i8 *s, const qk_form_i8 *f, bool merged, int32_t tap,
                         int32_t c, int32_t width, int8_t *b) {
    const int32_t seg = merged ? tap / s->kw : tap;
    const int32_t j = merged ? tap % s->kw * s->c + c : c;
    return b + ((size_t)seg * (size_t)f->k4 + (size_t)(j / 4)) * 4 * (size_t)width;
}

/* Packs all taps of 16 channels from c on, of four columns; a channel's taps are adjacent. */
QS_COLD static void transpose_taps(const qk_source_i8 *s, const qk_form_i8 *f, bool merged,
                                   int32_t column, int32_t c, const packed_panel *q, int8_t *b) {
    const size_t taps = (size_t)s->kh * (size_t)s->kw;
    uint8_t transposed[4][16 * MOST_TAPS], between[16 * MOST_TAPS];
    const uint8_t *from[4];
    for (int32_t i = 0; i < 4; i++) {
        const uint8_t *in = (const uint8_t *)s->w + (column + i) * s->sn + c * s->sc;
        for (size_t l = 0; l < 16 * taps && q->ahead; l += 64)
            __builtin_prefetch(in + q->ahead + (int64_t)l);
        qk_zip_bytes(in, taps, between);
        qk_zip_bytes(between, taps, transposed[i]);
        qk_zip_bytes(transposed[i], taps, between);
        qk_zip_bytes(between, taps, transposed[i]);
        from[i] = transposed[i];
    }
    for (int32_t tap = 0; tap < (int32_t)taps; tap++) {
        interleave(from, 16, s->flip, 4 * q->width, tap_place(s, f, merged, tap, c, q->width, b));
        for (int32_t i = 0; i < 4; i++)
            from[i] += 16;
    }
}

#ifdef QK_SHUFFLES
/* The same for a 3 x 3 kernel, the usual one. */
static void transpose_nine(const qk_source_i8 *s, const qk_form_i8 *f, bool merged, int32_t column,
                           int32_t c, const packed_panel *q, int8_t *b) {
    const uint8_t *from[4];
    const size_t row = 4 * (size_t)q->width, segment = (size_t)f->k4 * row;
    const size_t across = merged ? (size_t)s->c / 4 * row : segment;
    const size_t down = merged ? segment : 3 * segment;
    uint8_t *to = (uint8_t *)b + (size_t)c / 4 * row;
    for (int32_t i = 0; i < 4; i++) {
        from[i] = (const uint8_t *)s->w + (column + i) * s->sn + c * s->sc;
        for (int32_t l = 0; l < 9 * 16 && q->ahead; l += 64)
            __builtin_prefetch(from[i] + q->ahead + l);
    }
    for (int32_t n = 0; n < 4; n++, to += row) {
        qk_transpose_nine(from, s->flip * 0x01010101u, to, across, down);
        for (int32_t i = 0; i < 4; i++)
            from[i] += 36;
    }
}
#endif

/* Packs channels in strides: a few channels at a time, all of whose taps stay in the cache. */
static void pack_taps(const qk_source_i8 *s, const qk_form_i8 *f, bool merged,
                      const packed_panel *q, int8_t *b) {
    const int32_t taps = s->kh * s->kw;
    const bool together =
        s->sc == taps && (s->kw == 1 || s->sx == 1) && (s->kh == 1 || s->sy == s->kw);
    for (int32_t c = 0; c < s->c && !qk_i8_stopped(s); c += 16)
        for (int32_t p = 0; p < q->width; p += 4) {
            const int32_t count = s->c - c < 16 ? s->c - c : 16;
#ifdef QK_SHUFFLES
            if (together && s->kh == 3 && s->kw == 3 && count == 16 && q->columns[p] + 4 <= s->n) {
                transpose_nine(s, f, merged, q->columns[p], c, q, b + 4 * p);
                continue;
            }
#endif
            if (together && taps <= MOST_TAPS && count == 16 && q->columns[p] + 4 <= s->n) {
                transpose_taps(s, f, merged, q->columns[p], c, q, b + 4 * p);
                continue;
            }
            for (int32_t tap = 0; tap < taps; tap++) {
                const int8_t *from =
                    s->w + tap / s->kw * s->sy + (merged ? 0 : tap % s->kw * s->sx);
                pack_run(s, f, from, q, q->columns[p], false, merged ? tap % s->kw * s->c + c : c,
                         count, tap_place(s, f, merged, tap, c, q->width, b) + 4 * p);
            }
        }
}

/* A panel whose columns are adjacent in memory. */
typedef struct side_panel {
    int32_t first, width;
    int32_t place[16]; /* bytes: place of each four columns in a row of dwords */
} side_panel;

/* Finds the four rows of dword `four` of the panel's columns; incomplete rows go to `spare`. */
static void side_rows(const qk_source_i8 *s, const qk_form_i8 *f, const side_panel *p,
                      const int8_t *segment, int32_t four, uint8_t spare[4][64],
                      const uint8_t *rows[4]) {
    const int32_t left = s->n - p->first, used = left < p->width ? left : p->width;
    const bool direct = used == p->width && p->width % 16 == 0;
    for (int32_t i = 0, j = 4 * four; i < 4; i++, j++) {
        const int8_t *row = segment + j / s->c * s->sx + j % s->c * s->sc + p->first;
        rows[i] = spare[i];
        if (j < f->k && direct) {
            rows[i] = (const uint8_t *)row;
            __builtin_prefetch(row + 128);
            continue;
        }
        memset(spare[i], s->flip, 64);
        if (j < f->k)
            memcpy(spare[i], row, (size_t)used);
        if (j < f->k && p->first + used < f->n && used < p->width)
            spare[i][used] = 1 ^ s->flip;
    }
}

/* Packs dwords [four, end) of a segment of a row-major matrix. */
static void pack_columns(const qk_source_i8 *s, const qk_form_i8 *f, const side_panel *p,
                         const int8_t *segment, int32_t four, int32_t end, int8_t *to) {
    uint8_t spare[4][64], none[16];
    for (; four < end; four++, to += 4 * p->width) {
        const uint8_t *rows[4];
        side_rows(s, f, p, segment, four, spare, rows);
        for (int32_t g = 0; g < p->width / 4; g += 4) {
            uint8_t *const at[4] = {
                (uint8_t *)to + p->place[g],
                g + 1 < p->width / 4 ? (uint8_t *)to + p->place[g + 1] : none,
                g + 2 < p->width / 4 ? (uint8_t *)to + p->place[g + 2] : none,
                g + 3 < p->width / 4 ? (uint8_t *)to + p->place[g + 3] : none,
            };
            const uint8_t *const from[4] = {rows[0] + 4 * g, rows[1] + 4 * g, rows[2] + 4 * g,
                                            rows[3] + 4 * g};
            qk_transpose_bytes(from, s->flip, at);
        }
    }
}

/* Dwords that are packed in all panels before the following ones. */
#define DWORDS 8

/* The packing of one group. */
typedef struct packing {
    const qk_i8 *t;
    const qk_source_i8 *s;
    qk_form_i8 f;
    bool merged, matrix;
    int8_t *b;
    int32_t *colsum;
} packing;

/* Reorders every 64 bytes: the even ones before the odd ones. */
static void split_planes(int8_t *b, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) {
        int8_t both[64];
        memcpy(both, b + i, 64);
        for (size_t j = 0; j < 32; j++) {
            b[i + j] = both[2 * j];
            b[i + 32 + j] = both[2 * j + 1];
        }
    }
}

/* Columns from the first one on that the table's kernel packs, of a matrix on the right. */
static int32_t side_columns(const packing *k) {
    const qk_source_i8 *s = k->s;
    const bool whole = k->f.segs == 1 && k->f.k == s->c && k->f.k % 4 == 0;
    return k->t->pack_side && k->matrix && whole ? s->n / 64 * 64 : 0;
}

static void pack_sides(const packing *k, int32_t columns) {
    const qk_source_i8 *s = k->s;
    const int32_t fours = k->f.k / 4, step = columns > 256 ? DWORDS : fours;
    int32_t place[16];
    for (int32_t i = 0; i < 16; i++)
        place[i] = qk_i8_column(k->t, 64, 4 * i);
    if (k->colsum)
        memset(k->colsum, 0, (size_t)columns * sizeof(*k->colsum));
    for (int32_t at = 0; at < fours && !qk_i8_stopped(s); at += step)
        for (int32_t first = 0; first < columns; first += 64) {
            int32_t sums[64] = {0}, *all = k->colsum ? k->colsum + first : NULL;
            const int32_t count = fours - at < step ? fours - at : step;
            int8_t *to = k->b + 4 * (size_t)k->f.k4 * (size_t)first + 256 * (size_t)at;
            k->t->pack_side(s->w + first + 4 * at * s->sc, s->sc, count, s->flip, to, sums);
            for (int32_t p = 0; p < 64 && all; p++)
                all[place[p / 4] + p % 4] += sums[p];
            if (at + count == fours)
                memset(to + 256 * count, 0, 256 * (size_t)(k->f.k4 - fours));
        }
}

/* Packs a row-major matrix from column `side` on, in the order of its memory, for all panels in
 * turn. */
static void pack_matrix(const packing *k, int32_t side) {
    const qk_i8 *t = k->t;
    const qk_source_i8 *s = k->s;
    const qk_form_i8 *f = &k->f;
    const size_t depth = 4 * (size_t)f->segs * (size_t)f->k4;
    side_panel p = {0};
    for (int32_t at = 0, end; at < f->segs * f->k4; at += end - at % f->k4) {
        const int32_t seg = at / f->k4, four = at % f->k4;
        end = f->k4 - four < DWORDS ? f->k4 : four + DWORDS;
        const int8_t *from =
            s->w + (k->merged ? seg * s->sy : seg / s->kw * s->sy + seg % s->kw * s->sx);
        int8_t *panel = k->b + depth * (size_t)side;
        for (p.first = side; p.first < f->n && !qk_i8_stopped(s); p.first += p.width) {
            const int32_t width = qk_i8_panel(t, f->n - p.first);
            for (int32_t i = 0; i < width && width != p.width; i += 4)
                p.place[qk_i8_column(t, width, i) / 4] = 4 * i;
            p.width = width;
            int8_t *to = panel + 4 * (size_t)at * (size_t)width;
            pack_columns(s, f, &p, from, four, end, to);
            if (t->planes)
                split_planes(to, 4 * (size_t)(end - four) * (size_t)width);
            panel += depth * (size_t)width;
        }
    }
}

/* Clears the dwords after each segment's last one. */
static void clear_padding(const qk_form_i8 *f, int32_t width, int8_t *b) {
    const size_t dword = 4 * (size_t)width, used = (size_t)(f->k + 3) / 4, all = (size_t)f->k4;
    for (int32_t seg = 0; seg < f->segs && used < all; seg++, b += all * dword)
        memset(b + used * dword, 0, (all - used) * dword);
}

static void pack_panel(const qk_i8 *t, const qk_source_i8 *s, const qk_form_i8 *f, bool merged,
                       packed_panel *q, int8_t *b) {
    const int32_t set = s->split ? f->segs / 2 : f->segs;
    if (pixels_of(s) > 1 || s->whole || t->pairs) {
        pack_any(t, s, f, merged, q, b);
        return;
    }
    clear_padding(f, q->width, b);
    if (s->sc > 1 && s->c % 4 == 0 && s->kh * s->kw > 1 && !s->split) {
        pack_taps(s, f, merged, q, b);
        return;
    }
    for (int32_t i = 0; i < f->segs; i++, b += (size_t)f->k4 * 4 * (size_t)q->width) {
        const int32_t seg = i % set;
        const int8_t *from =
            s->w + (merged ? seg * s->sy : seg / s->kw * s->sy + seg % s->kw * s->sx);
        q->second = i >= set;
        pack_rows(s, f, from, q, b);
    }
}

/* Sums each panel's columns first, which reads the weights in memory order. */
static void pack_panels(const packing *k) {
    const qk_source_i8 *s = k->s;
    const size_t depth = 4 * (size_t)k->f.segs * (size_t)k->f.k4;
    for (int32_t first = 0, width; first < k->f.n; first += width) {
        width = qk_i8_panel(k->t, k->f.n - first);
        if (k->colsum && pixels_of(s) == 1)
            qk_i8_column_sums(s, first, first + width < s->n ? first + width : s->n, k->colsum);
        int8_t *to = k->b + depth * (size_t)first;
        packed_panel q = {.width = width, .ahead = k->colsum ? 0 : width * s->sn};
        for (int32_t p = 0; p < width; p++) /* four at a time are consecutive */
            q.columns[p] = first + qk_i8_column(k->t, width, p);
        pack_panel(k->t, s, &k->f, k->merged, &q, to);
        if (k->t->planes)
            split_planes(to, depth * (size_t)width);
    }
}

void qk_i8_pack(const qk_i8 *t, const qk_source_i8 *s, bool merged, bool sum_column, int8_t *b,
                int32_t *colsum) {
    packing k = {.t = t, .s = s, .merged = merged, .b = b, .colsum = colsum};
    if (!qk_i8_form(t, s, merged, sum_column, &k.f))
        return;
    k.matrix = s->sn == 1 && s->n > 1 && pixels_of(s) == 1 && !s->whole && !s->split && !t->pairs;
    const int32_t side = side_columns(&k);
    if (side)
        pack_sides(&k, side);
    if (k.matrix)
        pack_matrix(&k, side);
    else
        pack_panels(&k);
    if (colsum && (k.matrix || pixels_of(s) > 1))
        qk_i8_column_sums(s, side, s->n, colsum);
    for (int32_t n = 0; n < s->n && colsum && s->split; n++)
        colsum[n] -= s->kh * s->kw * s->c * s->zp[n];
}
