/* SPDX-License-Identifier: MIT */
/* Numbers of commands, and lists of --preprocess: what is taken and what is refused. */
#ifndef TEST_WORDS_H
#define TEST_WORDS_H

#include "../test.h"
#include "common/args.h"
#include "common/preprocess.h"

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
    tool t = {.quiet = true};
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

#endif
