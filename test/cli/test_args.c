/* SPDX-License-Identifier: MIT */
/* Command lines of a verb with options of every kind: what is given, and what is said of a wrong
 * one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "common/args.h"

static const option options[] = {{"output", "FILE", "the file", 'o', NULL},
                                 {"method", "NAME", "how", 'm', "minmax|mse|entropy"},
                                 {"every", NULL, "all of them", 'a', NULL},
                                 {"quick", NULL, "in haste", 0, NULL},
                                 {NULL, NULL, NULL, 0, NULL}};
static const verb tested = {"try", "MODEL", "a verb", options, NULL, false, NULL};
static const verb alone = {"qsim-try", "MODEL", "a program", options, NULL, true, NULL};

#define MOST 8

/* Words of a line; what is given by it ("option=value;...operand;"), or what is said of it. */
static const struct {
    const char *words[MOST], *given, *problem, *hint;
} lines[] = {
    {{NULL}, "", NULL, NULL},
    {{"m.onnx"}, "m.onnx;", NULL, NULL},
    {{"--every", "m", "n"}, "every;m;n;", NULL, NULL},
    {{"--output", "x"}, "output=x;", NULL, NULL},
    {{"--output=x"}, "output=x;", NULL, NULL},
    {{"--output="}, "output=;", NULL, NULL},
    {{"--output", "--every"}, "output=--every;", NULL, NULL},
    {{"--output=a=b", "c=d"}, "output=a=b;c=d;", NULL, NULL},
    {{"--output"}, NULL, "--output needs a value: FILE", ""},
    {{"--every=yes"}, NULL, "--every takes no value", ""},
    {{"--every="}, NULL, "--every takes no value", ""},
    {{"-o", "x"}, "output=x;", NULL, NULL},
    {{"-ox"}, "output=x;", NULL, NULL},
    {{"-aox"}, "every;output=x;", NULL, NULL},
    {{"-ao", "x", "y"}, "every;output=x;y;", NULL, NULL},
    {{"-oa"}, "output=a;", NULL, NULL},
    {{"-aq"}, "every;quiet;", NULL, NULL},
    {{"-o"}, NULL, "-o needs a value: FILE", ""},
    {{"-ao"}, NULL, "-o needs a value: FILE", ""},
    {{"-z"}, NULL, "unknown option -z", "qsim try --help lists the options"},
    {{"-az"}, NULL, "unknown option -z", "qsim try --help lists the options"},
    {{"-"}, "-;", NULL, NULL},
    {{"--", "-a", "--output", "--"}, "-a;--output;--;", NULL, NULL},
    {{"-T4", "--threads", "2"}, "threads=4;threads=2;", NULL, NULL},
    {{"--method", "mse"}, "method=mse;", NULL, NULL},
    {{"--method=minmax", "-mentropy"}, "method=minmax;method=entropy;", NULL, NULL},
    {{"--method", "ms"}, NULL, "--method is 'ms', not one of minmax|mse|entropy", ""},
    {{"--method", "mse|"}, NULL, "--method is 'mse|', not one of minmax|mse|entropy", ""},
    {{"--method", "max"}, NULL, "--method is 'max', not one of minmax|mse|entropy", ""},
    {{"--method", "mxx"}, NULL, "--method is 'mxx', not one of minmax|mse|entropy", ""},
    {{"--method", "entropyx"}, NULL, "--method is 'entropyx', not one of minmax|mse|entropy", ""},
    {{"--method="}, NULL, "--method is '', not one of minmax|mse|entropy", ""},
    {{"-mnone"}, NULL, "--method is 'none', not one of minmax|mse|entropy", ""},
    {{"--outptu", "x"}, NULL, "unknown option --outptu", "did you mean --output?"},
    {{"--outptu=x"}, NULL, "unknown option --outptu", "did you mean --output?"},
    {{"--outpu"}, NULL, "unknown option --outpu", "did you mean --output?"},
    {{"--zzzzzzzzz"}, NULL, "unknown option --zzzzzzzzz", "qsim try --help lists the options"},
    {{"--repeat", "3"}, NULL, "unknown option --repeat", "qsim bench --runs N"},
    {{"--batch_size=3"}, NULL, "unknown option --batch_size", "--batch N"},
    {{"m", "--every", "--bad!", "-z"},
     NULL,
     "unknown option --bad!",
     "qsim try --help lists the options"},
};

static void add(char *line, size_t room, const char *a, const char *b) {
    const size_t at = strlen(line);
    snprintf(line + at, room - at, b ? "%s=%s;" : "%s;", a, b);
}

static void check_lines(void) {
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        char *words[MOST], given[256] = "";
        text problem = {0}, hint = {0};
        args a;
        int count = 0;
        for (; count < MOST && lines[i].words[count]; count++)
            words[count] = exact_copy(lines[i].words[count], strlen(lines[i].words[count]) + 1);
        const bool good = args_parse(&a, &tested, count, words, &problem, &hint);
        CHECK_INT(good, lines[i].given != NULL);
        for (size_t k = 0; good && k < a.given_count; k++)
            add(given, sizeof(given), a.given[k].option->name, a.given[k].value);
        for (size_t k = 0; good && k < a.operand_count; k++)
            add(given, sizeof(given), a.operands[k], NULL);
        if (good) {
            CHECK_STR(given, lines[i].given ? lines[i].given : "");
            CHECK(problem.size == 0 && hint.size == 0);
        } else {
            CHECK_STR(problem.data ? problem.data : "", lines[i].problem ? lines[i].problem : "");
            CHECK_STR(hint.data ? hint.data : "", lines[i].hint ? lines[i].hint : "");
        }
        args_free(&a);
        text_free(&problem);
        text_free(&hint);
        for (int k = 0; k < count; k++)
            free(words[k]);
    }
}

/* One run takes --input, a set of samples --data: a verb with one of them is told of by the other.
 */
static void check_data_or_input(void) {
    static const option data[] = {{"data", "SPEC", "samples", 'd', NULL},
                                  {NULL, NULL, NULL, 0, NULL}};
    static const option input[] = {{"input", "SPEC", "values", 'i', NULL},
                                   {NULL, NULL, NULL, 0, NULL}};
    static const struct {
        const option *options;
        const char *word, *hint;
    } cases[] = {{data, "--input", "qsim try takes --data"},
                 {input, "--data", "qsim try takes --input"},
                 {options, "--input", "qsim try --help lists the options"},
                 {options, "--data", "qsim try --help lists the options"},
                 {data, "--zzzzzzzzz", "qsim try --help lists the options"},
                 {input, "--zzzzzzzzz", "qsim try --help lists the options"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const verb v = {"try", "MODEL", "a verb", cases[i].options, NULL, false, NULL};
        char word[16], *words[] = {word};
        text problem = {0}, hint = {0};
        args a;
        snprintf(word, sizeof(word), "%s", cases[i].word);
        CHECK(!args_parse(&a, &v, 1, words, &problem, &hint));
        CHECK_STR(hint.data, cases[i].hint);
        args_free(&a);
        text_free(&problem);
        text_free(&hint);
    }
}

/* The first and the last value of an option that is repeated; options that a file gives before. */
static void check_values(void) {
    char *words[] = {"-o", "x", "--every", "--output=y", "-q"};
    text problem = {0}, hint = {0};
    args a;
    CHECK(args_parse(&a, &tested, 5, words, &problem, &hint));
    CHECK_STR(args_value(&a, "output"), "y");
    CHECK_STR(args_repeated(&a, "output", 0), "x");
    CHECK_STR(args_repeated(&a, "output", 1), "y");
    CHECK(!args_repeated(&a, "output", 2) && !args_value(&a, "method"));
    CHECK_STR(args_value(&a, "every"), "");
    CHECK(args_has(&a, "every") && args_has(&a, "quiet") && !args_has(&a, "quick"));
    CHECK(args_give_before(&a, args_option(&tested, "output"), "file", &problem));
    CHECK(args_give_before(&a, args_option(&tested, "quick"), NULL, &problem));
    CHECK(!args_give_before(&a, args_option(&tested, "method"), "x", &problem));
    CHECK_STR(problem.data, "--method is 'x', not one of minmax|mse|entropy");
    CHECK_STR(args_repeated(&a, "output", 0), "file");
    CHECK_STR(args_value(&a, "output"), "y");
    CHECK(args_has(&a, "quick") && a.given_count == 6);
    CHECK_STR(a.given[0].option->name, "quick");
    args_free(&a);
    text_free(&problem);
    CHECK(args_option(&tested, "out") == NULL && args_option(&tested, "output ") == NULL);
    CHECK(args_option(&tested, "threads") == &common_options[0]);
    CHECK(args_common(&tested) == common_options);
    CHECK_STR(args_common(&alone)->name, "memory");
    CHECK_STR(args_prefix(&tested), "qsim ");
    CHECK_STR(args_prefix(&alone), "");
}

int main(void) {
    check_lines();
    check_data_or_input();
    check_values();
    return test_done();
}
