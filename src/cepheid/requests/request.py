"""A request to a host: the checked arguments of `detect` in one value. Also the columns of workers' messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from cepheid.errors import PatternError, Problem, SchemaError
from cepheid.events.batch import Schema
from cepheid.families import known_family_of
from cepheid.families.family import Family
from cepheid.plan.engine import SqlEngine
from cepheid.plan.lifted import OutputName, RowsPer
from cepheid.plan.limits import Limits
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.sequence import order_items
from cepheid.requests.report import Report

if TYPE_CHECKING:
    from cepheid.plan.plan_set import PlanSet

ERROR, COUNTS = "_error", "_counts"
"""Columns that a Spark worker adds to the matcher's rows, for its messages to the driver."""


SHARDS = 16
"""The default number of shards of a stream's pattern. It is small because a call of a shard takes milliseconds, and a
partition calls its shards one after the other.
"""
MOST_SHARDS = 65_536

Workers: TypeAlias = int | Literal["auto"]
"""The number of processes that work on a call in process; "auto": as many as pay."""
MOST_WORKERS = 256
LEAST_MEMORY = 256_000_000
"""The least bound on the memory of a worker process, in bytes: with less, it could not compile a kernel."""
MEMORY_CAN_BE_BOUND = sys.platform == "linux"
"""Elsewhere the system's limit on a process's data has another meaning, or there is none."""

MOST_LISTED = 1000
"""The default for how many open partial matches are listed per key. A set may represent more than fit into memory."""

Resolution: TypeAlias = Literal["us"]
"""What event times may be cut to: microseconds."""

Nulls: TypeAlias = Literal["error", "drop"]
"""What happens with events without a key or a time: they are an error, or are dropped and counted."""


@dataclass(frozen=True)
class Request:
    """One detection."""

    patterns: tuple[PatternRequest[Any], ...]
    """All of one kind."""
    key: tuple[str, ...]
    time: str | None
    """None: processing order."""
    arrival: bool = False
    """Whether the time of an event is that of its arrival, which a live host puts into the column `time`."""
    end: str | None = None
    """For events with a start and an end: the column of the end. Then `time` is the column of the start."""
    event_id: str | None = None
    """For events with a start and an end: the column that identifies an event."""
    open_for: timedelta | None = None
    """With `event_id`, on a stream: how long an event may be open; None: any time."""
    changes: str | None = None
    """With `event_id`, for finite input in process: the column that says what each row does to its event."""
    named: bool = False
    """Whether the patterns were given by name."""
    sequence: tuple[str, ...] = ()
    """Names of columns, or items of ORDER BY."""
    columns: tuple[str, ...] | None = None
    outputs: tuple[OutputName, ...] | None = None
    """None: only matches, in their own columns."""
    in_one_table: bool = False
    """Whether rows say which kind they are."""
    limits: Limits = field(default_factory=Limits)
    rows_per: RowsPer = "match"
    unmatched: bool = False
    """Whether events that are in no row of events have a row, too."""
    numbered: bool = False
    """Whether rows of events have the events' numbers, with which the host finds their columns."""
    in_row_order: bool = False
    """Whether events of equal time are in the order of the table's rows; there is no `sequence` then."""
    time_resolution: Resolution | None = None
    """How event times may be cut; None: a time that is finer than microseconds is an error."""
    as_of: datetime | None = None
    """A time without a zone is read like event times without one."""
    time_zone: str | None = None
    """How times without a zone are read; None: the host's default."""
    nulls: Nulls = "error"
    report: Report | None = None
    lateness: timedelta | None = None
    """None: a stream must have its own watermark."""
    shards: int = SHARDS
    """The number of parts that a stream's keys are divided into."""
    standbys: int = 0
    """The number of shards that may hold copies of a stream's hot keys, for each pattern."""
    workers: Workers = 1
    worker_memory: int | None = None
    """The bytes that each worker process may allocate; None: as many as there are."""
    slices: bool = False
    """Whether a batch on Spark divides the events of each key into time slices."""
    show_keys: bool = False
    """Whether the progress of a stream has its hottest keys themselves, not only their hashes."""
    checkpoint: str | None = None
    """The checkpoint that a stream's query will have, if it is known when the plan is made."""

    @property
    def family(self) -> Family:
        """The kind of the patterns."""
        return known_family_of(self.patterns[0].pattern)

    @property
    def names(self) -> list[str]:
        """The names of all patterns."""
        return [one.pattern.name for one in self.patterns]

    @property
    def only(self) -> PatternRequest[Any]:
        """The pattern of a request for one pattern."""
        (only,) = self.patterns
        return only


def last_instant(request: Request, zone: str) -> datetime | None:
    """The time up to which events count, in UTC; None without `as_of`. `zone` is that of a time without one.

    Raises:
        SchemaError: as `instant_of`.
    """
    return None if request.as_of is None else instant_of(request.as_of, zone)


def planned(request: Request, columns: pa.Schema, engine: SqlEngine) -> PlanSet[Any]:
    """The plans of the request's patterns over events with these columns; raises as `Family.build`."""
    items = order_items(request.sequence, columns, engine)
    assert not any(item.computed for item in items), "the host adds the columns that order events"
    schema = Schema(
        columns,
        request.key,
        request.time,
        tuple(item.column for item in items),
        request.end,
        request.in_row_order,
        tuple(item.direction for item in items),
        event_id=request.event_id,
    )
    plans = request.family.build(
        request.patterns,
        schema,
        engine,
        PlanOptions(
            named=request.named,
            columns=request.columns,
            outputs=request.outputs,
            limits=request.limits,
            rows_per=request.rows_per,
            numbered=request.numbered,
            in_one_table=request.in_one_table,
            time_zone=request.time_zone,
        ),
    )
    if request.as_of is not None and (problems := _never_certain(plans, request)):
        raise PatternError(problems)
    return plans


def _never_certain(plans: PlanSet[Any], request: Request) -> list[Problem]:
    """Why patterns have no match that is certain at `as_of`."""
    found = [(plan.pattern.name, one) for plan in plans.each for one in request.family.never_certain_as_of(plan)]
    return [problem.of_pattern(name) if plans.named else problem for name, problem in found]


def instant_of(as_of: datetime, zone: str, *, argument: str = "as_of") -> datetime:
    """`as_of` in UTC. Without a zone it is a local time in `zone`. Error messages call it `argument`.

    Raises:
        SchemaError: the local time exists twice or not at all, or is out of range in UTC.
    """
    local = as_of if as_of.tzinfo is not None else as_of.replace(tzinfo=_zone(zone, argument))
    try:
        if local is as_of:
            return as_of.astimezone(UTC)
        early, late = (local.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
    except OverflowError:
        raise SchemaError(f"{argument}: {local} is before the year 1 or after 9999 in UTC") from None
    if early == late:
        return early
    what = "does not exist" if early.astimezone(local.tzinfo).replace(tzinfo=None) != as_of else "is ambiguous"
    raise SchemaError(f"{argument}: the local time {as_of} {what} in {zone}. Give it with its offset, as in '{late}'")


def _zone(name: str, argument: str) -> tzinfo:
    """The zone with this name. As on Spark, the name may also be an offset such as +05:30."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        pass
    try:
        offset = datetime.strptime(name.removeprefix("GMT").removeprefix("UTC"), "%z").tzinfo
    except ValueError as error:
        raise SchemaError(f"{argument}: the time zone {name!r} is not known here. Give it with its offset") from error
    assert offset is not None
    return offset


def checked_most(most: object) -> int:
    """The number of open partial matches to list per key.

    Raises:
        SchemaError: it is not a whole number of at least 1.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise SchemaError(f"most: a whole number from 1 is expected, got {most!r}")
    return most


def repeated_names(names: Sequence[str]) -> list[str]:
    """A fault for each name that several columns of the events have."""
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    return [f"two columns of the events are named {name!r}: rename one" for name in repeated]
