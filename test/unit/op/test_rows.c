/* SPDX-License-Identifier: MIT */
/* Facts that every row of the operator table must state, and their consistency. */
#include "test.h"

#include "op/op.h"

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
        if (op->attrs[i].type == QS_ATTR_GRAPH)
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

/* Inputs of elements, of scales and of zero points, in the operators' own order. */
static void test_operands(void) {
    static const struct {
        const char *domain, *name, *operands; /* x: an operand */
    } rows[] = {
        {"", "Clip", "x.."},
        {"", "Reshape", "x."},
        {"", "Where", "xxx"},
        {"", "QLinearConv", "x..x....x"},
        {"", "MatMulInteger", "xx.."},
        {"", "QuantizeLinear", "x.."},
        {"", "DequantizeLinear", "x.."},
        {"com.microsoft", "QLinearAdd", "x..x...."},
        {"com.microsoft", "QLinearConcat", "..x..x..x..x..x..x..x"},
        {"com.microsoft", "QLinearSigmoid", "x...."},
    };
    for (size_t i = 0; i < QS_COUNT(rows); i++) {
        const qs_op *op = qs_op_find(rows[i].domain, rows[i].name, 19, NULL);
        op = op ? op : qs_op_find(rows[i].domain, rows[i].name, 1, NULL);
        CHECK(op != NULL);
        for (int32_t k = 0; op && rows[i].operands[k]; k++)
            if (qs_op_is_operand(op, k) != (rows[i].operands[k] == 'x'))
                fail(op, "takes an operand for a parameter, or a parameter for an operand");
    }
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

int main(void) {
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
