/* SPDX-License-Identifier: MIT */
/* libFuzzer target: bytes as a calibration file, which is merged and asked for every range. */
#include <math.h>
#include <stdlib.h>

#include <qsim/ptq.h>

#include "fuzz.h"

/* The build names an initial file. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    (void)index, (void)buffer, (void)capacity;
    return 0;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    return 0;
}
