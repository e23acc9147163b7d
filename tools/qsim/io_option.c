/* SPDX-License-Identifier: MIT */
#include "io_option.h"

#include <string.h>

#include <qsim/ptq.h>

#include "common/slot.h"
#include "modelinfo.h"

int io_apply(const tool *t, const char *file, const char *how, qsim_model **m) {
    static const char *const names[] = {"integer-inputs", "integer-outputs", "integer"};
    qsim_model *made = NULL;
    qsim_error e;
    for (int32_t i = 0; how && i < 3; i++)
        if (strcmp(how, names[i]) == 0) {
            if (qsim_model_integer_io(*m, i + 1, &made, &e)) {
                if (i == 2 && e.code == QSIM_E_UNSUPPORTED)
                    snprintf(
                        e.hint, sizeof(e.hint),
                        "--io integer-inputs leaves outputs as they are, integer-outputs inputs");
                return tool_error(t, file, &e);
            }
            qsim_model_free(*m);
            *m = made;
        }
    return EXIT_OK;
}

bool io_text(const qsim_model *m, const char *tensor, text *out) {
    double scale;
    int64_t zero_point;
    if (!slot_find_scale(m, tensor, &scale, &zero_point))
        return false;
    if (zero_point)
        text_printf(out, "(integer %c %llu)", zero_point < 0 ? '+' : '-',
                    (unsigned long long)(zero_point < 0 ? -zero_point : zero_point));
    else
        text_puts(out, "integer");
    text_printf(out, " * %.9g", scale);
    return true;
}

static void print_one(const qsim_model *m, const char *what, const qsim_value_info *v) {
    text real = {0};
    if (io_text(m, v->name, &real))
        table_line(what, "'%s' is %s and stands for %s", v->name, qsim_dtype_name(v->dtype),
                   real.data);
    text_free(&real);
}

void io_print(const qsim_model *m) {
    qsim_value_info v = {.struct_size = sizeof(v)};
    for (int32_t i = 0; qsim_model_input(m, i, &v) == QSIM_OK; i++)
        print_one(m, "input", &v);
    for (int32_t i = 0; qsim_model_output(m, i, &v) == QSIM_OK; i++)
        print_one(m, "output", &v);
}

void io_json(json *j, const qsim_model *m, const char *tensor) {
    double scale;
    int64_t zero_point;
    if (!slot_find_scale(m, tensor, &scale, &zero_point))
        return;
    json_number(j, "scale", scale);
    json_int(j, "zero_point", zero_point);
}
