"""The arguments of `detect` and the like, checked and in one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from types import EllipsisType

from cepheid.errors import SchemaError
from cepheid.families import known_family_of
from cepheid.lang.arguments import brief
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.requests.arguments import (
    checked_as_of,
    checked_flag,
    checked_key,
    checked_lateness,
    checked_limits,
    checked_memory,
    checked_name,
    checked_names,
    checked_nulls,
    checked_outputs,
    checked_path,
    checked_resolution,
    checked_rows_per,
    checked_sequence,
    checked_shards,
    checked_standbys,
    checked_time,
    checked_workers,
    checked_zone,
    faults_of_kind,
    faults_of_outputs,
)
from cepheid.requests.arrival import ARRIVAL, Arrival
from cepheid.requests.patterns import Measures, asked_patterns
from cepheid.requests.report import Report
from cepheid.requests.request import SHARDS, Nulls, Request, Resolution, Workers
from cepheid.requests.row_order import ROW_ORDER, RowOrder


def request_of(
    pattern: object,
    *,
    time: str | Sequence[str] | Arrival | EllipsisType | None = ...,
    key: str | Sequence[str] | None = None,
    event_id: str | None = None,
    open_for: timedelta | str | None = None,
    changes: str | None = None,
    sequence: str | Sequence[str] | RowOrder | None = None,
    columns: str | Sequence[str] | None = None,
    measures: Measures | None = None,
    outputs: OutputName | Sequence[OutputName] | None = None,
    rows_per: RowsPer = "match",
    unmatched: bool = False,
    limits: Limits | None = None,
    as_of: datetime | str | None = None,
    time_zone: str | None = None,
    time_resolution: Resolution | None = None,
    nulls: Nulls = "error",
    report: Report | None = None,
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
    standbys: int = 0,
    workers: Workers = 1,
    worker_memory: int | str | None = None,
    slices: bool = False,
    show_keys: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    endless: bool = False,
) -> Request:
    """The checked arguments of `detect`.

    Raises:
        PatternError: `pattern` is not a pattern.
        SchemaError: other arguments are wrong; the message has all faults.
    """
    faults: list[str] = []
    named = isinstance(pattern, Mapping)
    patterns = asked_patterns(pattern, measures, faults)
    family = known_family_of(patterns[0].pattern)
    faults += faults_of_kind(family, {"sequence": sequence, "measures": measures, "as_of": as_of}, limits)
    faults += faults_of_outputs(family, outputs)
    if named and outputs is None and family.named_in_one_table:
        outputs = "matches"
    start, end = checked_time(time, family, faults)
    in_one_table = named or outputs is not None or (endless and family.always_in_one_table)
    asked = None if outputs is None else checked_outputs(outputs, faults)
    with_cause = any(output in ("no_match", "inconsistent") for output in asked or ())
    request = Request(
        patterns=patterns,
        named=named,
        key=checked_key(key, faults, with_outputs=in_one_table, with_cause=with_cause),
        time=start,
        arrival=time is ARRIVAL and start is not None,
        end=end,
        event_id=None if event_id is None else checked_name("event_id", event_id, faults),
        open_for=None if open_for is None else checked_lateness(open_for, faults, "open_for", or_zero=False),
        changes=None if changes is None else checked_name("changes", changes, faults),
        sequence=checked_sequence(sequence, faults),
        in_row_order=sequence is ROW_ORDER,
        columns=None if columns is None else checked_names("columns", columns, faults),
        outputs=asked,
        in_one_table=in_one_table,
        rows_per=checked_rows_per(rows_per, faults),
        unmatched=checked_flag("unmatched", unmatched, faults),
        limits=Limits() if limits is None else checked_limits(limits, faults),
        as_of=None if as_of is None else checked_as_of(as_of, faults),
        time_zone=checked_zone(time_zone, faults),
        time_resolution=checked_resolution(time_resolution, faults),
        nulls=checked_nulls(nulls, faults),
        report=report,
        lateness=None if lateness is None else checked_lateness(lateness, faults),
        shards=checked_shards(shards, faults),
        standbys=checked_standbys(standbys, shards, checkpoint, show_keys=show_keys, faults=faults)
        if standbys != 0
        else 0,
        workers=checked_workers(workers, faults),
        worker_memory=None if worker_memory is None else checked_memory(worker_memory, faults),
        slices=checked_flag("slices", slices, faults),
        show_keys=checked_flag("show_keys", show_keys, faults),
        checkpoint=None if checkpoint is None else checked_path("checkpoint", checkpoint, faults),
    )
    if worker_memory is not None and request.workers == 1:
        faults.append("worker_memory: it bounds several workers, as with workers=2; leave it out")
    faults += _faults_of_ids(request, has_open_for=open_for is not None, endless=endless)
    if sequence is ROW_ORDER and family.has_ends:
        faults.append(f"sequence: the order of rows does not identify {family.kind}; name a column that does")
    if unmatched and rows_per != "event":
        faults.append("unmatched: rows of matches have no events without one; give rows_per='event' with it")
    if time is None and as_of is not None:
        faults.append("as_of needs event times: name the column with time=…")
    if report is not None and not isinstance(report, Report):
        faults.append(f"report: a Report() is expected, got {brief(report)}")
    if faults:
        raise SchemaError("\n".join(faults))
    return request


def _faults_of_ids(request: Request, *, has_open_for: bool, endless: bool) -> Iterator[str]:
    """The faults of a column that identifies events, and of what needs it."""
    if has_open_for and (request.event_id is None or not endless):
        where = "rows open them" if request.event_id is None else "rows may still close them: on a stream"
        yield f"open_for: events are open only where {where}. Leave it out"
    family = request.family
    if request.changes is not None and not family.has_ends:
        yield f"changes: rows change intervals; leave it out of {family.kind}"
    if request.changes is not None and request.as_of is not None:
        yield "changes: a row that withdraws an event has no time of its own, which as_of needs; give one of the two"
    if request.event_id is None:
        return
    if not family.has_ends:
        yield f"event_id: it joins the rows in which an interval opens and closes; leave it out of {family.kind}"
    if request.sequence or request.in_row_order:
        yield "sequence: with event_id the id identifies events; leave sequence out"
