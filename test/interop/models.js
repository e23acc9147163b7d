// SPDX-License-Identifier: MIT
// Whether every model of the shared data loads, computes what ONNX Runtime computes, and quantizes in every mode into a file that
// both run alike: on made-up and on real inputs (real.js), in batches of 1 and, where the batch is free, of 3.
//   node models.js ORT_FOLDER QSIM WORK SHARED [MODE|FOLDER|MODEL...]      modes and methods: those alone, else all modes
// Prints one line for each model. A cell has the worst on made-up and on real inputs: the largest difference over the largest
// value; with n: noise over signal, where the model computes in integers; with s: these differences spread, and each node is
// right alone; "-": the model is quantized already, or smoothing loses more.
'use strict';
const fs = require('fs');
const path = require('path');
const {spawnSync} = require('child_process');
const {Draw, TYPES, npy, fromNpy} = require('./draw.js');
const zip = require('./npz.js');
const {Real, sourceOf, stack} = require('./real.js');
const {withOutputs, parts, distance, judged} = require('./nodes.js');

// Free axes by their names, of one sample and of several (ONNX Runtime continues several by one word alone); what is none of
// these is a batch.
const SIZES = [[/^total_sequence/, 8, 4], [/^past_sequence/, 3, 3], [/^sequence_length/, 5, 1], [/^sequence$/, 576, 576]];
const FILES = {ppocrv3_det_ch: {'p2o.DynamicDimension.1': 64, 'p2o.DynamicDimension.2': 96}, ppocrv2_rec_en_number: {'p2o.DynamicDimension.1': 100}};
const MODES = {
  static: ['--mode', 'static'], smooth: ['--mode', 'static', '--smooth'], qoperator: ['--mode', 'static', '--format', 'qoperator'], uint16: ['--mode', 'static', '--activations', 'uint16'],
  dynamic: ['--mode', 'dynamic'], rows: ['--mode', 'dynamic', '--per-row'], weights: ['--mode', 'weights'], int4: ['--mode', 'weights', '--weights', 'int4', '--block', '32'],
};
// Methods of static quantization, where they are asked for: what a search finds, rather than what --mode says.
const METHODS = {
  mse: ['--method', 'mse'], percentile: ['--percentile', '99.9'], entropy: ['--method', 'entropy'], chosen: ['--method', 'auto'], greedy: ['--search', 'greedy'],
  anneal: ['--search', 'anneal', '--steps', '20'], both: ['--search', 'both', '--steps', '20'], refine: ['--refine'], equalize: ['--weight-scheme', 'tensor', '--equalize'],
  asymmetric: ['--weight-scheme', 'channel-asymmetric'], tensor: ['--weight-scheme', 'tensor-asymmetric'], signed: ['--activations', 'int8', '--symmetric', '--reduce-range'],
  plain: ['--no-bias-correction'], w4: ['--weights', 'int4'], searched4: ['--weights', 'uint4', '--weight-scheme', 'channel-asymmetric', '--search', 'greedy'],
  searched16: ['--activations', 'uint16', '--weights', 'int4', '--search', 'anneal', '--steps', '20'],
};
for (const [name, options] of Object.entries(METHODS)) METHODS[name] = ['--mode', 'static', ...options];

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

// Of a file, to inputs by name: the outputs by number.
function ours(x, file, feeds) {
  const folder = path.join(x.work, 'out');
  feeds.forEach(([, t], i) => fs.writeFileSync(path.join(x.work, `in${i}.npy`), npy(t)));
  const r = spawnSync(x.qsim, ['run', '-q', '-f', file, '-T', '1', '--output-dir', folder, ...feeds.flatMap(([n], i) => ['--input', `${n}=${path.join(x.work, `in${i}.npy`)}`])]);
  if (r.status !== 0) throw new Error(`run: ${String(r.stderr).trim()}`);
  return (i) => fromNpy(fs.readFileSync(path.join(folder, `output_${i}.npy`)));
}

// How many tensors of a model differ from what their own nodes make of qsim's inputs.
async function byNodes(x, file, feeds, outputs) {
  const bytes = fs.readFileSync(file), pieces = parts(bytes), counts = {alone: 0, bad: 0}, more = [...pieces.made.keys()].filter((n) => !outputs.includes(n));
  const all = path.join(x.work, 'all.onnx');
  fs.writeFileSync(all, withOutputs(bytes, more.map((name) => ({name}))));
  const got = ours(x, all, feeds), made = [...outputs, ...more].map((name, i) => ({...got(i), name})).map((t) => ({...t, type: ourType(t.type)}));
  const tensors = [...feeds.map(([name, t]) => ({...t, name})), ...made];
  for (const t of made) await judged(x.ort, pieces, tensors, t, x.model, counts);
  console.log(`      ${x.model}: ${counts.alone} tensors judged by single nodes, ${counts.bad} bad`);
  return counts.bad;
}

// A file's answers to one list of inputs by both, and the worst of their outputs
async function answers(x, session, feeds) {
  const theirs = await session.run(Object.fromEntries(feeds.map(([n, t]) => [n, new x.ort.Tensor(TYPES[t.type][3], t.data, t.dims)])));
  const names = session.outputNames, get = ours(x, session.file, feeds), worst = {apart: 0, noise: 0};
  names.forEach((name, i) => {
    const want = theirs[name].data, got = get(i);
    if (String(got.dims) !== String(theirs[name].dims)) throw new Error(`'${name}' is [${got.dims}], theirs [${theirs[name].dims}]`);
    const d = distance(want, got.data);
    worst.apart = Math.max(worst.apart, d.apart);
    worst.noise = Math.max(worst.noise, d.noise);
  });
  return {worst, theirs: Object.fromEntries(names.map((n) => [n, {type: ourType(theirs[n].type), dims: theirs[n].dims, data: theirs[n].data}]))};
}

const made = (x, batch, seed) => {
  const g = new Draw(seed);
  return x.metadata.map((m) => makeInput(g, m.name, ourType(m.type), shapeOf(x.model, m, batch)));
};
const named = (x, list) => x.metadata.map((m, i) => [m.name, list[i]]);

// Both of a file, on made-up inputs and on each step of real ones.
async function compare(x, file, steps) {
  const session = await x.ort.InferenceSession.create(file, {graphOptimizationLevel: steps ? 'all' : 'disabled', logSeverityLevel: 4, intraOpNumThreads: 1,
                                                           interOpNumThreads: 1});
  const worst = [], sources = {'made up': (batch, i) => (i ? null : made(x, batch, batch + 1)), real: (batch, i, last) => x.source(x.real, batch, i, last, x.metadata)};
  session.file = file;
  for (const [what, source] of Object.entries(sources)) {
    const found = [];
    for (const batch of x.free ? [1, 3] : [1])
      for (let i = 0, last, feeds; (feeds = source(batch, i, last)); i++) {
        const {worst: d, theirs} = await answers(x, session, named(x, feeds));
        const cell = verdict(d, steps);
        if (cell.fault) console.log(`      ${x.model}, ${what}, batch ${batch}, step ${i}: ${JSON.stringify(d)}`);
        if (cell.fault && steps && !await byNodes(x, file, named(x, feeds), session.outputNames)) Object.assign(cell, {fault: false, shown: cell.shown.replace('n', 's')});
        found.push(cell);
        last = theirs;
      }
    x.asked += found.length;
    worst.push(found.reduce((a, b) => (b.size > a.size || b.fault > a.fault ? b : a)));
  }
  await session.release();
  return {fault: worst[0].fault || worst[1].fault, text: worst.map((w) => w.shown).join(' ')};
}

// Three samples of what the network is for; their first steps.
function calibration(x) {
  if (x.free) return x.source(x.real, 3, 0, null, x.metadata);
  const list = [0, 1, 2].map((i) => x.source(x.real, 1, i, null, x.metadata));
  return list[0].map((_, k) => stack(list.map((inputs) => inputs[k])));
}

function quantize(x, file, mode) {
  const out = path.join(x.work, 'q.onnx'), data = path.join(x.work, 'data.npz'), options = MODES[mode] || METHODS[mode], args = ['quantize', '-q', '-f', ...options, file, '-o', out];
  if (options[1] === 'static' && x.metadata.some((m) => !m.shape.length)) { // samples do not stand side by side
    args.push('--data', 'random', '--batch', '1', ...x.metadata.filter((m) => m.shape.length).flatMap((m) => ['--shape', `${m.name}=${shapeOf(x.model, m, 1).join('x')}`]));
  } else if (options[1] === 'static') {
    fs.writeFileSync(data, zip(calibration(x).map((t, i) => [x.metadata[i].name, npy(t)])));
    args.push('--data', data, '--batch', x.free ? '3' : '1', '--held-out', '0');
  }
  const recipe = path.join(x.work, 'q.qrecipe'), r = spawnSync(x.qsim, [...args, ...(mode === 'smooth' ? ['--save-recipe', recipe] : [])]);
  if (r.status !== 0) throw new Error(`quantize: ${String(r.stderr).trim().split('\n')[0]}`);
  if (mode === 'smooth' && !/^equalize /m.test(fs.readFileSync(recipe, 'latin1'))) throw new Error('nothing is smoothed');
  return out;
}

async function cell(x, what) {
  try {
    const d = await what();
    x.bad += d.fault;
    return `${d.fault ? 'BAD ' : ''}${d.text}`;
  } catch (e) {
    if (/is already quantized|nothing to quantize|has no layers|nothing is smoothed/.test(e.message)) return '-';
    x.bad++;
    console.log(`      ${x.model}: ${e.message.slice(0, 500)}`);
    return 'BAD';
  }
}

// Floats as agree.js has them. Steps: the noise that those of integers inside may make, which spread (docs/QUANTIZATION.md, section
// 14); where there is more, each node is asked alone. There ONNX Runtime optimizes, or it would compute pairs in floats.
const verdict = (d, steps) => (steps ? {size: d.noise, shown: `${d.noise.toExponential(0)}n`, fault: !(d.noise <= steps)}
    : {size: d.apart, shown: d.apart.toExponential(0), fault: !(d.apart <= 2e-4)});
const STEPS = 0.05, FINE = STEPS / 256; // of 8 and of 16 bits

async function row(x, file) {
  x.model = path.basename(file, '.onnx');
  x.source = sourceOf(x.shared, file);
  if (!x.source) throw new Error(`${file}: real.js has no inputs for it`);
  const session = await x.ort.InferenceSession.create(file, {logSeverityLevel: 4, intraOpNumThreads: 1});
  x.metadata = session.inputMetadata;
  await session.release();
  const shown = path.relative(x.shared, file), integers = /int8|qdq|int4|rtn|uint4/.test(shown) && !/fp32|dequantized/.test(path.basename(file));
  x.free = x.metadata.some((m) => m.shape.some((d) => typeof d === 'string' && sizeOf(x.model, d, -1) === -1));
  const cells = [await cell(x, () => compare(x, file, integers ? STEPS : 0))];
  for (const mode of x.modes)
    cells.push(await cell(x, () => compare(x, quantize(x, file, mode), integers ? STEPS : /16/.test(mode) ? FINE : /weights|int4/.test(mode) ? 0 : STEPS)));
  console.log(`${shown.padEnd(50)} ${cells.map((c) => c.padEnd(12)).join(' ')}`);
}

async function main() {
  const [folder, qsim, work, shared, ...rest] = process.argv.slice(2), isMode = (a) => a in MODES || a in METHODS, asked = rest.filter(isMode), folders = rest.filter((a) => !isMode(a));
  const x = {ort: require(path.resolve(folder, 'node_modules', 'onnxruntime-node')), qsim, work, shared, bad: 0, asked: 0, real: new Real(shared, qsim, work)}, files = [];
  x.modes = asked.length ? asked : Object.keys(MODES);
  const walk = (d) => fs.readdirSync(d, {withFileTypes: true}).forEach((e) => {
    if (e.isDirectory() && e.name !== 'ops') walk(path.join(d, e.name));
    else if (e.name.endsWith('.onnx')) files.push(path.join(d, e.name));
  });
  folders.forEach((f) => (f.endsWith('.onnx') ? files.push(f) : walk(f)));
  console.log(`${'model'.padEnd(50)} ${['as it is', ...x.modes].map((c) => c.padEnd(12)).join(' ')}`);
  for (const f of files.sort()) await row(x, f);
  console.log(`${files.length} models, ${x.asked} answers, ${x.bad} bad cells`);
  process.exitCode = x.bad || !files.length ? 1 : 0;
}

main().catch((e) => {
  console.error(`models: ${e.stack}`);
  process.exitCode = 1;
});
