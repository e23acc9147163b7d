/* SPDX-License-Identifier: MIT */
/* Plans of operators on quantized integers, for known sizes. */
#include "op/int8/int8_op.h"

#include "base/slices.h"

static const qs_value *role_value(const qs_lower *l, int32_t index) {
    return index < 0 ? NULL : qs_lower_in(l, index);
}

/* Sets the lengths of lists, and the layout of weights that are packed in every run. */
static int make_layout(qs_lower *l, qs_infer *x, qs_i8_plan *p) {
    const qs_i8_roles *r = p->roles;
    const qs_value *w = role_value(l, r->w), *zp = role_value(l, r->w_zp);
    p->x_zps = qs_i8_length(role_value(l, r->x_zp));
    p->x_scales = qs_i8_length(role_value(l, r->x_scale));
    p->w_zps = qs_i8_length(zp);
    p->w_scales = qs_i8_length(role_value(l, r->w_scale));
    p->w_signed = w->dtype == QSIM_INT8;
    p->rows = p->x_zps > 1 || p->x_scales > 1;
    p->conv.w = p->packed ? p->packed->layout : p->shape.w;
    p->wide = p->packed ? p->packed->wide : role_value(l, r->bias) != NULL;
    if (p->packed)
        return QSIM_OK;
    qs_i8_list list = {zp && zp->data ? zp->data->data : NULL, p->w_zps, p->w_signed};
    const bool open = p->wide || (zp && !zp->data), each = open || p->w_zps > 1 || p->rows;
    const bool any = open || qs_i8_any_zero_point(&list, p->w_signed ? 0 : 0x80);
    p->conv.w.zero_points = !any ? QS_ZP_NONE : each ? QS_ZP_COLUMN : QS_ZP_SAME;
    if (!qs_conv_i8_weights_layout(l->ctx->kernels->i8, &p->conv.w) ||
        !qs_i8_weights_bytes(&p->conv.w, &p->weights_bytes))
        return qs_infer_fail(x, QSIM_E_LIMIT, "the weights are too large");
    return QSIM_OK;
}

/* Bounds sums of unknown weights: |x - zp| <= 255, |w| <= 128 (255 with a zero point). */
static int check_worst(qs_infer *x, const qs_i8_plan *p) {
    int64_t k = (int64_t)p->conv.w.kh * p->conv.w.kw * p->conv.w.c;
    if (!p->int32_out && k > INT32_MAX / 255 / (p->conv.w.zero_points == QS_ZP_NONE ? 128 : 255))
        return qs_infer_fail(x, QSIM_E_UNSUPPORTED,
                             "a sum of %lld products may leave int32: not all inputs are constant",
                             (long long)k);
    return QSIM_OK;
}

static int make_scratch(qs_infer *x, qs_i8_plan *p, size_t *scratch) {
    size_t rows = 0, all = p->conv_bytes;
    if (!qs_i8_epilogue_bytes(&p->conv.w, &p->epilogue_bytes) ||
        (p->rows && !qs_mul((size_t)p->conv.g.ho, 8, &rows)) || rows > SIZE_MAX / 4)
        return qs_infer_fail(x, QSIM_E_LIMIT, "an integer product is too large");
    p->row_bytes = p->rows ? 2 * qs_align(rows / 2, 64) : 0;
    if (!qs_add(all, p->weights_bytes, &all) || !qs_add(all, p->epilogue_bytes, &all) ||
        !qs_add(all, p->row_bytes, &all) || all > SIZE_MAX / 2 ||
        !qs_mul(qs_align(all, 64), (size_t)p->tasks, scratch))
        return qs_infer_fail(x, QSIM_E_LIMIT, "an integer product is too large");
    p->task_bytes = qs_align(all, 64);
    return QSIM_OK;
}

static int lower_check(qs_lower *l, qs_infer *x, const qs_i8_plan *p) {
    const qs_value *y = qs_lower_out(l, 0);
    if (role_value(l, p->roles->x)->dtype != QSIM_UINT8)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "executed on unsigned activations only");
    bool sums = p->roles->y_scale < 0 && y->dtype == QSIM_FLOAT; /* which op_scaled_int8.c scales */
    if (y->dtype != QSIM_UINT8 && y->dtype != QSIM_INT32 && !sums)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "executed with unsigned results only");
    return QSIM_OK;
}

/* Chooses floats or sums as results of ConvInteger and MatMulInteger. */
static void choose_floats(qs_i8_plan *p) {
    qs_i8_floats *how = &p->floats;
    how->direct = p->packed && p->packed->columns && p->batches == 1 && !p->rows;
    if (!how->direct)
        return;
    p->conv.after = how->after;
    p->conv.after_in_place = how->after != NULL;
    p->conv.g.y_channels = how->into;
    p->conv.g.y_column = how->column;
}

int qs_i8_lower(qs_lower *l, qs_i8_plan *p) {
    qs_infer x;
    qs_lower_infer(l, &x);
    int code = lower_check(l, &x, p);
    if (code)
        return code;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(qs_lower_out(l, 0)) == 0)
        return QSIM_OK;
    p->packed = l->packed;
    p->input_count = l->node->input_count;
    p->int32_out = p->roles->y_scale < 0;
    p->lo = qs_i8_bound(l->node, "lo", 0);
    p->hi = qs_i8_bound(l->node, "hi", 255);
    code = make_layout(l, &x, p);
    if (code)
        return code;
    choose_floats(p);
    const bool alone = p->batches == 1 && !p->floats.direct && !p->floats.integers;
    const bool prepared = p->prepared = alone && p->packed && p->packed->complete;
    if (!prepared && (code = check_worst(&x, p)))
        return code;
    const double ns = qs_conv_i8_ns(&p->conv);
    const size_t slices = qs_slice_count(l->ctx, SIZE_MAX, ns);
    p->tasks = (int32_t)qs_slice_count(l->ctx, (size_t)p->batches, (double)p->batches * ns);
    p->post = prepared ? p->packed->epilogue.post : (qs_conv_i8_post){0};
    bool post =
        prepared ? p->packed->epilogue.use_post : p->conv.w.zero_points == QS_ZP_COLUMN || p->rows;
    p->conv.post = post ? &p->post : NULL;
    int32_t *offset = qs_arena_alloc(l->arena, qs_conv_i8_offsets(&p->conv.w), sizeof(*offset));
    if (!offset)
        return qs_infer_fail(&x, QSIM_E_NOMEM, "out of memory");
    if (!qs_conv_i8_make_plan(&p->conv, p->tasks > 1 ? 1 : (int32_t)slices, offset, &p->conv_bytes))
        return qs_infer_fail(&x, QSIM_E_LIMIT, "an integer product is too large");
    l->step->macs = qs_conv_i8_macs(&p->conv) * p->batches;
    if (qs_conv_i8_is_depthwise(&p->conv.w))
        l->step->kernel = "depthwise int8";
    l->step->tiles = qs_conv_i8_by_tiles(&p->conv);
    l->step->scratch = p->conv_bytes;
    l->step->run = qs_i8_run_prepared;
    if (prepared) {
        p->conv.b = p->packed->weights.b;
        p->conv.o = p->packed->epilogue.o;
        p->conv.w_zp = p->packed->weights.row_zp;
        p->conv.x_zp = (uint8_t)p->post.zp;
        if (p->roles->x == 0 && !p->int32_out && p->conv.p.column_tasks == 1) {
            l->step->min_lead = p->conv.p.min_lead;
            l->step->min_lag = p->conv.p.min_lag;
        }
        return QSIM_OK;
    }
    l->step->run = qs_i8_run_preparing;
    return make_scratch(&x, p, &l->step->scratch);
}
