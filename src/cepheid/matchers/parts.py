"""Finite input in parts that several processes can work on, each with a detector of its own."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from cepheid.events.batch import Batch
from cepheid.kernel.arrays import FOREVER, Flags
from cepheid.matchers.pattern_events import OwnEvents
from cepheid.matchers.protocols import Detector

TURN = "_turn"
"""A column that says in which order the rows of several detectors of one key come, each of which has other starts: by
detected_at, then by these numbers, then by the starts.
"""


def in_turn(rows: pa.Table) -> pa.Table:
    """The rows in the order of emission, without their column `TURN`. They come detector by detector, in the order of
    the starts.
    """
    detected_at = rows.column("detected_at").cast(pa.int64()).fill_null(FOREVER).to_numpy()
    order = np.lexsort((rows.column(TURN).to_numpy(), detected_at))
    return rows.drop_columns([TURN]).take(pa.array(order))


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
