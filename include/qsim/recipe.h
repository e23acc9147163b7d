/* SPDX-License-Identifier: MIT */
/*
 * qsim/recipe.h - recipes: the decisions of a quantization, layer by layer and tensor by tensor, as
 * text. For example:
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
 * Every search writes a recipe. qsim_quantize reads one (options.recipe) and writes all decisions
 * that it took (options.decided). Layers and tensors that a recipe does not name follow the
 * options, so a recipe may be written by hand and may be incomplete. Text after # is a comment.
 * Numbers are decimal (99.99) or hexadecimal (0x1.8p+2).
 *
 * `model` and `calibration`, which may be left out, are the SHA-256 of the model that the recipe is
 * for and of the calibration that it was made with.
 *
 * A `layer` line names a node, by the name of its first output if the node has no name. After it
 * stands `float` (the node stays float), `integer` (a node without weights is computed in
 * integers), or these words, of which those in brackets are the defaults:
 *
 *     weights TYPE                  int8, uint8, int4, uint4, float16
 *     channel | tensor | block N    which weights share a scale [channel]
 *     symmetric | asymmetric        [symmetric]
 *     reduced | paired              7 of 8 bits; scales as with QSIM_REDUCE_PAIRS (int8, symmetric)
 *     rounding nearest | gptq       [nearest]; gptq needs the data of the calibration
 *     bias-correction on | off      by the means of a calibration [as the options say]
 *     bias-correction given N ...   by these N numbers, one for each output channel
 *
 * A `tensor` line names an activation. After it stands `float`, or a type (uint8, int8, uint16,
 * int16; all tensors of 8 bits have the same), symmetric | asymmetric [asymmetric], and either its
 * `range` or the `method` that chooses a range from the calibration.
 *
 * An `equalize` line names a tensor, and the N factors that its N channels are multiplied by. The
 * constants of the layer or normalization that makes the tensor are multiplied, the weights of the
 * layers that read it are divided. ReLU, Clip from 0 on, pooling and changes of sizes may stand
 * between both. The network computes the same (with a Clip, as long as no channel reaches its
 * bound). Ranges in the recipe are those of the multiplied tensors; other ranges follow from the
 * extremes of channels in the calibration.
 *
 * A word that this version does not know is refused by name. qsim_quantize refuses what this
 * version can read but not do: blocks of 8-bit weights, and a zero point for each channel of a
 * convolution in mode DYNAMIC.
 *
 * A recipe contains ranges but no means. A layer with `bias-correction on` needs a calibration;
 * quantizing without one fails with ARGUMENT, unless the option no_bias_correction turns correction
 * off for all layers. A recipe that qsim_quantize wrote gives the same bytes with the same
 * calibration. It gives them without a calibration, too, if it corrects no bias by means.
 */
#ifndef QSIM_RECIPE_H
#define QSIM_RECIPE_H

#include <qsim/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A recipe. Any number of threads may read it; while one changes it, no other may use it. */
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
#define QSIM_RECIPE_PAIRED  8 /* scales of weights by QSIM_REDUCE_PAIRS of ptq.h */

/*
 * One line of a recipe. Fields that its kind and action do not use are 0: with the actions FLOAT
 * and INTEGER all fields after `action`, with the kind EQUALIZE all but shift and shift_count.
 */
typedef struct qsim_recipe_entry {
    size_t struct_size;      /* sizeof(qsim_recipe_entry), set by the caller */
    const char *name;        /* of the layer or tensor */
    int32_t kind;            /* QSIM_RECIPE_LAYER, _TENSOR, _EQUALIZE */
    int32_t action;          /* QSIM_RECIPE_QUANTIZE, _FLOAT, _INTEGER */
    int32_t dtype;           /* of a layer's weights or of a tensor */
    int32_t symmetric;       /* 1: symmetric, 0: asymmetric */
    int32_t flags;           /* QSIM_RECIPE_RANGE, _METHOD, _REDUCED, _PAIRED, added up */
    int32_t granularity;     /* of a layer: QSIM_GRANULARITY_* */
    int64_t block;           /* with QSIM_GRANULARITY_BLOCK: neighbours that share a scale */
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

/*
 * Creates an empty recipe. `ctx` may be NULL. This will never need options: a recipe is data.
 * Errors: NOMEM.
 */
QSIM_API int qsim_recipe_create(qsim_ctx *ctx, qsim_recipe **out, qsim_error *error);
/*
 * Reads a recipe from a file, or from the `size` bytes at `data`, and checks all of it. `name` is
 * the data's name in messages. `ctx` and `name` may be NULL. Errors: FORMAT (the message has line
 * and word), UNSUPPORTED (version), LIMIT, IO, NOMEM.
 */
QSIM_API int qsim_recipe_load(qsim_ctx *ctx, const char *path, qsim_recipe **out,
                              qsim_error *error);
QSIM_API int qsim_recipe_load_memory(qsim_ctx *ctx, const void *data, size_t size, const char *name,
                                     qsim_recipe **out, qsim_error *error);
QSIM_API void qsim_recipe_free(qsim_recipe *recipe);

/*
 * Writes the recipe to `path`, atomically. An existing file fails with EXISTS unless `replace` is
 * 1. Errors: EXISTS, IO, NOMEM.
 */
QSIM_API int qsim_recipe_save(const qsim_recipe *recipe, const char *path, int32_t replace,
                              qsim_error *error);
/*
 * Writes the same text to `buffer`, without a NUL at its end. Sets `*need` to its size in bytes. If
 * `capacity`, the size of `buffer`, is smaller, nothing is written and the result is still QSIM_OK.
 * Errors: ARGUMENT, NOMEM.
 */
QSIM_API int qsim_recipe_text(const qsim_recipe *recipe, void *buffer, size_t capacity,
                              size_t *need, qsim_error *error);

/* The number of entries. */
QSIM_API int32_t qsim_recipe_count(const qsim_recipe *recipe);
/*
 * Gives entry `index`, from 0, in the order in which entries were added. Its name and `shift` live
 * as long as the recipe. Errors: ARGUMENT (index, struct_size).
 */
QSIM_API int qsim_recipe_get(const qsim_recipe *recipe, int32_t index, qsim_recipe_entry *entry);
/* The index of the entry with this kind and name, or QSIM_E_NOT_FOUND. */
QSIM_API int32_t qsim_recipe_find(const qsim_recipe *recipe, int32_t kind, const char *name);
/*
 * Adds an entry, or replaces the one with this kind and name. Name and `shift` are copied. Errors:
 * ARGUMENT (a field that is out of range, or does not belong to the kind), VERSION, NOMEM.
 */
QSIM_API int qsim_recipe_set(qsim_recipe *recipe, const qsim_recipe_entry *entry,
                             qsim_error *error);
/*
 * Sets every entry of `from` in `into`, which keeps its other entries. `into` also takes the
 * model's and calibration's hashes of `from` if it has none. Errors: MISMATCH (recipes of two
 * models), NOMEM (some entries may have been set).
 */
QSIM_API int qsim_recipe_merge(qsim_recipe *into, const qsim_recipe *from, qsim_error *error);

/* The SHA-256 of the recipe's model and calibration, in hexadecimal; "": not known. */
QSIM_API const char *qsim_recipe_model(const qsim_recipe *recipe);
QSIM_API const char *qsim_recipe_calibration(const qsim_recipe *recipe);

#ifdef __cplusplus
}
#endif
#endif
