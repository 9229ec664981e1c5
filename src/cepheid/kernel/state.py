"""Whether arrays from a snapshot are a state that the kernel can go on from: it reads them without looking again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cepheid.compile.tables import Tables
from cepheid.errors import SnapshotError
from cepheid.kernel.layout import COMPLETED, KEY, NODE, ROW
from cepheid.kernel.set_layout import NO_EVENT, NO_SET, SET_NODE


def check_state(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
    """Raises SnapshotError where an array has another type, or a number in it points nowhere."""
    rows, slots, nodes, keys, completed = (state[name] for name in ("rows", "slots", "nodes", "keys", "completed"))
    dtypes = [(rows, ROW), (nodes, NODE), (keys, KEY), (completed, COMPLETED), (slots, np.dtype(np.int64))]
    if any(array.dtype != dtype for array, dtype in dtypes) or slots.shape != (len(rows), len(tables.slots)):
        raise SnapshotError(_OTHER_ARRAYS)
    number = np.arange(len(nodes))
    positions = slots[:, tables.slots["initial"] < 0]
    bounds = [
        (rows["state"], 0, len(tables.states)),
        (rows["start"], 0, held),
        (rows["node"], 0, len(nodes)),
        (nodes["event"], 0, held),
        (nodes["stage"], 0, len(tables.stage_slots) - 1),
        (nodes["parent"], -1, number),
        (positions, -1, held),
        (completed["start"], 0, held),
        (completed["node"], 0, len(nodes)),
        (keys["live"], 0, keys["live_end"] + 1),
        (keys["live_end"], 0, len(rows) + 1),
        (keys["completed"], 0, keys["completed_end"] + 1),
        (keys["completed_end"], 0, len(completed) + 1),
    ]
    _check_bounds(bounds)


def check_sets(tables: Tables, state: Mapping[str, npt.NDArray[Any]], held: int) -> None:
    """The same for sets."""
    heads, now, nodes = state["heads"], state["now"], state["nodes"]
    if nodes.dtype != SET_NODE or heads.shape != (len(now), len(tables.states)):
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


_OTHER_ARRAYS = "the snapshot's arrays are not those of this pattern: was it written by another version?"


def _check_bounds(bounds: Sequence[tuple[npt.NDArray[Any], Any, Any]]) -> None:
    """Each array's values are from the first bound to before the second."""
    if any(((values < low) | (values >= high)).any() for values, low, high in bounds):
        raise SnapshotError("the snapshot's partial matches point to events or states that are not there")
