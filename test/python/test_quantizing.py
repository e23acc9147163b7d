# SPDX-License-Identifier: MIT
"""Quantizing from Python: options and words, distances of answers, progress and Ctrl-C while it works.
Usage: test_quantizing.py FOLDER_OF_QSIM (QSIM_LIBRARY set)."""

import array
import os
import pathlib
import signal
import sys
import tempfile
import threading
import unittest

import numpy as np

sys.path.insert(0, sys.argv.pop(1))
import qsim  # noqa: E402

from nets import RNG, network, two_inputs  # noqa: E402


class Quantizing(unittest.TestCase):
    def setUp(self):
        self.model = network()
        self.data = [RNG.normal(size=(4, 1, 8, 8)).astype(np.float32) for _ in range(3)]

    def test_data(self):
        calibration = qsim.Calibration(self.model, quantize={}).feed_all(self.data)
        wanted = self.model.quantize(calibration).dumps()
        for data in (iter(self.data), [(x,) for x in self.data], [{"x": x} for x in self.data]):
            self.assertEqual(qsim.quantize(self.model, data=data).dumps(), wanted)
        one = qsim.Calibration(self.model, quantize={}).feed(self.data[0])
        wanted = self.model.quantize(one).dumps()
        for data in (self.data[0], {"x": self.data[0]}):
            self.assertEqual(qsim.quantize(self.model, data=data).dumps(), wanted)
        with self.assertRaisesRegex(TypeError, "not both"):
            self.model.quantize(calibration, data=self.data)
        with self.assertRaisesRegex(TypeError, "an array and a scale"):
            qsim.quantize(self.data[0])
        with self.assertRaisesRegex(TypeError, "weight_scheme='channel'"):
            qsim.quantize(self.model, data=self.data, per_channel=True)
        with self.assertRaisesRegex(TypeError, "did you mean 'method'"):
            qsim.quantize(self.model, data=self.data, metod="mse")
        with self.assertRaisesRegex(TypeError, "not the path .*: qsim.read_array"):
            qsim.quantize(self.model, data="x.npy")
        with self.assertRaisesRegex(TypeError, "not the path 'p/a.jpg': .*photos.py"):
            qsim.judge(self.model, self.model, [pathlib.Path("p/a.jpg")])

    def test_rules(self):
        first = self.model.nodes[0].name
        wanted = qsim.quantize(self.model, data=self.data, rules=[("*", "int8"), (first, "fp32")]).dumps()
        given = {"*": "int8", first: "fp32"}
        self.assertEqual(qsim.quantize(self.model, data=self.data, rules=given).dumps(), wanted)
        self.assertNotEqual(qsim.quantize(self.model, data=self.data).dumps(), wanted)
        for wrong in ("fc*", [first], [(first, "fp32", 1)], ["ab"]):
            with self.assertRaisesRegex(TypeError, "rules are pairs"):
                qsim.quantize(self.model, data=self.data, rules=wrong)

    def test_dynamic_biases_are_judged(self):
        """With data, biases are corrected where the answers gain by it, as the search finds."""
        ways = set()
        for seed in range(24):
            rng = np.random.default_rng(seed)
            data = [rng.normal(size=(2, 1, 8, 8)).astype(np.float32) for _ in range(3)]
            calibration = qsim.Calibration(self.model, quantize={"mode": "dynamic"}).feed_all(data)
            found = self.model.search(calibration, "correction", inputs=data, mode="dynamic").recipe
            wanted = self.model.quantize(calibration, mode="dynamic", recipe=found).dumps()
            got = qsim.quantize(self.model, data=iter(data), mode="dynamic").dumps()
            self.assertEqual(got, wanted)
            plain = qsim.quantize(self.model, data=data, mode="dynamic", bias_correction=False).dumps()
            always = self.model.quantize(calibration, mode="dynamic").dumps()
            self.assertIn(got, (plain, always))
            self.assertNotEqual(plain, always)
            ways.add(got == plain)
            # A recipe decides itself.
            self.assertEqual(qsim.quantize(self.model, data=data, mode="dynamic",
                                           recipe=qsim.Recipe()).dumps(), always)
        self.assertEqual(ways, {False, True})

    def test_dynamic_biases_unjudged(self):
        """What has no float answer to judge by is corrected."""
        b = qsim.Builder("argmax").input("x", "float[N,6]")
        b.constant("w", RNG.normal(size=(6, 5)).astype(np.float32)).node("MatMul", "x,w", "h")
        model = b.node("ArgMax", "h", "y", axis=1).output("y").finish()
        data = RNG.normal(size=(8, 6)).astype(np.float32)
        calibration = qsim.Calibration(model, quantize={"mode": "dynamic"}).feed(data)
        self.assertEqual(qsim.quantize(model, data=data, mode="dynamic").dumps(),
                         model.quantize(calibration, mode="dynamic").dumps())

    def test_layers(self):
        conv, fc = self.model.layers(mode="weights", rules=[("fc", "fp32")])
        self.assertEqual((conv.name, conv.scheme, conv.dtype), ("conv", "channel", "int8"))
        self.assertEqual((fc.name, fc.scheme, fc.dtype), ("fc", None, "float32"))
        self.assertEqual(conv.float_bytes, 4 * 4 * 9)

    def test_recipes(self):
        recipe = qsim.Recipe().set("layer", "fc", action="float")
        recipe.set("tensor", "x", dtype="uint8", range=(-2.0, 3.0))
        self.assertEqual(recipe.get("tensor", "x").range, (-2.0, 3.0))
        self.assertIsNone(recipe.get("layer", "conv"))
        self.assertEqual([e.name for e in recipe], ["fc", "x"])
        self.assertIn('layer "fc" float', str(recipe))
        int8 = qsim.quantize(self.model, data=self.data, recipe=recipe)
        constants = {v.name: v.constant for v in int8.values if v.constant is not None}
        self.assertEqual(constants["x_scale"].item(), np.float32(5.0) / np.float32(255))
        self.assertEqual(constants["x_zero_point"].item(), 102)  # 2 / (5 / 255)
        self.assertEqual([n.op_type for n in int8.nodes].count("MatMul"), 1)

    def test_pairs(self):
        decided, recipe = qsim.Recipe(), qsim.Recipe().set("layer", "conv", dtype="int8", symmetric=True, paired=True)
        by_option = qsim.quantize(self.model, data=self.data, reduce_pairs=True, decided=decided)
        self.assertTrue(decided.get("layer", "conv").paired)
        by_recipe = qsim.quantize(self.model, data=self.data, recipe=recipe)
        plain = qsim.quantize(self.model, data=self.data)
        weights = [next(v.constant for v in m.values if v.constant is not None and v.constant.dtype == np.int8 and v.constant.ndim == 4)
                   for m in (by_option, by_recipe, plain)]
        np.testing.assert_array_equal(weights[0], weights[1])
        self.assertTrue((weights[0] != weights[2]).any())

    def test_calibration(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.onnx")
            self.model.save(path)
            calibration = qsim.Calibration(path).feed_all(self.data)
        x = np.concatenate(self.data)
        self.assertEqual(calibration.observer("x").limits, (float(x.min()), float(x.max())))
        self.assertEqual(calibration.model, self.model.hash)
        counts, edges = calibration.observer("x").histogram()
        np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])
        self.assertEqual(np.log2(edges[1] - edges[0]) % 1, 0)
        again = qsim.Calibration.loads(calibration.dumps())
        self.assertEqual(again.range("x", "mse"), calibration.range("x", "mse"))
        self.assertEqual(calibration.range("x", "mse", dtype="int4", symmetric=True),
                         calibration.observer("x").range("mse", dtype="int4", symmetric=True))
        x[5, 0, 0, 0] = 100
        widened = qsim.Calibration(self.model).feed(x).outlier("x")
        self.assertEqual((widened["sample"], widened["value"]), (5, 100.0))

    def test_search(self):
        self.assertEqual(qsim.search_methods()["auto"], True)
        self.assertEqual(qsim.search_methods()["greedy"], False)
        calibration = qsim.Calibration(self.model).feed_all(self.data)
        with self.assertRaisesRegex(ValueError, "'autoo' is none of .*greedy.*auto"):
            self.model.search(calibration, "greedy,autoo", inputs=self.data)
        recipe, loss = self.model.search(calibration, "greedy", inputs=self.data)
        self.assertTrue({e.name for e in recipe} <= {"conv", "fc"})
        self.assertLessEqual(loss, 0)
        wanted, x = self.model.run(self.data[0])[0], self.data[0]
        lent = []

        def score(candidate):
            lent.append(candidate)
            return qsim.compare(wanted, candidate.run(x)[0])["sqnr_db"]

        found = qsim.search(self.model, calibration, "anneal", score=score, steps=5, max_drop=1e9)
        self.assertGreater(found.score, 0)
        with self.assertRaisesRegex(ValueError, "closed"):  # a candidate lives during the call
            lent[0].run(x)

        def broken(*_):
            raise RuntimeError("score failed")

        with self.assertRaisesRegex(RuntimeError, "score failed"):
            qsim.search(self.model, calibration, "anneal", score=broken)

    def test_search_mode(self):
        """A result names its mode: that of the options unless `bits` allows another one."""
        calibration = qsim.Calibration(self.model).feed_all(self.data)
        for mode in "static", "dynamic", "weights":
            seen = []
            found = self.model.search(calibration, "auto", inputs=self.data, mode=mode, bits=["dynamic", "weights"],
                                      attempt=lambda a: seen.append((a.kept, a.mode)))
            self.assertEqual(found.mode, [kept_mode for kept, kept_mode in seen if kept][-1])
            self.assertEqual(seen[0], (True, mode))
        with self.assertRaisesRegex(ValueError, "'dinamic' is none of .*dynamic"):
            self.model.search(calibration, "auto", inputs=self.data, bits=["dinamic"])

    def test_auto(self):
        """A budget of 0 percent, costs that are given, and labels: told of every attempt."""
        x = np.concatenate(self.data)
        labels = self.model.run(x)[0].argmax(axis=1)
        calibration = qsim.Calibration(self.model).feed(x)
        seen, agreements = [], []

        def attempt(a):
            if a.model is not None:
                right = a.model.run(x)[0].argmax(axis=1) == labels
                agreements.append((a.judgement.top1, 100 * right.mean()))
                a = a._replace(bytes=len(a.model.dumps()), recipe=str(a.recipe))
            seen.append(a)

        found = self.model.search(calibration, "auto", inputs=[(x,)], labels=labels, goal="size",
                                  max_drop=50, attempt=attempt, cost=lambda unit: (2.0, 1.0))
        self.assertGreater(len(agreements), 0)
        for told, agreement in agreements:  # the float model's own answers are the labels
            self.assertAlmostEqual(told, agreement, places=9)
        self.assertEqual(seen[0].judgement.rows, 12)
        best = [a for a in seen if a.kept][-1]
        int8 = self.model.quantize(calibration, recipe=found.recipe)
        self.assertEqual(best.bytes, int8.bytes)
        agreement = 100 * (int8.run(x)[0].argmax(axis=1) == labels).mean()
        self.assertAlmostEqual(best.judgement.top1, agreement, places=9)
        self.assertGreaterEqual(agreement, 50)
        with self.assertRaisesRegex(RuntimeError, "attempt failed"):
            def fail(_):
                raise RuntimeError("attempt failed")
            self.model.search(calibration, "auto", inputs=[x], attempt=fail)
        with self.assertRaisesRegex(ValueError, "'speed' is none of accuracy, size, latency"):
            self.model.search(calibration, "auto", inputs=[x], goal="speed")
        with self.assertRaisesRegex(ValueError, "'2' is none of float, 4, 8"):
            self.model.search(calibration, "auto", inputs=[x], bits=["2", "8"])
        narrow = self.model.search(calibration, "auto", inputs=[x], bits=("4", "8"), goal="size",
                                   max_drop=100)
        self.assertNotIn("float", {e.action for e in narrow.recipe})
        self.assertLessEqual(self.model.quantize(calibration, recipe=narrow.recipe).bytes, int8.bytes)

    def test_auto_bits(self):
        """Every set of forms: a unit gets none that is not in it."""
        x = RNG.normal(size=(256, 1, 8, 8)).astype(np.float32)
        calibration = qsim.Calibration(self.model).feed(x)
        reached = set()
        for chosen in range(1, 16):
            bits = {w for i, w in enumerate(("4", "8", "16", "float")) if chosen >> i & 1}
            recipe = self.model.search(calibration, "auto", inputs=[x], bits=bits, goal="size", max_drop=1e-3).recipe
            used = {e.action for e in recipe} | {e.dtype for e in recipe}
            for word, form in (("4", "int4"), ("16", "uint16"), ("float", "float")):
                self.assertTrue(form not in used or word in bits, (bits, used))
                reached |= {form} & used
            found = self.model.quantize(calibration, recipe=recipe).run(x)[0]
            self.assertGreater(qsim.compare(self.model.run(x)[0], found)["sqnr_db"], 20)
        self.assertLessEqual({"uint16", "float"}, reached)

    def test_equalize(self):
        recipe = qsim.Recipe('qsim-recipe 1\nequalize "a" 2 0.5 4\n')
        self.assertEqual(recipe.get("equalize", "a").shift, (0.5, 4.0))
        self.assertEqual(str(qsim.Recipe().set("equalize", "b", shift=(2,))).splitlines()[1],
                         'equalize "b" 1 0x1.000000p+1')
        with self.assertRaisesRegex(qsim.Error, "a factor is not above 0"):
            recipe.set("equalize", "a", shift=(1, -1))
        self.assertIn("equalize", qsim.search_methods())

    def test_sensitivity(self):
        x = np.concatenate(self.data)
        calibration = qsim.Calibration(self.model, tensors="*").feed(x)
        units = qsim.sensitivity(self.model, calibration, [{"x": x}])
        self.assertEqual({u.name for u in units}, {"conv", "fc"})
        plain = self.model.quantize(calibration)
        wanted, got = self.model.run(x)[0], plain.run(x)[0]
        self.assertAlmostEqual(units.plain.loss, qsim.Divergence().add(wanted, got).loss, places=12)
        for unit in units:
            other, = {"conv", "fc"} - {unit.name}
            kept = self.model.quantize(calibration, rules=[(unit.name, "fp32")]).run(x)[0]
            gained = units.plain.loss - qsim.Divergence().add(wanted, kept).loss
            self.assertAlmostEqual(unit.loss_gained, gained, places=9)
        self.assertIn("conv", units._repr_html_())

    def test_integer_io(self):
        x = np.concatenate(self.data)
        int8 = self.model.quantize(data=[x])
        wanted, = int8.run(x)
        for inputs, outputs in ((True, True), (True, False), (False, True)):
            model = int8.integer_io(inputs=inputs, outputs=outputs)
            given, name = x, model.inputs[0].name
            if inputs:
                scale, zero_point = model.scale(name)
                given = np.clip(np.rint(x / np.float32(scale)) + zero_point, 0, 255).astype(np.uint8)
            got, = model.run(given)
            self.assertEqual(got.dtype, np.uint8 if outputs else np.float32)
            if outputs:
                scale, zero_point = model.scale(model.outputs[0].name)
                got = (got.astype(np.float32) - zero_point) * np.float32(scale)
            np.testing.assert_array_equal(got, wanted)
        with self.assertRaisesRegex(qsim.Error, "input 'x' cannot be integers"):
            self.model.integer_io()
        with self.assertRaisesRegex(qsim.Error, "no operator has one scale"):
            self.model.scale("x")

    def test_convert(self):
        x = np.concatenate(self.data)
        int8 = self.model.quantize(data=[x], format="qoperator")
        pairs, floats = int8.convert("qdq"), int8.convert("float")
        np.testing.assert_array_equal(pairs.run(x)[0], int8.run(x)[0])
        kinds = {n.op_type for n in pairs.nodes}
        self.assertTrue("DequantizeLinear" in kinds and not [k for k in kinds if k.startswith("QL")])
        self.assertFalse([n for n in floats.nodes if "Linear" in n.op_type])
        wanted = self.model.run(x)[0]  # of which the rounding of weights alone spoils less
        self.assertLess(np.abs(floats.run(x)[0] - wanted).mean(), np.abs(int8.run(x)[0] - wanted).mean())
        floats.quantize(data=[x])
        for form in ("standard", "qoperator"):
            with self.assertRaisesRegex(ValueError, f"'{form}' is none of"):
                int8.convert(form)
        fused = (qsim.Builder().input("x", "float[2,8]").node("QuickGelu", "x", "y", domain="com.microsoft")
                 .output("y").finish())
        sample = np.linspace(-2, 2, 16, dtype=np.float32).reshape(2, 8)
        self.assertEqual({n.op_type for n in fused.convert("onnx").nodes}, {"Mul", "Sigmoid"})
        np.testing.assert_allclose(fused.convert("onnx").run(sample)[0], fused.run(sample)[0], rtol=1e-6)

    def test_no_classes(self):
        x = np.concatenate(self.data)
        calibration, asked = qsim.Calibration(self.model, tensors="*").feed(x), {"classes": False}
        plain = self.model.quantize(calibration)
        noise = qsim.Divergence("values").add(self.model.run(x)[0], plain.run(x)[0]).loss
        units = qsim.sensitivity(self.model, calibration, [{"x": x}], **asked)
        self.assertAlmostEqual(units.plain.loss, noise, places=12)
        self.assertTrue(np.isnan(units.plain.agreement))
        found = qsim.search(self.model, calibration, "", inputs=[{"x": x}], **asked)
        self.assertAlmostEqual(found.score, -noise, places=12)
        judged = qsim.judge(self.model, plain, self.data, **asked).outputs[0]
        self.assertTrue(np.isnan(judged.agreement) and judged.measure != "agreement")

    def test_several_inputs(self):
        model = two_inputs()
        a, b = (RNG.normal(size=(4, 3)).astype(np.float32) for _ in range(2))
        int8 = qsim.quantize(model, data=[{"a": a, "b": b}], rules=[("*", "int8")])
        self.assertGreater(qsim.compare(model.run(a, b)[0], int8.run(a, b)[0])["sqnr_db"], 20)

    def test_package(self):
        with tempfile.TemporaryDirectory() as folder:
            onnx, path = os.path.join(folder, "m.onnx"), os.path.join(folder, "p.zip")
            self.model.save(onnx)
            qsim.Package.write(path, onnx, labels="a\nb\n", files={"notes.txt": "text"},
                               options={"key": "value"})
            with open(path, "rb") as f:
                package = qsim.Package.open(f.read())
            self.assertEqual({e.name: e.role for e in package.entries}["notes.txt"], "data")
            self.assertEqual(package.text("labels"), "a\nb\n")
            self.assertIn('"key": "value"', package.text("manifest"))
            self.assertIsNone(package.text("report"))
            self.assertIn("notes.txt", package._repr_html_())
            np.testing.assert_array_equal(package.model().run(self.data[0])[0],
                                          self.model.run(self.data[0])[0])


class Divergences(unittest.TestCase):
    def test_kl(self):
        """KL(p || q) = sum p ln(p / q), by numpy."""
        p, q = np.array([[0.5, 0.25, 0.25]], np.float32), np.array([[0.25, 0.5, 0.25]], np.float32)
        wanted = 0.5 * np.log(2) - 0.25 * np.log(2)
        d = qsim.Divergence("probabilities").add(p, q)
        self.assertAlmostEqual(d.loss, wanted, places=6)
        self.assertEqual(d.agreement, 0)
        self.assertAlmostEqual(qsim.Divergence("logits").add(np.log(p), np.log(q)).loss, wanted, places=6)
        v = qsim.Divergence("values").add(np.ones((1, 4), np.float32), np.full((1, 4), 1.5, np.float32))
        self.assertAlmostEqual(v.loss, 0.25)
        self.assertIn("values", repr(v))
        self.assertEqual(qsim.Divergence.named("logits", 3).answer, "logits")
        self.assertEqual(qsim.Divergence.named("states", 3).answer, "unknown")


class LongWork(unittest.TestCase):
    def setUp(self):
        self.model = network()
        self.data = [RNG.normal(size=(4, 1, 8, 8)).astype(np.float32) for _ in range(3)]

    def test_progress(self):
        seen = []
        self.model.quantize(data=self.data, progress=lambda *step: seen.append(step))
        self.assertTrue(seen)
        self.assertTrue(all(isinstance(what, str) and 0 <= done <= total for what, done, total in seen))

    def test_exceptions_of_a_callback(self):
        def fail(*_):
            raise KeyError("mine")

        for work in (lambda: self.model.quantize(mode="weights", progress=fail),
                     lambda: qsim.Calibration(self.model, progress=fail).feed(self.data[0])):
            with self.assertRaisesRegex(KeyError, "mine"):
                work()
        with self.assertRaises(qsim.Error) as caught:
            self.model.quantize(mode="weights", progress=lambda *_: True)
        self.assertEqual(caught.exception.name, "QSIM_E_CANCELLED")

    def test_ctrl_c(self):
        """SIGINT during the library's work ends it there, as KeyboardInterrupt; a search keeps the best
        so far, a calibration what it had."""
        calibration = qsim.Calibration(self.model).feed_all(self.data)
        found, calls = qsim.Recipe(), []

        def score(_):
            calls.append(1)
            if len(calls) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return float(len(calls))

        before = signal.getsignal(signal.SIGINT)
        with self.assertRaises(KeyboardInterrupt):
            qsim.search(self.model, calibration, "anneal", score=score, steps=500, found=found)
        self.assertLessEqual(len(calls), 4)
        self.assertGreater(len(found), 0)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

        def interrupt(*_):
            os.kill(os.getpid(), signal.SIGINT)

        watched = qsim.Calibration(self.model, progress=interrupt)
        with self.assertRaises(KeyboardInterrupt):
            watched.feed(self.data[0])
        self.assertEqual(watched.samples, 0)

    def test_histogram(self):
        values = RNG.normal(size=1000).astype(np.float32)
        counts, edges = qsim.Observer().feed(values).histogram()
        expected, _ = np.histogram(values.astype(np.float64), edges)
        self.assertTrue((counts == expected).all())
        self.assertEqual(counts.sum(), 1000)

    def test_verdict(self):
        int8 = self.model.quantize(mode="weights")
        v = qsim.judge(self.model, int8, self.data)
        self.assertIn(v.grade, ("good", "doubtful"))
        self.assertEqual(v.samples, sum(len(x) for x in self.data))
        self.assertGreater(v.outputs[0].cosine, 0.99)
        self.assertEqual(v.input.name, self.model.inputs[0].name)
        self.assertAlmostEqual(v.input.mean, float(np.mean(np.concatenate(self.data))), places=5)
        self.assertEqual(v.input.greatest, max(float(x.max()) for x in self.data))
        self.assertGreater(len(v.layers), 0)
        noise = [10 ** (-w.sqnr_db / 10) - 10 ** (-w.before_db / 10) for w in v.layers]
        self.assertEqual(noise, sorted(noise, reverse=True))
        models = [qsim.Builder("one").input("x", type + "[N,4]").node("Neg", "x", "y")
                  .output("y").finish() for type in ("float", "float16")]
        halves = qsim.judge(*models, [np.float32([[1, 2, 3, 1 / 4], [0, 0, 5, 6]])])
        self.assertEqual((halves.grade, halves.samples), ("good", 2))
        self.assertEqual(halves.outputs[0].sqnr_db, np.inf)
        zeros = [np.zeros_like(x) for x in self.data]
        session = qsim.Session(self.model)
        right = np.concatenate([session.run(x)[0].argmax(-1) for x in self.data])
        v = qsim.judge(self.model, int8, self.data, labels=right)
        self.assertEqual((v.labels.rows, v.labels.right_float), (12, 12))
        self.assertNotIn("labels", [kind for kind, _ in v.warnings])
        black = qsim.judge(self.model, int8, zeros)
        self.assertEqual(black.grade, "bad")
        self.assertIn("constant-input", [kind for kind, _ in black.warnings])
        for kind, sentence in black.warnings:
            self.assertIn(f"\nwarning: {sentence}\n", str(black))
            self.assertIn(sentence.replace("'", "&#x27;"), black._repr_html_())
        self.assertTrue(str(v).startswith(f"{v.grade}, by 12 samples\noutput 'y': {v.outputs[0].grade}, "))
        self.assertIn(f"layer '{v.layers[0].name}': SQNR ", str(v))

    def test_ctrl_c_inside_of_the_library(self):
        """A signal that comes while C computes is not lost at the entry of a callback."""
        batch, begun = np.zeros((20000, 1, 8, 8), np.float32), threading.Event()

        def interrupt():
            begun.wait()  # this thread goes on when the library lets it, inside of its work
            os.kill(os.getpid(), signal.SIGINT)

        calibration, thread = qsim.Calibration(self.model), threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            begun.set()
            calibration.feed(batch)
        thread.join()
        self.assertEqual(calibration.samples, 0)

    def test_ctrl_c_ends_a_run(self):
        """Without it this run takes many minutes."""
        layers, w = 6000, np.eye(2048, dtype=np.float32)
        b = qsim.Builder("long").input("x", "float[2048,2048]").output(f"h{layers}")
        b.constant("w", w)
        for i in range(layers):
            b.node("MatMul", f"{'h%d' % i if i else 'x'},w", f"h{i + 1}")
        session, x = qsim.Session(b.finish()), np.ones((2048, 2048), np.float32)
        for _ in range(2):  # and the session can be used again
            timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                session.run(x)
            timer.join()
        self.assertEqual(signal.set_wakeup_fd(-1), -1)

    def test_other_threads_leave_signals_alone(self):
        caught = []

        def work():
            try:
                self.model.quantize(mode="weights", progress=lambda *_: None)
            except BaseException as why:
                caught.append(why)

        t = threading.Thread(target=work)
        t.start()
        t.join()
        self.assertEqual(caught, [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
