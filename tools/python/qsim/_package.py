# SPDX-License-Identifier: MIT
"""Packages: a zip of models with calibration, preprocessing, labels and a report."""

from __future__ import annotations

import ctypes as C
import os
from collections.abc import Mapping
from typing import Any, List, NamedTuple, Optional, Union

from ._abi import _PackageEntry, _lib, _path, _text, _utf8
from ._context import _ctx
from ._html import _html_table, _size
from ._library import _Handle, _call, _check
from ._model import Model
from ._words import _ROLES

_TEXTS_OF_A_PACKAGE = ("calibration", "preprocess", "labels", "report")


class _Packer(_Handle):
    _free = "qsim_packer_free"

    def __init__(self) -> None:
        pointer = C.c_void_p()
        _call("qsim_packer_create", _ctx, C.byref(pointer))
        super().__init__(pointer)

    def add(self, role: str, name: Optional[str], content: Union[str, bytes]) -> None:
        data = content.encode() if isinstance(content, str) else bytes(content)
        _call("qsim_packer_add", self._pointer, _ROLES[role], _utf8(name) if name else None, data,
              len(data))


class PackageEntry(NamedTuple):
    """Facts about an entry: its role ("model", "labels", "data", ...), bytes (inflated), SHA-256 in
    hexadecimal, and whether it is stored without compression."""

    name: str
    role: str
    bytes: int
    sha256: str
    stored: bool


class Package(_Handle):
    """A zip of models with labels, preprocessing, calibration and a report."""

    _free = "qsim_package_free"
    _made_by = "Package.open(path)"

    def __init__(self, pointer: Optional[C.c_void_p] = None, keep: object = None) -> None:
        super().__init__(pointer)
        self._keep = keep

    def __enter__(self) -> "Package":
        return self

    @classmethod
    def open(cls, source: Union[str, "os.PathLike[str]", bytes]) -> "Package":
        """Opens a package, by path or from its bytes; every entry is checked when it is first
        read."""
        pointer, keep = C.c_void_p(), None
        if isinstance(source, bytes):
            keep = C.create_string_buffer(source, len(source))
            _call("qsim_package_open_memory", _ctx, keep, len(source), None, C.byref(pointer))
        else:
            _call("qsim_package_open", _ctx, _path(source), 0, C.byref(pointer))
        return cls(pointer, keep)

    @staticmethod
    def write(path: Union[str, "os.PathLike[str]"], *models: Union[str, "os.PathLike[str]"],
              replace: bool = True, compress: bool = False, note: Optional[str] = None,
              options: Optional[Mapping[str, str]] = None,
              files: Optional[Mapping[str, Union[str, bytes]]] = None, **texts: Any) -> None:
        """Packs model files, given by their paths. `texts` are the contents (str or bytes) of
        calibration, preprocess, labels and report, `files` those of further entries by their names;
        `options` and `note` go into the manifest. Without `replace` an existing file is an
        error."""
        packer = _Packer()
        for model in models:
            _call("qsim_packer_model", packer._pointer, _path(model), None)
        for role, text in texts.items():
            if role not in _TEXTS_OF_A_PACKAGE:
                raise TypeError(f"a package has no {role}; it has {', '.join(_TEXTS_OF_A_PACKAGE)}")
            packer.add(role, None, text)
        for name, content in (files or {}).items():
            packer.add("data", name, content)
        for key, value in {**(options or {}), **({} if note is None else {"note": note})}.items():
            _call("qsim_packer_option", packer._pointer, _utf8(key), _utf8(value))
        _call("qsim_packer_save", packer._pointer, _path(path),
              bool(replace) | 2 * bool(compress))

    @property
    def entries(self) -> List[PackageEntry]:
        """The entries, sorted by name."""
        found, entry = [], _PackageEntry()
        for i in range(_lib.qsim_package_count(self._pointer)):
            _check(_lib.qsim_package_get(self._pointer, i, C.byref(entry)))
            found.append(PackageEntry(_text(entry.name), _ROLES.word(entry.role), entry.bytes,
                                      _text(entry.sha256), bool(entry.stored)))
        return found

    @property
    def names(self) -> List[str]:
        """The entries' names, sorted."""
        return [entry.name for entry in self.entries]

    def read(self, name: str) -> bytes:
        """The bytes of an entry, checked against its hash."""
        index = _check(_lib.qsim_package_find(self._pointer, _utf8(name)), where=name)
        return self._read(index)

    def _read(self, index: int) -> bytes:
        data, size = C.c_void_p(), C.c_size_t()
        _call("qsim_package_data", self._pointer, index, C.byref(data), C.byref(size))
        return C.string_at(data, size.value) if size.value else b""

    def text(self, role: str) -> Optional[str]:
        """The text of a role: "labels", "preprocess", "calibration", "report" or "manifest"; None
        if there is none."""
        index = _lib.qsim_package_find_role(self._pointer, _ROLES[role])
        return self._read(index).decode() if index >= 0 else None

    def model(self, name: Optional[str] = None) -> Model:
        """The model of this name, or the one that the manifest names; nothing is unpacked."""
        pointer = C.c_void_p()
        _call("qsim_package_model", self._pointer, _utf8(name) if name else None, None,
              C.byref(pointer))
        return Model(pointer, self._keep)

    def unpack(self, folder: Union[str, "os.PathLike[str]"], replace: bool = False) -> None:
        """Checks every entry, then writes all of them below `folder`. Without `replace` an existing
        file is an error."""
        _call("qsim_package_unpack", self._pointer, _path(folder), 1 if replace else 0)

    def __repr__(self) -> str:
        return f"<Package: {', '.join(self.names)}>" if self._owned else "<Package: closed>"

    def _repr_html_(self) -> str:
        return _html_table("Package", ("name", "role", "bytes", "SHA-256"),
                           [(e.name, e.role, _size(e.bytes), e.sha256[:12]) for e in self.entries])
