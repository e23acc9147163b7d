# SPDX-License-Identifier: MIT
"""Ctrl-C while a run computes. Python calls a handler of its own only once the library has
returned, but writes a byte into a pipe at once: a thread reads it there and cancels the run."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, Optional

from ._abi import _lib


class _Interrupts:
    """Ctrl-C in the main thread: watch() to leave() cancels one run of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._run: Any = None
        self._process = 0
        self._pipe = -1

    def _begin(self) -> None:
        """Makes pipe and thread, again after a fork."""
        reading, self._pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._process, self._lock, self._run = os.getpid(), threading.Lock(), None
        threading.Thread(target=self._listen, args=(reading,), name="qsim Ctrl-C",
                         daemon=True).start()

    def _listen(self, reading: int) -> None:
        while True:
            signals = os.read(reading, 512)
            with self._lock:
                if signal.SIGINT in signals and self._run is not None:
                    self._run.cancelled = True
                    _lib.qsim_run_cancel(self._run._pointer)

    def watch(self, run: Any) -> "Optional[_Interrupts]":
        """Watches a run until `leave`; None if no handler takes Ctrl-C, or the wakeup pipe
        is in use."""
        if (threading.current_thread() is not threading.main_thread()
                or not callable(signal.getsignal(signal.SIGINT))):
            return None
        if self._process != os.getpid():
            self._begin()
        before = signal.set_wakeup_fd(self._pipe, warn_on_full_buffer=False)
        if before not in (-1, self._pipe):
            signal.set_wakeup_fd(before)
            return None
        with self._lock:
            self._run = run
        return self

    def leave(self) -> None:
        """Stops watching: the run has ended."""
        with self._lock:
            self._run = None
        signal.set_wakeup_fd(-1)


_interrupts = _Interrupts()
