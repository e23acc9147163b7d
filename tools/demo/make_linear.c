/* SPDX-License-Identifier: MIT */
/* qsim-make-linear: builds the smallest model worth quantizing, Y = X W + b. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qsim/model.h>

#include "program.h"

typedef struct sizes {
    int64_t inputs, outputs, batch, seed; /* batch 0: a free axis named N */
} sizes;

/* Uniform in [-limit, limit): the upper bits of a 64-bit linear congruential generator. */
static void fill(float *values, size_t count, double limit, uint64_t *state) {
    for (size_t i = 0; i < count; i++) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(limit * ((double)(*state >> 40) / 8388608.0 - 1.0));
    }
}

static int build(const sizes *s, const float *w, const float *bias, qsim_model **m, qsim_error *e) {
    char x[64], w_type[64], b_type[64];
    qsim_builder *b;
    long long in = s->inputs, out = s->outputs;
    snprintf(x, sizeof(x), "float[N,%lld]", in);
    if (s->batch)
        snprintf(x, sizeof(x), "float[%lld,%lld]", (long long)s->batch, in);
    snprintf(w_type, sizeof(w_type), "float[%lld,%lld]", in, out);
    snprintf(b_type, sizeof(b_type), "float[%lld]", out);
    int code = qsim_builder_create(NULL, 13, "linear", &b, e);
    if (code)
        return code;
    qsim_builder_input_as(b, "X", x);
    qsim_builder_constant_as(b, "W", w_type, w);
    qsim_builder_constant_as(b, "b", b_type, bias);
    qsim_builder_node(b, "", "MatMul", "matmul", "X,W", "XW");
    qsim_builder_node(b, "", "Add", "add", "XW,b", "Y");
    qsim_builder_output_as(b, "Y", NULL);
    code = qsim_builder_finish(b, m, e);
    qsim_builder_free(b);
    return code;
}

static int report(const tool *t, const sizes *s, const char *path, size_t size) {
    int64_t parameters = s->inputs * s->outputs + s->outputs;
    char batch[32] = "N", bytes[32];
    if (t->json) {
        json j = {0};
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_string(&j, "file", path);
        json_int(&j, "parameters", parameters);
        json_int(&j, "bytes", (int64_t)size);
        json_end(&j);
        return tool_print_json(t, &j);
    }
    if (t->quiet)
        return EXIT_OK;
    if (s->batch)
        snprintf(batch, sizeof(batch), "%lld", (long long)s->batch);
    FILE *out = strcmp(path, "-") == 0 ? stderr : stdout;
    fprintf(out, "%s: MatMul(X, W) + Add(b), opset 13, checked\n", path);
    fprintf(out, "X float[%s,%lld] -> Y float[%s,%lld], %lld parameters, seed %lld, %s\n", batch,
            (long long)s->inputs, batch, (long long)s->outputs, (long long)parameters,
            (long long)s->seed, tool_bytes((double)size, bytes));
    return EXIT_OK;
}

static int make(const tool *t, const sizes *s, const char *path) {
    size_t count = (size_t)(s->inputs * s->outputs);
    uint64_t state = (uint64_t)s->seed;
    float *w = tool_alloc(count, sizeof(*w)), *bias = tool_alloc((size_t)s->outputs, sizeof(*bias));
    qsim_model *m = NULL;
    qsim_error e;
    double limit = sqrt(6.0 / (double)(s->inputs + s->outputs)); /* Glorot's initialization */
    fill(w, count, limit, &state);
    fill(bias, (size_t)s->outputs, 0.1, &state);
    int code = build(s, w, bias, &m, &e) ? tool_error(t, path, &e) : EXIT_OK;
    if (code == EXIT_OK)
        code = tool_save_model(t, m, path);
    if (code == EXIT_OK)
        code = report(t, s, path, (size_t)qsim_model_bytes(m));
    qsim_model_free(m);
    free(w);
    free(bias);
    return code;
}

static int run(tool *t) {
    const char *path = args_value(&t->args, "output");
    sizes s;
    int code = EXIT_OK;
    path = path ? path : "linear_fp32.onnx";
    if (!tool_operands(t, 0, 0) || !tool_int(t, "inputs", 1, 65536, 64, &s.inputs) ||
        !tool_int(t, "outputs", 1, 65536, 32, &s.outputs) ||
        !tool_int(t, "batch", 0, 65536, 0, &s.batch) ||
        !tool_int(t, "seed", 0, INT64_MAX, 0, &s.seed))
        return EXIT_USAGE;
    if (s.inputs * s.outputs > (int64_t)1 << 28)
        return tool_usage(t, NULL, "--inputs times --outputs is over %d weights", 1 << 28);
    return tool_may_write(t, path, &code) ? make(t, &s, path) : code;
}

static const option options[] = {
    OPTION_OUTPUT("the ONNX model to write (linear_fp32.onnx)"),
    OPTION_FORCE,
    {"inputs", "N", "columns of X (64)", 0, NULL},
    {"outputs", "N", "columns of Y (32)", 0, NULL},
    {"batch", "N", "rows of X; 0 leaves them open (0)", 0, NULL},
    {"seed", "N", "of the weights; the same seed gives the same bytes (0)", 0, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const verb linear_verb = {
    .name = "qsim-make-linear",
    .operands = "[-o MODEL.onnx]",
    .summary = "Writes a linear layer, MatMul(X, W) + Add(b), as an ONNX model.",
    .options = options,
    .run = run,
};

int main(int argc, char **argv) {
    return program_main(&linear_verb, 0, argc, argv);
}
