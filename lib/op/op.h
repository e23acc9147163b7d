/* SPDX-License-Identifier: MIT */
/*
 * Operators. The rest of the library knows an operator only by its row of the table (operators.c):
 * its versions, inputs, attributes and traits, its shape rule, how it is upgraded, packed and
 * lowered to steps. Passes, plans and the quantizer ask the row through node->op; none of them
 * keeps a list of names. An operator family is one file; adding an operator touches that file, the
 * list in operators.c and one test.
 *
 * Domains: "" is ai.onnx, "com.microsoft" has ONNX Runtime's operators, "qsim" the internal ones,
 * which only passes make and no file may contain.
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
    int16_t type;  /* QSIM_ATTR_* */
    int16_t since; /* first opset version that has it */
    int16_t until; /* last opset version that has it; 0: no last one */
} qs_attr_rule;

/*
 * The argument of a shape rule: a node and its inputs. Shape rules are applied when a model is
 * loaded (sizes may be -1), and when a plan is made (all sizes are known).
 */
typedef struct qs_infer {
    const qs_graph *graph;
    const qs_node *node;
    qs_id node_id;
    const qs_value *values; /* by id: of the graph when loading, of the plan when planning */
    const qs_value *in[64]; /* NULL: left out or beyond the count (only the first 64 are listed) */
    qs_value *out;          /* output_count values: the rule sets dtype, rank and dims */
    qs_dim (*dims)[QSIM_MAX_RANK]; /* memory for each output's dims */
    bool bounds;                   /* with QS_BOUNDS: the rule gives upper bounds, not -1 */
    const char *model;             /* name for messages */
    qsim_error *error;
} qs_infer;

/*
 * Fails with "MODEL: what is wrong (node 'NAME', Operator: …)". Every shape rule reports
 * failures by it, so that messages name file, node, operator and value.
 */
int qs_infer_fail(const qs_infer *x, int code, const char *format, ...) QS_PRINTF(3, 4);

struct qs_pack;
struct qs_lower;
struct qs_expand;

/*
 * Traits: properties of every node of a row. Traits that depend on a node's attributes, constants
 * or version come from the row's `also`. Operands are the inputs that hold elements: not sizes,
 * other settings, scales or zero points.
 */
enum {
    /* The row has none of the traits below. A test fails for rows without any trait. */
    QS_PLAIN = 1 << 0,
    /*
     * Element i of output 0 depends only on elements i of the operands, broadcast. Implies
     * QS_READS_EXACTLY.
     */
    QS_ELEMENTWISE = 1 << 1,
    /*
     * Element i of output 0 depends on element i of operand 0 and on statistics of operand 0 over
     * the axes from attribute "axis" (or the row's) on; the order of elements does not matter to
     * them. Further outputs are such statistics.
     */
    QS_RANGED = 1 << 2,
    /* One axis, attribute "axis" or else the row's, is special; the others are interchangeable. */
    QS_ALONG_AXIS = 1 << 3,
    /*
     * Outputs consist of elements of operands (MaxPool: the greatest), or of a fill value; nothing
     * is computed, so quantized bytes give the same results as their floats.
     */
    QS_MOVES = 1 << 4,
    /* QS_MOVES, and no element of operand 0 is dropped. */
    QS_KEEPS = 1 << 5,
    /*
     * Input 0 is an image (N, C, space...); there are steps for channels last only. The layout pass
     * turns it into the operator of domain qsim with attribute "channels_last".
     */
    QS_NEEDS_LAST = 1 << 6,
    /* Input 0 is an image, and there are steps for either layout; other attributes stay unchanged.
     */
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
    /* Turns floats into quantized integers. */
    QS_QUANTIZES = 1 << 12,
    /* Turns quantized integers into floats. */
    QS_DEQUANTIZES = 1 << 13,
    /* Steps read no byte beyond their inputs' elements, so that they can read a caller's buffer. */
    QS_READS_EXACTLY = 1 << 14,
    /* The operator's form in domain qsim clamps results to its attributes "lo" and "hi". */
    QS_TAKES_BOUNDS = 1 << 15,
    /* Reads sizes but no elements. */
    QS_READS_SIZES = 1 << 16,
    /* The operator's curve takes longer per element than a lookup in a table of 256. */
    QS_COSTLY = 1 << 17,
    /* Output 0 is operand 1 where the condition, input 0, holds, else operand 2. */
    QS_CHOOSES = 1 << 18,
    /* QS_KEEPS, and elements keep their order: output 0 is input 0 with other sizes. */
    QS_RESHAPES = 1 << 19,
    /* Output 0 is a sequence of tensors, which exists in the graph only (expand/op_sequence.c). */
    QS_MAKES_SEQUENCE = 1 << 20,
    /* Input 0 is a sequence of tensors. */
    QS_TAKES_SEQUENCE = 1 << 21,
    /* Discontinuous, like Round: the smallest change of an operand may move an output by a step. */
    QS_JUMPS = 1 << 22,
    /* QS_KEEPS, and output 0 holds each element of the operands once and nothing else. */
    QS_KEEPS_ONCE = 1 << 23,
    /* Output 0 is the sum, the product or the quotient of inputs 0 and 1, element by element. */
    QS_ADDS = 1 << 24,
    QS_SCALES = 1 << 25,
    QS_DIVIDES = 1 << 26,
    /* Output 0 is exp(input 0) over its sum along an axis. */
    QS_SOFTMAX = 1 << 27,
    /* Outputs depend on a seed and the node's name: they are not folded, even with constant inputs.
     */
    QS_RANDOM = 1 << 28,
    /*
     * Sizes of outputs depend on elements: the shape rule gives -1, with `bounds` upper bounds; the
     * step writes the actual sizes to frame->sizes.
     */
    QS_BOUNDS = 1 << 29,
    /* Any output may be left out, even the first one. */
    QS_OMITS_OUTPUTS = 1 << 30,
};

/* Indices of the inputs that are an operand of a quantized operator, its scale and zero point. */
typedef struct qs_operand {
    int8_t at, scale, zero_point; /* zero_point 0: no such operand */
} qs_operand;
#define QS_NO_SCALE (-1)

typedef struct qs_operands {
    qs_operand x[2]; /* activations */
    qs_operand w;    /* weights */
    qs_operand y;    /* output 0; `at` is unused */
    int8_t step;     /* every `step` inputs there is another operand like x[0]; 0: there is none */
    /*
     * The row's name has this many letters before that of the operator of ai.onnx on floats, which
     * it stands for (ptq/conversion.c); 0: there is none.
     */
    int8_t prefix;
} qs_operands;

struct qk_ew;
/* Computes y = f(x) for n floats; y may be x. param: alpha, beta (op/elementwise/curve.h). */
typedef void (*qs_curve_fn)(const struct qk_ew *k, const double *param, const float *x, float *y,
                            size_t n);

/* The curve of an operator with QS_ELEMENTWISE and one operand. */
typedef struct qs_op_curve {
    qs_curve_fn fn;
    float alpha, beta; /* defaults of these attributes */
} qs_op_curve;

/* How static quantization treats an operator (ptq/select.c): QS_KIND_*. */
typedef uint8_t qs_kind;
enum {
    QS_KIND_FLOAT = 0,  /* stays float */
    QS_KIND_WEIGHTS,    /* layers: always quantized */
    QS_KIND_ARITHMETIC, /* sums, Concat, curves: between a quantized node and a quantized layer */
    QS_KIND_POOL,       /* averages and single ReLUs: after a quantized node */
    QS_KIND_MOVEMENT    /* moves values; output and input share a scale */
};

/*
 * How the mean and the standard deviation of each channel of output 0 follow from those of input 0,
 * unless traits say it: QS_MOMENTS_*.
 */
enum {
    QS_MOMENTS_UNKNOWN = 0,
    QS_MOMENTS_NORM, /* mean input 2, deviation |input 1| (BatchNormalization) */
    QS_MOMENTS_SAME, /* those of input 0 */
    QS_MOMENTS_MEAN, /* the mean of input 0; the deviation is unknown */
    QS_MOMENTS_OWN   /* unknown, but k times input 0 gives the same as input 0 */
};

/*
 * How the multiply-accumulates of a node are counted (macs.c): QS_MACS_*. For convolutions and
 * products: the number of outputs times the length of each one's sum.
 */
enum { QS_MACS_NONE = 0, QS_MACS_CONV, QS_MACS_PRODUCT, QS_MACS_CONVTRANSPOSE, QS_MACS_RECURRENT };

/* Domains of rows: QS_DOMAIN_*, in the order of the table. */
enum { QS_DOMAIN_ONNX = 0, QS_DOMAIN_MICROSOFT, QS_DOMAIN_QSIM };

/* Numbers of inputs and outputs from version `since` of the opset on; max -1: any number. */
typedef struct qs_counts {
    int8_t since, min_in, max_in, max_out;
} qs_counts;

/* Changes by newer opset versions that one row covers. */
typedef struct qs_history {
    qs_counts later[2]; /* since 0: none */
    /* Rewrites the node in place from its version to `to`; NULL: nothing changes. */
    int (*upgrade)(qs_graph *g, qs_id node, int32_t to, qsim_error *error);
} qs_history;

/* Columns that few rows have, set by QS_MORE. */
typedef struct qs_op_more {
    const qs_history *history; /* QS_HISTORY; NULL: all versions are the same */
    uint32_t (*also)(const qs_graph *g, const qs_node *n); /* further traits of a node */
    /* Once per session: packs weights, makes tables. NULL: nothing to prepare. */
    int (*pack)(struct qs_pack *p);
    const qs_operands *operands; /* QS_OPERANDS: of operators on quantized integers */
    const qs_op_curve *curve;    /* QS_CURVE */
    /*
     * The first version of ai.onnx that has it, if ONNX Runtime writes it into files of older ones,
     * too; INT8_MAX: none has it.
     */
    int8_t in_onnx;
} qs_op_more;

/*
 * A row of the operator table, defined by QS_OP below. Fields that are left out are 0 or NULL, the
 * most frequent case. Columns that few rows have are behind the pointer `more`. In a set of inputs,
 * bit i is input i.
 */
typedef struct qs_op {
    const char *name;
    int16_t since, until; /* first and last opset version of this form; 0: no limit */
    /*
     * Counts of the oldest version. max_in 0: min_in; min_out 0: 1; max_out 0: min_out; -1: any
     * number.
     */
    int8_t min_in, max_in, min_out, max_out;
    const qs_attr_rule *attrs; /* QS_ATTRS, with attr_count */
    int8_t attr_count;
    uint8_t domain;     /* QS_DOMAIN_* */
    int8_t axis;        /* with QS_ALONG_AXIS: default of attribute "axis" */
    int8_t weight_axis; /* axis of the weights for output channels; < 0: from the end */

    uint32_t traits;         /* of every node */
    const qs_op_more *more;  /* NULL: all its columns are NULL */
    uint16_t shape_inputs;   /* sizes of outputs depend on the values of these inputs */
    uint16_t gain_inputs;    /* vectors along the last axis; all times k give output 0 times k */
    uint16_t setting_inputs; /* other inputs that are not operands: bounds, indices, tables */
    uint16_t weight_inputs;  /* if constant, these are weights; `pack` may pack them */
    /*
     * With attribute "into" (op/nn/window.h): the input whose memory becomes that of output 0. The
     * next input may be a table in which result bytes are looked up. 0: no such attribute.
     */
    int8_t over;
    uint8_t kernel;  /* QS_KERNEL_*: name of its steps in profiles */
    uint8_t macs;    /* QS_MACS_* */
    uint8_t moments; /* QS_MOMENTS_* */
    qs_kind kind;    /* of operators on floats */
    /* The first kind_inputs inputs are quantized with the operator; 0: one, -1: all. */
    int8_t kind_inputs;
    /*
     * Integers of input 0 that `infer` refuses are cast to type `integers_as`; 0: they are refused.
     * integers_of: the only integer type that is cast; 0: all.
     */
    int8_t integers_as, integers_of;

    /* The shape rule: checks types, shapes and attributes, sets the outputs' types and shapes. */
    int (*infer)(qs_infer *x);
    /* Once per combination of input shapes: makes a step. NULL: passes replace every such node. */
    int (*lower)(struct qs_lower *l);
    /* Instead of `lower`: adds nodes that compute the same (expand.h). */
    void (*expand)(struct qs_expand *e);
} qs_op;

/*
 * Defines row `id` of the list in operators.c: QS_OP(sqrt, .name = "Sqrt", .min_in = 1, ...).
 * Without _Alignas gcc aligns rows to 32 bytes.
 */
#define QS_OP(id, ...)  _Alignas(8) const qs_op qs_op_##id = {__VA_ARGS__}
#define QS_ATTRS(rules) .attrs = (rules), .attr_count = QS_COUNT(rules)
#define QS_MORE(...)                                                                               \
    .more = &(const qs_op_more) {                                                                  \
        __VA_ARGS__                                                                                \
    }
#define QS_HISTORY(...)                                                                            \
    .history = &(const qs_history) {                                                               \
        __VA_ARGS__                                                                                \
    }
#define QS_OPERANDS(...)                                                                           \
    .operands = &(const qs_operands) {                                                             \
        __VA_ARGS__                                                                                \
    }
#define QS_CURVE(...)                                                                              \
    .curve = &(const qs_op_curve) {                                                                \
        __VA_ARGS__                                                                                \
    }

/* Whether ai.onnx has a node's operator in its version. */
bool qs_node_in_onnx(const qs_node *n);
/* The name of a row's domain: "", "com.microsoft" or "qsim". */
const char *qs_op_domain(const qs_op *op);
/* The number of rows, and row `index`: by domain, then by name. */
size_t qs_op_count(void);
const qs_op *qs_op_at(size_t index);
/* Compares names in that order as strcmp does, ignoring case. */
int qs_op_compare(const char *a, const char *b);

/* Name of a row's steps in profiles; "" if it has none of its own. */
const char *qs_op_kernel(const qs_op *op);

/* The columns behind `more`; all NULL if the row has none. */
const qs_op_more *qs_op_more_of(const qs_op *op);
/* The row's operands; all zero unless it computes on quantized integers. */
const qs_operands *qs_op_operands(const qs_op *op);
/* The traits of a node, `also` included; 0 if it is removed or has no row. */
uint32_t qs_node_traits(const qs_graph *g, const qs_node *n);
/* Whether input `index` of the row's nodes is an operand, weights included. */
bool qs_op_is_operand(const qs_op *op, int32_t index);
/* The axis for output channels of a node's weights of this rank; -1: none. */
int32_t qs_op_weight_axis(const qs_node *n, int32_t rank);
/* Whether input 2 of the row's nodes, of QS_KIND_WEIGHTS, is a bias. */
static inline bool qs_op_takes_bias(const qs_op *op) {
    return (op->max_in ? op->max_in : op->min_in) > 2;
}
/* Whether input `index` is in one of the row's sets. */
static inline bool qs_op_in(uint32_t set, int32_t index) {
    return index < 16 && (set >> index & 1);
}

/* The row for (domain, name) at `version`, or NULL; *known: whether any version exists. */
const qs_op *qs_op_find(const char *domain, const char *name, int64_t version, bool *known);

/* Newest ai.onnx opset that loading accepts. */
int64_t qs_op_newest_opset(void);

/* Finds a node's row, checks counts, attribute names and types, and sets node->op. */
int qs_op_resolve(qs_graph *g, qs_id node, const char *model, qsim_error *error);

/*
 * Applies a node's shape rule over `values` (by id: the graph's own, or a plan's with every size
 * known). `out` and `dims` have an entry per output; out[i].dims points into dims[i].
 */
int qs_op_infer_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/*
 * The same without conversions: qs_op_infer_node also accepts float16 and bfloat16 where the rule
 * accepts float, and integers by the row's integers_as, since a pass converts them (pass_half.c).
 */
int qs_op_infer_exact(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                      qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* Whether input 0 may have this type of integers because of the row's integers_as. */
bool qs_op_takes_integers(const qs_op *op, int32_t dtype);

/* The same as qs_op_infer_exact with `bounds`, for rows with QS_BOUNDS. */
int qs_op_bound_node(const qs_graph *g, const qs_value *values, qs_id node, qs_value *out,
                     qs_dim (*dims)[QSIM_MAX_RANK], const char *model, qsim_error *error);

/* Applies shape rules to the whole graph in order; stores types and shapes in its values. */
int qs_op_infer_graph(qs_graph *g, const char *model, qsim_error *error);

/* Converts the graph to ai.onnx `opset` (>= its own). */
int qs_op_upgrade_graph(qs_graph *g, int64_t opset, const char *model, qsim_error *error);

/* Multiply-accumulates of a node by its graph's shapes, symbolic sizes taken as 1; -1: unknown. */
int64_t qs_op_macs(const qs_graph *g, qs_id node);

#endif
