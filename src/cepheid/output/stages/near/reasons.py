"""Why starts need a change, and what is known where that is found out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.compile.arrays import NONE, Ints
from cepheid.compile.stages.automaton import Automaton
from cepheid.kernel.arrays import Flags, Int32s
from cepheid.output.stages.near.found import EventOrder
from cepheid.output.stages.near.looked_at import LookedAt
from cepheid.plan.stages.plan import Plan

NOT_BEGUN = NONE - 1
"""In place of a stage: none is reached, as `begin_without` forbids the start."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Known:
    """What reasons are found in."""

    plan: Plan
    """That of the unchanged pattern."""
    automaton: Automaton
    order: EventOrder
    events: LookedAt
    """The events of `looked_at`."""
    times: pa.ChunkedArray | None
    """The times of all events by number, as they were given; None in processing order."""


@dataclass(frozen=True)
class Reasons:
    """Why starts need a change, a row for each. Row by row: (starts,)."""

    text: pa.Array
    match: Ints
    """The number of the match with the change that has the start."""
    reached: Int32s
    """The stage of the last event before the change is needed; NONE if the event is no start without the change;
    NOT_BEGUN.
    """
    at: Ints
    """The number of the event that needs the change."""
    off_by: Floats
    """How far off the event is: the difference between both sides of a comparison in their unit; minutes for times,
    windows and gaps; the number of events between where contiguity is strict. NaN: there is no such number.
    """
    far: Floats
    """The same between 0 and 1, to compare it across units."""
    is_null: Flags
    """Whether a condition is unknown because a value is NULL."""

    def take(self, rows: Ints) -> Reasons:
        """The reasons in these rows."""
        return Reasons(
            self.text.take(pa.array(rows)),
            self.match[rows],
            self.reached[rows],
            self.at[rows],
            self.off_by[rows],
            self.far[rows],
            self.is_null[rows],
        )


def all_of(parts: Sequence[Reasons]) -> Reasons:
    """The reasons of all parts, one part after the other."""
    return Reasons(
        pa.concat_arrays([pa.array([], pa.string()), *(one.text for one in parts)]),
        np.concatenate([np.empty(0, np.int64), *(one.match for one in parts)]),
        np.concatenate([np.empty(0, np.int32), *(one.reached for one in parts)]),
        np.concatenate([np.empty(0, np.int64), *(one.at for one in parts)]),
        np.concatenate([np.empty(0, np.float64), *(one.off_by for one in parts)]),
        np.concatenate([np.empty(0, np.float64), *(one.far for one in parts)]),
        np.concatenate([np.empty(0, np.bool_), *(one.is_null for one in parts)]),
    )
