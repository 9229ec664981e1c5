"""Checks that arrays from a snapshot are a valid state. The kernel does not check them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.stages.tables import Tables
from cepheid.errors import SnapshotError
from cepheid.kernel.sets.layout import NO_EVENT, NO_SET, SET_NODE
from cepheid.kernel.stages.layout import COMPLETED, GROWN, KEY, NODE, ROW

_OTHER_ARRAYS = "the snapshot's arrays are not those of this pattern: was it written by another version?"
_PARTS = {"rows": ROW, "nodes": NODE, "keys": KEY, "completed": COMPLETED}


def checked_state(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> dict[str, npt.NDArray[Any]]:
    """The checked arrays in the kernel's own types, which may be wider or narrower than the stored ones.

    Raises:
        SnapshotError: an array is of another kind, a number in it points nowhere, or two do not agree.
    """
    slots, totals = state["slots"], state["totals"]
    stages = len(tables.stage_slots) - 1
    negated = state.get("negated", np.zeros(stages, np.int64))  # earlier versions did not count
    plain = all(array.dtype.kind == "i" for array in (slots, totals, negated)) and negated.shape == (stages,)
    fields = all(_has_fields(state[name], dtype) for name, dtype in _PARTS.items())
    if not (plain and fields and totals.shape == (3,) and slots.shape == (len(state["rows"]), len(tables.slots))):
        raise SnapshotError(_OTHER_ARRAYS)
    _check_numbers(tables, state, held)
    typed = {name: state[name].astype(dtype) for name, dtype in _PARTS.items()}
    counted = {"totals": totals.astype(np.int64), "negated": negated.astype(np.int64)}
    return {**typed, "slots": slots.astype(np.int64), **counted}


def _has_fields(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether it is a one-dimensional array of records with these fields, all of them integers."""
    names = array.dtype.names or ()
    return array.ndim == 1 and names == dtype.names and all(array.dtype[name].kind == "i" for name in names)


def _check_numbers(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
    rows, slots, nodes, keys, completed = (state[name] for name in ("rows", "slots", "nodes", "keys", "completed"))
    positions = slots[:, tables.slots["initial"] < 0]
    bounds = [
        (rows["state"], 0, len(tables.states)),
        (rows["start"], 0, held),
        (rows["node"], 0, len(nodes)),
        (rows["whole"], -1, len(nodes)),
        (nodes["event"], 0, held),
        (nodes["stage"], 0, len(tables.stage_slots) - 1),
        (nodes["parent"], -1, np.arange(len(nodes))),
        (nodes["holders"], GROWN, len(rows) + 1),
        (positions, -1, held),
        (completed["start"], 0, held),
        (completed["node"], 0, len(nodes)),
    ]
    _check_bounds(bounds)
    depth = _depths(nodes["parent"])
    if any((part["length"] != depth[part["node"]]).any() for part in (rows, completed)):
        raise SnapshotError("the snapshot's partial matches have lengths that do not agree with their events")
    if not (
        _is_cut(keys["live"], keys["live_end"], len(rows))
        and _is_cut(keys["completed"], keys["completed_end"], len(completed))
    ):
        raise SnapshotError("the snapshot's partial matches do not each belong to one key")


def check_sets(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
    """Checks the arrays of sets in the same way."""
    heads, now, nodes = state["heads"], state["now"], state["nodes"]
    typed = nodes.dtype == SET_NODE and heads.dtype == np.int32 and now.dtype == np.int64
    if not typed or heads.shape != (len(now), len(tables.states)):
        raise SnapshotError(_OTHER_ARRAYS)
    number = np.arange(len(nodes))
    _check_bounds(
        [
            (heads, NO_SET, len(nodes)),
            (nodes["before"], NO_SET, number),
            (nodes["beside"], NO_SET, number),
            (nodes["event"], NO_EVENT, held),
            (nodes["stage"], 0, len(tables.stage_slots) - 1),
        ]
    )
    start, before, beside = nodes["start"], nodes["before"], nodes["beside"]
    follows, has_beside = before != NO_SET, beside != NO_SET
    later = (start[follows] == start[before[follows]]).all() and (start[has_beside] >= start[beside[has_beside]]).all()
    # The earlier of two united sets may be out of time, and freed.
    if not later or ((nodes["event"] == NO_EVENT) & ~follows).any():
        raise SnapshotError("the snapshot's sets of partial matches do not agree in their starts")


def _check_bounds(bounds: Sequence[tuple[npt.NDArray[Any], Any, Any]]) -> None:
    """Raises SnapshotError unless the values of each array are at least its first bound and less than its second."""
    if any(((values < low) | (values >= high)).any() for values, low, high in bounds):
        raise SnapshotError("the snapshot's partial matches point to events or states that are not there")


def _depths(parents: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The number of nodes on the path to each node, including itself. A parent comes before its child."""
    depths: list[int] = []
    for parent in parents.tolist():
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return np.array(depths, np.int64)


def _is_cut(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], length: int) -> bool:
    """Whether the non-empty ranges cover 0 to `length` without overlap."""
    used = starts != ends
    order = np.argsort(starts[used], kind="stable")
    borders = np.append(starts[used][order], length)
    return bool(borders[0] == 0 and (ends[used][order] == borders[1:]).all() and (starts <= ends).all())
