"""Near misses in process: the changed patterns run together over one preparation of the events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.errors import ConditionError, LimitExceeded, PatternError, SchemaError
from cepheid.events.batch import NUMBER
from cepheid.hosts.in_process.detect import prepared
from cepheid.hosts.in_process.given_types import Sources
from cepheid.hosts.in_process.probed import probed
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
    except (ConditionError, LimitExceeded, PatternError):
        _found(events, request, (), {})  # raises if it is not one of the changes that fails
    failures = [_failure(events, request, change) for change in changes]
    each = [*zip(changes, failures, strict=True)]
    failed = {change.text: why for change, why in each if why is not None}
    return _found(events, request, [change for change, why in each if why is None], {**failed, **untried})


def sources_of(request: Request) -> Sources:
    """The event columns that columns of the near misses have their values from."""
    source_of = {name: name for name in request.key} | {ROW_NUMBER: NUMBER}
    return source_of if request.time is None else source_of | {"match_start": request.time, "at": request.time}


def _failure(events: pa.Table, request: Request, change: Any) -> str | None:
    """Why the change cannot be tried; None if it can."""
    try:
        _found(events, request, (change,), {})
    except (ConditionError, LimitExceeded, PatternError) as error:
        return str(error)
    return None


def _found(events: pa.Table, request: Request, changes: Sequence[Any], failed: Mapping[str, str]) -> NearMisses:
    family, pattern = request.family, request.only.pattern
    patterns = family.near_patterns(pattern, changes, complete=request.as_of is None)
    each = tuple(PatternRequest(one) for one in patterns)
    ready = prepared(events, replace(request, patterns=each, named=True, numbered=True, outputs=None), warns=False)
    matcher = family.near(ready.plans, changes, ready.until)
    for batch in ready.batches(ordered=True):
        matcher.process(batch)
    matcher.finish()
    probes, batch = probed(ready, pa.array(matcher.looked_at), matcher.probes(ready.engine))
    return matcher.misses(probes, batch, ready.source, failed)
