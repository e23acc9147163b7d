// SPDX-License-Identifier: MIT
// Compares with ONNX Runtime whatever a test asks for, in one process, because each takes longer to begin than to compare.
// Each line of the standard input has words, a tab behind each; the answer is lines, and behind them "done 0" or "done 1".
//   node answer.js ORT_FOLDER
'use strict';
const path = require('path');
const readline = require('readline');
const {agree} = require('./agree.js');
const {taps, images, cut, compared} = require('./peer.js');

const ort = require(path.resolve(process.argv[2], 'node_modules', 'onnxruntime-node'));
const VERBS = {
  agree: (args, say) => agree(ort, args, say),
  compare: (args, say) => compared(ort, args, say),
  optimize: async ([model, out]) => {
    const session = await ort.InferenceSession.create(model, {graphOptimizationLevel: 'extended', optimizedModelFilePath: out});
    await session.release();
    return true;
  },
  taps: ([model, out]) => (taps(model, out), true),
  images: ([idx, count, out]) => (images(idx, Number(count), out), true),
  cut: ([idx, first, count, out]) => (cut(idx, Number(first), Number(count), out), true),
};

async function main() {
  for await (const line of readline.createInterface({input: process.stdin})) {
    const [verb, ...args] = line.split('\t').slice(0, -1), said = [];
    let good = false;
    try {
      good = await VERBS[verb](args, (text) => said.push(text));
    } catch (e) {
      said.push(`${verb}: ${e.message}`);
    }
    process.stdout.write([...said, `done ${good ? 0 : 1}`, ''].join('\n'));
  }
}

main();
