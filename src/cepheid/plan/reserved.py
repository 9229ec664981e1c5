"""Names of output columns, which users cannot give to anything."""

from __future__ import annotations

VERSION = "version"
"""The column after LEADING in rows of patterns that come and go."""

LEADING = ("kind", "pattern")
"""The columns that come first where rows of several kinds or patterns are in one table."""

COMMON = (*LEADING, "match_id", "match_start", "match_end", "detected_at", "event")
"""The columns that patterns of every kind may have."""

IN_ONE_TABLE = (*LEADING, "stages", "event")
"""Columns of the one table that has all outputs."""

RESERVED = (*COMMON, "stages")

CAUSE = "cause"
"""The column that only rows without a match have: it is reserved where they are asked for."""

RESERVED_OPEN = ("id", "series", "key_id", "pattern", "version", "status", "stage", "started", "wakeup", "stages")
"""The columns of open partial matches that are stored as rows."""
