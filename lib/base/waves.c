/* SPDX-License-Identifier: MIT */
#include "base/waves.h"

size_t qs_wave(size_t items, size_t slices, double ns) {
    const size_t most = (items + slices - 1) / slices;
    const double many = slices > 1 ? QS_WAVE_NS * qs_real(items) / ns : 0.0;
    return slices * (many < qs_real(most) ? qs_whole(many) + 1 : most);
}

/* Rows of all images before row `row` of this one, which is counted from the top of its padding. */
static size_t rows_before(const qs_reach *r, size_t image, size_t row) {
    const size_t inside = row < r->top ? 0 : row - r->top;
    return image * r->h + (inside < r->h ? inside : r->h);
}

void qs_reach_wave(qs_reach *r, size_t image, size_t row, size_t last, size_t end) {
    const size_t read = rows_before(r, image, row * r->step) * r->row;
    const size_t read_end =
        rows_before(r, last, (end - 1) * r->step + r->taps) * r->row + QS_OVER_READ;
    const size_t written = (image * r->oh + row) * r->out;
    const size_t written_end = (last * r->oh + end) * r->out;
    const size_t lead = written_end > read ? written_end - read : 1;
    const size_t lag = read_end > written ? read_end - written : 1;
    r->min_lead = lead > r->min_lead ? lead : r->min_lead;
    r->min_lag = lag > r->min_lag ? lag : r->min_lag;
}
