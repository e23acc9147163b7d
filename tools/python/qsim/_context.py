# SPDX-License-Identifier: MIT
"""Contexts: threads and instruction sets."""

from __future__ import annotations

import ctypes as C
import logging
from typing import Any, Dict, List, Optional

from ._abi import _CtxOptions, _LogFn, _Machine, _lib
from ._library import _Handle, _call
from ._words import _isa

_LOG_LEVELS = {1: logging.ERROR, 2: logging.WARNING, 3: logging.DEBUG}
_logger = logging.getLogger("qsim")


def _log(_: Any, level: int, line: Optional[bytes]) -> None:
    _logger.log(_LOG_LEVELS.get(level, logging.DEBUG), "%s", (line or b"").decode())


_log_hook = _LogFn(_log)


class _Context(_Handle):
    _free = "qsim_ctx_free"

    def __init__(self, threads: int = 0, isa: Optional[str] = None) -> None:
        pointer = C.c_void_p()
        options = _CtxOptions(log=_log_hook, threads=threads, isa=_isa(isa))
        _call("qsim_ctx_create", C.byref(options), C.byref(pointer))
        super().__init__(pointer)


# Of everything that has no threads or instruction set of its own.
_shared = _Context()
_ctx = _shared._pointer


def isas() -> List[str]:
    """The instruction sets whose kernels this build has and this CPU runs; "c" is always among
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


def machine(threads: int = 0) -> Dict[str, Any]:
    """What this machine can do at most, measured in about 0.3 s: int8_gmacs, tile_gmacs (of 8 bits by
    AMX) and float_gmacs, in 10^9 multiply-accumulates a second; read_gbs, a list of (bytes, 10^9
    bytes a second) for blocks that fit each level of cache, and memory; threads. 0 where nothing is
    known."""
    m, own = _Machine(), _Context(threads)
    _call("qsim_machine_measure", own._pointer, C.byref(m))
    return {"int8_gmacs": m.int8_gmacs, "tile_gmacs": m.tile_gmacs, "float_gmacs": m.float_gmacs,
            "threads": m.threads, "read_gbs": list(zip(m.read_bytes, m.read_gbs))}
