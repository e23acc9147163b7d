/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as the words of a command line, each ended by a zero byte, of a verb with
 * options of every kind. Values of --preprocess are parsed as such, and the words, written as JSON,
 * read back as they were.
 */
#include <math.h>
#include <string.h>

#include "common/config.h"
#include "common/json.h"
#include "common/preprocess.h"

#include "fuzz.h"

#define MOST_WORDS 32

static int nothing(tool *t) {
    (void)t;
    return 0;
}

static const option options[] = {{"output", "FILE", "the file", 'o', NULL},
                                 {"method", "NAME", "how", 'm', "minmax|mse|entropy"},
                                 {"preprocess", "LIST", "what is done first", 0, NULL},
                                 {"every", NULL, "all of them", 'a', NULL},
                                 OPTION_FORCE,
                                 {NULL, NULL, NULL, 0, NULL}};
static const verb fuzzed = {"fuzz", "MODEL", "a verb", options, nothing, false, NULL};

/* Parses a word as numbers and looks for near names. */
static void read_word(const args *a, const char *word) {
    static const char *const names[] = {"minmax", "percentile", "mse", NULL};
    int64_t integer = 0;
    uint64_t large = 0;
    double number = 0;
    if (parse_int(word, -5, 1000, &integer) && (integer < -5 || integer > 1000))
        abort();
    (void)parse_uint64(word, &large);
    if (parse_number(word, &number) && !isfinite(number))
        abort();
    (void)closest(word, names);
    (void)args_nearest(a->verb, word);
    (void)args_option(a->verb, word);
}

static void read_preprocess(const tool *t, const char *list) {
    preprocess p, pixels;
    if (!preprocess_parse(t, list, &p))
        return;
    (void)preprocess_sizes(&p);
    preprocess_of_pixels(&p, &pixels);
    if (p.mean_count < 0 || p.mean_count > 16 || p.std_count > 16 || p.fill_count > 16)
        abort();
}

/* Writes each word as a text and its length as numbers, on lines of their own and on one. */
static void write_json(int count, char **words) {
    json j = {0};
    config c;
    text problem = {0};
    json_object(&j, NULL);
    json_array(&j, "words");
    for (int i = 0; i < count; i++)
        json_string(&j, NULL, words[i]);
    json_end(&j);
    for (int k = 0; k < 2; k++) {
        (k ? json_line : json_object)(&j, k ? "line" : "object");
        json_row(&j, "numbers");
        for (int i = 0; i < count; i++)
            json_number(&j, NULL, strtod(words[i], NULL));
        json_end(&j);
        json_int(&j, "count", count);
        json_bool(&j, "any", count > 0);
        json_micros(&j, "us", (uint64_t)count * 1234567);
        json_null(&j, "nothing");
        json_string(&j, "none", NULL);
        json_end(&j);
    }
    json_end(&j);
    if (!config_parse(j.out.data, j.out.size, &c, &problem))
        abort();
    const config *list = config_get(&c, "words");
    if (!list || list->count != (size_t)count)
        abort();
    config_free(&c);
    text_free(&problem);
    text_free(&j.out);
}

static void read_line(int count, char **words) {
    text problem = {0}, hint = {0};
    tool t = {.quiet = true, .state = &(tool_state){.error = NULL}};
    bool good = args_parse(&t.args, &fuzzed, count, words, &problem, &hint);
    if (good == (problem.size > 0))
        abort();
    if (good)
        for (size_t i = 0; i < t.args.operand_count; i++)
            good = good && args_give_before(&t.args, &options[2], t.args.operands[i], &problem);
    (void)args_value(&t.args, "output");
    (void)args_has(&t.args, "every");
    if (args_repeated(&t.args, "preprocess", 0))
        read_preprocess(&t, args_repeated(&t.args, "preprocess", 0));
    for (int i = 0; i < count; i++) {
        read_word(&t.args, words[i]);
        read_preprocess(&t, words[i]);
    }
    args_free(&t.args);
    text_free(&problem);
    text_free(&hint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *words[MOST_WORDS], *all = malloc(size + 1);
    int count = 0;
#ifdef __GLIBC__
    static FILE *unheard; /* discards messages; a sanitizer's reports are written elsewhere */
    if (!unheard && (unheard = fopen("/dev/null", "w")) != NULL)
        stderr = unheard;
#endif
    if (!all)
        return 0;
    memcpy(all, data, size);
    all[size] = 0;
    for (size_t at = 0; at < size && count < MOST_WORDS; at += strlen(all + at) + 1)
        words[count++] = all + at;
    read_line(count, words);
    write_json(count, words);
    free(all);
    return 0;
}

#define LINE(words)                                                                                \
    { words, sizeof(words) - 1 }

size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const struct {
        const char *words;
        size_t size;
    } seeds[] = {
        LINE("m.onnx\0--method\0mse\0-o\0out\0--every\0"),
        LINE("-fao\0out\0--method=entropy\0--\0-m\0-5\0001e3\0"),
        LINE("--methd\0x\0-z\0--output\0"),
        LINE("--force=yes\0--method\0none\0"),
        LINE("--preprocess\0imagenet,resize=256,crop=224x224\0--preprocess=tf\0a\xff\"\\\n\x01\0"),
        LINE("scale=1/255,mean=0.4:.5:.6,std=1:2:3,layout=nhwc,channels=bgr\0"),
        LINE("caffe,fit=letterbox,fill=114,place=corner\0yolox,letterbox=640:\0none\0"),
        LINE("ppocr,fit=text,rate=8000,pad=320:48,resize=:48\0bgr\0fit=crop\0fit=stretch\0"),
        LINE("mean=103:116:123,channels=rgb\0scale=0\0std=0\0wrong=1\0resize=1,imagenet\0"),
        LINE("scale=\0mean=a\0fill=\0rate=0\0resize=99999\0layout=x\0,\0 \0tf,tf\0"),
    };
    if (index >= sizeof(seeds) / sizeof(*seeds) || capacity < seeds[index].size)
        return 0;
    memcpy(buffer, seeds[index].words, seeds[index].size);
    return seeds[index].size;
}
