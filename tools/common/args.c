/* SPDX-License-Identifier: MIT */
#include "common/args.h"

#include <stdlib.h>
#include <string.h>

const option common_options[] = {
    {"threads", "N", "number of threads; 0: all cores allowed (0; bench: 1)", 'T', NULL},
    {"isa", "NAME", "force the kernels of one instruction set", 0,
     "c|avx2|avxvnni|avx512vnni|amx|neon|neondot|neoni8mm"},
    {"memory", "SIZE", "use at most this much memory: 512MB, 2GB", 0, NULL},
    {"time", "S", "stop after S seconds", 0, NULL},
    {"json", NULL, "print one JSON object instead of text", 0, NULL},
    {"quiet", NULL, "no progress, no warnings", 'q', NULL},
    {"verbose", NULL, "print more detail", 'v', NULL},
    {"help", NULL, "print this help", 'h', NULL},
    {"version", NULL, "print the version", 'V', NULL},
    {NULL, NULL, NULL, 0, NULL},
};

const option *args_common(const verb *v) {
    return common_options + (v->runs_nothing ? 2 : 0);
}

const char *args_prefix(const verb *v) {
    return strncmp(v->name, "qsim-", 5) == 0 ? "" : "qsim ";
}

static const option *find(const verb *v, const char *name, size_t length, char letter) {
    const option *tables[] = {v->options, common_options};
    for (int t = 0; t < 2; t++)
        for (const option *o = tables[t]; o && o->name; o++)
            if (letter ? o->letter == letter
                       : strlen(o->name) == length && memcmp(o->name, name, length) == 0)
                return o;
    return NULL;
}

const option *args_option(const verb *v, const char *name) {
    return find(v, name, strlen(name), 0);
}

const char *args_nearest(const verb *v, const char *word) {
    const option *tables[] = {v->options, common_options};
    const char *names[64];
    size_t n = 0;
    for (int t = 0; t < 2; t++)
        for (const option *o = tables[t]; o && o->name && n < 63; o++)
            names[n++] = o->name;
    names[n] = NULL;
    return closest(word, names);
}

/* Options of other programs, most of them Olive's and ONNX Runtime's, with hints. '-' stands for
 * '_', too. */
static const struct {
    const char *word, *hint;
} foreign[] = {
    {"model-name-or-path", "the model is an operand: qsim VERB MODEL.onnx"},
    {"model", "the model is an operand: qsim VERB MODEL.onnx"},
    {"mode", "qsim quantize --mode makes dynamic models and smaller weights; others are static"},
    {"budget", "--limit N takes fewer samples, and less time"},
    {"config", "qsim run-config FILE runs a configuration"},
    {"run-config", "qsim run-config FILE runs a configuration"},
    {"output-path", "-o FILE names the output"},
    {"precision", "qsim quantize makes INT8 models; --weights is the type of weights"},
    {"provider", "qsim runs on the CPU: there is nothing to choose"},
    {"device", "qsim runs on the CPU: there is nothing to choose"},
    {"algorithm", "qsim quantize --method NAME chooses ranges"},
    {"per-channel", "--weight-scheme channel, which is the default"},
    {"opset", "the smallest opset that works is written"},
    {"iterations", "qsim bench --runs N"},
    {"weight-type", "--weights TYPE"},
    {"activation-type", "--activations TYPE"},
    {"image", "-i FILE runs one; --data SPEC is a set"},
    {"images", "--data SPEC is a set; qsim run takes -i FILE or a folder"},
    {"dataset", "--data SPEC"},
    {"data-dir", "--data SPEC"},
    {"calibration-data", "--data SPEC"},
    {"calib-data", "--data SPEC"},
    {"num-samples", "--limit N"},
    {"samples", "--limit N"},
    {"gpu", "qsim runs on the CPU: there is nothing to choose"},
    {"cuda", "qsim runs on the CPU: there is nothing to choose"},
    {"bits", "qsim quantize --weights int4|uint4; qsim auto --bits 4,8"},
    {"exclude", "--set 'NAME=fp32' leaves a node in float"},
    {"nodes-to-exclude", "--set 'NAME=fp32' leaves a node in float"},
    {"op-types-to-quantize", "--set '*=fp32' --set 'OPERATOR=int8'"},
    {"nodes-to-quantize", "--set '*=fp32' --set 'NAME=int8'"},
    {"per-tensor", "--weight-scheme tensor"},
    {"calibrate-method", "--method NAME"},
    {"calibration-method", "--method NAME"},
    {"quant-format", "--format qdq|qoperator"},
    {"block-size", "--block N"},
    {"accuracy-level",
     "4-bit weights: --mode dynamic writes level 4, --mode weights --format qoperator level 0"},
    {"use-external-data-format", "a model over 2 GB gets a second file by itself"},
    {"external-data", "a model over 2 GB gets a second file by itself"},
    {"extra-options", "each has an option: --symmetric, --weight-scheme, --percentile, --smooth"},
    {"labels", "class names are for qsim run, eval and package"},
    {"mean", "--preprocess mean=M[:M..],std=S[:S..]"},
    {"std", "--preprocess mean=M[:M..],std=S[:S..]"},
    {"resize", "--preprocess resize=WxH, or fit=crop for the model's own size"},
    {"size", "--preprocess resize=WxH, or fit=crop for the model's own size"},
    {"input-shape", "--shape [NAME=]1x3x224x224"},
    {"repeat", "qsim bench --runs N"},
    {"loops", "qsim bench --runs N"},
    {"batch-size", "--batch N"},
};

static bool same_word(const char *given, const char *word) {
    while (*given && (*given == *word || (*given == '_' && *word == '-')))
        given++, word++;
    return !*given && !*word;
}

static void suggest_option(const verb *v, const char *word, text *hint) {
    const char *near = args_nearest(v, word);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
        if (same_word(word, foreign[i].word)) {
            text_puts(hint, foreign[i].hint);
            return;
        }
    /* One run takes --input, a set of samples is --data. */
    const char *other = strcmp(word, "data") == 0 ? "input" : "data";
    if (near)
        text_printf(hint, "did you mean --%s?", near);
    else if ((strcmp(word, "input") == 0 || *other == 'i') && args_option(v, other))
        text_printf(hint, "%s%s takes --%s", args_prefix(v), v->name, other);
    else
        text_printf(hint, "%s%s --help lists the options", args_prefix(v), v->name);
}

static bool is_choice(const char *choices, const char *value) {
    size_t n = strlen(value);
    for (const char *c = choices; c; c = strchr(c, '|')) {
        c += *c == '|';
        if (strcspn(c, "|") == n && memcmp(c, value, n) == 0)
            return n > 0;
    }
    return false;
}

static bool give(args *a, const option *o, const char *value, text *problem) {
    if (o->choices && value && !is_choice(o->choices, value)) {
        text_printf(problem, "--%s is '%s', not one of %s", o->name, value, o->choices);
        return false;
    }
    a->given = tool_grow(a->given, a->given_count + 1, sizeof(*a->given));
    a->given[a->given_count].option = o;
    a->given[a->given_count++].value = value;
    return true;
}

bool args_give_before(args *a, const option *o, const char *value, text *problem) {
    char *copy = value ? tool_copy(value) : NULL;
    a->owned = tool_grow(a->owned, a->owned_count + 1, sizeof(*a->owned));
    a->owned[a->owned_count++] = copy;
    if (!give(a, o, copy, problem))
        return false;
    size_t last = a->given_count - 1;
    memmove(a->given + 1, a->given, last * sizeof(*a->given));
    a->given[0].option = o;
    a->given[0].value = copy;
    return true;
}

static bool parse_long(args *a, const char *word, int *at, int count, char **argv, text *problem,
                       text *hint) {
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const option *o = find(a->verb, word, length, 0);
    if (!o) {
        char *name = tool_copy(word);
        name[length] = 0;
        text_printf(problem, "unknown option --%s", name);
        suggest_option(a->verb, name, hint);
        free(name);
        return false;
    }
    if (!o->value && equals) {
        text_printf(problem, "--%s takes no value", o->name);
        return false;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (o->value && !value) {
        if (*at + 1 >= count) {
            text_printf(problem, "--%s needs a value: %s", o->name, o->value);
            return false;
        }
        value = argv[++*at];
    }
    return give(a, o, value, problem);
}

/* A group of letters: -qf, -T4, -T 4, -oFILE. */
static bool parse_letters(args *a, const char *word, int *at, int count, char **argv, text *problem,
                          text *hint) {
    const size_t n = strcspn(word, "=");
    if (n > 2 && find(a->verb, word, n, 0)) { /* -output would write a file called utput */
        text_printf(problem, "unknown option -%s", word);
        text_printf(hint, "did you mean --%s?", word);
        return false;
    }
    for (; *word; word++) {
        const option *o = find(a->verb, "", 0, *word);
        if (!o) {
            text_printf(problem, "unknown option -%c", *word);
            if (*word == 'd' || *word == 'i')
                suggest_option(a->verb, *word == 'd' ? "data" : "input", hint);
            else
                text_printf(hint, "%s%s --help lists the options", args_prefix(a->verb),
                            a->verb->name);
            return false;
        }
        if (!o->value) {
            (void)give(a, o, NULL, problem); /* without a value there are no choices */
            continue;
        }
        const char *value = word[1] ? word + 1 : NULL;
        if (!value && *at + 1 >= count) {
            text_printf(problem, "-%c needs a value: %s", o->letter, o->value);
            return false;
        }
        return give(a, o, value ? value : argv[++*at], problem);
    }
    return true;
}

bool args_parse(args *a, const verb *v, int count, char **argv, text *problem, text *hint) {
    bool only_operands = false;
    memset(a, 0, sizeof(*a));
    a->verb = v;
    a->operands = tool_alloc((size_t)count, sizeof(*a->operands));
    for (int i = 0; i < count; i++) {
        const char *word = argv[i];
        bool good = true;
        if (only_operands || word[0] != '-' || word[1] == 0)
            a->operands[a->operand_count++] = word;
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else if (word[1] == '-')
            good = parse_long(a, word + 2, &i, count, argv, problem, hint);
        else
            good = parse_letters(a, word + 1, &i, count, argv, problem, hint);
        if (!good)
            return false;
    }
    return true;
}

void args_free(args *a) {
    free(a->given);
    free(a->operands);
    for (size_t i = 0; i < a->owned_count; i++)
        free(a->owned[i]);
    free(a->owned);
    memset(a, 0, sizeof(*a));
}

const char *args_repeated(const args *a, const char *name, size_t i) {
    for (size_t k = 0; k < a->given_count; k++)
        if (strcmp(a->given[k].option->name, name) == 0 && i-- == 0)
            return a->given[k].value ? a->given[k].value : "";
    return NULL;
}

const char *args_value(const args *a, const char *name) {
    const char *last = NULL, *value;
    for (size_t i = 0; (value = args_repeated(a, name, i)) != NULL; i++)
        last = value;
    return last;
}

bool args_has(const args *a, const char *name) {
    return args_repeated(a, name, 0) != NULL;
}
