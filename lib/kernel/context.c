/* SPDX-License-Identifier: MIT */
/* Contexts with kernels: qsim_ctx_create and the default context. */
#include "kernel/context.h"

#include "kernel/table.h"

int32_t qsim_isa_available(int32_t isa) {
    return qs_cpu_has_isa(isa) && qk_table_get(isa) != NULL;
}

int qsim_ctx_create(const qsim_ctx_options *options, qsim_ctx **out, qsim_error *error) {
    qsim_ctx_options o;
    qs_error_clear(error);
    if (!out)
        return qs_fail(error, QSIM_E_ARGUMENT, "context: no place for one");
    *out = NULL;
    int code = QS_OPTIONS(o, options, error);
    if (code)
        return code;
    if (o.isa < 0 || o.isa >= QS_ISA_COUNT)
        return qs_fail(error, QSIM_E_ARGUMENT, "context: isa %d is not a QSIM_ISA_ constant",
                       (int)o.isa);
    if (o.threads < 0)
        return qs_fail(error, QSIM_E_ARGUMENT, "context: %d threads", (int)o.threads);
    int32_t isa = o.isa == QSIM_ISA_AUTO ? qk_table_best()->isa : o.isa;
    if (o.isa != QSIM_ISA_AUTO && !qsim_isa_available(isa))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "context: this CPU or this build has no %s kernels", qsim_isa_name(isa));
    if (!qs_cpu_take_isa(isa))
        return qs_fail(error, QSIM_E_UNSUPPORTED,
                       "context: the system does not let this process use %s", qsim_isa_name(isa));
    return qs_ctx_init(&o, isa, qk_table_here(isa), out, error);
}

int qs_ctx_hold(qsim_ctx *ctx, qsim_ctx **out, qsim_error *error) {
    return ctx ? qs_ctx_hold_bare(ctx, out, error) : qsim_ctx_create(NULL, out, error);
}
