"""The outbox: what was found, numbered, for those who subscribe to it.

The rows of one step are in the order of `detected_at`, then of the steps of their patterns, where a pattern that reads
matches comes after what it reads, then of `match_id`. So a subscriber that takes the matches of several patterns as
events gets none of them late.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable.deployed import Found
from cepheid.hosts.durable.messages import messages_of
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import OUTBOX, Sent, Transaction


class Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, sent: int) -> None:
        """`sent` is the number of the last row before."""
        self._before = sent
        self._found: list[tuple[str, str, Found]] = []

    def add(self, deployment: Deployment, found: Found) -> None:
        """Adds what a deployment has found, some rows in the order of `Deployed.step`. The events of a match are in one
        row of the outbox.
        """
        if deployment.rows_per == "event":
            rows, first = messages_of(found.rows)
            found = Found(rows, found.detected.take(first))
        self._found.append((deployment.name, deployment.version, found))

    def sent_to(self, transaction: Transaction) -> int:
        """Writes the rows; returns the number of the last one."""
        if not self._found:
            return self._before
        found = self._found
        numbers = (self._before + 1 + places([one.detected for _, _, one in found])).tolist()
        ends = np.cumsum([len(one.rows) for _, _, one in found])
        parts = [numbers[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
        each = zip(parts, found, strict=True)
        transaction.send([Sent(part, pattern, version, one.rows) for part, (pattern, version, one) in each])
        return self._before + len(numbers)


def places(detected: Sequence[pa.ChunkedArray]) -> npt.NDArray[np.int64]:
    """The place of each row among the rows of all patterns, by the instants of their detection. Those of each pattern
    are in order already.
    """
    chunks = [chunk.view(pa.int64()) for one in detected for chunk in one.chunks]
    times: npt.NDArray[np.int64] = pa.concat_arrays(chunks).to_numpy(zero_copy_only=False).copy()
    end = 0
    for one in detected:
        begin, end = end, end + len(one)
        # A row in real time may have been detected before the one in front of it, and stays after it.
        np.maximum.accumulate(times[begin:end], out=times[begin:end])
    found = np.empty(len(times), np.int64)
    found[np.argsort(times, kind="stable")] = np.arange(len(times))
    return found


def outbox_rows(sent: Sequence[Sent]) -> pa.Table:
    """The rows of the outbox, with each whole row that was found as JSON."""
    tables = []
    for (pattern, version), mine in groupby(sorted(sent, key=_version), _version):
        some = [*mine]
        rows = pa.concat_tables(one.rows for one in some)
        columns = {
            "number": np.concatenate([one.numbers for one in some]),
            "pattern": [pattern] * rows.num_rows,
            "version": [version] * rows.num_rows,
            "kind": rows.column("kind"),
            "match_id": rows.column("match_id"),
            "content": json_texts(rows.to_struct_array().combine_chunks()),
        }
        tables.append(pa.table(columns, schema=OUTBOX))
    return pa.concat_tables(tables)


def _version(sent: Sent) -> tuple[str, str]:
    return sent.pattern, sent.version
