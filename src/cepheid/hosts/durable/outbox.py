"""The outbox: what was found, numbered, for those who subscribe to it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from cepheid.events.batch import python_values
from cepheid.hosts.durable.state import Deployment
from cepheid.hosts.durable.store import OUTBOX, Transaction


class Outbox:
    """The rows that a step adds to the outbox."""

    def __init__(self, sent: int) -> None:
        """`sent` is the number of the last row before."""
        self._sent = sent
        self._rows: list[dict[str, Any]] = []

    def add(self, deployment: Deployment, rows: pa.Table) -> None:
        """Adds what a deployment has found."""
        columns = {name: python_values(rows.column(name)) for name in rows.schema.names}
        for i in range(rows.num_rows):
            self._sent += 1
            row = {name: plain(values[i]) for name, values in columns.items() if values[i] is not None}
            about = {"pattern": deployment.name, "version": deployment.version}
            known = {"kind": row["kind"], "match_id": row["match_id"]}
            content = json.dumps(row, default=text_of, ensure_ascii=False)
            self._rows.append({"number": self._sent, **about, **known, "content": content})

    def sent_to(self, transaction: Transaction) -> int:
        """Writes the rows; returns the number of the last one."""
        if self._rows:
            transaction.send(pa.Table.from_pylist(self._rows, OUTBOX))
        return self._sent


def plain(value: Any) -> Any:
    """The value with objects in place of Arrow's maps, which are lists of pairs."""
    if isinstance(value, list) and value and all(isinstance(pair, tuple) for pair in value):
        return {key: plain(item) for key, item in value}
    return value


def text_of(value: Any) -> str:
    """A value that JSON does not have, as text: times in ISO form."""
    return str(value.isoformat() if hasattr(value, "isoformat") else value)
