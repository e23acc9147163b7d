/* SPDX-License-Identifier: MIT */
/* --preprocess: "scale=1/255,mean=0.485:0.456:0.406,std=0.229:0.224:0.225,layout=nhwc". */
#include <string.h>

#include "common/feed.h"

static bool parse_list(char *s, double *values, int *count) {
    for (*count = 0; s && *count < 16; (*count)++) {
        char *colon = strchr(s, ':');
        if (colon)
            *colon++ = 0;
        if (!parse_number(s, &values[*count]))
            return false;
        s = colon;
    }
    return !s;
}

static bool parse_scale(char *s, preprocess *p) {
    char *slash = strchr(s, '/');
    if (slash)
        *slash++ = 0;
    return parse_number(s, &p->multiply) && (!slash || parse_number(slash, &p->divide)) &&
           p->divide != 0;
}

/* "224" or "320:240"; one number stands for both sides where `square`. */
static bool parse_size(char *s, int32_t size[2], bool square) {
    int64_t width, height = 0;
    char *colon = strchr(s, ':');
    if (colon)
        *colon++ = 0;
    if (!parse_int(s, 1, 16384, &width) || (colon && !parse_int(colon, 1, 16384, &height)))
        return false;
    size[0] = (int32_t)width;
    size[1] = (int32_t)(colon || !square ? height : width);
    return true;
}

static bool parse_part(char *part, preprocess *p) {
    char *value = strchr(part, '=');
    if (!value)
        return false;
    *value++ = 0;
    if (strcmp(part, "scale") == 0)
        return parse_scale(value, p);
    if (strcmp(part, "resize") == 0)
        return parse_size(value, p->resize, false);
    if (strcmp(part, "crop") == 0)
        return parse_size(value, p->crop, true);
    if (strcmp(part, "mean") == 0)
        return parse_list(value, p->mean, &p->mean_count);
    if (strcmp(part, "layout") == 0) {
        p->channels_last = strcmp(value, "nhwc") == 0;
        return p->channels_last || strcmp(value, "nchw") == 0;
    }
    if (strcmp(part, "std") != 0 || !parse_list(value, p->std, &p->std_count))
        return false;
    for (int i = 0; i < p->std_count; i++)
        if (p->std[i] == 0)
            return false;
    return true;
}

bool preprocess_parse(const tool *t, const char *spec, preprocess *p) {
    memset(p, 0, sizeof(*p));
    p->multiply = p->divide = p->std[0] = 1;
    if (!spec)
        return true;
    p->given = true;
    char copy[1024];
    bool good = strlen(spec) < sizeof(copy);
    if (good)
        memcpy(copy, spec, strlen(spec) + 1);
    for (char *part = copy, *comma; good && part; part = comma) {
        comma = strchr(part, ',');
        if (comma)
            *comma++ = 0;
        good = parse_part(part, p);
    }
    if (!good)
        tool_usage(t, "for instance --preprocess scale=1/255,mean=0.485:0.456:0.406,std=0.229",
                   "--preprocess '%s' is not a list of scale=, mean=, std=, layout=nchw|nhwc, "
                   "resize=, crop=",
                   spec);
    return good;
}

bool preprocess_find(const tool *t, preprocess *p) {
    bool packaged;
    const char *spec = tool_preprocess(t, &packaged);
    bool good = preprocess_parse(t, spec, p);
    p->packaged = packaged;
    return good;
}
