// SPDX-License-Identifier: MIT
// Real inputs for the models of the shared data: photos, lines of text, Fashion-MNIST, speech, prompts, made ready as each model's
// page (models/INDEX.md, llm/INDEX.md) has it. Steps follow one another: a later one is fed the state that an earlier one gave.
'use strict';
const fs = require('fs');
const path = require('path');
const zlib = require('zlib');
const {spawnSync} = require('child_process');
const {Draw, model, npy, fromNpy} = require('./draw.js');

const PHOTOS = ['parrot.jpg', 'cat.bmp', 'grace_hopper.jpg', 'hot_dog.jpg', 'owl.jpg', 'bird.bmp', 'pets.jpg', 'kite_and_cold.jpg', 'ultraface_readme_26.jpg'];
const TEXTS = ['en_rec.jpg', 'en.jpg'];
const RATE = 16000;

const tensor = (type, dims, data) => ({type, dims, data});
const zeros = (dims) => tensor('float', dims, new Float32Array(dims.reduce((a, b) => a * b, 1)));

// One behind the other along the first axis.
function stack(list) {
  const data = new list[0].data.constructor(list.reduce((n, t) => n + t.data.length, 0));
  list.reduce((at, t) => { data.set(t.data, at); return at + t.data.length; }, 0);
  return tensor(list[0].type, [list.reduce((n, t) => n + t.dims[0], 0), ...list[0].dims.slice(1)], data);
}

class Real {
  constructor(shared, qsim, work) { Object.assign(this, {shared, qsim, work, kept: {}}); }

  // A picture as qsim prepares it for an input of these sizes: what a model of one Identity answers.
  picture(file, dims, how) {
    const key = `${file} ${dims} ${how}`, at = path.join(this.work, 'identity');
    if (this.kept[key]) return this.kept[key];
    const sizes = tensor('float', dims, new Float32Array(0)), g = new Draw(1);
    g.int = () => 0; // sizes are known
    fs.writeFileSync(`${at}.onnx`, model(g, {op: 'Identity', inputs: [sizes], constants: 0}).bytes);
    const r = spawnSync(this.qsim, ['run', '-q', '-f', `${at}.onnx`, '-i', path.join(this.shared, 'data', file), '--preprocess', how, '-o', `${at}.npy`]);
    if (r.status !== 0) throw new Error(`${file}: ${String(r.stderr).trim()}`);
    const got = fromNpy(fs.readFileSync(`${at}.npy`));
    return this.kept[key] = tensor('float', got.dims, got.data);
  }

  photos(from, count, dims, how, size = 1) { // times size: 255 gives pixels
    const list = Array.from({length: count}, (_, i) => this.picture(`images/${PHOTOS[(from + i) % PHOTOS.length]}`, [1, ...dims], how));
    return stack(size === 1 ? list : list.map((t) => ({...t, data: t.data.map((v) => v * size)})));
  }
  texts(from, count, dims, how) { return stack(Array.from({length: count}, (_, i) => this.picture(`ocr/${TEXTS[(from + i) % 2]}`, [1, ...dims], how))); }

  clothes(from, count, size) {
    const raw = this.kept.clothes = this.kept.clothes || zlib.gunzipSync(fs.readFileSync(path.join(this.shared, 'data/fashion-mnist/t10k-images-idx3-ubyte.gz')));
    return tensor('float', [count, 1, 28, 28], Float32Array.from(raw.subarray(16 + from * 784, 16 + (from + count) * 784), (p) => p * size / 255));
  }

  speech(at, count) { // samples from a second on
    const raw = this.kept.speech = this.kept.speech || fs.readFileSync(path.join(this.shared, 'data/audio/silero_test.wav'));
    const first = raw.indexOf('data') + 8 + 2 * Math.round(at * RATE);
    return Float32Array.from({length: count}, (_, i) => raw.readInt16LE(first + 2 * i) / 32768);
  }

  words(from, count) { // seconds, of which a model's modes ask again and again
    const made = this.kept.words = this.kept.words || {};
    return stack(Array.from({length: count}, (_, k) => made[from + k] = made[from + k] || cepstra(this.speech(2 + 3 * (from + k), RATE))));
  }
}

// Magnitudes of the transform of n samples, by its definition, in which few cosines occur.
const TURNS = {};
function spectrum(wave, n) {
  const turn = TURNS[n] = TURNS[n] || [Math.cos, Math.sin].map((f) => Float64Array.from({length: n}, (_, i) => f(2 * Math.PI * i / n)));
  return Float32Array.from({length: n / 2 + 1}, (_, k) => {
    let re = 0, im = 0;
    for (let i = 0; i < wave.length; i++) {
      re += wave[i] * turn[0][k * i % n];
      im += wave[i] * turn[1][k * i % n];
    }
    return Math.hypot(re, im);
  });
}

// Ten cepstral coefficients of 49 windows of 40 ms, 40 mel bands from 20 to 4000 Hz: MLPerf Tiny's key words.
function cepstra(wave) {
  const mel = (hz) => 1127 * Math.log1p(hz / 700), low = mel(20), step = (mel(4000) - low) / 41, out = new Float32Array(490);
  for (let t = 0; t < 49; t++) {
    const window = wave.subarray(t * 320, t * 320 + 640).map((v, i) => v * (0.5 - 0.5 * Math.cos(2 * Math.PI * i / 640)));
    const magnitudes = spectrum(window, 1024), bands = new Float64Array(40);
    magnitudes.forEach((v, k) => {
      const place = (mel(k * RATE / 1024) - low) / step;
      for (let b = 0; b < 40; b++) bands[b] += v * Math.max(0, 1 - Math.abs(place - b - 1));
    });
    for (let c = 0; c < 10; c++) out[t * 10 + c] = bands.reduce((s, v, b) => s + Math.log(v + 1e-6) * Math.cos(Math.PI * c * (b + 0.5) / 40), 0) / Math.sqrt(20);
  }
  return tensor('float', [1, 1, 49, 10], out);
}

// Of pictures: one after the other alone, or all at once.
const each = (make) => (r, batch, i) => (i < (batch === 1 ? 3 : 1) ? [make(r, batch === 1 ? i : 3, batch)] : null);
const RGB = 'fit=crop', FROM_MINUS_1 = 'scale=1/128,mean=1,std=1,fit=crop';
const photo = (dims, how, size) => each((r, from, n) => r.photos(from, n, dims, how, size));
const clothes = (size) => each((r, from, n) => r.clothes(from * 100, n, size));

// Per model: the inputs of step i, in order; last: what the runtime answered before, by names
const SOURCES = {
  cifar_resnet20_akamaster: photo([3, 32, 32], 'imagenet'),
  'coral_mobilenet_v1_0.75_192_qdq': photo([3, 192, 192], FROM_MINUS_1),
  'coral_mobilenet_v2_1.0_224_fp32deq': photo([3, 224, 224], FROM_MINUS_1),
  'coral_mobilenet_v2_1.0_224_qdq': photo([3, 224, 224], FROM_MINUS_1),
  dtln_model_1: (r, batch, i, last) => (i < 5 ? [tensor('float', [1, 1, 257], spectrum(r.speech(3 + i * 128 / RATE, 512), 512)), last ? last.tf_op_layer_stack_2 : zeros([1, 2, 128, 2])] : null),
  fashion_lenetlite: clothes(1),
  fashion_mobilenetv2_tiny: clothes(1),
  fashion_resnet8: clothes(1),
  mlptiny_ic_resnet8_fp32: photo([3, 32, 32], RGB, 255),
  mlptiny_ic_resnet8_int8: photo([3, 32, 32], RGB, 255),
  mlptiny_kws_dscnn_fp32: each((r, from, n) => r.words(from, n)),
  mlptiny_kws_dscnn_int8: each((r, from, n) => r.words(from, n)),
  'mnist-8': clothes(255),
  mobilenet_v1_025_224_imagenet: photo([3, 224, 224], 'tf'),
  ppocrv2_rec_en_number: each((r, from, n) => r.texts(from, n, [3, 32, 736], 'ppocr')),
  ppocrv3_det_ch: each((r, from, n) => r.texts(from + 1, n, [3, 128, 704], 'imagenet,fit=stretch')),
  'shufflenet-v2-12-int8': photo([3, 224, 224], 'imagenet'),
  'shufflenet-v2-12_fp32_dequantized': photo([3, 224, 224], 'imagenet'),
  silero_vad_op18_ifless: (r, batch, i, last) => { // 32 ms, behind the last 4 ms of those before
    if (i > 4) return null;
    const frame = (k) => tensor('float', [1, 576], r.speech(3 + 7 * k + (i * 512 - 64) / RATE, 576));
    return [stack(Array.from({length: batch}, (_, k) => frame(k))), tensor('int64', [], BigInt64Array.of(16000n)), last ? last.stateN : zeros([2, batch, 128])];
  },
  'squeezenet1.1_fp32_from_fp16': photo([3, 224, 224], 'caffe'),
  super_resolution_onnxmodels: photo([1, 224, 224], RGB),
  'ultraface_RFB-320_simplified': photo([3, 240, 320], 'scale=1/128,mean=0.9921875,std=1,fit=stretch'),
  yolox_nano: photo([3, 416, 416], 'yolox'),
};

// A prompt, then two words behind it as the runtime chooses them; in a batch three prompts, cut to one length.
function prompted(ids) {
  return (r, batch, i, last, metadata) => {
    if (i > 2) return null;
    const list = batch === 1 ? [ids[2]] : [ids[1], ids[2], ids[3]], length = Math.min(...list.map((p) => p.length));
    const words = i === 0 ? list.map((p) => p.slice(0, length)) : list.map((_, b) => {
      const [, rows, size] = last.logits.dims, row = last.logits.data.subarray(((b + 1) * rows - 1) * size, (b + 1) * rows * size);
      return [row.indexOf(Math.max(...row))];
    });
    const past = i === 0 ? 0 : length + i - 1, now = words[0].length, whole = (n, make) => tensor('int64', [batch, n], BigInt64Array.from({length: batch * n}, (_, k) => BigInt(make(k))));
    return metadata.map((m) => {
      if (m.name === 'input_ids') return whole(now, (k) => words[Math.floor(k / now)][k % now]);
      if (m.name === 'attention_mask') return whole(past + now, () => 1);
      if (m.name === 'position_ids') return whole(now, (k) => past + k % now);
      return last ? last[m.name.replace('past_key_values', 'present')] : zeros([batch, m.shape[1], 0, m.shape[3]]);
    });
  };
}

// What a model's file is fed: source(real, batch, i, last, metadata), null behind the last step; null: nothing is known of it
function sourceOf(shared, file) {
  const folder = path.relative(path.join(shared, 'llm'), file).split(path.sep)[0];
  const all = JSON.parse(fs.readFileSync(path.join(shared, 'llm/prompts.json'))), ids = all[folder] || (folder === 'qwen2tiny' ? all.stories260k : null);
  return folder === '..' ? SOURCES[path.basename(file, '.onnx')] || null : ids && prompted(ids);
}

module.exports = {Real, sourceOf, stack};
