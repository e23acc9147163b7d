// SPDX-License-Identifier: MIT
// Models whose layers are inside of If, Loop and Scan. x0: floats, x1: a number, which chooses the branch and is the trip count.
// Branches give different sizes, so that the If stays; weights are the main graph's, a branch's own, or both graphs'.
//   node nested.js FOLDER
'use strict';
const fs = require('fs');
const path = require('path');
const {Draw, model} = require('./draw.js');

const g = new Draw(7);

g.int = (low) => low; // sizes of inputs are free
const floats = (dims, size) => { const t = g.fill('float', dims, () => (2 * g.next() - 1) * size); return t; };
const constant = (name, t) => ['Constant', [], [name], {value: t}];
const branch = (nodes, output, inputs) => ({graph: {nodes, outputs: [].concat(output), ...(inputs ? {inputs} : {})}});
const one = constant('one', {type: 'int64', dims: [], data: BigInt64Array.from([1n])});
const chosen = [one, ['Equal', ['x1', 'one'], ['is_one']]];

const models = {
  // Convolutions and a product in each branch of an If; h and its weight are read inside, too.
  branches: () => ({
    inputs: [floats([2, 4, 8, 8], 1), g.scalar('int64', 1), floats([4, 4, 3, 3], 0.3), floats([4], 0.3)], outputs: 2, nodes: [...chosen,
      ['Conv', ['x0', 'x2', 'x3'], ['h'], {pads: [1, 1, 1, 1]}], ['Relu', ['h'], ['y1']],
      ['If', ['is_one'], ['y0'], {
        then_branch: branch([['Conv', ['y1', 'x2', 'x3'], ['a'], {pads: [1, 1, 1, 1]}], ['Relu', ['a'], ['r']],
                             constant('v', floats([6, 4, 1, 1], 0.5)), ['Conv', ['r', 'v'], ['c']]], 'c'),
        else_branch: branch([constant('k', floats([5, 4, 2, 2], 0.3)), ['Conv', ['y1', 'k'], ['a'], {strides: [2, 2]}], ['Sigmoid', ['a'], ['s']]], 's')}]]}),
  // A product of the carried state and a Gemm, whose results are stacked.
  loop: () => ({
    inputs: [floats([3, 32], 1), g.scalar('int64', 3), floats([32, 32], 0.2), floats([8, 32], 0.2), floats([8], 0.2)], outputs: 2, nodes: [
      ['Loop', ['x1', '', 'x0'], ['y0', 'y1'], {body: branch([['MatMul', ['s', 'x2'], ['m']], ['Tanh', ['m'], ['next']],
        ['Gemm', ['next', 'x3', 'x4'], ['row'], {transB: 1}], ['Identity', ['go'], ['more']]], ['more', 'next', 'row'],
      [['i', 'int64', []], ['go', 'bool', []], ['s', 'float']])}]]}),
  scan: () => ({
    inputs: [floats([5, 32], 1), g.scalar('int64', 1), floats([32, 32], 0.2), floats([1, 32], 1)], outputs: 2, nodes: [...chosen,
      ['Scan', ['x3', 'x0'], ['y0', 'y1'], {num_scan_inputs: 1, body: branch([['Add', ['s', 'x'], ['sum']], ['MatMul', ['sum', 'x2'], ['m']],
        ['Tanh', ['m'], ['next']], ['Identity', ['next'], ['row']]], ['next', 'row'], [['s', 'float'], ['x', 'float']])}]]}),
  // An If in the branch of an If, which captures a weight through both.
  deep: () => ({
    inputs: [floats([3, 32], 1), g.scalar('int64', 1), floats([32, 32], 0.2)], outputs: 1, nodes: [...chosen,
      ['If', ['is_one'], ['y0'], {
        then_branch: branch([['If', ['is_one'], ['b'], {
          then_branch: branch([['MatMul', ['x0', 'x2'], ['m']], ['Relu', ['m'], ['a']]], 'a'),
          else_branch: branch([['Concat', ['x0', 'x0'], ['a'], {axis: 0}]], 'a')}]], 'b'),
        else_branch: branch([constant('v', floats([32, 7], 0.2)), ['MatMul', ['x0', 'v'], ['m']]], 'm')}]]}),
};

for (const [name, make] of Object.entries(models)) {
  const c = make(), fixed = c.inputs.map((_, i) => i).slice(2);
  fs.writeFileSync(path.join(process.argv[2], `${name}.onnx`), model(g, {opset: 17, constants: 0, fixed, ...c}).bytes);
}
