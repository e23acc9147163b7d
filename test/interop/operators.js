// SPDX-License-Identifier: MIT
// Whether ONNX Runtime computes what qsim does in single nodes, drawn at random.
//   node operators.js ORT_FOLDER QSIM WORK FIRST COUNT [OPERATOR]
// A case that fails is written to WORK and named by its seed; with COUNT 1 files stay and the whole reason is printed.
'use strict';
const fs = require('fs');
const path = require('path');
const {spawnSync} = require('child_process');
const {Draw, TYPES, model, npy, fromNpy} = require('./draw.js');
const {known, moved} = require('./known.js');

const families = Object.assign({}, require('./draw_math.js'), require('./draw_move.js'), require('./draw_nn.js'),
                               require('./draw_image.js'), require('./draw_ms.js'), require('./draw_flow.js'));

// null, or what is wrong. A tolerance of whole steps goes with integers, one of parts of the largest value with floats.
function different(theirs, ours, within) {
  if (theirs.type !== ours.type) return `theirs is ${theirs.type}, ours ${ours.type}`;
  if (String(theirs.dims) !== String(ours.dims)) return `theirs is [${theirs.dims}], ours [${ours.dims}]`;
  const floats = /float/.test(theirs.type) && theirs.type !== 'float16';
  let largest = 1e-3, apart = 0, at = -1;
  for (let i = 0; i < theirs.data.length; i++) {
    const a = Number(theirs.data[i]), b = Number(ours.data[i]);
    if (Number.isFinite(a)) largest = Math.max(largest, Math.abs(a));
    const d = Object.is(a, b) || a === b || (Number.isNaN(a) && Number.isNaN(b)) ? 0 : Math.abs(a - b);
    if (!(d <= apart)) [apart, at] = [d, i];
  }
  const allowed = floats ? within.floats * largest : within.steps;
  if (apart <= allowed) return null;
  return `element ${at} of [${theirs.dims}] is ${theirs.data[at]}, ours ${ours.data[at]}`;
}

// What ONNX Runtime makes of a model: {name: tensor}.
async function runtime(ort, m) {
  let session;
  try {
    session = await ort.InferenceSession.create(m.bytes, {graphOptimizationLevel: 'disabled', logSeverityLevel: 4,
                                                          intraOpNumThreads: 1, interOpNumThreads: 1});
    return await session.run(Object.fromEntries(m.feeds.map(([n, t]) => [n, new ort.Tensor(TYPES[t.type][3], t.data, t.dims)])));
  } finally {
    if (session) await session.release();
  }
}

// null, or in what our outputs differ from what the reason says the specification's text means.
async function elsewhere(ort, reason, c, theirs, ours, within) {
  if (reason.within === Infinity) // nothing but what is not finite
    return theirs.map((t, i) => different({...t, data: t.data.map((v, k) => (Number.isFinite(v) ? v : ours[i].data[k]))}, ours[i], within)).find((w) => w) || null;
  let want, allowed = {...within, floats: Math.max(within.floats, reason.within || 0)};
  if (reason.values) {
    want = reason.values(c, theirs, ours);
  } else {
    const said = reason.restated(c);
    const m = model(new Draw(1), {...said, half: false}), found = await runtime(ort, m);
    want = m.outputs.map((o) => (said.back ? moved(found[o], said.back) : found[o]).data).map((d) => (said.then ? Array.from(d, (v) => said.then(Number(v))) : d));
    allowed = {...allowed, steps: Math.max(allowed.steps, said.steps || 0)};
  }
  return ours.map((t, i) => different({...t, data: want[i]}, t, allowed)).find((w) => w) || null;
}

async function one(ort, qsim, work, seed, only, counts) {
  const g = new Draw(seed), names = Object.keys(families);
  const name = only || names[seed % names.length];
  const c = {op: name, ...families[name](g)};
  const m = model(g, c), text = `seed ${seed} ${c.op} ${JSON.stringify(c.attrs || {}, (k, v) => (k === 'data' ? [...v].join() : v))} opset ${c.opset || 17} ` +
      c.inputs.map((t) => (t ? `${t.type}[${t.dims}]` : '-')).join(' ');
  counts.cases++;
  let theirs;
  try {
    theirs = await runtime(ort, c.means ? model(new Draw(seed), {...c, ...c.means}) : m);
  } catch (e) {
    counts.refused++;
    counts.byOperator[name] = (counts.byOperator[name] || 0) + 1;
    if (counts.verbose) console.log(`their refusal of ${text}: ${e.message.slice(0, 400)}`);
    return;
  }
  const file = path.join(work, 'm.onnx'), out = path.join(work, 'out');
  fs.writeFileSync(file, m.bytes);
  m.feeds.forEach(([n, t]) => fs.writeFileSync(path.join(work, `${n}.npy`), npy(t)));
  const r = spawnSync(qsim, ['run', '-q', '-f', file, '-T', '1', '--output-dir', out,
                             ...m.feeds.flatMap(([n]) => ['--input', `${n}=${path.join(work, `${n}.npy`)}`])]);
  let wrong = r.status !== 0 ? `refused: ${String(r.stderr).trim() || `status ${r.status} ${r.signal}`}` : null;
  const within = {floats: m.half ? 4e-3 : c.within || 1e-4, steps: c.steps || 0};
  const ours = wrong ? [] : m.outputs.map((o, i) => fromNpy(fs.readFileSync(path.join(out, `output_${i}.npy`))));
  const given = m.outputs.map((o) => theirs[o]);
  ours.forEach((t, i) => { wrong = wrong || different(given[i], t, within); });
  counts.same += !wrong;
  if (!wrong) return;
  const reason = ours.length ? known(c, wrong, given, m.half) : null;
  const still = reason ? await elsewhere(ort, reason, c, given, ours, within) : wrong;
  counts[still ? 'bad' : 'known']++;
  if (!still) counts.reasons[reason.why] = (counts.reasons[reason.why] || 0) + 1;
  if (still || counts.verbose) console.log(`${still ? 'BAD  ' : 'known'} ${text}${m.half ? ' half' : ''}: ${wrong}${reason && still ? `; by '${reason.why}': ${still}` : ''}`);
}

// Operators of qsim that no family draws.
function unknown(qsim) {
  const drawn = new Set();
  for (const [name, make] of Object.entries(families)) {
    const c = {op: name, domain: '', ...make(new Draw(1))};
    (c.nodes || [[c.op, [], [], {}, c.domain]]).forEach(([op, , , , domain]) => drawn.add(`${domain || ''} ${op}`));
  }
  const rows = JSON.parse(spawnSync(qsim, ['info', '--ops', '--json'], {maxBuffer: 1 << 26}).stdout).operators;
  return rows.map((r) => `${r.domain} ${r.operator}`).filter((n) => !drawn.has(n));
}

async function main() {
  const [folder, qsim, work, first, count, only] = process.argv.slice(2);
  const ort = require(path.resolve(folder, 'node_modules', 'onnxruntime-node'));
  const counts = {cases: 0, same: 0, refused: 0, known: 0, bad: 0, reasons: {}, byOperator: {}, verbose: Number(count) === 1};
  for (const name of only ? [] : unknown(qsim)) {
    console.log(`BAD   no family draws ${name.trim()}`);
    counts.bad++;
  }
  for (let seed = Number(first); seed < Number(first) + Number(count); seed++) await one(ort, qsim, work, seed, only, counts);
  Object.entries(counts.reasons).forEach(([reason, n]) => console.log(`known: ${n} times: ${reason}`));
  if (process.env.VERBOSE) console.log(counts.byOperator);
  console.log(`${counts.cases} cases of ${only || `${Object.keys(families).length} operators`}: ${counts.same} the same, ${counts.refused} not run by ` +
              `ONNX Runtime, ${counts.known} known, ${counts.bad} bad`);
  process.exitCode = counts.bad || !counts.cases ? 1 : 0;
}

main().catch((e) => {
  console.error(`operators: ${e.stack}`);
  process.exitCode = 1;
});
