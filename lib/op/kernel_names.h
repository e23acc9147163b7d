/* SPDX-License-Identifier: MIT */
/* Names of operators' steps in profiles; a step may have a more specific one ("conv add"). */
#ifndef QS_KERNEL_NAMES_H
#define QS_KERNEL_NAMES_H

#define QS_KERNEL_NAMES(X)                                                                         \
    X(NONE, "") /* no steps, or only those of its expansion */                                     \
    X(AFFINE_GRID, "affine grid")                                                                  \
    X(ARG, "arg")                                                                                  \
    X(ATTENTION, "attention")                                                                      \
    X(BATCHNORM, "batchnorm")                                                                      \
    X(BINARY, "binary")                                                                            \
    X(BITS, "bits")                                                                                \
    X(BLOCKS, "blocks")                                                                            \
    X(CAST, "cast")                                                                                \
    X(CAUSAL_CONVOLUTION, "causal convolution")                                                    \
    X(CLIP, "clip")                                                                                \
    X(COL2IM, "col2im")                                                                            \
    X(COMPARE, "compare")                                                                          \
    X(COMPRESS, "compress")                                                                        \
    X(CONCAT, "concat")                                                                            \
    X(CONSTANT, "constant")                                                                        \
    X(CONV, "conv")                                                                                \
    X(CONVTRANSPOSE, "convtranspose")                                                              \
    X(CROP, "crop")                                                                                \
    X(CUMULATIVE, "cumulative")                                                                    \
    X(DEFORMED_CONV, "deformed conv")                                                              \
    X(DEPTH_COLUMNS, "depth columns")                                                              \
    X(DEPTH_ROWS, "depth rows")                                                                    \
    X(DEPTH_SUM, "depth sum")                                                                      \
    X(DEQUANTIZE, "dequantize")                                                                    \
    X(DET, "det")                                                                                  \
    X(DROPOUT, "dropout")                                                                          \
    X(DYNAMIC_QUANTIZE, "dynamic quantize")                                                        \
    X(EINSUM, "einsum")                                                                            \
    X(EXPAND, "expand")                                                                            \
    X(EXTREME, "extreme")                                                                          \
    X(FILL, "fill")                                                                                \
    X(FLIP, "flip")                                                                                \
    X(FOURIER, "fourier")                                                                          \
    X(GATHER, "gather")                                                                            \
    X(GEMM, "gemm")                                                                                \
    X(GEMM_INT8, "gemm int8")                                                                      \
    X(GRID_SAMPLE, "grid sample")                                                                  \
    X(GROUP_NORMALIZATION, "group normalization")                                                  \
    X(GRU, "gru")                                                                                  \
    X(HARDMAX, "hardmax")                                                                          \
    X(INSERT, "insert")                                                                            \
    X(LAYER_NORMALIZATION, "layer normalization")                                                  \
    X(LINEAR_ATTENTION, "linear attention")                                                        \
    X(LOGIC, "logic")                                                                              \
    X(LOOKUP, "lookup")                                                                            \
    X(LP_NORMALIZATION, "lp normalization")                                                        \
    X(LRN, "lrn")                                                                                  \
    X(LSTM, "lstm")                                                                                \
    X(MEL_WEIGHTS, "mel weights")                                                                  \
    X(MOD, "mod")                                                                                  \
    X(MUL_ADD, "mul add")                                                                          \
    X(NBITS, "nbits")                                                                              \
    X(NON_MAX_SUPPRESSION, "non-max suppression")                                                  \
    X(NONZERO, "nonzero")                                                                          \
    X(ONE_HOT, "one hot")                                                                          \
    X(PIECEWISE, "piecewise")                                                                      \
    X(PLANE_CONV, "plane conv")                                                                    \
    X(PLANE_POOL, "plane pool")                                                                    \
    X(POOL, "pool")                                                                                \
    X(POW, "pow")                                                                                  \
    X(PRELU, "prelu")                                                                              \
    X(QLINEAR_ADD, "qlinear add")                                                                  \
    X(QLINEAR_CONCAT, "qlinear concat")                                                            \
    X(QLINEAR_LAYER_NORMALIZATION, "qlinear layer norm")                                           \
    X(QLINEAR_MUL, "qlinear mul")                                                                  \
    X(QLINEAR_SOFTMAX, "qlinear softmax")                                                          \
    X(QUANTIZE, "quantize")                                                                        \
    X(QUANTIZE_ROWS, "quantize rows")                                                              \
    X(RANDOM, "random")                                                                            \
    X(RANGE, "range")                                                                              \
    X(REDUCE, "reduce")                                                                            \
    X(RESIZE, "resize")                                                                            \
    X(REVERSE, "reverse")                                                                          \
    X(RMS_NORMALIZATION, "rms normalization")                                                      \
    X(RNN, "rnn")                                                                                  \
    X(ROI_ALIGN, "roi align")                                                                      \
    X(ROI_POOL, "roi pool")                                                                        \
    X(ROTARY, "rotary")                                                                            \
    X(SCATTER, "scatter")                                                                          \
    X(SELECT, "select")                                                                            \
    X(SHAPE, "shape")                                                                              \
    X(SHUFFLE, "shuffle")                                                                          \
    X(SOFTMAX, "softmax")                                                                          \
    X(SPLIT, "split")                                                                              \
    X(SUBGRAPH, "subgraph")                                                                        \
    X(TABLE, "table")                                                                              \
    X(TENSORSCATTER, "tensorscatter")                                                              \
    X(TILE, "tile")                                                                                \
    X(TOP_K, "top k")                                                                              \
    X(TRANSPOSE, "transpose")                                                                      \
    X(TRILU, "trilu")                                                                              \
    X(UNARY, "unary")                                                                              \
    X(UNIQUE, "unique")                                                                            \
    X(UNPOOL, "unpool")                                                                            \
    X(WHERE, "where")                                                                              \
    X(WINDOW, "window")

#define QS_KERNEL_NUMBER(name, text) QS_KERNEL_##name,
enum { QS_KERNEL_NAMES(QS_KERNEL_NUMBER) };
#undef QS_KERNEL_NUMBER

#endif
