"""Arguments that a public call does not have. They are refused with advice: what to write in place of an argument of an
earlier version, which other call has the argument, or which ones there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeAlias, TypeVar

from cepheid.errors import SchemaError, closest

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Advice: TypeAlias = Callable[[Mapping[str, Any]], str]
"""From all arguments given, makes the text that says what to write in place of the refused one."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "detect": (
        *("key", "time", "event_id", "open_for", "sequence", "columns", "measures", "outputs", "rows_per"),
        *("unmatched", "limits", "as_of", "time_zone", "time_resolution", "nulls", "report", "lateness", "shards"),
        *("standbys", "workers", "worker_memory", "slices", "show_keys", "checkpoint"),
    ),
    "IntervalMatcher": ("changes", "late_by", "frequencies"),
    "Matcher": ("consistency",),
    "explain": ("events",),
    "Matcher.process": ("at",),
    "Matcher.partial_matches": ("most",),
    "supervise": ("old", "parameters", "write", "patterns"),
    "rebalance": ("partitions", "dry_run"),
    "copy_hot_keys": ("budget",),
    "deliver": ("dead", "allow", "kafka_options"),
    "open_host": ("retain", "retain_rows"),
    "Host.input": ("keep",),
    "Host.deploy": ("input", "promote", "since"),
    "Host.feed": ("position",),
    "Host.retire": ("how",),
    "Host.subscribe": ("to", "pattern", "where", "after", "secret", "timeout", "attempts", "pause"),
}
"""Public calls, and of each the named arguments that no call before it has."""


def known_arguments(former: Mapping[str, Advice] | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function raises SchemaError if it is given an argument that it does not have. `former` has the
    advice for arguments of earlier versions.
    """

    def refusing(function: Callable[P, R]) -> Callable[P, R]:
        known = [name for name in signature(function).parameters if name != "self"]

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if not kwargs.keys() <= set(known):
                raise SchemaError("\n".join(dict.fromkeys(_faults(function, known, former or {}, kwargs))))
            return function(*args, **kwargs)

        return checked

    return refusing


def known_fields(made: type[T]) -> type[T]:
    """A decorator of dataclasses: the same for what makes their values."""
    made.__init__ = known_arguments()(made.__init__)  # type: ignore[method-assign]
    return made


def _faults(
    function: Callable[..., object], known: Sequence[str], former: Mapping[str, Advice], given: Mapping[str, Any]
) -> Iterator[str]:
    call = function.__qualname__.removesuffix(".__init__")
    for name in given:
        if name in former:
            yield f"{name}: {former[name](given)}"
        elif name not in known:
            yield f"{name}: {call} has no such argument{_elsewhere(name)}. {_instead(name, call, known)}"


def _elsewhere(name: str) -> str:
    return next((f", but {call} has" for call, names in ARGUMENTS.items() if name in names), "")


def _instead(name: str, call: str, known: Sequence[str]) -> str:
    close = closest(name, known)
    return f"Did you mean {' or '.join(close)}?" if close else f"{call} has {', '.join(known)}"


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
