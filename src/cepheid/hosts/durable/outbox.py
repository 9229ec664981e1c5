"""The outbox: what was found, numbered, for those who subscribe to it.

The rows of one step are in the order of `detected_at`, then of pattern and version, then of `match_id`: so a subscriber
that takes the matches of several patterns as events gets none of them late.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import OUTBOX, Sent, Transaction


class Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, sent: int) -> None:
        """`sent` is the number of the last row before."""
        self._before = sent
        self._found: list[tuple[str, str, pa.Table]] = []

    def add(self, deployment: Deployment, rows: pa.Table) -> None:
        """Adds what a deployment has found, in the order of `Deployed.step`."""
        if rows.num_rows:
            self._found.append((deployment.name, deployment.version, rows))

    def sent_to(self, transaction: Transaction) -> int:
        """Writes the rows; returns the number of the last one."""
        if not self._found:
            return self._before
        found = sorted(self._found, key=lambda one: one[:2])
        ends = np.cumsum([rows.num_rows for _, _, rows in found])
        numbers = (self._before + 1 + places([rows for _, _, rows in found])).tolist()
        parts = [numbers[begin:end] for begin, end in pairwise([0, *ends.tolist()])]
        transaction.send([Sent(part, *one) for part, one in zip(parts, found, strict=True)])
        return self._before + len(numbers)


def places(tables: Sequence[pa.Table]) -> npt.NDArray[np.int64]:
    """The place of each row among the rows of all tables. Each table is in order already."""
    times = pa.concat_arrays([chunk.view(pa.int64()) for rows in tables for chunk in rows.column("detected_at").chunks])
    ordered: npt.NDArray[np.int64] = times.to_numpy(zero_copy_only=False).copy()
    end = 0
    for rows in tables:
        begin, end = end, end + rows.num_rows
        # A row in real time may have an earlier time than the one before it in its table, and stays after it.
        np.maximum.accumulate(ordered[begin:end], out=ordered[begin:end])
    found = np.empty(len(ordered), np.int64)
    found[np.argsort(ordered, kind="stable")] = np.arange(len(ordered))
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
