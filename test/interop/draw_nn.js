// SPDX-License-Identifier: MIT
// Cases of normalizations, recurrent layers and attention. Each: draw => what draw.js calls a case.
'use strict';

const opset = (g, since = 13) => g.pick([13, 14, 17, 18, 21, 22].filter((v) => v >= since));
const positive = (g, dims) => g.fill('float', dims, () => Math.fround(0.2 + g.next()));
const families = {};

families.BatchNormalization = (g) => {
  const dims = g.dims(g.int(2, 5)), c = [dims[1]];
  return {opset: opset(g), half: true, constants: 50, attrs: g.chance(50) ? {epsilon: {f: 0.01}} : {}, inputs: [g.tensor('float', dims), g.tensor('float', c), g.tensor('float', c), g.tensor('float', c), positive(g, c)]};
};
families.InstanceNormalization = (g) => {
  const dims = g.dims(g.int(3, 5)), c = [dims[1]];
  return {opset: opset(g), within: 1e-3, attrs: {epsilon: {f: 0.05}}, inputs: [g.tensor('float', dims), g.tensor('float', c), g.tensor('float', c)]};
};
families.GroupNormalization = (g) => {
  const groups = g.int(1, 3), dims = [g.int(1, 2), groups * g.int(1, 3), ...g.dims(g.int(1, 2))], version = g.pick([18, 21]), c = [version === 18 ? groups : dims[1]];
  return {opset: version, within: 1e-3, attrs: {num_groups: groups, epsilon: {f: 0.05}}, inputs: [g.tensor('float', dims), g.tensor('float', c), g.tensor('float', c)]};
};
families.LayerNormalization = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank), part = dims.slice((axis + rank) % rank), outputs = g.pick([1, 1, 3]);
  // Not means of float16, whose input is rounded there: of numbers that cancel each other, they differ by any part.
  return {opset: g.pick([13, 17, 18, 21]), half: outputs === 1, within: 1e-3, outputs, attrs: {axis, epsilon: {f: 0.05}}, inputs: [g.tensor('float', dims), g.tensor('float', part), ...(g.chance(60) ? [g.tensor('float', part)] : [])]};
};
families.RMSNormalization = (g) => {
  const rank = g.int(1, 4), dims = g.dims(rank), axis = g.axis(rank);
  return {opset: 23, within: 1e-3, attrs: {axis, epsilon: {f: 0.05}}, inputs: [g.tensor('float', dims), g.tensor('float', dims.slice((axis + rank) % rank))]};
};
families.LRN = (g) => ({opset: opset(g), attrs: {size: g.pick([1, 3, 5]), alpha: {f: 0.1}, beta: {f: 0.7}, bias: {f: 1.5}}, inputs: [g.tensor('float', g.dims(4))]});
families.LpNormalization = (g) => {
  const rank = g.int(1, 4);
  return {opset: opset(g), attrs: {axis: g.axis(rank), p: g.int(1, 2)}, inputs: [g.tensor('float', g.dims(rank), 3, 0.01)]};
};
families.MeanVarianceNormalization = (g) => ({opset: opset(g), within: 2e-2, attrs: g.chance(60) ? {axes: g.pick([[0, 2, 3], [2, 3], [1, 2, 3], [0]])} : {}, inputs: [g.tensor('float', g.dims(4).map((d) => d + 1))]});

// scores, targets of which some are ignored, weights of classes
function loss(g, outputs) {
  const dims = [g.size(), g.int(1, 6), ...g.dims(g.int(0, 3))], at = [dims[0], ...dims.slice(2)], attrs = {};
  if (g.chance(70)) attrs.reduction = g.pick(['mean', 'sum', 'none']);
  if (g.chance(50)) attrs.ignore_index = g.int(0, dims[1]);
  const low = attrs.ignore_index === dims[1] ? dims[1] : dims[1] - 1, inputs = [g.tensor('float', dims), g.ints(g.pick(['int32', 'int64']), at, 0, low)];
  inputs[1].data[0] = inputs[1].type === 'int64' ? 0n : 0; // a mean of ignored ones alone is 0 / 0
  if (attrs.ignore_index === 0) delete attrs.ignore_index;
  if (g.chance(50)) inputs.push(positive(g, [dims[1]]));
  return {opset: g.pick([12, 13, 17, 21]), outputs, attrs, inputs};
}
families.NegativeLogLikelihoodLoss = (g) => loss(g, 1);
families.SoftmaxCrossEntropyLoss = (g) => loss(g, g.int(1, 2));

// X, W, R, B, sequence lengths, initial states
function recurrent(g, gates, curves, hidden) {
  const direction = g.pick(['forward', 'reverse', 'bidirectional']), d = direction === 'bidirectional' ? 2 : 1, [time, batch, input] = [g.int(1, 5), g.int(1, g.chance(15) ? 17 : 3), g.int(1, g.chance(25) ? 40 : 5)], version = opset(g);
  const attrs = {hidden_size: hidden, ...(direction !== 'forward' || g.chance(30) ? {direction} : {})};
  if (g.chance(30)) attrs.activations = {strings: Array.from({length: curves * d}, () => g.pick(['Tanh', 'Sigmoid', 'Relu', 'Softsign', 'Softplus']))};
  if (g.chance(20)) attrs.clip = {f: 0.7};
  const t = (dims, size = 0.8) => g.tensor('float', dims, size);
  const given = g.int(0, 3), inputs = [t([time, batch, input]), t([d, gates * hidden, input]), t([d, gates * hidden, hidden])];
  if (given) inputs.push(g.chance(80) ? t([d, 2 * gates * hidden]) : null);
  if (given > 1) inputs.push(g.chance(60) ? g.ints('int32', [batch], 1, time) : null);
  if (given > 2) inputs.push(t([d, batch, hidden]));
  return {d, batch, given, c: {opset: version, constants: 50, within: 5e-4, attrs, inputs}};
}
const units = (g) => g.int(1, g.chance(25) ? 40 : 5);
families.RNN = (g) => {
  const {c} = recurrent(g, 1, 1, units(g));
  return {...c, outputs: 2};
};
families.GRU = (g) => {
  const {c} = recurrent(g, 3, 2, units(g));
  if (g.chance(50)) c.attrs.linear_before_reset = g.int(0, 1);
  return {...c, outputs: 2};
};
families.LSTM = (g) => {
  const hidden = units(g), {c, d, batch, given} = recurrent(g, 4, 3, hidden);
  if (given > 2 && g.chance(70)) c.inputs.push(g.tensor('float', [d, batch, hidden]), ...(g.chance(40) ? [g.tensor('float', [d, 3 * hidden])] : []));
  if (g.chance(15)) c.attrs.input_forget = 1;
  return {...c, outputs: 3};
};

families.Attention = (g) => {
  const b = g.int(1, 2), kv = g.int(1, 2), q = kv * g.int(1, 3), s = g.int(1, g.chance(20) ? 60 : 4), t = g.int(1, g.chance(20) ? 60 : 5), d = g.int(1, g.chance(20) ? 40 : 4), dv = g.chance(70) ? d : g.int(1, g.chance(20) ? 40 : 4), flat = g.chance(40), past = !flat && g.chance(30) ? g.int(1, 3) : 0, attrs = {};
  const dims = (h, n, size) => (flat ? [b, n, h * size] : [b, h, n, size]);
  if (flat) Object.assign(attrs, {q_num_heads: q, kv_num_heads: kv});
  if (g.chance(40)) attrs.is_causal = 1;
  if (g.chance(40)) attrs.scale = {f: 0.4};
  if (g.chance(30)) attrs.softcap = {f: 2};
  const mask = g.chance(50) ? g.pick([[s, t + past], [b, q, s, t + past], [1, 1, s, t + past]]) : null;
  const f = (dimensions) => g.tensor('float', dimensions, 1.5);
  const inputs = [f(dims(q, s, d)), f(dims(kv, t, d)), f(dims(kv, t, dv)), ...(mask || past ? [mask ? (g.chance(50) ? f(mask) : g.fill('bool', mask, (i) => Number(i % mask[mask.length - 1] === 0 || g.chance(70)))) : null] : []),
                  ...(past ? [f([b, kv, past, d]), f([b, kv, past, dv])] : [])];
  return {opset: 23, within: 5e-4, attrs, outputs: past ? 3 : 1, inputs};
};
families.RotaryEmbedding = (g) => {
  const b = g.int(1, 2), heads = g.int(1, 3), s = g.int(1, 4), half = g.int(1, 4), flat = g.chance(50), attrs = {}, positions = g.chance(60), most = 9;
  if (flat) attrs.num_heads = heads;
  if (g.chance(50)) attrs.interleaved = g.int(0, 1);
  const extra = g.chance(30) ? 2 : 0;
  if (extra) attrs.rotary_embedding_dim = 2 * half;
  const size = 2 * half + extra, cache = positions ? [most, half] : [b, s, half];
  return {opset: 23, attrs, inputs: [g.tensor('float', flat ? [b, s, heads * size] : [b, heads, s, size]), g.tensor('float', cache, 1), g.tensor('float', cache, 1), ...(positions ? [g.ints('int64', [b, s], 0, most - 1)] : [])]};
};

module.exports = families;
