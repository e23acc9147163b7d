/* SPDX-License-Identifier: MIT */
/*
 * qsim/ptq.h - post-training quantization: calibrate, quantize, search, compare.
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
#include <qsim/model.h>
#include <qsim/quant.h>
#include <qsim/recipe.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- calibration -------------------------------------------------------------------------- */

/*
 * Statistics of a model's float activations (with BatchNormalization folded): histograms, means and
 * extremes of channels, filled batch by batch. Memory does not grow with the number of samples;
 * merging is exact and does not depend on the order. Of an If a run takes one branch, and so does a
 * batch here: tensors of a branch that no sample takes have no values, and static quantization
 * leaves its layers in float. One thread at a time.
 */
typedef struct qsim_calibration qsim_calibration;

struct qsim_quantize_options;

typedef struct qsim_calibration_options {
    size_t struct_size; /* sizeof(qsim_calibration_options) */
    /*
     * Globs over the names of the tensors to observe. None: the tensors that get a scale, and those
     * that layers with weights read, also inside of If, Loop and Scan, which globs do not reach. A
     * glob that matches no float activation gives NOT_FOUND.
     */
    const char *const *tensors;
    size_t tensor_count;
    /*
     * Without `tensors`: the options of qsim_quantize whose tensors are observed (in modes DYNAMIC
     * and WEIGHTS the layers' inputs alone, for their means). NULL: the tensors that the default
     * options, either format and any QSIM_RULE_INT8 need; not the tensor between a layer and the
     * ReLU that it absorbs. Read during the call alone.
     */
    const struct qsim_quantize_options *quantize;
    qsim_progress_fn progress; /* after each tensor read; cancels the batch: nothing is recorded */
    void *progress_user;
    int32_t bins;       /* on either side of zero: a power of two from 128 to 2048; 0: 2048 */
    int32_t batch_axis; /* the axis of the first input that counts samples */
} qsim_calibration_options;

/*
 * Starts a calibration of an FP32 model. `options` may be NULL. The model may be freed afterwards.
 * Errors: UNSUPPORTED (the model is quantized already), those of qsim_model_optimize and
 * qsim_session_create; GRAPH (no float activation has a name); ARGUMENT, NOT_FOUND, VERSION
 * (options).
 */
QSIM_API int qsim_calibration_create(const qsim_model *model,
                                     const qsim_calibration_options *options,
                                     qsim_calibration **out, qsim_error *error);

/*
 * Runs one batch and observes activations as they are made: in the memory of a run, but for the
 * histograms. The batch axis of the first input counts the samples. Data with a NaN or infinity is
 * refused with QSIM_E_VALUE, naming the tensor; CANCELLED by the options' progress. After any error
 * the calibration is as it was. One that was loaded from a file takes no data: QSIM_E_STATE.
 */
QSIM_API int qsim_calibration_feed(qsim_calibration *c, const qsim_tensor *inputs,
                                   size_t input_count, qsim_error *error);

/*
 * Adds the statistics of `from` to `into`, exactly: parts merged in any order are saved as the same
 * bytes. Both must be of one model and hold the same tensors (QSIM_E_MISMATCH).
 */
QSIM_API int qsim_calibration_merge(qsim_calibration *into, const qsim_calibration *from,
                                    qsim_error *error);

/*
 * Text, one tensor a line; a line commented out with '#' keeps its tensor in float:
 *
 *     qsim-calibration 1
 *     model SHA-256
 *     samples 512
 *     tensor "conv1" min max exponent below above count... # decimal range
 *     means "conv1" axis positions sum... # the first means
 *     extremes "conv1" min max min max...
 *
 * min and max are hexadecimal floats; bins are 2^exponent wide, `below` of them under zero and
 * `above` from zero on. `means` lines may be missing: sums over all positions (pixels of all
 * samples) of each channel along `axis`, exact, as -1f3p-12 for -0x1f3 * 2^-12. So may `extremes`,
 * the least and the greatest value of each of these channels, which equalizing needs. Written
 * atomically; an existing file gives QSIM_E_EXISTS unless `replace`. Other errors: ARGUMENT, IO,
 * NOMEM.
 */
QSIM_API int qsim_calibration_save(const qsim_calibration *c, const char *path, int32_t replace,
                                   qsim_error *error);
/*
 * Loads what was saved. Everything in the file is checked: QSIM_E_FORMAT, with the line; LIMIT.
 * `name` is what messages call the data. `ctx` may be NULL.
 */
QSIM_API int qsim_calibration_load(qsim_ctx *ctx, const char *path, qsim_calibration **out,
                                   qsim_error *error);
QSIM_API int qsim_calibration_load_memory(qsim_ctx *ctx, const void *data, size_t size,
                                          const char *name, qsim_calibration **out,
                                          qsim_error *error);
QSIM_API void qsim_calibration_free(qsim_calibration *c);

/* Samples seen so far, and tensors observed. */
QSIM_API int64_t qsim_calibration_samples(const qsim_calibration *c);
QSIM_API int32_t qsim_calibration_count(const qsim_calibration *c);
/* Name of a tensor by index; NULL out of range. */
QSIM_API const char *qsim_calibration_name(const qsim_calibration *c, int32_t index);
/* Its observer, valid as long as the calibration; NULL out of range. */
QSIM_API const qsim_observer *qsim_calibration_observer(const qsim_calibration *c, int32_t index);
/* qsim_observer_range of a tensor by name. Errors: also NOT_FOUND (no such tensor, commented out).
 */
QSIM_API int qsim_calibration_range(const qsim_calibration *c, const char *tensor, int32_t method,
                                    double percentile, int32_t dtype, int32_t flags, float *low,
                                    float *high);

/* The sample that alone widens a tensor's range most. */
typedef struct qsim_outlier {
    size_t struct_size;
    int64_t sample; /* counted from 0 in the order of feeding */
    float value;    /* its extreme */
    float others;   /* the extreme of all others on the same side */
    double ratio;   /* width of the range (with 0 in it) with the sample over that without it */
} qsim_outlier;

/*
 * Finds the outlier of one tensor. Samples are told apart where they are the outermost axis; files
 * do not keep them. Errors: NOT_FOUND (index, fewer than two samples, loaded from a file),
 * ARGUMENT.
 */
QSIM_API int qsim_calibration_outlier(const qsim_calibration *c, int32_t index,
                                      qsim_outlier *outlier);

/* SHA-256 of the model that was calibrated, as qsim_model_hash gives it. */
QSIM_API const char *qsim_calibration_model(const qsim_calibration *c);

/* ---- quantize ----------------------------------------------------------------------------- */

/*
 * QuantizeLinear/DequantizeLinear pairs around float operators; or the integer operators of ONNX
 * (QLinearConv, QLinearMatMul, MaxPool and movement on integers), with pairs where ONNX has none:
 * Gemm with a bias, Add, Mul, Concat and averages with rescaling, a ReLU that the range does not
 * imply.
 */
#define QSIM_FORMAT_QDQ       0
#define QSIM_FORMAT_QOPERATOR 1

/*
 * Modes. STATIC: weights and activations are quantized now, the latter with the ranges of a
 * calibration. DYNAMIC: weights now, each activation by its own range while the model runs; needs
 * no calibration. WEIGHTS: weights alone, which are floats again when the model runs: smaller, not
 * faster.
 */
#define QSIM_MODE_STATIC  0
#define QSIM_MODE_DYNAMIC 1
#define QSIM_MODE_WEIGHTS 2

/* Weight schemes; also the candidates of the greedy search. */
#define QSIM_WEIGHT_CHANNEL_SYMMETRIC 0
#define QSIM_WEIGHT_TENSOR_SYMMETRIC  1
#define QSIM_WEIGHT_TENSOR_ASYMMETRIC 2
/*
 * A zero point for each channel or block, too. 8-bit weights of convolutions in mode DYNAMIC are
 * CHANNEL_SYMMETRIC instead: ONNX Runtime's ConvInteger takes one zero point. No candidate of a
 * search.
 */
#define QSIM_WEIGHT_CHANNEL_ASYMMETRIC 3

/* The action of a rule on the nodes that it matches. */
#define QSIM_RULE_FLOAT 1
#define QSIM_RULE_INT8  2
#define QSIM_RULE_INT4  3 /* as INT8, with weights in 4 bits where the node has such weights */
/* As INT8, but all that the node reads and makes has 16 bits, signed where activation_type is. */
#define QSIM_RULE_INT16 4

typedef struct qsim_rule {
    size_t struct_size;  /* sizeof(qsim_rule), the same in each element: the array's stride */
    const char *pattern; /* a glob over node names, or over operators where no name matches */
    int32_t action;      /* QSIM_RULE_* */
    int32_t reserved;
} qsim_rule;

typedef struct qsim_quantize_options {
    size_t struct_size;     /* sizeof(qsim_quantize_options) */
    const qsim_rule *rules; /* the last match wins; a pattern that matches nothing: NOT_FOUND */
    size_t rule_count;
    /*
     * The decisions of a search or of an earlier quantization, or NULL. Layers and tensors that it
     * does not name follow the fields below; rules override it.
     */
    const qsim_recipe *recipe;
    qsim_recipe *decided; /* gets the decision for each layer and tensor, on success; or NULL */
    qsim_progress_fn progress;
    void *progress_user;
    double percentile;            /* for QSIM_METHOD_PERCENTILE; 0: 99.999 */
    int32_t format;               /* QSIM_FORMAT_* */
    int32_t activation_type;      /* QSIM_UINT8 (0: this), QSIM_INT8, QSIM_UINT16, QSIM_INT16 */
    int32_t weight_type;          /* QSIM_INT8 (0: this), QSIM_UINT8, QSIM_INT4, QSIM_UINT4 */
    int32_t weight_scheme;        /* QSIM_WEIGHT_* */
    int32_t activation_symmetric; /* 1: symmetric ranges */
    int32_t method;               /* QSIM_METHOD_* of quant.h; 0: min/max */
    int32_t reduce_range;         /* 1: 7-bit weights, for other runtimes on CPUs without VNNI */
    int32_t mode;                 /* QSIM_MODE_* */
    int32_t per_row; /* 1, DYNAMIC: each row of a product has a scale of its own (symmetric) */
    int32_t no_bias_correction; /* 1: biases stay as they are, whatever the recipe says */
    /*
     * Of 4-bit weights: how many neighbours along the input share a scale, 16, 32, 64, 128 or 256;
     * 0: all of a channel. Not in mode STATIC, whose integer sums have one scale.
     */
    int32_t weight_block;
    int32_t no_gptq; /* 1: each 4-bit weight is rounded to the nearest */
    /* 1: a calibration made with these options keeps what GPTQ needs of the 8-bit layers, too: for
     * the search method refine, and recipes that say `rounding gptq`. */
    int32_t keep_moments;
    int32_t reserved;
} qsim_quantize_options;

/*
 * A quantized copy of an FP32 model: static quantization with the calibration's ranges. The model
 * is upgraded to opset 13 where it is older, BatchNormalization is folded, ReLU and Clip are
 * absorbed, movement operators share their input's scale, and channels whose int32 bias would
 * overflow get a larger weight scale. Deterministic: same inputs, same bytes.
 *
 * Rounding weights moves the mean of what a layer computes; its bias takes that back, unless
 * no_bias_correction is set: bias[o] += sum (W - Q(W))[o, k] * E[x[k]], with the means of the
 * layer's input from the calibration (modes DYNAMIC and WEIGHTS: if there is one), else from the
 * parameters of the BatchNormalization before it. Where neither says them nothing is corrected. A
 * layer without a bias gets one. (Nagel et al., 2019, section 4.2.)
 *
 * Mode DYNAMIC needs no calibration (c may be NULL): Conv, Gemm and MatMul of constant weights
 * become DynamicQuantizeLinear, ConvInteger or MatMulInteger, Cast, Mul and, for a bias, Add, in
 * types that ONNX Runtime's CPU provider runs: the weights of a convolution are u8, the others as
 * asked for. With per_row each row of a product, and each image of a convolution, is quantized by
 * itself in standard operators, so that an answer does not depend on what else is in the batch.
 * Mode WEIGHTS puts DequantizeLinear after the weights of Conv, ConvTranspose, Gemm, MatMul,
 * Gather, RNN, LSTM and GRU. Options for activations, percentiles and formats do not matter to
 * either, but for the format of 4-bit weights, below.
 *
 * With a weight_type of 4 bits the weights of Conv, Gemm and MatMul have 4, but for the first and
 * the last layer and convolutions with groups, which keep 8 unless a rule or recipe says 4; all
 * else has 8. Scales are those of least squared error, from the greatest magnitude down to half of
 * it; where the calibration was made with these options, errors count by how large the inputs are,
 * and rounding is GPTQ's (Frantar et al., 2023), unless no_gptq is set. Blocks are those of Gemm,
 * MatMul and 1 x 1 convolutions; of other windows a channel has one scale. Written as
 * DequantizeLinear of opset 21, to which the model is upgraded. Mode STATIC computes them in
 * integers. Mode DYNAMIC, which has ConvInteger of 8 bits only, makes com.microsoft's MatMulNBits
 * with accuracy_level 4 of Gemm and MatMul; mode WEIGHTS with format QOPERATOR makes it with level
 * 0. MatMulNBits has blocks: of 32, if weight_block is 0.
 *
 * Activations of 16 bits, of all tensors (activation_type), of a node's (QSIM_RULE_INT16) or of
 * some (recipe), are pairs of opset 21, to which the model is upgraded. A layer that reads or makes
 * one is computed in floats between them, with its weights in 8 bits; ranges by mse and entropy are
 * those of minmax.
 *
 * With a recipe that names the range of every tensor, c may be NULL in mode STATIC, too. With one
 * that an earlier call decided, the same options and calibration give the same bytes; so does none,
 * where the recipe corrects no bias by means. A layer that the recipe corrects needs means: without
 * a calibration that has them it is refused (ARGUMENT), unless no_bias_correction is set. What a
 * recipe names must be there, and a layer that a rule or the recipe wants in integers has tensors
 * that were calibrated or that the recipe keeps in float: NOT_FOUND.
 *
 * Errors: MISMATCH (calibration or recipe of another model), STATE (a calibration that has seen no
 * data), NOT_FOUND, UNSUPPORTED (the model is already quantized; the recipe wants what this version
 * cannot do, by name), VALUE (NaN or infinite weights), NOMEM, CANCELLED, ARGUMENT, VERSION.
 */
QSIM_API int qsim_quantize(const qsim_model *model, const qsim_calibration *c,
                           const qsim_quantize_options *options, qsim_model **out,
                           qsim_error *error);

/* How one layer would be quantized; `struct_size` is set by the library. */
typedef struct qsim_layer_info {
    size_t struct_size;
    const char *name;
    const char *op_type;
    int32_t scheme; /* QSIM_WEIGHT_*, -1: stays float */
    int32_t dtype;  /* of the weights as written; QSIM_FLOAT: stays float */
    int64_t float_bytes;
    int64_t bytes; /* weights and bias as written */
} qsim_layer_info;

/* Called with each layer; `layer` and its texts are valid during the call. Non-zero: CANCELLED. */
typedef int32_t (*qsim_layer_fn)(void *user, const qsim_layer_info *layer);

/*
 * Layers with weights of an FP32 model under these options (a dry run), in the order of execution.
 * With a calibration (which may be NULL) a layer whose tensors it does not know stays float.
 * Returns their number or a negative code; `layer` may be NULL. Errors: those of qsim_quantize.
 */
QSIM_API int32_t qsim_quantize_layers(const qsim_model *model, const qsim_calibration *c,
                                      const qsim_quantize_options *options, qsim_layer_fn layer,
                                      void *user, qsim_error *error);

/* ---- search ------------------------------------------------------------------------------- */

/*
 * Scores a candidate: sets *score (higher is better, accuracy in percent for instance). Non-zero
 * stops the search with QSIM_E_CANCELLED after keeping the best so far.
 */
typedef int (*qsim_score_fn)(void *user, const qsim_model *candidate, double *score);

/*
 * A candidate's answers compared with the float model's, on the inputs of a search.
 */
typedef struct qsim_judgement {
    size_t struct_size;
    double loss;      /* sum of qsim_divergence_loss over the float outputs; 0: no difference */
    double agreement; /* percent, of the first output; NaN if it has no classes */
    double top1;      /* percent of samples that the labels say are right; NaN without labels */
    double sqnr;      /* of the first output, dB */
    int64_t rows;     /* of the first output: samples, if they are classified */
} qsim_judgement;

/* A model that a search has tried; `struct_size` is set by the library. */
typedef struct qsim_attempt {
    size_t struct_size;
    const char *what; /* one line */
    const qsim_judgement *judgement;
    const qsim_model *model;   /* the candidate; NULL: the float model itself */
    const qsim_recipe *recipe; /* the candidate's, for the options of the search */
    int64_t bytes;             /* of its file; 0: not measured, as the steps of greedy and anneal */
    double microseconds;       /* median of one execution on one sample, or the sum by `cost` */
    int32_t floats;            /* units kept in float */
    int32_t kept;              /* 1: the best so far */
    int32_t met;               /* 1: within max_drop */
    int32_t reserved;
} qsim_attempt;

/* Called with each attempt, which is valid during the call. Non-zero: CANCELLED. */
typedef int32_t (*qsim_attempt_fn)(void *user, const qsim_attempt *attempt);

/* The preference of a search among candidates within max_drop. */
#define QSIM_GOAL_ACCURACY 0 /* the least loss */
#define QSIM_GOAL_SIZE     1 /* the fewest bytes */
#define QSIM_GOAL_LATENCY  2 /* the least time */

/* The types that auto may choose from for a unit. */
#define QSIM_BITS_FLOAT 1
#define QSIM_BITS_8     4 /* always allowed */
#define QSIM_BITS_4     2 /* of weights; not the first and the last layer, nor groups */
#define QSIM_BITS_16    8 /* of activations: what the unit reads and makes; weights keep 8 */

/*
 * Sets the microseconds that a unit takes per sample, in float and in 8 bits; NaN: not known. With
 * it a search gives the same answer on every machine.
 */
typedef void (*qsim_cost_fn)(void *user, const char *unit, double *in_float, double *in_integers);

/*
 * A method of searching, by index from 0: its name; NULL at the end of the list. Static. More may
 * be added.
 *
 *   greedy   granularity and symmetry of each layer's weights, layer by layer in order
 *   anneal   percentiles of activations, by simulated annealing, seeded: the same walk wherever the
 *            scores are the same
 *   ranges   one of minmax, mse and percentile 99.99 for all activations
 *   refine   of static quantization: weights in 8 bits rounded by GPTQ, where the calibration has
 *            what that needs (keep_moments); then, layer by layer, a bias that takes back what the
 *            means of the layer's outputs are off by in the quantized network. Each stays where the
 *            loss falls. Needs `inputs`
 *   equalize factors moved between layers, for weights with one scale for all channels. Needs
 *            `inputs`, and a calibration with the channels' extremes
 *   smooth   factors moved from a normalization to the products that read it, for activations whose
 *            channels differ in size; the best of three strengths is kept. Needs the same
 *   correction  the biases of all layers unchanged, unless the corrected ones are better by one
 *            standard error; in every mode
 *   auto     ranges; equalize; smooth; refine (biases alone if the calibration has no moments);
 *            then units in float or, if `bits` allows them, with activations of 16 bits, those
 *            first that gain most per byte or microsecond, until max_drop is met; if it is not, the
 *            same without refine, and the better of the two is kept; for the goal size
 *            also weights in 4 bits, if `bits` allows them; for the other goals also units in float
 *            that 8 bits make slower. Needs `inputs`
 *
 * Candidates are quantized whole and judged by their answers: by the score function if there is
 * one, else by the loss over `inputs`. By that measure the result is never worse than the plain
 * quantization that the search begins with, unless that one exceeds a max_drop that was given. What
 * ranges and auto, before it gives units more bits, change stays only where the loss of samples
 * falls by two standard errors of the mean, which one sample does not have, or to a quarter.
 */
QSIM_API const char *qsim_search_method(int32_t index);
/* 1 if that method needs `inputs`, 0 if a score function does as well. */
QSIM_API int32_t qsim_search_method_needs_inputs(int32_t index);

typedef struct qsim_search_options {
    size_t struct_size;
    const char *methods;       /* names, separated by commas: one after the other */
    const qsim_tensor *inputs; /* one batch after the other, as qsim_run_execute takes it */
    size_t input_count;        /* tensors in `inputs` */
    qsim_score_fn score;       /* NULL: minus the loss over the inputs */
    void *score_user;
    qsim_progress_fn progress;
    void *progress_user;
    uint64_t seed;
    double start_percentile; /* of annealing: a start beside the plain one; 0: none */
    double float_score;      /* of the score function for the FP32 model */
    /*
     * Percent that a candidate may lose. Annealing with a score function: no step leads further
     * below float_score; 0: 2. auto: of top-1, if there are labels; else of agreement with the
     * float model; for outputs without classes, of 100 sqrt(loss); 0: 1.
     */
    double max_drop;
    int32_t steps;            /* of annealing; 0: 200 */
    int32_t bits;             /* of auto: QSIM_BITS_*, added up; 0: QSIM_BITS_FLOAT */
    int32_t inputs_per_batch; /* tensors of one batch; 0: 1 */
    int32_t goal;             /* QSIM_GOAL_* */
    const int64_t *labels;    /* of each row of the first output, < 0: none; or NULL */
    size_t label_count;
    double seconds; /* after which the best so far is the answer; 0: no limit */
    qsim_attempt_fn attempt;
    void *attempt_user;
    qsim_cost_fn cost; /* NULL: measured */
    void *cost_user;
} qsim_search_options;

/*
 * Searches, beginning with `base` and its recipe, and writes its decisions to `found`, for
 * qsim_quantize_options.recipe with the other options of `base`. `score` (may be NULL) is set to
 * the score of the result; without a score function that is minus the loss. A cancelled search
 * leaves the best recipe so far, and so does one that `seconds` end, which is QSIM_OK. Errors:
 * those of qsim_quantize; ARGUMENT (no such method, neither a score function nor inputs, labels
 * that do not fit), UNSUPPORTED (no float output to judge), CANCELLED.
 */
QSIM_API int qsim_search(const qsim_model *model, const qsim_calibration *c,
                         const qsim_quantize_options *base, const qsim_search_options *options,
                         qsim_recipe *found, double *score, qsim_error *error);

/* ---- sensitivity -------------------------------------------------------------------------- */

/*
 * The costs of a unit: an operator that runs in integers, with the activation or bias after it that
 * is part of it. `struct_size` is set by the library.
 */
typedef struct qsim_unit {
    size_t struct_size;
    const char *name; /* the operator's, as rules and recipes call it */
    const char *op_type;
    const char *takes;   /* the activation or bias that is part of the unit; NULL: none */
    double loss_alone;   /* with this unit alone in integers, all others in float */
    double loss_gained;  /* decrease of the loss if this unit alone is kept in float */
    double agreement;    /* with this unit alone in integers, percent; NaN: no classes */
    double sqnr;         /* dB at the unit's output in the quantized network: predicts little */
    int64_t float_bytes; /* of weights and bias */
    int64_t bytes;       /* the same as written */
    double float_us;     /* microseconds of its steps for one sample; NaN: in another unit's */
    double us;           /* the same in integers */
    int32_t before_knee; /* 1: among the few that gain the most */
    int32_t reserved;
} qsim_unit;

/* Called with each unit; valid during the call. Non-zero: CANCELLED. */
typedef int32_t (*qsim_unit_fn)(void *user, const qsim_unit *unit);

/*
 * Measures every unit of a static quantization by the loss over the inputs of `options` (whose
 * methods, score and goal do not matter), and calls `unit` with each, the greatest gain first. The
 * knee is where the curve of the sum of gains is furthest above the straight line to its end.
 * `plain` (may be NULL) is set to the judgement of the model with all units in integers. A
 * cancelled analysis reports the units measured so far. Returns the number of units or a negative
 * code: those of qsim_search.
 */
QSIM_API int32_t qsim_sensitivity(const qsim_model *model, const qsim_calibration *c,
                                  const qsim_quantize_options *base,
                                  const qsim_search_options *options, qsim_unit_fn unit, void *user,
                                  qsim_judgement *plain, qsim_error *error);

/* ---- compare ------------------------------------------------------------------------------ */

/*
 * How far `b` is from the reference `a`, accumulated over any number of tensors: zero it, set
 * struct_size, add.
 */
typedef struct qsim_metrics {
    size_t struct_size;
    uint64_t count;   /* elements seen */
    uint64_t outside; /* elements with |a - b| > atol + rtol |a| */
    uint64_t rows;    /* rows of the last axis seen */
    uint64_t agree;   /* rows with the same arg-max; a row of NaN alone agrees with none */
    double max_abs, max_rel;
    double signal, noise; /* sums of a^2 and (a - b)^2 */
    double dot, norm_b;   /* sums of a b and b^2 */
    /*
     * Elements that are NaN in both count as equal and are left out of the sums; an element that is
     * NaN in one is never close and makes the sums NaN. Check these counts first.
     */
    uint64_t nan_both, nan_one;
    uint64_t worst;          /* index over all tensors of the element with max_abs */
    double worst_a, worst_b; /* its value in each */
} qsim_metrics;

/*
 * Adds a pair of float or integer tensors of equal shape. Fixed order: same sums everywhere.
 * Errors: ARGUMENT, DTYPE, SHAPE, LIMIT; nothing is added then.
 */
QSIM_API int qsim_metrics_add(qsim_metrics *m, const qsim_tensor *a, const qsim_tensor *b,
                              double rtol, double atol);
/* 10 log10(signal / noise); +infinity when noise is 0; NaN, as the cosine, where all is NaN. */
QSIM_API double qsim_metrics_sqnr(const qsim_metrics *m);
QSIM_API double qsim_metrics_cosine(const qsim_metrics *m);

/* Called with a tensor's name in both models, valid as long as they are. Non-zero: CANCELLED. */
typedef int32_t (*qsim_pair_fn)(void *user, const char *tensor, const char *counterpart);

/*
 * Tensors that nodes of a float model compute and that its quantized form has as floats, too, in
 * the order of execution: dequantized (NAME_DequantizeLinear_Output) or, where it computes them in
 * floats, under their own names. A tensor that exists inside an integer operator alone has no
 * counterpart. Returns their number or a negative code; `pair` may be NULL. Errors: ARGUMENT,
 * CANCELLED, NOMEM.
 */
QSIM_API int32_t qsim_model_pairs(const qsim_model *model, const qsim_model *quantized,
                                  qsim_pair_fn pair, void *user, qsim_error *error);

/* The kind of a network's output, which decides how the loss of a divergence is measured. */
#define QSIM_ANSWER_UNKNOWN       0 /* the first tensor that is added decides */
#define QSIM_ANSWER_PROBABILITIES 1 /* rows of numbers >= 0 that add up to 1 */
#define QSIM_ANSWER_LOGITS        2 /* [samples, classes], axes of 1 behind; or qsim_answer_of */
#define QSIM_ANSWER_VALUES        3 /* anything else: boxes, pictures, states */

/*
 * How far the answers `b` of a network are from those of the reference, `a`, over any number of
 * batches: zero it, set struct_size, add.
 */
typedef struct qsim_divergence {
    size_t struct_size;
    uint64_t rows;        /* seen, along the last axis that is longer than 1 */
    uint64_t agree;       /* those with the same arg-max */
    uint64_t skipped;     /* those with a NaN or infinity in the reference; not in `rows` */
    double kl;            /* sum of KL(a || b) = sum p ln(p / q) over the rows, in nats */
    double signal, noise; /* sums of a^2 and (a - b)^2 */
    int32_t answer;       /* QSIM_ANSWER_* */
    int32_t reserved;
} qsim_divergence;

/*
 * The kind of an output by its name: LOGITS if the name ends in "logits" and the output has three
 * axes, [samples, positions, classes], as in language models; else UNKNOWN. For
 * qsim_divergence.answer, since numbers alone do not tell scores of words from hidden states.
 */
QSIM_API int32_t qsim_answer_of(const char *output, int32_t rank);

/*
 * Adds a pair of float tensors of equal shape. Rows of logits become distributions by Softmax;
 * probabilities below 1e-12 count as that. The same sums everywhere. Errors: ARGUMENT, DTYPE,
 * SHAPE, LIMIT; nothing is added then.
 */
QSIM_API int qsim_divergence_add(qsim_divergence *d, const qsim_tensor *a, const qsim_tensor *b);
/*
 * One number, 0 for equal answers: the mean of kl over the rows, for VALUES noise / signal.
 * Infinity where `b` has a NaN that the reference does not have; NaN where nothing was seen.
 */
QSIM_API double qsim_divergence_loss(const qsim_divergence *d);
/* Percent of rows with the same arg-max; NaN for VALUES, and where nothing was seen. */
QSIM_API double qsim_divergence_agreement(const qsim_divergence *d);

/*
 * McNemar's exact two-sided test for two classifiers on the same samples: only_a samples that A
 * alone gets right, only_b that B alone gets right. The p-value of "equally good".
 */
QSIM_API double qsim_mcnemar(uint64_t only_a, uint64_t only_b);

#ifdef __cplusplus
}
#endif
#endif
