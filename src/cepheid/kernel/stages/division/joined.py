"""Joins the states of several kernels of one pattern, which have different keys, into one state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.stages.tables import Tables
from cepheid.kernel.parts import Joined, StatePart, firsts

_POINTS_TO = {
    "rows": {"start": "events", "node": "nodes", "whole": "nodes"},
    "completed": {"start": "events", "node": "nodes"},
    "nodes": {"event": "events", "parent": "nodes", "before": "nodes", "beside": "nodes"},
    "keys": {
        "live": "rows",
        "live_end": "rows",
        "completed": "completed",
        "completed_end": "completed",
        "key": "numbers",
    },
    "earlier": {"key": "numbers", "event": "events"},
    "partial_matches": {"key": "keys", "end": "taken"},
    "taken": {"event": "events"},
}
"""By array, the fields that are positions in another array, or among the events or the numbers of keys. A negative one
stands for nothing. Each kernel has some of the arrays and fields.
"""
_COUNTS = ("negated", "dropped")


def joined(parts: Sequence[StatePart], tables: Tables) -> Joined:
    """One state with what all parts have."""
    return Joined({name: _joined(name, parts, tables) for name in parts[0].arrays}, _firsts("numbers", parts))


def _joined(name: str, parts: Sequence[StatePart], tables: Tables) -> npt.NDArray[Any]:
    arrays = [part.arrays[name] for part in parts]
    if name == "totals":  # the number of steps so far, and two counts
        return np.array([max(array[0] for array in arrays), *np.sum(arrays, axis=0)[1:]], np.int64)
    if name in _COUNTS:
        counts: npt.NDArray[Any] = np.sum(arrays, axis=0)
        return counts
    first = {kind: _firsts(kind, parts) for kind in _kinds(name)}
    return np.concatenate(
        [_moved(name, array, {kind: first[kind][i] for kind in first}, tables) for i, array in enumerate(arrays)]
    )


def _kinds(name: str) -> set[str]:
    if name in ("heads", "slots"):
        return {"nodes" if name == "heads" else "events"}
    return {*_POINTS_TO.get(name, {}).values()}


def _firsts(kind: str, parts: Sequence[StatePart]) -> list[int]:
    return firsts(_length(kind, part) for part in parts)


def _length(kind: str, part: StatePart) -> int:
    """How many elements of this kind the part has; the numbers of its keys are below their length."""
    arrays = part.arrays
    if kind == "events":
        return part.events
    if kind != "numbers":
        return len(arrays.get(kind, ()))
    if "partial_matches" in arrays:  # of the reference step
        return int(arrays["keys"]["key"].max(initial=-1)) + 1
    return len(arrays["heads" if "heads" in arrays else "keys"])


def _moved(name: str, array: npt.NDArray[Any], first: Mapping[str, int], tables: Tables) -> npt.NDArray[Any]:
    """A part's array with its positions in the joined state."""
    moved = array.copy()
    if name == "heads":
        return _after(moved, first["nodes"])
    if name == "slots":
        positions = tables.slots["initial"] < 0
        moved[:, positions] = _after(array[:, positions], first["events"])
        return moved
    fields = _POINTS_TO.get(name, {})
    for field in (field for field in array.dtype.names or () if field in fields):
        moved[field] = _after(array[field], first[fields[field]])
    return moved


def _after(positions: npt.NDArray[Any], first: int) -> npt.NDArray[Any]:
    return np.where(positions < 0, positions, positions + first).astype(positions.dtype)
