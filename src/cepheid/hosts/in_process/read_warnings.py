"""Warnings that need all events: of columns without values, of an `as_of` before all events, of keys with one event
each, of parts of conditions that held for no event, and of matches that are certain only because the input ended.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.batch import Schema
from cepheid.families.family import Family
from cepheid.hosts.in_process.held_bits import HeldBits
from cepheid.hosts.in_process.prepare import TimedEvents
from cepheid.output.common import MATCH
from cepheid.output.values import plain_text
from cepheid.plan.needed import NeededBit, unheld_parts
from cepheid.plan.plan_set import PlanSet
from cepheid.requests.report import certain_by_end_text
from cepheid.requests.request import Request

_MOST_LISTED = 3
_MANY, _SAMPLE = 100, 100_000
"""So many events with a key of their own are no accident; and at most so many are looked at."""


def empty_sequences(events: pa.Table, schema: Schema) -> Iterator[str]:
    """A warning for each column of the sequence that has only NULLs."""
    for name, text in zip(schema.sequence, schema.order_by, strict=True):
        if events.num_rows and events.column(name).null_count == events.num_rows:
            yield (
                f"sequence: {text!r} is NULL for every event, so it orders nothing: the content of events with equal "
                "times orders them. Name a column with values, or leave it out"
            )


def none_by_then(events: TimedEvents, request: Request, until: int | None) -> Iterator[str]:
    """A warning if `as_of` (`until`, in microseconds) is before all events."""
    if until is None or request.time is None or request.as_of is None:
        return
    times = events.times[-1].cast(pa.int64())
    first = pc.min(times).as_py()
    if first is not None and first > until:
        does, name = ("is at", request.time) if request.end is None else ("ends at", request.end)
        given = plain_text(events.events.column(name)[pc.index(times, first).as_py()].as_py())
        yield f"as_of: {plain_text(request.as_of)} is before all events, so none counts; the first {does} {given}"


def keys_of_one_event(
    events: TimedEvents, plans: PlanSet[Any], family: Family, results: Sequence[Sequence[pa.Table]]
) -> Iterator[str]:
    """A warning if there is no result, each match needs several events, and each of many events has its own key."""
    key = plans.schema.key
    if not key or len(events) < _MANY or any(table.num_rows for tables in results for table in tables):
        return
    if not all(family.needs_two_events(plan.pattern) for plan in plans.each):
        return
    table = pa.table({name: _plain(events.events.column(name).slice(0, _SAMPLE)) for name in key})
    if any(pa.types.is_nested(type_) for type_ in table.schema.types):
        return
    if table.group_by([*key]).aggregate([]).num_rows == table.num_rows:
        which = "each event" if table.num_rows == len(events) else f"each of the first {table.num_rows:,} events"
        yield (
            f"key: {which} has a key of its own ({', '.join(key)}), and only events of one key are matched together. "
            "Name columns that the events of a match have in common"
        )


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values without a dictionary or an extension of Arrow's types, which cannot be grouped."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([part.storage for part in column.chunks], column.type.storage_type)
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def unheld(plans: PlanSet[Any], family: Family, events: pa.Table, held: HeldBits, warned: Collection[str]) -> list[str]:
    """The parts of conditions that held for no event, each as a sentence without its end; none if there are no events.
    Patterns that were `warned` of before are left out: the reason is known then.
    """
    found: list[str] = []
    for plan, place in zip(plans.each, plans.places, strict=True):
        if not events.num_rows or plan.pattern.name in warned:
            continue
        needed: list[NeededBit] = [one for one in family.needed_bits(plan) if place.bits[one.bit] not in held]
        if needed:
            parts = unheld_parts(needed, plan.bits, plan.pattern.types, lambda name: events.column(name).unique())
            prefix = f"pattern {plan.pattern.name!r}, " if plans.named else ""
            found += [prefix + part for part in parts]
    return found


def unheld_warning(parts: Sequence[str], family: Family) -> str:
    """The warning of these parts; there is at least one."""
    more = f"; and {len(parts) - _MOST_LISTED:,} more" if len(parts) > _MOST_LISTED else ""
    advice = "; why(events, pattern, …) shows how far partial matches came" if family.explains_misses else ""
    return f"{'; '.join(parts[:_MOST_LISTED])}{more}. Compare that with the events' values{advice}"


class ByEnd(NamedTuple):
    """The matches that are certain only because the input ended."""

    matches: int
    warning: str | None
    """The warning of matches that a later event might have forbidden; None without such matches."""


def certain_by_end(
    plans: PlanSet[Any], family: Family, results: Sequence[Sequence[pa.Table]], events: TimedEvents
) -> ByEnd | None:
    """The matches in the results, one table for each pattern, that were emitted because the input ended and not because
    time had passed. None in processing order.
    """
    if plans.schema.time is None:
        return None
    last = pc.max(events.times[-1].cast(pa.int64())).as_py()
    counted = [
        _counted([tables[number] for tables in results if tables], partial(family.certain_from, plan), last)
        for number, plan in enumerate(plans.each)
    ]
    forbidden = [one for plan, one in zip(plans.each, counted, strict=True) if family.ends_with_absence(plan.pattern)]
    late, found = (sum(column) for column in zip(*forbidden, strict=True)) if forbidden else (0, 0)
    return ByEnd(sum(count for count, _ in counted), _of_absence(late, found, last) if late else None)


def _counted(
    tables: Sequence[pa.Table], certain_from: Callable[[pa.Table], pa.ChunkedArray], last: int | None
) -> tuple[int, int]:
    """How many matches in these rows are certain only after the `last` event (microseconds); and how many there are."""
    late = found = 0
    for table in tables:
        matches = table.filter(pc.equal(table["kind"], MATCH)) if "kind" in table.schema.names else table
        from_ = certain_from(matches).cast(pa.int64())
        after = pc.sum(pc.greater(from_, pa.scalar(last, pa.int64()))).as_py() or 0
        late, found = late + after + from_.null_count, found + matches.num_rows
    return late, found


def _of_absence(late: int, found: int, last: int | None) -> str:
    assert last is not None, "without events there are no matches"
    them = "it" if late == 1 else "them"
    try:
        at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=last)
        remedy = f"Leave {them} out with as_of={at.isoformat(' ')!r}, the time of the last event, or give"
    except OverflowError:  # the year is one that Python does not have
        remedy = "Give"
    return (
        f"{certain_by_end_text(late, found)}: an event that forbids {them} may not have come yet. "
        f"{remedy} a report, which counts {them}"
    )
