"""Arguments of earlier versions, and of other calls, which are refused with advice on what to write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

from cepheid.errors import SchemaError

P = ParamSpec("P")
R = TypeVar("R")
Advice: TypeAlias = Callable[[Mapping[str, Any]], str]
"""From all arguments given, makes the text that says what to write in place of the refused one."""


def refuses_former(former: Mapping[str, Advice]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator: the function raises SchemaError if one of these arguments is given."""

    def refusing(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            if given := [name for name in former if name in kwargs]:
                faults = dict.fromkeys(f"{name}: {former[name](kwargs)}" for name in given)
                raise SchemaError("\n".join(faults))
            return function(*args, **kwargs)

        return checked

    return refusing


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
