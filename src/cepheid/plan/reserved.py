"""Names of output columns, which users cannot give to anything."""

from __future__ import annotations

import re

VERSION = "version"
"""The column after LEADING in rows of patterns that come and go."""

LEADING = KIND, PATTERN = ("kind", "pattern")
"""The columns that come first where rows of several kinds or patterns are in one table."""

OF_MATCHES = (PATTERN, "match_id", "match_start", "match_end", "detected_at")
"""The columns about a match, where each of its events has a row."""

BY_END = ("match_end", "match_start", "match_id")
"""The columns that sort the matches of events with a start and an end."""

COMMON = (KIND, *OF_MATCHES, "event")
"""The columns that patterns of every kind may have."""

IN_ONE_TABLE = (*LEADING, "stages", "event")
"""Columns of the one table that has all outputs."""

OF_EVENTS = STAGE, POSITION, STAGE_POSITION = ("stage", "position", "stage_position")
"""The columns about an event in its match, where each event has a row: the stage or variable that took it, and its
place in the match and among the events of the stage, from 1.
"""

ROW_NUMBER = "row_number"
"""The column for the number of the event's row in the table, from 0, where each event has a row."""

INTERNAL = re.compile(r"_error|_counts|_events|_slot\d+")
"""Names of columns that hosts use beside the key columns while they build the output."""

RESERVED = (*COMMON, "stages")

CAUSE = "cause"
"""The column that only rows without a match have: it is reserved where they are asked for."""

RESERVED_OPEN = ("id", "series", "key_id", "pattern", "version", "status", "stage", "started", "wakeup", "stages")
"""The columns of open partial matches that are stored as rows."""
