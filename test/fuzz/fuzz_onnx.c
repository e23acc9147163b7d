/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer target: bytes as a model and as a tensor file. A model that loads is inspected,
 * checked, upgraded and saved; the saved file must load again.
 */
#include <stdlib.h>

#include <qsim/data.h>
#include <qsim/model.h>

#include "fuzz.h"
#include "fuzz_folder.h"
#include "model_seeds.h"

static void read_bytes(const void *bytes, size_t size) {
    static volatile uint8_t sink;
    for (size_t i = 0; bytes && i < size; i++)
        sink = (uint8_t)(sink ^ ((const uint8_t *)bytes)[i]);
}

/* Reads every attribute of a node to its end. */
static void look_at_attributes(const qsim_model *m, int32_t node) {
    qsim_attr_info a = {.struct_size = sizeof(a)};
    for (int32_t i = 0; qsim_model_attr(m, node, i, &a) == QSIM_OK; i++) {
        read_bytes(a.ints, (size_t)a.count * sizeof(*a.ints));
        read_bytes(a.floats, (size_t)a.count * sizeof(*a.floats));
        for (int32_t k = 0; a.strings && k < a.count; k++)
            read_bytes(a.strings[k].data, a.strings[k].size);
        read_bytes(a.tensor.data, a.tensor.bytes);
    }
}

static void look(const qsim_model *m) {
    qsim_value_info value = {.struct_size = sizeof(value)};
    qsim_node_info node = {.struct_size = sizeof(node)};
    char hash[65];
    for (int32_t i = 0; i < qsim_model_value_count(m); i++)
        qsim_model_value(m, i, &value);
    for (int32_t i = 0; i < qsim_model_node_count(m); i++) {
        qsim_model_node(m, i, &node);
        look_at_attributes(m, i);
    }
    qsim_model_parameters(m);
    qsim_model_hash(m, hash);
    qsim_model_check(m, NULL, NULL);
}

/* Saves a model derived from the loaded one, which is written field by field. */
static void rewrite(qsim_ctx *ctx, const fuzz_heap *heap, const qsim_model *m) {
    qsim_model *made = NULL, *again = NULL;
    size_t need = 0;
    if (qsim_model_upgrade(m, 21, &made, NULL))
        return;
    look(made);
    if (qsim_model_save_memory(made, NULL, 0, &need, NULL) == QSIM_OK && need < 1u << 24) {
        uint8_t *bytes = malloc(need);
        if (bytes && qsim_model_save_memory(made, bytes, need, &need, NULL) == QSIM_OK)
            fuzz_must(heap,
                      qsim_model_load_memory(ctx, bytes, need, NULL, &again, NULL) == QSIM_OK);
        qsim_model_free(again);
        free(bytes);
    }
    qsim_model_free(made);
}

/* The same by files: loaded from one, saved into two, one of which replaces an old one. */
static void files(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    const qsim_save_options o = {.struct_size = sizeof(o),
                                 .flags = QSIM_SAVE_REPLACE | QSIM_SAVE_EXTERNAL};
    qsim_model *m = NULL, *made = NULL, *again = NULL;
    fuzz_write(fuzz_file("in.onnx"), data, size);
    if (fuzz_legal(qsim_model_load(ctx, fuzz_file("in.onnx"), NULL, &m, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_model_upgrade(m, 21, &made, NULL)) == QSIM_OK &&
        fuzz_legal(qsim_model_save(made, fuzz_file("out.onnx"), &o, NULL)) == QSIM_OK) {
        fuzz_must(heap, qsim_model_load(ctx, fuzz_file("out.onnx"), NULL, &again, NULL) == QSIM_OK);
        if (qsim_model_save(made, fuzz_file("out.onnx"), NULL, NULL) == QSIM_OK)
            abort(); /* it exists */
        fuzz_legal(qsim_model_save(m, fuzz_file("same.onnx"), &o, NULL));
        (void)qsim_model_bytes(m);
    }
    qsim_model_free(again);
    qsim_model_free(made);
    qsim_model_free(m);
}

static void attempt(qsim_ctx *ctx, const fuzz_heap *heap, const uint8_t *data, size_t size) {
    static const int32_t flags[] = {0, QSIM_LOAD_INSPECT, QSIM_LOAD_CHECK};
    for (int i = 0; i < 3; i++) {
        qsim_load_options o = {.struct_size = sizeof(o), .flags = flags[i]};
        qsim_model *m = NULL;
        if (fuzz_legal(qsim_model_load_memory(ctx, data, size, &o, &m, NULL)))
            continue;
        look(m);
        if (!flags[i])
            rewrite(ctx, heap, m);
        qsim_model_free(m);
    }
    if (size > 0 && data[size / 2] % 8 == 0)
        files(ctx, heap, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_run(attempt, data, size);
    qsim_array a = {.struct_size = sizeof(a)};
    if (qsim_proto_parse(data, size, &a, NULL) == QSIM_OK && a.bytes < 1u << 24) {
        uint8_t *out = malloc(a.bytes + 1);
        qsim_proto_read(data, size, out, a.bytes, NULL);
        free(out);
    }
    return 0;
}

/* Small ones first: their mutations take least. */
size_t fuzz_seed(size_t index, uint8_t *buffer, size_t capacity) {
    static size_t odd = SIZE_MAX; /* how many there are */
    if (index < odd) {
        const size_t size = fuzz_odd_bytes(index, buffer, capacity);
        if (size > 0)
            return size;
        odd = index;
    }
    return fuzz_model_bytes(index - odd, buffer, capacity);
}
