"""Why events did not match, in process: the observed matcher in place of the compiled one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.detect import prepared, warn_of_ties
from cepheid.output.funnel import Funnel
from cepheid.output.trace import Trace
from cepheid.requests.request import Request


@dataclass(frozen=True)
class Why:
    """Why events did not match a pattern. Printed, it is a readable text."""

    funnel: Funnel
    """How many events were read and started a partial match, how far these came, and what became of each
    start.
    """

    _events: pa.Table = field(repr=False, compare=False)
    _request: Request = field(repr=False, compare=False)

    def trace(self, key: Mapping[str, Any] | None = None) -> Trace:
        """What each event of one key did to each partial match: the definition of matching, step by step.

        Args:
            key: The values of the key's columns, as in {"tailnum": "N228JB"}; None without a key.

        Raises:
            SchemaError: `key` does not name the key's columns, or no event has the values.
        """
        return trace_in_process(_events_of(self._events, self._request, key or {}), self._request)

    def __str__(self) -> str:
        return str(self.funnel)

    def to_dict(self) -> dict[str, Any]:
        """The funnel in values of JSON."""
        return self.funnel.to_dict()


def why_in_process(events: pa.Table, request: Request) -> Why:
    """What became of the events that started a partial match.

    Raises:
        PatternError, SchemaError, EventError, ConditionError: as `detect_in_process`.
    """
    ready = prepared(events, request)
    matcher = request.family.observed(ready.compiled, ready.until, len(ready.events))
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    warn_of_ties(matcher.counts["ties"], ready.request)
    return Why(matcher.funnel(ready.read), events, request)


def trace_in_process(events: pa.Table, request: Request) -> Trace:
    """The steps that the events, which are those of one key, make; raises as `why_in_process`."""
    ready = prepared(events, request)
    matcher = request.family.traced(ready.compiled, ready.until)
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    return matcher.trace


def check_key(request: Request, key: Mapping[str, Any]) -> None:
    """Raises SchemaError unless `key` has a value for each column of the key."""
    if set(key) != set(request.key):
        names = ", ".join(request.key) or "no columns, as there is no key"
        raise SchemaError(f"trace: the key has {names}; give a value for each, as in trace({{'column': value}})")


def _events_of(events: pa.Table, request: Request, key: Mapping[str, Any]) -> pa.Table:
    check_key(request, key)
    for name, value in key.items():
        column = events.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            events = events.filter(pc.equal(column, pa.scalar(value).cast(column.type)))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise SchemaError(f"trace: {value!r} is no value of {name!r}, which is of type {column.type}") from None
    if key and not events.num_rows:
        raise SchemaError(f"trace: no event has the key {dict(key)!r}")
    return events
