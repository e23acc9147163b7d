# SPDX-License-Identifier: MIT
"""Contexts: threads and instruction sets."""

from __future__ import annotations

import ctypes as C
import logging
from typing import Any, Dict, List, Optional

from ._abi import _CtxOptions, _Limits, _LogFn, _Machine, _lib, _text
from ._library import _Handle, _call, _check
from ._words import _isa

_LOG_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.DEBUG}
_logger = logging.getLogger("qsim")


def _log(_: Any, level: int, line: Optional[bytes]) -> None:
    _logger.log(_LOG_LEVELS.get(level, logging.DEBUG), "%s", (line or b"").decode())


_log_hook = _LogFn(_log)


class Context(_Handle):
    """Threads, instruction set and limits of the models and sessions that are made with it.

    `threads`: 0: one for each CPU; `isa`: "c", "avx2", ..., isas() lists them; None: the best.
    `limits` are those of qsim_limits in qsim/base.h, for all objects made with the context
    together: memory (bytes), milliseconds (from now on), file (bytes), stream (bytes of a pipe, or of
    a file read into memory), nodes, values, elements, attributes, nesting, entries, ratio, threads.
    Exceeding one raises Error, which names it."""

    _free = "qsim_ctx_free"

    def __init__(self, threads: int = 0, isa: Optional[str] = None, **limits: int) -> None:
        known = [name for name, *_ in _Limits._fields_[1:]]
        for name in limits:
            if name not in known:
                raise TypeError(f"{name!r} is no limit; those are {', '.join(known)}")
        pointer, own = C.c_void_p(), _Limits(**limits)
        options = _CtxOptions(log=_log_hook, threads=threads, isa=_isa(isa), limits=C.pointer(own))
        _call("qsim_ctx_create", C.byref(options), C.byref(pointer))
        super().__init__(pointer)

    def __enter__(self) -> "Context":
        return self

    @property
    def threads(self) -> int:
        """Number of threads that share work."""
        return int(_lib.qsim_ctx_threads(self._pointer))

    @property
    def isa(self) -> str:
        """The instruction set whose kernels run."""
        return _text(_lib.qsim_isa_name(_lib.qsim_ctx_isa(self._pointer)))

    @property
    def limits(self) -> Dict[str, int]:
        """The limits of the context; 0: none."""
        own = _Limits()
        _check(_lib.qsim_ctx_limits(self._pointer, C.byref(own)))
        return {name: int(getattr(own, name)) for name, *_ in _Limits._fields_[1:]}

    @property
    def memory(self) -> int:
        """Bytes that all objects of the context hold now; 0 without a memory limit."""
        return int(_lib.qsim_ctx_memory(self._pointer))

    def cancel(self, on: bool = True) -> None:
        """Ends calls on objects of the context, in progress or new, with Error (QSIM_E_CANCELLED),
        until cancel(False). May be called from any thread."""
        _lib.qsim_ctx_cancel(self._pointer, 1 if on else 0)

    def __repr__(self) -> str:
        if self._owned is None:
            return "<Context: closed>"
        return f"<Context: {self.isa}, {self.threads} thread{'s' if self.threads > 1 else ''}>"


# The context of objects without threads or instruction set of their own.
_shared = Context()
_ctx = _shared._pointer


def _of_context(context: Optional[Context]) -> C.c_void_p:
    return _ctx if context is None else Context._of(context)


def isas() -> List[str]:
    """The instruction sets that this build has kernels for and this CPU runs; "c" is always one of
    them."""
    found: List[str] = []
    number = 1
    while True:
        name = _lib.qsim_isa_name(number)
        if name is None:
            return found
        if _lib.qsim_isa_available(number):
            found.append(name.decode())
        number += 1


def machine(threads: int = 0, isa: Optional[str] = None) -> Dict[str, Any]:
    """The limits of this machine with one instruction set, its best if isa is None, measured in
    about 0.3 s: int8_gmacs, tile_gmacs (8 bits by AMX) and float_gmacs, in 10^9
    multiply-accumulates per second; read_gbs, a list of (bytes, 10^9 bytes per second) for blocks
    that fit each level of cache, and memory; threads. 0: not known."""
    m, own = _Machine(), Context(threads, isa)
    _call("qsim_machine_measure", own._pointer, C.byref(m))
    return {"int8_gmacs": m.int8_gmacs, "tile_gmacs": m.tile_gmacs, "float_gmacs": m.float_gmacs,
            "threads": m.threads, "read_gbs": list(zip(m.read_bytes, m.read_gbs))}
