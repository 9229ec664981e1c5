"""Events: the columns that say what an event is (schema) and the batches that a matcher is fed."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Schema:
    """The events' columns, and which of them are the key, the time and the order of ties."""

    columns: pa.Schema
    key: tuple[str, ...]
    """Empty: all events are one sequence."""
    time: str
    sequence: str | None = None
