/* SPDX-License-Identifier: MIT */
/* The elements of a feed: from the source's type and order to the input's. */
#include <stdlib.h>
#include <string.h>

#include "common/feed.h"

int64_t feed_channels(const feed *f) {
    int32_t rank = f->slot.rank;
    return rank < 2 ? 1 : f->dims[f->how.channels_at_end ? rank - 1 : 1];
}

void *feed_reserve(void *p, size_t *capacity, size_t bytes) {
    if (bytes <= *capacity && p)
        return p;
    free(p);
    *capacity = bytes;
    return tool_alloc(bytes, 1);
}

/* The place of element i of a channels-last array in a channels-first one. */
static size_t channels_first(size_t i, size_t channels, size_t plane) {
    size_t image = i / (channels * plane), rest = i % (channels * plane);
    return (image * channels + rest % channels) * plane + rest / channels;
}

static void apply(const feed *f, const float *in, size_t elements, float *out) {
    const preprocess *p = &f->how;
    size_t channels = (size_t)feed_channels(f), plane = 1;
    for (int32_t i = 2; i < f->slot.rank && !p->channels_at_end; i++)
        plane *= (size_t)f->dims[i];
    for (size_t i = 0; i < elements; i++) {
        size_t at = p->channels_last ? channels_first(i, channels, plane) : i;
        size_t c = at / plane % channels;
        double mean = p->mean[p->mean_count > 1 ? c : 0], std = p->std[p->std_count > 1 ? c : 0];
        out[at] = (float)(((double)in[i] * p->multiply / p->divide - mean) / std);
    }
}

/* The elements as floats, pixels from 0 to 1, preprocessed. */
static int make_floats(const tool *t, const feed *f, int64_t n, float *out) {
    const size_t bytes = (size_t)n * sizeof(float);
    qsim_error e;
    if (f->pixels) {
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)((const unsigned char *)f->raw)[i] / 255.0f;
        return EXIT_OK;
    }
    float *plain = f->how.given ? tool_alloc((size_t)n, sizeof(float)) : out;
    const qsim_tensor from = {f->source->array.dtype, 1, &n, f->raw, f->raw_capacity};
    const qsim_tensor to = {QSIM_FLOAT, 1, &n, plain, bytes};
    int code = qsim_tensor_convert(&from, &to, &e) ? tool_error(t, f->source->path, &e) : EXIT_OK;
    if (f->how.given && code == EXIT_OK)
        apply(f, plain, (size_t)n, out);
    if (f->how.given)
        free(plain);
    return code;
}

/* As the QuantizeLinear that the model leaves to its caller. */
static int quantize(const tool *t, const feed *f, const float *floats, size_t elements) {
    const slot *s = &f->slot;
    const int code = qsim_values_quantize(floats, elements, (float)s->scale, (int32_t)s->zero_point,
                                          s->dtype, f->data);
    return code ? tool_fail(t, code, "%s: cannot be quantized for input '%.100s': %s",
                            f->source->path, s->name, qsim_error_text(code))
                : EXIT_OK;
}

int feed_convert(const tool *t, feed *f, size_t elements) {
    const int32_t dtype = f->slot.dtype;
    const int64_t n = (int64_t)elements;
    qsim_error e;
    f->data = feed_reserve(f->data, &f->data_capacity,
                           (elements * (size_t)qsim_dtype_bits(dtype) + 7) / 8);
    if (dtype == QSIM_FLOAT)
        return make_floats(t, f, n, f->data);
    qsim_tensor from = {f->source->array.dtype, 1, &n, f->raw, f->raw_capacity};
    const qsim_tensor to = {dtype, 1, &n, f->data, f->data_capacity};
    if (!f->how.given && !f->pixels && !f->quantizes)
        return qsim_tensor_convert(&from, &to, &e) ? tool_error(t, f->source->path, &e) : EXIT_OK;
    float *floats = tool_alloc(elements, sizeof(*floats));
    int code = make_floats(t, f, n, floats);
    from = (qsim_tensor){QSIM_FLOAT, 1, &n, floats, elements * sizeof(*floats)};
    if (code == EXIT_OK && f->quantizes)
        code = quantize(t, f, floats, elements);
    else if (code == EXIT_OK && qsim_tensor_convert(&from, &to, &e))
        code = tool_error(t, f->source->path, &e);
    free(floats);
    return code;
}
