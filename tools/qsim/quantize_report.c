/* SPDX-License-Identifier: MIT */
/* The report of qsim quantize. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrating.h"
#include "common/columns.h"
#include "float_parts.h"
#include "io_option.h"
#include "modelinfo.h"
#include "quantizing.h"

static const char *scheme_name(int32_t scheme) {
    switch (scheme) {
    case QSIM_WEIGHT_CHANNEL_SYMMETRIC: return "per channel, symmetric";
    case QSIM_WEIGHT_TENSOR_SYMMETRIC: return "per tensor, symmetric";
    case QSIM_WEIGHT_TENSOR_ASYMMETRIC: return "per tensor, asymmetric";
    case QSIM_WEIGHT_CHANNEL_ASYMMETRIC: return "per channel, asymmetric";
    default: return "fp32";
    }
}

/* Text of a layer's scheme, with the type of weights that have not 8 bits. */
static const char *weights_text(const qsim_layer_info *info, char out[64]) {
    const bool narrow = info->dtype == QSIM_INT4 || info->dtype == QSIM_UINT4,
               half = info->dtype == QSIM_FLOAT16;
    snprintf(out, 64, "%s%s%s", narrow || half ? qsim_dtype_name(info->dtype) : "",
             narrow ? ", " : "", half ? "" : scheme_name(info->scheme));
    return out;
}

static const char *form_name(const quantizing *q) {
    switch (q->options.mode) {
    case QSIM_MODE_DYNAMIC: return q->options.per_row ? "dynamic, per row" : "dynamic";
    case QSIM_MODE_WEIGHTS: return "weights only (floats again when loaded)";
    default: return q->options.format == QSIM_FORMAT_QDQ ? "QDQ" : "QOperator";
    }
}

/* ---- printing ---- */

/* Counts the layers that are quantized, and those that are not. */
static void count_layers(const quantizing *q, int *integer, int *floats) {
    *integer = *floats = 0;
    for (size_t i = 0; i < q->layer_count; i++) {
        ++*(q->layers[i].scheme < 0 ? floats : integer);
    }
}

static int count_bits(const quantizing *q, int32_t bits) {
    int found = 0;
    for (size_t i = 0; i < q->layer_count; i++)
        found += qsim_dtype_bits(q->layers[i].dtype) == bits;
    return found;
}

void quantize_warn_unchanged(const tool *t, const quantizing *q) {
    int integer, floats;
    count_layers(q, &integer, &floats);
    if (integer == 0 && floats == 0) /* floats: as rules say */
        tool_warn(t, "no layer was quantized: none has constant weights that could be");
}

/* Is this node a layer whose weights are stored in fewer bits? */
static bool becomes_smaller(void *user, const char *name) {
    const quantizing *q = user;
    for (size_t i = 0; i < q->layer_count; i++) {
        if ((q->layers[i].scheme >= 0 || q->layers[i].dtype == QSIM_FLOAT16) &&
            strcmp(q->layers[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Finds the nodes with weights that stay float, in the result or in a dry run. */
static void find_floats(quantizing *q, float_parts *f) {
    if (!q->result && !q->folded) /* folds Constant nodes to constants of the graph */
        (void)qsim_model_optimize(q->model, QSIM_LEVEL_EXTENDED, &q->folded, NULL);
    const qsim_model *m = q->result ? q->result : q->folded ? q->folded : q->model;
    float_parts_find(m, becomes_smaller, q, f);
}

/* All layers with weights: int8 ones, and float ones, whether or not they could be int8. */
static void json_layers(json *j, quantizing *q) {
    char weights[64];
    int integer, floats;
    float_parts f;
    count_layers(q, &integer, &floats);
    find_floats(q, &f);
    json_object(j, "layers");
    json_int(j, "int8", integer);
    json_int(j, "float16", count_bits(q, 16));
    json_int(j, "float", f.nodes);
    json_end(j);
    json_int(j, "float_bytes", f.bytes);
    json_array(j, "float_operators");
    for (size_t i = 0; i < f.count; i++) {
        json_object(j, NULL);
        json_string(j, "operator", f.items[i].op_type);
        json_int(j, "nodes", f.items[i].nodes);
        json_int(j, "bytes", f.items[i].bytes);
        json_end(j);
    }
    json_end(j);
    float_parts_free(&f);
    json_array(j, "layer_list");
    for (size_t i = 0; i < q->layer_count; i++) {
        const qsim_layer_info info = q->layers[i];
        json_object(j, NULL);
        json_string(j, "name", info.name);
        json_string(j, "operator", info.op_type);
        json_string(j, "weights", weights_text(&info, weights));
        json_int(j, "float_bytes", info.float_bytes);
        json_int(j, "bytes", info.bytes);
        json_end(j);
    }
    json_end(j);
}

static void print_layer_table(quantizing *q) {
    const char *const heading[] = {"layer", "operator", "weights", "float", "as written"};
    table rows = {.columns = "lllrr"};
    char b[32], weights[64];
    int64_t total[2] = {0, 0};
    for (size_t i = 0; i < 5; i++)
        table_cell(&rows, "%s", heading[i]);
    for (size_t i = 0; i < q->layer_count; i++) {
        const qsim_layer_info info = q->layers[i];
        table_cell(&rows, "%s", info.name);
        table_cell(&rows, "%s", info.op_type);
        table_cell(&rows, "%s", weights_text(&info, weights));
        table_cell(&rows, "%s", tool_bytes((double)info.float_bytes, b));
        table_cell(&rows, "%s", tool_bytes((double)info.bytes, b));
        total[0] += info.float_bytes;
        total[1] += info.bytes;
    }
    table_print(&rows, stdout);
    printf("weights and biases %s", tool_bytes((double)total[0], b));
    printf(" -> %s (%.2fx)\n", tool_bytes((double)total[1], b),
           total[1] ? (double)total[0] / (double)total[1] : 1.0);
    float_parts f;
    text what = {0};
    find_floats(q, &f);
    float_parts_text(&f, &what);
    if (what.size)
        printf("not quantized: %s\n", what.data);
    text_free(&what);
    float_parts_free(&f);
}

int quantize_print_layers(const tool *t, quantizing *q) {
    int code = quantize_layers_read(t, q);
    if (code)
        return code;
    if (!t->json) {
        print_layer_table(q);
        return EXIT_OK;
    }
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", q->file);
    json_layers(&j, q);
    json_end(&j);
    return tool_print_json(t, &j);
}

/* Prints "2 int8, 2 fp32: LSTM 2 (1.22 MB)", before it "3 int4, " or "4 float16, ". */
static void print_counts(quantizing *q) {
    const int narrow = count_bits(q, 4), half = count_bits(q, 16);
    int integer, floats;
    float_parts f;
    text what = {0};
    char first[32] = "";
    count_layers(q, &integer, &floats);
    find_floats(q, &f);
    float_parts_text(&f, &what);
    if (narrow + half > 0)
        snprintf(first, sizeof(first), "%d %s, ", narrow + half, half ? "float16" : "int4");
    table_line("layers", "%s%d int8, %d fp32%s%s", first, integer - narrow, f.nodes,
               what.size ? ": " : "", what.data ? what.data : "");
    text_free(&what);
    float_parts_free(&f);
}

static void print_biases(const quantizing *q) {
    const bool corrected = q->found_loss == q->plain_loss;
    const search_attempt *other = &q->attempts[corrected ? q->attempt_count - 1 : 0];
    if (other->loss == q->found_loss)
        return; /* no layer has a bias to correct */
    table_line("biases", "%s: %s to float %.6f, %s %.6f",
               corrected ? "corrected" : "as they are, since correcting them gains nothing sure",
               q->has_classes ? "KL" : "relative error", q->found_loss,
               corrected ? "as they are" : "corrected", other->loss);
}

/* How many times smaller weights and biases are; 1 if there are none. */
static double constants_ratio(const quantizing *q) {
    const int64_t after = qsim_model_parameter_bytes(q->result);
    return after ? (double)qsim_model_parameter_bytes(q->model) / (double)after : 1;
}

void quantize_print(const tool *t, quantizing *q, const quantize_check *c) {
    char b[32], constants[48] = "";
    double before = (double)qsim_model_bytes(q->model), after = (double)qsim_model_bytes(q->result);
    table_line("model", "%s  %s  opset %lld  %d nodes", tool_base_name(q->file),
               tool_bytes(before, b), (long long)qsim_model_opset(q->model, NULL),
               qsim_model_node_count(q->model));
    if (q->calibration)
        table_line("calib", "%lld sample%s, %s, %d tensors",
                   (long long)qsim_calibration_samples(q->calibration),
                   tool_plural(qsim_calibration_samples(q->calibration)),
                   strcmp(recipe_method(q), "mixed") ? recipe_method(q) : "mixed ranges",
                   qsim_calibration_count(q->calibration));
    print_counts(q);
    const char *saved = args_value(&t->args, "save-recipe");
    if (saved)
        table_line("recipe", "%s  %d layers and tensors", saved, qsim_recipe_count(q->decided));
    if (q->searched && q->judges)
        print_biases(q);
    else if (q->searched)
        table_line("search", "%s to float %.6f, without it %.6f",
                   q->has_classes ? "KL" : "relative error", q->found_loss, q->plain_loss);
    if (!model_has_graphs(q->result)) /* whose constants are not counted */
        snprintf(constants, sizeof(constants), "; weights and biases %.2fx", constants_ratio(q));
    table_line("output", "%s  %s (%.2fx%s)  %s, opset %lld", tool_base_name(q->output),
               tool_bytes(after, b), before / after, constants, form_name(q),
               (long long)qsim_model_opset(q->result, NULL));
    io_print(q->result);
    pace_print(&c->pace);
    judge_print(t, &c->judging);
    for (size_t i = 0; i < c->next.count; i++)
        table_line(i ? "" : "next", "%s", c->next.lines[i]);
    if (t->verbose) {
        putchar('\n');
        print_layer_table(q);
        recipe_print_ranges(q);
    }
}

void quantize_print_json(const tool *t, quantizing *q, const quantize_check *c) {
    static const char *const modes[] = {"static", "dynamic", "weights"};
    json j = {0};
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_string(&j, "file", q->output);
    json_int(&j, "bytes", qsim_model_bytes(q->result));
    json_object(&j, "model");
    json_string(&j, "file", q->file);
    json_int(&j, "bytes", qsim_model_bytes(q->model));
    json_int(&j, "parameter_bytes", qsim_model_parameter_bytes(q->model));
    json_int(&j, "opset", qsim_model_opset(q->model, NULL));
    json_end(&j);
    if (q->calibration) {
        json_object(&j, "calibration");
        json_int(&j, "samples", qsim_calibration_samples(q->calibration));
        json_string(&j, "method", recipe_method(q));
        json_int(&j, "tensors", qsim_calibration_count(q->calibration));
        json_end(&j);
    }
    json_layers(&j, q);
    recipe_json(&j, q);
    if (q->searched) {
        json_object(&j, "search");
        json_string(&j, "measure", q->has_classes ? "kl" : "relative_error");
        json_number(&j, "plain", q->plain_loss);
        json_number(&j, "found", q->found_loss);
        json_end(&j);
        quantize_json_attempts(&j, q);
    }
    json_object(&j, "output");
    json_string(&j, "file", q->output);
    json_int(&j, "bytes", qsim_model_bytes(q->result));
    json_int(&j, "parameter_bytes", qsim_model_parameter_bytes(q->result));
    json_string(&j, "mode", modes[q->options.mode]);
    if (q->options.mode == QSIM_MODE_STATIC)
        json_string(&j, "format", q->options.format == QSIM_FORMAT_QDQ ? "qdq" : "qoperator");
    json_int(&j, "opset", qsim_model_opset(q->result, NULL));
    json_end(&j);
    pace_json(&c->pace, &j);
    judge_json(&c->judging, (const char *const *)c->next.lines, &j);
    json_end(&j);
    tool_print_json(t, &j);
}
