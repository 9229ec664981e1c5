"""Why events did not match, in process: the observed matcher in place of the compiled one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import SchemaError
from cepheid.hosts.in_process.detect import prepared, warn_of_ties
from cepheid.hosts.in_process.near import near_misses_in_process, sources_of
from cepheid.hosts.in_process.probed import probed
from cepheid.hosts.in_process.tables import FromArrow
from cepheid.hosts.worker_memory import memory_as_limit
from cepheid.output.near_misses import NearMisses
from cepheid.output.trace import Trace
from cepheid.output.why import Why
from cepheid.requests.request import Request


@dataclass(frozen=True)
class WhyInProcess(Why):
    """Why events of a table did not match."""

    _events: pa.Table = field(repr=False, compare=False)
    _request: Request = field(repr=False, compare=False)
    _from_arrow: FromArrow = field(repr=False, compare=False)

    @cached_property
    def changes(self) -> NearMisses:
        with memory_as_limit():
            return near_misses_in_process(self._events, self._request)

    @property
    def near_misses(self) -> Any:
        with memory_as_limit():
            return self._from_arrow(self.changes.table, sources_of(self._request))

    def _trace(self, key: Mapping[str, Any]) -> Trace:
        with memory_as_limit():
            return trace_in_process(_events_of(self._events, self._request, key), self._request)


def why_in_process(events: pa.Table, request: Request, from_arrow: FromArrow) -> WhyInProcess:
    """What became of the events that started a partial match. `from_arrow` turns Arrow tables into the events' kind.

    Raises:
        PatternError, SchemaError, EventError, ConditionError: as `detect_in_process`.
    """
    ready = prepared(events, request)
    matcher = request.family.observed(ready.compiled, ready.until, len(ready.events))
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    warn_of_ties(matcher.counts["ties"], ready.request)
    return WhyInProcess(matcher.funnel(ready.read), events, request, from_arrow)


def trace_in_process(events: pa.Table, request: Request) -> Trace:
    """The steps that the events, which are those of one key, make; raises as `why_in_process`."""
    ready = prepared(events, replace(request, numbered=True), warns=False)
    matcher = request.family.traced(ready.compiled, ready.until)
    for batch in ready.batches(ordered=True, every=True):
        matcher.process(batch)
    matcher.finish()
    probes, batch = probed(ready, pa.array(matcher.looked_at), matcher.probes(ready.engine))
    return matcher.trace(probes, batch, ready.engine.time_zone)


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
