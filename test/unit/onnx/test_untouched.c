/* SPDX-License-Identifier: MIT */
/*
 * Parts that a transformation does not change are written as they were read: descriptions,
 * denotations and unknown fields of values, nodes, tensors and the model.
 */
#include <stdbool.h>

#include "test.h"
#include "proto.h"

#include <qsim/qsim.h>

static bool holds(const uint8_t *data, size_t size, const proto *part) {
    for (size_t i = 0; i + part->size <= size; i++)
        if (memcmp(data + i, part->data, part->size) == 0)
            return true;
    return false;
}

/* A value with every field of an input or output: a symbolic size, a fixed size, texts. */
static void described_value(proto *value, const char *name) {
    proto dim = {0}, shape = {0}, tensor = {0}, type = {0};
    value->size = 0;
    proto_text(&dim, 2, "batch");
    proto_text(&dim, 3, "DATA_BATCH");
    proto_take(&shape, 1, &dim);
    proto_int(&dim, 1, 3);
    proto_text(&dim, 3, "DATA_FEATURE");
    proto_take(&shape, 1, &dim);
    proto_text(&shape, 1000, "unknown");
    proto_int(&tensor, 1, QSIM_FLOAT);
    proto_take(&tensor, 2, &shape);
    proto_take(&type, 1, &tensor);
    proto_text(&type, 6, "TENSOR");
    proto_text(value, 1, name);
    proto_take(value, 2, &type);
    proto_text(value, 3, "described by hand");
    proto_text(value, 1000, "unknown");
    proto_free(&dim);
    proto_free(&shape);
    proto_free(&tensor);
    proto_free(&type);
}

static void described_node(proto *node) {
    node->size = 0;
    proto_text(node, 1, "x");
    proto_text(node, 1, "w");
    proto_text(node, 2, "y");
    proto_text(node, 3, "add");
    proto_text(node, 4, "Add");
    proto_text(node, 6, "adds");
    proto_text(node, 1000, "unknown");
}

static void described_tensor(proto *tensor) {
    static const float w[] = {1, 2, 3};
    tensor->size = 0;
    proto_int(tensor, 1, 3);
    proto_int(tensor, 2, QSIM_FLOAT);
    proto_text(tensor, 8, "w");
    proto_bytes(tensor, 9, w, sizeof(w));
    proto_text(tensor, 12, "weighs");
    proto_text(tensor, 1000, "unknown");
}

/* Fields of a model that are unknown, before and after a property. */
static void check_model(void) {
    static const int64_t dims[] = {3};
    proto graph = {0}, model = {0}, fields[2] = {{0}}, property = {0};
    qsim_model *m = NULL, *newer = NULL;
    static uint8_t saved[4096];
    size_t size = 0;
    proto_text(&fields[0], 1000, "the first");
    proto_text(&fields[1], 1001, "the second");
    proto_text(&property, 1, "key");
    proto_text(&property, 2, "value");
    proto_node(&graph, "Relu", NULL, "x", NULL, "y");
    proto_value(&graph, 11, "x", QSIM_FLOAT, dims, 1);
    proto_value(&graph, 12, "y", QSIM_FLOAT, dims, 1);
    proto_model(&model, &graph);
    proto_raw(&model, fields[0].data, fields[0].size);
    proto_take(&model, 14, &property);
    proto_raw(&model, fields[1].data, fields[1].size);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(m, saved, sizeof(saved), &size, NULL), QSIM_OK);
    for (int i = 0; i < 2; i++)
        CHECK(holds(saved, size, &fields[i]));
    CHECK_INT(qsim_model_upgrade(m, 21, &newer, NULL), QSIM_OK);
    CHECK_INT(qsim_model_save_memory(newer, saved, sizeof(saved), &size, NULL), QSIM_OK);
    for (int i = 0; i < 2; i++) {
        CHECK(holds(saved, size, &fields[i]));
        proto_free(&fields[i]);
    }
    qsim_model_free(newer);
    qsim_model_free(m);
    proto_free(&graph);
    proto_free(&model);
    proto_free(&property);
}

int main(void) {
    proto graph = {0}, model = {0}, parts[4] = {{0}};
    static const uint32_t fields[] = {11, 12, 1, 5};
    qsim_model *m = NULL, *newer = NULL;
    static uint8_t saved[4096];
    size_t size = 0;
    described_value(&parts[0], "x");
    described_value(&parts[1], "y");
    described_node(&parts[2]);
    described_tensor(&parts[3]);
    proto_text(&graph, 2, "g");
    for (int i = 0; i < 4; i++)
        proto_bytes(&graph, fields[i], parts[i].data, parts[i].size);
    proto_model(&model, &graph);
    CHECK_INT(qsim_model_load_memory(NULL, model.data, model.size, NULL, &m, NULL), QSIM_OK);
    CHECK_INT(qsim_model_upgrade(m, 21, &newer, NULL), QSIM_OK);
    CHECK_INT(qsim_model_opset(newer, ""), 21);
    CHECK_INT(qsim_model_save_memory(newer, saved, sizeof(saved), &size, NULL), QSIM_OK);
    CHECK(size > 0 && size <= sizeof(saved));
    for (int i = 0; i < 4; i++) {
        CHECK(holds(saved, size, &parts[i]));
        proto_free(&parts[i]);
    }
    qsim_model_free(newer);
    qsim_model_free(m);
    check_model();
    proto_free(&model);
    proto_free(&graph);
    return test_done();
}
