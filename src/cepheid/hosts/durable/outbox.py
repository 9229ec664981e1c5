"""The outbox: what was found, numbered, for those who subscribe to it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import OUTBOX, Sent, Transaction


class Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, sent: int) -> None:
        """`sent` is the number of the last row before."""
        self._number = sent
        self._sent: list[Sent] = []

    def add(self, deployment: Deployment, rows: pa.Table) -> None:
        """Adds what a deployment has found: some rows."""
        self._sent.append(Sent(self._number + 1, deployment.name, deployment.version, rows))
        self._number += rows.num_rows

    def sent_to(self, transaction: Transaction) -> int:
        """Writes the rows; returns the number of the last one."""
        if self._sent:
            transaction.send(self._sent)
        return self._number


def outbox_rows(sent: Sequence[Sent]) -> pa.Table:
    """The rows of the outbox, with each whole row that was found as JSON."""
    tables = []
    for (pattern, version), mine in groupby(sorted(sent, key=_version), _version):
        some = [*mine]
        rows = pa.concat_tables(one.rows for one in some)
        numbers = [one.first + np.arange(one.rows.num_rows) for one in some]
        columns = {
            "number": np.concatenate(numbers),
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
