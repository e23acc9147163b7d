# SPDX-License-Identifier: MIT
"""Networks that PyTorch exports: each runs as PyTorch runs it, at several opsets, and quantizes in every mode.
One that was trained with quantization runs in integers.

Usage: torch_exports.py QSIM FOLDER [NAME...]     exit 77: there is no PyTorch
"""
import json
import os
import subprocess
import sys
import warnings

try:
    import numpy as np
    import torch
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
try:
    import torchvision
except ImportError:
    torchvision = None

OPSETS = (13, 14, 17)
warnings.filterwarnings("ignore")


class Words(nn.Module):
    """Words and their places as vectors."""

    def __init__(self, words, places, width):
        super().__init__()
        self.word, self.place, self.norm = nn.Embedding(words, width), nn.Embedding(places, width), nn.LayerNorm(width)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        return self.norm(self.word(ids) + self.place(places))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.size).transpose(1, 2)

    def forward(self, x, mask=None, past=None):
        q, k, v = (self.split(part) for part in self.qkv(x).chunk(3, dim=-1))
        if past is not None:
            k, v = torch.cat((past[0], k), dim=2), torch.cat((past[1], v), dim=2)
        scores = q @ k.transpose(-1, -2) / self.size**0.5
        if mask is not None:
            scores = scores + mask
        y = (scores.softmax(-1) @ v).transpose(1, 2)
        return self.out(y.reshape(y.shape[0], y.shape[1], -1)), k, v


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.attention = Words(60, 16, 32), Attention(32, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
        self.inner, self.outer, self.pool = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 32)

    def forward(self, ids, mask):
        x = self.words(ids)
        far = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        x = self.norms[0](x + self.attention(x, far)[0])
        x = self.norms[1](x + self.outer(nn.functional.gelu(self.inner(x))))
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt(nn.Module):
    """One layer with its keys and values of before going in and out."""

    def __init__(self):
        super().__init__()
        self.word, self.place, self.attention = nn.Embedding(50, 32), nn.Embedding(24, 32), Attention(32, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(32) for _ in range(3)])
        self.inner, self.outer, self.head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 50, bias=False)

    def forward(self, ids, past_key, past_value):
        before, fresh = past_key.shape[2], ids.shape[1]
        places = torch.arange(before, before + fresh).unsqueeze(0)
        x = self.word(ids) + self.place(places)
        keys = torch.arange(before + fresh).unsqueeze(0)
        later = (keys > places.transpose(0, 1)).to(x.dtype) * -1e4
        y, k, v = self.attention(self.norms[0](x), later, (past_key, past_value))
        x = x + y
        x = x + self.outer(nn.functional.gelu(self.inner(self.norms[1](x))))
        return self.head(self.norms[2](x)), k, v


class Vit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.token = nn.Conv2d(3, 32, 8, 8), nn.Parameter(torch.randn(1, 1, 32))
        self.place, self.head = nn.Parameter(torch.randn(1, 17, 32)), nn.Linear(32, 10)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True, activation="gelu"), 2)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), dim=1) + self.place
        return self.head(self.encoder(x)[:, 0])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(12, 16, 2, batch_first=True, bidirectional=True), nn.GRU(32, 16, batch_first=True)
        self.rnn, self.head = nn.RNN(16, 8, nonlinearity="relu", batch_first=True), nn.Linear(8, 5)

    def forward(self, x):
        x, (h, _) = self.lstm(x)
        x, _ = self.rnn(self.gru(x)[0])
        return self.head(x[:, -1]), h


def block(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle, self.bottom = block(3, 8), block(8, 16), block(16, 16)
        self.up, self.join, self.last, self.head = nn.ConvTranspose2d(16, 16, 2, 2), block(32, 8), block(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.middle(nn.functional.max_pool2d(a, 2))
        c = self.join(torch.cat((self.up(self.bottom(nn.functional.max_pool2d(b, 2))), b), 1))
        c = nn.functional.interpolate(c, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.head(self.last(torch.cat((c, a), 1)))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs) for _ in range(2)])
        self.short = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = self.norms[1](self.b(torch.relu(self.norms[0](self.a(x)))))
        return torch.relu(y + self.short(x))


def resnet():
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


class Detector(nn.Module):
    """Boxes and scores of each pixel of a small map; those that are best and apart."""

    def __init__(self):
        super().__init__()
        self.body, self.boxes, self.scores = nn.Sequential(block(3, 8), nn.MaxPool2d(4)), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 3, 1)

    def forward(self, x):
        x = self.body(x)
        boxes = self.boxes(x).permute(0, 2, 3, 1).reshape(-1, 4)
        scores, classes = self.scores(x).permute(0, 2, 3, 1).reshape(-1, 3).sigmoid().max(dim=1)
        center, size = boxes[:, :2].sigmoid() * 40, boxes[:, 2:].exp() * 6
        boxes = torch.cat((center - size / 2, center + size / 2), dim=1)
        kept = torch.where(scores > 0.3)[0]
        boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        best = torchvision.ops.batched_nms(boxes, scores, classes, 0.4)[:20]
        return boxes[best], scores[best], classes[best]


class Decoder(nn.Module):
    """A scripted loop that keeps each step's answer in a list."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.Linear(14, 8), nn.Linear(8, 5)

    def forward(self, x, h):
        steps, words = [], []
        for i in range(x.size(1)):
            h = torch.tanh(self.cell(torch.cat((x[:, i], h), dim=1)))
            steps.append(self.head(h))
            words.append(h)
        return torch.stack(steps, dim=1), torch.cat(words, dim=1), steps[0], h


class Keeper(nn.Module):
    """Of each image the pixels that are bright, lists of any length, joined."""

    def __init__(self):
        super().__init__()
        self.score = nn.Conv2d(3, 1, 1)

    def forward(self, x):
        kept, scores = [], self.score(x).flatten(1)
        for i in range(x.size(0)):
            kept.append(scores[i][scores[i] > 0.1])
        return torch.cat(kept, dim=0)


class Trained(nn.Module):
    """Trained with quantization: products of fake-quantized tensors, normalizations behind them, sums of floats."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.Conv2d(16, 16, 3, 1, 1, groups=16, bias=False),
                                    nn.Conv2d(16, 16, 1, bias=False)])
        self.norms = nn.ModuleList(nn.BatchNorm2d(16) for _ in self.convs)
        self.head = nn.Linear(16, 6)
        for norm in self.norms:
            nn.init.uniform_(norm.weight, -0.4, 1.2)
        for k, layer in enumerate([*self.convs, self.head]):
            self.register_buffer(f"scale{k}", layer.weight.detach().abs().flatten(1).amax(1) / 127)
            self.register_buffer(f"zero{k}", torch.zeros(len(layer.weight), dtype=torch.int32))

    def weight(self, k, layer):
        return torch.fake_quantize_per_channel_affine(layer.weight, getattr(self, f"scale{k}"), getattr(self, f"zero{k}"), 0, -128, 127)

    def product(self, k, x, low=0):
        conv = self.convs[k]
        x = torch.fake_quantize_per_tensor_affine(x, 0.02, 0, low, low + 255)
        return self.norms[k](nn.functional.conv2d(x, self.weight(k, conv), None, conv.stride, conv.padding, 1, conv.groups))

    def forward(self, x):
        x = torch.relu(self.product(0, x, -128))
        x = torch.relu(x + self.product(2, torch.relu(self.product(1, x))))
        x = torch.fake_quantize_per_tensor_affine(x.mean((2, 3)), 0.02, 0, 0, 255)
        return nn.functional.linear(x, self.weight(3, self.head), self.head.bias)


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(24, 3, 48, batch_first=True), 2)


def ids(count, batch, length):
    return torch.randint(0, count, (batch, length))


# name: (network, inputs of a batch, {input: {axis: its name}})
CASES = {
    "bert": (Bert, lambda n: (ids(60, n, 7), torch.cat((torch.ones(n, 5, dtype=torch.int64), torch.zeros(n, 2, dtype=torch.int64)), 1)),
             {"x0": {0: "n", 1: "s"}, "x1": {0: "n", 1: "s"}}),
    "gpt": (Gpt, lambda n: (ids(50, n, 4), torch.randn(n, 4, 3, 8), torch.randn(n, 4, 3, 8)),
            {"x0": {0: "n", 1: "s"}, "x1": {0: "n", 2: "p"}, "x2": {0: "n", 2: "p"}}),
    "vit": (Vit, lambda n: (torch.randn(n, 3, 32, 32),), {"x0": {0: "n"}}),
    "encoder": (encoder, lambda n: (torch.randn(n, 6, 24),), {"x0": {0: "n"}}),
    "recurrent": (Recurrent, lambda n: (torch.randn(n, 9, 12),), {"x0": {0: "n"}}),
    "unet": (Unet, lambda n: (torch.randn(n, 3, 16, 24),), {"x0": {0: "n", 2: "h", 3: "w"}}),
    "resnet": (resnet, lambda n: (torch.randn(n, 3, 48, 48),), {"x0": {0: "n"}}),
    "detector": (Detector, lambda n: (torch.randn(1, 3, 32, 40),), {"x0": {2: "h", 3: "w"}}),
    "decoder": (lambda: torch.jit.script(Decoder()), lambda n: (torch.randn(n, 4 + n, 6), torch.randn(n, 8)),
                {"x0": {0: "n", 1: "s"}, "x1": {0: "n"}}),
    "keeper": (lambda: torch.jit.script(Keeper()), lambda n: (torch.randn(n, 3, 5, 6),), {"x0": {0: "n"}}),
    "trained": (Trained, lambda n: (torch.randn(n, 3, 24, 24),), {"x0": {0: "n"}}),
}


def settle(net):
    """Statistics and biases that are not the ones a network begins with."""
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return net.eval()


def command(qsim, *arguments):
    done = subprocess.run([qsim, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"qsim {' '.join(arguments)}: {done.stderr.strip()}")


def run(qsim, folder, file, inputs):
    arguments = []
    for i, x in enumerate(inputs):
        np.save(f"{folder}/x{i}.npy", x.numpy())
        arguments += ["--input", f"x{i}={folder}/x{i}.npy"]
    command(qsim, "run", "-q", "-f", file, "--output-dir", f"{folder}/out", *arguments)


def apart(folder, expected):
    worst = 0.0
    for i, want in enumerate(expected):
        got = np.load(f"{folder}/out/output_{i}.npy")
        if got.shape != tuple(want.shape):
            return f"output {i} is {got.shape}, PyTorch's {tuple(want.shape)}"
        if want.numel():
            worst = max(worst, float(np.abs(got - want.detach().numpy()).max() / max(1e-3, np.abs(want.detach().numpy()).max())))
    return worst


def quantized(qsim, folder, file, inputs):
    """In every mode, calibrated on the inputs; what is written runs."""
    np.savez(f"{folder}/data.npz", **{f"x{i}": x.numpy() for i, x in enumerate(inputs)})
    for mode in ("static", "dynamic", "weights"):
        data = ["--data", f"{folder}/data.npz", "--held-out", "0", "--batch", str(inputs[0].shape[0])] if mode == "static" else []
        command(qsim, "quantize", "-q", "-f", "--mode", mode, file, "-o", f"{folder}/q.onnx", *data)
        run(qsim, folder, f"{folder}/q.onnx", inputs)


def floats(qsim, file):
    """Products and normalizations that do not run in integers."""
    told = json.loads(subprocess.run([qsim, "info", "--nodes", "--json", file], capture_output=True, check=True).stdout)
    return [n["name"] for n in told["nodes"] if n["operator"] in ("Conv", "Gemm", "MatMul", "BatchNormalization") and not n["integer"]]


def one(qsim, folder, name, opset):
    make, draw, free = CASES[name]
    torch.manual_seed(len(name) + opset)
    net, example, file = settle(make()), draw(2), f"{folder}/{name}_{opset}.onnx"
    torch.onnx.export(net, example, file, opset_version=opset, input_names=[f"x{i}" for i in range(len(example))], dynamic_axes=free)
    for batch in (1, 3):
        inputs = draw(batch)
        with torch.no_grad():
            expected = net(*inputs)
        run(qsim, folder, file, inputs)
        how = apart(folder, expected if isinstance(expected, tuple) else (expected,))
        # Ties of quantization may fall to the other side.
        if isinstance(how, str) or not how <= (2e-2 if name == "trained" else 1e-4):
            return f"batch {batch}: {how} apart"
    if name == "trained":
        left = floats(qsim, file)
        return f"in floats: {', '.join(left)}" if left else None
    quantized(qsim, folder, file, inputs)
    return None


def main():
    qsim, folder, *names = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    bad = 0
    for name in names or CASES:
        if name == "detector" and torchvision is None:
            print("skipped: detector, there is no torchvision")
            continue
        for opset in OPSETS:
            try:
                wrong = one(qsim, folder, name, opset)
            except RuntimeError as e:
                wrong = str(e)
            print(f"{'BAD ' if wrong else 'ok  '} {name} opset {opset}{': ' + wrong if wrong else ''}", flush=True)
            bad += wrong is not None
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
