"""Whether arrays from a snapshot are a state that the kernel can go on from: it reads them without looking again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.tables import Tables
from cepheid.errors import SnapshotError
from cepheid.kernel.layout import COMPLETED, KEY, NODE, ROW

_INT64 = np.dtype(np.int64)


def check_state(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
    """Raises SnapshotError where an array has another type, a number in it points nowhere, or two agree not."""
    rows, slots, nodes, keys, completed = (state[name] for name in ("rows", "slots", "nodes", "keys", "completed"))
    dtypes = [
        (rows, ROW),
        (nodes, NODE),
        (keys, KEY),
        (completed, COMPLETED),
        (slots, _INT64),
        (state["totals"], _INT64),
    ]
    shapes = [array.ndim for array, _ in dtypes]
    if any(array.dtype != dtype for array, dtype in dtypes) or shapes != [1, 1, 1, 1, 2, 1]:
        raise SnapshotError("the snapshot's arrays are not those of this pattern: was it written by another version?")
    if slots.shape != (len(rows), len(tables.slots)) or state["totals"].shape != (3,):
        raise SnapshotError("the snapshot's arrays are not those of this pattern: was it written by another version?")
    positions = slots[:, tables.slots["initial"] < 0]
    bounds = [
        (rows["state"], 0, len(tables.states)),
        (rows["start"], 0, held),
        (rows["node"], 0, len(nodes)),
        (nodes["event"], 0, held),
        (nodes["stage"], 0, len(tables.stage_slots) - 1),
        (nodes["parent"], -1, np.arange(len(nodes))),
        (positions, -1, held),
        (completed["start"], 0, held),
        (completed["node"], 0, len(nodes)),
    ]
    if any(((values < low) | (values >= high)).any() for values, low, high in bounds):
        raise SnapshotError("the snapshot's partial matches point to events or states that are not there")
    depth = _depths(nodes["parent"])
    if any((part["length"] != depth[part["node"]]).any() for part in (rows, completed)):
        raise SnapshotError("the snapshot's partial matches have other lengths than their events")
    if not (
        _is_cut(keys["live"], keys["live_end"], len(rows))
        and _is_cut(keys["completed"], keys["completed_end"], len(completed))
    ):
        raise SnapshotError("the snapshot's partial matches are not each of one key")


def _depths(parents: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """How many nodes lead to each node, itself among them; a parent comes before its child."""
    depths: list[int] = []
    for parent in parents.tolist():
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return np.array(depths, np.int64)


def _is_cut(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], length: int) -> bool:
    """Whether the ranges that are not empty are all of 0 to `length`, each part once."""
    used = starts != ends
    order = np.argsort(starts[used], kind="stable")
    borders = np.append(starts[used][order], length)
    return bool(borders[0] == 0 and (ends[used][order] == borders[1:]).all() and (starts <= ends).all())
