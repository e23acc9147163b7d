/* SPDX-License-Identifier: MIT */
/* Helpers of the tests of verdicts. */
#ifndef QS_TEST_VERDICTS_H
#define QS_TEST_VERDICTS_H

#include "ptq_nets.h"

#include <qsim/verdict.h>

static inline qsim_verdict *judge(const qsim_model *a, const qsim_model *b,
                                  const qsim_verdict_options *o, const qsim_tensor *x) {
    qsim_verdict *v = NULL;
    qsim_error e = {0};
    CHECK_INT(qsim_verdict_create(a, b, o, &v, &e), QSIM_OK);
    CHECK_INT(qsim_verdict_grade(v), QSIM_GRADE_NONE);
    CHECK_INT(qsim_verdict_feed(v, x, 1, &e), QSIM_OK);
    return v;
}

static inline int warns(const qsim_verdict *v, const char *kind) {
    const char *found = "", *text;
    for (int32_t i = 0; (text = qsim_verdict_warning(v, i, &found)) != NULL; i++)
        if (strcmp(found, kind) == 0)
            return 1;
    CHECK(found == NULL);
    return 0;
}

#endif
