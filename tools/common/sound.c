/* SPDX-License-Identifier: MIT */
/* Sounds through libsndfile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/sample_source.h"

#ifdef TOOL_SNDFILE
#include <sndfile.h>

/* Checks a sound's channels and rate: nothing is mixed or resampled silently. */
static int check(const tool *t, const char *path, const SF_INFO *info, int32_t rate) {
    text hint = {0};
    int code = EXIT_OK;
    text_printf(&hint, "sox %.60s -c 1 -r %d OUT.wav makes one", tool_base_name(path), (int)rate);
    if (info->channels != 1 || info->samplerate != rate) {
        qsim_error e = {.code = QSIM_E_VALUE};
        snprintf(e.message, sizeof(e.message),
                 "a sound of %d channel%s at %d Hz, not of one at %d Hz: qsim does not mix and "
                 "resample",
                 info->channels, info->channels == 1 ? "" : "s", info->samplerate, (int)rate);
        if (info->channels == 1)
            text_printf(&hint, "; --preprocess rate=%d if the model takes that", info->samplerate);
        snprintf(e.hint, sizeof(e.hint), "%s", hint.data);
        code = tool_error(t, path, &e);
    }
    text_free(&hint);
    return code;
}

/* The array's shape: the whole sound, or windows of the input's number of frames. */
static void shape(const tool *t, const slot *s, int64_t frames, qsim_array *a) {
    const int32_t time = slot_sound_axis(s);
    int64_t window = time > 0 && s->dims[0] < 0 ? s->dims[time] : -1;
    bool cut = window > 0 && frames > window;
    if (!cut)
        window = frames;
    *a = (qsim_array){.struct_size = sizeof(*a), .dtype = QSIM_FLOAT, .rank = s->rank};
    for (int32_t i = 0; i < s->rank; i++)
        a->dims[i] = 1;
    a->rank = s->rank < 1 ? 1 : s->rank;
    a->dims[0] = frames / window;
    if (a->rank == 1)
        a->dims[0] = frames;
    else
        a->dims[time] = window;
    a->elements = (size_t)(frames / window * window);
    a->bytes = a->elements * sizeof(float);
    if (frames % window)
        tool_note(t, "a sound's last %lld samples fill no window of %lld",
                  (long long)(frames % window), (long long)window);
}

int sound_source(const tool *t, const char *path, const slot *s, int32_t rate, source *src) {
    const sf_count_t most = (sf_count_t)1 << 30;
    SF_INFO info = {0};
    memset(src, 0, sizeof(*src));
    errno = 0;
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    if (!file && sf_error(NULL) == SF_ERR_SYSTEM && errno)
        return tool_fail(t, QSIM_E_IO, "%s: cannot open: %s", path, strerror(errno));
    if (!file)
        return tool_fail(t, QSIM_E_FORMAT, "%s: not a readable sound: %s", path, sf_strerror(NULL));
    int code = check(t, path, &info, rate);
    if (code == EXIT_OK && (info.frames < 1 || info.frames > most))
        code = tool_fail(t, QSIM_E_FORMAT, "%s: a sound of %lld samples", path,
                         (long long)info.frames);
    if (code) {
        sf_close(file);
        return code;
    }
    float *samples = tool_alloc((size_t)info.frames, sizeof(*samples));
    sf_count_t there = sf_readf_float(file, samples, info.frames);
    sf_close(file);
    src->elements = samples;
    if (there != info.frames)
        return tool_fail(t, QSIM_E_FORMAT, "%s: %lld of its %lld samples can be read", path,
                         (long long)there, (long long)info.frames);
    src->kind = SOURCE_PROTO; /* needs no decoding */
    src->sound = true;
    src->path = path;
    shape(t, s, info.frames, &src->array);
    return EXIT_OK;
}
#else
int sound_source(const tool *t, const char *path, const slot *s, int32_t rate, source *src) {
    (void)rate, (void)s;
    memset(src, 0, sizeof(*src));
    return tool_fail(t, QSIM_E_UNSUPPORTED,
                     "%s: a sound, and this qsim was built without libsndfile (Debian: "
                     "libsndfile1-dev)",
                     path);
}
#endif
