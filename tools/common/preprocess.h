/* SPDX-License-Identifier: MIT */
/*
 * --preprocess LIST: how pictures, sounds and arrays become what a model was trained on. A preset,
 * parts, or a preset and parts that change it, separated by commas; a later part wins.
 *
 *     scale=A[/B]             y = (x * A/B - mean) / std
 *     mean=M[:M..], std=S[:S..]   for all channels or one for each, in the model's order of
 * channels layout=nchw|nhwc        of arrays; pictures take the model's own channels=rgb|bgr the
 * order in which the model has a picture's channels fit=crop|stretch|letterbox|text   the model's
 * own size (below) resize=N | W:H, crop=N | W:H, letterbox=N | W:H, pad=N | W:H   sizes; x for :
 * will do fill=V[:V..], place=center|corner   of letterbox and pad: pixels 0..255 of the border (0)
 *     rate=N                  of sounds, in Hz (16000)
 */
#ifndef TOOL_PREPROCESS_H
#define TOOL_PREPROCESS_H

#include "common/tool.h"

#define PREPROCESS_HELP                                                                            \
    "imagenet|tf|caffe|yolox|ppocr|none, scale=A[/B],mean=,std=,layout=,channels=,fit=,resize=,.." \
    "; the manual says more"

/* Sizes that the model's input decides: imagenet's resize and crop, all of its width and height,
 * the whole picture with a border, a line of text of its height. */
enum { FIT_NONE, FIT_CROP, FIT_STRETCH, FIT_LETTERBOX, FIT_TEXT };

typedef struct preprocess {
    bool packaged; /* a package says so: for float inputs that are not made up */
    bool given;    /* something is to be done with values or their order */
    bool scaled;   /* scale= says what 0 and 255 become */
    bool channels_last;
    bool channels_at_end; /* the input itself is [N,H,W,C] */
    bool bgr;
    double multiply, divide; /* scale = multiply / divide */
    int mean_count, std_count;
    double mean[16], std[16];
    int fit;
    /* Width and height of pictures; {N, 0}: the shorter side, where `resize` (0 is the one that
     * follows), {0, 0}: none. */
    int32_t resize[2], crop[2], letterbox[2], pad[2];
    bool shorter;
    bool corner; /* the border lies to the right and below only */
    int fill_count;
    double fill[16];
    int32_t rate;
} preprocess;

/* Parses a list; NULL: nothing is to be done. */
bool preprocess_parse(const tool *t, const char *spec, preprocess *p);
/* The settings of the command line or, without any, of the model's package. */
bool preprocess_find(const tool *t, preprocess *p);
/* Whether sizes of pictures are asked for. */
bool preprocess_sizes(const preprocess *p);
/*
 * The same for pixels 0..255: they become 0..1 where no scale is given, and a mean or std with a
 * value above 1 is then one of pixels 0..255.
 */
void preprocess_of_pixels(const preprocess *given, preprocess *out);

#endif
