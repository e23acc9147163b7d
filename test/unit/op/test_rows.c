/* SPDX-License-Identifier: MIT */
/* Facts that every row of the operator table must state, their consistency, and the rules for
 * inputs and attributes that rows share, on either side of each bound. */
#include "test.h"

#include "op/op.h"
#include "op/rules.h"

#include <math.h>

#include <qsim/model.h>

static void fail(const qs_op *op, const char *what) {
    char text[160];
    snprintf(text, sizeof(text), "%s %s: %s", qs_op_domain(op), op->name, what);
    CHECK_FAIL(text);
}

static void check_traits(const qs_op *op) {
    if (!op->traits && !qs_op_more_of(op)->also)
        fail(op, "states no traits: QS_PLAIN, if it has none");
    if ((op->traits & QS_PLAIN) && (op->traits & ~(uint32_t)QS_PLAIN))
        fail(op, "is plain and is not");
    if ((op->traits & QS_KEEPS) && !(op->traits & QS_MOVES))
        fail(op, "keeps elements that it does not move");
    if ((op->traits & QS_KEEPS_ONCE) && !(op->traits & QS_KEEPS))
        fail(op, "keeps elements once that it does not keep");
    if ((op->traits & QS_RESHAPES) && !(op->traits & QS_KEEPS_ONCE))
        fail(op, "reshapes elements that it does not keep");
    if ((op->traits & QS_CONVOLVES) && !(op->traits & QS_NEEDS_LAST))
        fail(op, "convolves in any layout");
    if ((op->traits & (QS_CONVOLVES | QS_MULTIPLIES)) && (!op->macs || !op->weight_inputs))
        fail(op, "sums products, and has no macs or no weights");
    if ((op->traits & QS_CONVOLVES) && (op->traits & QS_INTEGER) &&
        !qs_op_operands(op)->x[0].zero_point)
        fail(op, "convolves integers whose zero point, which pads them, is not stated");
    if ((op->traits & QS_QUANTIZES) && (op->traits & (QS_DEQUANTIZES | QS_INTEGER)))
        fail(op, "quantizes and computes on integers");
    const uint32_t sums = op->traits & (QS_ADDS | QS_SCALES | QS_DIVIDES);
    if (sums && (op->min_in != 2 || !(op->traits & QS_ELEMENTWISE) || (sums & (sums - 1))))
        fail(op, "is no sum, product or quotient of two operands, element by element");
    if (op->moments == QS_MOMENTS_NORM && op->min_in != 5)
        fail(op, "normalizes by statistics that are no inputs");
    if (qs_op_more_of(op)->curve && !(op->traits & QS_ELEMENTWISE))
        fail(op, "has a curve and is not element by element");
    if ((op->traits & QS_COSTLY) && !qs_op_more_of(op)->curve)
        fail(op, "says how long a curve takes that it has not");
    test_checks++;
}

static bool has_attr(const qs_op *op, const char *name) {
    bool found = false;
    for (int i = 0; i < op->attr_count; i++)
        found |= qs_same(op->attrs[i].name, name);
    return found;
}

static void check_sets(const qs_op *op) {
    const int sets = op->shape_inputs | op->setting_inputs;
    if ((op->shape_inputs & op->setting_inputs) || (sets & op->weight_inputs))
        fail(op, "an input is in two sets");
    for (int i = 0; i < 16; i++)
        if ((op->weight_inputs >> i & 1) && !qs_op_is_operand(op, i))
            fail(op, "weights are no operand");
    if (!op->infer)
        fail(op, "has no rules");
    if (has_attr(op, "into") != (op->over > 0))
        fail(op, "writes into a larger tensor, and does not say over which input");
    const qs_op_curve *c = qs_op_more_of(op)->curve;
    if (c && ((c->alpha != 0 && !has_attr(op, "alpha")) || (c->beta != 0 && !has_attr(op, "beta"))))
        fail(op, "has a default of an attribute that it has not");
    test_checks++;
}

/* A row that loading may find but for which a session has no steps is replaced by the layout pass,
 * or makes a sequence, which its readers look through. */
static void check_steps(const qs_op *op) {
    bool known;
    for (int i = 0; i < op->attr_count; i++)
        if (op->attrs[i].type == QSIM_ATTR_GRAPH)
            return; /* a run executes its subgraphs */
    if (op->lower && !op->kernel && !(op->traits & QS_KEEPS) && !qs_same(op->name, "BitCast"))
        fail(op, "has steps, and does not say what profiles call them");
    if (op->lower || op->expand || (op->traits & QS_MAKES_SEQUENCE)) /* steps, or nodes of them */
        return;
    const qs_op *made = qs_op_find("qsim", op->name, 1, &known);
    if (!(op->traits & QS_NEEDS_LAST) || !made || !made->lower)
        fail(op, "has no steps, and nothing replaces it");
    test_checks++;
}

/* The order in which qs_op_find searches rows. */
static void check_order(size_t index) {
    const qs_op *op = qs_op_at(index), *before = index > 0 ? qs_op_at(index - 1) : op;
    const bool same = op->domain == before->domain;
    if (same && qs_op_compare(before->name, op->name) > 0)
        fail(op, "is not in alphabetical order in lib/op/operators.c");
    if (qs_op_find(qs_op_domain(op), op->name, op->since > 1 ? op->since : 1, NULL) != op)
        fail(op, "is not found: it is in the list of another domain, or out of order");
    test_checks++;
}

static void check_versions(size_t index) {
    const qs_op *op = qs_op_at(index);
    for (int32_t version = 1; version <= qs_op_newest_opset(); version++) {
        const bool first =
            !op->domain && version >= op->since && (!op->until || version <= op->until);
        const qs_op *found = qs_op_find(qs_op_domain(op), op->name, version, NULL);
        if (first && found != op)
            fail(op, "two rows for one version");
    }
    test_checks++;
}

/* Defaults: all inputs are operands; versions reach to the newest opset, in com.microsoft to 1. */
static void test_defaults(void) {
    const qs_op *add = qs_op_find(NULL, "Add", 14, NULL);
    const qs_op *sizes = qs_op_find("ai.onnx", "Shape", 14, NULL);
    CHECK(add && sizes);
    CHECK(add && qs_op_is_operand(add, 0) && qs_op_is_operand(add, 1));
    CHECK(!qs_op_find(NULL, "Add", qs_op_newest_opset() + 1, NULL));
    CHECK(!qs_op_find("com.microsoft", "QLinearAdd", 2, NULL));
    CHECK(qs_op_find("com.microsoft", "QLinearAdd", 1, NULL) != NULL);
}

/* Operators, each with its inputs: of elements (x), of scales and of zero points (.). */
static void check_operands(const char *domain, int64_t version, const char *rows) {
    char name[40], inputs[40];
    for (int n = 0; sscanf(rows, "%39s %39s%n", name, inputs, &n) == 2; rows += n) {
        const qs_op *op = qs_op_find(domain, name, version, NULL);
        CHECK(op != NULL);
        for (int32_t k = 0; op && inputs[k]; k++)
            if (qs_op_is_operand(op, k) != (inputs[k] == 'x'))
                fail(op, "takes an operand for a parameter, or a parameter for an operand");
    }
}

static void test_operands(void) {
    check_operands("", 19,
                   "Clip x.. Reshape x. Where xxx QLinearConv x..x....x MatMulInteger xx.. "
                   "QuantizeLinear x.. DequantizeLinear x..");
    check_operands("com.microsoft", 1,
                   "QLinearAdd x..x.... QLinearConcat ..x..x..x..x..x..x..x QLinearSigmoid x.... "
                   "QLinearConv x..x....x QLinearWhere xx..x.... QLinearReduceMean x.... "
                   "QGemm x..x..x.. MatMulIntegerToFloat xx....x DynamicQuantizeMatMul xx..x "
                   "DynamicQuantizeLSTM xxxxxxxx.... QAttention xxx.....x "
                   "QEmbedLayerNormalization ..xxxxx...........");
}

/* Operators that static quantization takes, with their kinds; new ones may be missing here. */
static void test_kinds(void) {
    static const char *const kinds[] = {
        [QS_KIND_FLOAT] = " ArgMax Cast Exp LSTM Resize Softmax Sqrt TopK Where ",
        [QS_KIND_WEIGHTS] = " Conv Gemm MatMul ",
        [QS_KIND_ARITHMETIC] = " Add Concat Div HardSigmoid HardSwish LeakyRelu Mul Sigmoid Tanh ",
        [QS_KIND_POOL] = " AveragePool Clip GlobalAveragePool ReduceMean Relu ",
        [QS_KIND_MOVEMENT] = (" Flatten Identity MaxPool Pad Reshape Slice Split Squeeze Transpose "
                              "Unsqueeze "),
    };
    size_t found = 0;
    for (size_t i = 0; i < qs_op_count(); i++) {
        const qs_op *op = qs_op_at(i);
        char word[64];
        snprintf(word, sizeof(word), " %s ", op->name);
        for (size_t kind = 0; kind < QS_COUNT(kinds) && !op->domain; kind++) {
            if (!strstr(kinds[kind], word))
                continue;
            if (op->kind != kind)
                fail(op, "is quantized as something else");
            found++;
        }
        if (op->kind == QS_KIND_FLOAT)
            continue;
        if (op->domain)
            fail(op, "is quantized, though only operators of ai.onnx are");
        if ((op->kind == QS_KIND_WEIGHTS) != (op->kind_inputs == 0 && op->weight_inputs))
            fail(op, "begins integers without weights, or has weights and does not");
    }
    CHECK(found >= 28 + 9); /* every name, MaxPool twice: it has two rows */
}

/* The list that callers see ends before the rows that only passes make. */
static void test_listing(void) {
    qsim_operator_info op = {.struct_size = sizeof(op)};
    const char *before = "";
    int32_t count = 0;
    int code;
    while ((code = qsim_operator(NULL, count, &op)) == QSIM_OK) {
        CHECK(qs_same(op.domain, "") || qs_same(op.domain, "com.microsoft"));
        CHECK(qs_op_find(op.domain, op.op_type, op.since, NULL) != NULL);
        CHECK(count == 0 || !qs_same(op.domain, "") || qs_op_compare(before, op.op_type) <= 0);
        before = op.op_type;
        count++;
    }
    CHECK_INT(code, QSIM_E_NOT_FOUND);
    CHECK(count > 200);
    CHECK_INT(qsim_operator(NULL, -1, &op), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_operator(NULL, 0, NULL), QSIM_E_ARGUMENT);
    op.struct_size = 0;
    CHECK_INT(qsim_operator(NULL, 0, &op), QSIM_E_ARGUMENT);
}

/* ---- rules for inputs and attributes ---- */

enum { INPUTS = 4 };

/* A node with three inputs, the third left out, and one output; `values` has room for another. */
static struct {
    qs_value values[INPUTS], out;
    qs_id ids[3], outputs[1];
    qs_dim dims[1][QSIM_MAX_RANK];
    qs_attr attrs[3];
    qs_graph graph;
    qs_node node;
    qs_infer x;
} at;

static void set_up(void) {
    memset(&at, 0, sizeof(at));
    for (int i = 0; i < INPUTS; i++)
        at.values[i] = (qs_value){.name = "v", .rank = -1, .producer = QS_NONE};
    at.ids[1] = 1;
    at.ids[2] = QS_NONE;
    at.node = (qs_node){.name = "n",
                        .domain = "",
                        .op_type = "Op",
                        .inputs = at.ids,
                        .outputs = at.outputs,
                        .attrs = at.attrs,
                        .input_count = 3,
                        .output_count = 1};
    at.graph.values = at.values;
    at.graph.value_count = INPUTS;
    at.x = (qs_infer){
        .graph = &at.graph, .node = &at.node, .values = at.values, .out = &at.out, .dims = at.dims};
}

/* Gives input `index` a shape, whose memory ends after `rank` sizes; free_shape() it. */
static void shape(int index, int32_t rank, const int64_t *sizes) {
    qs_dim dims[QSIM_MAX_RANK + 1] = {{0}};
    for (int32_t i = 0; i < rank; i++)
        dims[i].size = sizes[i];
    at.values[index].rank = rank;
    at.values[index].dims = exact_copy(dims, (size_t)rank * sizeof(*dims));
}

static void free_shape(int index) {
    free((void *)(uintptr_t)at.values[index].dims);
    at.values[index].dims = NULL;
    at.values[index].rank = -1;
}

static void test_ranks(void) {
    static const int64_t sizes[] = {3, 0, -1, 2};
    set_up();
    for (int index = 0; index < 4; index++) /* unknown, left out, or beyond the inputs */
        for (int rank = 0; rank < 3; rank++)
            CHECK(!qs_infer_rank(&at.x, index, rank) && !qs_infer_least_rank(&at.x, index, rank) &&
                  !qs_infer_size(&at.x, index, 0, rank) && !qs_infer_count(&at.x, index, rank));
    for (int32_t has = 0; has <= 4; has++) {
        shape(0, has, sizes);
        for (int32_t wanted = 0; wanted <= 5; wanted++) {
            CHECK_INT(qs_infer_rank(&at.x, 0, wanted), has == wanted ? QSIM_OK : QSIM_E_SHAPE);
            CHECK_INT(qs_infer_least_rank(&at.x, 0, wanted),
                      has >= wanted ? QSIM_OK : QSIM_E_SHAPE);
        }
        free_shape(0);
    }
}

static void test_sizes(void) {
    static const int64_t sizes[] = {3, 0, -1, 2};
    set_up();
    shape(0, 4, sizes);
    for (int32_t axis = 0; axis <= 4; axis++) /* the last is none of them */
        for (int64_t size = -1; size <= 4; size++) {
            const bool open = axis == 4 || size < 0 || sizes[axis] < 0;
            CHECK_INT(qs_infer_size(&at.x, 0, axis, size),
                      open || sizes[axis] == size ? QSIM_OK : QSIM_E_SHAPE);
            CHECK_INT(qs_infer_list(&at.x, 0, size), QSIM_E_SHAPE);
        }
    free_shape(0);
    for (int32_t rank = 0; rank <= 2; rank++) { /* of 1, 3 and 0 elements */
        const int64_t elements = rank == 0 ? 1 : rank == 1 ? 3 : 0;
        shape(0, rank, sizes);
        for (int64_t count = -1; count <= 4; count++) {
            const bool same = count < 0 || count == elements;
            CHECK_INT(qs_infer_count(&at.x, 0, count), same ? QSIM_OK : QSIM_E_SHAPE);
            CHECK_INT(qs_infer_list(&at.x, 0, count), same && rank == 1 ? QSIM_OK : QSIM_E_SHAPE);
        }
        CHECK_INT(qs_is_single(&at.values[0]), elements == 1);
        CHECK_INT(qs_value_elements(&at.values[0]), elements);
        free_shape(0);
    }
    CHECK(qs_is_single(&at.values[0])); /* of unknown rank */
    const qs_dim dims[] = {{2, NULL}, {INT64_MAX / 2, NULL}, {-1, NULL}, {0, NULL}, {5, NULL}};
    const qs_dim one[] = {{INT64_MAX / 2 + 1, NULL}, {2, NULL}};
    CHECK(qs_dims_product(dims, 0, 2) == INT64_MAX - 1 && qs_dims_product(one, 0, 2) == -1);
    CHECK(qs_dims_product(dims, 1, 3) == -1 && qs_dims_product(dims, 3, 5) == 0);
    CHECK_INT(qs_dims_product(dims, 4, 5), 5);
}

static void test_matches(void) {
    for (int64_t a = -1; a <= 2; a++)
        for (int64_t b = -1; b <= 2; b++) {
            int64_t size = a;
            CHECK_INT(qs_infer_match(&at.x, &size, b, "sizes"),
                      a >= 0 && b >= 0 && a != b ? QSIM_E_SHAPE : QSIM_OK);
            CHECK_INT(size, a < 0 ? b : a);
        }
}

static void test_types(void) {
    set_up();
    for (int32_t type = QSIM_UNDEFINED; type <= QSIM_INT2; type++) {
        at.values[0].dtype = type;
        for (int32_t other = QSIM_FLOAT; other <= QSIM_INT2; other++) {
            at.values[1].dtype = other;
            const bool same = type == other || type == QSIM_UNDEFINED;
            CHECK_INT(qs_infer_type(&at.x, 0, QS_T(other)), same ? QSIM_OK : QSIM_E_DTYPE);
            CHECK_INT(qs_infer_same_type(&at.x, 0, 1), same ? QSIM_OK : QSIM_E_DTYPE);
            CHECK_INT(qs_infer_same_type(&at.x, 1, 0), same ? QSIM_OK : QSIM_E_DTYPE);
        }
        CHECK_INT(qs_infer_same_type(&at.x, 0, 2), QSIM_OK);
        CHECK_INT(qs_infer_same_type(&at.x, 2, 0), QSIM_OK);
    }
    at.values[0].dtype = 32;
    CHECK_INT(qs_infer_type(&at.x, 0, UINT32_MAX), QSIM_E_DTYPE);
    at.values[0].dtype = -1;
    CHECK_INT(qs_infer_type(&at.x, 0, UINT32_MAX), QSIM_E_DTYPE);
}

static void test_outputs(void) {
    qs_dim dims[QSIM_MAX_RANK + 1];
    set_up();
    for (int i = 0; i <= QSIM_MAX_RANK; i++)
        dims[i] = (qs_dim){i + 1 < QSIM_MAX_RANK ? 1 : 2, NULL};
    CHECK_INT(qs_infer_out(&at.x, 0, QSIM_FLOAT, QSIM_MAX_RANK, dims), QSIM_OK);
    CHECK(at.out.dtype == QSIM_FLOAT && at.out.rank == QSIM_MAX_RANK && at.out.dims == at.dims[0] &&
          at.dims[0][QSIM_MAX_RANK - 1].size == 2);
    CHECK_INT(qs_infer_out(&at.x, 0, QSIM_FLOAT, QSIM_MAX_RANK + 1, dims), QSIM_E_LIMIT);
    CHECK_INT(qs_infer_out(&at.x, 1, QSIM_DOUBLE, 1, dims), QSIM_OK); /* there is none */
    CHECK(at.out.dtype == QSIM_FLOAT && at.out.rank == QSIM_MAX_RANK);
    CHECK_INT(qs_infer_unknown(&at.x, QSIM_INT8), QSIM_OK);
    CHECK(at.out.dtype == QSIM_INT8 && at.out.rank == -1);
    dims[0].size = INT64_MAX;
    CHECK_INT(qs_infer_out(&at.x, 0, QSIM_FLOAT, 1, dims), QSIM_E_LIMIT);
    CHECK_INT(qs_infer_out(&at.x, 0, QSIM_UNDEFINED, 2, dims), TEST_WIDE(QSIM_OK));
    dims[1].size = 2;
    CHECK_INT(qs_infer_out(&at.x, 0, QSIM_UNDEFINED, 2, dims), QSIM_E_LIMIT);
}

static void test_axes(void) {
    set_up();
    for (int32_t rank = 0; rank <= 3; rank++)
        for (int64_t axis = -5; axis <= 4; axis++) {
            int32_t found = 99;
            const bool good = axis >= -rank && axis < rank;
            CHECK_INT(qs_infer_axis(&at.x, axis, rank, &found), good        ? QSIM_OK
                                                                : rank == 0 ? QSIM_E_SHAPE
                                                                            : QSIM_E_VALUE);
            CHECK_INT(found, good ? (axis + rank) % rank : 99);
        }
    static const struct {
        int64_t axes[3];
        int32_t count;
        int code;
        uint32_t mask;
    } lists[] = {
        {{0}, 0, QSIM_OK, 0},
        {{2, 0, -3}, 3, QSIM_OK, 7},
        {{-1, -4, 1}, 3, QSIM_OK, 11},
        {{1, 3, 1}, 3, QSIM_E_VALUE, 10},
        {{1, -3, 0}, 3, QSIM_E_VALUE, 2},
        {{1, 4, 0}, 3, QSIM_E_VALUE, 2},
    };
    for (size_t i = 0; i < QS_COUNT(lists); i++) {
        uint32_t mask = 99;
        const size_t size = (size_t)lists[i].count * sizeof(int64_t);
        int64_t *axes = exact_copy(lists[i].axes, size);
        CHECK_INT(qs_infer_axes(&at.x, axes, lists[i].count, 4, &mask), lists[i].code);
        CHECK_INT(mask, lists[i].mask);
        free(axes);
    }
}

/* Every pair of one axis, also where one of the values has an axis more before it. */
static void test_broadcasts(void) {
    static const qs_dim sizes[] = {{0, NULL},  {1, NULL}, {2, NULL}, {3, NULL},
                                   {-1, NULL}, {-1, "n"}, {-1, "m"}};
    set_up();
    for (size_t i = 0; i < QS_COUNT(sizes); i++)
        for (size_t k = 0; k < QS_COUNT(sizes); k++) {
            const qs_dim a = sizes[i], b = sizes[k];
            const bool known = a.size >= 0 && b.size >= 0, ones = a.size == 1 || b.size == 1;
            const bool fails = known && !ones && a.size != b.size;
            const int64_t size = a.size == 1   ? b.size
                                 : b.size == 1 ? a.size
                                 : a.size >= 0 ? a.size
                                               : b.size;
            const char *symbol = a.size == 1                                         ? b.symbol
                                 : b.size == 1 || (a.symbol == b.symbol && size < 0) ? a.symbol
                                                                                     : NULL;
            for (int longer = 0; longer <= 2; longer++) {
                const qs_dim first[] = {{5, NULL}, a}, second[] = {{5, NULL}, b};
                const qs_value x = {.rank = 1 + (longer == 1), .dims = first + (longer != 1)};
                const qs_value y = {.rank = 1 + (longer == 2), .dims = second + (longer != 2)};
                qs_dim dims[QSIM_MAX_RANK];
                int32_t rank = 99;
                CHECK_INT(qs_infer_broadcast(&at.x, &x, &y, &rank, dims),
                          fails ? QSIM_E_SHAPE : QSIM_OK);
                CHECK_INT(rank, fails ? -1 : 1 + (longer > 0));
                if (fails)
                    continue;
                CHECK(longer == 0 || dims[0].size == 5);
                CHECK(dims[rank - 1].size == size && dims[rank - 1].symbol == symbol);
            }
        }
    const qs_value unknown = {.rank = -1}, scalar = {.rank = 0};
    int32_t rank = 99;
    CHECK(!qs_infer_broadcast(&at.x, &unknown, &scalar, &rank, at.dims[0]) && rank == -1);
    CHECK(!qs_infer_broadcast(&at.x, &scalar, &unknown, &rank, at.dims[0]) && rank == -1);
    CHECK(!qs_infer_broadcast(&at.x, &scalar, &scalar, &rank, at.dims[0]) && rank == 0);
}

static void test_scales(void) {
    static const struct {
        float scale;
        int code, any;
    } cases[] = {
        {0x1p-149f, QSIM_OK, QSIM_OK},
        {0x1.fffffep127f, QSIM_OK, QSIM_OK},
        {0, QSIM_E_VALUE, QSIM_E_VALUE},
        {-0x1p-149f, QSIM_E_VALUE, QSIM_OK},
        {-0x1.fffffep127f, QSIM_E_VALUE, QSIM_OK},
        {INFINITY, QSIM_E_VALUE, QSIM_E_VALUE},
        {-INFINITY, QSIM_E_VALUE, QSIM_E_VALUE},
        {NAN, QSIM_E_VALUE, QSIM_E_VALUE},
    };
    set_up();
    for (size_t i = 0; i < QS_COUNT(cases); i++) {
        const float floats[] = {1, cases[i].scale};
        float *data = exact_copy(floats, sizeof(floats));
        qs_const c = {.dtype = QSIM_FLOAT, .data = data, .elements = 2};
        at.values[0].dtype = QSIM_FLOAT;
        at.values[0].data = &c;
        CHECK_INT(qs_infer_scale(&at.x, 0), cases[i].code);
        CHECK_INT(qs_infer_any_scale(&at.x, 0), cases[i].any);
        c.elements = 1;
        CHECK_INT(qs_infer_scale(&at.x, 0), QSIM_OK);
        c.elements = 0;
        CHECK_INT(qs_infer_scale(&at.x, 0), QSIM_E_SHAPE);
        at.values[0].dtype = QSIM_INT32;
        CHECK_INT(qs_infer_scale(&at.x, 0), QSIM_E_DTYPE);
        free(data);
    }
    CHECK_INT(qs_infer_scale(&at.x, 1), QSIM_OK); /* not constant */
    CHECK_INT(qs_infer_scale(&at.x, 2), QSIM_OK);
}

/* Elements of constants of each type that is read, as numbers. */
static void test_elements(void) {
    const float f[] = {0, -1.5f};
    const double d[] = {0, 1e300};
    const uint8_t u8[] = {0, 255};
    const int8_t i8[] = {0, -128};
    const int16_t i16[] = {0, -32768};
    const int32_t i32[] = {0, INT32_MIN};
    const int64_t i64[] = {0, -5};
    const struct {
        int32_t dtype;
        const void *data;
        double second;
    } types[] = {{QSIM_FLOAT, f, -1.5}, {QSIM_DOUBLE, d, 1e300},   {QSIM_UINT8, u8, 255},
                 {QSIM_INT8, i8, -128}, {QSIM_INT16, i16, -32768}, {QSIM_INT32, i32, INT32_MIN},
                 {QSIM_INT64, i64, -5}};
    for (size_t i = 0; i < QS_COUNT(types); i++) {
        const qs_const c = {.dtype = types[i].dtype, .data = types[i].data, .elements = 2};
        CHECK(qs_const_at(&c, 0) == 0 && qs_const_at(&c, 1) == types[i].second);
    }
}

/* Lists of integers as inputs and as attributes, with as much room as there are, and less. */
static void test_lists(void) {
    static const int64_t longs[] = {INT64_MIN, -1, INT64_MAX};
    static const int32_t ints[] = {INT32_MIN, -1, INT32_MAX};
    static const int64_t sizes[] = {3, 1, 1};
    int64_t out[3];
    int32_t count = 0;
    set_up();
    at.node.attr_count = 1;
    for (int wide = 0; wide < 2; wide++) {
        void *data = wide ? exact_copy(longs, sizeof(longs)) : exact_copy(ints, sizeof(ints));
        const qs_const c = {.dtype = wide ? QSIM_INT64 : QSIM_INT32, .data = data, .elements = 3};
        at.values[0].dtype = c.dtype;
        at.values[0].data = &c;
        at.attrs[0] = (qs_attr){.name = "list", .type = QSIM_ATTR_INTS, .count = 3};
        at.attrs[0].u.ints = longs;
        for (int32_t room = 2; room <= 3; room++) {
            int64_t *exact = exact_copy(longs, (size_t)room * sizeof(*longs));
            CHECK_INT(qs_infer_ints(&at.x, 0, exact, room, &count),
                      room < 3 ? QSIM_E_LIMIT : QSIM_OK);
            for (int i = 0; i < 3 && room == 3; i++)
                CHECK_INT(exact[i], wide ? longs[i] : ints[i]);
            CHECK_INT(count, room < 3 ? QS_DYNAMIC : 3);
            CHECK_INT(qs_infer_attr_ints(&at.x, "list", exact, room, &count),
                      room < 3 ? QSIM_E_LIMIT : QSIM_OK);
            CHECK_INT(count, room < 3 ? QS_ABSENT : 3);
            free(exact);
        }
        for (int32_t rank = 0; rank <= 3; rank++) {
            shape(0, rank, sizes);
            CHECK_INT(qs_infer_ints(&at.x, 0, out, 3, &count), rank > 1 ? QSIM_E_SHAPE : QSIM_OK);
            free_shape(0);
        }
        at.values[0].data = NULL;
        free(data);
    }
    CHECK_INT(qs_infer_ints(&at.x, 0, out, 3, &count), QSIM_OK);
    CHECK_INT(count, QS_DYNAMIC);
    at.values[0].dtype = QSIM_FLOAT;
    CHECK_INT(qs_infer_ints(&at.x, 0, out, 3, &count), QSIM_E_DTYPE);
    CHECK_INT(qs_infer_ints(&at.x, 2, out, 3, &count), QSIM_OK);
    CHECK_INT(count, QS_ABSENT);
    CHECK_INT(qs_infer_attr_ints(&at.x, "other", out, 3, &count), QSIM_OK);
    CHECK_INT(count, QS_ABSENT);
    for (int32_t i = 0; i <= 3; i++)
        CHECK_INT(qs_node_entry(&at.node, "list", i), i < 3 ? longs[i] : 0);
    CHECK_INT(qs_node_entry(&at.node, "other", 0), 0);
    at.attrs[0].type = QSIM_ATTR_FLOATS;
    CHECK_INT(qs_node_entry(&at.node, "list", 0), 0);
}

static void test_words(void) {
    static const char *const words[] = {"", "a", "ab", "b"};
    set_up();
    at.node.attr_count = 1;
    for (size_t i = 0; i < QS_COUNT(words); i++) {
        char *data = exact_copy(words[i], strlen(words[i]));
        at.attrs[0] = (qs_attr){.name = "word", .type = QSIM_ATTR_STRING};
        at.attrs[0].u.s = (qs_span){(const uint8_t *)data, strlen(words[i])};
        for (size_t k = 0; k < QS_COUNT(words); k++)
            CHECK_INT(qs_node_string_is(&at.node, "word", words[k], false), i == k);
        CHECK_INT(qs_node_string_is(&at.node, "other", words[i], false), false);
        CHECK_INT(qs_node_string_is(&at.node, "other", "z", true), true);
        static const int32_t which[3][4] = {{2, 0, -1, 1}, {0, -1, -1, -1}, {-1, 0, 1, 2}};
        CHECK_INT(qs_node_word(&at.node, "word", "a|b|"), which[0][i]);
        CHECK_INT(qs_node_word(&at.node, "word", ""), which[1][i]);
        CHECK_INT(qs_node_word(&at.node, "word", "a|ab|b"), which[2][i]);
        CHECK_INT(qs_node_word(&at.node, "other", "a|b"), 0);
        at.attrs[0].type = QSIM_ATTR_INTS;
        CHECK_INT(qs_node_string_is(&at.node, "word", words[i], true), false);
        CHECK_INT(qs_node_word(&at.node, "word", words[i]), -1);
        free(data);
    }
    for (int n = 63; n <= 65; n++) { /* words are shown up to 64 bytes */
        char word[65], wanted[256];
        qsim_error e = {0};
        memset(word, 'w', sizeof(word));
        at.attrs[0].type = QSIM_ATTR_STRING;
        at.attrs[0].u.s = (qs_span){exact_copy(word, (size_t)n), (size_t)n};
        at.x.error = &e;
        int32_t which;
        CHECK_INT(qs_infer_word(&at.x, "word", n == 64 ? "a|b|" : "a|b", &which), QSIM_E_VALUE);
        CHECK_INT(which, -1);
        snprintf(wanted, sizeof(wanted),
                 "model: attribute word is '%.*s', none of a|b (node 'n', Op: opset 0)",
                 n < 64 ? n : 64, word);
        CHECK_STR(e.message, wanted);
        free((void *)(uintptr_t)at.attrs[0].u.s.data);
    }
}

int main(void) {
    test_ranks();
    test_sizes();
    test_matches();
    test_types();
    test_outputs();
    test_axes();
    test_broadcasts();
    test_scales();
    test_elements();
    test_lists();
    test_words();
    for (size_t i = 0; i < qs_op_count(); i++) {
        check_traits(qs_op_at(i));
        check_sets(qs_op_at(i));
        check_steps(qs_op_at(i));
        check_versions(i);
        check_order(i);
    }
    test_defaults();
    test_operands();
    test_kinds();
    test_listing();
    return test_done();
}
