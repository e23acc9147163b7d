/* SPDX-License-Identifier: MIT */
/*
 * Operators. One row of the table (operators.c) is all that the rest of the library knows of one:
 * which versions, inputs and attributes it has, its traits, what its shapes are, how it is
 * upgraded, packed and lowered to steps. Passes, plans and the quantizer ask the row through
 * node->op; none of them keeps a list of names. An operator family is one file; adding an operator
 * touches that file, the list in operators.c and one test.
 *
 * Domains: "" is ai.onnx, "com.microsoft" contributed ones, "qsim" internal ones that only passes
 * make and that no file may contain.
 */
#ifndef QS_OP_H
#define QS_OP_H

#include "base/base.h"
#include "graph/graph.h"
#include "op/kernel_names.h"

/* Sets of data types, for the rules below. */
#define QS_T(dtype) (1u << (dtype))
#define QS_T_FLOAT  QS_T(QSIM_FLOAT)
#define QS_T_8BIT   (QS_T(QSIM_UINT8) | QS_T(QSIM_INT8))

typedef struct qs_attr_rule {
    const char *name;
    int16_t type;  /* QS_ATTR_* */
    int16_t since; /* first version that has it */
    int16_t until; /* last version that has it, 0: still there */
} qs_attr_rule;

/*
 * The view of a node that an operator's rules get, both at load (sizes may be -1) and when a run is
 * planned (every size known).
 */
typedef struct qs_infer {
    const qs_graph *graph;
    const qs_node *node;
    qs_id node_id;
    const qs_value *values; /* by id: the graph's own at load, a plan's when planning */
    const qs_value *in[64]; /* NULL: left out or beyond the count (only the first 64 are listed) */
    qs_value *out;          /* output_count of them: fill dtype, rank and dims */
    qs_dim (*dims)[QSIM_MAX_RANK]; /* room for the dims of each output */
    const char *model;             /* name for messages */
    qsim_error *error;
} qs_infer;

/*
 * Fails with "MODEL: what is wrong (node 'NAME', Operator: …)". Every rule goes through it, so that
 * messages name file, node, operator and value.
 */
int qs_infer_fail(const qs_infer *x, int code, const char *format, ...) QS_PRINTF(3, 4);

struct qs_pack;
struct qs_lower;
struct qs_expand;

/*
 * Traits: what holds of every node of a row. One that hangs on a node's attributes, constants or
 * version is given by the row's `also`. An operand is an input of elements: not one of the inputs
 * that set sizes or are other settings, scales or zero points.
 */
enum {
    /* None of these. Stated, too: a row without traits has been forgotten, and a test fails. */
    QS_PLAIN = 1 << 0,
    /* Element i of output 0 comes from the elements i of the operands, broadcast, alone. Implies
     * QS_READS_EXACTLY. */
    QS_ELEMENTWISE = 1 << 1,
    /* The same of operand 0 and of statistics of it from the row's axis, or attribute "axis", on,
     * which do not hang on the order of elements; further outputs are such statistics. */
    QS_RANGED = 1 << 2,
    /* One axis, attribute "axis" or else the row's, is treated apart; the others are alike. */
    QS_ALONG_AXIS = 1 << 3,
    /* Outputs are made of elements of operands (MaxPool: the greatest), or of one to fill with;
     * nothing is computed, so bytes are as good as the floats they stand for. */
    QS_MOVES = 1 << 4,
    /* QS_MOVES, and no element of operand 0 is left out. */
    QS_KEEPS = 1 << 5,
    /* On images (N, C, space...) at input 0; has steps for channels last only. The layout pass
     * makes of it the operator of domain qsim with attribute "channels_last". */
    QS_NEEDS_LAST = 1 << 6,
    /* The same, but has steps for either layout, and its settings stay as they are. */
    QS_TAKES_LAST = 1 << 7,
    /* A convolution: its weights are (M, C / group, window...); attributes strides, pads,
     * dilations, group. */
    QS_CONVOLVES = 1 << 8,
    /* A matrix product: sums run along the last axis of input 0. */
    QS_MULTIPLIES = 1 << 9,
    /* Reduces operand 0 over axes: attribute "axes" or input 1; attribute "keepdims". */
    QS_REDUCES = 1 << 10,
    /* Computes on quantized integers. */
    QS_INTEGER = 1 << 11,
    /* Makes quantized integers of floats. */
    QS_QUANTIZES = 1 << 12,
    /* Makes floats of quantized integers. */
    QS_DEQUANTIZES = 1 << 13,
    /* Steps read no byte behind their inputs' elements, so a caller's buffer serves as it is. */
    QS_READS_EXACTLY = 1 << 14,
    /* Its form of domain qsim clamps what it makes to attributes "lo" and "hi". */
    QS_TAKES_BOUNDS = 1 << 15,
    /* Reads sizes, no elements. */
    QS_READS_SIZES = 1 << 16,
    /* An element of its curve takes longer than looking one up in a table of 256. */
    QS_COSTLY = 1 << 17,
    /* Output 0 is operand 1 where the condition, input 0, holds, else operand 2. */
    QS_CHOOSES = 1 << 18,
    /* QS_KEEPS, and elements stay in their order: output 0 is input 0 with other sizes. */
    QS_RESHAPES = 1 << 19,
};

/* Where an operand of a quantized operator, its scale and its zero point are among the inputs. */
typedef struct qs_operand {
    int8_t at, scale, zero_point; /* zero_point 0: there is no such operand */
} qs_operand;
#define QS_NO_SCALE (-1)

typedef struct qs_operands {
    qs_operand x[2]; /* activations */
    qs_operand w;    /* weights */
    qs_operand y;    /* output 0; `at` means nothing */
    int8_t step;     /* x[0] repeats every so many inputs, to the last; 0: it does not */
} qs_operands;

struct qk_ew;
/* y = f(x) for n floats, of which y may be x; param: alpha, beta (op/elementwise/curve.h). */
typedef void (*qs_curve_fn)(const struct qk_ew *k, const double *param, const float *x, float *y,
                            size_t n);

/* How static quantization treats an operator (ptq/select.c): QS_KIND_*. */
typedef uint8_t qs_kind;
enum {
    QS_KIND_FLOAT = 0,  /* stays float */
    QS_KIND_WEIGHTS,    /* sums products with weights: where integers begin */
    QS_KIND_ARITHMETIC, /* sums, joins, curves: between others, not at the end of the net */
    QS_KIND_POOL,       /* averages and ReLUs of their own: after others */
    QS_KIND_MOVEMENT    /* values as they are: output and input share a scale */
};

/* Numbers of inputs and outputs from version `since` of the opset on; max -1: any number. */
typedef struct qs_counts {
    int8_t since, min_in, max_in, max_out;
} qs_counts;

/*
 * A row, as QS_OP below defines it. What is left out is 0 or NULL and means what most operators
 * have. In sets of inputs bit i is input i.
 */
typedef struct qs_op {
    const char *domain; /* NULL: ai.onnx */
    const char *name;
    int16_t since, until; /* versions of the domain's opset whose form is known; 0: no limit */
    /*
     * Counts of the oldest version. max_in 0: min_in; min_out 0: 1; max_out 0: min_out; -1: any
     * number.
     */
    int8_t min_in, max_in, min_out, max_out;
    qs_counts later[2];    /* what newer versions changed; since 0: nothing */
    bool outputs_optional; /* any output may be left out, the first one too */
    int8_t axis;           /* with QS_ALONG_AXIS: what attribute "axis" is where left out */
    int8_t weight_axis;    /* of the weights: counts output channels; < 0: from the end */
    int8_t attr_count;
    const qs_attr_rule *attrs; /* QS_ATTRS sets both */

    uint32_t traits;         /* of every node */
    uint16_t shape_inputs;   /* sizes of outputs depend on the values of these inputs */
    uint16_t gain_inputs;    /* vectors along the last axis that output 0 is linear in, together */
    uint16_t setting_inputs; /* other inputs that are no elements: bounds, indices, tables */
    /* With attribute "into" (op/nn/window.h): the input that output 0 is written over; a table that
     * its bytes are looked up in may follow. 0: has no such attribute. */
    int8_t over;
    uint8_t kernel; /* QS_KERNEL_*: of the steps, as profiles name them */
    qs_kind kind;   /* of operators on floats */
    /* The leading inputs that quantizing it quantizes, too: 0: one; -1: all. */
    int8_t kind_inputs;
    uint16_t weight_inputs; /* a constant here is weights; pack, if there is one, takes it over */
    qs_operands quantized;  /* of operators on quantized integers */
    qs_curve_fn curve;      /* with QS_ELEMENTWISE: what it makes of floats of its one operand */
    float alpha, beta;      /* of `curve`: those attributes where they are left out */
    uint32_t (*also)(const qs_graph *g, const qs_node *n); /* traits of some nodes */
    /* Multiply-accumulates, symbolic sizes taken as 1; -1: unknown. NULL: none. */
    int64_t (*macs)(const qs_graph *g, const qs_node *n);

    /* Checks types, shapes and attributes and gives the outputs' types and shapes. */
    int (*infer)(qs_infer *x);
    /* Where sizes depend on elements: the most that they can be. The step writes what they are to
     * frame->sizes. NULL: infer knows all sizes. */
    int (*bound)(qs_infer *x);
    /* Rewrites the node in place from its version to `to`; NULL: nothing changes. */
    int (*upgrade)(qs_graph *g, qs_id node, int32_t to, qsim_error *error);
    /* Once a session: packed weights, tables. NULL: nothing to prepare. */
    int (*pack)(struct qs_pack *p);
    /* Once a combination of input shapes: emits steps. NULL: a pass must have replaced it. */
    int (*lower)(struct qs_lower *l);
    /* In place of steps: adds the nodes that a node stands for (expand.h). */
    void (*expand)(struct qs_expand *e);
} qs_op;

/* Defines row `id` of the list in operators.c: QS_OP(sqrt, .name = "Sqrt", .min_in = 1, ...). */
#define QS_OP(id, ...)  const qs_op qs_op_##id = {__VA_ARGS__}
#define QS_ATTRS(rules) .attrs = (rules), .attr_count = QS_COUNT(rules)

/* The number of rows and each of them: domain by domain, in order of their names. */
size_t qs_op_count(void);
const qs_op *qs_op_at(size_t index);
/* That order: < 0, 0, > 0 as for strcmp; capitals count as small letters. */
int qs_op_compare(const char *a, const char *b);

/* What profiles call a row's steps; "" if it has none of its own. */
const char *qs_op_kernel(const qs_op *op);

/* The traits of a node, those of its attributes included; 0 if it is removed or has no row. */
uint32_t qs_node_traits(const qs_graph *g, const qs_node *n);
/* Whether input `index` of the row's nodes is an operand, weights included. */
bool qs_op_is_operand(const qs_op *op, int32_t index);
/* The axis of a node's weights of this rank that counts output channels; -1: none does. */
int32_t qs_op_weight_axis(const qs_node *n, int32_t rank);
/* Whether input `index` is in one of the row's sets. */
static inline bool qs_op_in(uint32_t set, int32_t index) {
    return index < 16 && (set >> index & 1);
}

/* The row for (domain, name) at `version`, NULL if there is none; `*known` says if the name exists.
 */
const qs_op *qs_op_find(const char *domain, const char *name, int64_t version, bool *known);

/* Newest ai.onnx opset that loading accepts. */
int64_t qs_op_newest_opset(void);

/*
 * Looks up a node's row and checks counts, attribute names and types. On success node->op is set.
 */
int qs_op_resolve(qs_graph *g, qs_id node, const char *model, qsim_error *error);

/*
 * Runs one node's rules over `values` (by id: the graph's own, or a plan's with every size known).
 * `out` and `dims` have room for its outputs; out[i].dims points into dims[i].
 */
int qs_op_infer_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/*
 * The same as steps take the node: qs_op_infer_node also accepts float16 and bfloat16 wherever the
 * rule accepts float, since a pass makes floats of them (pass_half.c).
 */
int qs_op_infer_exact(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                      qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* float16 or bfloat16. */
bool qs_is_half(int32_t dtype);

/* The same with the rule `bound` of the node's row. */
int qs_op_bound_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* Runs the rules over the whole graph in order and stores dtypes and shapes in its values. */
int qs_op_infer_graph(qs_graph *g, const char *model, qsim_error *error);

/* Converts the graph to ai.onnx `opset` (>= its own). */
int qs_op_upgrade_graph(qs_graph *g, int64_t opset, const char *model, qsim_error *error);

/* Multiply-accumulates of a node from the shapes in its graph with symbolic sizes taken as 1; -1
 * unknown. */
int64_t qs_op_macs(const qs_graph *g, qs_id node);

/* `macs` of convolutions and matrix products with the weights where weight_inputs says (macs.c). */
int64_t qs_macs_conv(const qs_graph *g, const qs_node *n);
int64_t qs_macs_product(const qs_graph *g, const qs_node *n);
/* Each element of input 0, a row of it by features, times the weights that it meets. */
int64_t qs_macs_convtranspose(const qs_graph *g, const qs_node *n);
int64_t qs_macs_recurrent(const qs_graph *g, const qs_node *n);

#endif
