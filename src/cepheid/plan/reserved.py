"""Names of output columns, which nothing that users name can have."""

from __future__ import annotations

IN_ONE_TABLE = ("kind", "pattern", "stages", "event")
"""Where all outputs are in one table."""

RESERVED = ("match_id", "match_start", "match_end", "detected_at", *IN_ONE_TABLE)
