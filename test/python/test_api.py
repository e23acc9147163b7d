# SPDX-License-Identifier: MIT
"""What Python adds to the C interface: ways to give arrays, memory, sessions, pictures for notebooks.
Usage: test_api.py FOLDER_OF_QSIM (QSIM_LIBRARY set)."""

import array
import os
import pickle
import sys
import tempfile
import threading
import unittest

import numpy as np

sys.path.insert(0, sys.argv.pop(1))
import qsim  # noqa: E402

from nets import RNG, network, two_inputs  # noqa: E402


class OnlyDLPack:
    """An array of a library that numpy does not know."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **more):
        return self.values.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OnlyInterface:
    """An array that shows __array_interface__ alone."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Arrays(unittest.TestCase):
    def setUp(self):
        self.session = qsim.Session(two_inputs())
        self.a = RNG.normal(size=(2, 3)).astype(np.float32)
        self.b = RNG.normal(size=(2, 3)).astype(np.float32)
        self.y, self.z = self.a - 2 * self.b, self.a + self.b

    def same(self, got, *wanted):
        self.assertEqual(len(got), len(wanted))
        for g, w in zip(got, wanted):
            np.testing.assert_array_equal(g, w)

    def test_ways_to_give_inputs(self):
        run, a, b = self.session.run, self.a, self.b
        self.same(run(a, b), self.y, self.z)
        self.same(run({"b": b, "a": a}), self.y, self.z)
        self.same(run(None, {"b": b, "a": a}), self.y, self.z)
        self.same(run(["z"], {"b": b, "a": a}), self.z)
        self.same(run(["z", "y"], {"b": b, "a": a}), self.z, self.y)
        self.same(run(a, b=b), self.y, self.z)
        self.same(run(a.tolist(), b.tolist()), self.y, self.z)  # a list gets the input's type
        with self.assertRaisesRegex(ValueError, "'q' is no output; those are .'y', 'z'."):
            run(["q"], {"a": a, "b": b})
        with self.assertRaisesRegex(TypeError, "no input 'c'; the model's are a, b"):
            run({"a": a, "c": b})
        with self.assertRaisesRegex(TypeError, "an array is needed, not object"):
            run(a, object())

    def test_other_libraries_arrays_are_not_copied(self):
        asarray = sys.modules[getattr(qsim.Session, "__module__")]._asarray
        for foreign in (OnlyDLPack(self.a), OnlyInterface(self.a), memoryview(self.a)):
            self.assertEqual(asarray(foreign).ctypes.data, self.a.ctypes.data)
            self.same(self.session.run(foreign, self.b), self.y, self.z)
        self.same(self.session.run(memoryview(array.array("f", self.a.ravel())).cast("B").cast("f", (2, 3)),
                                   self.b), self.y, self.z)

    def test_out(self):
        y, z = np.empty((2, 3), np.float32), np.empty((2, 3), np.float32)
        got = self.session.run(self.a, self.b, out=[y, z])
        self.assertIs(got[0], y)
        self.assertIs(got[1], z)
        self.same((y, z), self.y, self.z)
        got = self.session.run(self.b, self.a, out={"z": z})
        self.assertIs(got[1], z)
        self.same(got, self.b - 2 * self.a, self.z)
        held = OnlyDLPack(np.empty((2, 3), np.float32))
        self.assertIs(self.session.run(["y"], {"a": self.a, "b": self.b}, out=[held, None])[0], held)
        self.same([held.values], self.y)
        for wrong, rule, why in [
                (np.empty((2, 3)), TypeError, "'y' is float32, the array float64"),
                (np.empty((3, 2), np.float32).T, ValueError, "not contiguous and writable"),
                (np.empty((3, 2), np.float32), ValueError, r"'y' is \(2, 3\), the array \(3, 2\)"),
                (np.empty((1, 3), np.float32), ValueError, r"'y' is \(2, 3\), the array \(1, 3\)")]:
            with self.assertRaisesRegex(rule, why):
                self.session.run(self.a, self.b, out=[wrong, None])
        fixed = np.empty((2, 3), np.float32)
        fixed.flags.writeable = False
        with self.assertRaisesRegex(ValueError, "not contiguous and writable"):
            self.session.run(self.a, self.b, out=[fixed, None])
        with self.assertRaisesRegex(ValueError, "1 arrays for 2 outputs"):
            self.session.run(self.a, self.b, out=y)
        with self.assertRaisesRegex(ValueError, "out: 'q' is no output"):
            self.session.run(self.a, self.b, out={"q": y})

    def test_refused_out_keeps_what_it_holds(self):
        for shape in ((3, 2), (6,), (4, 3), (1, 3)):
            for time in range(2):  # sizes of the outputs are known the second time
                session = qsim.Session(two_inputs())
                if time:
                    session.run(self.a, self.b)
                    session.run(self.a, self.b, out=[None, None])
                wrong = np.full(shape, 7, np.float32)
                with self.assertRaisesRegex(ValueError, "the array"):
                    session.run(self.a, self.b, out=[wrong, None])
                self.assertTrue((wrong == 7).all())
                with self.assertRaisesRegex(ValueError, "the array"):
                    session.run(["z"], {"a": self.a, "b": self.b}, out=[wrong, None])
                self.assertTrue((wrong == 7).all())
                right = np.full((2, 3), 7, np.float32)
                self.assertIs(session.run(self.a, self.b, out=[right, None])[0], right)
                self.same([right], self.y)

    def test_threads_run_at_once(self):
        want = self.session.run(self.a, self.b)[0].tobytes()
        wrong = []

        def work():
            for _ in range(200):
                if self.session.run(self.a, self.b)[0].tobytes() != want:
                    wrong.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_reserve(self):
        self.assertGreater(self.session.reserve(self.a, self.b), 0)


class Sessions(unittest.TestCase):
    def test_path_threads_isa(self):
        model, x = network(), RNG.normal(size=(3, 1, 8, 8)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            model.save(path)
            with qsim.Session(path, threads=2, isa="c") as session:
                self.assertEqual((session.threads, session.isa), (2, "c"))
                np.testing.assert_array_equal(session.run(x)[0], model.run(x)[0])
        self.assertIn("c", qsim.isas())
        self.assertIn(qsim.Session(model).isa, qsim.isas())
        with self.assertRaisesRegex(ValueError, "is no instruction set: known: \\[.c., "):
            qsim.Session(model, isa="x")

    def test_operators(self):
        rows = {(o.domain, o.op_type, o.since): o for o in qsim.operators()}
        self.assertEqual(rows["", "MaxPool", 1].until, 7)
        conv, concat = rows["", "Conv", 1], rows["", "Concat", 1]
        self.assertEqual((conv.until, conv.min_inputs, conv.max_inputs), (None, 2, 3))
        self.assertEqual((conv.integer_form, conv.kernel), ("QLinearConv", "conv"))
        self.assertIsNone(concat.max_inputs)
        self.assertLessEqual({"float32", "float16", "int8", "bool"}, set(concat.types))
        self.assertNotIn("bool", conv.types)
        self.assertNotIn("qsim", {domain for domain, _, _ in rows})

    def test_numbers_that_no_field_holds(self):
        for wrong in ({"memory": 1 << 64}, {"memory": -1}, {"threads": 1 << 32}, {"nodes": 1 << 70}):
            with self.assertRaises(ValueError):
                qsim.Context(**wrong)

    def test_context(self):
        data = network().dumps()
        with qsim.Context(threads=2, isa="c", memory=1 << 24, nodes=4) as context:
            self.assertEqual((context.limits["memory"], context.limits["nodes"]), (1 << 24, 4))
            self.assertEqual(repr(context), "<Context: c, 2 threads>")
            model = qsim.Model.loads(data, context=context)
            session = qsim.Session(model, context=context)
            self.assertEqual((session.isa, session.threads), ("c", 2))
            self.assertGreater(context.memory, 0)
            x = np.zeros((1, 1, 8, 8), np.float32)
            wanted = session.run(x)[0].tobytes()
            context.cancel()
            with self.assertRaises(qsim.Error) as caught:
                session.run(x)
            self.assertEqual(caught.exception.name, "QSIM_E_CANCELLED")
            context.cancel(False)
            self.assertEqual(session.run(x)[0].tobytes(), wanted)
            with self.assertRaisesRegex(TypeError, "threads and isa are the context's"):
                qsim.Session(model, context=context, threads=1)
        self.assertEqual(repr(session), "<Session: x -> y, c, 2 threads>")
        with self.assertRaises(qsim.Error) as caught:
            qsim.Model.loads(data, context=qsim.Context(nodes=3))
        self.assertEqual(caught.exception.name, "QSIM_E_LIMIT")
        with self.assertRaisesRegex(TypeError, "'node' is no limit; those are memory"):
            qsim.Context(node=3)

    def test_closed(self):
        model = network()
        with qsim.Session(model) as session, qsim.Calibration(model) as calibration:
            session.run(np.zeros((1, 1, 8, 8), np.float32))
        for use in (lambda: session.run(np.zeros((1, 1, 8, 8), np.float32)),
                    lambda: calibration.samples):
            with self.assertRaisesRegex(ValueError, "is closed"):
                use()
        session.close()
        self.assertEqual(repr(session), "<Session: closed>")

    def test_reprs(self):
        model = network()
        self.assertEqual(repr(model), "<Model: x float32['N', 1, 8, 8] -> y float32['N', 5], 4 nodes, "
                                      "756 parameters, opset 13>")
        session = qsim.Session(model, threads=1, isa="c")
        self.assertEqual(repr(session), "<Session: x -> y, c, 1 thread>")
        calibration = qsim.Calibration(model).feed(np.ones((2, 1, 8, 8), np.float32))
        self.assertRegex(repr(calibration), "<Calibration: 2 samples, [0-9]+ tensors>")
        self.assertEqual(repr(qsim.Observer().feed([1, 3])), "<Observer: 2 values from 1 to 3>")
        decided = qsim.Recipe()
        model.quantize(calibration, decided=decided)
        profile = session.profile(np.ones((2, 1, 8, 8), np.float32))
        for thing, word in [(model, "Conv"), (session, "float32"), (calibration, "99.99"),
                            (decided, "symmetric"), (profile, "µs")]:
            page = thing._repr_html_()
            self.assertIn(word, page)
            self.assertEqual(page.count("<tr>"), page.count("</tr>"))
        b = qsim.Builder().input("<b>", "float[1]").node("Relu", "<b>", "y").output("y")
        self.assertIn("&lt;b&gt;", b.finish()._repr_html_())

    def test_seed(self):
        b = qsim.Builder().input("x", "float[N]").node("RandomNormalLike", "x", "y").output("y")
        session, x = qsim.Session(b.finish()), np.zeros(1000, np.float32)
        first, = session.run(x)
        self.assertTrue(0.8 < first.std() < 1.2)
        self.assertTrue((session.run(x)[0] == first).all())
        session.seed = 1
        other, = session.run(x)
        self.assertFalse((other == first).any())
        self.assertTrue((qsim.Session(session.model, seed=1).run(x)[0] == other).all())
        with self.assertRaises((OverflowError, ValueError)):
            qsim.Session(session.model, seed=-1)

    def test_version(self):
        self.assertEqual(qsim.__version__, qsim.version())

    def test_names_of_other_runtimes(self):
        with self.assertRaisesRegex(AttributeError, r"'InferenceSession': here it is qsim\.Session\(path\)"):
            qsim.InferenceSession
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'$"):
            qsim.nothing
        session = qsim.Session(network())
        with self.assertRaisesRegex(AttributeError, r"'get_inputs': here it is the list \.inputs"):
            session.get_inputs()
        with self.assertRaisesRegex(AttributeError, "no attribute 'nothing'$"):
            session.nothing

    def test_outputs_of_a_session(self):
        model = network()
        self.assertEqual([(v.name, v.dtype) for v in qsim.Session(model).outputs],
                         [(v.name, v.dtype) for v in model.outputs])
        inner = next(v.name for v in model.values if v.name not in ("x", model.outputs[0].name))
        self.assertEqual([v.name for v in qsim.Session(model, outputs=[inner]).outputs], [inner])

    def test_bytes_of_a_model(self):
        model, x = network(), np.ones((1, 1, 8, 8), np.float32)
        wanted, = qsim.Session(model).run(x)
        self.assertTrue((qsim.Session(model.dumps()).run(x)[0] == wanted).all())
        self.assertEqual(qsim.quantize(model.dumps(), mode="dynamic").dumps(),
                         model.quantize(mode="dynamic").dumps())

    def test_no_pickle(self):
        for thing in (network(), qsim.Session(network())):
            with self.assertRaisesRegex(TypeError, "let each process make its own"):
                pickle.dumps(thing)


    def test_pickled_error(self):
        """What a worker of multiprocessing raises reaches its parent."""
        with self.assertRaises(qsim.Error) as caught:
            qsim.Session(network()).run(np.zeros((1, 8, 8), np.float32))
        e = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(e), str(e), e.name, e.hint),
                         (qsim.Error, str(caught.exception), "QSIM_E_SHAPE", caught.exception.hint))

    def test_hints_of_arrays(self):
        model = network()
        session, x = qsim.Session(model), np.zeros((2, 1, 8, 8), np.float32)
        for feed in (session.run, session.reserve, qsim.Calibration(model).feed):
            with self.subTest(feed.__qualname__):
                for wrong, hint in ((x.astype(np.float64), r"\(\.astype\('float32'\)\)$"),
                                    (x.astype(np.uint8), r"astype\('float32'\), and the scaling"),
                                    (x[0], "newaxis"), (x[..., 1:], "[^)]$")):
                    with self.assertRaisesRegex(qsim.Error, hint):
                        feed(wrong)
        with self.assertRaisesRegex(qsim.Error, "newaxis"):
            qsim.Verdict(model, model.quantize(mode="dynamic")).feed(x[0])

    def test_models_in_memory(self):
        data = network().dumps()

        class Proto:
            """What is used of onnx.ModelProto."""

            def SerializeToString(self):
                return data

        for source in (data, bytearray(data), memoryview(data), Proto()):
            with self.subTest(type(source).__name__):
                self.assertEqual(qsim.Session(source).input_names, ["x"])
                self.assertEqual(qsim.quantize(source, mode="dynamic").dumps(),
                                 qsim.quantize(data, mode="dynamic").dumps())

    def test_reader(self):
        """A reader without __iter__ is read to its None."""
        model, x = network(), RNG.random((4, 1, 8, 8), np.float32)

        class Reader:
            def __init__(self):
                self.left = [{"x": x[:2]}, {"x": x[2:]}]

            def get_next(self):
                return self.left.pop(0) if self.left else None

        self.assertEqual(model.quantize(data=Reader()).dumps(), model.quantize(data=x).dumps())
        self.assertEqual(qsim.Calibration(model).feed_all(Reader()).samples, 4)

    def test_words_and_switches(self):
        model = network()
        with self.assertRaisesRegex(TypeError, "reduce_pairs does not go with reduce_range"):
            model.quantize(mode="dynamic", reduce_range=True, reduce_pairs=True)
        for name in ("per_row", "reduce_range", "reduce_pairs", "bias_correction", "gptq", "keep_moments", "activation_symmetric"):
            with self.assertRaisesRegex(TypeError, f"{name} is True or False, not 'False'"):
                model.quantize(mode="dynamic", **{name: "False"})
        model.quantize(mode="dynamic", per_row=np.bool_(True))
        with self.assertRaisesRegex(TypeError, "QInt8 is 'int8' here"):
            model.quantize(mode="dynamic", weight_type="QInt8")
        for call in (lambda: qsim.Builder(13), lambda: qsim.Session(model, outputs=[1]), lambda: qsim.Session(model, isa=2)):
            with self.assertRaisesRegex(TypeError, "a text is needed, not int"):
                call()
        for call in (lambda: qsim.Builder("a\0b"), lambda: qsim.Model.load("a\0b"), lambda: model.save("a\0b")):
            with self.assertRaisesRegex(ValueError, "a NUL in 'a"):
                call()


class Inspecting(unittest.TestCase):
    def test_check(self):
        self.assertEqual(qsim.check(network().dumps()), [])
        # IR 8, opset 13; a graph "g" of two nodes "None", each of an undefined tensor.
        node = b"\x0a\x01u\x12\x01" + b"v" + b"\x22\x04None"
        graph = b"".join(b"\x0a" + bytes([len(node)]) + node for _ in range(2)) + b"\x12\x01g"
        model = b"\x08\x08\x3a" + bytes([len(graph)]) + graph + b"\x42\x02\x10\x0d"
        found = qsim.check(model)
        self.assertGreaterEqual(len(found), 2)
        self.assertTrue(all(p.name.startswith("QSIM_E_") and p.message for p in found))

    def test_constants(self):
        scale = np.array([[1.5, -2.0]], np.float32)
        b = qsim.Builder().input("x", "float[1,2]").constant("k", scale).node("Add", "x,k", "y")
        model = b.metadata("who", "test").output("y").finish()
        values = {v.name: v for v in model.values}
        np.testing.assert_array_equal(values["k"].constant, scale)
        self.assertIsNone(values["x"].constant)
        self.assertEqual(model.metadata, {"who": "test"})
        self.assertEqual(model.parameter_bytes, 8)
        self.assertRegex(model.hash, "^[0-9a-f]{64}$")
        self.assertEqual(model.upgrade(17).opset, 17)
        self.assertGreater(model.bytes, 8)

    def test_files(self):
        for kind, values in [("B", [0, 255]), ("f", [1.5, -2.0])]:
            idx = (b"\0\0\x08\x02" if kind == "B" else b"\0\0\x0d\x02") + b"\0\0\0\1\0\0\0\2"
            idx += np.array(values, ">f4" if kind == "f" else "u1").tobytes()
            self.assertEqual(qsim.read_array(idx).tolist(), [values])
        x = RNG.integers(-9, 9, (2, 3)).astype(np.int16)
        np.testing.assert_array_equal(qsim.read_array(qsim.dump_proto(x, "x")), x)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.npy")
            np.save(path, np.asfortranarray(x))
            np.testing.assert_array_equal(qsim.read_array(path), x)
        with self.assertRaises(qsim.Error):
            qsim.read_array(b"\0\0\x08")
        for start, reader in ((b"PK\3\4", "numpy.load reads .npz"), (b"\xff\xd8\xff", "PIL")):
            with self.assertRaisesRegex(ValueError, reader):
                qsim.read_array(start + bytes(9))

    def test_external_data(self):
        model = network()
        self.assertEqual(model.external_files, [])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            model.save(path, external=True)
            self.assertEqual(os.path.getsize(path + ".data"), 4 * 144 * 5)
            again = qsim.Model.load(path)
            self.assertEqual(again.external_files, ["m.onnx.data"])
            x = RNG.normal(size=(2, 1, 8, 8)).astype(np.float32)
            wanted, = qsim.Session(model).run(x)
            np.testing.assert_array_equal(qsim.Session(again).run(x)[0], wanted)
            model.save(path)
            self.assertEqual(qsim.Model.load(path).external_files, [])

    def test_limits_and_fixed_point(self):
        self.assertEqual(qsim.limits("int8", narrow=True), (-127, 127))
        self.assertEqual(qsim.limits("uint4"), (0, 15))
        m, shift = qsim.fixed_from_float(0.25)
        self.assertEqual((m, shift), (1 << 30, -1))  # 2^30 * 2^(-1 - 31) = 1/4
        self.assertEqual(qsim.requantize_fixed([[8, -9, 5000]], m, shift, 3, "uint8").tolist(),
                         [[5, 1, 255]])  # -9 / 4 = -2.25, to the nearest


if __name__ == "__main__":
    unittest.main(verbosity=1)
