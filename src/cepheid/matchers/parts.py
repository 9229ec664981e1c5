"""Finite input in parts that several processes can work on, each with a detector of its own."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from cepheid.compile.arrays import Ints
from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, Flags
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.matchers.protocols import Detector

TURN = "_turn"
"""A column that says in which order the rows of several detectors of one key come, each of which has other starts: by
detected_at, then by these numbers, then by the starts.
"""

_FEW = 1000
"""So few rows between others that move are copied with them."""


def in_turn(rows: pa.Table) -> pa.Table:
    """The rows in the order of emission, without their column `TURN`. They come detector by detector, in the order of
    the starts.
    """
    detected_at = rows.column("detected_at").cast(pa.int64())
    if detected_at.null_count:
        detected_at = detected_at.fill_null(FOREVER)
    order = np.lexsort((rows.column(TURN).to_numpy(), detected_at.to_numpy()))
    return _rearranged(rows.drop_columns([TURN]), order)


def _rearranged(rows: pa.Table, order: Ints) -> pa.Table:
    """The rows in this order. Only those near the borders of slices move, and only these are copied."""
    moved = np.flatnonzero(order != np.arange(len(order)))
    if not len(moved):
        return rows
    breaks = np.flatnonzero(np.diff(moved) > _FEW)
    parts, done = list[pa.Table](), 0
    for first, last in zip(moved[np.append(0, breaks + 1)], moved[np.append(breaks, len(moved) - 1)], strict=True):
        parts += [rows.slice(done, first - done), _taken(rows, order[first : last + 1])]
        done = int(last) + 1
    return pa.concat_tables([*parts, rows.slice(done)])


def _taken(rows: pa.Table, chosen: Ints) -> pa.Table:
    """These rows, which are near each other. Arrow would join all of the chunks, so it is given few rows."""
    first = chosen.min()
    return rows.slice(first, chosen.max() - first + 1).take(pa.array(chosen - first))


class OrderedPart(Protocol):
    """One or more patterns of a call, found by one detector in their own events, which are in order."""

    @property
    def own(self) -> OwnEvents:
        """Selects the events of these patterns from those of all."""

    @property
    def pattern(self) -> str | None:
        """The pattern that errors name; None if they name none, or the detector names it itself."""

    def detector(self) -> Detector:
        """A new detector of whole keys."""

    def slice_detector(self, first: int) -> Detector:
        """A new detector that starts only with marked events. Rows are numbered for merging (`TURN`); `first` is the
        number of the first event. Only for patterns that can be divided into time slices.
        """

    def marked(self, events: Batch, may_start: Flags) -> Batch:
        """The events, with marks on these."""
