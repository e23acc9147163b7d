/* SPDX-License-Identifier: MIT */
/*
 * Random graphs of the operators that networks chain, drawn from a seed through the public builder.
 * A seed gives the same float graph for every form; the form's additions are drawn separately. Axis
 * 0 of every tensor counts samples, which no operator mixes.
 */
#ifndef TEST_RANDOM_GRAPH_H
#define TEST_RANDOM_GRAPH_H

#include <stdbool.h>
#include <qsim/qsim.h>

#define RG_TENSORS 96
#define RG_NAMES   4096
#define RG_INPUTS  2

/* An activation. dims[0] is the batch. */
typedef struct rg_tensor {
    char name[16];
    char quantized[16]; /* name of its integer twin, or "" */
    char back[16];      /* the twin dequantized again; "" until it is needed */
    int64_t dims[5];
    int32_t rank;
    int32_t power; /* number of multiplications of activations up to here: kept small */
    int32_t used;
    int32_t dtype; /* dtype of the twin */
    int32_t zero_point;
    int32_t parameter_rank; /* of scale and zero point: PyTorch writes vectors of one element */
    float scale;
    bool output;
} rg_tensor;

/* The range of a tensor's values in the float graph. */
typedef struct rg_range {
    float low, high;
} rg_range;

typedef struct rg {
    qsim_builder *b;
    uint64_t shape; /* state that draws the float graph */
    uint64_t form;  /* state that draws the quantization */
    uint64_t seed;
    const rg_range *ranges; /* of each tensor, for quantized pairs; NULL: floats only */
    int64_t batch;
    int32_t opset;
    int32_t activation; /* dtype of quantized activations, 0: mixed */
    int32_t count, nodes, constants, names;
    int32_t want; /* least number of nodes */
    bool fixed;   /* the batch is fixed in the graph */
    bool volume;  /* an input has three axes of space */
    size_t input_count;
    rg_tensor t[RG_TENSORS];
    char name[RG_NAMES][24];
    float weight_scale[4096]; /* scales of the latest weights; count 0: float weights */
    size_t weight_count;
} rg;

/* A number below `n`; true with a chance of `percent`; one of the given numbers. */
uint32_t rg_draw(rg *g, uint32_t n);
bool rg_chance(rg *g, uint32_t percent);
#define RG_ONE_OF(g, ...)                                                                          \
    ((const int64_t[]){__VA_ARGS__})[rg_draw(                                                      \
        (g), (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))]

/* An activation of this rank (0: any), -1 if there is none. */
int32_t rg_pick(rg *g, int32_t rank);
/* The name of the tensor for a consumer. */
const char *rg_in(rg *g, int32_t tensor);
/* The names of two tensors, joined by a comma. */
const char *rg_both(rg *g, int32_t x, int32_t y);
/* Names, joined by commas or new; valid while the graph is drawn. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
const char *
rg_text(rg *g, const char *format, ...);

/* Constants. */
const char *rg_floats(rg *g, int32_t rank, const int64_t *dims, float size, float around);
const char *rg_scalar(rg *g, float value);
const char *rg_index(rg *g, int64_t value);
const char *rg_ints(rg *g, size_t count, const int64_t *values);
/* Weights in the form's type; `axis` counts output channels. */
const char *rg_weight(rg *g, int32_t rank, const int64_t *dims, float size, int32_t axis);
/* The bias for the latest weights and this input. */
const char *rg_bias(rg *g, int64_t count, int32_t input);

/*
 * Begins a node that makes an activation from `from` (whose power it inherits); attributes may
 * follow. rg_made ends it and returns the activation; a node with several outputs is made with
 * rg_many.
 */
void rg_node(rg *g, const char *op, const char *inputs);
int32_t rg_made(rg *g, int32_t from, int32_t rank, const int64_t *dims);
void rg_many(rg *g, const char *op, const char *inputs, const char *outputs);
/* Announces an activation, which is written once its node exists. */
int32_t rg_announce(rg *g, int32_t from, int32_t rank, const int64_t *dims);
void rg_written(rg *g, int32_t tensor);

/* Adds one operator, or a block of several; false if none fits the tensors. */
bool rg_layer(rg *g);
bool rg_curve(rg *g);
bool rg_move(rg *g);
bool rg_other(rg *g);
bool rg_volume(rg *g);
int32_t rg_activation(rg *g, int32_t x);
int32_t rg_conv(rg *g, int32_t x, int64_t channels, int64_t kernel, int64_t group, int64_t stride);
int32_t rg_unary(rg *g, const char *op, int32_t x);
int32_t rg_binary(rg *g, const char *op, int32_t x, int32_t y);

/*
 * Draws the graph of `seed`; g->ranges may be set before (else NULL), all else is made here. NULL
 * if the library refuses it, with the reason in `error`.
 */
qsim_model *rg_make(rg *g, uint64_t seed, const rg_range *ranges, qsim_ctx *ctx, qsim_error *error);

#endif
