"""The tables of a durable host in a SQL database."""

from __future__ import annotations

import pyarrow as pa

from cepheid.hosts.durable.store import OUTBOX

FORMAT = 2
"""Increased when older versions can no longer read a store; `migrations` brings stores of earlier formats to it."""
PART = 1 << 24
"""The most bytes of a snapshot in one row: PostgreSQL's values have at most 1 GB."""

HOST, USER_TABLES, INPUTS, PATTERNS, OUTBOX_TABLE = "cepheid_host", "cepheid_tables", "inputs", "patterns", "outbox"
SCRIPTS = "scripts"
HEADS, SNAPSHOTS, LOG, EVENTS = "cepheid_heads", "cepheid_snapshots", "cepheid_log", "cepheid_events"

_INTEGER, _TEXT, _BYTES, _FLAG = pa.int64(), pa.string(), pa.binary(), pa.bool_()
TABLES = {
    HOST: pa.schema([("format", _INTEGER), ("ids", _INTEGER), ("epoch", _INTEGER), ("sent", _INTEGER)]),
    USER_TABLES: pa.schema([("name", _TEXT), ("types", _TEXT)]),
    INPUTS: pa.schema(
        [
            *(("name", _TEXT), ("position", _TEXT), ("watermark", pa.timestamp("us", "UTC"))),
            *(("events", _INTEGER), ("content", _TEXT)),
        ]
    ),
    PATTERNS: pa.schema(
        [
            *(("number", _INTEGER), ("name", _TEXT), ("version", _TEXT), ("status", _TEXT), ("input", _TEXT)),
            *(("open_table", _TEXT), ("matches_table", _TEXT), ("document", _TEXT), ("content", _TEXT)),
            *(("problems", _TEXT), ("position", _TEXT)),
        ]
    ),
    SCRIPTS: pa.schema(
        [
            *(("deployment", _INTEGER), ("step", _INTEGER), ("pattern", _TEXT), ("version", _TEXT), ("stage", _TEXT)),
            *(("event", _TEXT), ("activating", _FLAG), ("action", _TEXT)),
        ]
    ),
    HEADS: pa.schema(
        [
            *(("deployment", _INTEGER), ("format", _INTEGER), ("state", _BYTES), ("entries", _INTEGER)),
            *(("log_bytes", _INTEGER), ("room", _INTEGER), ("passed", _INTEGER), ("open", _INTEGER)),
            *(("timer", _INTEGER), ("over", _FLAG)),
            # The snapshot is in `parts` parts from `first_part` on; the log after it begins with number `first_entry`.
            *(("first_part", _INTEGER), ("parts", _INTEGER), ("first_entry", _INTEGER)),
        ]
    ),
    SNAPSHOTS: pa.schema([("deployment", _INTEGER), ("part", _INTEGER), ("content", _BYTES)]),
    LOG: pa.schema(
        [
            *(("deployment", _INTEGER), ("number", _INTEGER), ("passed", _INTEGER)),
            *(("events", _BYTES), ("digest", _BYTES), ("over", _FLAG)),
        ]
    ),
    EVENTS: pa.schema([("input", _TEXT), ("number", _INTEGER), ("latest", _INTEGER), ("events", _BYTES)]),
    OUTBOX_TABLE: OUTBOX,
}
"""The host's own tables. Those without the prefix are for users to read."""
KEYS = {
    HOST: ("format",),
    USER_TABLES: ("name",),
    INPUTS: ("name",),
    PATTERNS: ("number",),
    SCRIPTS: ("deployment", "step"),
    HEADS: ("deployment",),
    SNAPSHOTS: ("deployment", "part"),
    LOG: ("deployment", "number"),
    EVENTS: ("input", "number"),
    OUTBOX_TABLE: ("number",),
}
"""The columns of their primary keys."""
