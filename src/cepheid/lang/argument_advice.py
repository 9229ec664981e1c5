"""What to write in place of an argument that a public call does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cepheid.errors import closest

Advice: TypeAlias = Callable[[Mapping[str, Any]], str]
"""From all arguments given, makes the text that says what to write in place of the refused one."""

_SYNONYMS = {
    **dict.fromkeys(("data", "df", "frame", "table", "rows", "dataframe"), "events"),
    **dict.fromkeys(("patterns", "query"), "pattern"),
    **dict.fromkeys(("tz", "timezone", "zone"), "time_zone"),
    **dict.fromkeys(("ts", "timestamp", "event_time", "time_column"), "time"),
    **dict.fromkeys(("by", "partition_by", "group_by", "keys", "id"), "key"),
    **dict.fromkeys(("order_by", "sort", "order"), "sequence"),
    **dict.fromkeys(("n_jobs", "processes", "threads", "num_workers"), "workers"),
    **dict.fromkeys(("max_delay", "delay", "watermark", "allowed_lateness"), "lateness"),
}
"""Names that other libraries have for an argument, and its name here."""
_OF_LIMITS = ("max_partial_matches", "max_matches_per_event", "on_limit", "max_facts", "max_same_as")
_OF_PATTERNS = {"with_in": "within", "within": "within", "skip": "skip", "skip_strategy": "skip", "max_gap": "max_gap"}
"""What is said of a pattern by one of its methods."""


def advice_for(name: str, given: Mapping[str, Any], call: str, known: Sequence[str]) -> str:
    """What to do about the argument `name`, which `call` with the arguments `known` does not have."""
    if name in _OF_LIMITS and "limits" in known:
        return f"Write limits=Limits({name}={given[name]!r})"
    if name in _OF_PATTERNS and "pattern" in known:
        return f"It belongs to the pattern: write pattern.{_OF_PATTERNS[name]}(…)"
    if call == "Why.trace":
        return f"Name the columns of the key in one argument: trace({given!r})"
    if (synonym := _SYNONYMS.get(name)) in known:
        return f"Did you mean {synonym}?"
    if close := closest(name, known):
        return f"Did you mean {' or '.join(close)}?"
    return f"{call} has {', '.join(known)}" if known else f"{call} takes no arguments"


def _as_time(given: Mapping[str, Any]) -> str:
    times = [repr(given[name]) for name in ("start", "end") if name in given]
    both = ", ".join(times) if len(times) > 1 else "start, end"
    return f"event time is one argument now: write time=({both}), or time={times[0]} where an event has one time"


def _as_taxonomy(given: Mapping[str, Any]) -> str:
    named = [given[name] for name in ("type", "taxonomy") if isinstance(given.get(name), str)]
    column = repr(named[0]) if named else "<column of the types>"
    kinds = f", {given['kinds']!r}" if given.get("kinds") is not None else ""
    return f"it belongs to the pattern now: write pattern.taxonomy({column}{kinds})"


def _as_lateness(given: Mapping[str, Any]) -> str:
    late_by = f", late_by={given['lateness']!r}" if given.get("lateness") in ("start", "end") else ""
    return f"write lateness={given['delay']!r}{late_by}"


TYPES: Mapping[str, Advice] = dict.fromkeys(("type", "kinds", "taxonomy"), _as_taxonomy)
"""For calls that make a pattern."""
FORMER: Mapping[str, Advice] = {"start": _as_time, "end": _as_time, **TYPES, "delay": _as_lateness}
"""For calls that find patterns in events."""
