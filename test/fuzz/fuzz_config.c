/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a configuration. Every value that is read has a path; a configuration
 * that is no job gets one line that says so, as each seed is checked to do.
 */
#include "qsim/job.h"

#include "fuzz.h"

#define MODEL        "\"input_model\": {\"type\": \"ONNXModel\", \"model_path\": \"m.onnx\"}"
#define PASSES       "\"passes\": {\"q\": {\"type\": \"OnnxDynamicQuantization\"}}"
#define WITH(more)   "{" MODEL ", " PASSES ", " more "}"
#define SYSTEM(more) WITH("\"systems\": {\"here\": {\"type\": \"LocalSystem\", " more "}}")
#define PACKAGE(of)  WITH("\"packaging_config\": " of)

/*
 * Jobs that are right, and each that is wrong in one place: the beginning of what is said of it,
 * NULL: nothing, "?": anything.
 */
static const struct {
    const char *text, *wrong;
} seeds[] = {
    {"{}", "input_model is missing"},
    {"[1, 2.5e-3, true, false, null, \"a\\u20ac\\n\"]",
     "line 1, column 1: a configuration is an object"},
    {"{\"input_model\": 3}", "input_model: a whole number"},
    {"{\"input_model\": {\"type\": 3}}", "input_model.type: a whole number"},
    {"{\"input_model\": {\"type\": \"HfModel\"}}", "input_model.type: 'HfModel' is not supported"},
    {"{\"input_model\": {\"type\": \"ONNXModel\", \"model_path\": \"\"}}",
     "input_model: model_path is missing"},
    {"{\"input_model\": {\"type\": \"ONNXModel\", \"config\": {\"model_path\": 1}}}",
     "input_model.config.model_path: a whole number"},
    {WITH("\"engine\": {\"host\": \"nowhere\"}"), "engine.host: there is no system 'nowhere'"},
    {WITH("\"engine\": {\"host\": 3}"), "engine.host: a whole number"},
    {WITH("\"engine\": {\"target\": {\"type\": \"LocalSystem\"}}"), NULL},
    {WITH("\"engine\": {\"output_name\": \"a/b\"}"),
     "engine.output_name: 'a/b' is not a folder name"},
    {WITH("\"engine\": {\"output_name\": \".a\", \"cache_dir\": \"c\"}"),
     "engine.output_name: '.a' is not a folder name"},
    {WITH("\"output_dir\": \"o\", \"output_name\": \"n\", \"plot_pareto_frontier\": true"), NULL},
    {WITH("\"output_dir\": 3"), "output_dir: a whole number"},
    {WITH("\"evaluate_input_model\": 3"), "evaluate_input_model: a whole number"},
    {WITH("\"systems\": []"), "systems: an array"},
    {WITH("\"systems\": {\"here\": {\"type\": \"AzureML\"}}"),
     "systems.here.type: 'AzureML' is not supported"},
    {WITH("\"systems\": {\"here\": {\"accelerators\": []}}"),
     "systems.here: 'no type' is not supported"},
    {WITH("\"systems\": {\"here\": {\"type\": \"LocalSystem\"}}, \"host\": \"here\""), NULL},
    {SYSTEM("\"accelerators\": 3"), "systems.here.accelerators: a whole number"},
    {SYSTEM("\"accelerators\": [\"cpu\", 3]"), "systems.here.accelerators[1]: a whole number"},
    {SYSTEM("\"accelerators\": [{\"device\": 3}]"),
     "systems.here.accelerators[0].device: a whole number"},
    {SYSTEM("\"accelerators\": [{\"device\": \"gpu\"}]"),
     "systems.here.accelerators[0].device: 'gpu' is not supported"},
    {SYSTEM("\"accelerators\": [{\"device\": \"CPU\", \"execution_providers\": 3}]"),
     "systems.here.accelerators[0].execution_providers: a whole number"},
    {SYSTEM("\"accelerators\": [{\"execution_providers\": [3]}]"),
     "systems.here.accelerators[0].execution_providers[0]: a whole number"},
    {SYSTEM("\"accelerators\": [{\"execution_providers\": [\"CUDAExecutionProvider\"]}]"),
     "systems.here.accelerators[0].execution_providers[0]: 'CUDAExecutionProvider'"},
    {SYSTEM("\"accelerators\": [{\"device\": \"cpu\", "
            "\"execution_providers\": [\"CPUExecutionProvider\"]}]"),
     NULL},
    {PACKAGE("[{\"type\": \"Zipfile\", \"name\": \"Out\"}]"), NULL},
    {PACKAGE("{\"type\": \"Zipfile\", \"name\": \"a/b\"}"),
     "packaging_config.name: 'a/b' is not a file name"},
    {PACKAGE("{\"type\": \"Zipfile\", \"name\": \"\"}"),
     "packaging_config.name: '' is not a file name"},
    {PACKAGE("{\"type\": \"Zipfile\", \"name\": 3}"), "packaging_config.name: a whole number"},
    {PACKAGE("{\"type\": \"Dockerfile\"}"), "packaging_config.type: 'Dockerfile' is not supported"},
    {PACKAGE("{\"type\": 3}"), "packaging_config.type: a whole number"},
    {PACKAGE("[]"), "packaging_config: an array"},
    {WITH("\"search_strategy\": false"), NULL},
    {WITH("\"search_strategy\": {\"execution_order\": \"joint\", \"sampler\": \"tpe\"}"), NULL},
    {"{" MODEL ", \"passes\": {\"q\": {\"type\": 3}}}", "passes.q.type: a whole number"},
    {"{" MODEL ", \"passes\": {\"q\": {\"type\": \"OnnxNothing\"}}}", "passes.q.type: "},
    {"{" MODEL ", \"passes\": [3]}", "passes: an array"},
    {"{" MODEL ", \"passes\": {\"q\": {\"type\": \"OnnxStaticQuantization\", "
     "\"data_config\": \"d\"}}, \"data_configs\": [{\"name\": \"d\"}]}",
     "?"},
    {"{" MODEL ", \"passes\": {\"a\": {\"type\": \"QsimAuto\"}, "
     "\"s\": {\"type\": \"QsimSensitivity\"}}}",
     NULL},
    {"{" MODEL
     ", \"passes\": {\"q\": {\"type\": \"QsimQuantize\", \"set\": [\"a=fp32\", \"b=int4\"], "
     "\"method\": [\"auto\", \"mse\"], \"refine\": [true, false], \"steps\": 5, \"block\": 512, "
     "\"data_config\": {\"data_dir\": \"random\", \"shape\": [\"x=1x3\"]}}}, "
     "\"search_strategy\": true}",
     "passes.q.block: not a number from 0 to 256"},
    {"{" MODEL ", \"input_model\": {}}", "line 1, column "},
    {WITH("\"bogus\": 1"), "bogus: unknown key"},
    {WITH("\"engine\": {\"bogus\": 1}"), "engine.bogus: unknown key"},
    {WITH("\"engine\": 3"), "engine: a whole number"},
    {WITH("\"target\": \"nowhere\""), "target: there is no system 'nowhere'"},
    {WITH("\"target\": 3"), "target: a whole number"},
    {WITH("\"execution_providers\": [\"CUDAExecutionProvider\"]"),
     "execution_providers[0]: 'CUDAExecutionProvider'"},
    {WITH("\"execution_providers\": [\"CPUExecutionProvider\"]"), NULL},
    {WITH("\"output_name\": 3"), "output_name: a whole number"},
    {WITH("\"output_name\": \"a.b\""), NULL},
    {SYSTEM("\"bogus\": 1"), "systems.here.bogus: unknown key"},
    {SYSTEM("\"config\": {\"bogus\": 1}"), "systems.here.config.bogus: unknown key"},
    {SYSTEM("\"accelerators\": [{\"bogus\": 1}]"),
     "systems.here.accelerators[0].bogus: unknown key"},
    {SYSTEM("\"accelerators\": [\"gpu\"]"), "systems.here.accelerators[0]: 'gpu' is not supported"},
    {SYSTEM("\"accelerators\": [\"CPU\", \"cpu\", {}]"), NULL},
    {WITH("\"systems\": {\"here\": 3}"), "systems.here: a whole number"},
    {WITH("\"systems\": {\"here\": {\"type\": 3}}"), "systems.here.type: a whole number"},
    {PACKAGE("{\"bogus\": 1}"), "packaging_config.bogus: unknown key"},
    {PACKAGE("{\"config\": {\"name\": \"x\"}}"), NULL},
    {PACKAGE("{\"name\": \".x\"}"), "packaging_config.name: '.x' is not a file name"},
    {PACKAGE("[{}, {}]"), "packaging_config: an array"},
    {"{\"input_model\": {\"type\": \"OnnxModel\", \"model_path\": \"m\"}, " PASSES "}", NULL},
    {"{\"input_model\": {\"type\": \"onnxmodel\", \"model_path\": \"m\"}, " PASSES "}", NULL},
    {"{\"input_model\": {\"type\": \"onnxModel\", \"model_path\": \"m\"}, " PASSES "}",
     "input_model.type: 'onnxModel' is not supported"},
    {"{\"input_model\": {\"model_path\": \"m\"}, " PASSES "}", "input_model: its type is missing"},
    {"{\"input_model\": {\"type\": \"OnnxModel\"}, " PASSES "}",
     "input_model: model_path is missing"},
    {"{\"input_model\": {\"type\": \"OnnxModel\", \"model_path\": \"m\", \"bogus\": 1}, " PASSES
     "}",
     "input_model.bogus: unknown key"},
};
enum { SEEDS = sizeof(seeds) / sizeof(*seeds) };

/* The build names larger initial ones. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    const char *texts[SEEDS];
    for (size_t i = 0; i < SEEDS; i++)
        texts[i] = seeds[i].text;
    return fuzz_text_seed(texts, SEEDS, index, buffer, capacity);
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

/* Once: what is wrong with each seed is said. */
static void check_seeds(void) {
    static bool checked;
    for (size_t i = 0; i < SEEDS && !checked; i++) {
        const char *wrong = seeds[i].wrong;
        job j = {.output_dir = "."};
        job_trouble trouble = {0};
        const bool good = job_read(&j, seeds[i].text, strlen(seeds[i].text), &trouble);
        if (wrong ? *wrong != '?' &&
                        (good || strncmp(trouble.message.data, wrong, strlen(wrong)) != 0)
                  : !good) {
            fprintf(stderr, "%s\n%s\nexpected: %s\n", seeds[i].text,
                    good ? "" : trouble.message.data, wrong ? wrong : "");
            abort();
        }
        job_free(&j);
        text_free(&trouble.message);
        text_free(&trouble.hint);
    }
    checked = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_seeds();
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
