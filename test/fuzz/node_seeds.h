/* SPDX-License-Identifier: MIT */
/* Small legal uses of every operator, from which the target `nodes` makes models. */
#ifndef FUZZ_NODE_SEEDS_H
#define FUZZ_NODE_SEEDS_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"
#include "proto.h"

#define NODE_INPUTS 20
#define NODE_ATTRS  12
#define NODE_LIST   12 /* most sizes or numbers of a list */
#define NODE_FED    (NODE_INPUTS + 4)

typedef struct node_input {
    bool given, sequence, constant; /* sequence: of the tensor twice */
    int32_t dtype, rank;
    int64_t dims[NODE_LIST];
    int64_t values[NODE_LIST]; /* repeated over the elements; none: small numbers */
    int32_t value_count;
    double unit; /* a value stands for this many */
} node_input;

typedef struct node_attr {
    const char *name;
    int32_t type; /* QSIM_ATTR_* */
    int64_t ints[NODE_LIST];
    int32_t count;
    double real;
    char text[24];
} node_attr;

typedef enum node_place {
    NODE_PLAIN,
    NODE_IN_IF,
    NODE_IN_LOOP,
    NODE_IN_SCAN,
    NODE_IN_SCAN_8, /* of opset 8: input 0 has axes for the batch and for time */
    NODE_PLACES
} node_place;

/* How a model declares its inputs. */
typedef enum node_stated { NODE_SIZES, NODE_RANKS, NODE_TYPES, NODE_STATED } node_stated;

typedef struct node_form {
    const qs_op *op;
    bool is_line; /* written as a line, and so legal */
    int64_t opset;
    int32_t input_count, attr_count, outputs;
    node_input in[NODE_INPUTS];
    node_attr attrs[NODE_ATTRS];
    node_stated stated;
    uint32_t constants; /* bit i: input i is a constant of the model, too */
    node_place place;
    bool carries; /* in a Loop: output 0 is the next turn's input 0 */
    size_t most;  /* bytes of a constant; 0: 64 KiB. One that would have more has 8 */
    bool outside; /* constants are external data, at the location of their names */
} node_form;

/* The inputs of a model in order, as a caller feeds them. */
typedef struct node_feed {
    node_input in[NODE_FED];
    int32_t count;
} node_feed;

/* The index-th form; false: there are no more. */
bool node_seed(size_t index, node_form *f);

/* Elements of an input; memory of `bytes` that qsim_tensor_size states. */
void node_fill(const node_input *in, uint8_t *data, size_t bytes);

/* Bytes of an input that is a constant. */
size_t node_constant_size(const node_form *f, const node_input *in);

/* Writes the model of a form, and what to feed to it. */
void node_model(const node_form *f, proto *model, node_feed *feed);

#endif
