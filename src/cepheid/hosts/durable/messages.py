"""What subscribers get where each event has a row: one message for each match, with its events in a list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.plan.reserved import POSITION, STAGE

EVENTS = "events"
"""The column of a message with the events, each with the columns that its row has after those of the match."""


class Messages(NamedTuple):
    rows: pa.Table
    """One row for each match."""
    first: pa.Array
    """The row of the match's first event."""


def messages_of(rows: pa.Table) -> Messages:
    """The messages for rows of events. The rows of a match follow each other, and begin with position 1; a row without
    a position is about an event in no match.
    """
    position = rows.column(POSITION)
    begins = np.flatnonzero(pc.fill_null(pc.equal(position, 1), fill_value=True).to_numpy())
    at = rows.schema.names.index(STAGE)
    names = rows.schema.names
    events = rows.select(names[at:]).combine_chunks().to_struct_array().combine_chunks()
    ends = pa.array(np.append(begins, len(rows)), pa.int32())
    first = pa.array(begins)
    listed = pa.ListArray.from_arrays(ends, events)
    return Messages(rows.select(names[:at]).take(first).append_column(EVENTS, listed), first)
