"""Near misses in process: the changed patterns run together over one preparation of the events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.errors import ConditionError, PatternError, SchemaError
from cepheid.events.batch import NUMBER
from cepheid.hosts.in_process.detect import Prepared, prepared
from cepheid.hosts.in_process.given_types import Sources
from cepheid.hosts.in_process.probed import probed
from cepheid.matchers.protocols import NearMatcher
from cepheid.output.near_misses import OWN_COLUMNS, NearMisses
from cepheid.plan.pattern_request import PatternRequest
from cepheid.plan.reserved import ROW_NUMBER
from cepheid.requests.request import Request


def near_misses_in_process(events: pa.Table, request: Request) -> NearMisses:
    """The starts that match with one change of the request's only pattern, and do not match without.

    A change that fails on an event, as when it leaves out what guards a division, is named in `failed`, and so are
    those that are not tried.

    Raises:
        SchemaError: a column has the name of one of the output.
        Others: as `detect_in_process`, with the skip strategy off.
    """
    if taken := [name for name in request.key if name in OWN_COLUMNS]:
        raise SchemaError(f"near misses have a column {taken[0]!r} of their own: rename that of the key")
    if NUMBER in events.schema.names:
        raise SchemaError(f"the column name {NUMBER!r} is reserved where events are numbered: rename the column")
    changes = request.family.changes(request.only.pattern)
    untried = request.family.untried_changes(request.only.pattern)
    try:
        return _found(events, request, changes, untried)
    except (ConditionError, PatternError):
        _lift(events, request, _patterns(request, ()))  # raises if it is not one of the changes that fails
    failures = {change.text: why for change in changes if (why := _failure(events, request, change)) is not None}
    return _found(events, request, [one for one in changes if one.text not in failures], {**failures, **untried})


def sources_of(request: Request) -> Sources:
    """The event columns that columns of the near misses have their values from."""
    source_of = {name: name for name in request.key} | {ROW_NUMBER: NUMBER}
    return source_of if request.time is None else source_of | {"match_start": request.time, "at": request.time}


def _failure(events: pa.Table, request: Request, change: Any) -> str | None:
    """Why the conditions of the pattern with the change cannot be lifted; None if they can."""
    _, changed, *_ = _patterns(request, (change,))
    try:
        _lift(events, request, (changed,))
    except (ConditionError, PatternError) as error:
        return str(error)
    return None


def _lift(events: pa.Table, request: Request, patterns: Sequence[PatternRequest[Any]]) -> None:
    """Lifts the conditions of the patterns for all events; raises ConditionError or PatternError if that fails."""
    for _ in _prepared(events, request, patterns).batches(ordered=True):
        pass


def _found(events: pa.Table, request: Request, changes: Sequence[Any], failed: Mapping[str, str]) -> NearMisses:
    ready, matcher = run_changes(events, request, changes)
    probes, batch = probed(ready, pa.array(matcher.looked_at), matcher.probes(ready.engine))
    return matcher.misses(probes, batch, ready.source, failed)


def run_changes(events: pa.Table, request: Request, changes: Sequence[Any]) -> tuple[Prepared, NearMatcher]:
    """The finished matcher, and what it was made from; raises as `near_misses_in_process`, also if a change fails."""
    ready = _prepared(events, request, _patterns(request, changes))
    matcher = request.family.near(ready.compiled, changes, ready.until)
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    return ready, matcher


def _patterns(request: Request, changes: Sequence[Any]) -> Sequence[PatternRequest[Any]]:
    """The patterns to run: first the unchanged one, then those of the changes."""
    found = request.family.near_patterns(request.only.pattern, changes, complete=request.as_of is None)
    return [PatternRequest(one) for one in found]


def _prepared(events: pa.Table, request: Request, patterns: Sequence[PatternRequest[Any]]) -> Prepared:
    request = replace(request, patterns=tuple(patterns), named=True, numbered=True, outputs=None)
    return prepared(events, request, warns=False)
