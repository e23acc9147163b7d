/* SPDX-License-Identifier: MIT */
/* Optional values: one that is there is a tensor; whether it is there is known from the file. */
#include "op/expand.h"

QS_COLD static int infer_same(qs_infer *x) {
    return x->in[0] ? qs_infer_like(x, 0, 0)
                    : qs_infer_fail(x, QSIM_E_UNSUPPORTED, "an optional without a value");
}

static void expand_same(qs_expand *e) {
    e->out[0] = qs_expand_in(e, 0);
}

QS_COLD static int infer_has(qs_infer *x) {
    return qs_infer_out(x, 0, QSIM_BOOL, 0, NULL);
}

static void expand_has(qs_expand *e) {
    e->out[0] = qs_expand_number(e, QSIM_BOOL, qs_expand_in(e, 0) != QS_NONE);
}

static const qs_attr_rule optional_attrs[] = {{"type", QSIM_ATTR_OTHER, 15, 0}};

QS_OP(optional, .name = "Optional", .since = 15, .max_in = 1, QS_ATTRS(optional_attrs),
      .traits = QS_PLAIN, .infer = infer_same, .expand = expand_same);
QS_OP(optional_get, .name = "OptionalGetElement", .since = 15, .min_in = 1, .traits = QS_PLAIN,
      .infer = infer_same, .expand = expand_same);
QS_OP(optional_has, .name = "OptionalHasElement", .since = 15, .min_in = 1,
      QS_MORE(QS_HISTORY(.later = {{.since = 18, .max_in = 1, .max_out = 1}})), .traits = QS_PLAIN,
      .infer = infer_has, .expand = expand_has);
