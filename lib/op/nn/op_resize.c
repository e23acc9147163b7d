/* SPDX-License-Identifier: MIT */
/*
 * Resize, and Upsample, its predecessor: nearest for every type, linear and cubic on floats and
 * doubles. Integers are computed as doubles, then truncated towards zero and saturated: ONNX's text
 * is silent on that; its reference and ONNX Runtime truncate.
 */
#include <math.h>

#include "op/nn/resize.h"
#include "op/rules.h"
#include "op/nn/window.h"

typedef struct resize_spec {
    qs_resize_how how;
    int32_t rank;
    bool known;                  /* scales or sizes are constant */
    int64_t axes[QSIM_MAX_RANK]; /* axes that scales and sizes are given for */
    int32_t count;
    qs_resize_axis axis[QSIM_MAX_RANK]; /* in the order of the model */
    int32_t place[QSIM_MAX_RANK];       /* axis of the tensor, by axis of the model */
} resize_spec;

static bool is_upsample(const qs_infer *x) {
    return x->node->op_type[0] == 'U';
}

/* ---- attributes ---- */

static const char coordinates[] =
    "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|"
    "tf_half_pixel_for_nn|tf_crop_and_resize";

static int read_how(const qs_infer *x, qs_resize_how *how) {
    const bool old = is_upsample(x) || x->node->version < 11;
    const char *by = "coordinate_transformation_mode", *to = "nearest_mode";
    int32_t mode, where = QS_ASYMMETRIC, rounding = QS_BY_SCALE;
    int code = qs_infer_word(x, "mode", "nearest|linear|cubic|bilinear", &mode);
    if (!code && (!old || qs_node_attr(x->node, by)))
        code = qs_infer_word(x, by, coordinates, &where);
    if (!code && (!old || qs_node_attr(x->node, to)))
        code = qs_infer_word(x, to, "round_prefer_floor|round_prefer_ceil|floor|ceil", &rounding);
    how->mode = mode > QS_CUBIC ? QS_LINEAR : (qs_resize_mode)mode; /* early exporters' bilinear */
    how->coordinates = (qs_resize_coordinates)where;
    how->rounding = (qs_resize_rounding)rounding;
    how->cubic = qs_node_float(x->node, "cubic_coeff_a", -0.75f);
    how->outside = qs_node_float(x->node, "extrapolation_value", 0.0f);
    how->exclude_outside = qs_node_int(x->node, "exclude_outside", 0) != 0;
    how->antialias = qs_node_int(x->node, "antialias", 0) != 0;
    if (!code && !isfinite(how->cubic))
        return qs_infer_fail(x, QSIM_E_VALUE, "attribute cubic_coeff_a is not finite");
    return code;
}

static int read_axes(const qs_infer *x, resize_spec *s) {
    uint32_t mask;
    int code = qs_infer_attr_ints(x, "axes", s->axes, QSIM_MAX_RANK, &s->count);
    if (code)
        return code;
    if (s->count == QS_ABSENT) {
        s->count = s->rank;
        for (int32_t i = 0; i < s->rank; i++)
            s->axes[i] = i;
    }
    for (int32_t i = 0; i < s->count; i++)
        s->axes[i] += s->axes[i] < 0 ? s->rank : 0;
    return qs_infer_axes(x, s->axes, s->count, s->rank, &mask);
}

/* ---- scales, sizes, region ---- */

/*
 * Reads constant input `index`, `want` floats or, if `types` has them, doubles; *count as in
 * qs_infer_ints, absent if empty.
 */
static int read_floats(const qs_infer *x, int32_t index, uint32_t types, int32_t want, float *out,
                       int32_t *count) {
    const qs_value *v = qs_infer_in(x, index);
    qs_const c;
    *count = QS_ABSENT;
    if (!v || (v->rank == 1 && v->dims[0].size == 0))
        return QSIM_OK;
    int code = qs_infer_type(x, index, types);
    *count = QS_DYNAMIC;
    if (code || !qs_infer_const(x, index, &c))
        return code;
    *count = c.elements ? want : QS_ABSENT;
    if (c.elements != 0 && c.elements != (size_t)want)
        return qs_infer_fail(x, QSIM_E_SHAPE, "input %d has %zu elements, expected %d", (int)index,
                             c.elements, (int)want);
    for (size_t i = 0; i < c.elements; i++) {
        out[i] = (float)qs_const_at(&c, i);
        if (!isfinite(out[i]))
            return qs_infer_fail(x, QSIM_E_VALUE, "element %zu of input %d is not finite", i,
                                 (int)index);
    }
    return QSIM_OK;
}

static int set_scale(const qs_infer *x, qs_resize_axis *a, float scale) {
    if (!(scale > 0.0f && scale < INFINITY))
        return qs_infer_fail(x, QSIM_E_VALUE, "an axis is scaled by %g", (double)scale);
    a->scale = scale;
    if (a->in < 0)
        return QSIM_OK;
    const double size = (double)((float)a->in * scale);
    if (size >= 9.2e18)
        return qs_infer_fail(x, QSIM_E_LIMIT, "an axis of %lld is scaled by %g", (long long)a->in,
                             (double)scale);
    a->out = (int64_t)size;
    return QSIM_OK;
}

static int use_scales(const qs_infer *x, resize_spec *s, const float *scales) {
    int code = QSIM_OK;
    for (int32_t i = 0; i < s->count && !code; i++)
        code = set_scale(x, &s->axis[s->axes[i]], scales[i]);
    s->known = true;
    return code;
}

/* Chooses one scale for all axes: none gets larger (with `larger`: smaller) than its size. */
static int keep_ratio(const qs_infer *x, resize_spec *s, const int64_t *sizes, bool larger) {
    float scale = larger ? 0.0f : INFINITY;
    for (int32_t i = 0; i < s->count; i++) {
        const int64_t in = s->axis[s->axes[i]].in;
        if (in < 0)
            return QSIM_OK;
        const float v = (float)sizes[i] / (float)in;
        scale = (larger ? v > scale : v < scale) ? v : scale;
    }
    for (int32_t i = 0; i < s->count; i++) {
        qs_resize_axis *a = &s->axis[s->axes[i]];
        int code = set_scale(x, a, scale);
        if (code)
            return code;
        a->out = (int64_t)((float)a->in * scale + 0.5f);
    }
    return QSIM_OK;
}

static int use_sizes(const qs_infer *x, resize_spec *s, const int64_t *sizes) {
    enum { STRETCH, NOT_LARGER, NOT_SMALLER };
    int32_t policy;
    const int code =
        qs_infer_word(x, "keep_aspect_ratio_policy", "stretch|not_larger|not_smaller", &policy);
    if (code)
        return code;
    s->known = true;
    for (int32_t i = 0; i < s->count; i++) {
        qs_resize_axis *a = &s->axis[s->axes[i]];
        if (sizes[i] < 1 || a->in == 0)
            return qs_infer_fail(x, QSIM_E_VALUE, "axis %d of size %lld becomes %lld",
                                 (int)s->axes[i], (long long)a->in, (long long)sizes[i]);
        a->out = sizes[i];
        a->scale = (float)sizes[i] / (float)(a->in > 0 ? a->in : 1);
    }
    return policy == STRETCH ? QSIM_OK : keep_ratio(x, s, sizes, policy == NOT_SMALLER);
}

/* Reads the region of tf_crop_and_resize: all starts, then all ends. */
static int read_region(const qs_infer *x, resize_spec *s) {
    float region[2 * QSIM_MAX_RANK];
    int32_t count;
    int code = read_floats(x, 1, QS_T_REAL, 2 * s->count, region, &count);
    if (code)
        return code;
    if (count == QS_ABSENT)
        return qs_infer_fail(x, QSIM_E_GRAPH, "tf_crop_and_resize without a region");
    for (int32_t i = 0; i < s->count && count > 0; i++) {
        s->axis[s->axes[i]].start = region[i];
        s->axis[s->axes[i]].end = region[s->count + i];
    }
    return QSIM_OK;
}

/* Reads the scales of Upsample before opset 7: of the two axes of an image. */
QS_COLD static bool image_scales(const qs_node *n, float scales[4]) {
    scales[0] = scales[1] = 1.0f;
    scales[2] = qs_node_float(n, "height_scale", 0.0f);
    scales[3] = qs_node_float(n, "width_scale", 0.0f);
    return qs_node_attr(n, "height_scale") != NULL;
}

/* Reads scales from the attribute (Upsample before opset 9) or an input. */
static int read_scales(const qs_infer *x, resize_spec *s, int32_t index, int32_t *count) {
    float scales[QSIM_MAX_RANK];
    const qs_attr *a = qs_node_attr(x->node, "scales");
    if (image_scales(x->node, scales) && s->count == 4) {
        *count = 4;
        return use_scales(x, s, scales);
    }
    if (!a) {
        int code = read_floats(x, index, QS_T_FLOAT, s->count, scales, count);
        return code || *count < 0 ? code : use_scales(x, s, scales);
    }
    *count = a->count;
    if (a->count != s->count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d scales for %d axes", (int)a->count,
                             (int)s->count);
    return use_scales(x, s, a->u.floats);
}

static int read_sizes(const qs_infer *x, resize_spec *s, int32_t scales) {
    int64_t sizes[QSIM_MAX_RANK];
    int32_t count = 0;
    int code = qs_infer_ints(x, 3, sizes, QSIM_MAX_RANK, &count);
    if (code || count == QS_DYNAMIC)
        return code;
    const bool given = count > 0;
    if (given == (scales != QS_ABSENT))
        return qs_infer_fail(x, QSIM_E_GRAPH, "%s",
                             given ? "both scales and sizes are given"
                                   : "neither scales nor sizes are given");
    if (given && count != s->count)
        return qs_infer_fail(x, QSIM_E_SHAPE, "%d sizes for %d axes", (int)count, (int)s->count);
    return given ? use_sizes(x, s, sizes) : QSIM_OK;
}

/* Axis of the tensor that is axis i of the model. */
static int32_t place_of(const qs_infer *x, int32_t i, int32_t rank) {
    if (i == 0 || qs_node_int(x->node, "channels_last", 0) == 0)
        return i;
    return i == 1 ? rank - 1 : i - 1;
}

static int read_spec(const qs_infer *x, resize_spec *s) {
    const qs_value *in = x->in[0];
    const bool newer = !is_upsample(x) && x->node->version >= 11;
    int32_t count = QS_ABSENT;
    memset(s, 0, sizeof(*s));
    s->rank = in->rank;
    int code = read_how(x, &s->how);
    s->how.fine = s->how.mode != QS_NEAREST && in->dtype == QSIM_DOUBLE;
    if (!code)
        code = read_axes(x, s);
    for (int32_t i = 0; i < s->rank && !code; i++) {
        s->place[i] = place_of(x, i, s->rank);
        const int64_t size = in->dims[s->place[i]].size;
        s->axis[i] = (qs_resize_axis){size, size, 1.0f, 0.0f, 1.0f};
    }
    for (int32_t i = 0; i < s->count && !code; i++)
        s->axis[s->axes[i]].out = -1;
    if (!code)
        code = read_scales(x, s, newer ? 2 : 1, &count);
    if (!code && newer)
        code = read_sizes(x, s, count);
    else if (!code && count == QS_ABSENT)
        code = qs_infer_fail(x, QSIM_E_GRAPH, "the scales are missing");
    if (!code && s->how.coordinates == QS_TF_CROP_AND_RESIZE)
        code = read_region(x, s);
    return code;
}

/* With "into" the number of channels may not be resized. */
QS_COLD static int infer_into(const qs_infer *x) {
    const int32_t rank = x->out[0].rank;
    const qs_value *table = qs_infer_in(x, QS_RESIZE_TABLE);
    if (!qs_node_attr(x->node, "into"))
        return QSIM_OK;
    if (rank < 3 || x->out[0].dims[rank - 1].size != x->in[0]->dims[rank - 1].size)
        return qs_infer_fail(x, QSIM_E_INTERNAL, "resized channels inside another tensor");
    if (table && (x->in[0]->dtype != QSIM_UINT8 || table->dtype != QSIM_UINT8 || table->rank != 1 ||
                  table->dims[0].size != 256))
        return qs_infer_fail(x, QSIM_E_INTERNAL, "the table does not fit");
    return qs_window_into(x, QS_RESIZE_OVER);
}

static int infer_resize(qs_infer *x) {
    const qs_value *in = x->in[0];
    qs_dim dims[QSIM_MAX_RANK];
    resize_spec s;
    if (in->rank < 0)
        return qs_infer_unknown(x, in->dtype);
    int code = read_spec(x, &s);
    const bool copies = s.how.mode == QS_NEAREST && s.how.coordinates != QS_TF_CROP_AND_RESIZE;
    if (!code)
        code = qs_infer_type(x, 0, copies ? QS_T_BYTES : QS_T_REAL);
    for (int32_t i = 0; i < s.rank && !code; i++) {
        const qs_dim *from = &in->dims[s.place[i]];
        const bool same = s.known && s.axis[i].scale == 1.0f;
        dims[s.place[i]] = same ? *from : (qs_dim){s.axis[i].out, NULL};
        if (s.axis[i].out > 0 && from->size == 0)
            code = qs_infer_fail(x, QSIM_E_SHAPE, "axis %d has no elements", (int)i);
    }
    code = code ? code : qs_infer_out(x, 0, in->dtype, s.rank, dims);
    return code ? code : infer_into(x);
}

/* ---- lowering ---- */

static int lower_resize(qs_lower *l) {
    const qs_value *y = qs_lower_out(l, 0);
    qs_resize_taps taps[QSIM_MAX_RANK];
    resize_spec s;
    qs_infer x;
    bool identity = true;
    qs_lower_infer(l, &x);
    int code = read_spec(&x, &s);
    if (code)
        return code;
    l->step->run = qs_run_nothing;
    if (qs_value_elements(y) == 0)
        return QSIM_OK;
    for (int32_t i = 0; i < s.rank && !code; i++) {
        code = qs_resize_taps_make(l->arena, &s.how, &s.axis[i], &taps[s.place[i]]);
        identity &= taps[s.place[i]].identity;
    }
    if (code)
        return qs_fail(l->error, code, "out of memory");
    l->alias = identity && !qs_node_attr(l->node, "into");
    if (l->alias)
        return QSIM_OK;
    return s.how.mode == QS_NEAREST ? qs_resize_lower_nearest(l, s.how.outside, taps)
                                    : qs_resize_lower_filter(l, s.how.outside, taps);
}

/* ---- rows ---- */

static int set_string(qs_graph *g, qs_id node, const char *name, const char *value) {
    const qs_attr attr = {
        .name = name, .type = QSIM_ATTR_STRING, .u.s = {(const uint8_t *)value, strlen(value)}};
    return qs_node_set_attr(g, node, &attr);
}

/* Rounding of old versions: up for shrinking axes, down for growing ones; NULL if both occur. */
static const char *old_rounding(const float *scales, size_t count) {
    bool grows = false, shrinks = false;
    for (size_t i = 0; i < count; i++) {
        grows |= scales[i] > 1.0f;
        shrinks |= scales[i] < 1.0f;
    }
    return grows && shrinks ? NULL : shrinks ? "ceil" : "floor";
}

static int upgrade_resize(qs_graph *g, qs_id node, int32_t to, qsim_error *error);

/* Turns the scales of an image's axes into a list of four, and then into the later form. */
QS_COLD static int upgrade_image(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    float *scales = qs_arena_alloc(&g->arena, 4, sizeof(*scales));
    qs_attr list = {.name = "scales", .type = QSIM_ATTR_FLOATS, .count = 4, .u.floats = scales};
    if (!scales || !image_scales(&g->nodes[node], scales) || qs_node_set_attr(g, node, &list) ||
        (qs_node_string_is(&g->nodes[node], "mode", "bilinear", false) &&
         set_string(g, node, "mode", "linear")))
        return qs_op_no_memory(error);
    qs_node_drop_attr(g, node, "height_scale");
    qs_node_drop_attr(g, node, "width_scale");
    g->nodes[node].version = 7;
    return upgrade_resize(g, node, to, error);
}

/* Turns Resize before opset 11, and Upsample, into the later form. */
static int upgrade_resize(qs_graph *g, qs_id node, int32_t to, qsim_error *error) {
    qs_node *n = &g->nodes[node];
    const qs_attr *a = qs_node_attr(n, "scales");
    const bool upsample = n->op_type[0] == 'U';
    float scales[QSIM_MAX_RANK] = {0};
    int64_t count = a ? a->count : 0;
    if (to >= 7 && n->version < 7)
        return upgrade_image(g, node, to, error);
    if (to < 10 || (!upsample && n->version >= 11))
        return QSIM_OK;
    const qs_const *c = qs_node_const(g, n, 1);
    if (!a && c && c->dtype == QSIM_FLOAT && c->elements <= QSIM_MAX_RANK)
        memcpy(scales, c->data, (size_t)(count = (int64_t)c->elements) * sizeof(float));
    if (a && count <= QSIM_MAX_RANK)
        memcpy(scales, a->u.floats, (size_t)count * sizeof(float));
    /* Scales of Upsample are 1 or more, also where a model computes them. */
    const char *rounding =
        count <= QSIM_MAX_RANK && (count || upsample) ? old_rounding(scales, (size_t)count) : NULL;
    if (to >= 11 && !rounding)
        return qs_fail(error, QSIM_E_UNSUPPORTED, "%s '%s': scales that opset %d has no form for",
                       n->op_type, n->name, (int)to);
    qs_id list = qs_node_input(n, 1);
    if (a)
        list = qs_upgrade_const(g, "scales", QSIM_FLOAT, 1, &count, scales);
    if (list < 0 || qs_node_grow_inputs(g, node, to >= 11 ? 3 : 2))
        return qs_op_no_memory(error);
    qs_node_drop_attr(g, node, "scales");
    qs_node_set_input(g, node, 1, to >= 11 ? QS_NONE : list);
    if (to >= 11)
        qs_node_set_input(g, node, 2, list);
    g->nodes[node].op_type = "Resize";
    g->nodes[node].changed = true;
    if (to >= 11 && (set_string(g, node, "coordinate_transformation_mode", "asymmetric") ||
                     set_string(g, node, "nearest_mode", rounding)))
        return qs_op_no_memory(error);
    return QSIM_OK;
}

#define RESIZE_ATTRS(since)                                                                        \
    {"mode", QSIM_ATTR_STRING, since, 0},                                                          \
        {"coordinate_transformation_mode", QSIM_ATTR_STRING, 11, 0},                               \
        {"cubic_coeff_a", QSIM_ATTR_FLOAT, 11, 0}, {"exclude_outside", QSIM_ATTR_INT, 11, 0},      \
        {"extrapolation_value", QSIM_ATTR_FLOAT, 11, 0},                                           \
        {"nearest_mode", QSIM_ATTR_STRING, 11, 0}, {"antialias", QSIM_ATTR_INT, 18, 0},            \
        {"axes", QSIM_ATTR_INTS, 18, 0}, {                                                         \
        "keep_aspect_ratio_policy", QSIM_ATTR_STRING, 18, 0                                        \
    }

static const qs_attr_rule resize_attrs[] = {RESIZE_ATTRS(10)};

static const qs_attr_rule internal_attrs[] = {
    RESIZE_ATTRS(0),
    {"scales", QSIM_ATTR_FLOATS, 0, 0},
    {"channels_last", QSIM_ATTR_INT, 0, 0},
    QS_INTO_ATTRS,
};

static const qs_attr_rule upsample_attrs[] = {{"mode", QSIM_ATTR_STRING, 1, 0},
                                              {"height_scale", QSIM_ATTR_FLOAT, 1, 6},
                                              {"width_scale", QSIM_ATTR_FLOAT, 1, 6},
                                              {"scales", QSIM_ATTR_FLOATS, 7, 8}};

static uint32_t nearest_moves(const qs_graph *g, const qs_node *n) {
    (void)g;
    const bool crops =
        qs_node_string_is(n, "coordinate_transformation_mode", "tf_crop_and_resize", false);
    return qs_node_string_is(n, "mode", "nearest", true) && !crops ? QS_MOVES : 0;
}

QS_OP(resize, .name = "Resize", .since = 10, .min_in = 2,
      QS_MORE(QS_HISTORY(.later = {{11, 3, 4, 1}, {13, 1, 4, 1}}, .upgrade = upgrade_resize),
              .also = nearest_moves),
      QS_ATTRS(resize_attrs), .traits = QS_TAKES_LAST | QS_READS_EXACTLY,
      .shape_inputs = 1 << 1 | 1 << 2 | 1 << 3, .integers_as = QSIM_DOUBLE,
      .kernel = QS_KERNEL_RESIZE, .infer = infer_resize, .lower = lower_resize);

QS_OP(upsample, .name = "Upsample", .until = 9, .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{9, 2, 2, 1}}, .upgrade = upgrade_resize),
              .also = nearest_moves),
      QS_ATTRS(upsample_attrs), .traits = QS_TAKES_LAST | QS_READS_EXACTLY, .shape_inputs = 1 << 1,
      .integers_as = QSIM_DOUBLE, .kernel = QS_KERNEL_RESIZE, .infer = infer_resize,
      .lower = lower_resize);

QS_OP(qsim_resize, .domain = QS_DOMAIN_QSIM, .name = "Resize", .min_in = 1,
      .max_in = QS_RESIZE_TABLE + 1, QS_ATTRS(internal_attrs), .traits = QS_TAKES_LAST,
      QS_MORE(.also = nearest_moves), .shape_inputs = 1 << 1 | 1 << 2 | 1 << 3,
      .over = QS_RESIZE_OVER, .kernel = QS_KERNEL_RESIZE, .infer = infer_resize,
      .lower = lower_resize);
QS_OP(qsim_upsample, .domain = QS_DOMAIN_QSIM, .name = "Upsample", .min_in = 1,
      .max_in = QS_RESIZE_TABLE + 1, QS_ATTRS(internal_attrs), .traits = QS_TAKES_LAST,
      QS_MORE(.also = nearest_moves), .shape_inputs = 1 << 1, .over = QS_RESIZE_OVER,
      .kernel = QS_KERNEL_RESIZE, .infer = infer_resize, .lower = lower_resize);
