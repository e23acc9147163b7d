// SPDX-License-Identifier: MIT
// Single nodes of a model on ONNX Runtime: what each makes of the very inputs that qsim had. Steps of rounding spread (near ties
// of TopK, scales of one value), so a graph that is too far away is judged node by node.
'use strict';

const TYPES = {float: ['float32', Float32Array, 1], uint8: ['uint8', Uint8Array, 2], int8: ['int8', Int8Array, 3],
               int32: ['int32', Int32Array, 6], int64: ['int64', BigInt64Array, 7], bool: ['bool', Uint8Array, 9], uint16: ['uint16', Uint16Array, 4], int16: ['int16', Int16Array, 5]};

function number(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

function whole(n, value) {
  return Buffer.concat([number(n * 8), number(value)]);
}

function field(n, body) {
  return Buffer.concat([number(n * 8 + 2), number(body.length), body]);
}

// Protobuf parsers merge a message that occurs twice: a second graph with outputs only adds them. Types may be left out.
function withOutputs(model, tensors) {
  const outputs = tensors.map((t) => field(12, Buffer.concat([
    field(1, Buffer.from(t.name)), t.type ? field(2, field(1, Buffer.from([8, TYPES[t.type][2]]))) : Buffer.alloc(0),
  ])));
  return Buffer.concat([model, field(7, Buffer.concat(outputs))]);
}

// Fields of a message: [number, wire type, value].
function* fields(b) {
  let at = 0;
  const varint = () => {
    let v = 0, k = 1;
    for (;; k *= 128) {
      const byte = b[at++];
      v += (byte & 127) * k;
      if (byte < 128) return v;
    }
  };
  while (at < b.length) {
    const key = varint(), kind = key % 8;
    if (kind === 0) { yield [Math.floor(key / 8), kind, varint()]; continue; }
    const size = kind === 2 ? varint() : kind === 1 ? 8 : 4;
    yield [Math.floor(key / 8), kind, b.subarray(at, at += size)];
  }
}

// What single nodes need of a model: nodes by their outputs, initializers by name, and what stands outside the graph.
function parts(model) {
  const made = new Map(), weights = new Map(), rest = [whole(1, 8)];
  for (const [n, , v] of fields(model)) {
    if (n === 1) rest[0] = whole(1, v);
    if (n === 8) rest.push(field(8, v));
    if (n !== 7) continue;
    for (const [part, , bytes] of fields(v)) {
      if (part === 5) weights.set([...fields(bytes)].find(([f]) => f === 8)[2].toString(), bytes);
      if (part !== 1) continue;
      const all = [...fields(bytes)], names = (f) => all.filter(([k]) => k === f).map(([, , x]) => x.toString());
      const node = {bytes, inputs: names(1), op: names(4)[0]};
      names(2).filter((o) => o).forEach((o) => made.set(o, node));
    }
  }
  return {made, weights, rest};
}

// What the node of a tensor makes of qsim's inputs: numbers, or null where something is not known.
async function alone(ort, {made, weights, rest}, tensors, t) {
  const node = made.get(t.name), feeds = {}, values = [], input = (i) => tensors.find((x) => x.name === node.inputs[i]);
  if (!node) return null;
  // ONNX Runtime's Sigmoid is off by 1e-8, which is 1e-4 of Sigmoid(-9): judged by its text.
  if (node.op === 'Sigmoid' && input(0)) return Float64Array.from(input(0).data, (v) => 1 / (1 + Math.exp(-v)));
  // A sum near 1 rounds to float before its logarithm, near 0, in ONNX Runtime: judged by its text.
  if (node.op === 'ReduceLogSumExp' && input(0) && input(0).dims.length === t.dims.length) return logSumExp(input(0), t);
  // Its mean of squares less the square of the mean loses the variance of planes that are nearly constant: judged by its text.
  if (node.op === 'MeanVarianceNormalization' && input(0)) return normalized(input(0), t);
  for (const name of new Set(node.inputs.filter((i) => i))) {
    const known = tensors.find((x) => x.name === name);
    if (weights.has(name)) values.push(field(5, weights.get(name)));
    else if (!known) return null;
    else {
      feeds[name] = new ort.Tensor(TYPES[known.type][0], known.data, known.dims);
      const shape = field(2, Buffer.concat(known.dims.map((d) => field(1, whole(1, d)))));
      values.push(field(11, Buffer.concat([field(1, Buffer.from(name)), field(2, field(1, Buffer.concat([whole(1, TYPES[known.type][2]), shape])))])));
    }
  }
  const graph = field(7, Buffer.concat([field(1, node.bytes), field(2, Buffer.from('one')), ...values]));
  const session = await ort.InferenceSession.create(withOutputs(Buffer.concat([...rest, graph]), [t]), {
    graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1, interOpNumThreads: 1});
  const found = (await session.run(feeds))[t.name].data;
  await session.release();
  return found;
}

// ln of the sum of e^x over the axes that have size 1 in the result.
function logSumExp(x, t) {
  const most = x.data.reduce((m, v) => Math.max(m, v), -Infinity), out = new Float64Array(t.data.length), base = Number.isFinite(most) ? most : 0;
  x.data.forEach((v, i) => {
    let at = 0, rest = i;
    for (let k = x.dims.length - 1, step = 1; k >= 0; step *= t.dims[k--]) {
      if (t.dims[k] > 1) at += rest % x.dims[k] * step;
      rest = Math.floor(rest / x.dims[k]);
    }
    out[at] += Math.exp(v - base);
  });
  return out.map((v) => Math.log(v) + base);
}

// MeanVarianceNormalization over axes 2 and 3: (x - mean) / deviation.
function normalized(x, t) {
  const plane = x.dims[2] * x.dims[3], out = new Float64Array(x.data.length);
  for (let at = 0; at < out.length; at += plane) {
    const part = x.data.subarray(at, at + plane), mean = part.reduce((s, v) => s + v, 0) / plane;
    const deviation = Math.sqrt(part.reduce((s, v) => s + (v - mean) ** 2, 0) / plane);
    // Of a deviation of single steps of the last bit, floats know nothing: no plane's square sum exceeds its size.
    const known = deviation > 1e-5 * Math.max(...part.map(Math.abs));
    for (let i = at; i < at + plane; i++) out[i] = known ? (x.data[i] - mean) / (deviation + 1e-9) : Math.abs(t.data[i]) <= Math.sqrt(plane) ? t.data[i] : NaN;
  }
  return out;
}

// The largest distance over the largest value, and noise over signal.
function distance(a, b) {
  if (a.length !== b.length) return {apart: Infinity, noise: Infinity};
  let largest = 1e-3, apart = 0, signal = 1e-9, noise = 0;
  for (let i = 0; i < a.length; i++) {
    const x = Number(a[i]), y = Number(b[i]), d = x === y || (Number.isNaN(x) && Number.isNaN(y)) ? 0 : Math.abs(x - y);
    if (!Number.isFinite(x) && d === 0) continue;
    largest = Math.max(largest, Math.abs(x));
    apart = d <= apart ? apart : d;
    signal += x * x;
    noise += d * d;
  }
  return {apart: apart / largest, noise: Math.sqrt(noise / signal)};
}

// Whether a tensor is what its node makes of qsim's inputs: floats within 1e-4 of the largest value, integers within a step.
async function judged(ort, pieces, tensors, t, name, counts) {
  const want = await alone(ort, pieces, tensors, t);
  const d = want ? distance(want, t.data) : {apart: Infinity};
  const steps = /int/.test(t.type) ? (want || []).reduce((m, v, i) => Math.max(m, Math.abs(Number(v) - Number(t.data[i]))), 0) : Infinity;
  counts.alone++;
  if (d.apart <= 1e-4 || (/int(8|16)/.test(t.type) && steps <= 1)) return true;
  counts.bad++;
  console.log(`BAD  ${name} ${t.name} [${t.dims}] of ${t.type}, by its node ${(pieces.made.get(t.name) || {}).op} alone: ${d.apart.toExponential(1)} of the largest value apart`);
  return false;
}

module.exports = {TYPES, withOutputs, parts, distance, judged};
