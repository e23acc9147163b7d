// SPDX-License-Identifier: MIT
// LSTM by the formulas of ONNX's text, in doubles: what is judged where ONNX Runtime reads that text in another way.
// With attrs.rounds each sample's state is rounded to 8 bits as DynamicQuantizeLinear does, before it is multiplied.
'use strict';

const CURVES = {
  Sigmoid: (x) => 1 / (1 + Math.exp(-x)), Tanh: Math.tanh, Relu: (x) => Math.max(0, x), Softsign: (x) => x / (1 + Math.abs(x)),
  Softplus: (x) => Math.max(0, x) + Math.log1p(Math.exp(-Math.abs(x))),
};

function rounded(h) {
  const low = Math.min(0, ...h), step = (Math.max(0, ...h) - low) / 255 || 1, zero = Math.round(-low / step);
  return h.map((v) => (Math.min(255, Math.max(0, Math.round(v / step) + zero)) - zero) * step);
}

// One sample in one direction. w: [4H][I], r: [4H][H], b: [8H], p: [3H]; h and c are written.
function steps(x, w, r, b, p, h, c, attrs, curves, backward, put) {
  const size = h.length, {clip, input_forget: coupled} = attrs, at = (k) => (clip ? Math.max(-clip.f, Math.min(clip.f, k)) : k);
  const [f, g, last] = curves.map((name) => (k) => CURVES[name](at(k)));
  for (let n = 0; n < x.length; n++) {
    const t = backward ? x.length - 1 - n : n, before = attrs.rounds ? rounded(h) : [...h];
    const gate = (i, k) => w[i * size + k].reduce((s, v, j) => s + v * x[t][j], 0) + r[i * size + k].reduce((s, v, j) => s + v * before[j], 0) +
        (b ? b[i * size + k] + b[(4 + i) * size + k] : 0);
    for (let k = 0; k < size; k++) {
      const i = f(gate(0, k) + (p ? p[k] * c[k] : 0)), forget = coupled ? 1 - i : f(gate(2, k) + (p ? p[2 * size + k] * c[k] : 0));
      c[k] = forget * c[k] + i * g(gate(3, k));
      h[k] = f(gate(1, k) + (p ? p[size + k] * c[k] : 0)) * last(c[k]);
    }
    put(t, h);
  }
}

// Y, Y_h and Y_c, flat, of plain arrays: x [T][B][I], w [D][4H][I], r [D][4H][H]; b, p, h0, c0: flat or null.
module.exports = function lstm(x, w, r, b, lengths, h0, c0, p, attrs) {
  const [time, batch, dirs, size] = [x.length, x[0].length, w.length, r[0][0].length];
  const part = (v, i, n) => v && Array.from(v.slice(i * n, i * n + n), Number), ways = attrs.direction || 'forward';
  const y = new Float64Array(time * dirs * batch * size), yh = [], yc = [];
  for (let d = 0; d < dirs; d++)
    for (let s = 0; s < batch; s++) {
      const h = part(h0, d * batch + s, size) || Array(size).fill(0), c = part(c0, d * batch + s, size) || Array(size).fill(0);
      const rows = x.slice(0, lengths ? Number(lengths[s]) : time).map((all) => all[s]);
      const curves = attrs.activations ? attrs.activations.strings.slice(3 * d, 3 * d + 3) : ['Sigmoid', 'Tanh', 'Tanh'];
      steps(rows, w[d], r[d], part(b, d, 8 * size), part(p, d, 3 * size), h, c, attrs, curves, d === 1 || ways === 'reverse',
            (t, v) => y.set(v, ((t * dirs + d) * batch + s) * size));
      yh.push(...h);
      yc.push(...c);
    }
  return [y, yh, yc];
};
