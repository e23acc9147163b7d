/* SPDX-License-Identifier: MIT */
/*
 * Linked into the tool: execution number QSIM_LIE, from 1, ends with another lowest bit in the last
 * element of its first output. So the cases of lying.txt see what a faulty kernel does.
 */
#include <qsim/session.h>

#include <stdlib.h>

/* The names that the linker gives to the function and to what stands in for it. */
int __real_qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                            qsim_tensor *outputs, size_t output_count, qsim_error *error);
int __wrap_qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                            qsim_tensor *outputs, size_t output_count, qsim_error *error);

int __wrap_qsim_run_execute(qsim_run *run, const qsim_tensor *inputs, size_t input_count,
                            qsim_tensor *outputs, size_t output_count, qsim_error *error) {
    static int executions;
    const char *lie = getenv("QSIM_LIE");
    const int code =
        __real_qsim_run_execute(run, inputs, input_count, outputs, output_count, error);
    if (lie && ++executions == atoi(lie) && code == QSIM_OK)
        ((unsigned char *)outputs[0].data)[outputs[0].bytes - 4] ^= 1;
    return code;
}
