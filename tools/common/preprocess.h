/* SPDX-License-Identifier: MIT */
/*
 * --preprocess LIST: how pictures, sounds and arrays become what a model was trained on. A preset,
 * parts, or a preset and parts that change it, separated by commas; a later part wins.
 *
 *     scale=A[/B]                 y = (x * A/B - mean) / std
 *     mean=M[:M..], std=S[:S..]   for all channels, or one each in the model's order; like scale,
 *                                 each may be a fraction
 *     layout=nchw|nhwc            axes of arrays; pictures take the model's own
 *     channels=rgb|bgr            the order in which the model has a picture's channels
 *     fit=crop|stretch|letterbox|text    sizes from the model's input (below)
 *     resize=, crop=, letterbox=, pad=   sizes: N or W:H, also WxH
 *     fill=V[:V..]                border of letterbox and pad, pixels 0..255 (0)
 *     place=center|corner         place of the picture inside that border
 *     rate=N                      of sounds, in Hz (16000)
 */
#ifndef TOOL_PREPROCESS_H
#define TOOL_PREPROCESS_H

#include "common/tool.h"

#define PREPROCESS_HELP                                                                            \
    "imagenet|tf|caffe|yolox|ppocr|none, scale=A[/B],mean=,std=,layout=,channels=,fit=,resize=,.." \
    "; the manual says more"

/*
 * How the model's input decides sizes: imagenet's resize and crop, its full width and height, the
 * whole picture with a border, a line of text of its height.
 */
enum { FIT_NONE, FIT_CROP, FIT_STRETCH, FIT_LETTERBOX, FIT_TEXT };

typedef struct preprocess {
    bool packaged; /* from a package: for float inputs that are not made up */
    bool given;    /* values or their order change */
    bool scaled;   /* scale= is given: it defines the values of 0 and 255 */
    bool channels_last;
    bool channels_at_end; /* the input is [N,H,W,C] */
    bool bgr;
    double multiply, divide; /* scale = multiply / divide */
    int mean_count, std_count;
    double mean[16], std[16];
    int fit;
    /*
     * Width and height of pictures; {0, 0}: none. In `resize` 0 is the side that keeps proportions,
     * and {N, 0} with `shorter` the shorter side.
     */
    int32_t resize[2], crop[2], letterbox[2], pad[2];
    bool shorter;
    bool corner; /* the border is to the right and below only */
    int fill_count;
    double fill[16];
    int32_t rate;
} preprocess;

/* Parses a list; NULL: no preprocessing. */
bool preprocess_parse(const tool *t, const char *spec, preprocess *p);
/* Parses --preprocess or, without it, the preprocessing of the model's package. */
bool preprocess_find(const tool *t, preprocess *p);
/* Are sizes of pictures given? */
bool preprocess_sizes(const preprocess *p);
/*
 * The same for pixels 0..255: without a scale they become 0..1, and a mean or std with a value over
 * 1 is in units of pixels.
 */
void preprocess_of_pixels(const preprocess *given, preprocess *out);

#endif
