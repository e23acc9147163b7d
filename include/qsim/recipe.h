/* SPDX-License-Identifier: MIT */
/*
 * qsim/recipe.h - the decisions of a quantization, layer by layer and tensor by tensor, as text.
 *
 *     qsim-recipe 1
 *     model 64-HEXADECIMAL-DIGITS
 *     calibration 64-HEXADECIMAL-DIGITS
 *     layer "conv1" weights int8 channel symmetric
 *     layer "head" float
 *     tensor "x" uint8 asymmetric range -0x1.000000p+0 0x1.800000p+2 method minmax # -1 6
 *     tensor "y" uint8 asymmetric method percentile 99.99
 *     tensor "z" float
 *     equalize "conv2" 2 0x1.000000p+1 0x1.000000p-2
 *
 * Every search writes a recipe; qsim_quantize reads one (options.recipe) and writes its decisions
 * (options.decided). Layers and tensors that a recipe does not name follow the options, so recipes
 * may be written by hand, and in parts. `model` and `calibration` may be left out.
 *
 * A layer is a node, called by its name or, where it has none, by that of its first output. It says
 *
 *     weights TYPE                  int8, uint8, int4, uint4
 *     channel | tensor | block N    what shares a scale (channel)
 *     symmetric | asymmetric        (symmetric)
 *     reduced                       7 of 8 bits
 *     rounding nearest | gptq       (nearest)
 *     bias-correction on | off      by the means of a calibration (as the options say)
 *     bias-correction given N ...   by these numbers, one for each of N output channels
 *
 * or that it stays `float`, or, where it has no weights, that it is computed in integers:
 * `integer`. A tensor says TYPE (uint8, int8, uint16, int16; of 8 bits one for all), symmetric |
 * asymmetric (asymmetric), and its `range` or the `method` that finds one in a calibration; or that
 * it stays `float`. `equalize` multiplies the channels of a tensor by N factors, in the constants
 * of the layer or normalization that makes it, and divides by them in the weights of the layers
 * that read it; between both there may be ReLU, Clip from 0 on, pooling and changes of sizes. The
 * network computes the same (with a Clip, as long as no channel reaches its bound). Ranges in the
 * recipe are those of the multiplied tensors; other ranges follow from the extremes of channels in
 * the calibration. Numbers are decimal, 99.99, or hexadecimal, 0x1.8p+2. Text after # is a comment.
 * A word that this version does not know is refused by name, as is what it can read but not carry
 * out (blocks of 8-bit weights; a zero point for each channel of a convolution in mode DYNAMIC):
 * quantizing says which. A layer that says `rounding gptq` needs the calibration's data again.
 *
 * A recipe has ranges but no means: a layer that says `bias-correction on` needs the calibration
 * again, and quantizing without one is refused (ARGUMENT) unless the option no_bias_correction
 * turns it off for all layers. So a recipe that was decided gives the same bytes with the same
 * calibration, and without one where it corrects no bias by means.
 */
#ifndef QSIM_RECIPE_H
#define QSIM_RECIPE_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A recipe. One thread at a time while it is changed. */
typedef struct qsim_recipe qsim_recipe;

/* Kinds of entries. */
#define QSIM_RECIPE_LAYER    1
#define QSIM_RECIPE_TENSOR   2
#define QSIM_RECIPE_EQUALIZE 3 /* factors of a tensor's channels, in `shift` */

/* qsim_recipe_entry.action */
#define QSIM_RECIPE_QUANTIZE 0 /* as the other fields say */
#define QSIM_RECIPE_FLOAT    1 /* stays float */
#define QSIM_RECIPE_INTEGER  2 /* a layer without weights: computed in integers */

/* qsim_recipe_entry.granularity */
#define QSIM_GRANULARITY_CHANNEL 0
#define QSIM_GRANULARITY_TENSOR  1
#define QSIM_GRANULARITY_BLOCK   2

/* qsim_recipe_entry.rounding */
#define QSIM_ROUNDING_NEAREST 0
#define QSIM_ROUNDING_GPTQ    1

/* qsim_recipe_entry.bias_correction */
#define QSIM_BIAS_CORRECTION_DEFAULT 0
#define QSIM_BIAS_CORRECTION_ON      1
#define QSIM_BIAS_CORRECTION_OFF     2
#define QSIM_BIAS_CORRECTION_GIVEN   3 /* `shift` is added: no means are needed */

/* qsim_recipe_entry.flags */
#define QSIM_RECIPE_RANGE   1 /* low and high are given */
#define QSIM_RECIPE_METHOD  2 /* method is given */
#define QSIM_RECIPE_REDUCED 4 /* weights in 7 bits */

/* One line. `struct_size` is set by the caller. */
typedef struct qsim_recipe_entry {
    size_t struct_size;
    const char *name;
    int32_t kind;   /* QSIM_RECIPE_LAYER, _TENSOR, _EQUALIZE */
    int32_t action; /* QSIM_RECIPE_QUANTIZE, _FLOAT, _INTEGER; with the last two all below is 0,
                     * with QSIM_RECIPE_EQUALIZE all but shift and shift_count */
    int32_t dtype;  /* of a layer's weights or of a tensor */
    int32_t symmetric;
    int32_t flags;           /* QSIM_RECIPE_RANGE, _METHOD, _REDUCED */
    int32_t granularity;     /* of a layer: QSIM_GRANULARITY_* */
    int64_t block;           /* neighbours that share a scale, with QSIM_GRANULARITY_BLOCK */
    int32_t rounding;        /* of a layer: QSIM_ROUNDING_* */
    int32_t bias_correction; /* of a layer: QSIM_BIAS_CORRECTION_* */
    int32_t method;          /* of a tensor: QSIM_METHOD_* of quant.h */
    float low, high;         /* of a tensor; low <= high */
    int32_t reserved;
    double percentile;  /* of QSIM_METHOD_PERCENTILE, in (0, 100]; kept to 9 decimals */
    const float *shift; /* with QSIM_BIAS_CORRECTION_GIVEN: the number added to each channel's bias;
                         * with QSIM_RECIPE_EQUALIZE: the factors. Copied when an entry is set;
                         * lives as long as the recipe */
    int64_t shift_count;
} qsim_recipe_entry;

/* An empty recipe. `ctx` may be NULL. Never needs options: a recipe is data. Errors: NOMEM. */
QSIM_API int qsim_recipe_create(qsim_ctx *ctx, qsim_recipe **out, qsim_error *error);
/*
 * Reads a recipe. Everything is checked: FORMAT, with the line and the word; UNSUPPORTED (version);
 * LIMIT; also IO, NOMEM. `name` is what messages call the data and may be NULL, as may `ctx`.
 */
QSIM_API int qsim_recipe_load(qsim_ctx *ctx, const char *path, qsim_recipe **out,
                              qsim_error *error);
QSIM_API int qsim_recipe_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                                     qsim_recipe **out, qsim_error *error);
QSIM_API void qsim_recipe_free(qsim_recipe *recipe);

/* Writes a file atomically; an existing one gives QSIM_E_EXISTS unless `replace`. Errors: IO,
 * NOMEM.
 */
QSIM_API int qsim_recipe_save(const qsim_recipe *recipe, const char *path, int32_t replace,
                              qsim_error *error);
/*
 * The same text into memory, without a NUL. `*need` is set to its size; if `capacity` is smaller,
 * nothing is written and the result is still QSIM_OK. Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_recipe_text(const qsim_recipe *recipe, void *buffer, size_t capacity,
                              size_t *need, qsim_error *error);

/* Entries, in the order in which they were added. */
QSIM_API int32_t qsim_recipe_count(const qsim_recipe *recipe);
/* Entry `index`; its name lives as long as the recipe. Errors: ARGUMENT (index, struct_size). */
QSIM_API int qsim_recipe_get(const qsim_recipe *recipe, int32_t index, qsim_recipe_entry *entry);
/* Index of the entry of that kind and name, or QSIM_E_NOT_FOUND. */
QSIM_API int32_t qsim_recipe_find(const qsim_recipe *recipe, int32_t kind, const char *name);
/* Adds an entry, or replaces the one of that kind and name; texts are copied. Errors: ARGUMENT (a
 * field that is out of range, or not of that kind), VERSION, NOMEM. */
QSIM_API int qsim_recipe_set(qsim_recipe *recipe, const qsim_recipe_entry *entry,
                             qsim_error *error);
/*
 * Sets every entry of `from` in `into`, which keeps its other entries, and takes the hashes that it
 * lacks. Errors: MISMATCH (recipes of two models), NOMEM: some entries may have been set.
 */
QSIM_API int qsim_recipe_merge(qsim_recipe *into, const qsim_recipe *from, qsim_error *error);

/* SHA-256 of the recipe's model and calibration, in hexadecimal; "": not known. */
QSIM_API const char *qsim_recipe_model(const qsim_recipe *recipe);
QSIM_API const char *qsim_recipe_calibration(const qsim_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
