"""The code of `match_events` that runs in a Spark worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from cepheid.hosts.in_process.of_matches.unnest import match_events_of
from cepheid.requests.request import ERROR


def unnested(batches: Iterator[pa.RecordBatch], given: tuple[str | None, Sequence[str]]) -> Iterator[pa.RecordBatch]:
    """The rows of the events of the matches in each batch; `given` has the time and the sequence."""
    time, sequence = given
    for batch in batches:
        rows = match_events_of(pa.Table.from_batches([batch]), time, sequence)
        yield from rows.add_column(0, ERROR, pa.nulls(len(rows), pa.string())).to_batches()
