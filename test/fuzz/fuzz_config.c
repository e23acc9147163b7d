/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a configuration. Every value that is read has a path; a configuration
 * that is no job gets one line that says so.
 */
#include "qsim/job.h"

#include "fuzz.h"

#define MODEL        "\"input_model\": {\"type\": \"ONNXModel\", \"model_path\": \"m.onnx\"}"
#define PASSES       "\"passes\": {\"q\": {\"type\": \"OnnxDynamicQuantization\"}}"
#define WITH(more)   "{" MODEL ", " PASSES ", " more "}"
#define SYSTEM(more) WITH("\"systems\": {\"here\": {\"type\": \"LocalSystem\", " more "}}")
#define PACKAGE(of)  WITH("\"packaging_config\": " of)

/* Jobs that are right, and each that is wrong in one place; the build names larger initial ones. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const texts[] = {
        "{}",
        "[1, 2.5e-3, true, false, null, \"a\\u20ac\\n\"]",
        "{\"input_model\": 3}",
        "{\"input_model\": {\"type\": 3}}",
        "{\"input_model\": {\"type\": \"HfModel\"}}",
        "{\"input_model\": {\"type\": \"ONNXModel\", \"model_path\": \"\"}}",
        "{\"input_model\": {\"type\": \"ONNXModel\", \"config\": {\"model_path\": 1}}}",
        WITH("\"engine\": {\"host\": \"nowhere\"}"),
        WITH("\"engine\": {\"host\": 3}"),
        WITH("\"engine\": {\"target\": {\"type\": \"LocalSystem\"}}"),
        WITH("\"engine\": {\"output_name\": \"a/b\"}"),
        WITH("\"engine\": {\"output_name\": \".a\", \"cache_dir\": \"c\"}"),
        WITH("\"output_dir\": \"o\", \"output_name\": \"n\", \"plot_pareto_frontier\": true"),
        WITH("\"output_dir\": 3"),
        WITH("\"evaluate_input_model\": 3"),
        WITH("\"systems\": []"),
        WITH("\"systems\": {\"here\": {\"type\": \"AzureML\"}}"),
        WITH("\"systems\": {\"here\": {\"accelerators\": []}}"),
        WITH("\"systems\": {\"here\": {\"type\": \"LocalSystem\"}}, \"host\": \"here\""),
        SYSTEM("\"accelerators\": 3"),
        SYSTEM("\"accelerators\": [\"cpu\", 3]"),
        SYSTEM("\"accelerators\": [{\"device\": 3}]"),
        SYSTEM("\"accelerators\": [{\"device\": \"gpu\"}]"),
        SYSTEM("\"accelerators\": [{\"device\": \"CPU\", \"execution_providers\": 3}]"),
        SYSTEM("\"accelerators\": [{\"execution_providers\": [3]}]"),
        SYSTEM("\"accelerators\": [{\"execution_providers\": [\"CUDAExecutionProvider\"]}]"),
        SYSTEM("\"accelerators\": [{\"device\": \"cpu\", "
               "\"execution_providers\": [\"CPUExecutionProvider\"]}]"),
        PACKAGE("[{\"type\": \"Zipfile\", \"name\": \"Out\"}]"),
        PACKAGE("{\"type\": \"Zipfile\", \"name\": \"a/b\"}"),
        PACKAGE("{\"type\": \"Zipfile\", \"name\": \"\"}"),
        PACKAGE("{\"type\": \"Zipfile\", \"name\": 3}"),
        PACKAGE("{\"type\": \"Dockerfile\"}"),
        PACKAGE("{\"type\": 3}"),
        PACKAGE("[]"),
        WITH("\"search_strategy\": false"),
        WITH("\"search_strategy\": {\"execution_order\": \"joint\", \"sampler\": \"tpe\"}"),
        "{" MODEL ", \"passes\": {\"q\": {\"type\": 3}}}",
        "{" MODEL ", \"passes\": {\"q\": {\"type\": \"OnnxNothing\"}}}",
        "{" MODEL ", \"passes\": [3]}",
        "{" MODEL ", \"passes\": {\"q\": {\"type\": \"OnnxStaticQuantization\", "
        "\"data_config\": \"d\"}}, \"data_configs\": [{\"name\": \"d\"}]}",
        "{" MODEL ", \"passes\": {\"a\": {\"type\": \"QsimAuto\"}, "
        "\"s\": {\"type\": \"QsimSensitivity\"}}}",
        "{" MODEL
        ", \"passes\": {\"q\": {\"type\": \"QsimQuantize\", \"set\": [\"a=fp32\", \"b=int4\"], "
        "\"method\": [\"auto\", \"mse\"], \"refine\": [true, false], \"steps\": 5, \"block\": 512, "
        "\"data_config\": {\"data_dir\": \"random\", \"shape\": [\"x=1x3\"]}}}, "
        "\"search_strategy\": true}",
        "{" MODEL ", \"input_model\": {}}",
    };
    return fuzz_text_seed(texts, sizeof(texts) / sizeof(*texts), index, buffer, capacity);
}

static void walk(const config *c, int depth) {
    text path = {0};
    config_path(c, &path);
    if (depth > CONFIG_MOST_DEPTH || (c->parent && path.size == 0 && c->key && *c->key))
        abort();
    if (c->key && !config_get(c->parent, c->key))
        abort();
    text_free(&path);
    for (size_t i = 0; i < c->count; i++)
        walk(&c->items[i], depth + 1);
}

static void read_job(const uint8_t *data, size_t size) {
    job j = {.output_dir = "."};
    job_trouble trouble = {0};
    bool good = job_read(&j, data, size, &trouble);
    if (good == (trouble.code != 0) || good == (trouble.message.size > 0))
        abort();
    if (good && (!j.model || j.flow_count == 0))
        abort();
    job_free(&j);
    text_free(&trouble.message);
    text_free(&trouble.hint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    config c;
    text problem = {0};
    if (config_parse(data, size, &c, &problem))
        walk(&c, 0);
    else if (problem.size == 0)
        abort();
    config_free(&c);
    text_free(&problem);
    read_job(data, size);
    return 0;
}
