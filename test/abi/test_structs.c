/* SPDX-License-Identifier: MIT */
/*
 * The frozen structs, field by field, as they were first released, on 64-bit machines: a change
 * here breaks every program that was ever linked. Options structs only grow.
 */
#include "test.h"

#include <qsim/qsim.h>

#define AT(type, field, offset) CHECK_INT(offsetof(type, field), offset)

int main(void) {
    if (sizeof(void *) != 8)
        test_skip("the layout is written down for 64-bit machines");
    CHECK_INT(sizeof(qsim_tensor), 32);
    AT(qsim_tensor, dtype, 0);
    AT(qsim_tensor, rank, 4);
    AT(qsim_tensor, dims, 8);
    AT(qsim_tensor, data, 16);
    AT(qsim_tensor, bytes, 24);

    CHECK_INT(sizeof(qsim_error), 584);
    AT(qsim_error, code, 0);
    AT(qsim_error, flags, 4);
    AT(qsim_error, message, 8);
    AT(qsim_error, hint, 392);

    CHECK_INT(sizeof(qsim_allocator), 24);
    AT(qsim_allocator, alloc, 0);
    AT(qsim_allocator, free, 8);
    AT(qsim_allocator, user, 16);

    AT(qsim_ctx_options, struct_size, 0);
    AT(qsim_ctx_options, allocator, 8);
    AT(qsim_ctx_options, threads, 48);
    AT(qsim_ctx_options, isa, 52);
    AT(qsim_load_options, struct_size, 0);
    AT(qsim_save_options, struct_size, 0);
    AT(qsim_session_options, struct_size, 0);
    AT(qsim_quantize_options, struct_size, 0);
    AT(qsim_search_options, struct_size, 0);
    AT(qsim_value_info, struct_size, 0);
    AT(qsim_node_info, struct_size, 0);

    /* Numbers that files and bindings contain. */
    CHECK_INT(QSIM_FLOAT, 1);
    CHECK_INT(QSIM_UINT8, 2);
    CHECK_INT(QSIM_INT8, 3);
    CHECK_INT(QSIM_INT32, 6);
    CHECK_INT(QSIM_UINT4, 21);
    CHECK_INT(QSIM_INT2, 26);
    CHECK_INT(QSIM_E_NOMEM, -20);
    CHECK_INT(QSIM_E_FORMAT, -30);
    return test_done();
}
