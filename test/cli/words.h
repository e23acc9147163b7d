/* SPDX-License-Identifier: MIT */
/* Numbers of commands, lists of --preprocess, tables of numbers and values of configurations: what
 * is taken and what is refused. */
#ifndef TEST_WORDS_H
#define TEST_WORDS_H

#include "../test.h"
#include "common/args.h"
#include "common/csv.h"
#include "common/preprocess.h"
#include "qsim/job.h"

static void check_numbers(void) {
    static const struct {
        const char *text;
        bool whole, natural,
            number; /* parse_int within -5..INT64_MAX, parse_uint64, parse_number */
    } cases[] = {
        {"0", true, true, true},
        {"9", true, true, true},
        {"-5", true, false, true},
        {"-6", false, false, true},
        {"+5", false, false, true},
        {"", false, false, false},
        {" 5", false, false, false},
        {"5 ", false, false, false},
        {"5x", false, false, false},
        {"-", false, false, false},
        {".", false, false, false},
        {"1.5", false, false, true},
        {".5", false, false, true},
        {"-.5e-3", false, false, true},
        {"1e999", false, false, false},
        {"nan", false, false, false},
        {"inf", false, false, false},
        {"-inf", false, false, false},
        {"/", false, false, false},
        {":", false, false, false},
        {"1e", false, false, false},
        {"9223372036854775807", true, true, true},
        {"9223372036854775808", false, true, true},
        {"18446744073709551615", false, true, true},
        {"18446744073709551616", false, false, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        int64_t whole = 77;
        uint64_t natural;
        double number;
        char *copy = exact_copy(cases[i].text, strlen(cases[i].text) + 1);
        const bool good = parse_int(copy, -5, INT64_MAX, &whole) == cases[i].whole &&
                          parse_uint64(copy, &natural) == cases[i].natural &&
                          parse_number(copy, &number) == cases[i].number;
        if (!good)
            CHECK_FAIL(cases[i].text);
        CHECK((whole == 77) != cases[i].whole);
        free(copy);
    }
    int64_t n = 0;
    for (int v = 0; v <= 4; v++) {
        const char word[] = {(char)('0' + v), 0};
        CHECK_INT(parse_int(word, 1, 3, &n), v >= 1 && v <= 3);
    }
}

static const struct {
    const char *spec;
    bool good;
} lists[] = {
    {"", true},
    {"imagenet", true},
    {"none", true},
    {"imagenet,resize=256", true},
    {"resize=256,imagenet", false},
    {"imagenet,tf", false},
    {"imagenet,", false},
    {",imagenet", false},
    {"tf,,scale=1", false},
    {"imagene", false},
    {"bgr", false},
    {"0.5", false},
    {"scales=1", false},
    {"preset=imagenet", false},
    {"scale=1/255", true},
    {"scale=2", true},
    {"scale=1/0", false},
    {"scale=x", false},
    {"scale=1/x", false},
    {"scale=/2", false},
    {"scale=", false},
    {"mean=0.5", true},
    {"mean=1:2:3", true},
    {"mean=1:", false},
    {"mean=:1", false},
    {"mean=1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16", true},
    {"mean=1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17", false},
    {"std=1:2", true},
    {"std=0", false},
    {"std=1:0", false},
    {"std=x", false},
    {"fill=114", true},
    {"fill=x", false},
    {"fit=crop", true},
    {"fit=TEXT", true},
    {"fit=cro", false},
    {"fit=crops", false},
    {"fit=", false},
    {"layout=nhwc", true},
    {"layout=hwc", false},
    {"channels=bgr", true},
    {"channels=grey", false},
    {"place=corner", true},
    {"place=middle", false},
    {"rate=1", true},
    {"rate=0", false},
    {"rate=1000000", true},
    {"rate=1000001", false},
    {"resize=1", true},
    {"resize=0", false},
    {"resize=16384", true},
    {"resize=16385", false},
    {"resize=1x16384", true},
    {"resize=1x16385", false},
    {"resize=:240", true},
    {"resize=320:", true},
    {"resize=:", false},
    {"resize=:0", false},
    {"crop=224", true},
    {"crop=224x", false},
    {"crop=:224", false},
    {"pad=3:4", true},
    {"letterbox=640", true},
    {"letterbox=640:640:3", false},
};

static void check_lists(void) {
    tool t = {.quiet = true, .state = &(tool_state){.error = NULL}};
    preprocess p;
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
        if (preprocess_parse(&t, lists[i].spec, &p) != lists[i].good)
            CHECK_FAIL(lists[i].spec);
    CHECK(preprocess_parse(&t, "resize=8,letterbox=4:5", &p)); /* the last of both wins */
    CHECK(p.resize[0] == 0 && p.letterbox[0] == 4 && p.letterbox[1] == 5 && !p.given);
    CHECK(preprocess_parse(&t, "letterbox=4,resize=8", &p));
    CHECK(p.resize[0] == 8 && p.resize[1] == 0 && p.shorter && p.letterbox[0] == 0);
    CHECK(preprocess_parse(&t, "resize=:9,crop=3,channels=bgr", &p));
    CHECK(p.resize[0] == 0 && p.resize[1] == 9 && !p.shorter && p.crop[0] == 3 && p.crop[1] == 3);
    CHECK(p.bgr && !p.given && !p.channels_last && !p.corner);
    CHECK(preprocess_parse(&t, "crop=3,fit=letterbox,place=corner,layout=nhwc", &p));
    CHECK(p.fit == FIT_LETTERBOX && p.crop[0] == 0 && p.corner && p.channels_last && !p.bgr);
    CHECK(preprocess_parse(&t, "fit=text,pad=3", &p) && p.fit == FIT_NONE && p.pad[1] == 3);
    for (int i = 0; i <= 6; i++) { /* each of them gives a size, and none does not */
        static const char *const sizes[] = {"rate=7", "fit=crop", "resize=7:",  "resize=:7",
                                            "crop=7", "pad=7",    "letterbox=7"};
        CHECK(preprocess_parse(&t, sizes[i], &p));
        CHECK_INT(preprocess_sizes(&p), i > 0);
    }
    static const struct {
        const char *spec;
        double multiply, divide, mean, std;
    } pixels[] = {
        {"mean=1,std=-1", 1, 255, 1, -1},
        {"mean=51:0", 1, 255, 0.2, 1},
        {"mean=0:-51,std=2:1", 1, 255, 0, 2. / 255},
        {"scale=3/2,mean=9", 3, 2, 9, 1},
    };
    for (size_t i = 0; i < sizeof(pixels) / sizeof(*pixels); i++) {
        preprocess out;
        CHECK(preprocess_parse(&t, pixels[i].spec, &p));
        preprocess_of_pixels(&p, &out);
        CHECK(out.given && out.multiply == pixels[i].multiply && out.divide == pixels[i].divide);
        CHECK_NEAR(out.mean[0], pixels[i].mean, 1e-12);
        CHECK_NEAR(out.std[0], pixels[i].std, 1e-12);
    }
}

/* ---- tables of numbers ---- */

static const struct {
    const char *text;
    size_t rows, columns, line; /* rows 0: refused, at this line */
    float last;                 /* the last number */
} tables[] = {
    {"1,2,3", 1, 3, 1, 3},
    {"1;2\n3;4\n", 2, 2, 3, 4},
    {"1\t2\r\n3\t4\r\n", 2, 2, 3, 4},
    {"1  2\n 3 4 \n", 2, 2, 3, 4},
    {"a,b\n1,2", 1, 2, 2, 2},
    {"# a\n\n  \n1", 1, 1, 4, 1},
    {"1\n#2\n3", 2, 1, 3, 3},
    {"1, 2 ,\t-3", 1, 3, 1, -3},
    {"+.5e1", 1, 1, 1, 5},
    {"0.25\r", 1, 1, 1, 0.25f},
    {"3.4028234e38", 1, 1, 1, 3.4028234e38f},
    {"a,b\nc,d\n1,2", 0, 0, 2, 0}, /* one heading */
    {"a,b", 0, 0, 1, 0},
    {"1,2\n3,a", 0, 0, 2, 0},
    {"1,2\n3", 0, 0, 2, 0},
    {"1,2\n3,4,5", 0, 0, 2, 0},
    {"1\n2,3", 0, 0, 2, 0},
    {"1\n\n2,", 0, 0, 3, 0},
    {"1\n,2", 0, 0, 2, 0},
    {"1\n2 x", 0, 0, 2, 0},
    {"1\n0x10", 0, 0, 2, 0},
    {"1\n0X10", 0, 0, 2, 0},
    {"1\nnan", 0, 0, 2, 0},
    {"1\n-inf", 0, 0, 2, 0},
    {"1\n1e999", 0, 0, 2, 0},
    {"1\n-1e39", 0, 0, 2, 0},
    {"1\n-", 0, 0, 2, 0},
    {"1\n/", 0, 0, 2, 0},
    {"1\n:", 0, 0, 2, 0},
    {"", 0, 0, 1, 0},
    {"#1", 0, 0, 1, 0},
};

static void check_tables(void) {
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
        char *copy = exact_copy(tables[i].text, strlen(tables[i].text) + 1);
        const char *why = NULL;
        size_t line = 0;
        csv c;
        const bool good = csv_parse(copy, &c, &line, &why);
        const size_t count = c.rows * c.columns;
        if (good ? c.rows != tables[i].rows || c.columns != tables[i].columns ||
                       c.values[count - 1] != tables[i].last
                 : tables[i].rows || line != tables[i].line)
            CHECK_FAIL(tables[i].text);
        CHECK(why != NULL);
        free(c.values);
        free(copy);
    }
    char many[600]; /* more than there is room for at first */
    for (size_t n = 0; n < 300; n++)
        memcpy(many + 2 * n, n < 299 ? "1," : "1", 2);
    csv c;
    size_t line;
    const char *why;
    CHECK(csv_parse(many, &c, &line, &why) && c.rows == 1 && c.columns == 300);
    free(c.values);
}

#ifdef TOOL_JANSSON
/* ---- values of configurations ---- */

static const char values_text[] =
    "{\"none\": null, \"truth\": true, \"low\": -1, \"zero\": 0, \"most\": 2147483647, "
    "\"more\": 2147483648, \"real\": 2.5, \"text\": \"t\", \"list\": [1, 2], \"mixed\": [1, \"x\"], "
    "\"empty\": [], \"config\": {\"zero\": 7, \"none\": 3, \"inner\": null}, \"inner\": 4}";

/* Which of the readers take a key: string, whole number from 0 on, number, truth value, list. */
static const struct {
    const char *key;
    bool string, whole, number, truth, list;
} keyed[] = {
    {"nowhere", true, true, true, true, false}, /* without it nothing is read */
    {"truth", false, false, false, true, false},   {"low", false, false, true, false, false},
    {"zero", false, true, true, false, false},     {"most", false, true, true, false, false},
    {"more", false, false, true, false, false},    {"real", false, false, true, false, false},
    {"text", true, false, false, false, false},    {"list", false, false, false, false, true},
    {"mixed", false, false, false, false, false},  {"empty", false, false, false, false, true},
    {"config", false, false, false, false, false},
};

static void check_keyed(const config *root) {
    for (size_t i = 0; i < sizeof(keyed) / sizeof(*keyed); i++) {
        job_trouble trouble = {0};
        job_reader r = {.trouble = &trouble};
        const char *key = keyed[i].key, *string = "";
        const config *c = config_get(root, key);
        int64_t whole = 0;
        double number = 0;
        bool truth = false;
        if (job_string(&r, root, key, &string) != keyed[i].string ||
            job_int(&r, root, key, 0, &whole) != keyed[i].whole ||
            job_number(&r, root, key, &number) != keyed[i].number ||
            job_bool(&r, root, key, &truth) != keyed[i].truth ||
            (c && job_is_array(&r, c, CONFIG_INT) != keyed[i].list))
            CHECK_FAIL(key);
        CHECK(!c || trouble.code == QSIM_E_ARGUMENT);
        text_free(&trouble.message);
    }
}

static void check_config_bytes(void) {
    config root;
    text problem = {0};
    char *large = malloc(CONFIG_MOST_BYTES);
    memset(large, ' ', CONFIG_MOST_BYTES);
    large[0] = '{', large[CONFIG_MOST_BYTES - 1] = '}';
    CHECK(config_parse(large, CONFIG_MOST_BYTES, &root, &problem));
    config_free(&root);
    free(large);
    CHECK(!config_parse("", CONFIG_MOST_BYTES + 1, &root, &problem)); /* it is not looked at */
    CHECK(strstr(problem.data, "are too many for a configuration") != NULL);
    text_free(&problem);
}

static void check_config(void) {
    static const char *const outer[] = {"none",  "truth",  "low",   "zero", "most",
                                        "more",  "real",   "text",  "list", "mixed",
                                        "empty", "config", "inner", NULL};
    static const char *const some[] = {"zero", "none", NULL}, *const inner[] = {"zero", "none",
                                                                                "inner", NULL};
    config root;
    text problem = {0};
    job_trouble trouble = {0};
    job_reader r = {.trouble = &trouble};
    int64_t n = 0;
    CHECK(config_parse(values_text, sizeof(values_text) - 1, &root, &problem));
    check_keyed(&root);
    CHECK(job_int(&r, &root, "zero", 0, &n) && n == 7); /* what "config" has comes first */
    CHECK(job_int(&r, &root, "none", 3, &n) && n == 3);
    CHECK(job_int(&r, &root, "inner", 0, &n) && n == 3); /* null is no value */
    CHECK(!job_int(&r, &root, "none", 4, &n));
    CHECK(job_keys(&r, &root, outer) && job_keys(&r, config_get(&root, "config"), inner));
    CHECK(!job_keys(&r, config_get(&root, "config"), some));
    CHECK(!job_keys(&r, config_get(&root, "list"), outer));
    CHECK(job_part(&r, &root, outer));
    CHECK(!job_part(&r, &root, inner));
    text_free(&trouble.message);
    static const char *const near[] = {"none", "truths", NULL};
    trouble.code = 0;
    CHECK(!job_keys(&r, &root, near) && strstr(trouble.message.data, "did you mean truths?"));
    text_free(&trouble.message);
    trouble.code = 0;
    CHECK(!job_keys(&r, &root, (const char *const[]){"none", NULL}));
    CHECK(strstr(trouble.message.data, "truth: unknown key") != NULL);
    text_free(&trouble.message);
    config_free(&root);
    for (int depth = CONFIG_MOST_DEPTH - 2; depth <= CONFIG_MOST_DEPTH; depth++) {
        char deep[256] = "{\"a\":";
        const size_t start = strlen(deep);
        memset(deep + start, '[', (size_t)depth);
        memset(deep + start + depth, ']', (size_t)depth);
        strcpy(deep + start + 2 * depth, "}");
        const bool good = config_parse(deep, strlen(deep), &root, &problem);
        CHECK_INT(good, depth <= CONFIG_MOST_DEPTH);
        config_free(&root);
    }
    for (int i = 0; i <= 3; i++) { /* a byte order mark, and what is like one */
        char marked[] = "\xef\xbb\xbf{}";
        if (i < 3)
            marked[i] = ' ';
        CHECK(!config_parse(marked, i == 3 ? 3 : 5, &root, &problem));
        CHECK((strstr(problem.data, "byte order mark") != NULL) == (i == 3));
        text_free(&problem);
    }
    text_free(&problem);
}
#endif

#endif
