/* SPDX-License-Identifier: MIT */
/*
 * qsim/ptq.h - post-training quantization: calibrate, quantize, search. To quantize a float
 * model with `batch_count` batches of its one input:
 *
 *     qsim_calibration_create(model, NULL, &c, &e);
 *     for (size_t i = 0; i < batch_count; i++)
 *         qsim_calibration_feed(c, &batches[i], 1, &e);
 *     qsim_quantize(model, c, NULL, &int8, &e);
 *     qsim_model_save(int8, "int8.onnx", NULL, &e);
 */
#ifndef QSIM_PTQ_H
#define QSIM_PTQ_H

#include <qsim/base.h>
#include <qsim/compare.h>
#include <qsim/model.h>
#include <qsim/quant.h>
#include <qsim/recipe.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration -------------------------------------------------------------------------- */

/*
 * A calibration holds statistics of a model's float activations (after BatchNormalization is
 * folded): for each tensor a histogram, and the means and extremes of its channels. It is filled
 * batch by batch; its memory does not grow with the number of samples. Merging calibrations is
 * exact and does not depend on their order. Each batch runs one branch of an If: if no batch takes
 * a branch, its tensors have no values, and static quantization leaves its layers in float. One
 * thread at a time.
 */
typedef struct qsim_calibration qsim_calibration;

struct qsim_quantize_options;

typedef struct qsim_calibration_options {
    size_t struct_size; /* sizeof(qsim_calibration_options) */
    /*
     * Globs over the names of the tensors to observe, which do not reach inside of If, Loop and
     * Scan. A glob that matches no float activation fails with NOT_FOUND. tensor_count 0: the
     * tensors that get a scale, and the inputs of layers with weights, also inside of If, Loop and
     * Scan.
     */
    const char *const *tensors;
    size_t tensor_count;
    /*
     * If `tensors` is not given: the options that qsim_quantize will be called with. The tensors
     * that these options need are observed (in modes DYNAMIC and WEIGHTS only inputs of layers, for
     * their means). NULL: the tensors that the default options need, in either format and with any
     * QSIM_RULE_INT8, without the tensor between a layer and the ReLU that it absorbs. Used by
     * qsim_calibration_create only.
     */
    const struct qsim_quantize_options *quantize;
    qsim_progress_fn progress; /* called after each tensor; if it cancels, the batch is not added */
    void *progress_user;
    int32_t bins;       /* on either side of zero: a power of two from 128 to 2048; 0: 2048 */
    int32_t batch_axis; /* the axis of the first input that counts samples */
} qsim_calibration_options;

/*
 * Starts a calibration of a float model. `options` may be NULL. The model may be freed afterwards.
 * Errors: UNSUPPORTED (the model is quantized already), those of qsim_model_optimize and
 * qsim_session_create; GRAPH (no float activation has a name); ARGUMENT, NOT_FOUND, VERSION
 * (options).
 */
QSIM_API int qsim_calibration_create(const qsim_model *model,
                                     const qsim_calibration_options *options,
                                     qsim_calibration **out, qsim_error *error);

/*
 * Runs the model on one batch and adds its activations to the statistics. `inputs` are those of
 * qsim_run_execute; the batch axis of the first input counts the samples. After an error the
 * calibration is as it was. Errors: those of qsim_run_execute; VALUE (a tensor has a NaN or an
 * infinity; the message names it), CANCELLED (by the options' progress), STATE (the calibration was
 * loaded from a file).
 */
QSIM_API int qsim_calibration_feed(qsim_calibration *c, const qsim_tensor *inputs,
                                   size_t input_count, qsim_error *error);

/*
 * Adds the statistics of `from` to `into`, exactly: calibrations merged in any order are saved as
 * the same bytes. Errors: MISMATCH (of different models, or with different tensors), NOMEM.
 */
QSIM_API int qsim_calibration_merge(qsim_calibration *into, const qsim_calibration *from,
                                    qsim_error *error);

/*
 * Writes the calibration as text to `path`, atomically. An existing file fails with EXISTS unless
 * `replace` is 1. A user who puts '#' before the line of a tensor keeps that tensor in float:
 *
 *     qsim-calibration 1
 *     model SHA-256
 *     samples 512
 *     tensor "conv1" min max exponent below above count... # decimal range
 *     means "conv1" axis positions sum... # the first means
 *     extremes "conv1" min max min max...
 *
 * `min` and `max` are hexadecimal floats. The histogram's bins are 2^exponent wide; `below` of them
 * are under zero, `above` from zero on. A `means` line has, for each channel along `axis`, the
 * exact sum over all `positions` (pixels of all samples), written -1f3p-12 for -0x1f3 * 2^-12. An
 * `extremes` line has the least and the greatest value of each of these channels, for equalization.
 * Both lines may be missing. Errors: ARGUMENT, EXISTS, IO, NOMEM.
 */
QSIM_API int qsim_calibration_save(const qsim_calibration *c, const char *path, int32_t replace,
                                   qsim_error *error);
/*
 * Loads a saved calibration from a file, or from the `size` bytes at `data`, and checks all of it.
 * `name` is the data's name in messages. `ctx` may be NULL. Errors: FORMAT (the message has the
 * line), LIMIT, IO, NOMEM.
 */
QSIM_API int qsim_calibration_load(qsim_ctx *ctx, const char *path, qsim_calibration **out,
                                   qsim_error *error);
QSIM_API int qsim_calibration_load_memory(qsim_ctx *ctx, const void *data, size_t size,
                                          const char *name, qsim_calibration **out,
                                          qsim_error *error);
QSIM_API void qsim_calibration_free(qsim_calibration *c);

/* The number of samples seen so far, and of tensors observed. */
QSIM_API int64_t qsim_calibration_samples(const qsim_calibration *c);
QSIM_API int32_t qsim_calibration_count(const qsim_calibration *c);
/* Name and observer of tensor `index`, from 0, as long as the calibration; NULL if out of range. */
QSIM_API const char *qsim_calibration_name(const qsim_calibration *c, int32_t index);
QSIM_API const qsim_observer *qsim_calibration_observer(const qsim_calibration *c, int32_t index);
/*
 * Gives the range of the tensor with this name, as qsim_observer_range does. Errors: those of
 * qsim_observer_range; NOT_FOUND (no such tensor, or its line is commented out).
 */
QSIM_API int qsim_calibration_range(const qsim_calibration *c, const char *tensor, int32_t method,
                                    double percentile, int32_t dtype, int32_t flags, float *low,
                                    float *high);

/* The outlier of a tensor: the single sample that widens its range most. */
typedef struct qsim_outlier {
    size_t struct_size; /* sizeof(qsim_outlier), set by the caller */
    int64_t sample;     /* its number, from 0 in the order of feeding */
    float value;        /* its greatest or least value */
    float others;       /* the greatest or least value of all other samples */
    double ratio;       /* width of the range, with 0 in it, divided by that without the sample */
} qsim_outlier;

/*
 * Finds the outlier of tensor `index`. Samples are known for tensors whose outermost axis is the
 * batch; files do not store them. Errors: NOT_FOUND (index, fewer than two samples, loaded from a
 * file), ARGUMENT.
 */
QSIM_API int qsim_calibration_outlier(const qsim_calibration *c, int32_t index,
                                      qsim_outlier *outlier);

/* The SHA-256 of the calibrated model, as qsim_model_hash gives it. */
QSIM_API const char *qsim_calibration_model(const qsim_calibration *c);

/* ---- quantize ----------------------------------------------------------------------------- */

/*
 * Formats of a quantized model. QDQ: pairs of QuantizeLinear and DequantizeLinear around float
 * operators. QOPERATOR: ONNX's operators on integers (QLinearConv, QLinearMatMul, MaxPool,
 * operators that only move values), and QDQ pairs where ONNX has none (Gemm with a bias, Add, Mul,
 * Concat and averages that rescale, a ReLU that the range does not imply).
 */
#define QSIM_FORMAT_QDQ       0
#define QSIM_FORMAT_QOPERATOR 1
#define QSIM_FORMAT_FLOAT     2 /* only of qsim_model_convert_to */
#define QSIM_FORMAT_ONNX      3 /* only of qsim_model_convert_to */

/*
 * Modes of quantization. STATIC: weights, and activations with the ranges of a calibration.
 * DYNAMIC: weights; activations are quantized while the model runs, each with its own range, so no
 * calibration is needed. WEIGHTS: weights only, which are converted back to float when the model
 * runs: the file is smaller, the model not faster. Weights of type FLOAT16 go with it alone.
 */
#define QSIM_MODE_STATIC  0
#define QSIM_MODE_DYNAMIC 1
#define QSIM_MODE_WEIGHTS 2

/*
 * Weight schemes: one scale per output channel or per tensor, symmetric or not. The first three are
 * also the candidates of the search method greedy.
 */
#define QSIM_WEIGHT_CHANNEL_SYMMETRIC 0
#define QSIM_WEIGHT_TENSOR_SYMMETRIC  1
#define QSIM_WEIGHT_TENSOR_ASYMMETRIC 2
/*
 * A scale and a zero point for each channel or block. 8-bit weights of convolutions in mode DYNAMIC
 * are CHANNEL_SYMMETRIC instead, because ONNX Runtime's ConvInteger takes one zero point.
 */
#define QSIM_WEIGHT_CHANNEL_ASYMMETRIC 3

/* The actions of rules on the nodes that they match. */
#define QSIM_RULE_FLOAT 1 /* the node stays float */
#define QSIM_RULE_INT8  2 /* the node is quantized to 8 bits */
#define QSIM_RULE_INT4  3 /* as INT8, with weights of 4 bits if the node's weights can have them */
/* As INT8, but inputs and outputs of the node have 16 bits, signed if activation_type is signed. */
#define QSIM_RULE_INT16 4

/* A rule: what becomes of certain nodes. */
typedef struct qsim_rule {
    size_t struct_size; /* sizeof(qsim_rule), the same in each element of an array */
    /*
     * A glob over names of nodes, or of operators if it matches no node: *, ?, [a-z]; a backslash
     * takes the next character as it is.
     */
    const char *pattern;
    int32_t action; /* QSIM_RULE_* */
    int32_t reserved;
} qsim_rule;

/*
 * Ranges of 8-bit weights. Runtimes that add two products of a uint8 activation and an int8 weight
 * in 16 bits, as ONNX Runtime does on x86 CPUs without VNNI, saturate with all 8 bits. PAIRS, of
 * symmetric int8 weights, raises a scale only as far as no sum of the two that ONNX Runtime adds
 * can saturate: neighbours in the order kernel positions, then input channels, except in depthwise
 * convolutions, ConvInteger and mode WEIGHTS, where it adds none. libqsim's sums never saturate.
 */
#define QSIM_REDUCE_NONE  0
#define QSIM_REDUCE_RANGE 1 /* 7 bits: exact whichever two products are added */
#define QSIM_REDUCE_PAIRS 2

typedef struct qsim_quantize_options {
    size_t struct_size;     /* sizeof(qsim_quantize_options) */
    const qsim_rule *rules; /* the last match wins; a pattern that matches nothing: NOT_FOUND */
    size_t rule_count;
    /*
     * The decisions of a search or of an earlier quantization, or NULL. Layers and tensors that the
     * recipe does not name follow the fields below. Rules override the recipe.
     */
    const qsim_recipe *recipe;
    qsim_recipe *decided; /* on success receives the decision for each layer and tensor; or NULL */
    qsim_progress_fn progress;
    void *progress_user;
    double percentile;            /* of QSIM_METHOD_PERCENTILE; 0: 99.999 */
    int32_t format;               /* QSIM_FORMAT_* */
    int32_t activation_type;      /* QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16; 0: UINT8 */
    int32_t weight_type;          /* QSIM_INT8, _UINT8, _INT4, _UINT4, _FLOAT16; 0: INT8 */
    int32_t weight_scheme;        /* QSIM_WEIGHT_* */
    int32_t activation_symmetric; /* 1: symmetric ranges of activations */
    int32_t method;               /* QSIM_METHOD_* of quant.h; 0: MINMAX */
    int32_t reduce_range;         /* QSIM_REDUCE_*, for other runtimes on CPUs without VNNI */
    int32_t mode;                 /* QSIM_MODE_* */
    int32_t per_row;              /* 1: in mode DYNAMIC each row has its own symmetric scale */
    int32_t no_bias_correction;   /* 1: biases are not corrected, whatever the recipe says */
    /*
     * Of 4-bit weights: the number of neighbours along the input that share a scale: 16, 32, 64,
     * 128 or 256; 0: all of a channel. Not in mode STATIC, whose integer sums have one scale.
     */
    int32_t weight_block;
    int32_t no_gptq; /* 1: 4-bit weights are rounded to the nearest, without GPTQ */
    /*
     * 1: a calibration made with these options also keeps what GPTQ needs for 8-bit layers: for the
     * search method refine, and for recipes with `rounding gptq`.
     */
    int32_t keep_moments;
    int32_t split_curves; /* 1: also rounds between the nodes of a curve, for other runtimes */
} qsim_quantize_options;

/*
 * Makes a quantized copy of a float model. `options` may be NULL. The calibration `c` may be NULL
 * in modes DYNAMIC and WEIGHTS, and in mode STATIC with a recipe that has the range of every
 * tensor. Deterministic: the same model, calibration and options give the same bytes.
 *
 * Mode STATIC uses the calibration's ranges. A model older than opset 13 is upgraded to it,
 * BatchNormalization is folded, layers absorb the ReLU or Clip after them, and operators that only
 * move values have the scale of their input. A channel whose int32 bias would overflow gets a
 * larger weight scale.
 *
 * In modes STATIC and DYNAMIC layers whose results' logarithm is taken, without an activation
 * function between them, stay in float unless a rule or the recipe puts them into integers.
 *
 * Curves, of mode STATIC: several nodes that compute a function of single elements of one tensor,
 * as x * clip(x + 3, 0, 6) / 6, are rounded before the first and behind the last one only, unless
 * split_curves is set; a session runs them as one table of 256 results. The range of a tensor that
 * only curves read, of one node or more, ends where they are flat: where values beyond it change
 * the result by at most a quarter of its step.
 *
 * Bias correction. Rounding the weights shifts the mean of a layer's output; its bias is changed to
 * shift it back, unless no_bias_correction is set: bias[o] += sum (W - Q(W))[o, k] * E[x[k]] (Nagel
 * et al., 2019, section 4.2). The means E[x] of the layer's input are those of the calibration, or
 * else follow from the parameters of the BatchNormalization before the layer; without either the
 * bias is not corrected. A layer without a bias gets one.
 *
 * Mode DYNAMIC replaces Conv, Gemm and MatMul with constant weights by DynamicQuantizeLinear,
 * ConvInteger or MatMulInteger, Cast, Mul and, for a bias, Add, with types that ONNX Runtime's CPU
 * provider runs: weights of convolutions are UINT8, other weights have weight_type. With per_row
 * each row of a product and each image of a convolution is quantized by itself, in standard
 * operators: the result for one sample does not depend on the rest of the batch. Mode WEIGHTS puts
 * DequantizeLinear after the weights of Conv, ConvTranspose, Gemm, MatMul, Gather, RNN, LSTM and
 * GRU. Both modes ignore the options for activations, percentiles and formats, except for the
 * format of 4-bit weights.
 *
 * Weights of 4 bits (weight_type) are those of Conv, Gemm and MatMul. The first and the last layer,
 * and convolutions with groups, keep 8 bits unless a rule or recipe asks for 4. Scales have the
 * least squared error, searched from the greatest magnitude down to half of it. If the calibration
 * was made with these options, errors are weighted by the size of the inputs and rounding is by
 * GPTQ (Frantar et al., 2023), unless no_gptq is set. Gemm, MatMul and 1 x 1 convolutions may have
 * blocks; other convolutions have one scale per channel. The weights are written with
 * DequantizeLinear of opset 21, to which the model is upgraded. Mode STATIC computes them in
 * integers. In mode DYNAMIC, Gemm and MatMul become com.microsoft's MatMulNBits with accuracy_level
 * 4, because ConvInteger has 8 bits only; in mode WEIGHTS with format QOPERATOR they become
 * MatMulNBits with level 0. MatMulNBits always has blocks: of 32 if weight_block is 0.
 *
 * Activations of 16 bits may be set for all tensors (activation_type), for those of a node
 * (QSIM_RULE_INT16), or for single ones (recipe). They are written as QDQ pairs of opset 21, to
 * which the model is upgraded. A layer that reads or writes one computes in float between the
 * pairs, with weights of 8 bits. For 16 bits the methods MSE and ENTROPY give the range of MINMAX.
 *
 * A recipe that an earlier call decided gives the same bytes with the same options and calibration.
 * It gives them without a calibration, too, if it corrects no bias by means. If it does, a
 * calibration with means is needed (ARGUMENT), unless no_bias_correction is set. Everything that a
 * recipe names must exist in the model. If a rule or recipe wants a layer in integers, each tensor
 * of the layer must be in the calibration, or the recipe must keep the tensor in float. Otherwise:
 * NOT_FOUND.
 *
 * Errors: MISMATCH (a calibration or recipe of another model), STATE (a calibration that has seen
 * no data), NOT_FOUND, UNSUPPORTED (the model is quantized already; the recipe wants what this
 * version cannot do), VALUE (NaN or infinite weights), NOMEM, CANCELLED, ARGUMENT, VERSION.
 */
QSIM_API int qsim_quantize(const qsim_model *model, const qsim_calibration *c,
                           const qsim_quantize_options *options, qsim_model **out,
                           qsim_error *error);

/* Describes how one layer would be quantized. */
typedef struct qsim_layer_info {
    size_t struct_size; /* set by the library */
    const char *name;
    const char *op_type;
    int32_t scheme;      /* QSIM_WEIGHT_*; -1: stays float */
    int32_t dtype;       /* of the quantized weights; QSIM_FLOAT: stays float */
    int64_t float_bytes; /* of weights and bias in float */
    int64_t bytes;       /* of weights and bias as quantized */
} qsim_layer_info;

/* Receives one layer, which is valid during the call. A result other than 0: CANCELLED. */
typedef int32_t (*qsim_layer_fn)(void *user, const qsim_layer_info *layer);

/*
 * Calls `layer`, which may be NULL, with each layer that has weights, in the order of execution,
 * and says how qsim_quantize would quantize it with these options (a dry run). `c` may be NULL;
 * with a calibration, a layer with tensors that are not in it stays float. Returns the number of
 * layers or a negative code. Errors: those of qsim_quantize.
 */
QSIM_API int32_t qsim_quantize_layers(const qsim_model *model, const qsim_calibration *c,
                                      const qsim_quantize_options *options, qsim_layer_fn layer,
                                      void *user, qsim_error *error);

/* ---- integer inputs and outputs ----------------------------------------------------------- */

#define QSIM_INTEGER_INPUTS  1
#define QSIM_INTEGER_OUTPUTS 2

/*
 * Makes a model that takes or gives integers where `model`, a quantized model, has float inputs or
 * outputs (`which`: QSIM_INTEGER_*, added up). QuantizeLinear behind inputs and DequantizeLinear
 * before outputs are left out; names stay. Given the integers that QuantizeLinear would make, the
 * result computes what `model` does. A float output of Softmax, perhaps behind operators that only
 * move its elements, gets a QuantizeLinear, of the type that activations of `model` have: in 8 bits
 * an integer stands for 256ths from 0 to 255/256, which is the greatest (in 16 bits for 65536ths).
 * The caller frees the result; `model` may be freed before. Errors:
 * UNSUPPORTED (a float input or output is not quantized or dequantized by one constant scale; the
 * message names the node), STATE (loaded for inspection), ARGUMENT, CANCELLED, LIMIT, NOMEM.
 */
QSIM_API int qsim_model_integer_io(const qsim_model *model, int32_t which, qsim_model **out,
                                   qsim_error *error);

/* ---- another form ------------------------------------------------------------------------- */

/*
 * Makes a model in another form, QSIM_FORMAT_QDQ, QSIM_FORMAT_FLOAT or QSIM_FORMAT_ONNX; the caller
 * frees it, and `model` may be freed before. Its opset is 13 at least.
 *
 * QDQ: each operator on quantized integers becomes the one on floats, between DequantizeLinear of
 * its operands and QuantizeLinear of its result, with the same scales, zero points and integers; an
 * int32 bias has the scale x_scale * w_scale. Operators that only move such integers move floats.
 *
 * FLOAT: besides, weights and other constants are dequantized, and pairs of QuantizeLinear and
 * DequantizeLinear of activations are left out. A range of integers that ends at zero cuts off what
 * is beyond it, as a Relu does that quantizing has absorbed: unless the tensor is never negative, a
 * Clip to that range takes the pair's place. What other ranges, which come from calibration, cut
 * off is not kept.
 *
 * Both: the products of dynamic quantization become products of floats, with dequantized weights;
 * ranges that the model finds while it runs are not kept. If operators of com.microsoft on integers
 * have no form on floats (MatMulNBits, DynamicQuantizeMatMul), all operators of com.microsoft
 * become those of ai.onnx, as with ONNX, and the opset rises as far as they need.
 *
 * ONNX: operators of com.microsoft become operators of ai.onnx that compute the same, those on
 * quantized integers as with QDQ; operators of ai.onnx stay as they are. The opset rises as far as
 * the new operators need: LayerNormalization 17, blocks of weights 21, Attention 23. Results are
 * the same up to rounding; MatMulNBits' accuracy_level, which lets a runtime round activations, is
 * lost, and DynamicQuantizeLSTM does not round its inputs and states. UNSUPPORTED:
 * GroupQueryAttention, and others that no operators replace.
 *
 * Inputs and outputs keep their types: integers are dequantized behind inputs and made before
 * outputs. A float model stays as it is. Errors: UNSUPPORTED (format QSIM_FORMAT_QOPERATOR; a node
 * that has no such form, which the message names, or that is quantized in a graph inside of a
 * node), STATE (loaded for inspection), ARGUMENT, CANCELLED, LIMIT, NOMEM.
 */
QSIM_API int qsim_model_convert_to(const qsim_model *model, int32_t format, qsim_model **out,
                                   qsim_error *error);

/*
 * The scale and the zero point of a tensor of integers, which stand for (integer - zero_point) *
 * scale, as an operator states them that quantizes it, dequantizes it or computes with it, perhaps
 * before or behind others that only move its elements. Errors: NOT_FOUND (no such tensor, or no
 * operator states one constant scale), ARGUMENT.
 */
QSIM_API int qsim_model_scale(const qsim_model *model, const char *tensor, double *scale,
                              int64_t *zero_point, qsim_error *error);

/* ---- search ------------------------------------------------------------------------------- */

/*
 * Scores a candidate of a search: sets `*score`, of which a higher one is better (for instance
 * accuracy in percent), and returns 0. After any other result the search ends with QSIM_E_CANCELLED
 * and keeps the best recipe found so far.
 */
typedef int (*qsim_score_fn)(void *user, const qsim_model *candidate, double *score);

/* Compares a model's outputs with those of the float model, on the inputs of a search. */
typedef struct qsim_judgement {
    size_t struct_size; /* set by the library in attempts, else by the caller */
    double loss;        /* sum of qsim_divergence_loss over the float outputs; 0: no difference */
    double agreement;   /* percent, of the first output; NaN if it has no classes */
    double top1;        /* percent of samples whose label is the top class; NaN without labels */
    double sqnr;        /* of the first output, dB */
    int64_t rows;       /* of the first output: the number of samples if it has classes */
} qsim_judgement;

/* A model that a search has tried. */
typedef struct qsim_attempt {
    size_t struct_size; /* set by the library */
    const char *what;   /* a description in one line */
    const qsim_judgement *judgement;
    const qsim_model *model;   /* the candidate; NULL: the float model */
    const qsim_recipe *recipe; /* the candidate's, to be used with the options of the search */
    int64_t bytes;             /* of its file; 0: not measured (steps of greedy and anneal) */
    double microseconds;       /* median of one execution on one sample, or the sum by `cost` */
    int32_t floats;            /* units kept in float */
    int32_t kept;              /* 1: the best so far */
    int32_t met;               /* 1: within max_drop */
    int32_t mode;              /* QSIM_MODE_*, of the options or chosen by auto */
} qsim_attempt;

/* Receives one attempt, which is valid during the call. A result other than 0: CANCELLED. */
typedef int32_t (*qsim_attempt_fn)(void *user, const qsim_attempt *attempt);

/* The goal of a search: which candidate is the best of those within max_drop. */
#define QSIM_GOAL_ACCURACY 0 /* the one with the least loss */
#define QSIM_GOAL_SIZE     1 /* the smallest */
#define QSIM_GOAL_LATENCY  2 /* the fastest */

/* The types that the method auto may choose for a unit; the last two are for all, in other modes.
 */
#define QSIM_BITS_FLOAT   1
#define QSIM_BITS_8       4  /* always allowed */
#define QSIM_BITS_4       2  /* weights; not of the first and last layer, nor of groups */
#define QSIM_BITS_16      8  /* inputs and outputs of the unit; its weights keep 8 bits */
#define QSIM_BITS_DYNAMIC 16 /* 8 bits in mode DYNAMIC, if the options have mode STATIC */
#define QSIM_BITS_WEIGHTS 32 /* weights of 8 bits in mode WEIGHTS, under the same condition */

/*
 * Sets the microseconds per sample that a unit takes in float and in 8 bits; NaN: not known. With
 * such a function a search gives the same result on every machine.
 */
typedef void (*qsim_cost_fn)(void *user, const char *unit, double *in_float, double *in_integers);

/*
 * The name of search method `index`, from 0; NULL after the last one. Static. Later versions may
 * add methods.
 *
 *   greedy   searches granularity and symmetry of each layer's weights, one layer after the other
 *   anneal   searches percentiles of activations by simulated annealing; the same seed and scores
 *            give the same steps
 *   ranges   searches one method for the ranges of all activations: minmax, mse or percentile 99.99
 *   refine   for mode STATIC. Rounds 8-bit weights by GPTQ, if the calibration has what that needs
 *            (keep_moments); then, layer by layer, corrects the bias by the difference between the
 *            means of the layer's output in the quantized and in the float network. Each change
 *            stays if the loss falls. Needs `inputs`
 *   equalize moves factors between layers, for weights with one scale for all channels. Needs
 *            `inputs`, and a calibration with extremes of channels
 *   smooth   moves factors from a normalization to the products that read it, for activations whose
 *            channels differ in size; keeps the best of three strengths. Needs the same
 *   fallback keeps in float the few units that lose most alone in integers, each an eighth of the
 *            loss or more, at most one unit in eight. Halves the part of the network that loses
 *            most until single units are left; again while the loss falls and max_drop is not met.
 *            Needs `inputs`
 *   correction  turns bias correction off for all layers, unless corrected biases are better by one
 *            standard error; in every mode
 *   auto     does ranges, equalize, smooth, fallback if `bits` allows float, and refine (only its
 *            biases if the calibration has no moments) for half of the time at most. Then, until
 *            max_drop is met, puts units in float or, if `bits` allows it, gives their activations
 *            16 bits, those first that gain most per byte or microsecond. Does the same without
 *            refine, and keeps the better result. If max_drop is still not met, or SIZE or LATENCY
 *            have units in float, tries the other modes that `bits` allows, and then many units at
 *            once, judged by size for ACCURACY, too. For SIZE also gives weights 4 bits, if `bits`
 *            allows it. For other goals keeps units in float that 8 bits make slower. Needs
 *            `inputs`
 *
 * Each candidate is quantized as a whole and judged by its outputs: by the score function if there
 * is one, else by the loss over `inputs`. By that measure the result is never worse than the plain
 * quantization that the search begins with, unless that one exceeds a max_drop that was given. A
 * change by ranges, or by auto before it gives units more bits, stays only if the loss over the
 * samples falls by two standard errors of the mean (which a single sample does not have) or to a
 * quarter.
 */
QSIM_API const char *qsim_search_method(int32_t index);
/* 1 if method `index` needs `inputs`; 0 if a score function is enough. */
QSIM_API int32_t qsim_search_method_needs_inputs(int32_t index);

typedef struct qsim_search_options {
    size_t struct_size;        /* sizeof(qsim_search_options) */
    const char *methods;       /* names of methods, separated by commas, done one after the other */
    const qsim_tensor *inputs; /* inputs of qsim_run_execute, one batch after the other */
    size_t input_count;        /* tensors in `inputs` */
    qsim_score_fn score;       /* NULL: the score is minus the loss over the inputs */
    void *score_user;
    qsim_progress_fn progress;
    void *progress_user;
    uint64_t seed;           /* of anneal */
    double start_percentile; /* of anneal: a second start beside the plain one; 0: none */
    double float_score;      /* the score of the float model */
    /*
     * The percent that a candidate may lose. anneal with a score function: no step goes further
     * below float_score; 0: 2. auto: percent of top-1 if there are labels, else of agreement with
     * the float model; for outputs without classes, of 100 sqrt(loss); 0: 1.
     */
    double max_drop;
    int32_t steps;            /* of anneal; 0: 200 */
    int32_t bits;             /* of auto: QSIM_BITS_*, added up; 0: QSIM_BITS_FLOAT */
    int32_t inputs_per_batch; /* tensors of one batch; 0: 1 */
    int32_t goal;             /* QSIM_GOAL_* */
    const int64_t *labels;    /* the class of each row of the first output, < 0: none; or NULL */
    size_t label_count;
    double seconds; /* the search ends after these, with the best result so far; 0: no limit */
    qsim_attempt_fn attempt;
    void *attempt_user;
    qsim_cost_fn cost; /* NULL: times are measured */
    void *cost_user;
    int32_t no_classes; /* 1: outputs are not scores of classes: QSIM_ANSWER_VALUES */
    int32_t reserved;
} qsim_search_options;

/*
 * Searches for the best quantization. It begins with the options `base` and their recipe, and
 * writes its decisions to `found`, a recipe of the caller. Quantize with `base` and this recipe to
 * get the model; if `bits` allows other modes, in that of the last attempt that was kept. `c` is
 * the calibration; `score`, which may be NULL, is set to the score of the result. If the search is
 * cancelled, `found` has the best recipe so far; if `seconds` end it, too, and the result is
 * QSIM_OK. Errors: those of qsim_quantize; ARGUMENT (no such method, neither a score function nor
 * inputs, labels that do not fit), UNSUPPORTED (no float output to judge), CANCELLED.
 */
QSIM_API int qsim_search(const qsim_model *model, const qsim_calibration *c,
                         const qsim_quantize_options *base, const qsim_search_options *options,
                         qsim_recipe *found, double *score, qsim_error *error);

/* ---- sensitivity -------------------------------------------------------------------------- */

/*
 * What quantizing one unit costs and gains. A unit is an operator that runs in integers, together
 * with the activation or bias after it that it absorbs, or a curve.
 */
typedef struct qsim_unit {
    size_t struct_size; /* set by the library */
    const char *name;   /* of the operator, as rules and recipes name it */
    const char *op_type;
    const char *takes;   /* what it absorbs: activation, bias, last node of a curve; or NULL */
    double loss_alone;   /* the loss if only this unit is in integers */
    double loss_gained;  /* the decrease of the loss if only this unit is in float */
    double agreement;    /* percent, if only this unit is in integers; NaN: no classes */
    double sqnr;         /* dB at the unit's output in the quantized network: predicts little */
    int64_t float_bytes; /* of weights and bias in float */
    int64_t bytes;       /* of weights and bias as quantized */
    double float_us;     /* microseconds of its steps in float, per sample; NaN: part of another */
    double us;           /* the same in integers */
    int32_t before_knee; /* 1: one of the few units that gain most */
    int32_t reserved;
} qsim_unit;

/* Receives one unit, which is valid during the call. A result other than 0: CANCELLED. */
typedef int32_t (*qsim_unit_fn)(void *user, const qsim_unit *unit);

/*
 * Measures every unit of a static quantization by the loss over the inputs of `options`, and calls
 * `unit` with each, the greatest gain first. Of `options`, methods, score and goal are not used.
 * The knee of before_knee is where the curve of summed gains is furthest above the straight line to
 * its end. `plain`, which may be NULL, is set to the judgement of the model with all units in
 * integers. A cancelled analysis reports the units measured so far. Returns the number of units or
 * a negative code, those of qsim_search.
 */
QSIM_API int32_t qsim_sensitivity(const qsim_model *model, const qsim_calibration *c,
                                  const qsim_quantize_options *base,
                                  const qsim_search_options *options, qsim_unit_fn unit, void *user,
                                  qsim_judgement *plain, qsim_error *error);

#ifdef __cplusplus
}
#endif
#endif
