# SPDX-License-Identifier: MIT
"""Sizes and values of pictures as qsim makes them, against Pillow's published algorithm (Resample.c,
bilinear, 8 bits a channel) and torchvision's recipe, written again in numpy, and against Pillow
itself where it is installed. Usage: pictures.py QSIM IDENTITY_MODEL FOLDER; --golden prints the values
that test_images.c holds."""
import math
import struct
import subprocess
import sys
import zlib

import numpy as np

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def weights(size_in, size_out):
    """Rows of integer weights with 22 bits after the point, for each output position."""
    scale = size_in / size_out
    support = max(scale, 1.0)
    table = np.zeros((size_out, size_in))  # products and sums are integers below 2^53: exact
    for x in range(size_out):
        center = (x + 0.5) * scale
        low = max(int(center - support + 0.5), 0)
        high = min(int(center + support + 0.5), size_in)
        k = [max(1.0 - abs((i - center + 0.5) * (1.0 / support)), 0.0) for i in range(low, high)]
        total = 0.0
        for w in k:
            total += w
        table[x, low:high] = [int(0.5 + w / total * (1 << 22)) for w in k]
    return table


def rounded(sums):
    return np.clip((sums.astype(np.int64) + (1 << 21)) >> 22, 0, 255).astype(np.uint8)


def resize(image, width, height):
    """[H, W, C] of uint8; each axis is rounded to 8 bits, columns first."""
    if width != image.shape[1]:
        image = rounded(np.tensordot(weights(image.shape[1], width), image, (1, 1)).transpose(1, 0, 2))
    if height != image.shape[0]:
        image = rounded(np.tensordot(weights(image.shape[0], height), image, (1, 0)))
    return image


def center_crop(image, size):
    """torchvision.transforms.CenterCrop: Python's round, halves to even."""
    top, left = round((image.shape[0] - size) / 2.0), round((image.shape[1] - size) / 2.0)
    return image[top:top + size, left:left + size]


def shorter(image, side):
    """torchvision.transforms.Resize(side): the longer side is cut to an integer."""
    h, w = image.shape[:2]
    return resize(image, side, int(side * h / w)) if w <= h else resize(image, int(side * w / h), side)


def letterbox(image, width, height, fill, corner):
    h, w = image.shape[:2]
    r = min(width / w, height / h)
    inner = resize(image, int(w * r + 1e-9), int(h * r + 1e-9))
    out = np.full((height, width, 3), fill, np.uint8)
    top, left = (0, 0) if corner else ((height - inner.shape[0]) // 2, (width - inner.shape[1]) // 2)
    out[top:top + inner.shape[0], left:left + inner.shape[1]] = inner
    return out


def write_ppm(path, image):
    with open(path, "wb") as f:
        f.write(b"P6 %d %d 255\n" % (image.shape[1], image.shape[0]) + image.tobytes())


def write_png(path, image, color, more=(), interlaced=False):
    """A PNG of an array [H, W, C] of uint8 or big-endian uint16; `more`: chunks, name and bytes."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    h, w = image.shape[:2]
    parts = [image[y::dy, x::dx] for x, y, dx, dy in
             ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))]
    rows = [row for part in (parts if interlaced else [image]) for row in part if row.size]
    head = struct.pack(">IIBBBBB", w, h, image.dtype.itemsize * 8, color, 0, 0, interlaced)
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*c) for c in more) +
                chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))) + chunk(b"IEND", b""))


def golden():
    y, x, c = np.mgrid[0:7, 0:11, 0:3]
    image = ((x * 37 + y * 91 + c * 53 + x * y * 5) % 256).astype(np.uint8)
    for w, h in ((5, 3), (16, 9), (4, 7)):
        flat = resize(image, w, h).reshape(-1)
        print("%d x %d:" % (w, h), ", ".join(map(str, flat)))


def main():
    qsim, model, folder = sys.argv[1:4]
    rng = np.random.default_rng(7)
    failed = 0

    def run(image, spec):
        write_ppm(folder + "/p.ppm", image)
        subprocess.run([qsim, "run", model, "-i", folder + "/p.ppm", "--preprocess", spec, "-o",
                        folder + "/p.npy", "-f"], check=True)
        return np.load(folder + "/p.npy")[0].transpose(1, 2, 0)

    def same(what, got, want, off=0.0):
        nonlocal failed
        good = got.shape == want.shape and float(np.abs(got - want).max()) <= off
        failed += not good
        print("%s: %s" % ("same" if good else "DIFFERENT", what))

    try:
        from PIL import Image
    except ImportError:
        Image = None
        print("skipped: Pillow itself (python3-pil is not installed)")
    def read(name):
        done = subprocess.run([qsim, "run", model, "-i", folder + "/" + name, "--preprocess", "scale=1", "-o",
                               folder + "/p.npy", "-f"], check=False)
        return np.zeros(0) if done.returncode else np.load(folder + "/p.npy")[0].transpose(1, 2, 0)

    image = rng.integers(0, 256, (11, 13, 3), dtype=np.uint8)
    grey, wide, want = image[..., :1], (image * 256.0 + 200).astype(">u2"), image.astype(np.float32)
    for what, given, color in (("RGB", image, 2), ("RGB of 16 bits: the upper 8", wide, 2), ("grey", grey, 0),
                               ("grey of 16 bits", wide[..., :1], 0), ("RGB with alpha", np.dstack([image, grey]), 6),
                               ("16 bits with alpha", np.dstack([wide, wide[..., :1]]).astype(">u2"), 6)):
        for interlaced in (False, True):
            write_png(folder + "/p.png", given, color, interlaced=interlaced)
            same("PNG, %s%s" % (what, ", interlaced" if interlaced else ""), read("p.png"),
                 want if color & 2 else np.repeat(want[..., :1], 3, 2))
    for gamma in (45455, 100000):
        write_png(folder + "/p.png", image, 2, [(b"gAMA", struct.pack(">I", gamma))])
        same("PNG with a gamma of 1 / %g, which changes nothing" % (gamma / 1e5), read("p.png"), want)
    if Image:
        inks = Image.fromarray(rng.integers(0, 256, (9, 17, 4), dtype=np.uint8), "CMYK")
        inks.save(folder + "/p.jpg", quality=95)
        same("JPEG of inks (CMYK) as Pillow reads it", read("p.jpg"),
             np.asarray(Image.open(folder + "/p.jpg").convert("RGB"), np.float32))
    for w, h, to in ((97, 61, (224, 224)), (640, 427, (224, 160)), (33, 50, (33, 7)), (5, 4, (9, 4)),
                     (1, 300, (17, 3))):
        image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        got = run(image, "scale=1,resize=%d:%d" % to)
        same("%dx%d to %dx%d" % (w, h, *to), got, resize(image, *to).astype(np.float32))
        if Image:
            pil = np.asarray(Image.fromarray(image).resize(to, Image.BILINEAR))
            same("the same as Pillow makes it", got, pil.astype(np.float32))
    for w, h in ((517, 606), (341, 512), (225, 224)):
        image = rng.integers(0, 256, (h, w, 3), dtype=np.uint8)
        want = (center_crop(shorter(image, 256), 224) / 255.0 - MEAN) / STD
        text = "mean=0.485:0.456:0.406,std=0.229:0.224:0.225,resize=256,crop=224"
        same("torchvision's recipe, %dx%d" % (w, h), run(image, text), want, 1e-6)
        same("as a preset", run(image, "imagenet"), want, 1e-6)
        same("in pixels 0..255",
             run(image, "resize=256,crop=224,mean=123.675:116.28:103.53,std=58.395:57.12:57.375"), want, 1e-6)
        want = letterbox(image, 416, 320, 114, True)[:, :, ::-1]
        same("letterbox", run(image, "yolox,letterbox=416x320"), want.astype(np.float32))
        want = letterbox(image, 64, 96, 0, False) / 255.0
        same("letterbox in the middle", run(image, "letterbox=64:96"), want, 1e-6)
    x, y = np.eye(3, dtype=np.float32), np.arange(3)
    for names in (("X", "Y"), ("x_test", "y_test"), ("images", "labels")):
        np.savez(folder + "/d.npz", **dict(zip(names, (x, y))))
        done = subprocess.run([qsim, "eval", "id.onnx", "-d", folder + "/d.npz"], capture_output=True, text=True)
        same("an archive with %s and %s" % names, np.float32("top-1 100.00" in done.stdout), np.float32(1))
    np.savez(folder + "/d.npz", first=x, second=y)
    done = subprocess.run([qsim, "eval", "id.onnx", "-d", folder + "/d.npz"], capture_output=True, text=True)
    same("an archive with other names: they are listed", np.float32("first, second" in done.stderr), np.float32(1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(golden() if sys.argv[1:] == ["--golden"] else main())
