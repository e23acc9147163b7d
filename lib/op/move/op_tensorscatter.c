/* SPDX-License-Identifier: MIT */
/*
 * TensorScatter: copies a cache (batch, ..., entries, ...) and writes an update into each batch
 * from entry write_indices[batch] on. An update beyond the last entry is refused or, with mode
 * "circular", continues at the first.
 */
#include "op/rules.h"

static int entries_axis(const qs_infer *x, int32_t *axis) {
    int code = qs_infer_axis(x, qs_node_int(x->node, "axis", -2), x->in[0]->rank, axis);
    if (!code && *axis == 0)
        code = qs_infer_fail(x, QSIM_E_VALUE, "axis 0 counts batches, not entries");
    return code;
}

static int check_update(const qs_infer *x, int32_t axis) {
    const qs_value *v = x->in[0], *update = x->in[1];
    if (update->rank < 0)
        return QSIM_OK;
    bool fits = update->rank == v->rank;
    for (int32_t i = 0; i < v->rank && fits; i++) {
        const int64_t have = v->dims[i].size, with = update->dims[i].size;
        fits = have < 0 || with < 0 || (i == axis ? with <= have : with == have);
    }
    return fits ? QSIM_OK
                : qs_infer_fail(x, QSIM_E_SHAPE, "the update does not fit into the cache");
}

static int infer_tensorscatter(qs_infer *x) {
    const qs_value *v = x->in[0], *at = qs_infer_in(x, 2);
    int32_t axis = 0;
    int code = qs_infer_type(x, 0, QS_T_BYTES);
    if (!code)
        code = qs_infer_same_type(x, 0, 1);
    if (!code && at)
        code = qs_infer_type(x, 2, QS_T(QSIM_INT64));
    if (!code)
        code = qs_infer_word(x, "mode", "linear|circular", &(int32_t){0});
    if (!code && v->rank >= 0)
        code = entries_axis(x, &axis);
    if (!code && v->rank >= 0)
        code = check_update(x, axis);
    if (!code && at && at->rank >= 0 &&
        (at->rank != 1 || (v->rank >= 0 && at->dims[0].size >= 0 && v->dims[0].size >= 0 &&
                           at->dims[0].size != v->dims[0].size)))
        return qs_infer_fail(x, QSIM_E_SHAPE, "there is not one write index for each batch");
    return code ? code : qs_infer_like(x, 0, 0);
}

typedef struct scatter_params {
    size_t batches, rows, entries, update, bytes; /* rows per batch, bytes per entry */
    bool circular, placed;
} scatter_params;

/* Finds the first entry to write; false: the index is out of range. */
static bool first_entry(const scatter_params *p, int64_t given, size_t *first) {
    const int64_t n = (int64_t)p->entries;
    if (p->circular && n > 0)
        given = (given % n + n) % n;
    else if (given < 0 || given > n - (int64_t)p->update)
        return false;
    *first = (size_t)given;
    return true;
}

static void write_batch(const qsim_ctx *ctx, const scatter_params *p, const uint8_t *update,
                        uint8_t *y, size_t first) {
    const size_t rest = p->entries - first, head = p->update < rest ? p->update : rest;
    size_t done = 0;
    for (size_t r = 0; r < p->rows && !qs_stopped_after(ctx, &done, p->update * p->bytes); r++) {
        qs_copy(ctx, y + first * p->bytes, update, head * p->bytes);
        qs_copy(ctx, y, update + head * p->bytes, (p->update - head) * p->bytes);
        y += p->entries * p->bytes;
        update += p->update * p->bytes;
    }
}

static void run_tensorscatter(const qs_step *s, const qs_frame *f) {
    const scatter_params *p = s->params;
    const size_t cache = p->rows * p->entries * p->bytes, fresh = p->rows * p->update * p->bytes;
    const uint8_t *update = qs_step_in(s, f, 1);
    const int64_t *at = p->placed ? qs_step_in(s, f, 2) : NULL;
    uint8_t *y = qs_step_out(s, f, 0);
    const uint8_t *x = qs_step_in(s, f, 0);
    for (size_t b = 0; b < p->batches && cache && !qs_stopped(f->ctx); b++)
        qs_copy(f->ctx, y + b * cache, x + b * cache, cache);
    for (size_t b = 0; b < p->batches && fresh && !qs_stopped_at(f->ctx, b); b++) {
        size_t first = 0;
        if (at && !first_entry(p, at[b], &first)) {
            qs_step_outside(f, "write index", at[b], 0, (int64_t)(p->entries - p->update) + 1, -1);
            return;
        }
        write_batch(f->ctx, p, update + b * fresh, y + b * cache, first);
    }
}

static int lower_tensorscatter(qs_lower *l) {
    const qs_value *v = qs_lower_in(l, 0);
    qs_infer x;
    int32_t axis;
    qs_lower_infer(l, &x);
    int code = entries_axis(&x, &axis);
    if (code)
        return code;
    scatter_params *p = qs_lower_params(l, sizeof(*p));
    if (!p)
        return QSIM_E_NOMEM;
    p->batches = (size_t)v->dims[0].size;
    p->rows = (size_t)qs_dims_product(v->dims, 1, axis);
    p->entries = (size_t)v->dims[axis].size;
    p->update = (size_t)qs_lower_in(l, 1)->dims[axis].size;
    p->bytes = (size_t)qs_dims_product(v->dims, axis + 1, v->rank) * qs_dtype_bytes(v->dtype);
    p->circular = qs_node_string_is(l->node, "mode", "circular", false);
    p->placed = qs_lower_in(l, 2) != NULL;
    l->step->run = run_tensorscatter;
    return QSIM_OK;
}

static const qs_attr_rule scatter_attrs[] = {{"axis", QSIM_ATTR_INT, 24, 0},
                                             {"mode", QSIM_ATTR_STRING, 24, 0}};

QS_OP(tensorscatter, .name = "TensorScatter", .since = 24, .min_in = 2, .max_in = 3,
      QS_ATTRS(scatter_attrs), .traits = QS_READS_EXACTLY, .setting_inputs = 1 << 2,
      .kernel = QS_KERNEL_TENSORSCATTER, .infer = infer_tensorscatter,
      .lower = lower_tensorscatter);
