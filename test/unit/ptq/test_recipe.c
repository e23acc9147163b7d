/* SPDX-License-Identifier: MIT */
/* Recipes alone: text and back, refusals, merging, running out of memory. */
#include "heap.h"

#include <qsim/quant.h>
#include <qsim/recipe.h>

#include <math.h>
#include <unistd.h>

#include "ptq/lines.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char all[] =
    "qsim-recipe 1\nmodel " HASH "\ncalibration " HASH "\n"
    "layer \"conv\" weights int8 channel symmetric\n"
    "layer \"a \\\"b\\\" \\\\ \\x01\" weights uint8 tensor asymmetric reduced\n"
    "layer \"four\" weights int4 block 32 symmetric rounding gptq bias-correction off\n"
    "layer \"pairs\" weights int8 channel symmetric paired\n"
    "layer \"add\" integer\n"
    "layer \"head\" float\n"
    "tensor \"x\" uint8 asymmetric range -0x1.000000p+0 0x1.800000p+2 method mse # -1 6\n"
    "tensor \"conv\" int16 symmetric method percentile 99.99\n"
    "tensor \"z\" float\n";

static qsim_recipe *load(const char *text) {
    qsim_recipe *r = NULL;
    qsim_error e = {0};
    if (qsim_recipe_load_memory(NULL, text, strlen(text), "file", &r, &e))
        fprintf(stderr, "%s\n", e.message);
    CHECK(r != NULL);
    return r;
}

static void check_text(const qsim_recipe *r, const char *want) {
    char text[4096];
    size_t need = 0;
    CHECK_INT(qsim_recipe_text(r, NULL, 0, &need, NULL), QSIM_OK);
    CHECK(need < sizeof(text));
    text[0] = 'x';
    CHECK_INT(qsim_recipe_text(r, text, need - 1, &need, NULL), QSIM_OK);
    CHECK_INT(text[0], 'x');
    CHECK_INT(qsim_recipe_text(r, text, sizeof(text), &need, NULL), QSIM_OK);
    text[need] = 0;
    CHECK_STR(text, want);
}

static qsim_recipe_entry entry(const qsim_recipe *r, int32_t kind, const char *name) {
    qsim_recipe_entry e = {.struct_size = sizeof(e)};
    CHECK_INT(qsim_recipe_get(r, qsim_recipe_find(r, kind, name), &e), QSIM_OK);
    return e;
}

static void test_read(void) {
    qsim_recipe *r = load(all);
    check_text(r, all);
    CHECK_INT(qsim_recipe_count(r), 9);
    CHECK_STR(qsim_recipe_model(r), HASH);
    CHECK_STR(qsim_recipe_calibration(r), HASH);
    qsim_recipe_entry e = entry(r, QSIM_RECIPE_LAYER, "four");
    CHECK(e.dtype == QSIM_INT4 && e.granularity == QSIM_GRANULARITY_BLOCK && e.block == 32 &&
          e.symmetric == 1 && e.rounding == QSIM_ROUNDING_GPTQ &&
          e.bias_correction == QSIM_BIAS_CORRECTION_OFF);
    e = entry(r, QSIM_RECIPE_LAYER, "a \"b\" \\ \x01");
    CHECK(e.dtype == QSIM_UINT8 && e.granularity == QSIM_GRANULARITY_TENSOR && !e.symmetric &&
          e.flags == QSIM_RECIPE_REDUCED);
    e = entry(r, QSIM_RECIPE_TENSOR, "x");
    CHECK(e.flags == (QSIM_RECIPE_RANGE | QSIM_RECIPE_METHOD) && e.low == -1 && e.high == 6 &&
          e.method == QSIM_METHOD_MSE);
    e = entry(r, QSIM_RECIPE_TENSOR, "conv"); /* layers and tensors have separate names */
    CHECK(e.dtype == QSIM_INT16 && e.percentile == 99.99);
    CHECK_INT(entry(r, QSIM_RECIPE_LAYER, "add").action, QSIM_RECIPE_INTEGER);
    CHECK_INT(entry(r, QSIM_RECIPE_TENSOR, "z").action, QSIM_RECIPE_FLOAT);
    CHECK_INT(qsim_recipe_find(r, QSIM_RECIPE_TENSOR, "four"), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_recipe_find(r, 3, "four"), QSIM_E_NOT_FOUND);
    CHECK_INT(qsim_recipe_get(r, 9, &e), QSIM_E_ARGUMENT);
    qsim_recipe_free(r);
}

/* By hand: comments, blanks, decimals, defaults, windows line ends, no end of line at the end. */
static void test_by_hand(void) {
    qsim_recipe *r = load("# mine\r\n\n  qsim-recipe\t1 # first\r\nlayer \"c\" weights uint8\r\n"
                          "tensor \"x\" uint8 range -1 2.5\r\ntensor \"y\" int8 symmetric#all");
    check_text(r, "qsim-recipe 1\nlayer \"c\" weights uint8 channel symmetric\n"
                  "tensor \"x\" uint8 asymmetric range -0x1.000000p+0 0x1.400000p+1 # -1 2.5\n"
                  "tensor \"y\" int8 symmetric\n");
    CHECK_STR(qsim_recipe_model(r), "");
    qsim_recipe_free(r);
    r = load("qsim-recipe 1\ntensor \"x\" uint8 range 0x0p+0 0x1.fffffep127\n"
             "tensor \"y\" uint8 range -0x0.000002p-126 0.1\n"
             "layer \"x\" weights int8 block 2147483647\nequalize \"z\" 1 2\n"
             "layer \"y\" weights int8 block 1\ntensor \"t\" int8 method percentile 100\n");
    CHECK(entry(r, QSIM_RECIPE_TENSOR, "x").high == 0x1.fffffep+127f);
    CHECK(entry(r, QSIM_RECIPE_TENSOR, "y").low == -0x1p-149f);
    CHECK(entry(r, QSIM_RECIPE_TENSOR, "y").high == 0.1f);
    CHECK(entry(r, QSIM_RECIPE_LAYER, "x").block == INT32_MAX);
    CHECK(entry(r, QSIM_RECIPE_LAYER, "y").block == 1);
    qsim_recipe_free(r);
    qsim_recipe_free(load("qsim-recipe 1\nequalize \"x\" 2 1 2")); /* each takes two bytes */
}

static const struct {
    const char *text, *message;
    int code;
} cases[] = {
    {"", "line 1: not a recipe", QSIM_E_FORMAT},
    {"qsim-recipe 2\n", "recipe version 2 is not known", QSIM_E_UNSUPPORTED},
    {"qsim-recipe 1 2\n", "line 1: expected the end of the line, not '2'", QSIM_E_FORMAT},
    {"qsim-recipe 1\nmodel 12\n", "line 2: expected 64 hexadecimal digits, once, not '12'",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\nmodel " HASH "\nmodel " HASH "\n", "line 3: expected 64 hex", QSIM_E_FORMAT},
    {"qsim-recipe 1\n\nnode \"x\" float\n",
     "line 3: expected layer, tensor or equalize, not 'node'", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer x float\n", "line 2: expected a name in quotation marks", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x float\n", "line 2: the name does not end", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"\" float\n", "line 2: the name is malformed", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"\\x00\" float\n", "line 2: the name is malformed", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x\" weights int8 equalize 3\n",
     "line 2: expected a setting of layers, not 'equalize'", QSIM_E_FORMAT},
    {"qsim-recipe 1\nequalize \"x\" 2 1 0\n", "line 2: a factor is not above 0, or out of range",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\nequalize \"x\" 1 2 float\n", "line 2: expected the end of the line",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\nequalize \"x\" 1 2\nequalize \"x\" 1 2\n", "line 3: the name appears twice",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x\" weights int8 bias-correction given 9999999999 1\n",
     "line 2: expected the number of channels, not '9999999999'", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x\" weights int8 bias-correction given 1 0x1p+999\n",
     "line 2: a bias correction is not finite", QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x\" float 1\n", "line 2: expected the end of the line, not '1'",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\nlayer \"x\" float\nlayer \"x\" float\n", "line 3: the name appears twice",
     QSIM_E_FORMAT},
    {"qsim-recipe 1\ntensor \"x\" integer\n", "line 2: expected a type or float", QSIM_E_FORMAT},
    {"qsim-recipe 1\ntensor \"x\" uint8 range 2 1\n",
     "line 2: the ends of the range are not finite, or in the wrong order", QSIM_E_FORMAT},
    {"qsim-recipe 1\ntensor \"x\" uint8 range 1 0x1p+999\n",
     "line 2: the ends of the range are not finite, or in the wrong order", QSIM_E_FORMAT},
    {"qsim-recipe 1\ntensor \"x\" uint8 reduced\n",
     "line 2: expected a setting of tensors, not 'reduced'", QSIM_E_FORMAT},
    {"qsim-recipe\n", "line 1: not a recipe", QSIM_E_FORMAT},
    {"qsim-recipes 1\n", "line 1: not a recipe", QSIM_E_FORMAT},
};
/* A line and its last word, which is wrong; "": it ends there; NULL: it is not of this kind. */
static const struct {
    const char *line, *word, *expected;
} last_words[] = {
    {"layer \"x\"", "", "weights, float or integer"},
    {"layer \"x\" weights", "int5", "a type of weights"},
    {"equalize \"x\"", "", "the number of channels"},
    {"equalize \"x\" 2 1", "", "a number for each channel"},
    {"layer \"x\" weights int8 block", "0", "the size of blocks"},
    {"layer \"x\" weights int8 block", "2147483648", "the size of blocks"},
    {"layer \"x\" weights int8 channel", "tensor", "a setting that the line does not have yet"},
    {"tensor \"x\" uint8 symmetric", "asymmetric", "a setting that the line does not have yet"},
    {"layer \"x\" weights int8 reduced", "paired", "a setting that the line does not have yet"},
    {"layer \"x\" weights int8 rounding", "up", "a rounding"},
    {"layer \"x\" weights int8 bias-correction given", "", "the number of channels"},
    {"layer \"x\" weights int8 bias-correction given 2 1", "", "a number for each channel"},
    {"tensor \"x\" uint8 range 1", "nan", "the two ends of the range"},
    {"tensor \"x\" uint8 range 1", "", "the two ends of the range"},
    {"layer \"x\" weights", "", "a type of weights"},
    {"layer \"x\"", "uint8", "weights, float or integer"},
    {"layer \"x\" weights int8 block", "1.5", "the size of blocks"},
    {"layer \"x\" weights int8 block", "", "the size of blocks"},
    {"layer \"x\" weights int8 rounding", "", "a rounding"},
    {"layer \"x\" weights int8 bias-correction", "maybe", "on, off or given"},
    {"layer \"x\" weights int8 bias-correction", "", "on, off or given"},
    {"layer \"x\" weights int8 range", "", NULL}, /* of tensors alone */
    {"layer \"x\" weights int8 method", "", NULL},
    {"tensor \"x\"", "", "a type or float"},
    {"tensor \"x\"", "weights", "a type or float"},
    {"tensor \"x\"", "int4", "a type or float"},
    {"tensor \"x\" uint8 method", "nothing", "a method"},
    {"tensor \"x\" uint8 method", "", "a method"},
    {"tensor \"x\" uint8 method percentile", "", "a percentile in (0, 100]"},
    {"tensor \"x\" uint8 method percentile", "x", "a percentile in (0, 100]"},
    {"tensor \"x\" uint8 method percentile", "0", "a percentile in (0, 100]"},
    {"tensor \"x\" uint8 method percentile", "100.01", "a percentile in (0, 100]"},
    {"tensor \"x\" uint8 range", "x", "the two ends of the range"},
    {"tensor \"x\" uint8 range 1", "x", "the two ends of the range"},
    {"tensor \"x\" uint8 rounding", "", NULL}, /* of layers alone */
    {"tensor \"x\" uint8 channel", "", NULL},
    {"tensor \"x\" uint8 bias-correction", "", NULL},
    {"equalize \"x\"", "0", "the number of channels"},
    {"equalize \"x\"", "0.5", "the number of channels"},
    {"equalize \"x\"", "1.5", "the number of channels"},
    {"equalize \"x\" 1", "x", "a number for each channel"},
};

static void test_last_words(void) {
    for (size_t i = 0; i < sizeof(last_words) / sizeof(*last_words); i++) {
        char text_of[128], wanted[128];
        qsim_recipe *r = NULL;
        qsim_error e = {0};
        const char *word = last_words[i].word, *line = last_words[i].line;
        const int n =
            snprintf(text_of, sizeof(text_of), "qsim-recipe 1\n%s %s\n1 2 3\n", line, word);
        if (last_words[i].expected)
            snprintf(wanted, sizeof(wanted),
                     *word ? "t: line 2: expected %s, not '%s'"
                           : "t: line 2: expected %s, but the line ends",
                     last_words[i].expected, word);
        else
            snprintf(wanted, sizeof(wanted), "t: line 2: expected a setting of %.6ss, not '%s'",
                     line[0] == 'l' ? "layer" : "tensor", strrchr(line, ' ') + 1);
        CHECK_INT(qsim_recipe_load_memory(NULL, text_of, (size_t)n, "t", &r, &e), QSIM_E_FORMAT);
        CHECK_STR(e.message, wanted);
        qsim_recipe_free(r);
    }
}

static void test_refused(void) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        qsim_recipe *r = NULL;
        qsim_error e;
        const char *t = cases[i].text;
        char longer[512]; /* with a legal line after the bad one, which is not read any more */
        snprintf(longer, sizeof(longer), "%slayer \"legal\" float\n", t);
        for (int more = 0; more <= 1; more++) {
            t = more ? longer : t;
            CHECK_INT(qsim_recipe_load_memory(NULL, t, strlen(t), "file", &r, &e), cases[i].code);
            CHECK(!r && strncmp(e.message, "file: ", 6) == 0);
            CHECK(strstr(e.message, cases[i].message) != NULL);
            if (!strstr(e.message, cases[i].message))
                fprintf(stderr, "  %s\n  %s\n", e.message, cases[i].message);
        }
    }
    qsim_recipe *r = NULL;
    CHECK_INT(qsim_recipe_load_memory(NULL, NULL, 1, "t", &r, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_recipe_load_memory(NULL, NULL, 0, "t", &r, NULL), QSIM_E_FORMAT);
    CHECK_INT(qsim_recipe_load_memory(NULL, "", 0, "t", NULL, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_recipe_load(NULL, NULL, &r, NULL), QSIM_E_ARGUMENT);
    CHECK_INT(qsim_recipe_load(NULL, "t", NULL, NULL), QSIM_E_ARGUMENT);
    /* A NUL does not end the text. */
    CHECK_INT(qsim_recipe_load_memory(NULL, "qsim-recipe 1\n\0\n", 16, NULL, &r, NULL),
              QSIM_E_FORMAT);
}

static void test_set(void) {
    qsim_recipe *r = NULL, *other = load(all);
    qsim_recipe_entry e = {.struct_size = sizeof(e),
                           .name = "t",
                           .kind = QSIM_RECIPE_TENSOR,
                           .dtype = QSIM_UINT8,
                           .flags = QSIM_RECIPE_METHOD,
                           .method = QSIM_METHOD_PERCENTILE,
                           .percentile = 100 - 1.0 / 3};
    CHECK_INT(qsim_recipe_create(NULL, &r, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_OK);
    CHECK(entry(r, QSIM_RECIPE_TENSOR, "t").percentile == 99.666666667);
    check_text(r, "qsim-recipe 1\ntensor \"t\" uint8 asymmetric method percentile 99.666666667\n");
    e.percentile = 100;
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_OK);
    check_text(r, "qsim-recipe 1\ntensor \"t\" uint8 asymmetric method percentile 100\n");
    e.dtype = QSIM_INT4;
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_E_ARGUMENT);
    e.dtype = QSIM_UINT8;
    e.block = 3;
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_E_ARGUMENT);
    e.block = 0;
    e.action = QSIM_RECIPE_INTEGER;
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_E_ARGUMENT);
    e = (qsim_recipe_entry){.struct_size = sizeof(e), .name = "", .kind = QSIM_RECIPE_LAYER};
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_E_ARGUMENT);
    /* Merging: entries of `from` replace those of the same name, the others stay. */
    e = (qsim_recipe_entry){
        .struct_size = sizeof(e), .name = "conv", .kind = QSIM_RECIPE_LAYER, .action = 1};
    CHECK_INT(qsim_recipe_set(r, &e, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_merge(r, other, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_count(r), 10);
    CHECK_INT(entry(r, QSIM_RECIPE_LAYER, "conv").action, QSIM_RECIPE_QUANTIZE);
    CHECK_STR(qsim_recipe_model(r), HASH);
    qsim_recipe *foreign = load("qsim-recipe 1\nmodel 1123456789abcdef0123456789abcdef01234567"
                                "89abcdef0123456789abcdef\n");
    CHECK_INT(qsim_recipe_merge(r, foreign, NULL), QSIM_E_MISMATCH);
    qsim_recipe_free(foreign);
    qsim_recipe_free(other);
    qsim_recipe_free(r);
}

static void test_files(void) {
    char folder[] = "qsim-recipe-XXXXXX", path[64];
    qsim_recipe *r = load(all), *again = NULL;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof(path), "%s/m.qrecipe", folder);
    CHECK_INT(qsim_recipe_load(NULL, path, &again, NULL), QSIM_E_IO);
    CHECK_INT(qsim_recipe_save(r, path, 0, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_save(r, path, 0, NULL), QSIM_E_EXISTS);
    CHECK_INT(qsim_recipe_save(r, path, 1, NULL), QSIM_OK);
    CHECK_INT(qsim_recipe_load(NULL, path, &again, NULL), QSIM_OK);
    check_text(again, all);
    qsim_recipe_free(again);
    qsim_recipe_free(r);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
}

static int live(qsim_ctx *ctx) {
    qsim_recipe *r = NULL, *sum = NULL;
    size_t need;
    int code = qsim_recipe_load_memory(ctx, all, strlen(all), NULL, &r, NULL);
    if (!code)
        code = qsim_recipe_create(ctx, &sum, NULL);
    if (!code)
        code = qsim_recipe_merge(sum, r, NULL);
    if (!code)
        code = qsim_recipe_text(sum, NULL, 0, &need, NULL);
    qsim_recipe_free(r);
    qsim_recipe_free(sum);
    return code;
}

static void test_memory(void) {
    test_heap h = {0};
    qsim_allocator a = test_heap_allocator(&h);
    qsim_ctx_options o = {.struct_size = sizeof(o), .allocator = &a, .threads = 1};
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(&o, &ctx, NULL), QSIM_OK);
    const long before = h.calls;
    CHECK_INT(live(ctx), QSIM_OK);
    const long calls = h.calls - before;
    CHECK(calls > 10);
    for (long i = 1; i <= calls; i++) {
        h.fail_at = h.calls + i;
        CHECK_INT(live(ctx), QSIM_E_NOMEM);
        CHECK_INT(h.live, 1);
    }
    qsim_ctx_free(ctx);
    CHECK_INT(h.live, 0);
}

/* ---- words ---- */

enum { COUNT = 1, INTEGER = 2, NUMBER = 4, FLOAT = 8 };

/* Which kinds of numbers a word is, and its value; integers go to +-1000. */
static const struct {
    const char *word;
    int kinds;
    double value;
} words[] = {
    {"0", COUNT | INTEGER | NUMBER, 0},
    {"9", COUNT | INTEGER | NUMBER, 9},
    {"/", 0, 0}, /* the characters beside the digits */
    {":", 0, 0},
    {"1/", 0, 0},
    {"1:", 0, 0},
    {"a", 0, 0},
    {"1000", COUNT | INTEGER | NUMBER, 1000},
    {"1001", COUNT | NUMBER, 1001},
    {"-1000", INTEGER | NUMBER, -1000},
    {"-1001", NUMBER, -1001},
    {"+7", INTEGER, 7},
    {"-", 0, 0},
    {"+", 0, 0},
    {"--1", 0, 0},
    {"0.5", NUMBER, 0.5},
    {"-0.25", NUMBER, -0.25},
    {"7.", NUMBER, 7},
    {".5", 0, 0},
    {".", 0, 0},
    {"1.2.3", 0, 0},
    {"1..2", 0, 0},
    {"123456789012345", COUNT | NUMBER, 123456789012345}, /* as many digits as are exact */
    {"12345678901234.5", NUMBER, 12345678901234.5},
    {"1234567890123456", COUNT, 1234567890123456},
    {"123456789012345.6", 0, 0},
    {"18446744073709551616", 0, 0}, /* 2^64 */
    {"18446744073709551620", 0, 0},
    {"184467440737095516150", 0, 0},
    {"0x", 0, 0},
    {"0x1", 0, 0},
    {"0x1p", 0, 0},
    {"0x1p0", NUMBER | FLOAT, 1},
    {"-0x1p0", NUMBER | FLOAT, -1},
    {"0X1p0", 0, 0},
    {"1x1p0", 0, 0},
    {"0x1P0", 0, 0},
    {"0x1q0", 0, 0},
    {"0x1p+", 0, 0},
    {"0x1p-", 0, 0},
    {"0x1p+-1", 0, 0},
    {"0x1p+3", NUMBER | FLOAT, 8},
    {"0x1p-3", NUMBER | FLOAT, 0.125},
    {"0x1p19", NUMBER | FLOAT, 524288},
    {"0x1p/", 0, 0},
    {"0x1p1:", 0, 0},
    {"0x1p1.", 0, 0},
    {"0x0p+0000", NUMBER | FLOAT, 0},
    {"0x0p+00000", 0, 0},
    {"0xp0", 0, 0},
    {"0x.p0", 0, 0},
    {"0x.8p0", 0, 0},
    {"0x1.p0", NUMBER | FLOAT, 1},
    {"0x1.8p1", NUMBER | FLOAT, 3},
    {"0x1..8p1", 0, 0},
    {"0x1.8.p1", 0, 0},
    {"0x11.8p1", 0, 0},
    {"0x11p0", NUMBER | FLOAT, 17},
    {"0xap0", NUMBER | FLOAT, 10},
    {"0xfp0", NUMBER | FLOAT, 15},
    {"0xgp0", 0, 0},
    {"0x`p0", 0, 0},
    {"0x/p0", 0, 0},
    {"0x:p0", 0, 0},
    {"0xAp0", 0, 0},
    {"0x8000000000001p0", NUMBER, 2251799813685249}, /* 13 digits */
    {"0x1.000000000001p0", NUMBER, 1 + 0x1p-48},
    {"0x10000000000000p0", 0, 0},
    {"0x1.0000000000000p0", 0, 0},
    {"0x1p+1023", NUMBER, 0x1p1023},
    {"0x1p+1024", 0, 0}, /* infinite */
    {"0x1.fffffep+127", NUMBER | FLOAT, 0x1.fffffep127},
    {"-0x1.fffffep+127", NUMBER | FLOAT, -0x1.fffffep127},
    {"0x1.ffffffp+127", NUMBER, 0x1.ffffffp127},
    {"0x1p+128", NUMBER, 0x1p128},
    {"-0x1p+128", NUMBER, -0x1p128},
    {"0x1p-149", NUMBER | FLOAT, 0x1p-149},
    {"0x1p-150", NUMBER, 0x1p-150},
    {"-0x0p0", NUMBER | FLOAT, 0},
    {"nan", 0, 0},
    {"inf", 0, 0},
};

/* Reads one word as each kind of number, from memory that ends with it or with what ends a word. */
static void check_word(const char *word, const char *after, int kinds, double value) {
    char text[64];
    uint64_t count = 0;
    int32_t integer = 0;
    double number = 0;
    float real = 0;
    const int length = snprintf(text, sizeof(text), "%s%s", word, after);
    char *data = exact_copy(text, (size_t)length);
    qs_lines r = qs_lines_of(data, (size_t)length, "t", NULL), ahead = r;
    bool good = qs_lines_count(&ahead, &count) == ((kinds & COUNT) != 0) &&
                (!(kinds & COUNT) || count == (uint64_t)value);
    ahead = r;
    good &= qs_lines_integer(&ahead, 1000, &integer) == ((kinds & INTEGER) != 0) &&
            (!(kinds & INTEGER) || integer == (int32_t)value);
    ahead = r;
    good &= qs_lines_number(&ahead, &number) == ((kinds & NUMBER) != 0) &&
            (!(kinds & NUMBER) || number == value);
    ahead = r;
    good &= qs_lines_float(&ahead, &real) == ((kinds & FLOAT) != 0) &&
            (!(kinds & FLOAT) || ((double)real == value && !(value == 0 && signbit(real))));
    if (!good)
        fprintf(stderr, "'%s%s'\n", word, after);
    CHECK(good);
    free(data);
}

static void test_numbers(void) {
    static const char *const after[] = {"", " ", "\n", "\t1", "\r\n", "#1"};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        for (size_t k = 0; k < sizeof(after) / sizeof(*after); k++)
            check_word(words[i].word, after[k], words[i].kinds, words[i].value);
    qs_lines r = qs_lines_of("18446744073709551615", 20, "t", NULL);
    CHECK(qs_lines_count(&r, &most) && most == UINT64_MAX);
    check_word("", "", 0, 0);
}

/* Names as they stand in files, and what they are; NULL: refused. */
static const struct {
    const char *text, *name;
    size_t size; /* of the text, if it has a NUL */
} names[] = {
    {"\"a\"", "a", 0},
    {" \t\"a\"", "a", 0},
    {"\"a\" ", "a", 0},
    {"\"a\"\t", "a", 0},
    {"\"a\"\r", "a", 0},
    {"\"a\"\n", "a", 0},
    {"\"a\"#", "a", 0},
    {"\"a\"b", NULL, 0},
    {"\"a\"\"", NULL, 0},
    {"\"a b#c\"", "a b#c", 0},
    {"\"\\\"\\\\\"", "\"\\", 0},
    {"\"\\x41\"", "A", 0},
    {"\"\\x01\\x10\\xff\"", "\x01\x10\xff", 0},
    {"\"\\x00\"", NULL, 0},
    {"\"\\x4\"", NULL, 0},
    {"\"\\x\"", NULL, 0},
    {"\"\\xg2\"", NULL, 0},
    {"\"\\x2g\"", NULL, 0},
    {"\"\\n\"", NULL, 0},
    {"\"\\\"", NULL, 0},
    {"\"\\", NULL, 0},
    {"\"a\\", NULL, 0},
    {"\"a\nb\"", NULL, 0},
    {"\"a\0b\"", NULL, 5},
    {"\"\"", NULL, 0},
    {"\"", NULL, 0},
    {"\"a", NULL, 0},
    {"a", NULL, 0},
    {"a\"", NULL, 0},
    {"", NULL, 0},
    {" ", NULL, 0},
};

static void test_names(void) {
    qsim_ctx *ctx = NULL;
    CHECK_INT(qsim_ctx_create(NULL, &ctx, NULL), QSIM_OK);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const size_t size = names[i].size ? names[i].size : strlen(names[i].text);
        char *data = exact_copy(names[i].text, size), *name = NULL;
        size_t length = 0;
        qs_lines r = qs_lines_of(data, size, "t", NULL);
        qs_arena arena;
        qs_arena_init(&arena, ctx);
        CHECK_INT(qs_lines_name(&r, &arena, &name, &length),
                  names[i].name ? QSIM_OK : QSIM_E_FORMAT);
        if (names[i].name && name)
            CHECK(length == strlen(names[i].name) && memcmp(name, names[i].name, length + 1) == 0);
        qs_arena_free(&arena);
        free(data);
    }
    qsim_ctx_free(ctx);
}

static int hash_of(const char *word, size_t length, const char *after, char hash[65]) {
    char text[80];
    const int size = snprintf(text, sizeof(text), "%.*s%s", (int)length, word, after);
    char *data = exact_copy(text, (size_t)size);
    qs_lines r = qs_lines_of(data, (size_t)size, "t", NULL);
    const int code = qs_lines_hash(&r, hash);
    free(data);
    return code;
}

static void test_hash(void) {
    char hash[65] = {0}, wrong[66] = HASH "0";
    CHECK_INT(hash_of(wrong, 63, "", hash), QSIM_E_FORMAT);
    CHECK_INT(hash_of(wrong, 65, "", hash), QSIM_E_FORMAT);
    CHECK_INT(hash_of(wrong, 64, " x", hash), QSIM_E_FORMAT);
    memset(hash, 0, sizeof(hash));
    for (int i = 0; i < 64; i++) {
        const char right = wrong[i];
        wrong[i] = 'g';
        CHECK_INT(hash_of(wrong, 64, "", hash), QSIM_E_FORMAT);
        wrong[i] = right;
    }
    CHECK_INT(hash_of(wrong, 64, " # this model", hash), QSIM_OK);
    CHECK_STR(hash, HASH);
    CHECK_INT(hash_of(wrong, 64, "", hash), QSIM_E_FORMAT); /* given already */
}

/* Lines, with the first word of each and the number of words after it; from exact memory. */
static void test_lines(void) {
    static const char text[] = "# none\n\r\n \ta  b\tc # d\nlonger#\nlong";
    static const struct {
        const char *word;
        size_t line, left;
    } lines[] = {{"a", 3, 2}, {"longer", 4, 0}, {"long", 5, 0}};
    char *data = exact_copy(text, sizeof(text) - 1);
    qs_lines r = qs_lines_of(data, sizeof(text) - 1, "t", NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(qs_lines_find(&r) && r.line == lines[i].line);
        CHECK_INT(r.length, strlen(lines[i].word));
        for (int k = 0; k < 3; k++)
            CHECK_INT(qs_lines_is(&r, lines[k].word), i == k);
        CHECK_INT(qs_lines_left(&r), lines[i].left);
        CHECK_INT(qs_lines_end(&r), lines[i].left ? QSIM_E_FORMAT : QSIM_OK);
        if (lines[i].left)
            qs_lines_next(&r);
    }
    CHECK(!qs_lines_find(&r));
    free(data);
    /* Words are shown up to 40 bytes. */
    char word[64], wanted[128];
    for (int n = 39; n <= 41; n++) {
        qsim_error e = {0};
        memset(word, 'w', sizeof(word));
        data = exact_copy(word, (size_t)n);
        r = qs_lines_of(data, (size_t)n, NULL, &e);
        CHECK_INT(qs_lines_end(&r), QSIM_E_FORMAT);
        snprintf(wanted, sizeof(wanted),
                 "(memory): line 1: expected the end of the line, not '%.*s'", n < 40 ? n : 40,
                 word);
        CHECK_STR(e.message, wanted);
        free(data);
    }
}

int main(void) {
    test_numbers();
    test_names();
    test_hash();
    test_lines();
    test_read();
    test_by_hand();
    test_refused();
    test_last_words();
    test_set();
    test_files();
    test_memory();
    return test_done();
}
