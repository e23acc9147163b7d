# SPDX-License-Identifier: MIT
"""Tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence


def _html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[Any]],
                limit: int = 60) -> str:
    lines = [f"<table><caption>{escape(caption)}</caption>",
             "<tr>" + "".join(f"<th>{escape(h)}</th>" for h in head) + "</tr>"]
    rows = list(rows)
    for row in rows[:limit]:
        lines.append("<tr>" + "".join(f"<td>{escape(_cell(v))}</td>" for v in row) + "</tr>")
    if len(rows) > limit:
        lines.append(f'<tr><td colspan="{len(head)}">… and {len(rows) - limit} more</td></tr>')
    return "\n".join(lines + ["</table>"])


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _size(count: int) -> str:
    """Bytes in readable form: 512 B, 12.5 KB, 3.21 MB."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.4g} KB" if count < 1024**2 else f"{count / 1024**2:.4g} MB"
