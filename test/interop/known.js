// SPDX-License-Identifier: MIT
// Known disagreements: the reason, by what we take the specification to say; or null.
'use strict';

const REASONS = [
  [(c) => /LSTM$/.test(c.op) && c.attrs.clip,
   'LSTM, clip: bounds the input of activations, that of the cell among them; ONNX Runtime leaves that one as it is'],
  [(c, wrong) => c.op === 'DynamicQuantizeLSTM' && (c.inputs[0].dims[0] > 1 || c.inputs[5]) && /^element/.test(wrong),
   'DynamicQuantizeLSTM: the state stays a float; ONNX Runtime rounds it to 8 bits at each step, all samples with one scale'],
  [(c) => c.op === 'MultiHeadAttention' && c.attrs.unidirectional && c.inputs[1].dims[1] > c.inputs[0].dims[1],
   'MultiHeadAttention, unidirectional: ONNX Runtime lets the last query see keys behind it where there are more keys than queries'],
  [(c) => c.op === 'QLinearSoftmax' && c.inputs[0].type === 'uint8',
   'QLinearSoftmax: 1 is 256 steps of 1/256, which saturates to 255; ONNX Runtime wraps it to 0'],
  [(c) => c.op === 'QLinearAveragePool' && c.attrs.ceil_mode && c.attrs.count_include_pad,
   'QLinearAveragePool, ceil_mode: what lies behind the padding is not counted, as AveragePool has it since version 19'],
  [(c) => c.op === 'Slice' && c.inputs[4] && c.inputs[2].data.some((e, i) => Number(e) === 2147483647 && Number(c.inputs[4].data[i]) < 0),
   'Slice backward: an end of INT_MAX is cut to the last element; ONNX Runtime takes it for INT_MIN'],
  [(c) => c.op === 'ConvTranspose' && /^SAME/.test(c.attrs.auto_pad), 'ConvTranspose, SAME: sizes are those of the input times strides; ONNX Runtime pads by 0 at least'],
  [(c) => /Pool$/.test(c.op) && /^SAME/.test(c.attrs.auto_pad) && c.attrs.dilations, 'pools, SAME with dilations: sizes are those of the input over strides'],
  [(c) => c.op === 'ReduceLogSumExp' && /int/.test(c.inputs[0].type), 'ReduceLogSumExp of integers: ONNX Runtime cuts each exponential to an integer'],
  [(c) => c.op === 'GridSample' && /cubic/.test(c.attrs.mode) && c.attrs.padding_mode === 'border',
   'GridSample, cubic with border: a place outside is moved to the border, as ONNX\'s reference has it; ONNX Runtime moves the pixels around it'],
];

module.exports = function known(c, wrong) {
  const found = REASONS.find(([holds]) => holds(c, wrong));
  return found ? found[1] : null;
};
