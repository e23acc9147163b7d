/* SPDX-License-Identifier: MIT */
/* --preprocess "imagenet", "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225". */
#include "common/preprocess.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * Presets are lists of parts. ImageNet's is torchvision's, tf and caffe are Keras's, the others are
 * those of their projects.
 */
static const struct {
    const char *name, *list;
} presets[] = {
    {"imagenet", "fit=crop,mean=0.485:0.456:0.406,std=0.229:0.224:0.225"},
    {"tf", "fit=crop,mean=0.5,std=0.5"},
    {"caffe", "fit=crop,channels=bgr,scale=1,mean=103.939:116.779:123.68"},
    {"yolox", "fit=letterbox,place=corner,fill=114,channels=bgr,scale=1"},
    {"ppocr", "fit=text,channels=bgr,mean=0.5,std=0.5"},
    {"none", ""},
};
#define PRESETS (sizeof(presets) / sizeof(*presets))

/* The error in the part that is being read: static texts. */
typedef struct reading {
    preprocess *p;
    const char *problem, *hint;
} reading;

static bool wrong(reading *r, const char *problem, const char *hint) {
    r->problem = problem;
    r->hint = hint;
    return false;
}

/* A, or A/B; without B the divisor is 1. */
static bool read_fraction(char *s, double *number, double *divisor) {
    char *slash = strchr(s, '/');
    *divisor = 1;
    if (slash)
        *slash++ = 0;
    return parse_number(s, number) && (!slash || parse_number(slash, divisor)) && *divisor != 0;
}

static bool read_list(reading *r, char *s, double *values, int *count) {
    for (*count = 0; s && *count < 16; (*count)++) {
        char *colon = strchr(s, ':');
        double divisor;
        if (colon)
            *colon++ = 0;
        if (!read_fraction(s, &values[*count], &divisor))
            return wrong(r, "not a number, or one for each channel",
                         "for instance mean=0.485:0.456:0.406");
        values[*count] /= divisor;
        s = colon;
    }
    return !s || wrong(r, "more than 16 values", NULL);
}

static bool read_scale(reading *r, char *s) {
    r->p->scaled = true;
    return read_fraction(s, &r->p->multiply, &r->p->divide) ||
           wrong(r, "not a number or a fraction", "for instance scale=1/255");
}

static bool read_std(reading *r, char *s) {
    preprocess *p = r->p;
    if (!read_list(r, s, p->std, &p->std_count))
        return false;
    for (int i = 0; i < p->std_count; i++)
        if (p->std[i] == 0)
            return wrong(r, "divides by 0", NULL);
    return true;
}

/* The index of a word in "a|b|c", or -1. */
static int place_of(const char *word, const char *choices) {
    size_t n = strlen(word);
    int i = 0;
    for (const char *c = choices; c; c = strchr(c, '|'), i++) {
        c += *c == '|';
        if (n > 0 && strcspn(c, "|") == n && strncasecmp(c, word, n) == 0)
            return i;
    }
    return -1;
}

/* Reads "224", "320:240", "320x240"; an empty side keeps proportions if `follows`. */
static bool read_size(reading *r, char *s, int32_t size[2], bool follows) {
    int64_t side[2] = {0, 0};
    char *second = strpbrk(s, ":x");
    if (second)
        *second++ = 0;
    bool good = (follows && second && !*s) || parse_int(s, 1, 16384, &side[0]);
    good =
        good && (!second || (follows && !*second && *s) || parse_int(second, 1, 16384, &side[1]));
    if (!good)
        return wrong(r, "not a size", "sizes are N or WIDTH:HEIGHT (or WIDTHxHEIGHT), up to 16384");
    size[0] = (int32_t)side[0];
    size[1] = (int32_t)(second || follows ? side[1] : side[0]);
    return true;
}

/* Reads sizes, which replace a preset's. */
static bool read_sizes(reading *r, char *value, int32_t size[2]) {
    preprocess *p = r->p;
    p->fit = FIT_NONE;
    bool resize = size == p->resize;
    if (resize)
        p->shorter = !strpbrk(value, ":x");
    if (resize || size == p->letterbox) /* the last of both wins */
        p->resize[0] = p->resize[1] = p->letterbox[0] = p->letterbox[1] = 0;
    return read_size(r, value, size, resize);
}

static bool read_choice(reading *r, const char *value, const char *choices, int *out) {
    *out = place_of(value, choices);
    return *out >= 0 || wrong(r, "not one of its words", choices);
}

static bool read_fit(reading *r, const char *value) {
    preprocess *p = r->p;
    if (!read_choice(r, value, "crop|stretch|letterbox|text", &p->fit))
        return false;
    p->fit += FIT_CROP;
    p->resize[0] = p->resize[1] = p->crop[0] = p->crop[1] = p->letterbox[0] = p->letterbox[1] = 0;
    return true;
}

static bool read_value(reading *r, const char *key, char *value) {
    preprocess *p = r->p;
    int choice = 0;
    int64_t rate = 0;
    bool good;
    if (strcmp(key, "scale") == 0)
        return read_scale(r, value);
    if (strcmp(key, "mean") == 0)
        return read_list(r, value, p->mean, &p->mean_count);
    if (strcmp(key, "std") == 0)
        return read_std(r, value);
    if (strcmp(key, "fill") == 0)
        return read_list(r, value, p->fill, &p->fill_count);
    if (strcmp(key, "fit") == 0)
        return read_fit(r, value);
    if (strcmp(key, "resize") == 0)
        return read_sizes(r, value, p->resize);
    if (strcmp(key, "crop") == 0)
        return read_sizes(r, value, p->crop);
    if (strcmp(key, "letterbox") == 0)
        return read_sizes(r, value, p->letterbox);
    if (strcmp(key, "pad") == 0)
        return read_sizes(r, value, p->pad);
    if (strcmp(key, "rate") == 0) {
        good = parse_int(value, 1, 1000000, &rate) || wrong(r, "not a rate in Hz", NULL);
        p->rate = (int32_t)rate;
        return good;
    }
    if (strcmp(key, "layout") == 0) {
        good = read_choice(r, value, "nchw|nhwc", &choice);
        p->channels_last = choice == 1;
    } else if (strcmp(key, "channels") == 0) {
        good = read_choice(r, value, "rgb|bgr", &choice);
        p->bgr = choice == 1;
    } else {
        good = read_choice(r, value, "center|corner", &choice);
        p->corner = choice == 1;
    }
    return good;
}

/* The first VALUES keys are for values and their order, the others for pictures and sounds. */
enum { VALUES = 4 };
static const char *const keys[] = {"scale", "mean",   "std",  "layout",    "channels",
                                   "fit",   "resize", "crop", "letterbox", "pad",
                                   "fill",  "place",  "rate", NULL};

#define PART 400 /* room for one: sixteen values, and the name */

static bool read_parts(reading *r, const char *spec, char part[PART], bool first);

/* Reads a preset: a word without "=", which must come first. */
static bool read_word(reading *r, const char *word, char part[PART], bool first) {
    double number;
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(word, presets[i].name) == 0)
            return first ? read_parts(r, presets[i].list, part, false)
                         : wrong(r, "a preset stands first", NULL);
    if (strcmp(word, "bgr") == 0 || strcmp(word, "rgb") == 0)
        return wrong(r, "not a preset", "did you mean channels=bgr or channels=rgb?");
    if (parse_number(word, &number))
        return wrong(r, "not a part",
                     "values of one part have colons between them: mean=0.4:0.5:0.6");
    return wrong(r, "not a preset", "presets are imagenet, tf, caffe, yolox, ppocr and none");
}

static bool read_part(reading *r, char part[PART], bool first) {
    char word[PART];
    memcpy(word, part, sizeof(word));
    char *value = strchr(word, '=');
    if (!value)
        return read_word(r, word, part, first);
    *value = 0;
    for (size_t i = 0; keys[i]; i++)
        if (strcmp(word, keys[i]) == 0) {
            r->p->given = r->p->given || i < VALUES;
            return read_value(r, keys[i], value + 1);
        }
    for (size_t i = 0; i < PRESETS; i++)
        if (strcmp(value + 1, presets[i].name) == 0)
            return wrong(r, "no such part", "a preset stands first, alone: imagenet,resize=256");
    return wrong(r, "no such part",
                 "parts are scale, mean, std, layout, channels, fit, resize, crop, letterbox, pad, "
                 "fill, place, rate; presets imagenet, tf, caffe, yolox, ppocr, none");
}

/* `part` gets the part that was read last; `first`: a preset may begin the list. */
static bool read_parts(reading *r, const char *spec, char part[PART], bool first) {
    for (const char *at = spec; *at; first = false) {
        size_t n = strcspn(at, ",");
        snprintf(part, PART, "%.*s", (int)n, at);
        if (n >= PART)
            return wrong(r, "too long", NULL);
        if (!read_part(r, part, first))
            return false;
        at += n;
        if (*at == ',' && !at[1]) {
            part[0] = 0;
            return wrong(r, "nothing stands after the last comma", NULL);
        }
        at += *at == ',';
    }
    return true;
}

bool preprocess_parse(const tool *t, const char *spec, preprocess *p) {
    char part[PART] = "";
    reading r = {p, NULL, NULL};
    memset(p, 0, sizeof(*p));
    p->multiply = p->divide = p->std[0] = 1;
    p->rate = 16000;
    if (!spec || read_parts(&r, spec, part, true))
        return true;
    text hint = {0};
    text_puts(&hint, r.hint ? r.hint : "");
    (void)tool_usage(t, hint.data, "--preprocess: '%s': %s", part, r.problem);
    text_free(&hint);
    return false;
}

bool preprocess_find(const tool *t, preprocess *p) {
    bool packaged;
    const char *spec = tool_preprocess(t, &packaged);
    bool good = preprocess_parse(t, spec, p);
    p->packaged = packaged;
    return good;
}

bool preprocess_sizes(const preprocess *p) {
    return p->fit || p->resize[0] || p->resize[1] || p->crop[0] || p->letterbox[0] || p->pad[0];
}

/* Divides by 255 if a value over 1 or under -1 shows that they are in units of pixels 0..255. */
static void to_unit(double *values, int count) {
    bool pixels = false;
    for (int i = 0; i < count; i++)
        pixels = pixels || values[i] > 1 || values[i] < -1;
    for (int i = 0; pixels && i < count; i++)
        values[i] /= 255;
}

void preprocess_of_pixels(const preprocess *given, preprocess *out) {
    *out = *given;
    out->given = true;
    if (given->scaled)
        return;
    out->multiply = 1;
    out->divide = 255;
    to_unit(out->mean, out->mean_count);
    to_unit(out->std, out->std_count);
}
