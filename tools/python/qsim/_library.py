# SPDX-License-Identifier: MIT
"""The shared library: loading it, and its errors as exceptions."""

from __future__ import annotations

import ctypes as C
import os
import sys
from typing import Any, NoReturn, Optional, Tuple


def _library_names() -> Tuple[str, ...]:
    if sys.platform == "darwin":
        return ("libqsim.0.dylib", "libqsim.dylib")
    if sys.platform == "win32":
        return ("qsim-0.dll", "libqsim-0.dll")
    return ("libqsim.so.0", "libqsim.so")


def _open() -> C.CDLL:
    names = _library_names()
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), names[0])
    tried = []
    for path in (os.environ.get("QSIM_LIBRARY"), beside, *names):
        if not path:
            continue
        try:
            return C.CDLL(path)
        except OSError as why:
            tried.append(f"{path}: {why}")
    raise ImportError("libqsim was not found; set QSIM_LIBRARY to its path\n" + "\n".join(tried))


_lib = _open()


class Error(Exception):
    """A failure of the library: `code`, a negative number; `name`, its name such as "QSIM_E_SHAPE";
    `message`, one line with file, node, tensor and rule; `hint`, what to do, or ""."""

    def __init__(self, code: int, message: str = "", hint: str = "") -> None:
        self.code = code
        self.name: str = _lib.qsim_error_name(code).decode()
        self.message: str = message or _lib.qsim_error_text(code).decode()
        self.hint = hint
        super().__init__(self.message + (f" ({hint})" if hint else ""))

    def __reduce__(self) -> Any:  # a worker of multiprocessing gives its errors to its parent
        return type(self), (self.code, self.message, self.hint)


class _ErrorStruct(C.Structure):
    _c_ = "qsim_error"
    _fields_ = [("code", C.c_int32), ("flags", C.c_int32), ("message", C.c_char * 384),
                ("hint", C.c_char * 192)]


def _check(code: int, error: Optional[_ErrorStruct] = None, where: str = "") -> int:
    """Raises Error for a negative code, from its qsim_error, or with `where` for functions without
    one."""
    if code < 0:
        if error is not None and error.code:
            raise Error(code, error.message.decode(), error.hint.decode())
        raise Error(code, f"{where}: {_lib.qsim_error_text(code).decode()}" if where else "")
    return code


def _call(name: str, *arguments: Any) -> int:
    """Calls a function whose last parameter is a qsim_error *."""
    error = _ErrorStruct()
    return _check(getattr(_lib, name)(*arguments, C.byref(error)), error)


class _Handle:
    """Owns an opaque object of the library, until it is closed or collected."""

    _free = ""  # the function that frees the object; "": another object owns it
    _made_by = "the library"

    _owned: Optional[C.c_void_p] = None

    def __init__(self, pointer: Optional[C.c_void_p] = None) -> None:
        if not isinstance(pointer, C.c_void_p):
            raise TypeError(f"{self._made_by} makes a {type(self).__name__}")
        self._owned = pointer
        self._release = getattr(_lib, self._free) if self._free else None

    @property
    def _pointer(self) -> C.c_void_p:
        if self._owned is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._owned

    @classmethod
    def _of(cls, value: object) -> C.c_void_p:
        """The library's object in `value`, which has to be one of this class."""
        if not isinstance(value, cls):
            raise TypeError(f"{cls.__name__} is needed, not {type(value).__name__}")
        return value._pointer

    def close(self) -> None:
        """Frees the memory now; the object cannot be used afterwards."""
        pointer = getattr(self, "_owned", None)
        self._owned = None
        if pointer is not None and self._release is not None:
            self._release(pointer)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is memory of this process and cannot be pickled: "
                        "let each process make its own")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()
