/* SPDX-License-Identifier: MIT */
/*
 * Resizing and cropping. Resizing is Pillow's (Resample.c, bilinear, 8 bits per channel), shorter
 * sides and crops are torchvision's, so that a model gets the numbers that it was trained on.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/image.h"

/* ---- resizing ---- */

enum { PRECISION = 32 - 8 - 2 }; /* fraction bits of a weight: 8 are for a pixel, 2 are spare */

/* Weights of the source pixels for each target pixel of one axis. */
typedef struct filter {
    int32_t *first, *count, *weights; /* `reach` weights per target pixel */
    int32_t reach;
} filter;

static void filter_free(filter *f) {
    free(f->first);
    free(f->count);
    free(f->weights);
}

/* Triangle filter: over the two nearest pixels, or over all that one target pixel covers. */
static filter make_filter(int32_t from, int32_t to) {
    double scale = (double)from / to, support = scale < 1 ? 1 : scale;
    filter f = {.reach = (int32_t)ceil(support) * 2 + 1};
    f.first = tool_alloc((size_t)to, sizeof(*f.first));
    f.count = tool_alloc((size_t)to, sizeof(*f.count));
    f.weights = tool_alloc((size_t)to, (size_t)f.reach * sizeof(*f.weights));
    double *k = tool_alloc((size_t)f.reach, sizeof(*k));
    for (int32_t x = 0; x < to; x++) {
        double center = (x + 0.5) * scale, sum = 0;
        int32_t low = (int32_t)(center - support + 0.5), high = (int32_t)(center + support + 0.5);
        low = low < 0 ? 0 : low;
        high = high > from ? from : high;
        for (int32_t i = low; i < high; i++) {
            double away = fabs((i - center + 0.5) * (1 / support));
            sum += k[i - low] = away < 1 ? 1 - away : 0;
        }
        for (int32_t i = 0; i < high - low; i++)
            f.weights[x * f.reach + i] = (int32_t)(0.5 + k[i] / sum * (1 << PRECISION));
        f.first[x] = low;
        f.count[x] = high - low;
    }
    free(k);
    return f;
}

/* Resamples `lines` lines of one axis from `from` to `to` places of `inner` bytes. */
static void resample(const unsigned char *in, size_t lines, int32_t from, int32_t to, size_t inner,
                     unsigned char *out) {
    filter f = make_filter(from, to);
    for (size_t line = 0; line < lines; line++)
        for (int32_t x = 0; x < to; x++) {
            const unsigned char *row = in + (line * (size_t)from + (size_t)f.first[x]) * inner;
            const int32_t *weights = f.weights + x * f.reach;
            for (size_t c = 0; c < inner; c++) {
                int32_t sum = 1 << (PRECISION - 1);
                for (int32_t k = 0; k < f.count[x]; k++)
                    sum += row[(size_t)k * inner + c] * weights[k];
                sum >>= PRECISION;
                *out++ = (unsigned char)(sum > 255 ? 255 : sum);
            }
        }
    filter_free(&f);
}

bool image_resize(image *im, int32_t width, int32_t height) {
    size_t channels = (size_t)im->channels;
    if (width != im->width) {
        unsigned char *wide = image_alloc(width, im->height, im->channels);
        if (!wide)
            return false;
        resample(im->pixels, (size_t)im->height, im->width, width, channels, wide);
        free(im->pixels);
        im->pixels = wide;
        im->width = width;
    }
    if (height != im->height) {
        unsigned char *high = image_alloc(width, height, im->channels);
        if (!high)
            return false;
        resample(im->pixels, 1, im->height, height, (size_t)width * channels, high);
        free(im->pixels);
        im->pixels = high;
        im->height = height;
    }
    return true;
}

/* ---- cutting and bordering ---- */

/* Half of a difference, rounded half to even. */
static int32_t middle(int32_t difference) {
    int32_t half = difference / 2;
    return half + (difference % 2 && half % 2);
}

static void cut(image *im, int32_t width, int32_t height) {
    size_t row = (size_t)width * (size_t)im->channels;
    size_t left = (size_t)middle(im->width - width), top = (size_t)middle(im->height - height);
    for (size_t y = 0; y < (size_t)height; y++)
        memmove(im->pixels + y * row,
                im->pixels + ((top + y) * (size_t)im->width + left) * (size_t)im->channels, row);
    im->width = width;
    im->height = height;
}

static void border(const preprocess *how, image *im, int32_t width, int32_t height) {
    size_t channels = (size_t)im->channels, n = (size_t)width * (size_t)height;
    unsigned char *to = tool_alloc(n * channels, 1);
    size_t left = how->corner ? 0 : (size_t)(width - im->width) / 2;
    size_t top = how->corner ? 0 : (size_t)(height - im->height) / 2;
    for (size_t i = 0; i < n * channels; i++)
        to[i] = (unsigned char)how->fill[how->fill_count > 1 ? i % channels : 0];
    for (size_t y = 0; y < (size_t)im->height; y++)
        memcpy(to + ((top + y) * (size_t)width + left) * channels,
               im->pixels + y * (size_t)im->width * channels, (size_t)im->width * channels);
    free(im->pixels);
    *im = (image){to, width, height, im->channels};
}

/* The largest size with the picture's proportions inside `limit`. */
static void inside(const image *im, const int32_t limit[2], int32_t size[2]) {
    int64_t w = im->width, h = im->height;
    bool high = w * limit[1] < h * limit[0];
    int64_t width = high ? w * limit[1] / h : limit[0];
    int64_t height = high ? limit[1] : h * limit[0] / w;
    size[0] = (int32_t)(width < 1 ? 1 : width);
    size[1] = (int32_t)(height < 1 ? 1 : height);
}

/* ---- sizes ---- */

static int32_t clamp_side(int64_t side) {
    return side < 1 ? 1 : side > 16384 ? 16384 : (int32_t)side;
}

/* The size that resize= means for this picture. */
static void resized(const preprocess *how, const image *im, int32_t size[2]) {
    int64_t w = im->width, h = im->height, side = how->resize[0];
    memcpy(size, how->resize, 2 * sizeof(*size));
    if (how->shorter) {
        size[0] = clamp_side(w <= h ? side : side * w / h);
        size[1] = clamp_side(w <= h ? side * h / w : side);
    } else if (!size[1])
        size[1] = clamp_side((size[0] * h + w / 2) / w);
    else if (!size[0])
        size[0] = clamp_side((size[1] * w + h / 2) / h);
}

static int32_t round_to_32(double side) {
    int32_t rounded = (int32_t)(nearbyint(side / 32) * 32);
    return rounded < 32 ? 32 : rounded;
}

/*
 * A line of text is resized to the model's height, and padded to its width; a page of any size is
 * resized to sides of a multiple of 32, up to 960.
 */
static void plan_text(preprocess *how, const int32_t wanted[2], const image *im) {
    int32_t longer = im->width > im->height ? im->width : im->height;
    double ratio = longer > 960 ? 960.0 / longer : 1;
    how->resize[0] = 0;
    how->resize[1] = wanted[1];
    if (wanted[1] < 0) {
        how->resize[0] = round_to_32(im->width * ratio);
        how->resize[1] = round_to_32(im->height * ratio);
    } else if (wanted[0] > 0) {
        int64_t width = (int64_t)im->width * wanted[1] / im->height;
        how->resize[0] = clamp_side(width < wanted[0] ? width : wanted[0]);
        how->pad[0] = wanted[0];
        how->pad[1] = wanted[1];
        how->corner = true;
    }
}

/* Translates fit= to sizes. */
static int plan(const tool *t, const char *path, const int32_t wanted[2], const image *im,
                preprocess *how) {
    static const char *const names[] = {"", "crop", "stretch", "letterbox", "text"};
    bool any = wanted[0] < 0 || wanted[1] < 0;
    int32_t *sizes = how->fit == FIT_STRETCH ? how->resize : how->letterbox;
    if (how->fit == FIT_NONE)
        return EXIT_OK;
    if (how->fit == FIT_TEXT) {
        plan_text(how, wanted, im);
    } else if (how->fit == FIT_CROP) {
        how->crop[0] = any ? 224 : wanted[0];
        how->crop[1] = any ? 224 : wanted[1];
        int32_t side = how->crop[0] > how->crop[1] ? how->crop[0] : how->crop[1];
        how->resize[0] = (side * 256 + 112) / 224;
        how->shorter = true;
    } else if (any) {
        text hint = {0};
        text_printf(&hint, "sizes in the place of fit=%s: %s=WIDTH:HEIGHT", names[how->fit],
                    how->fit == FIT_STRETCH ? "resize" : "letterbox");
        int code =
            tool_usage(t, hint.data, "%s: the model takes any size, fit=%s has none to go by", path,
                       names[how->fit]);
        text_free(&hint);
        return code;
    } else
        memcpy(sizes, wanted, 2 * sizeof(*sizes));
    return EXIT_OK;
}

static int too_small(const tool *t, const char *path, const image *im, const char *part,
                     const int32_t size[2]) {
    return tool_fail(t, QSIM_E_SHAPE, "%s: %d x %d, too %s for %s=%d:%d", path, im->width,
                     im->height, part[0] == 'c' ? "small" : "large", part, size[0], size[1]);
}

int image_fit(const tool *t, const char *path, const preprocess *given, const int32_t wanted[2],
              image *im) {
    preprocess how = *given;
    int32_t size[2] = {0, 0};
    int code = plan(t, path, wanted, im, &how);
    if (code)
        return code;
    bool boxed = how.letterbox[0] > 0;
    if (boxed)
        inside(im, how.letterbox, size);
    else if (how.resize[0] || how.resize[1])
        resized(&how, im, size);
    if (size[0] && !image_resize(im, size[0], size[1]))
        return tool_fail(t, QSIM_E_LIMIT, "%s: cannot be made %d x %d", path, size[0], size[1]);
    if (boxed)
        border(&how, im, how.letterbox[0], how.letterbox[1]);
    if (how.crop[0] && (how.crop[0] > im->width || how.crop[1] > im->height))
        return too_small(t, path, im, "crop", how.crop);
    if (how.crop[0])
        cut(im, how.crop[0], how.crop[1]);
    if (how.pad[0] && (how.pad[0] < im->width || how.pad[1] < im->height))
        return too_small(t, path, im, "pad", how.pad);
    if (how.pad[0])
        border(&how, im, how.pad[0], how.pad[1]);
    return EXIT_OK;
}
