/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/OPERATORS.md from the operator table. Types are asked of each row's rules: those that
 * the first operand may have while nothing else is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ctx.h"
#include "op/op.h"

#include <qsim/qsim.h>

static const char *domain_of(const qs_op *op) {
    return op->domain ? op->domain : "";
}

static int by_name(const void *a, const void *b) {
    const qs_op *x = *(const qs_op *const *)a, *y = *(const qs_op *const *)b;
    const int order = strcmp(x->name, y->name);
    return order ? order : x->since - y->since;
}

/* ---- types ---- */

/* What rules want to see before they look at types. */
static int set_needed(qs_graph *g, qs_id node, const qs_op *op) {
    static const int64_t two[] = {2, 2};
    int code = 0;
    for (int32_t i = 0; i < op->attr_count && !code; i++) {
        const char *name = op->attrs[i].name;
        if (strcmp(name, "kernel_shape") == 0)
            code = qs_node_set_ints(g, node, name, two, 2);
        else if (strcmp(name, "to") == 0)
            code = qs_node_set_int(g, node, name, QSIM_FLOAT);
        else if (strcmp(name, "hidden_size") == 0)
            code = qs_node_set_int(g, node, name, 2);
    }
    return code;
}

static int32_t newest(const qs_op *op) {
    return op->until ? op->until : op->domain ? 1 : (int32_t)qs_op_newest_opset();
}

/* Where the first tensor of elements is. */
static int32_t first_operand(const qs_op *op) {
    const qs_operand *x = &op->quantized.x[0];
    return op->traits & (QS_INTEGER | QS_DEQUANTIZES) && x->zero_point ? x->at : 0;
}

/* What the rules say of a node whose first operand has this type, everything else unknown. */
typedef struct answer {
    int code;
    int32_t made; /* type of output 0 */
    uint32_t traits;
} answer;

static answer ask(qsim_ctx *ctx, const qs_op *op, int32_t dtype) {
    static qs_value made[2];
    static qs_dim dims[2][QSIM_MAX_RANK];
    qs_graph *g;
    qs_id in[16] = {0}, out;
    int32_t inputs = op->min_in;
    answer a = {0};
    qsim_error error;
    char name[] = "a";
    for (size_t i = 0; i < QS_COUNT(op->later); i++)
        if (op->later[i].since && op->later[i].min_in > inputs)
            inputs = op->later[i].min_in;
    if (inputs > 16 || qs_graph_create(ctx, &g))
        exit(1);
    for (int32_t i = 0; i < inputs; i++, name[0]++)
        in[i] = qs_graph_add_value(g, name);
    out = qs_graph_add_value(g, "y");
    qs_id node = qs_graph_add_node(g, domain_of(op), op->name, "n", in, inputs, &out, 1);
    if (node < 0 || set_needed(g, node, op))
        exit(1);
    g->nodes[node].op = op;
    g->nodes[node].version = newest(op);
    if (inputs > 0)
        g->values[in[first_operand(op)]].dtype = dtype;
    a.code = qs_op_infer_node(g, g->values, node, made, dims, "m", &error);
    a.made = made[0].dtype;
    a.traits = qs_node_traits(g, &g->nodes[node]);
    qs_graph_free(g);
    return a;
}

static bool takes(qsim_ctx *ctx, const qs_op *op, int32_t dtype) {
    const int code = ask(ctx, op, dtype).code;
    return code != QSIM_E_DTYPE && code != QSIM_E_UNSUPPORTED;
}

typedef struct type_set {
    const char *name;
    int32_t types[16];
} type_set;

/* The largest first; a name stands for all of its types. */
static const type_set sets[] = {
    {"any of whole bytes",
     {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16, QSIM_UINT32, QSIM_INT32, QSIM_UINT64,
      QSIM_INT64, QSIM_FLOAT, QSIM_DOUBLE, QSIM_BOOL, QSIM_FLOAT16, QSIM_BFLOAT16}},
    {"integers",
     {QSIM_UINT8, QSIM_INT8, QSIM_UINT16, QSIM_INT16, QSIM_UINT32, QSIM_INT32, QSIM_UINT64,
      QSIM_INT64}},
    {"8-bit", {QSIM_UINT8, QSIM_INT8}},
};

static void add_word(char *text, size_t room, const char *word) {
    snprintf(text + strlen(text), room - strlen(text), "%s%s", *text ? ", " : "", word);
}

static void types_of(qsim_ctx *ctx, const qs_op *op, char *text, size_t room) {
    bool has[32] = {false};
    *text = 0;
    if (op->min_in == 0 && op->max_in == 0) {
        snprintf(text, room, "–");
        return;
    }
    int32_t count = 0, known = 0;
    for (int32_t t = 1; t < 32; t++) {
        if (qsim_dtype_bits(t) <= 0)
            continue;
        has[t] = takes(ctx, op, t);
        count += has[t];
        known++;
    }
    if (count == known) {
        snprintf(text, room, "any");
        return;
    }
    for (size_t s = 0; s < QS_COUNT(sets); s++) {
        bool all = true;
        for (size_t i = 0; sets[s].types[i]; i++)
            all = all && has[sets[s].types[i]];
        if (!all)
            continue;
        add_word(text, room, sets[s].name);
        for (size_t i = 0; sets[s].types[i]; i++)
            has[sets[s].types[i]] = false;
    }
    const bool bytes = strstr(text, "any of") != NULL;
    for (int32_t t = 1; t < 32; t++)
        if (has[t] && !(bytes && qsim_dtype_bits(t) == 8))
            add_word(text, room, qsim_dtype_name(t));
}

/* ---- the page ---- */

static bool has_row(const char *domain, const char *prefix, const char *name) {
    char full[96];
    bool known;
    snprintf(full, sizeof(full), "%s%s", prefix, name);
    qs_op_find(domain, full, qs_op_newest_opset(), &known);
    return known;
}

static const char *form_by_traits(const qs_op *op, const answer *a) {
    const uint32_t traits = op->traits;
    if (traits & QS_INTEGER)
        return "is one";
    if (traits & QS_QUANTIZES)
        return "makes integers";
    if (traits & QS_DEQUANTIZES)
        return "takes integers";
    if (traits & QS_MULTIPLIES)
        return "QLinearMatMul";
    if (traits & QS_MOVES)
        return "the same, on bytes";
    if (a->traits & QS_MOVES)
        return "the same, on bytes, if its attributes allow it";
    if (!(traits & QS_ELEMENTWISE) || a->code == QSIM_E_DTYPE || a->made != QSIM_FLOAT)
        return "–";
    return op->min_in > 1 || op->max_in < 0 ? "table, if one operand varies" : "table";
}

/* What carries quantized numbers through the operator: docs/QUANTIZATION.md, section 9. */
static void form_of(qsim_ctx *ctx, const qs_op *op, char *text, size_t room) {
    const answer a = ask(ctx, op, QSIM_FLOAT);
    const bool own =
        has_row("", "QLinear", op->name) || has_row("com.microsoft", "QLinear", op->name);
    snprintf(text, room, "%s%s", own ? "QLinear" : "", own ? op->name : form_by_traits(op, &a));
}

static void count_text(int low, int high, char *text, size_t room) {
    if (high < 0)
        snprintf(text, room, "%d or more", low);
    else if (high > low)
        snprintf(text, room, "%d to %d", low, high);
    else
        snprintf(text, room, "%d", low);
}

static void print_row(qsim_ctx *ctx, const qs_op *op) {
    char versions[32], inputs[32], types[256], form[96];
    int low = op->min_in, high = op->max_in ? op->max_in : op->min_in;
    for (size_t i = 0; i < QS_COUNT(op->later); i++)
        if (op->later[i].since) {
            low = op->later[i].min_in < low ? op->later[i].min_in : low;
            high = high < 0 || op->later[i].max_in < 0 ? -1
                   : op->later[i].max_in > high        ? op->later[i].max_in
                                                       : high;
        }
    const int since = op->since ? op->since : 1;
    snprintf(versions, sizeof(versions),
             op->until == since ? "%d"
             : op->until        ? "%d–%d"
                                : "%d–",
             since, op->until);
    count_text(low, high, inputs, sizeof(inputs));
    types_of(ctx, op, types, sizeof(types));
    form_of(ctx, op, form, sizeof(form));
    printf("| %s | %s | %s | %s | %s |\n", op->name, versions, inputs, types, form);
}

static void print_domain(qsim_ctx *ctx, const qs_op *const *rows, size_t count,
                         const char *domain) {
    printf("\n## %s\n\n"
           "| operator | opsets | inputs | types of the first operand | quantized form |\n"
           "|---|---|---|---|---|\n",
           *domain ? domain : "ai.onnx");
    for (size_t i = 0; i < count; i++)
        if (strcmp(domain_of(rows[i]), domain) == 0)
            print_row(ctx, rows[i]);
}

int main(void) {
    const size_t count = qs_op_count();
    const qs_op **rows = calloc(count, sizeof(*rows));
    qsim_ctx *ctx;
    if (!rows || qsim_ctx_create(NULL, &ctx, NULL))
        return 1;
    for (size_t i = 0; i < count; i++)
        rows[i] = qs_op_at(i);
    qsort(rows, count, sizeof(*rows), by_name);
    printf(
        "# Operators\n\n"
        "Made from the operator table by `test/unit/op/operators_page.c`; a test fails when this "
        "page is stale. ai.onnx is known up to opset %d.\n"
        "A model with any other operator, version or type is refused by name when it is loaded."
        "\n\n"
        "*Opsets*: from which to which version of the domain a form of the operator is known; "
        "without an end: up to the newest.\n"
        "*Types*: those of the newest version; integers have 8 to 64 bits. Other inputs have rules of their own; "
        "`qsim check` names what breaks them.\n"
        "*Quantized form*: the operator that does the same on quantized numbers; a table has 256 bytes "
        "([QUANTIZATION](QUANTIZATION.md), section 9). –: it runs in float.\n",
        (int)qs_op_newest_opset());
    print_domain(ctx, rows, count, "");
    print_domain(ctx, rows, count, "com.microsoft");
    free(rows);
    qsim_ctx_free(ctx);
    return 0;
}
