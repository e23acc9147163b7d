// SPDX-License-Identifier: MIT
// Whether ONNX Runtime computes what qsim does in random graphs: every tensor, in the order of execution.
// Then whether it loads what qsim has optimized.
//   node random.js ORT_FOLDER FOLDER      FOLDER as test_random_graphs --write fills it; optimized files in FOLDER/optimized
// Names the first tensor of a model that is too far away; from there on each tensor is judged by its own node (nodes.js).
'use strict';
const fs = require('fs');
const path = require('path');
const {TYPES, withOutputs, parts, distance, judged} = require('./nodes.js');

function read(base) {
  const bytes = fs.readFileSync(`${base}.bin`);
  return fs.readFileSync(`${base}.txt`, 'latin1').trim().split('\n').map((line) => {
    const [kind, name, type, at, size, ...dims] = line.split(' ');
    const copy = bytes.buffer.slice(bytes.byteOffset + Number(at), bytes.byteOffset + Number(at) + Number(size));
    return {kind, name, type, dims: dims.map(Number), data: new TYPES[type][1](copy)};
  });
}

async function one(ort, base, counts) {
  const name = path.basename(base), tensors = read(base);
  const own = fs.readFileSync(`${base}.onnx`);
  const exact = /floats|weights/.test(name);
  let session;
  try {
    const plain = await ort.InferenceSession.create(own, {graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1});
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
  let pieces = null;
  for (const t of tensors) {
    if (t.kind !== 'out') continue;
    counts.tensors++;
    if (pieces && await judged(ort, pieces, tensors, t, name, counts)) continue;
    if (pieces) break;
    const d = distance(theirs[t.name].data, t.data);
    // Floats as agree.js has it; docs/QUANTIZATION.md, section 14: steps now and then, which spread.
    const good = exact ? d.apart <= 1e-4 : d.noise <= 0.05;
    if (good && String(theirs[t.name].dims) === String(t.dims)) continue;
    console.log(`far  ${name} ${t.name} [${t.dims}] of ${t.type}: ${d.apart.toExponential(1)} of the largest value apart, ` +
                `noise ${d.noise.toExponential(1)}; theirs [${theirs[t.name].dims}]; by single nodes from here on`);
    pieces = parts(own);
    counts.spread++;
    if (!await judged(ort, pieces, tensors, t, name, counts)) break;
  }
  counts.models++;
  await session.release();
}

// Does the runtime take the file? What it has no kernel for is no fault of the file.
async function takes(ort, file, counts) {
  try {
    const session = await ort.InferenceSession.create(file, {graphOptimizationLevel: 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1});
    await session.release();
    counts.optimized++;
  } catch (e) {
    if (/NOT_IMPLEMENTED|Could not find an implementation/.test(e.message)) return;
    console.log(`BAD  optimized ${path.basename(file)}: ${e.message.slice(0, 300)}`);
    counts.bad++;
  }
}

async function main() {
  const [folder, files] = process.argv.slice(2);
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  const counts = {models: 0, tensors: 0, refused: 0, bad: 0, spread: 0, alone: 0, optimized: 0};
  const number = (f) => Number(f.split('_')[0]);
  for (const f of fs.readdirSync(files).filter((n) => n.endsWith('.onnx')).sort((a, b) => number(a) - number(b)))
    await one(ort, path.join(files, f.slice(0, -5)), counts);
  const optimized = path.join(files, 'optimized');
  for (const f of fs.readdirSync(optimized)) await takes(ort, path.join(optimized, f), counts);
  console.log(`${counts.models} models, ${counts.optimized} loaded as qsim optimizes them, ${counts.tensors} tensors compared, ${counts.refused} not run by ONNX Runtime, ` +
              `${counts.spread} with steps that spread (${counts.alone} tensors judged by single nodes), ${counts.bad} bad`);
  process.exitCode = counts.bad || !counts.models || !counts.optimized ? 1 : 0;
}

main().catch((e) => {
  console.error(`random: ${e.message}`);
  process.exitCode = 1;
});
