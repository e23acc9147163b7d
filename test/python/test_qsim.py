# SPDX-License-Identifier: MIT
"""The Python binding against plain numpy. Usage: test_qsim.py FOLDER_OF_QSIM (QSIM_LIBRARY set)."""

import gc
import json
import multiprocessing
import os
import sys
import tempfile
import threading
import unittest

import numpy as np

sys.path.insert(0, sys.argv.pop(1))
import qsim  # noqa: E402

RNG = np.random.default_rng(7)


def plain_quantize(x, scale, zero_point, low, high):
    """numpy's rint rounds half to even, as the definition says."""
    q = np.rint(x.astype(np.float32) / np.float32(scale)) + zero_point
    return np.clip(q, low, high)


def plain_conv(x, w, stride, pad, dilation, groups):
    n, c, h, width = x.shape
    o, cg, kh, kw = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    oh = (h + 2 * pad - dilation * (kh - 1) - 1) // stride + 1
    ow = (width + 2 * pad - dilation * (kw - 1) - 1) // stride + 1
    y = np.zeros((n, o, oh, ow), np.int64)
    for k in range(o):
        first = k // (o // groups) * cg
        for i in range(kh):
            for j in range(kw):
                part = x[:, first:first + cg, i * dilation:i * dilation + stride * oh:stride,
                         j * dilation:j * dilation + stride * ow:stride][:, :, :oh, :ow]
                y[:, k] += np.einsum("nchw,c->nhw", part, w[k, :, i, j])
    return y


class Build(unittest.TestCase):
    def test_linear(self):
        w, bias = RNG.normal(size=(4, 3)).astype(np.float32), np.ones(3, np.float32)
        b = qsim.Builder("linear").input("x", "float[N,4]").output("y")
        b.constant("W", w).constant("b", bias)
        b.node("MatMul", "x,W", "xW")
        b.node("Add", "xW,b", "y")
        model = b.finish()
        x = RNG.normal(size=(5, 4)).astype(np.float32)
        y, = model.run(x)
        np.testing.assert_allclose(y, x @ w + bias, rtol=1e-5, atol=1e-5)
        self.assertEqual(model.outputs[0].shape, ("N", 3))
        with self.assertRaises(qsim.Error):
            b.finish()

    def test_attributes(self):
        b = qsim.Builder(opset=13).input("x", "float[1,2,6,6]").output("y")
        b.constant("w", np.ones((1, 2, 3, 3), np.float32))
        b.node("Conv", "x,w", "c", pads=[1, 1, 1, 1], auto_pad="NOTSET", group=1)
        b.node("Constant", "", "k", value=np.full(1, 2, np.float32))
        b.node("Mul", "c,k", "d").node("LeakyRelu", "d", "y", alpha=0.5).metadata("who", "test")
        y, = b.finish().run(np.full((1, 2, 6, 6), -1, np.float32))
        self.assertEqual(y.shape, (1, 1, 6, 6))
        self.assertEqual(y[0, 0, 2, 2], -18)
        with self.assertRaises(TypeError):
            qsim.Builder().node("Relu", "x", "y", what=None)

    def test_mistakes_are_told_at_the_end(self):
        b = qsim.Builder().input("x", "float[N,").output("y").node("Relu", "x", "y")
        with self.assertRaisesRegex(qsim.Error, "float.N,64"):
            b.finish()


class Affine(unittest.TestCase):
    def test_choose(self):
        # ONNX Runtime's own test pairs.
        self.assertEqual(qsim.choose(-1, 2, "uint8")[1], 85)
        scale, zero = qsim.choose(-1, 2, "int8", symmetric=True, narrow=True)
        self.assertEqual(zero, 0)
        self.assertAlmostEqual(scale, 2 / 127, places=7)

    def test_the_classic_trap(self):
        x = np.array([1, 2.5, 3, 4.5, 5], np.float32)
        q = qsim.quantize(x, 0.1, 128, "uint8")
        self.assertLessEqual(np.abs(qsim.dequantize(q, 0.1, 128) - x).max(), 0.05 + 1e-6)
        self.assertTrue((qsim.quantize(x, 0.1, 128, "int8") == 127).all())  # saturates, never wraps

    def test_tensor_and_channel(self):
        x = RNG.normal(size=(3, 4, 5)).astype(np.float32)
        self.assertTrue((qsim.quantize(x, 0.02, 7, "int8") ==
                         plain_quantize(x, 0.02, 7, -128, 127)).all())
        scale, zero = qsim.measure(x, "int8", axis=1, symmetric=True, narrow=True)
        self.assertEqual(scale.shape, (4,))
        np.testing.assert_allclose(scale, np.abs(x).max(axis=(0, 2)) / 127, rtol=1e-6)
        q = qsim.quantize(x, scale, zero, "int8", axis=1)
        expected = plain_quantize(x / 1, scale.reshape(1, 4, 1), 0, -128, 127)
        self.assertTrue((q == expected).all())
        back = qsim.dequantize(q, scale, zero, axis=1)
        self.assertTrue((np.abs(back - x) <= scale.reshape(1, 4, 1) * 0.5001).all())

    def test_blocks_and_nibbles(self):
        x = RNG.normal(size=(8, 3)).astype(np.float32)
        scale, zero = qsim.measure(x, "int4", axis=0, block=4, symmetric=True)
        self.assertEqual(scale.shape, (2, 3))
        packed = qsim.quantize(x, scale, zero, "int4", axis=0, block=4)
        self.assertEqual(packed.size, 12)
        back = qsim.dequantize(packed, scale, zero, "int4", axis=0, block=4, shape=x.shape)
        full = np.repeat(scale, 4, axis=0)
        self.assertTrue((np.abs(back - x) <= full * 0.5001).all())
        first = plain_quantize(x[0, 0], scale[0, 0], zero[0, 0], -8, 7)
        self.assertEqual(packed[0] & 15, int(first) & 15)  # the first element is the low nibble

    def test_errors(self):
        with self.assertRaises(qsim.Error) as caught:
            qsim.quantize([1.0], -1.0, 0)
        self.assertEqual(caught.exception.name, "QSIM_E_VALUE")
        with self.assertRaises(TypeError):
            qsim.quantize([1.0], 1.0, 0, "complex64")
        with self.assertRaisesRegex(qsim.Error, r"\[2, 1\] as uint8: value out of range"):
            qsim.choose(2, 1)
        with self.assertRaisesRegex(ValueError, "bytes of int4 do not say their shape"):
            qsim.dequantize(np.zeros(2, np.uint8), 0.1, dtype="int4")

    def test_scalars_keep_their_rank(self):
        q = qsim.quantize(np.float32(3), 0.5)
        self.assertEqual((q.shape, int(q)), ((), 6))
        self.assertEqual(qsim.dequantize(q, 0.5).shape, ())
        self.assertEqual(qsim.requantize(np.int32(6), 0.5).shape, ())

    def test_byte_order_and_alignment(self):
        for order in "<>":
            self.assertEqual(qsim.dequantize(np.array([10, -20], order + "i2"), 0.5).tolist(), [5, -10])
            there = np.array([1, 2], order + "f4")
            self.assertEqual(qsim.compare(there, np.array([1, 2], np.float32))["max_abs"], 0)
            b = qsim.Builder().input("x", "float[2]").output("y")
            model = b.constant("c", there).node("Add", "x,c", "y").finish()
            for x in (there, np.frombuffer(b"-" + there.tobytes(), there.dtype, offset=1)):
                self.assertEqual(model.run(x)[0].tolist(), [2, 4])
                self.assertEqual(qsim.Calibration(model).feed(x).range("y"), (0, 4))


class Layers(unittest.TestCase):
    def test_conv2d(self):
        for stride, pad, dilation, groups in [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (1, 1, 1, 6)]:
            x = RNG.integers(0, 256, (2, 6, 9, 8), np.uint8)
            w = RNG.integers(-128, 128, (12, 6 // groups, 3, 3)).astype(np.int8)
            bias = RNG.integers(-1000, 1000, 12).astype(np.int32)
            expected = plain_conv(x.astype(np.int64) - 100, w.astype(np.int64), stride, pad, dilation,
                                  groups) + bias.reshape(1, 12, 1, 1)
            options = dict(stride=stride, padding=pad, dilation=dilation, groups=groups,
                           x_zero_point=100, bias=bias)
            self.assertTrue((qsim.conv2d(x, w, **options) == expected).all())
            m = RNG.uniform(1e-4, 1e-3, 12).astype(np.float32)
            y = qsim.conv2d(x, w, multiplier=m, y_zero_point=10, relu=True, **options)
            v = expected.astype(np.float32) * m.reshape(1, 12, 1, 1)
            self.assertTrue((y == np.rint(np.clip(v, 0, 245)) + 10).all())

    def test_linear(self):
        for xt, wt in [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8), (np.int8, np.uint8)]:
            x = RNG.integers(np.iinfo(xt).min, np.iinfo(xt).max + 1, (5, 37)).astype(xt)
            w = RNG.integers(np.iinfo(wt).min, np.iinfo(wt).max + 1, (11, 37)).astype(wt)
            expected = (x.astype(np.int64) - 3) @ (w.astype(np.int64) - 4).T
            self.assertTrue((qsim.linear(x, w, x_zero_point=3, w_zero_point=4) == expected).all())

    def test_requantize(self):
        acc = np.array([[-3, -1, 1, 3, 1000, -1000]], np.int32)
        self.assertEqual(qsim.requantize(acc, 0.5, 1, "uint8").tolist(), [[0, 1, 1, 3, 255, 0]])
        self.assertEqual(qsim.requantize(acc, 0.5, 1, "int8", lo=1).tolist(), [[1, 1, 1, 3, 127, 1]])

    def test_operands_that_do_not_fit(self):
        x, w = np.zeros((1, 3, 4, 4), np.uint8), np.zeros((2, 3, 3, 3), np.int8)
        with self.assertRaisesRegex(ValueError, "bias is .1,., one for each of 2 channels"):
            qsim.conv2d(x, w, bias=[1])
        with self.assertRaisesRegex(TypeError, "integers are needed, not float64"):
            qsim.conv2d(x, w, bias=[1.5, 2])
        with self.assertRaisesRegex(ValueError, "1 to 2147483648 does not fit int32"):
            qsim.conv2d(x, w, bias=[1, 2**31])
        with self.assertRaisesRegex(ValueError, "4 axes, not 3 and 4"):
            qsim.conv2d(x[0], w)
        with self.assertRaisesRegex(ValueError, "stride 0"):
            qsim.conv2d(x, w, stride=0)
        with self.assertRaisesRegex(ValueError, "3, 3. does not fit an image of .2, 4"):
            qsim.conv2d(x[:, :, :2], w)
        with self.assertRaisesRegex(ValueError, "2 axes, not 1 and 2"):
            qsim.linear(x[0, 0, 0], w[0, 0])
        with self.assertRaisesRegex(TypeError, "integers are needed, not float32"):
            qsim.requantize(np.ones((1, 2), np.float32), 1.0)
        for option in ("x_zero_point", "y_zero_point"):
            with self.assertRaisesRegex(ValueError, "does not fit int32"):
                qsim.linear(x[0, 0], w[0, 0, :, :1], **{option: 2**32 + 5})
        with self.assertRaisesRegex(ValueError, "does not fit int32"):
            qsim.requantize(np.ones((1, 2), np.int32), 1.0, zero_point=2**32 + 5)


class Observers(unittest.TestCase):
    def test_merge_is_exact(self):
        x = RNG.normal(size=100000).astype(np.float32)
        whole = qsim.Observer().feed(x)
        parts = [qsim.Observer().feed(p) for p in np.array_split(x, 7)]
        merged = qsim.Observer()
        for part in reversed(parts):
            merged.merge(part)
        self.assertEqual(merged.count, x.size)
        self.assertEqual(merged.limits, (float(x.min()), float(x.max())))
        for method in ("minmax", "percentile", "mse", "entropy"):
            self.assertEqual(whole.range(method), merged.range(method))
        low, high = whole.range("percentile", 99.0)
        self.assertAlmostEqual(high, float(np.quantile(x, 0.995)), delta=0.02)

    def test_bins(self):
        x = RNG.normal(size=1000).astype(np.float32)
        coarse, fine = qsim.Observer(bins=128).feed(x), qsim.Observer().feed(x)
        width = [edges[1] - edges[0] for edges in (coarse.histogram()[1], fine.histogram()[1])]
        self.assertEqual(width[0], 16 * width[1])
        with self.assertRaises(qsim.Error):
            qsim.Observer(bins=100)

    def test_nan(self):
        with self.assertRaises(qsim.Error):
            qsim.Observer().feed([1.0, float("nan")])


class Models(unittest.TestCase):
    def setUp(self):
        shared = os.environ.get("QSIM_SHARED", "../shared")
        path = os.path.join(shared, "models", "fashion_lenetlite.onnx")
        if not os.path.exists(path):
            if os.environ.get("QSIM_REQUIRE_SHARED") == "1":
                self.fail(f"missing: {path}")
            self.skipTest(f"no {path}")
        self.model = qsim.Model.load(path)
        self.images = RNG.uniform(0, 1, (16, 1, 28, 28)).astype(np.float32)

    def test_what_a_model_says(self):
        self.assertEqual(self.model.inputs[0].shape[1:], (1, 28, 28))
        self.assertIsInstance(self.model.inputs[0].shape[0], str)
        self.assertIn("Conv", [n.op_type for n in self.model.nodes])
        for node in self.model.nodes:
            if node.op_type == "Conv":  # data, weights and a bias
                self.assertEqual(node.operands, node.inputs)
            if node.op_type == "Reshape":  # the second input is the shape
                self.assertEqual(node.operands, node.inputs[:1])
        self.assertEqual(self.model.parameters, 20522)

    def test_attributes(self):
        conv = next(n for n in self.model.nodes if n.op_type == "Conv").attributes
        self.assertEqual((conv["kernel_shape"], conv["group"]), ([5, 5], 1))
        gemm = next(n for n in self.model.nodes if n.op_type == "Gemm").attributes
        self.assertEqual(gemm, {"alpha": 1.0, "beta": 1.0, "transB": 1})
        self.assertEqual(next(n for n in self.model.nodes if n.op_type == "Relu").attributes, {})
        b = qsim.Builder(opset=17).input("x", "float[1,2]")
        b.node("Constant", "", "c", value=np.float32([[3, 4]]))
        b.node("Constant", "", "p", value_ints=[0, 1, 0, 1]).node("Add", "x,c", "s")
        model = b.node("Pad", "s,p", "y", mode="reflect").output("y").finish()
        found = {n.outputs[0]: n.attributes for n in model.nodes}
        self.assertEqual(found["c"]["value"].tolist(), [[3, 4]])
        self.assertEqual((found["p"], found["y"]), ({"value_ints": [0, 1, 0, 1]}, {"mode": "reflect"}))
        b = qsim.Builder(opset=17).input("x", "float[1,1,1]").constant("w", np.ones((1, 1, 1), np.float32))
        rnn = b.node("RNN", "x,w,w", "y", hidden_size=1, activations=["Relu"]).output("y").finish()
        self.assertEqual(rnn.nodes[0].attributes, {"hidden_size": 1, "activations": ["Relu"]})
        self.assertEqual(rnn.run(np.float32([[[3]]]))[0].ravel().tolist(), [3])

    def test_run_in_batches(self):
        session = qsim.Session(self.model)
        whole, = session.run(self.images)
        singles = np.concatenate([session.run(self.images[i:i + 1])[0] for i in range(16)])
        self.assertTrue((whole == singles).all())
        again, = session.run(**{session.input_names[0]: self.images})
        self.assertTrue((whole == again).all())
        with self.assertRaises(qsim.Error) as caught:
            session.run(self.images.astype(np.float64))
        self.assertEqual(caught.exception.name, "QSIM_E_DTYPE")

    def test_quantize_modes(self):
        reference = self.model.run(self.images)[0]
        for options in ({"mode": "dynamic"}, {"mode": "dynamic", "per_row": True},
                        {"mode": "weights"}):
            out = self.model.quantize(**options).run(self.images)[0]
            self.assertGreater(qsim.compare(reference, out)["sqnr_db"], 20)
        with self.assertRaises(qsim.Error) as caught:
            self.model.quantize()
        self.assertEqual(caught.exception.name, "QSIM_E_ARGUMENT")

    def test_quantize(self):
        calibration = qsim.Calibration(self.model).feed(self.images)
        self.assertEqual(calibration.samples, 16)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.qcal")
            calibration.save(path)
            again = qsim.Calibration.load(path)
        self.assertEqual(again.tensors, calibration.tensors)
        name = calibration.tensors[0]
        self.assertEqual(again.range(name), calibration.range(name))
        int8 = self.model.quantize(calibration, method="minmax")
        self.assertEqual(int8.dumps(), self.model.quantize(again).dumps())  # same inputs, same bytes
        reference, quantized = self.model.run(self.images)[0], int8.run(self.images)[0]
        metrics = qsim.compare(reference, quantized)
        self.assertGreater(metrics["sqnr_db"], 20)
        d = reference.astype(np.float64) - quantized
        self.assertAlmostEqual(metrics["sqnr_db"],
                               10 * np.log10((reference.astype(np.float64) ** 2).sum() / (d ** 2).sum()),
                               places=6)
        self.assertAlmostEqual(metrics["max_abs"], np.abs(d).max(), places=6)
        loaded = qsim.Model.loads(int8.dumps())
        del int8, calibration
        gc.collect()
        self.assertTrue((loaded.run(self.images)[0] == quantized).all())
        with self.assertRaises(qsim.Error) as caught:
            self.model.quantize(again, rules=[("no such node", "fp32")])
        self.assertEqual(caught.exception.name, "QSIM_E_NOT_FOUND")
        with self.assertRaises(TypeError):
            self.model.quantize(again, methode="mse")

    def test_recipe(self):
        calibration, decided = qsim.Calibration(self.model).feed(self.images), qsim.Recipe()
        first = self.model.quantize(calibration, decided=decided, method="mse",
                                    weight_scheme="tensor")
        self.assertGreater(len(decided), 4)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.qrecipe")
            decided.save(path)
            again = qsim.Recipe.load(path)
        self.assertEqual(str(again), str(decided))
        self.assertEqual(self.model.quantize(calibration, recipe=again).dumps(), first.dumps())
        with self.assertRaises(qsim.Error) as caught:  # it has no means
            self.model.quantize(recipe=again)
        self.assertIn("bias-correction on, which needs a calibration", str(caught.exception))
        plain, decided = {"bias_correction": False}, qsim.Recipe()
        first = self.model.quantize(calibration, decided=decided, **plain)
        self.assertEqual(self.model.quantize(recipe=decided).dumps(), first.dumps())
        layer = next(line for line in str(decided).splitlines() if line.startswith("layer"))
        floats = qsim.Recipe(f"qsim-recipe 1\n{layer.split(' weights')[0]} float\n")
        self.assertEqual(len(again.merge(floats)), len(decided))
        self.assertNotEqual(self.model.quantize(calibration, recipe=again).dumps(), first.dumps())
        with self.assertRaises(qsim.Error) as caught:
            qsim.Recipe("qsim-recipe 1\nlayer \"x\" weights int3\n")
        self.assertIn("line 2", str(caught.exception))

    def test_threads(self):
        session = [qsim.Session(self.model) for _ in range(4)]
        results = [None] * 4

        def work(i):
            for _ in range(20):
                results[i] = session[i].run(self.images)[0]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for r in results[1:]:
            self.assertTrue((r == results[0]).all())

    @unittest.skipUnless(os.path.isdir("/proc/self/task"), "no /proc")
    def test_one_context(self):
        """All objects share one context, so one set of threads."""
        self.model.run(np.repeat(self.images, 64, 0))
        before = len(os.listdir("/proc/self/task"))
        keep = [qsim.Model.loads(self.model.dumps()) for _ in range(4)]
        for model in keep:
            model.run(np.repeat(self.images, 64, 0))
        keep += [qsim.Observer() for _ in range(8)]
        self.assertEqual(len(os.listdir("/proc/self/task")), before)

    def test_own_context(self):
        want, = self.model.run(self.images)
        for options in ({"threads": 1}, {"threads": 3}, {"isa": "c"}, {"threads": 2, "isa": "c"}):
            got, = qsim.Session(self.model, **options).run(self.images)
            self.assertTrue((got == want).all())
        with self.assertRaises(ValueError):
            qsim.Session(self.model, isa="mmx")
        with self.assertRaises(qsim.Error) as caught:
            qsim.Session(self.model, threads=-1)
        self.assertEqual(caught.exception.name, "QSIM_E_ARGUMENT")

    def test_fork(self):
        """Sessions made before multiprocessing forks work in the children, threads and all."""
        x = np.random.default_rng(3).random((192, 192), dtype=np.float32)
        builder = qsim.Builder("g").input("x", "float[192,192]").output("y")
        builder.constant("w", x).node("MatMul", "x,w", "y")
        session = qsim.Session(builder.finish(), threads=4)
        expected = session.run(x)[0]  # starts the threads
        before = multiprocessing.get_context("fork")
        answers = before.SimpleQueue()
        children = [before.Process(target=lambda: answers.put(session.run(x)[0]))
                    for _ in range(2)]
        for child in children:
            child.start()
        for _ in children:
            np.testing.assert_array_equal(answers.get(), expected)
        for child in children:
            child.join(60)
            self.assertEqual(child.exitcode, 0)
        np.testing.assert_array_equal(session.run(x)[0], expected)

    def test_threads_take_turns(self):
        session = qsim.Session(self.model)
        want = [session.run(image[None])[0] for image in self.images[:4]]
        wrong = []

        def work(i):
            for _ in range(300):
                if not (session.run(self.images[i:i + 1])[0] == want[i]).all():
                    wrong.append(i)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_each_thread_has_a_run(self):
        """While one thread is inside of a run, another one gets memory of its own."""
        session = qsim.Session(self.model)
        with session._running() as first, session._running() as second:
            self.assertIsNot(first, second)
        with session._running() as again:
            self.assertIn(again, (first, second))

    def test_scalar_inputs(self):
        b = qsim.Builder().input("x", "float[N,2]").input("s", "float[]").output("y")
        model = b.node("Mul", "x,s", "y").finish()
        x = np.ones((3, 2), np.float32)
        self.assertEqual(model.run(x, np.float32(2))[0].tolist(), [[2, 2]] * 3)
        self.assertEqual(qsim.Calibration(model).feed(x, np.float32(2)).samples, 3)

    def test_unknown_words(self):
        session, name = qsim.Session(self.model), self.model.inputs[0].name
        for arrays, named, wrong in [((), {"nothing": 1}, f"no input 'nothing'; the model's are {name}$"),
                                     ((self.images,), {"nothing": 1}, "no input 'nothing'"),
                                     ((self.images,), {name: self.images}, f"input '{name}' is given twice")]:
            with self.assertRaisesRegex(TypeError, wrong):
                session.run(*arrays, **named)
        with self.assertRaisesRegex(TypeError, "not the path 'cat.jpg': .* PIL or OpenCV"):
            session.run("cat.jpg")
        with self.assertRaisesRegex(ValueError, "'most' is none of default, disable, basic"):
            self.model.optimize("most")
        with self.assertRaisesRegex(ValueError, "'int2' is none of fp32, int8, int4, int16"):
            self.model.quantize(None, rules=[("*", "int2")])

    def test_wide_activations(self):
        calibration = qsim.Calibration(self.model).feed(self.images[:64])
        want = self.model.run(self.images[:64])[0]
        errors = []
        for options in ({}, {"activation_type": "uint16"}, {"rules": [("*", "int16")]}):
            got = self.model.quantize(calibration, weight_scheme="channel-asymmetric", **options).run(self.images[:64])[0]
            errors.append(float(np.square(got - want).mean()))
        self.assertLess(errors[1], errors[0])
        self.assertEqual(errors[1], errors[2])

    def test_package(self):
        with tempfile.TemporaryDirectory() as folder:
            onnx, path = os.path.join(folder, "m.onnx"), os.path.join(folder, "p.zip")
            self.model.save(onnx)
            qsim.Package.write(path, onnx, labels="a\nb\n", note="text", compress=True)
            package = qsim.Package.open(path)
            self.assertEqual(package.names, ["SHA256SUMS", "labels.txt", "m.onnx", "manifest.json"])
            self.assertEqual(package.read("labels.txt"), b"a\nb\n")
            model, loaded = package.model(), qsim.Model.load(path)
            package.unpack(os.path.join(folder, "out"))
            del package
            gc.collect()
            wanted, = self.model.run(self.images)
            for m in (model, loaded, qsim.Model.load(os.path.join(folder, "out", "m.onnx"))):
                self.assertTrue((m.run(self.images)[0] == wanted).all())
            with self.assertRaises(qsim.Error) as caught:
                qsim.Package.open(onnx)
            self.assertEqual(caught.exception.name, "QSIM_E_FORMAT")
            with self.assertRaises(TypeError):
                qsim.Package.write(path, onnx, label="a")
            with self.assertRaisesRegex(TypeError, r"Package.open\(path\) makes a Package"):
                qsim.Package(path)

    def test_profile(self):
        session = qsim.Session(self.model)
        profile = session.profile(self.images, runs=3)
        self.assertEqual(profile.runs, 3)
        self.assertAlmostEqual(sum(step["share"] for step in profile), 100, places=6)
        self.assertEqual(profile[-1]["outputs"],
                         [(str(x.dtype), x.shape) for x in session.run(self.images)])
        self.assertGreater(sum(step["macs"] for step in profile), 0)
        self.assertEqual(len(profile.top(1)), 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            profile.save_trace(path)
            with open(path, encoding="utf-8") as f:
                events = json.load(f)
            self.assertEqual(os.listdir(folder), ["trace.json"])
        self.assertEqual(len(events), 3 * (1 + len(profile)))
        self.assertEqual({e["ph"] for e in events}, {"X"})
        self.assertEqual(sum(e["cat"] == "Node" for e in events), 3 * len(profile))
        self.assertEqual(profile.deferred_us, 0)
        model = (qsim.Builder().input("x", "float[4]").node("Abs", "x", "a")
                 .node("NonZero", "a", "y").output("y").finish())
        profile = qsim.Session(model).profile(np.float32([0, 1, 0, 1]), runs=2)
        self.assertEqual([s["op_type"] for s in profile], ["Abs"])
        self.assertGreater(profile.deferred_us, 0)
        with self.assertRaises(qsim.Error):
            session.profile(self.images[:, :1, :1])
        self.assertEqual(session.profile(self.images, runs=1).runs, 1)  # the failed one has ended

    def test_wrong_objects(self):
        with self.assertRaisesRegex(TypeError, r"Model.load\(path\) makes a Model"):
            qsim.Model()
        calibration = qsim.Calibration(self.model).feed(self.images)
        with self.assertRaisesRegex(TypeError, "a Model, the path of one or its bytes are needed, not ndarray"):
            qsim.Session(self.images)
        with self.assertRaisesRegex(qsim.Error, "nowhere.onnx: cannot open"):
            qsim.Session("nowhere.onnx")
        with self.assertRaisesRegex(TypeError, "Calibration is needed, not Observer"):
            calibration.merge(qsim.Observer())
        with self.assertRaisesRegex(qsim.Error, "static quantization needs a calibration.*dynamic and weights need no data"):
            self.model.quantize()
        with self.assertRaisesRegex(TypeError, "outputs is a list of names"):
            qsim.Session(self.model, outputs="y")
        with self.assertRaisesRegex(qsim.Error, "range of 'nowhere' by minmax: no such name"):
            calibration.range("nowhere")

    def test_not_a_model(self):
        with self.assertRaises(qsim.Error) as caught:
            qsim.Model.loads(b"<!DOCTYPE html><html></html>")
        self.assertIn("HTML", caught.exception.message)
        with self.assertRaises(qsim.Error) as caught:
            qsim.Model.load("/nowhere/at/all.onnx")
        self.assertEqual(caught.exception.name, "QSIM_E_IO")


class Statistics(unittest.TestCase):
    def test_mcnemar(self):
        # Two-sided exact binomial: 2 * P(X <= 1), X ~ B(10, 1/2) = 2 * 11 / 1024.
        self.assertAlmostEqual(qsim.mcnemar(1, 9), 22 / 1024, places=12)
        self.assertEqual(qsim.mcnemar(5, 5), 1.0)
        with self.assertRaisesRegex(ValueError, "-1 and 3 have to be counts"):
            qsim.mcnemar(-1, 3)


if __name__ == "__main__":
    unittest.main(verbosity=1)
