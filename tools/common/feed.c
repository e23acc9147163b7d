/* SPDX-License-Identifier: MIT */
#include "common/feed.h"

#include <stdlib.h>
#include <string.h>

const char *shape_text(const int64_t *dims, int32_t rank, char buffer[256]) {
    size_t n = 1;
    buffer[0] = '[';
    for (int32_t i = 0; i < rank && n < 230; i++)
        n += (size_t)(dims[i] < 0 ? snprintf(buffer + n, 256 - n, "%s?", i ? "," : "")
                                  : snprintf(buffer + n, 256 - n, "%s%lld", i ? "," : "",
                                             (long long)dims[i]));
    memcpy(buffer + n, "]", 2);
    return buffer;
}

static bool fits(int64_t wanted, int64_t there) {
    return wanted < 0 || wanted == there;
}

/* Do these sizes fit the slot? With `samples` the first size is free. */
static bool shape_fits(const slot *s, const int64_t *dims, int32_t rank, bool samples) {
    if (rank != s->rank)
        return false;
    for (int32_t i = 0; i < rank; i++)
        if (!fits(s->dims[i], dims[i]) && !(samples && i == 0))
            return false;
    return true;
}

/* The array's sizes in the model's order of axes. */
static void source_dims(const feed *f, int64_t dims[QSIM_MAX_RANK]) {
    int32_t rank = f->source->array.rank;
    memcpy(dims, f->source->array.dims, sizeof(f->source->array.dims));
    if (!f->how.channels_last || rank < 3)
        return;
    int64_t channels = dims[rank - 1];
    for (int32_t i = rank - 1; i > 1; i--)
        dims[i] = dims[i - 1];
    dims[1] = channels;
}

static void insert_one(int64_t *dims, int32_t rank, int32_t at) {
    for (int32_t i = rank < QSIM_MAX_RANK ? rank : QSIM_MAX_RANK - 1; i > at; i--)
        dims[i] = dims[i - 1];
    dims[at] = 1;
}

/* Plans the rows of a table as samples of any rank with the same number of elements. */
static bool plan_table(feed *f, bool samples) {
    int64_t n = 1;
    int32_t free_axis = -1;
    const int64_t *there = f->source->array.dims;
    if (f->slot.rank < 1)
        return false;
    for (int32_t i = 1; i < f->slot.rank; i++) {
        f->dims[i] = f->slot.dims[i];
        if (f->dims[i] < 0 && free_axis >= 0)
            return false;
        if (f->dims[i] < 0)
            free_axis = i;
        else
            n *= f->dims[i];
    }
    if (free_axis >= 0 && n > 0) {
        f->dims[free_axis] = there[1] / n;
        n *= f->dims[free_axis];
    }
    f->dims[0] = there[0];
    f->first = 1;
    return n == there[1] && (samples || fits(f->slot.dims[0], there[0]));
}

/* Finds the tensor's shape: as it is, with a channel axis, or with a batch axis. */
static bool plan_shape(feed *f, bool samples) {
    int64_t dims[QSIM_MAX_RANK];
    int32_t rank = f->source->array.rank;
    if (f->source->table && plan_table(f, samples))
        return true;
    f->first = rank > 0;
    source_dims(f, dims);
    if (!shape_fits(&f->slot, dims, rank, samples)) {
        if (rank + 1 != f->slot.rank)
            return false;
        insert_one(dims, rank, 1);
        if (rank < 1 || !shape_fits(&f->slot, dims, rank + 1, samples)) {
            /* No channel axis fits: the array is one sample without a batch axis. */
            source_dims(f, dims);
            insert_one(dims, rank, 0);
            f->first = 0;
            if (samples || !shape_fits(&f->slot, dims, rank + 1, false))
                return false;
        }
    }
    memcpy(f->dims, dims, sizeof(dims));
    return true;
}

static bool plan_type(feed *f) {
    int32_t from = f->source->array.dtype, to = f->slot.dtype;
    /* What gives floats gives integers by their scale; other integers are given as they are. */
    f->quantizes = f->slot.scale > 0 && (is_float(from) || f->how.given);
    const bool floats = is_float(to) || f->quantizes;
    f->copies = from == to && !f->how.given;
    f->pixels = f->source->idx && from == QSIM_UINT8 && floats && !f->how.given;
    if (f->copies || f->pixels)
        return true;
    /* With only a mean, integers are not taken for pixels. */
    if (f->how.given &&
        (f->how.scaled || f->source->picture || f->source->idx || from != QSIM_UINT8))
        return floats;
    /* Float inputs take floats, integer inputs integers: numbers are not taken for pixels. */
    return floats == is_float(from) && !f->how.given;
}

/* Refuses parts of --preprocess that need a picture; a package's parts are for its pictures. */
static int check_parts(const tool *t, const feed *f) {
    const preprocess *how = &f->how;
    if (f->source->picture || how->packaged)
        return EXIT_OK;
    if (preprocess_sizes(how) || how->bgr)
        return tool_usage(t, "mean=, std=, scale= and layout= are for arrays, too",
                          "%s: no picture, --preprocess %s needs one", f->source->path,
                          how->bgr ? "channels=bgr" : "fit=, resize=, crop=, letterbox= or pad=");
    return EXIT_OK;
}

/* Whether labels seem to be given in place of samples: a whole number each. Writes a hint. */
static bool are_labels(const feed *f, bool samples, qsim_error *e) {
    const int32_t dtype = f->source->array.dtype;
    if (!samples || f->source->picture || f->source->array.rank != 1 || f->slot.rank < 2 ||
        dtype == QSIM_FLOAT || dtype == QSIM_DOUBLE)
        return false;
    snprintf(e->hint, sizeof(e->hint), "numbers alone are labels: --data SAMPLES,LABELS");
    return true;
}

static int refuse_type(const tool *t, const feed *f, bool samples) {
    qsim_error e = {.code = QSIM_E_DTYPE};
    snprintf(e.message, sizeof(e.message), "%s data for input '%.100s', which is %s%s",
             qsim_dtype_name(f->source->array.dtype), f->slot.name, qsim_dtype_name(f->slot.dtype),
             f->how.given ? ", and --preprocess without scale=" : "");
    if (!are_labels(f, samples, &e) && is_float(f->slot.dtype))
        snprintf(e.hint, sizeof(e.hint),
                 "--preprocess scale=1/255 makes floats from 0 to 1 of pixels, scale=1 keeps 0 to "
                 "255");
    else if (f->source->picture || f->source->array.dtype == QSIM_FLOAT)
        snprintf(e.hint, sizeof(e.hint),
                 "samples of several inputs are an .npz with their names, or folders "
                 "test_data_set_N as ONNX has them");
    return tool_error(t, f->source->path, &e);
}

/* The elements of one sample; -1: any number. */
static int64_t elements_of(const slot *s) {
    int64_t n = 1;
    for (int32_t i = 1; i < s->rank; i++) {
        if (s->dims[i] < 0)
            return -1;
        n *= s->dims[i];
    }
    return n;
}

/* How a sound gets the model's length. */
static void hint_at_length(const feed *f, qsim_error *e) {
    const slot *s = &f->slot;
    const qsim_array *a = &f->source->array;
    const char *name = tool_base_name(f->source->path);
    const int64_t there = (int64_t)a->elements,
                  wanted = s->rank > 0 ? s->dims[slot_sound_axis(s)] : -1;
    for (int32_t i = 1; i < s->rank; i++)
        if (s->dims[i] > 1 && i != slot_sound_axis(s))
            snprintf(e->hint, sizeof(e->hint),
                     "the model takes no samples of a sound, but what is computed of them: give "
                     "that as .npy");
    if (e->hint[0] || wanted < 1)
        return;
    if (there > wanted)
        snprintf(e->hint, sizeof(e->hint),
                 "sox %.60s OUT.wav trim 0 %llds : newfile : restart cuts it into sounds of %lld "
                 "samples",
                 name, (long long)wanted, (long long)wanted);
    else
        snprintf(e->hint, sizeof(e->hint), "sox %.60s OUT.wav pad 0 %llds adds silence", name,
                 (long long)(wanted - there));
}

static int refuse_shape(const tool *t, feed *f, bool samples) {
    char there[256], wanted[256];
    const qsim_array *a = &f->source->array;
    qsim_error e = {.code = QSIM_E_SHAPE};
    snprintf(e.message, sizeof(e.message), "shape %s does not fit input '%.100s', which is %s",
             shape_text(a->dims, a->rank, there), f->slot.name,
             shape_text(f->slot.dims, f->slot.rank, wanted));
    const int64_t *dims = f->slot.dims + (f->how.channels_at_end ? 1 : 2);
    f->how.channels_last = !f->how.channels_last;
    if (f->source->picture && f->slot.rank == 4 && dims[0] > 0 && dims[1] > 0)
        snprintf(e.hint, sizeof(e.hint),
                 "--preprocess fit=crop, as imagenet does, or fit=stretch or fit=letterbox makes "
                 "the model's %lldx%lld (width x height)",
                 (long long)dims[1], (long long)dims[0]);
    else if (f->source->sound)
        hint_at_length(f, &e);
    else if (f->source->table && elements_of(&f->slot) + 1 == a->dims[1])
        snprintf(e.hint, sizeof(e.hint),
                 "each row has one number more: an index (pandas: to_csv(..., index=False)), or a "
                 "label, which belongs into a second file: X.csv,Y.csv");
    else if (!are_labels(f, samples, &e) && !f->source->picture && plan_shape(f, samples))
        snprintf(e.hint, sizeof(e.hint), "%s",
                 f->how.channels_last ? "--preprocess layout=nhwc takes channels from the last axis"
                                      : "without layout=nhwc it fits");
    return tool_error(t, f->source->path, &e);
}

int feed_plan(const tool *t, feed *f, const slot *s, source *src, const preprocess *how,
              bool samples) {
    static const preprocess nothing = {.multiply = 1, .divide = 1, .std = {1}};
    memset(f, 0, sizeof(*f));
    f->slot = *s;
    f->source = src;
    bool spared = how->packaged && (!slot_is_real(s) || src->kind == SOURCE_RANDOM);
    f->how = spared ? nothing : *how;
    if (src->idx && src->array.dtype == QSIM_UINT8 && f->how.given)
        preprocess_of_pixels(&f->how, &f->how);
    how = &f->how;
    int code = check_parts(t, f);
    if (code == EXIT_OK && src->table && is_float(src->array.dtype) && !slot_is_real(s))
        code = source_table_as(t, src, s);
    if (code)
        return code;
    if (!plan_type(f))
        return refuse_type(t, f, samples);
    if (!plan_shape(f, samples))
        return refuse_shape(t, f, samples);
    f->sample = 1;
    for (int32_t i = f->first ? 1 : 0; i < s->rank; i++)
        f->sample *= (size_t)f->dims[i];
    int32_t channels = (int32_t)feed_channels(f);
    if ((how->mean_count > 1 && how->mean_count != channels) ||
        (how->std_count > 1 && how->std_count != channels))
        return tool_usage(t, NULL, "--preprocess has %d values for input '%.100s' of %d channel%s",
                          how->mean_count > how->std_count ? how->mean_count : how->std_count,
                          s->name, channels, channels == 1 ? "" : "s");
    return EXIT_OK;
}

int64_t feed_positions(const feed *f) {
    return f->first ? f->source->array.dims[0] : 1;
}

static int read_raw(const tool *t, feed *f, int64_t first, int64_t count, size_t *elements) {
    *elements = f->sample * (size_t)count;
    size_t bits = (size_t)qsim_dtype_bits(f->source->array.dtype);
    f->raw = feed_reserve(f->raw, &f->raw_capacity, (*elements * bits + 7) / 8);
    if (!f->first) {
        first = 0;
        count = f->source->array.rank > 0 ? f->source->array.dims[0] : 1;
    }
    return source_read(t, f->source, first, count, f->raw, f->raw_capacity);
}

/* Elements that were read, in the input's type. */
static int give(const tool *t, feed *f, size_t elements, const int64_t *dims, qsim_tensor *out) {
    const int code = f->copies ? EXIT_OK : feed_convert(t, f, elements);
    *out = (qsim_tensor){f->slot.dtype, f->slot.rank, dims, f->copies ? f->raw : f->data,
                         (elements * (size_t)qsim_dtype_bits(f->slot.dtype) + 7) / 8};
    return code;
}

int feed_read(const tool *t, feed *f, int64_t first, int64_t count, qsim_tensor *out) {
    size_t elements;
    int code = read_raw(t, f, first, count, &elements);
    if (f->first)
        f->dims[0] = count;
    return code ? code : give(t, f, elements, f->dims, out);
}

int feed_read_as(const tool *t, const feed *f, const slot *s, feed *as, qsim_tensor *out) {
    const feed kept = *as;
    *as = *f;
    as->data = kept.data;
    as->data_capacity = kept.data_capacity;
    as->slot = *s;
    const int code =
        !plan_type(as) ? refuse_type(t, as, f->first > 0)
                       : give(t, as, f->sample * (size_t)(f->first ? f->dims[0] : 1), f->dims, out);
    as->raw = NULL; /* it is that of `f` */
    return code;
}

void feed_close(feed *f) {
    free(f->raw);
    free(f->data);
    memset(f, 0, sizeof(*f));
}
