"""Names of output columns, which users cannot give to anything."""

from __future__ import annotations

IN_ONE_TABLE = ("kind", "pattern", "stages", "event")
"""Columns of the one table that has all outputs."""

RESERVED = ("match_id", "match_start", "match_end", "detected_at", *IN_ONE_TABLE)
