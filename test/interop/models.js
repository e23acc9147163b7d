// SPDX-License-Identifier: MIT
// Whether every model of some folders loads, computes what ONNX Runtime computes, in batches of 1 and of 3 where that is free,
// and quantizes in every mode into a file that both run alike.
//   node models.js ORT_FOLDER QSIM WORK FOLDER...
// One line a model; "-": not asked, since it is quantized, or its batch is fixed.
'use strict';
const fs = require('fs');
const path = require('path');
const {spawnSync} = require('child_process');
const {Draw, TYPES, npy, fromNpy} = require('./draw.js');
const zip = require('./npz.js');

// Free axes by their names, of one sample and of several (ONNX Runtime continues several by one word alone); what is none of
// these is a batch.
const SIZES = [[/^total_sequence/, 8, 4], [/^past_sequence/, 3, 3], [/^sequence_length/, 5, 1], [/^sequence$/, 576, 576]];
const FILES = {ppocrv3_det_ch: {'p2o.DynamicDimension.1': 64, 'p2o.DynamicDimension.2': 96}, ppocrv2_rec_en_number: {'p2o.DynamicDimension.1': 100}};
const MODES = ['static', 'dynamic', 'weights'];

function sizeOf(model, symbol, batch) {
  const own = FILES[model] && FILES[model][symbol], named = SIZES.find(([name]) => name.test(symbol));
  return own || (named ? named[batch > 1 ? 2 : 1] : batch);
}

// Words and their places, masks of ones, a rate; floats for all the rest.
function makeInput(g, name, type, dims) {
  const last = dims[dims.length - 1];
  if (name === 'sr') return g.scalar('int64', 16000);
  if (name === 'input_ids') return g.ints(type, dims, 3, 90);
  if (name === 'attention_mask') return g.fill(type, dims, () => 1);
  if (name === 'position_ids') return g.fill(type, dims, (i) => 3 + (i % last));
  return dims.length === 4 && last >= 16 && !/past|input_3/.test(name) ? picture(g, dims) : g.tensor('float', dims, /past/.test(name) ? 0.5 : 2);
}

// Waves across each channel, and a little noise: networks that have seen photos answer noise alone with nothing.
function picture(g, dims) {
  const [, , h, w] = dims, waves = [];
  return g.fill('float', dims, (i) => {
    const plane = Math.floor(i / (h * w)), y = Math.floor(i / w) % h, x = i % w;
    const v = waves[plane] = waves[plane] || Array.from({length: 4}, () => [g.next() * 12 / h, g.next() * 12 / w, g.next() * 6, g.next()]);
    return v.reduce((sum, [a, b, c, size]) => sum + size * Math.sin(a * y + b * x + c), 0) + 0.1 * g.next();
  });
}

const shapeOf = (model, m, batch) => m.shape.map((d) => (typeof d === 'number' ? d : sizeOf(model, d, batch)));
const ourType = (type) => Object.keys(TYPES).find((k) => TYPES[k][3] === type);

// The largest distance over the largest value, and noise over signal.
function distance(want, got) {
  let largest = 1e-3, apart = 0, signal = 0, noise = 0;
  for (let k = 0; k < want.length; k++) {
    const a = Number(want[k]), d = Math.abs(a - Number(got[k]));
    largest = Math.max(largest, Math.abs(a));
    apart = d <= apart ? apart : d;
    signal += a * a;
    noise += d * d;
  }
  return {apart: apart / largest, noise: Math.sqrt(noise / Math.max(signal, 1e-6 * want.length))};
}

// Both of all outputs, the worst; own: the noise of the runtime's answers to inputs whose last bits differ.
async function compare(x, file, metadata, batch, exact) {
  const g = new Draw(batch + 1), folder = path.join(x.work, 'out');
  const feeds = metadata.map((m) => [m.name, makeInput(g, m.name, ourType(m.type), shapeOf(x.model, m, batch))]);
  const session = await x.ort.InferenceSession.create(file, {graphOptimizationLevel: exact ? 'disabled' : 'all', logSeverityLevel: 4, intraOpNumThreads: 1,
                                                           interOpNumThreads: 1});
  const answer = (list) => session.run(Object.fromEntries(list.map(([n, t]) => [n, new x.ort.Tensor(TYPES[t.type][3], t.data, t.dims)])));
  const theirs = await answer(feeds), names = session.outputNames;
  feeds.forEach(([, t], i) => fs.writeFileSync(path.join(x.work, `in${i}.npy`), npy(t)));
  const r = spawnSync(x.qsim, ['run', '-q', '-f', file, '-T', '1', '--output-dir', folder, ...feeds.flatMap(([n], i) => ['--input', `${n}=${path.join(x.work, `in${i}.npy`)}`])]);
  if (r.status) throw new Error(`run: ${String(r.stderr).trim()}`);
  const worst = {apart: 0, noise: 0, own: 0};
  names.forEach((name, i) => {
    const want = theirs[name].data, got = fromNpy(fs.readFileSync(path.join(folder, `output_${i}.npy`)));
    if (String(got.dims) !== String(theirs[name].dims)) throw new Error(`'${name}' is [${got.dims}], theirs [${theirs[name].dims}]`);
    const d = distance(want, got.data);
    worst.apart = Math.max(worst.apart, d.apart);
    worst.noise = Math.max(worst.noise, d.noise);
  });
  if (worst.noise > 0.05) {
    const nudged = await answer(feeds.map(([n, t]) => [n, t.type === 'float' ? {...t, data: t.data.map((v) => v * (1 + 1e-6))} : t]));
    worst.own = Math.max(...names.map((name) => distance(theirs[name].data, nudged[name].data).noise));
  }
  await session.release();
  return worst;
}

function quantize(x, file, metadata, mode) {
  const out = path.join(x.work, 'q.onnx'), data = path.join(x.work, 'data.npz'), g = new Draw(7), args = ['quantize', '-q', '-f', '--mode', mode, file, '-o', out];
  const batch = metadata.some((m) => m.shape.some((d) => typeof d === 'string' && sizeOf(x.model, d, -1) === -1)) ? 4 : 1;
  if (mode === 'static' && metadata.some((m) => !m.shape.length)) { // samples do not stand side by side
    args.push('--data', 'random', '--batch', '1', ...metadata.filter((m) => m.shape.length).flatMap((m) => ['--shape', `${m.name}=${shapeOf(x.model, m, 1).join('x')}`]));
  } else if (mode === 'static') {
    fs.writeFileSync(data, zip(metadata.map((m) => [m.name, npy(makeInput(g, m.name, ourType(m.type), shapeOf(x.model, m, batch)))])));
    args.push('--data', data, '--batch', String(batch), '--held-out', '0');
  }
  const r = spawnSync(x.qsim, args);
  if (r.status) throw new Error(`quantize: ${String(r.stderr).trim().split('\n')[0]}`);
  return out;
}

async function cell(x, what) {
  try {
    const d = await what();
    x.bad += d.fault;
    return `${d.fault ? 'BAD ' : ''}${d.text}`;
  } catch (e) {
    if (/is already quantized|nothing to quantize|has no layers/.test(e.message)) return '-';
    x.bad++;
    console.log(`      ${x.model}: ${e.message.slice(0, 500)}`);
    return 'BAD';
  }
}

// Floats as agree.js has them. With integers inside steps spread (docs/QUANTIZATION.md, section 14): noise; there ONNX Runtime
// optimizes, or it would compute pairs in floats. Networks that magnify last bits (own) to more than the bar are judged by that.
const judged = (d, exact) => ({text: exact ? d.apart.toExponential(0) : `${d.own > 0.05 ? 'unsteady' : 'noise'} ${d.noise.toExponential(0)}`,
                               fault: exact ? !(d.apart <= 2e-4) : !(d.noise <= Math.max(0.05, 1.5 * d.own))});

async function row(x, file) {
  x.model = path.basename(file, '.onnx');
  const session = await x.ort.InferenceSession.create(file, {logSeverityLevel: 4}), metadata = session.inputMetadata;
  await session.release();
  const shown = path.relative(x.root, file), integers = /int8|qdq|int4|rtn|uint4/.test(shown) && !/fp32|dequantized/.test(path.basename(file));
  const free = metadata.some((m) => m.shape.some((d) => typeof d === 'string' && sizeOf(x.model, d, -1) === -1));
  const cells = [];
  for (const batch of [1, 3])
    cells.push(batch === 3 && !free ? '-' : await cell(x, async () => judged(await compare(x, file, metadata, batch, !integers), !integers)));
  for (const mode of MODES)
    cells.push(await cell(x, async () => judged(await compare(x, quantize(x, file, metadata, mode), metadata, free ? 3 : 1, mode !== 'static'), mode === 'weights' && !integers)));
  console.log(`${shown.padEnd(52)} ${cells.map((c) => c.padEnd(12)).join(' ')}`);
}

async function main() {
  const [folder, qsim, work, ...folders] = process.argv.slice(2);
  const x = {ort: require(path.resolve(folder, 'node_modules', 'onnxruntime-node')), qsim, work, bad: 0}, files = [];
  const walk = (d) => fs.readdirSync(d, {withFileTypes: true}).forEach((e) => {
    if (e.isDirectory() && e.name !== 'ops') walk(path.join(d, e.name));
    else if (e.name.endsWith('.onnx')) files.push(path.join(d, e.name));
  });
  folders.forEach((f) => (f.endsWith('.onnx') ? files.push(f) : walk(f)));
  x.root = path.dirname(folders[0]);
  console.log(`${'model'.padEnd(52)} ${['batch 1', 'batch 3', ...MODES].map((c) => c.padEnd(12)).join(' ')}`);
  for (const f of files.sort()) await row(x, f);
  console.log(`${files.length} models, ${x.bad} bad`);
  process.exitCode = x.bad || !files.length ? 1 : 0;
}

main().catch((e) => {
  console.error(`models: ${e.stack}`);
  process.exitCode = 1;
});
