# SPDX-License-Identifier: MIT
"""Profiles: the times of a session's steps."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Sequence, Tuple, Union

import numpy as np

from ._html import _html_table

_DEFERRED = -2  # QSIM_STEP_DEFERRED


class Profile(List[Dict[str, Any]]):
    """The result of Session.profile(): a list of dicts, one for each step in the order of
    execution; top() gives the slowest ones, `runs` is the number of measured runs. `deferred_us`:
    median microseconds of a run for nodes without steps, whose sizes only a run knows (NonZero,
    branches of If, bodies of Loop, and what follows them)."""

    def __init__(self, steps: Sequence[Dict[str, Any]],
                 events: Sequence[Tuple[int, int, int, int]]) -> None:
        super().__init__(steps)
        self.runs = 1 + max((e[0] for e in events), default=-1)
        self._events = events
        times: List[List[float]] = [[] for _ in steps]
        deferred: List[float] = []
        for _, step, _, duration in events:
            if step >= 0:
                times[step].append(duration / 1000)
            elif step == _DEFERRED:
                deferred.append(duration / 1000)
        self.deferred_us = float(np.median(deferred)) if deferred else 0.0
        for info, t in zip(self, times):
            info["us"] = float(np.median(t)) if t else 0.0
        whole = sum(step["us"] for step in self) or 1.0
        for info in self:
            info["share"] = 100 * info["us"] / whole

    def top(self, count: int = 10) -> List[Dict[str, Any]]:
        """The `count` slowest steps, the slowest first."""
        return sorted(self, key=lambda step: -float(step["us"]))[:count]

    def save_trace(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes Chrome trace events, which Perfetto and scripts for ONNX Runtime's profiles
        read."""
        origin = min((e[2] for e in self._events), default=0)
        trace = [self._event(origin, *e) for e in self._events]
        temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as f:
                json.dump(trace, f)
            os.replace(temporary, path)
        except BaseException:
            if os.path.exists(temporary):
                os.remove(temporary)
            raise

    def _event(self, origin: int, execution: int, step: int, start: int,
               duration: int) -> Dict[str, Any]:
        event: Dict[str, Any] = {
            "cat": "Session", "pid": os.getpid(), "tid": os.getpid(), "ph": "X",
            "ts": (start - origin) / 1000, "dur": duration / 1000, "name": "model_run", "args": {}}
        if step == _DEFERRED:
            event["name"] = "deferred_nodes"
        if step >= 0:
            s = self[step]
            shapes = {f"{way}_type_shape": [{"float" if dtype == "float32" else dtype: list(shape)}
                                            for dtype, shape in s[f"{way}s"]]
                      for way in ("input", "output")}
            event.update(cat="Node", name=f"{s['node'] or s['op_type']}_kernel_time", args={
                "op_name": s["op_type"], "op_type": s["op_type"], "kernel": s["kernel"],
                "provider": "CPUExecutionProvider", "node_index": str(step), "macs": s["macs"],
                "bytes_read": s["bytes_read"], "bytes_written": s["bytes_written"],
                "run": execution, **shapes})
        return event

    def __repr__(self) -> str:
        deferred = f", {self.deferred_us:.1f} µs without" if self.deferred_us else ""
        return (f"<Profile: {len(self)} steps, {sum(s['us'] for s in self):.1f} µs{deferred}, "
                f"{self.runs} runs>")

    def _repr_html_(self) -> str:
        rows = [(s["node"], s["op_type"], s["kernel"], f"{s['us']:.2f}", f"{s['share']:.1f} %")
                for s in self.top(20)]
        return _html_table(f"{self!r}".strip("<>"), ("node", "operator", "kernel", "µs", "share"), rows)
