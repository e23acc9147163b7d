/* SPDX-License-Identifier: MIT */
/* Prints docs/OPERATORS.md: the facts of qsim_operator about each operator. */
#include <stdio.h>
#include <string.h>

#include <qsim/qsim.h>

/* ---- types ---- */

/* The largest first; a name stands for all of its types. */
#define BIT(dtype) (1u << (dtype))
#define INTEGERS                                                                                   \
    (BIT(QSIM_UINT8) | BIT(QSIM_INT8) | BIT(QSIM_UINT16) | BIT(QSIM_INT16) | BIT(QSIM_UINT32) |    \
     BIT(QSIM_INT32) | BIT(QSIM_UINT64) | BIT(QSIM_INT64))
#define FLOAT8                                                                                     \
    (BIT(QSIM_FLOAT8E4M3FN) | BIT(QSIM_FLOAT8E4M3FNUZ) | BIT(QSIM_FLOAT8E5M2) |                    \
     BIT(QSIM_FLOAT8E5M2FNUZ))
#define FLOATS (BIT(QSIM_FLOAT) | BIT(QSIM_DOUBLE) | BIT(QSIM_FLOAT16) | BIT(QSIM_BFLOAT16))

static const struct {
    const char *name;
    uint32_t types;
} sets[] = {
    {"any of whole bytes", INTEGERS | FLOATS | FLOAT8 | BIT(QSIM_BOOL) | BIT(QSIM_FLOAT8E8M0)},
    {"integers", INTEGERS},
    {"8-bit", BIT(QSIM_UINT8) | BIT(QSIM_INT8)},
};

static void add_word(char *text, size_t capacity, const char *word) {
    snprintf(text + strlen(text), capacity - strlen(text), "%s%s", *text ? ", " : "", word);
}

static void types_of(const qsim_operator_info *op, char *text, size_t capacity) {
    uint32_t rest = op->types, known = 0;
    *text = 0;
    for (int32_t t = 1; t < 32; t++)
        known |= qsim_dtype_bits(t) > 0 ? BIT(t) : 0;
    if (rest == 0 || rest == known) {
        snprintf(text, capacity, "%s", rest ? "any" : "–");
        return;
    }
    for (size_t s = 0; s < sizeof(sets) / sizeof(*sets); s++) {
        if ((rest & sets[s].types) != sets[s].types)
            continue;
        add_word(text, capacity, sets[s].name);
        rest &= ~sets[s].types;
    }
    for (int32_t t = 1; t < 32; t++)
        if (rest & BIT(t))
            add_word(text, capacity, qsim_dtype_name(t));
}

/* ---- the page ---- */

static void inputs_of(const qsim_operator_info *op, char *text, size_t capacity) {
    if (op->max_inputs < 0)
        snprintf(text, capacity, "%d or more", op->min_inputs);
    else if (op->max_inputs > op->min_inputs)
        snprintf(text, capacity, "%d to %d", op->min_inputs, op->max_inputs);
    else
        snprintf(text, capacity, "%d", op->min_inputs);
}

static void print_row(const qsim_operator_info *op) {
    char versions[32], inputs[32], types[256];
    snprintf(versions, sizeof(versions),
             op->until == op->since ? "%d"
             : op->until            ? "%d–%d"
                                    : "%d–",
             op->since, op->until);
    inputs_of(op, inputs, sizeof(inputs));
    types_of(op, types, sizeof(types));
    printf("| %s | %s | %s | %s | %s | %s |\n", op->op_type, versions, inputs, types,
           *op->integer_form ? op->integer_form : "–", *op->kernel ? op->kernel : "–");
}

static void print_heading(const char *domain) {
    printf("\n## %s\n\n"
           "| operator | opsets | inputs | types of the first operand | quantized form | kernel |\n"
           "|---|---|---|---|---|---|\n",
           *domain ? domain : "ai.onnx");
}

/* The newest opset that models may have, found by asking the builder. */
static int32_t newest_opset(void) {
    int32_t opset = 1;
    qsim_builder *b;
    for (;; opset++) {
        if (qsim_builder_create(NULL, opset, "g", &b, NULL))
            return opset - 1;
        qsim_builder_free(b);
    }
}

int main(void) {
    qsim_operator_info op = {.struct_size = sizeof(op)};
    const char *domain = NULL;
    int code = QSIM_OK;
    printf("# Operators\n\n"
           "What `qsim info --ops` lists, as `test/unit/op/operators_page.c` prints it; a test "
           "fails when this page is stale. ai.onnx is known up to opset %d.\n"
           "A model with any other operator, version or type is refused by name when it is "
           "loaded.\n\n"
           "*Opsets*: from which to which version of the domain a form of the operator is known; "
           "without an end: up to the newest.\n"
           "*Types*: those of the newest version; integers have 8 to 64 bits. Other inputs have "
           "rules of their own; `qsim check` names what breaks them.\n"
           "*Quantized form*: the operator that does the same on quantized numbers; a table has "
           "256 bytes ([QUANTIZATION](QUANTIZATION.md), section 9). –: it runs in float.\n"
           "*Kernel*: what `qsim info --steps` and profiles call its step, which may say more "
           "(\"conv add\"). –: it makes no step, or is made of other operators.\n",
           newest_opset());
    for (int32_t i = 0; !code; i++) {
        code = qsim_operator(NULL, i, &op);
        if (code)
            break;
        if (!domain || strcmp(domain, op.domain) != 0)
            print_heading(op.domain);
        domain = op.domain;
        print_row(&op);
    }
    return code != QSIM_E_NOT_FOUND;
}
