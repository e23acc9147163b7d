# SPDX-License-Identifier: MIT
"""start.py OUT ROUNDS [MODEL...] : see start.sh."""
import json
import os
import subprocess
import sys
from statistics import median

from benchlib import Report, SHARED

MODELS = ("squeezenet1.1_fp32_from_fp16", "mobilenet_v1_025_224_imagenet", "dtln_model_1",
          "mlptiny_kws_dscnn_fp32", "fashion_lenetlite")


def load_ms(qsim, file, level):
    command = [qsim, "bench", "--json", "-q", "--runs", "1", "--warmup", "0", "-T", "1", "--level", level, file]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["models"][0]["load_ms"]


def main(out, rounds, *models):
    files = models or [f"{SHARED}/models/{name}.onnx" for name in MODELS]
    qsim = f"{out}/gcc/tools/qsim/qsim"
    report = Report(out, "start", "Start: as it is, and optimized with optimization off")
    report.table_head("model", "as it is, ms", "optimized, ms", "times faster", "of minima")
    for file in files:
        name = os.path.basename(file)
        saved = f"{out}/nets/optimized_{name}"
        subprocess.run([qsim, "optimize", "-q", "-f", file, "-o", saved], stdout=subprocess.DEVNULL, check=True)
        pairs = [(load_ms(qsim, file, "all"), load_ms(qsim, saved, "disable")) for _ in range(int(rounds) + 1)][1:]
        before, after = zip(*pairs)
        ratio = median(b / a for b, a in pairs)
        report.row(name, f"{median(before):.3f}", f"{median(after):.3f}", f"{ratio:.2f}",
                   f"{min(before) / min(after):.2f}")
        report.data[name] = {"before_ms": before, "after_ms": after}
    report.save()


main(*sys.argv[1:])
