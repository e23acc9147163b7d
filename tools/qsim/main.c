/* SPDX-License-Identifier: MIT */
/* qsim: a command line whose verbs use the public interface of libqsim. */
#include <stdlib.h>
#include <string.h>

#include "common/system.h"
#include "common/unreadable.h"
#include "verbs.h"

const verb *const all_verbs[] = {
    &verb_info,     &verb_check,       &verb_run,        &verb_bench,    &verb_profile,
    &verb_optimize, &verb_calibrate,   &verb_quantize,   &verb_convert,  &verb_compare,
    &verb_eval,     &verb_sensitivity, &verb_saturation, &verb_auto,     &verb_sweep,
    &verb_package,  &verb_unpack,      &verb_run_config, &verb_selftest, NULL,
};

static const verb *find_verb(const char *name) {
    if (strcmp(name, "auto-opt") == 0) /* Olive's word */
        return &verb_auto;
    for (size_t i = 0; all_verbs[i]; i++)
        if (strcmp(all_verbs[i]->name, name) == 0)
            return all_verbs[i];
    return NULL;
}

static void overview(text *out) {
    text_puts(out, "usage: qsim VERB [options] ...\n\n"
                   "Quantized neural networks: loads ONNX, calibrates, quantizes, runs, explains.\n"
                   "\nverbs:\n");
    for (size_t i = 0; all_verbs[i]; i++)
        text_printf(out, "  %-11s  %s\n", all_verbs[i]->name, all_verbs[i]->summary);
    text_puts(out, "\nqsim VERB --help lists a verb's options; qsim --completions SHELL prints a "
                   "completion\nfor bash, zsh or fish.\n"
                   "exit codes: 0 ok, 1 internal, 2 usage, 3 bound not met, 4 bad model or data, "
                   "5 I/O, 6 memory, 130 interrupted\n");
}

/* Verbs of other programs, most of them Olive's, with hints. */
static const struct {
    const char *word, *hint;
} foreign[] = {
    {"finetune", "qsim trains nothing: it starts from a trained ONNX model"},
    {"train", "qsim trains nothing: it starts from a trained ONNX model"},
    {"prune", "qsim prunes nothing; qsim quantize makes a model smaller"},
    {"capture-onnx-graph", "qsim starts from ONNX: torch.onnx.export writes it"},
    {"convert", "qsim starts from ONNX: torch.onnx.export writes it"},
    {"export", "qsim starts from ONNX: torch.onnx.export writes it"},
    {"generate", "qsim runs a model once; it generates no text"},
    {"chat", "qsim runs a model once; it generates no text"},
    {"generate-adapter", "adapters of language models are not supported"},
    {"extract-adapters", "adapters of language models are not supported"},
    {"tune-session-params", "qsim bench times a model, -T sets threads"},
    {"session-params-tuning", "qsim bench times a model, -T sets threads"},
    {"perf-tuning", "qsim bench times a model, -T sets threads"},
    {"run-pass", "qsim quantize is the pass; qsim run-config runs Olive's configurations"},
    {"workflow", "qsim run-config runs Olive's configurations"},
    {"predict", "did you mean qsim run?"},
    {"infer", "did you mean qsim run?"},
    {"inference", "did you mean qsim run?"},
    {"classify", "did you mean qsim run --top 5?"},
    {"detect", "did you mean qsim run?"},
    {"test", "did you mean qsim eval?"},
    {"validate", "qsim check looks at the model, qsim eval at its answers"},
    {"inspect", "did you mean qsim info?"},
    {"show", "did you mean qsim info?"},
    {"summary", "did you mean qsim info?"},
    {"diff", "did you mean qsim compare?"},
    {"zip", "did you mean qsim package?"},
    {"verify", "qsim check looks at a model, qsim unpack at a package's hashes"},
    {"search", "qsim auto searches for the best quantized model"},
    {"tune", "qsim auto searches for the best quantized model"},
    {"distill", "qsim trains nothing: it starts from a trained ONNX model"},
    {"download", "qsim opens no network: it starts from a file"},
    {"version", "did you mean qsim --version?"},
    {"completions", "did you mean qsim --completions bash?"},
};

static int unknown_verb(const tool *t, const char *name) {
    const char *names[32];
    size_t n = 0;
    text hint = {0};
    for (; all_verbs[n]; n++)
        names[n] = all_verbs[n]->name;
    names[n] = NULL;
    const char *near = closest(name, names);
    for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign) && !hint.size; i++)
        if (strcmp(name, foreign[i].word) == 0)
            text_puts(&hint, foreign[i].hint);
    const size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".onnx") == 0)
        text_printf(&hint, "a verb stands first: qsim info %.100s describes it", name);
    if (!hint.size && near)
        text_printf(&hint, "did you mean qsim %s?", near);
    if (!hint.size)
        text_puts(&hint, "qsim --help lists the verbs");
    int code = tool_usage(t, hint.data, "unknown verb '%s'", name);
    text_free(&hint);
    return code;
}

static int put(const tool *t, text *out) {
    fwrite(out->data, 1, out->size, stdout);
    text_free(out);
    return tool_finish(t, EXIT_OK);
}

/* The manual page from its template, for the build of tools/man. */
static int manual(const tool *t, const char *path) {
    text page = {0}, out = {0};
    void *data;
    size_t size;
    int code = tool_read_all(t, path, &data, &size);
    if (code)
        return code;
    text_add(&page, data, size);
    free(data);
    bool good = args_manual(all_verbs, page.data ? page.data : "", &out);
    text_free(&page);
    if (good)
        return put(t, &out);
    const char *line = strrchr(out.data, '\n');
    code = tool_usage(t, NULL, "%s: '%s' names no verb", path, line ? line + 1 : out.data);
    text_free(&out);
    return code;
}

/* Handles a command line without a verb: --help, --version, --completions, --manual, or nothing. */
static int without_verb(const tool *t, int argc, char **argv) {
    text out = {0};
    const char *word = argc > 1 ? argv[1] : "";
    const verb *v = argc > 2 ? find_verb(argv[2]) : NULL;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        if (argc > 2 && !v && argv[2][0] != '-')
            return unknown_verb(t, argv[2]);
        if (v)
            args_help(v, &out);
        else
            overview(&out);
    } else if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
        text_printf(&out, "qsim %s\n", qsim_version_string());
    else if (strcmp(word, "--completions") == 0) {
        if (!args_completion(all_verbs, argc > 2 ? argv[2] : "", &out))
            return tool_usage(t, NULL, "--completions knows bash, zsh and fish");
    } else if (strcmp(word, "--manual") == 0)
        return manual(t, argc > 2 ? argv[2] : "-");
    else if (!*word)
        return tool_usage(t, "qsim --help lists the verbs", "a verb is missing");
    else
        return unknown_verb(t, word);
    return put(t, &out);
}

int main(int argc, char **argv) {
    tool_state state = {.skipped = NULL};
    tool t = {.state = &state};
    text out = {0}, hint = {0};
    int code;
    system_begin(argc, argv);
    const verb *v = argc > 1 ? find_verb(argv[1]) : NULL;
    if (!v) {
        for (int i = 1; i < argc; i++)
            t.json = t.json || strcmp(argv[i], "--json") == 0;
        return without_verb(&t, argc, argv);
    }
    if (!args_parse(&t.args, v, argc - 2, argv + 2, &out, &hint)) {
        t.json = args_has(&t.args, "json");
        code = tool_usage(&t, hint.data, "%s: %s", v->name, out.data);
    } else if (args_has(&t.args, "help")) {
        args_help(v, &out);
        code = put(&t, &out);
    } else if (args_has(&t.args, "version")) {
        text_printf(&out, "qsim %s\n", qsim_version_string());
        code = put(&t, &out);
    } else {
        code = config_options(&t);
        if (code == EXIT_OK)
            code = tool_start(&t, v == &verb_bench ? 1 : 0);
        if (code == EXIT_OK)
            code = v->run(&t);
        if (code == EXIT_OK || code == EXIT_BOUND)
            tool_warn_assumed(&t);
        unreadable_print(&t);
        code = tool_finish(&t, code);
    }
    text_free(&out);
    text_free(&hint);
    tool_stop(&t);
    return code;
}
