/* SPDX-License-Identifier: MIT */
/* A build without zip: archives are refused with the function's name, .onnx files load. */
#include <qsim/qsim.h>

#include <string.h>

#include "net.h"
#include "test.h"

/* An empty archive: the end of its directory alone. */
static const char archive[22] = "PK\5\6";

static void refused(int code, const qsim_error *e, const char *name) {
    CHECK_INT(code, QSIM_E_UNSUPPORTED);
    CHECK(strstr(e->message, name) != NULL);
    CHECK(strstr(e->hint, "-Dzip=enabled") != NULL);
}

int main(void) {
    qsim_error e = {.message = ""};
    qsim_package *package = (qsim_package *)&e;
    qsim_packer *packer = (qsim_packer *)&e;
    qsim_npz *npz = (qsim_npz *)&e;
    qsim_model *model = (qsim_model *)&e;
    refused(qsim_package_open(NULL, "p.zip", 0, &package, &e), &e, "qsim_package_open");
    CHECK(package == NULL);
    refused(qsim_package_open_memory(NULL, archive, sizeof(archive), NULL, &package, &e), &e,
            "qsim_package_open_memory");
    CHECK(package == NULL);
    refused(qsim_packer_create(NULL, &packer, &e), &e, "qsim_packer_create");
    CHECK(packer == NULL);
    refused(qsim_npz_open(NULL, archive, sizeof(archive), &npz, &e), &e, "qsim_npz_open");
    CHECK(npz == NULL);
    const qsim_load_options copy = {
        .struct_size = sizeof(copy), .name = "p.zip", .flags = QSIM_LOAD_COPY};
    refused(qsim_model_load_memory(NULL, archive, sizeof(archive), NULL, &model, &e), &e, "memory");
    CHECK(model == NULL);
    refused(qsim_model_load_memory(NULL, archive, sizeof(archive), &copy, &model, &e), &e, "p.zip");
    CHECK(model == NULL);
    CHECK_INT(qsim_package_sniff(archive, sizeof(archive)), 1);
    CHECK_INT(qsim_package_sniff(NULL, sizeof(archive)), 0);
    CHECK_INT(qsim_packer_create(NULL, &packer, NULL), QSIM_E_UNSUPPORTED);
    CHECK_INT(qsim_model_load_memory(NULL, archive, sizeof(archive), NULL, &model, NULL),
              QSIM_E_UNSUPPORTED);
    CHECK_STR(qsim_role_name(QSIM_ROLE_MODEL), "model");
    return test_done();
}
