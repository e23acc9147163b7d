# SPDX-License-Identifier: MIT
"""Where someone speaks in a recording: a network with a state, run on one piece of 32 ms after the
other. Usage: voice.py MODEL SOUND.wav (16 kHz, mono, 16 bits)"""

import sys
import wave

import numpy as np
import qsim

with wave.open(sys.argv[2]) as f:
    sound = np.frombuffer(f.readframes(f.getnframes()), np.int16).astype(np.float32) / 32768
piece, context = 512, 64  # each piece comes with the end of the one before
sound = np.concatenate([np.zeros(context, np.float32), sound])
speech, state = [], np.zeros((2, 1, 128), np.float32)
with qsim.Session(sys.argv[1], threads=1) as session:
    for end in range(context + piece, len(sound) + 1, piece):
        p, state = session.run({"input": sound[None, end - piece - context:end],
                                "sr": np.int64(16000), "state": state})
        speech.append(p.item() > 0.5)
print(f"speech in {sum(speech) * piece / 16000:.1f} of {len(speech) * piece / 16000:.1f} s")
