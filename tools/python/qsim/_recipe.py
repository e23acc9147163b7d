# SPDX-License-Identifier: MIT
"""Recipes: the decisions of a quantization, layer by layer and tensor by tensor."""

from __future__ import annotations

import ctypes as C
import os
from typing import Any, Iterator, NamedTuple, Optional, Tuple, Union

from ._abi import _RecipeEntry, _lib, _path, _text, _utf8
from ._context import _ctx
from ._html import _html_table
from ._library import _Handle, _call, _check
from ._words import (_CORRECTIONS, _ENTRY_ACTIONS, _GRANULARITIES, _KINDS, _METHODS, _ROUNDINGS,
                     _dtype, _dtype_name)

_HAS_RANGE, _HAS_METHOD, _REDUCED, _PAIRED = 1, 2, 4, 8


class RecipeEntry(NamedTuple):
    """One entry of a recipe. For a layer: dtype of the weights, granularity ("channel", "tensor",
    "block"), block, symmetric, reduced, paired, rounding, bias_correction ("default", "on", "off",
    "given" with the numbers in `shift`). For a tensor: dtype, symmetric, range (low, high), method,
    percentile. For a tensor of kind "equalize": the factors of its channels in `shift`."""

    kind: str  # "layer", "tensor", "equalize"
    name: str
    action: str = "quantize"  # or "float", "integer"
    dtype: Optional[str] = None
    symmetric: bool = False
    granularity: str = "channel"
    block: int = 0
    reduced: bool = False
    rounding: str = "nearest"
    bias_correction: str = "default"
    range: Optional[Tuple[float, float]] = None
    method: Optional[str] = None
    percentile: float = 0.0
    shift: Tuple[float, ...] = ()
    paired: bool = False


def _entry(e: _RecipeEntry) -> RecipeEntry:
    return RecipeEntry(
        _KINDS.word(e.kind), _text(e.name), _ENTRY_ACTIONS.word(e.action),
        _dtype_name(e.dtype) if e.dtype else None, bool(e.symmetric),
        _GRANULARITIES.word(e.granularity), e.block, bool(e.flags & _REDUCED),
        _ROUNDINGS.word(e.rounding), _CORRECTIONS.word(e.bias_correction),
        (e.low, e.high) if e.flags & _HAS_RANGE else None,
        _METHODS.word(e.method) if e.flags & _HAS_METHOD else None, e.percentile,
        tuple(e.shift[:e.shift_count]), bool(e.flags & _PAIRED))


class Recipe(_Handle):
    """The decisions of a quantization for each layer and tensor, as text; empty at first.

    `text` is that of a recipe; str(recipe) gives it back, iteration its entries as RecipeEntry."""

    _free = "qsim_recipe_free"

    def __init__(self, text: str = "") -> None:
        pointer = C.c_void_p()
        if text:
            data = text.encode()
            _call("qsim_recipe_load_memory", _ctx, data, len(data), None, C.byref(pointer))
        else:
            _call("qsim_recipe_create", _ctx, C.byref(pointer))
        super().__init__(pointer)

    def __enter__(self) -> "Recipe":
        return self

    @classmethod
    def load(cls, path: Union[str, "os.PathLike[str]"]) -> "Recipe":
        """Reads a recipe from a file."""
        pointer, recipe = C.c_void_p(), cls.__new__(cls)
        _call("qsim_recipe_load", _ctx, _path(path), C.byref(pointer))
        _Handle.__init__(recipe, pointer)
        return recipe

    def save(self, path: Union[str, "os.PathLike[str]"], replace: bool = False) -> None:
        """Writes the text to a file, atomically. Without `replace` an existing file is an error."""
        _call("qsim_recipe_save", self._pointer, _path(path), replace)

    def merge(self, other: "Recipe") -> "Recipe":
        """Adds every entry of another recipe. Returns self."""
        _call("qsim_recipe_merge", self._pointer, Recipe._of(other))
        return self

    def set(self, kind: str, name: str, **fields: Any) -> "Recipe":
        """Adds an entry, or replaces the one of this kind and name; `fields` are those of
        RecipeEntry: set("layer", "fc2", action="float"). Returns self."""
        f = RecipeEntry(kind, name, **fields)
        low, high = f.range if f.range else (0.0, 0.0)
        flags = ((_HAS_RANGE if f.range else 0) | (_HAS_METHOD if f.method else 0) |
                 (_REDUCED if f.reduced else 0) | (_PAIRED if f.paired else 0))
        entry = _RecipeEntry(
            name=_utf8(name), kind=_KINDS[kind], action=_ENTRY_ACTIONS[f.action],
            dtype=_dtype(f.dtype) if f.dtype else 0, symmetric=f.symmetric, flags=flags,
            granularity=_GRANULARITIES[f.granularity], block=f.block,
            rounding=_ROUNDINGS[f.rounding], bias_correction=_CORRECTIONS[f.bias_correction],
            method=_METHODS[f.method] if f.method else 0, low=low, high=high,
            percentile=f.percentile, shift_count=len(f.shift),
            shift=(C.c_float * len(f.shift))(*f.shift) if f.shift else None)
        _call("qsim_recipe_set", self._pointer, C.byref(entry))
        return self

    def get(self, kind: str, name: str) -> Optional[RecipeEntry]:
        """The entry of this kind ("layer", "tensor", "equalize") and name, or None."""
        index = _lib.qsim_recipe_find(self._pointer, _KINDS[kind], _utf8(name))
        return self[index] if index >= 0 else None

    def __getitem__(self, index: int) -> RecipeEntry:
        if not 0 <= index < len(self):
            raise IndexError(index)
        entry = _RecipeEntry()
        _check(_lib.qsim_recipe_get(self._pointer, index, C.byref(entry)))
        return _entry(entry)

    def __iter__(self) -> Iterator[RecipeEntry]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return int(_lib.qsim_recipe_count(self._pointer))

    @property
    def model(self) -> str:
        """SHA-256 of the model that it was made with; "": not known."""
        return _text(_lib.qsim_recipe_model(self._pointer))

    @property
    def calibration(self) -> str:
        """SHA-256 of the calibration that it was made with; "": not known."""
        return _text(_lib.qsim_recipe_calibration(self._pointer))

    def __str__(self) -> str:
        need = C.c_size_t()
        _call("qsim_recipe_text", self._pointer, None, 0, C.byref(need))
        text = C.create_string_buffer(need.value)
        _call("qsim_recipe_text", self._pointer, text, need.value, C.byref(need))
        return text.raw.decode()

    def __repr__(self) -> str:
        return f"<Recipe: {len(self)} entries>" if self._owned else "<Recipe: closed>"

    def _repr_html_(self) -> str:
        rows = [(e.kind, e.name, e.action if e.action != "quantize" else e.dtype,
                 "symmetric" if e.symmetric else "asymmetric",
                 e.granularity if e.kind == "layer" else e.range or "",
                 f"{e.method or ''} {e.percentile or ''}".strip()) for e in self]
        return _html_table("Recipe", ("", "name", "as", "", "scale or range", "method"), rows)
