/* SPDX-License-Identifier: MIT */
/*
 * One quantization in progress: select.c decides which nodes run in integers, activation.c the
 * scales of activations, weight.c those of weights and biases; rewrite.c writes the decisions into
 * the graph.
 */
#ifndef QS_QUANTIZER_H
#define QS_QUANTIZER_H

#include "base/base.h"
#include "graph/graph.h"
#include "graph/model.h"
#include "op/op.h"
#include "ptq/calibration.h"
#include "ptq/moments.h"
#include "quant/affine.h"

#include <qsim/ptq.h>

/* The decisions about a node; by node id. */
typedef struct qs_choice {
    qs_kind kind;     /* the row's kind, or QS_KIND_FLOAT if the node does not fit it */
    int32_t forced;   /* QSIM_RULE_* of a rule or the recipe; 0: none */
    size_t rule;      /* the number of that rule, from 1; 0: the recipe, or none */
    int32_t layer;    /* index among the layers; -1: the node is none */
    qs_id absorbs;    /* the Relu, Clip, bias or next node of a curve that it absorbs, or QS_NONE */
    bool is_absorbed; /* another node absorbs this one */
    qs_id curve;      /* the first node of the curve that it is part of (curves.c), or QS_NONE */
    uint8_t bits;     /* bits of the weights by a rule: 8 or 4; 0: no rule */
    bool wide;        /* a rule says that inputs and outputs have 16 bits */
    bool integer;     /* the decision: inputs and outputs are quantized */
} qs_choice;

/* The range of an activation, and its source. */
typedef struct qs_range {
    float low, high;
    int32_t flags; /* QSIM_RANGE_* */
    int32_t given; /* by the recipe: QSIM_RECIPE_RANGE, QSIM_RECIPE_METHOD */
    int32_t method;
    double percentile;
} qs_range;

/* The decisions about an activation; by value id. */
typedef struct qs_activation {
    qs_id root; /* the value whose scale this one shares; in most cases itself */
    bool quantized;
    int32_t dtype;  /* of a root */
    qs_range range; /* of a root */
    float scale;    /* of a root */
    int32_t zero_point;
    qs_id scale_id, zero_id; /* of a root: constants, made when first needed */
    /* Set by qs_rewrite, which changes nodes at its end; QS_NONE: the value itself. */
    qs_id read; /* what its readers read instead: all of them, or those in integers */
    bool all_read;
    qs_id made; /* what its producer makes instead */
} qs_activation;

/* How weights are written. */
typedef struct qs_weight_form {
    int32_t dtype;    /* QSIM_INT8, QSIM_UINT8, QSIM_INT4, QSIM_UINT4, QSIM_FLOAT16 */
    int32_t scheme;   /* QSIM_WEIGHT_* */
    int32_t reduce;   /* QSIM_REDUCE_* */
    int32_t block;    /* of 4 bits: how many weights share a scale; 0: all of a channel */
    int32_t rounding; /* of 4 bits: QSIM_ROUNDING_* */
} qs_weight_form;

/* Whether zero points are 0 (of unsigned weights: the middle); whether each channel has a scale. */
static inline bool qs_is_symmetric(const qs_weight_form *f) {
    return f->scheme == QSIM_WEIGHT_CHANNEL_SYMMETRIC || f->scheme == QSIM_WEIGHT_TENSOR_SYMMETRIC;
}
static inline bool qs_has_channels(const qs_weight_form *f) {
    return f->scheme == QSIM_WEIGHT_CHANNEL_SYMMETRIC ||
           f->scheme == QSIM_WEIGHT_CHANNEL_ASYMMETRIC;
}

/*
 * QSIM_RANGE_* of 8-bit weights. With a zero point for each channel the lowest code is left out:
 * w - zp is then within +-254, which kernels hold as a sum of two s8 weights.
 */
static inline int32_t qs_weight_range(const qs_weight_form *f) {
    return (f->reduce == QSIM_REDUCE_RANGE ? QSIM_RANGE_REDUCED : 0) |
           (qs_is_symmetric(f)   ? QSIM_RANGE_SYMMETRIC | QSIM_RANGE_NARROW
            : qs_has_channels(f) ? QSIM_RANGE_NARROW
                                 : 0);
}

/* A layer (a node with weights); layers are in the order of execution. */
typedef struct qs_layer {
    qs_id node;
    qs_weight_form form;
    int32_t axis;           /* of output channels in the weights */
    size_t channels, depth; /* depth: weights of one channel */
    size_t stride, step;    /* weight k of channel c is at c * stride + k * step */
    bool is_matrix;         /* a product, or a convolution of one tap without groups */
    /* Filled by qs_weight_make, in the graph's arena. */
    float *scale; /* one or `channels` */
    int32_t *zero_point;
    size_t scale_count;
    void *weights;
    int32_t *bias; /* NULL: the layer has none */
    float *bias_scale;
} qs_layer;

/* A quantized constant in the graph's arena. Each byte has one integer, also one of 4 bits. */
typedef struct qs_codes {
    void *data;
    float *scale;
    int32_t *zero_point;
    size_t count;         /* scales: 1, or one per channel or block, channel after channel */
    size_t blocks, block; /* blocks of a channel and weights of a block; 0: no blocks */
} qs_codes;

/* The equalization factors of a value's channels (equalize.h); by value id. */
typedef struct qs_scaled {
    const float *factor; /* of each channel, from the recipe; NULL: none */
    size_t channels;
    int32_t axis;
    const char *name; /* in the float network */
    bool first;       /* the recipe names it */
} qs_scaled;

typedef struct qs_quantizer {
    qsim_ctx *ctx;
    qsim_model *model; /* the result */
    qs_graph *g;
    const qsim_calibration *c;     /* NULL in a dry run: every range counts as known */
    qsim_quantize_options options; /* with defaults filled in */
    int32_t activation_flags;
    qs_uses uses; /* of the graph before it is rewritten */
    qs_choice *choices;
    qs_activation *activations;
    qs_scaled *scaled; /* NULL: nothing is equalized */
    qs_layer *layers;
    bool *decided; /* by node of the graph before rewriting: its weights are quantized */
    size_t layer_count, layer_capacity;
    size_t value_count, node_count; /* before rewriting */
    /* For bias correction (bias.c). */
    const qsim_calibration *means; /* NULL: there is none */
    qs_moments moments;            /* made when the calibration does not have a mean */
    uint8_t *used;                 /* QS_HASH_*, by tensor of `means` */
    size_t corrected;              /* layers */
    qsim_error *error;
} qs_quantizer;

/* Copies and checks options, with defaults filled in (quantizer_options.c). */
int qs_quantizer_options(const qsim_quantize_options *options, qsim_quantize_options *own,
                         qsim_error *error);
/* Initializes q: arrays over a prepared model's graph, choices and layers. */
int qs_quantizer_init(qs_quantizer *q, qsim_model *prepared, qs_graph *g, const qsim_calibration *c,
                      const qsim_quantize_options *options, qsim_error *error);
void qs_quantizer_free(qs_quantizer *q);

/* Checks that every rule matches a node of the model, or of a graph inside of it (select.c). */
int qs_rules_check(const qs_quantizer *q);
int qs_select(qs_quantizer *q);            /* select.c */
int qs_activation_choose(qs_quantizer *q); /* activation.c */
/* Marks the values that get a scale, and the root whose scale each one has. */
void qs_activation_mark(qs_quantizer *q);
/* The result of qs_weight_make for a layer's weights. */
static inline qs_codes qs_layer_codes(const qs_layer *l) {
    return (qs_codes){.data = l->weights,
                      .scale = l->scale,
                      .zero_point = l->zero_point,
                      .count = l->scale_count};
}
/* Quantizes one layer's weights and bias for the root of its input. */
int qs_weight_make(qs_quantizer *q, qs_layer *l, const qs_activation *x); /* weight.c */
int qs_rewrite(qs_quantizer *q);                                          /* rewrite.c */
int qs_rewrite_dynamic(qs_quantizer *q);                                  /* dynamic.c */
int qs_rewrite_weights(qs_quantizer *q);                                  /* weight_only.c */

/* Scale and zero point of 8-bit weights in a range. */
int qs_weight_params(const qs_weight_form *f, float low, float high, float *scale,
                     int32_t *zero_point);
/*
 * Quantizes a constant in that form; axis: of the channels, -1: none; layer: whose weights it is,
 * if sums of its products count, else NULL (initializer.c).
 */
int qs_initializer_quantize(qs_quantizer *q, qs_id value, int32_t axis, qs_weight_form form,
                            const qs_layer *layer, qs_codes *out);

static inline bool qs_is_wide(int32_t dtype) {
    return dtype == QSIM_INT16 || dtype == QSIM_UINT16;
}
/* The 16-bit type of the same sign (activation.c). */
int32_t qs_widened(int32_t dtype);
/* Whether options, rules or recipe ask for 16 bits (activation.c). */
bool qs_wide_wanted(const qsim_quantize_options *o);

/* ---- 4-bit weights (narrow.c) ---- */

static inline bool qs_is_narrow(int32_t dtype) {
    return dtype == QSIM_INT4 || dtype == QSIM_UINT4;
}
/* Refuses options that contradict 4 bits, or 8 (recipe_apply.c). */
int qs_narrow_options(const qsim_quantize_options *o, qsim_error *error);
/* Whether the mode has an operator for a layer with 4 bits. */
bool qs_narrow_fits(const qs_quantizer *q, const qs_layer *l);
/* Whether a layer's weights have 4 bits by default. */
bool qs_narrow_suits(const qs_quantizer *q, const qs_layer *l);
/* Whether options, rules or recipe ask for 4 bits. */
bool qs_narrow_wanted(const qsim_quantize_options *o);
/* The block of a layer's weights if `wanted` is asked for; 0: a channel. */
int32_t qs_narrow_block(const qs_quantizer *q, const qs_layer *l, int32_t wanted);
/* Finds the scales of a layer; fills *out except for the codes, which it allocates. */
int qs_narrow_scales(qs_quantizer *q, const qs_layer *l, qs_codes *out);
/* Rounds the weights with these scales. */
int qs_narrow_round(qs_quantizer *q, const qs_layer *l, qs_codes *codes);
/* Finds the scales and rounds the weights. */
int qs_narrow_make(qs_quantizer *q, const qs_layer *l, qs_codes *out);
/* Replaces a product by a MatMulNBits with that accuracy_level (nbits.c). */
int qs_write_nbits(qs_quantizer *q, const qs_layer *l, const qs_codes *codes, int32_t level);

/* Elements of the node's constants that are stored in 8 bits and read as floats; 0: none
 * (weight_only.c). */
size_t qs_stored_weights(const qs_quantizer *q, qs_id node);

/* ---- recipes (recipe_apply.c) ---- */

/* MISMATCH if the recipe, which may be NULL, is of another model. */
int qs_recipe_check(const qsim_recipe *r, const qsim_model *model, qsim_error *error);
/* Checks that every entry names a layer or tensor of the model, or of a graph inside of it. */
int qs_recipe_check_names(const qs_quantizer *q);
/* Refuses entries that are not supported, and sets the type of activations. */
int qs_recipe_begin(qs_quantizer *q);
/* Refuses an entry with weights that its layer cannot have. */
int qs_recipe_check_weights(const qs_quantizer *q);
/* Sets `forced` of the nodes that the recipe names. */
void qs_recipe_force(qs_quantizer *q);
/* The form of a node's weights, from the recipe, or else from rules and options. */
qs_weight_form qs_recipe_weights(const qs_quantizer *q, qs_id node);
/* Fills a recipe's entry for weights of that form. */
void qs_recipe_form(const qs_weight_form *form, qsim_recipe_entry *e);
/* Whether the recipe gives the value a scale. */
bool qs_recipe_scales(const qs_quantizer *q, qs_id value);
/* Whether a value can be quantized: it is constant, or the recipe or calibration has its range. */
bool qs_recipe_has_range(const qs_quantizer *q, qs_id value);
/* The type of a value, from the recipe or else the options. */
int32_t qs_recipe_type(const qs_quantizer *q, qs_id value);
/* The range of a value, from the recipe or else by the options. */
void qs_recipe_range(const qs_quantizer *q, qs_id value, qs_range *range);
/* Whether it was decided to quantize the node's weights. */
bool qs_recipe_quantized(const qs_quantizer *q, qs_id node);
/* Stores the decisions in `to`. */
int qs_recipe_decide(const qs_quantizer *q, qsim_recipe *to);

/* Reads rule `index` of the options of an older or newer caller. */
int qs_rule_get(const qsim_quantize_options *o, size_t index, qsim_rule *rule, qsim_error *error);

/*
 * The shift of the means of a layer's channels by rounding its weights to `codes` of `dtype`, in
 * the graph's arena; NULL: none, or not known. The layer's inputs are still those of the float
 * graph.
 */
int qs_bias_find(qs_quantizer *q, const qs_layer *l, const qs_codes *codes, int32_t dtype,
                 float **shift);
/* Adds the shift to the layer's bias, or makes one (for a MatMul an Add after it). */
int qs_bias_add(qs_quantizer *q, const qs_layer *l, const float *shift);
/*
 * Whether a node's bias is corrected by means of the calibration, as QSIM_BIAS_CORRECTION_*;
 * DEFAULT: by BatchNormalization's parameters, if at all. Before the graph is rewritten.
 */
int32_t qs_bias_decide(const qs_quantizer *q, qs_id node);
/* The tensor that a layer's weights multiply, and the axis of its channels. */
typedef struct qs_bias_source {
    const char *tensor;
    int32_t axis;
    size_t channels;
    const float *factor; /* of each channel where it is equalized, else NULL */
} qs_bias_source;

/* Finds that tensor; false: the layer's bias cannot be corrected. */
bool qs_bias_input(const qs_quantizer *q, const qs_layer *l, qs_bias_source *out);
/*
 * Fills the shift of each output channel for inputs whose means in the quantized network differ by
 * `drift`: sum W E[x] - Q(W) (E[x] + drift). Called after ranges are chosen; it changes the graph,
 * which cannot be used afterwards.
 */
int qs_bias_measured(qs_quantizer *q, qs_layer *l, const double *mean, const double *drift,
                     float *shift);
/*
 * Refuses a recipe with bias correction on for a layer of whose input the calibration has no means.
 */
int qs_bias_check(const qs_quantizer *q);

/* ---- adding values and nodes (write.c) ---- */

/* base + suffix; NULL: out of memory. */
const char *qs_write_joined(qs_quantizer *q, const char *base, const char *suffix);
/* The same, unique among the graph's values. */
const char *qs_write_name(qs_quantizer *q, const char *base, const char *suffix);
/* Adds a value of that name with a type, and the shape of `like`; < 0: out of memory. */
qs_id qs_write_value(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                     qs_id like);
qs_id qs_write_constant(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                        int32_t rank, const int64_t *dims, const void *data);
/*
 * Adds a constant of zero points, one for each scale, in the type of the quantized values; NULL:
 * zeros.
 */
qs_id qs_write_zero_points(qs_quantizer *q, const char *base, const char *suffix, int32_t dtype,
                           const int32_t *zero_point, int32_t rank, const int64_t *dims);
/* Adds a QuantizeLinear or DequantizeLinear from x to y; zero QS_NONE: without a zero point. */
qs_id qs_write_node(qs_quantizer *q, const char *op, const char *base, qs_id x, qs_id scale,
                    qs_id zero, qs_id y);
/*
 * Adds the codes of a weight or bias and a DequantizeLinear, whose output it returns. Blocks, of
 * matrices and of windows of one tap, are along the axis that is not `axis`.
 */
qs_id qs_write_dequantized(qs_quantizer *q, qs_id original, int32_t dtype, const qs_codes *codes,
                           int32_t axis);
/* Reports the node to the caller's progress; CANCELLED. */
int qs_write_progress(qs_quantizer *q, qs_id node, size_t done, size_t total);
/* Looks up the rows of new nodes, sorts and infers. */
int qs_write_finish(qs_quantizer *q);

/* MISMATCH unless the calibration belongs to the model. */
int qs_calibration_check(const qsim_calibration *c, const qsim_model *model, qsim_error *error);
/*
 * qsim_quantize for a prepared graph and checked options. In modes other than STATIC only the means
 * of the calibration are used, and it may be NULL.
 */
int qs_quantize_prepared(const qsim_model *prepared, const qsim_calibration *c,
                         const qsim_quantize_options *own, qsim_model **out, qsim_error *error);

/* Whether a value is a float and not a constant. */
bool qs_is_activation(const qs_graph *g, qs_id value);
/* Number of leading inputs of a node that are activations or quantized like one. */
int32_t qs_operand_count(const qs_graph *g, const qs_node *n);
/* Keeps layers and what else leads to a Log in float (logarithms.c). */
int qs_logarithms_keep_float(qs_quantizer *q);
/* Whether curves of several nodes are rounded once. */
static inline bool qs_has_curves(const qs_quantizer *q) {
    return q->options.mode == QSIM_MODE_STATIC && !q->options.split_curves;
}
/* Makes the first node of each curve absorb its others (curves.c). */
int qs_curves_find(qs_quantizer *q);
/*
 * The activation that a node, with those that it absorbs, is a function of, element by element;
 * QS_NONE: it is no such function.
 */
qs_id qs_curve_source(const qs_quantizer *q, qs_id node);
/* Narrows the ranges of activations that only curves read (curve_ranges.c). */
int qs_curves_narrow(qs_quantizer *q);
/* Whether a node in integers reads input `index` in them: an operand, of a curve an activation. */
static inline bool qs_reads_codes(const qs_quantizer *q, qs_id node, int32_t index) {
    const qs_node *n = &q->g->nodes[node];
    return q->choices[node].curve != QS_NONE ? qs_is_activation(q->g, n->inputs[index])
                                             : index < qs_operand_count(q->g, n);
}
/* Makes masks of attention, and scores with one, QS_KIND_FLOAT (masks.c). */
int qs_masks_keep_float(qs_quantizer *q);
/* Output 0 of a node, after what it absorbs. */
qs_id qs_choice_output(const qs_quantizer *q, qs_id node);
/* The equalization factor of term `k` of a layer's sums. */
float qs_layer_factor(const qs_quantizer *q, const qs_layer *l, size_t k);
/* Whether a text matches a pattern with *, ?, [a-z] and [!a-z]; \ escapes these. */
bool qs_glob(const char *pattern, const char *text);
/* The name of a node in messages and rules: its own, or that of its first output. */
const char *qs_node_label(const qs_graph *g, qs_id node);

#endif
