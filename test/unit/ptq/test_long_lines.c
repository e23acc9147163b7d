/* SPDX-License-Identifier: MIT */
/*
 * Recipes and calibrations with one name, or one list, that is longer than all before it, so that
 * room for it has to be made: this request of memory, like each other one, is refused.
 */
#include "heap.h"

#include <stdlib.h>
#include <string.h>

#include <qsim/ptq.h>

#define LONG   20000 /* more than a block of the arena */
#define HASH   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEAD   "qsim-calibration 1\nmodel " HASH "\nsamples 1\n"
#define TENSOR "tensor \"z\" 0x0p+0 0x0p+0 -160 0 1 7\n"

/* A text in two parts; between them stands a long name, or a list of many numbers. */
static const struct {
    const char *before, *after;
    bool list;
} texts[] = {
    {"qsim-recipe 1\nlayer \"", "\" weights int8\n", false},
    {"qsim-recipe 1\ntensor \"", "\" uint8\n", false},
    {"qsim-recipe 1\nequalize \"", "\" 1 2\n", false},
    {"qsim-recipe 1\nequalize \"x\" 20000", "\n", true},
    {"qsim-recipe 1\nlayer \"x\" weights int8 bias-correction given 20000", "\n", true},
    {HEAD "tensor \"", "\" 0x0p+0 0x0p+0 -160 0 1 7\n", false},
    {HEAD TENSOR "means \"", "\" 1 4 1p0\n", false},
    {HEAD TENSOR "means \"z\" 1 4", "\n", true},
};

static char *text_of(size_t i) {
    const char *one = i < 5 ? " 1" : " 1p0";
    char *text = calloc(1, 5 * LONG + 1000), *at;
    at = text + sprintf(text, "%s", texts[i].before);
    for (int k = 0; k < LONG; k++)
        at += sprintf(at, "%s", texts[i].list ? one : "n");
    strcpy(at, texts[i].after);
    return text;
}

static int load(qsim_ctx *ctx, const void *arg, qsim_error *e) {
    const char *text = arg;
    qsim_recipe *r = NULL;
    qsim_calibration *c = NULL;
    const size_t size = strlen(text);
    const int code = strncmp(text, HEAD, 10) == 0
                         ? qsim_calibration_load_memory(ctx, text, size, "t", &c, e)
                         : qsim_recipe_load_memory(ctx, text, size, "t", &r, e);
    CHECK((r || c) == !code);
    qsim_recipe_free(r);
    qsim_calibration_free(c);
    return code;
}

int main(void) {
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        char *text = text_of(i);
        test_each_request(load, text, (int)i);
        free(text);
    }
    return test_done();
}
