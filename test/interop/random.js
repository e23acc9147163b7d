// SPDX-License-Identifier: MIT
// Whether ONNX Runtime computes what qsim does in random graphs: every tensor, in the order of execution.
//   node random.js ORT_FOLDER FOLDER      FOLDER as test_random_graphs --write fills it
// Names the first tensor of a model that is too far away.
'use strict';
const fs = require('fs');
const path = require('path');

const TYPES = {float: ['float32', Float32Array, 1], uint8: ['uint8', Uint8Array, 2], int8: ['int8', Int8Array, 3],
               int32: ['int32', Int32Array, 6], int64: ['int64', BigInt64Array, 7], bool: ['bool', Uint8Array, 9]};

function number(n) {
  const bytes = [];
  for (; n > 127; n = Math.floor(n / 128)) bytes.push((n % 128) | 128);
  return Buffer.from([...bytes, n]);
}

function field(n, body) {
  return Buffer.concat([number(n * 8 + 2), number(body.length), body]);
}

// Protobuf parsers merge a message that occurs twice: a second graph with outputs only adds them.
function withOutputs(model, tensors) {
  const outputs = tensors.map((t) => field(12, Buffer.concat([
    field(1, Buffer.from(t.name)), field(2, field(1, Buffer.from([8, TYPES[t.type][2]]))),
  ])));
  return Buffer.concat([model, field(7, Buffer.concat(outputs))]);
}

function read(base) {
  const bytes = fs.readFileSync(`${base}.bin`);
  return fs.readFileSync(`${base}.txt`, 'latin1').trim().split('\n').map((line) => {
    const [kind, name, type, at, size, ...dims] = line.split(' ');
    const copy = bytes.buffer.slice(bytes.byteOffset + Number(at), bytes.byteOffset + Number(at) + Number(size));
    return {kind, name, type, dims: dims.map(Number), data: new TYPES[type][1](copy)};
  });
}

// The largest distance over the largest value, and noise over signal.
function distance(a, b) {
  if (a.length !== b.length) return {apart: Infinity, noise: Infinity};
  let largest = 1e-3, apart = 0, signal = 1e-9, noise = 0;
  for (let i = 0; i < a.length; i++) {
    const x = Number(a[i]), d = Math.abs(x - Number(b[i]));
    largest = Math.max(largest, Math.abs(x));
    apart = d <= apart ? apart : d;
    signal += x * x;
    noise += d * d;
  }
  return {apart: apart / largest, noise: Math.sqrt(noise / signal)};
}

async function one(ort, base, counts) {
  const name = path.basename(base), tensors = read(base);
  const own = fs.readFileSync(`${base}.onnx`);
  const exact = /floats|weights/.test(name);
  let session;
  try {
    const plain = await ort.InferenceSession.create(own, {graphOptimizationLevel: 'disabled', logSeverityLevel: 4});
    const more = tensors.filter((t) => t.kind === 'out' && !plain.outputNames.includes(t.name));
    await plain.release();
    session = await ort.InferenceSession.create(withOutputs(own, more), {
      graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1, interOpNumThreads: 1});
  } catch (e) {
    // What the runtime has no kernel for is no fault of the file.
    const known = /NOT_IMPLEMENTED|Could not find an implementation/.test(e.message);
    counts[known ? 'refused' : 'bad']++;
    if (!known) console.log(`BAD  ${name}: ${e.message.slice(0, 300)}`);
    return;
  }
  const feeds = {};
  for (const t of tensors)
    if (t.kind === 'in') feeds[t.name] = new ort.Tensor(TYPES[t.type][0], t.data, t.dims);
  const theirs = await session.run(feeds);
  for (const t of tensors) {
    if (t.kind !== 'out') continue;
    const d = distance(theirs[t.name].data, t.data);
    counts.tensors++;
    // Floats as agree.js has it; docs/QUANTIZATION.md, section 14: steps now and then, which spread.
    const good = exact ? d.apart <= 1e-4 : d.noise <= 0.05;
    if (good && String(theirs[t.name].dims) === String(t.dims)) continue;
    counts.bad++;
    console.log(`BAD  ${name} ${t.name} [${t.dims}] of ${t.type}: ${d.apart.toExponential(1)} of the largest value apart, ` +
                `noise ${d.noise.toExponential(1)}; theirs [${theirs[t.name].dims}]`);
    break;
  }
  counts.models++;
  await session.release();
}

async function main() {
  const [folder, files] = process.argv.slice(2);
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  const counts = {models: 0, tensors: 0, refused: 0, bad: 0};
  const number = (f) => Number(f.split('_')[0]);
  for (const f of fs.readdirSync(files).filter((n) => n.endsWith('.onnx')).sort((a, b) => number(a) - number(b)))
    await one(ort, path.join(files, f.slice(0, -5)), counts);
  console.log(`${counts.models} models, ${counts.tensors} tensors compared, ${counts.refused} not run by ONNX Runtime, ` +
              `${counts.bad} bad`);
  process.exitCode = counts.bad || !counts.models ? 1 : 0;
}

main().catch((e) => {
  console.error(`random: ${e.message}`);
  process.exitCode = 1;
});
