/* SPDX-License-Identifier: MIT */
/*
 * Bias correction. Rounding the weights W of a layer to Q(W) shifts the mean of each output by an
 * amount that is known; the bias takes it back:
 *
 *     bias[o] += sum over k of (W - Q(W))[o, k] * E[x[k]]
 *
 * E[x] is the mean of the input's channel in the float network, from a calibration or from the
 * parameters of BatchNormalization (moments.c). On padding a convolution's window reads zeros, so
 * each tap is weighted by the share of positions at which it reads the image. (Nagel et al.,
 * "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019.)
 */
#include <math.h>

#include "op/rules.h"
#include "ptq/quantizer.h"
#include "ptq/recipe.h"

/* ---- means of the input ---- */

/*
 * Finds moments in the graph before BatchNormalization was folded, which is that of the model from
 * which the others derive.
 */
static int find_moments(qs_quantizer *q) {
    const qsim_model *m = q->model;
    if (q->moments.g)
        return QSIM_OK;
    while (m->base)
        m = m->base;
    return qs_moments_find(q->ctx, m->graph, &q->moments) ? QSIM_E_NOMEM : QSIM_OK;
}

/* The input of a layer: its name, its number of channels, and their axis (-1: not known). */
typedef struct source {
    const char *name;
    size_t groups, taps, channels;
    int32_t axis;
    const float *factor; /* of each channel; NULL: 1 */
} source;

static source source_of(const qs_quantizer *q, const qs_layer *l) {
    const qs_node *n = &q->g->nodes[l->node];
    const qs_value *x = &q->g->values[n->inputs[0]];
    const qs_const *w = q->g->values[n->inputs[1]].data;
    source s = {.name = x->name, .groups = 1, .taps = 1, .axis = x->rank - 1};
    if (n->op->traits & QS_CONVOLVES) {
        s.groups = (size_t)qs_node_int(n, "group", 1);
        s.taps = w->elements / (size_t)(w->dims[0] * w->dims[1]);
        s.axis = 1;
    }
    s.channels = l->depth / s.taps * s.groups;
    if (q->scaled && (size_t)n->inputs[0] < q->value_count)
        s.factor = q->scaled[n->inputs[0]].factor;
    return s;
}

/* The calibration's means of these channels, or NULL. */
static const qs_means *calibrated(const qs_quantizer *q, const source *s, int32_t *index) {
    const qs_means *m = q->means ? qs_calibration_means(q->means, s->name, index) : NULL;
    return m && m->axis == s->axis && m->channels == s->channels ? m : NULL;
}

/*
 * Fills the means of the channels of the input; *known: false if neither the calibration nor
 * moments have them.
 */
static int input_means(qs_quantizer *q, const source *s, double *mean, bool *known) {
    int32_t index = QS_NONE;
    const qs_means *m = calibrated(q, s, &index);
    *known = m != NULL;
    for (size_t c = 0; m && c < s->channels; c++)
        mean[c] = qs_means_mean(m, c);
    if (m)
        q->used[index] |= QS_HASH_MEANS;
    int code = m || s->axis != 1 ? QSIM_OK : find_moments(q);
    const float *found =
        m || s->axis != 1 || code ? NULL : qs_moments_mean(&q->moments, s->name, s->channels);
    *known = m || found;
    for (size_t c = 0; found && c < s->channels; c++)
        mean[c] = (double)found[c];
    for (size_t c = 0; s->factor && *known && c < s->channels; c++)
        mean[c] *= (double)s->factor[c];
    return code;
}

/* ---- padding ---- */

/* Padding before the first position of a spatial axis. */
static int64_t pad_before(const qs_node *n, int32_t axis, int64_t overlap) {
    const qs_attr *pads = qs_node_attr(n, "pads");
    const int32_t pad = qs_node_word(n, "auto_pad", QS_AUTO_PADS);
    if (pad == QS_PAD_UPPER)
        return overlap > 0 ? overlap / 2 : 0;
    if (pad == QS_PAD_LOWER)
        return overlap > 0 ? overlap - overlap / 2 : 0;
    return pads && axis < pads->count ? pads->u.ints[axis] : 0;
}

static int64_t listed(const qs_node *n, const char *name, int32_t axis) {
    const qs_attr *a = qs_node_attr(n, name);
    return a && axis < a->count ? a->u.ints[axis] : 1;
}

/* The share of output positions at which tap `tap` along an axis reads no padding; 1: not known. */
static double tap_share(const qs_graph *g, const qs_node *n, int32_t axis, int64_t size,
                        int64_t tap) {
    const qs_value *x = &g->values[n->inputs[0]], *y = &g->values[n->outputs[0]];
    if (x->rank <= axis + 2 || y->rank != x->rank)
        return 1;
    const int64_t in = x->dims[axis + 2].size, out = y->dims[axis + 2].size;
    const int64_t stride = listed(n, "strides", axis), dilation = listed(n, "dilations", axis);
    if (in <= 0 || out <= 0)
        return 1;
    const int64_t overlap = (out - 1) * stride + (size - 1) * dilation + 1 - in;
    int64_t inside = 0, at = tap * dilation - pad_before(n, axis, overlap);
    for (int64_t i = 0; i < out; i++, at += stride)
        inside += at >= 0 && at < in;
    return (double)inside / (double)out;
}

/* Fills the shares of all taps of a window. */
static void find_shares(const qs_graph *g, const qs_node *n, const qs_const *w, double *share,
                        size_t taps) {
    for (size_t t = 0; t < taps; t++)
        share[t] = 1;
    size_t inner = taps;
    for (int32_t axis = 0; axis + 2 < w->rank; axis++) {
        const size_t size = (size_t)w->dims[axis + 2];
        inner /= size;
        for (size_t k = 0; k < size; k++) {
            const double s = tap_share(g, n, axis, (int64_t)size, (int64_t)k);
            for (size_t t = 0; t < taps; t++)
                share[t] *= t / inner % size == k ? s : 1;
        }
    }
}

/* ---- the sums ---- */

typedef struct expected {
    double *mean, *share; /* of input channels, of taps */
    const double *drift;  /* drift of the means in the quantized network; NULL: none */
    size_t taps, groups;
} expected;

static double code_at(const void *codes, int32_t dtype, size_t i) {
    return dtype == QSIM_INT8 || dtype == QSIM_INT4 ? (double)((const int8_t *)codes)[i]
                                                    : (double)((const uint8_t *)codes)[i];
}

static double shift_of(const qs_layer *l, const expected *e, const float *w, const qs_codes *codes,
                       int32_t dtype, size_t channel) {
    const size_t first = codes->count > 1 ? channel * (codes->blocks ? codes->blocks : 1) : 0;
    const size_t inputs = l->depth / e->taps;
    const double *mean = e->mean + channel / (l->channels / e->groups) * inputs;
    double sum = 0;
    for (size_t k = 0; k < l->depth; k++) {
        const size_t i = channel * l->stride + k * l->step;
        const size_t at = first + (codes->blocks ? k / codes->block : 0);
        const double zp = codes->zero_point ? (double)codes->zero_point[at] : 0;
        const double rounded = (code_at(codes->data, dtype, i) - zp) * (double)codes->scale[at];
        sum += ((double)w[i] - rounded) * (mean[k / e->taps] * e->share[k % e->taps]);
        if (e->drift)
            sum -= rounded * (e->drift[mean + k / e->taps - e->mean] * e->share[k % e->taps]);
    }
    return sum;
}

/* Fills the shares for a layer and allocates its means. */
static int begin_sums(qs_quantizer *q, const qs_layer *l, const source *s, expected *e) {
    const qs_node *n = &q->g->nodes[l->node];
    e->groups = s->groups;
    e->taps = s->taps;
    e->mean = qs_arena_alloc(&q->g->arena, s->channels, sizeof(*e->mean));
    e->share = qs_arena_alloc(&q->g->arena, e->taps, sizeof(*e->share));
    if (!e->mean || !e->share)
        return QSIM_E_NOMEM;
    find_shares(q->g, n, q->g->values[n->inputs[1]].data, e->share, e->taps);
    return QSIM_OK;
}

/* Fills means and shares for a layer; *known: false if there are no means. */
static int expect(qs_quantizer *q, const qs_layer *l, expected *e, bool *known) {
    const source s = source_of(q, l);
    *known = s.axis >= 0;
    int code = *known ? begin_sums(q, l, &s, e) : QSIM_OK;
    return code || !*known ? code : input_means(q, &s, e->mean, known);
}

/* ---- which layers ---- */

static const qsim_recipe_entry *entry_of(const qs_quantizer *q, qs_id node) {
    return qs_recipe_find(q->options.recipe, QSIM_RECIPE_LAYER, qs_node_label(q->g, node));
}

static bool is_wanted(const qs_quantizer *q, qs_id node) {
    const qsim_recipe_entry *e = entry_of(q, node);
    return !q->options.no_bias_correction && !(e && e->bias_correction == QSIM_BIAS_CORRECTION_OFF);
}

/* Whether the recipe has the shifts themselves. */
static bool is_given(const qs_quantizer *q, qs_id node) {
    const qsim_recipe_entry *e = entry_of(q, node);
    return e && e->bias_correction == QSIM_BIAS_CORRECTION_GIVEN;
}

/* Whether a bias can be added: not to a QLinearMatMul. */
static bool has_place(const qs_quantizer *q, qs_id node) {
    return q->options.mode != QSIM_MODE_STATIC || q->options.format != QSIM_FORMAT_QOPERATOR ||
           qs_op_takes_bias(q->g->nodes[node].op);
}

int32_t qs_bias_decide(const qs_quantizer *q, qs_id node) {
    const int32_t layer = q->choices[node].layer;
    int32_t index;
    if (layer < 0)
        return QSIM_BIAS_CORRECTION_DEFAULT;
    if (!is_wanted(q, node))
        return QSIM_BIAS_CORRECTION_OFF;
    if (is_given(q, node))
        return QSIM_BIAS_CORRECTION_GIVEN;
    const source s = source_of(q, &q->layers[layer]);
    return has_place(q, node) && calibrated(q, &s, &index) ? QSIM_BIAS_CORRECTION_ON
                                                           : QSIM_BIAS_CORRECTION_DEFAULT;
}

/* Refuses a recipe that has bias correction on for a layer that cannot be corrected. */
static int refuse(const qs_quantizer *q, qs_id node) {
    const qs_node *n = &q->g->nodes[node];
    const char *model = q->model->name, *label = qs_node_label(q->g, node);
    if (q->choices[node].layer < 0 || !has_place(q, node))
        return qs_fail(q->error, QSIM_E_UNSUPPORTED,
                       "%s: the recipe's layer '%s': 'bias-correction %s' is not supported for %s",
                       model, label,
                       qs_word_text(qs_recipe_switches, entry_of(q, node)->bias_correction),
                       n->op_type);
    if (q->means)
        qs_fail(q->error, QSIM_E_ARGUMENT,
                "%s: the recipe's layer '%s' has bias-correction on: the calibration has no means "
                "of '%s'",
                model, label, q->g->values[n->inputs[0]].name);
    else
        qs_fail(q->error, QSIM_E_ARGUMENT,
                "%s: the recipe's layer '%s' has bias-correction on, which needs a calibration",
                model, label);
    qs_hint(q->error, "give --data or --calibration, or --no-bias-correction");
    return QSIM_E_ARGUMENT;
}

static int refuse_count(const qs_quantizer *q, qs_id node, size_t channels) {
    return qs_fail(q->error, QSIM_E_MISMATCH,
                   "%s: the recipe's layer '%s' has %lld numbers of bias correction, not %zu",
                   q->model->name, qs_node_label(q->g, node),
                   (long long)entry_of(q, node)->shift_count, channels);
}

int qs_bias_check(const qs_quantizer *q) {
    for (size_t k = 0; k < q->g->order_count; k++) {
        const qs_id node = q->g->order[k];
        const int32_t layer = q->choices[node].layer;
        const qsim_recipe_entry *e = entry_of(q, node);
        if (e && e->bias_correction == QSIM_BIAS_CORRECTION_GIVEN && is_wanted(q, node)) {
            if (layer < 0 || !has_place(q, node))
                return refuse(q, node);
            if ((size_t)e->shift_count != q->layers[layer].channels)
                return refuse_count(q, node, q->layers[layer].channels);
        }
        if (e && e->bias_correction == QSIM_BIAS_CORRECTION_ON && is_wanted(q, node) &&
            qs_bias_decide(q, node) != QSIM_BIAS_CORRECTION_ON)
            return refuse(q, node);
    }
    return QSIM_OK;
}

/* Copies the recipe's shifts to the graph's arena. */
static int copy_given(const qs_quantizer *q, const qs_layer *l, float **shift) {
    *shift = qs_arena_alloc(&q->g->arena, l->channels, sizeof(**shift));
    if (!*shift)
        return QSIM_E_NOMEM;
    memcpy(*shift, entry_of(q, l->node)->shift, l->channels * sizeof(**shift));
    return QSIM_OK;
}

int qs_bias_find(qs_quantizer *q, const qs_layer *l, const qs_codes *codes, int32_t dtype,
                 float **shift) {
    const qs_id weights = q->g->nodes[l->node].inputs[1];
    expected e = {0};
    bool known = false, any = false;
    *shift = NULL;
    if (!is_wanted(q, l->node) || !has_place(q, l->node))
        return QSIM_OK;
    if (is_given(q, l->node))
        return copy_given(q, l, shift);
    int code = expect(q, l, &e, &known);
    if (code || !known)
        return code;
    const float *w = qs_graph_aligned(q->g, weights);
    float *s = qs_arena_alloc(&q->g->arena, l->channels, sizeof(*s));
    if (!w || !s)
        return QSIM_E_NOMEM;
    for (size_t c = 0; c < l->channels; c++) {
        s[c] = (float)shift_of(l, &e, w, codes, dtype, c);
        s[c] = isfinite(s[c]) ? s[c] : 0;
        any |= s[c] != 0;
    }
    *shift = any ? s : NULL;
    return QSIM_OK;
}

/* ---- of the quantized network ---- */

bool qs_bias_input(const qs_quantizer *q, const qs_layer *l, qs_bias_source *out) {
    const source s = source_of(q, l);
    *out = (qs_bias_source){
        .tensor = s.name, .axis = s.axis, .channels = s.channels, .factor = s.factor};
    return s.axis >= 0 && has_place(q, l->node);
}

int qs_bias_measured(qs_quantizer *q, qs_layer *l, const double *mean, const double *drift,
                     float *shift) {
    /* Adding a node may move the array of nodes. */
    const qs_id x = q->g->nodes[l->node].inputs[0], weights = q->g->nodes[l->node].inputs[1];
    const source s = source_of(q, l);
    expected e = {.drift = drift};
    int code = begin_sums(q, l, &s, &e);
    if (!code)
        code = qs_weight_make(q, l, &q->activations[q->activations[x].root]);
    if (code)
        return code;
    const qs_codes codes = qs_layer_codes(l);
    const float *w = qs_graph_aligned(q->g, weights);
    memcpy(e.mean, mean, s.channels * sizeof(*mean));
    for (size_t c = 0; c < l->channels; c++) {
        shift[c] = (float)shift_of(l, &e, w, &codes, l->form.dtype, c);
        shift[c] = isfinite(shift[c]) ? shift[c] : 0;
    }
    return QSIM_OK;
}

/* ---- adding the correction ---- */

/*
 * The Add of a constant vector that is the only reader of a product, or QS_NONE. *operand: the
 * index of the vector.
 */
static qs_id bias_add(const qs_quantizer *q, qs_id node, size_t channels, int32_t *operand) {
    const qs_graph *g = q->g;
    const qs_id y = g->nodes[node].outputs[0];
    if ((size_t)y >= q->value_count || g->values[y].is_output ||
        q->uses.start[y + 1] - q->uses.start[y] != 1)
        return QS_NONE;
    const qs_id add = q->uses.nodes[q->uses.start[y]];
    const qs_node *n = &g->nodes[add];
    if (!qs_node_is_onnx(n, "Add") || n->inputs[0] == n->inputs[1])
        return QS_NONE;
    *operand = n->inputs[0] == y;
    const qs_const *c = qs_node_const(g, n, *operand);
    return c && c->dtype == QSIM_FLOAT && c->rank == 1 && c->elements == channels ? add : QS_NONE;
}

/* Adds a constant of old + shift in the shape of `old`; QS_NONE: of `shift`. < 0: no memory. */
static qs_id sum_constant(qs_quantizer *q, qs_id old, const char *base, const float *shift,
                          size_t channels) {
    const int64_t length = (int64_t)channels;
    float *sum = qs_arena_alloc(&q->g->arena, channels, sizeof(*sum));
    const float *before = old == QS_NONE ? NULL : qs_graph_aligned(q->g, old);
    const qs_const *c = old == QS_NONE ? NULL : q->g->values[old].data;
    if (!sum || (c && !before))
        return QSIM_E_NOMEM;
    for (size_t i = 0; i < channels; i++)
        sum[i] = before ? before[i] + shift[i] : shift[i];
    return qs_write_constant(q, c ? q->g->values[old].name : base, c ? "_corrected" : "_bias",
                             QSIM_FLOAT, c ? c->rank : 1, c ? c->dims : &length, sum);
}

/* Puts an Add after a product. */
static int insert_add(qs_quantizer *q, qs_id node, const float *shift, size_t channels) {
    qs_graph *g = q->g;
    const qs_id y = g->nodes[node].outputs[0];
    const char *base = qs_node_label(g, node);
    const qs_id product = qs_write_value(q, g->values[y].name, "_uncorrected", QSIM_FLOAT, y);
    const qs_id bias = sum_constant(q, QS_NONE, base, shift, channels);
    const char *name = qs_write_name(q, base, "_bias_correction");
    if (product < 0 || bias < 0 || !name)
        return QSIM_E_NOMEM;
    g->nodes[node].outputs[0] = product;
    g->nodes[node].changed = true;
    g->values[product].producer = node;
    const qs_id in[2] = {product, bias};
    return qs_graph_add_node(g, "", "Add", name, in, 2, &y, 1) < 0 ? QSIM_E_NOMEM : QSIM_OK;
}

int qs_bias_add(qs_quantizer *q, const qs_layer *l, const float *shift) {
    qs_graph *g = q->g;
    const qs_id node = l->node;
    int32_t operand = 2;
    qs_id holder = node;
    if (!qs_op_takes_bias(g->nodes[node].op))
        holder = bias_add(q, node, l->channels, &operand);
    int code = QSIM_OK;
    if (holder == QS_NONE) {
        code = insert_add(q, node, shift, l->channels);
    } else {
        const qs_id old = qs_node_input(&g->nodes[holder], operand);
        const qs_id sum =
            sum_constant(q, old, g->values[g->nodes[node].inputs[1]].name, shift, l->channels);
        if (sum < 0 || qs_node_grow_inputs(g, holder, operand + 1))
            code = QSIM_E_NOMEM;
        else
            qs_node_set_input(g, holder, operand, sum);
    }
    q->corrected++;
    return code ? QSIM_E_NOMEM : QSIM_OK;
}
