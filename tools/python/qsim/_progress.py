# SPDX-License-Identifier: MIT
"""Progress of long work, which Ctrl-C and exceptions end."""

from __future__ import annotations

import signal
import threading
from typing import Any, Callable, Optional

from ._abi import _ProgressFn

#: Called with the current work (a node, a tensor), the steps done, and their total. A true result,
#: or an exception, ends the work.
Progress = Callable[[str, int, int], Any]


class _Watch:
    """Lends one callback to a function of the library; `with` watches one call of it.

    ctypes ignores an exception in a callback, also the KeyboardInterrupt of Ctrl-C. So exceptions
    are kept and raised after the call, and a handler notes Ctrl-C meanwhile.
    """

    def __init__(self, progress: Optional[Progress] = None) -> None:
        self.progress = progress
        self.problem: Optional[BaseException] = None
        self._interrupted = False
        self._before: Any = None
        self.hook = _ProgressFn(self._step)

    def _step(self, _: Any, what: Optional[bytes], done: int, total: int) -> int:
        return self.guard(lambda: self.progress and
                          self.progress((what or b"").decode(), done, total))

    def guard(self, work: Callable[[], Any]) -> int:
        """Runs the work of a callback; returns 1 if the library must stop."""
        if self._interrupted or self.problem is not None:
            return 1
        try:
            return 1 if work() else 0
        except BaseException as why:
            self.problem = why
            return 1

    def _note(self, *_: Any) -> None:
        self._interrupted = True

    def __enter__(self) -> "_Watch":
        self.problem, self._interrupted, self._before = None, False, None
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if callable(before):
                signal.signal(signal.SIGINT, self._note)
                self._before = before
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.problem is not None:
            problem, self.problem = self.problem, None
            raise problem from None
        if self._interrupted:
            self._before(signal.SIGINT, None)
