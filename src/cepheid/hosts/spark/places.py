"""Where the SQL comes from that Spark computes for us, to name the condition in which Spark fails.

Spark's message has the failing part of the SQL and its position in its line, but not whose SQL it is. Stage and
condition are therefore looked up among the texts that this process has given to Spark.
"""

from __future__ import annotations

import re

_MOST = 10_000
"""Texts; the oldest are forgotten."""

_places: dict[str, set[str]] = {}
"""SQL → what messages call it."""

_CONTEXT = re.compile(
    r"^== SQL.*\(line \d+, position (?P<position>\d+)\) ==\n(?P<shown>.*)\n(?P<before> *)(?P<carets>\^+)$",
    re.MULTILINE,
)
"""How Spark shows the failing part: a piece of its line, and carets below the part."""


def remember(sql: str, place: str) -> None:
    """Notes that messages call this SQL `place`. In the text that Spark gets, it must begin a line."""
    _places.setdefault(sql, set()).add(place)
    while len(_places) > _MOST:
        del _places[next(iter(_places))]


def place_of(message: str) -> str | None:
    """What the SQL is called in which Spark failed with this message; None if that is not known."""
    found = _CONTEXT.search(message)
    if found is None:
        return None
    start = len(found["before"])
    part = found["shown"][start : start + len(found["carets"])]
    position = int(found["position"]) - 1
    names = {name for sql, places in _places.items() if _has(sql, position, part) for name in places}
    return " or in ".join(sorted(names)) or None


def _has(sql: str, position: int, part: str) -> bool:
    return any(line.startswith(part, position) for line in sql.split("\n"))
