/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a calibration file, which is merged and asked for every range. */
#include <math.h>
#include <stdlib.h>

#include <qsim/ptq.h>

#include "fuzz.h"
#include "fuzz_folder.h"

#define MODEL                                                                                      \
    "qsim-calibration 1\n"                                                                         \
    "model 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
#define HEAD MODEL "samples 3\n"
#define ONE                                                                                        \
    HEAD                                                                                           \
        "tensor \"a\" 0x0.000000p+0 0x0.000000p+0 -160 0 1 9\ntensor \"b\" 0x0.000000p+0 0x0.000000p+0 -160 0 1 7\n"

/* Small files, and each that is wrong in one place; the build names a larger initial one. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static const char *const texts[] = {
        ONE
        "means \"b\" 1 4 0 0 # none\nextremes \"b\" 0x0.000000p0 0x0.000000p0 0x0.000000p0 0x1.000000p0\n",
        ONE "means \"b\" 1 32 428bp-14 -110d1p-14 -1c3bp-12 14e7p-14\n",
        ONE "means \"b\" 1 4 0 0\nmeans \"b\" 1 4 0 0\n",
        ONE "means \"b\" -1 4 0\n",
        ONE "means \"b\" 1 0 0\n",
        ONE "means \"b\" 1 4\n",
        ONE "means \"b\" 1 4 x\n",
        ONE "means \"c\" 1 4 0\n",
        ONE "means b 1 4 0\n",
        ONE "extremes \"b\" 0x0.000000p0 0x0.000000p0\n",
        ONE "means \"b\" 1 4 0\nextremes \"b\" 0x0.000000p0\n",
        ONE "means \"b\" 1 4 0\nextremes \"b\" 0x1.000000p0 0x0.000000p0\n",
        ONE
        "means \"b\" 1 4 0\nextremes \"b\" 0x0.000000p0 0x0.000000p0\nextremes \"b\" 0x0.000000p0 0x0.000000p0\n",
        ONE "averages \"b\" 1\n",
        HEAD "tensor \"b\" 0x1.000000p+0 0x0.000000p+0 -160 0 1 7\n",
        HEAD "tensor \"b\" 0x0.000000p+0 0x0.000000p+0 -160 0\n",
        HEAD
        "tensor \"b\" 0x0.000000p+0 0x0.000000p+0 -160 18446744073709551615 1 18446744073709551615\n",
        HEAD "tensor \"b\" 0x0.000000p+0 0x1.000000p+0 -9 0 1 0\n",
        HEAD
        "tensor \"b\" 0x0.000000p+0 0x0.000000p+0 -160 0 1 7\ntensor \"b\" 0x0.000000p+0 0x0.000000p+0 -160 0 1 7\n",
        "qsim-calibration 2\n",
        "qsim-calibration 1 2\n",
        "qsim-calibration 1\nmodel 01\n",
        "qsim-calibration 1\nsamples 3\n",
        MODEL "samples -3\n",
    };
    return fuzz_text_seed(texts, sizeof(texts) / sizeof(*texts), index, buffer, capacity);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    qsim_calibration *c = NULL, *d = NULL;
    if (fuzz_legal(qsim_calibration_load_memory(ctx, data, size, "fuzz", &c, NULL)))
        return;
    if (fuzz_must(heap, !qsim_calibration_load_memory(ctx, data, size, NULL, &d, NULL)))
        (void)fuzz_legal(qsim_calibration_merge(c, d, NULL));
    for (int32_t i = 0; i < qsim_calibration_count(c) && i < 8; i++)
        for (int32_t method = 0; method < 4; method++) {
            float low = NAN, high = NAN;
            /* Every tensor in a file has values. */
            if (!fuzz_must(heap, !qsim_calibration_range(c, qsim_calibration_name(c, i), method, 99,
                                                         QSIM_UINT8, 0, &low, &high)))
                continue;
            if (!(low <= 0 && high >= 0) || !isfinite(low) || !isfinite(high))
                abort();
        }
    qsim_calibration_free(c);
    qsim_calibration_free(d);
}

/* A file gives the same calibration as memory. */
static void load(const uint8_t *data, size_t size) {
    qsim_calibration *a = NULL, *b = NULL;
    fuzz_write(fuzz_file("c"), data, size);
    if (qsim_calibration_load(NULL, fuzz_file("c"), &a, NULL) !=
        qsim_calibration_load_memory(NULL, data, size, "c", &b, NULL))
        abort();
    qsim_calibration_free(a);
    qsim_calibration_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    if (size > 0 && data[size / 2] % 16 == 0)
        load(data, size);
    return 0;
}
