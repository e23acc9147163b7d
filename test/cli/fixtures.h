/* SPDX-License-Identifier: MIT */
/* What the fixtures of the command-line tests share. */
#ifndef TEST_FIXTURES_H
#define TEST_FIXTURES_H

#include <qsim/qsim.h>

/* Ends the program unless the code is QSIM_OK. */
void need(int code, const char *what);
void write_file(const char *path, const void *head, size_t head_size, const void *body,
                size_t body_size);
void write_npy(const char *path, int32_t dtype, int32_t rank, const int64_t *dims,
               const void *data);
/* Pseudo-random values between -1 and 1; the caller frees them. */
float *values(size_t count, uint32_t seed);
/* All files that are not models. */
void make_data(void);

#endif
