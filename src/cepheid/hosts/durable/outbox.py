"""The outbox: what was found, numbered, for those who subscribe to it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.hosts.duckdb.json_text import json_texts
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import OUTBOX, Transaction


class Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, sent: int) -> None:
        """`sent` is the number of the last row before."""
        self._sent = sent
        self._rows: list[pa.Table] = []

    def add(self, deployment: Deployment, rows: pa.Table) -> None:
        """Adds what a deployment has found."""
        count = rows.num_rows
        if not count:
            return
        columns = {
            "number": self._sent + 1 + np.arange(count),
            "pattern": [deployment.name] * count,
            "version": [deployment.version] * count,
            "kind": rows.column("kind"),
            "match_id": rows.column("match_id"),
            "content": json_texts(rows.to_struct_array().combine_chunks()),
        }
        self._rows.append(pa.table(columns, schema=OUTBOX))
        self._sent += count

    def sent_to(self, transaction: Transaction) -> int:
        """Writes the rows; returns the number of the last one."""
        if self._rows:
            transaction.send(pa.concat_tables(self._rows))
        return self._sent
