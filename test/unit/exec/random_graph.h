/* SPDX-License-Identifier: MIT */
/*
 * Random graphs of the operators that networks chain, drawn from a seed through the public builder.
 * The same seed gives the same float graph whatever the form; what a form adds is drawn apart.
 * Axis 0 of every tensor counts samples, which no operator mixes.
 */
#ifndef TEST_RANDOM_GRAPH_H
#define TEST_RANDOM_GRAPH_H

#include <stdbool.h>
#include <qsim/qsim.h>

#define RG_TENSORS 96
#define RG_NAMES   4096
#define RG_INPUTS  2

/* One activation, as its producer leaves it. dims[0] is the batch. */
typedef struct rg_tensor {
    char name[16];
    char quantized[16]; /* its integer twin, "" where it has none */
    char back[16];      /* the twin as floats again, "" before anyone asked */
    int64_t dims[5];
    int32_t rank;
    int32_t power; /* how often activations were multiplied on the way: kept small */
    int32_t used;
    int32_t dtype; /* of the twin */
    int32_t zero_point;
    float scale;
    bool output;
} rg_tensor;

/* What the values of a tensor were in the float graph. */
typedef struct rg_range {
    float low, high;
} rg_range;

typedef struct rg {
    qsim_builder *b;
    uint64_t shape; /* draws the float graph ... */
    uint64_t form;  /* ... and this what quantization adds */
    uint64_t seed;
    const rg_range *ranges; /* of each tensor: quantized pairs are written; NULL: floats alone */
    int64_t batch;
    int32_t opset;
    int32_t activation; /* dtype of quantized activations, 0: mixed */
    int32_t count, nodes, constants, names;
    int32_t want; /* nodes at least */
    bool fixed;   /* the batch is written into the graph */
    size_t input_count;
    rg_tensor t[RG_TENSORS];
    char name[RG_NAMES][24];
    float weight_scale[4096]; /* of the weights last made; count 0: floats */
    size_t weight_count;
} rg;

/* Below `n`, drawn; whether with a chance of `percent`; one of the numbers given. */
uint32_t rg_draw(rg *g, uint32_t n);
bool rg_chance(rg *g, uint32_t percent);
#define RG_ONE_OF(g, ...)                                                                          \
    ((const int64_t[]){__VA_ARGS__})[rg_draw(                                                      \
        (g), (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))]

/* An activation of this rank (0: any), -1 if there is none. */
int32_t rg_pick(rg *g, int32_t rank);
/* The name that a consumer of it reads. */
const char *rg_in(rg *g, int32_t tensor);
/* Two of them, joined by a comma. */
const char *rg_both(rg *g, int32_t x, int32_t y);
/* Names joined by commas or made up; valid as long as the graph is drawn. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
const char *
rg_text(rg *g, const char *format, ...);

/* Constants. */
const char *rg_floats(rg *g, int32_t rank, const int64_t *dims, float size, float around);
const char *rg_scalar(rg *g, float value);
const char *rg_ints(rg *g, size_t count, const int64_t *values);
/* Weights, as a form has them; `axis` counts output channels. */
const char *rg_weight(rg *g, int32_t rank, const int64_t *dims, float size, int32_t axis);
/* The bias that goes with the weights last made and this input. */
const char *rg_bias(rg *g, int64_t count, int32_t input);

/*
 * A node that makes a new activation from `from` (whose power it inherits); attributes may follow.
 * rg_made ends it and gives the activation; a node of several outputs is made with rg_many.
 */
void rg_node(rg *g, const char *op, const char *inputs);
int32_t rg_made(rg *g, int32_t from, int32_t rank, const int64_t *dims);
void rg_many(rg *g, const char *op, const char *inputs, const char *outputs);
/* An activation that is announced, and written once its node is there. */
int32_t rg_announce(rg *g, int32_t from, int32_t rank, const int64_t *dims);
void rg_written(rg *g, int32_t tensor);

/* Adds one operator, or a block of several; false if nothing fits what is there. */
bool rg_layer(rg *g);
bool rg_curve(rg *g);
bool rg_move(rg *g);
int32_t rg_activation(rg *g, int32_t x);
int32_t rg_conv(rg *g, int32_t x, int64_t channels, int64_t kernel, int64_t group, int64_t stride);
int32_t rg_unary(rg *g, const char *op, int32_t x);
int32_t rg_binary(rg *g, const char *op, int32_t x, int32_t y);

/*
 * Draws the graph of `seed`; g->ranges may be set before (else NULL), all else is made here. NULL
 * where the library refuses it: `error` says why.
 */
qsim_model *rg_make(rg *g, uint64_t seed, const rg_range *ranges, qsim_ctx *ctx, qsim_error *error);

#endif
