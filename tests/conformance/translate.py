"""Translates a case for Cepheid: a pattern with SQL conditions, a table of events, and the time up to which they count.

For a feature that Cepheid lacks, `Unsupported` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from tests.conformance.case import Call, Case, Event, PatternFacts, SkipFacts, StageFacts, Value
from tests.conformance.condition import fields, parse, to_sql
from tests.conformance.delivery import END, Step, delivered, in_order, listed

from cepheid import Pattern, Skip
from cepheid.lang.stages.pattern import SkipTo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR = EPOCH + timedelta(milliseconds=END)
BEFORE = datetime(1000, 1, 1, tzinfo=UTC)
"""Before every event: there has been no watermark."""
TIME = "event_time"
ORDER = "event_order"
CLASS = "class"
"""The field with an event's type."""
GROUP = "GroupPattern"
"""FlinkCEP's name for every group."""


class Unsupported(Exception):
    """The case uses `feature`, which Cepheid does not have."""

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


@dataclass(frozen=True)
class Question:
    """A pattern, all events in order of arrival, and how to read them; the event's time is also a plain column `ts`."""

    pattern: Pattern
    events: pa.Table
    key: str | None
    sequence: str
    """The column that orders events of equal time."""
    operator: bool
    """Whether events wait until a watermark passes them."""
    items: tuple[Step, ...]
    """The items in order of arrival: events, and advances of time (for all keys)."""
    steps: tuple[Step, ...]
    """The resulting steps for each key: events in their order, and advances of time."""
    late: frozenset[int]
    """The ids of late events."""
    as_of: datetime

    def id_of(self, arrival: int) -> int:
        """The id of the event with this number in the order of arrival."""
        found: int = self.events.column("id")[arrival].as_py()
        return found


def translate(case: Case) -> Question:
    """The case as a question to Cepheid.

    Raises:
        Unsupported: Cepheid lacks a feature of the case.
        PatternError: Cepheid refuses the pattern.
    """
    pattern = to_pattern(case.pattern)
    steps, late = delivered(case)
    return Question(pattern, _table(case), case.key, ORDER, case.operator, listed(case), steps, late, _as_of(case))


# The pattern


def to_pattern(facts: PatternFacts) -> Pattern:
    pattern = _sequence(facts)
    if lengths := [_duration(length) for length in _windows(facts, whole=True)]:
        pattern = pattern.within(min(lengths))
    if any(call.name == "subtype" for call in _calls(facts)):
        pattern = pattern.taxonomy(CLASS)
    return pattern.skip(_skip(facts.skip))


def _sequence(facts: PatternFacts) -> Pattern:
    """The stages, without the settings of the whole pattern: FlinkCEP ignores a group's skip strategy."""
    pattern: Pattern | None = None
    for stage in facts.stages:
        pattern = _with_stage(pattern, stage)
        for call in stage.calls:
            if call.name not in CALLS:
                raise Unsupported(call.name)
            pattern = CALLS[call.name](pattern, call)
    assert pattern is not None, "a case has a stage"
    return pattern


def _windows(facts: PatternFacts, *, whole: bool) -> Iterator[Value]:
    """The lengths of `within`, of which FlinkCEP takes the shortest: in a group, that on the last stage does
    not count.
    """
    for number, stage in enumerate(facts.stages, 1):
        lengths = [call.arguments[0] for call in stage.calls if call.name == "within" and not _between_events(call)]
        if lengths and (whole or number < len(facts.stages)):
            yield lengths[-1]
        if stage.group:
            yield from _windows(stage.group, whole=False)


def _with_stage(pattern: Pattern | None, stage: StageFacts) -> Pattern:
    added = _sequence(stage.group) if stage.group else stage.name
    assert added is not None, "a stage is a group or has a name"
    return Pattern.begin(added) if pattern is None else STARTS[stage.contiguity](pattern, added)


STARTS: Mapping[str, Callable[[Pattern, Any], Pattern]] = {
    "next": Pattern.next,
    "followedBy": Pattern.followed_by,
    "followedByAny": Pattern.followed_by_any,
    "notNext": Pattern.not_next,
    "notFollowedBy": Pattern.not_followed_by,
}


def _condition(call: Call) -> str:
    (text,) = call.arguments
    assert isinstance(text, str)
    return to_sql(parse(text))


def _or(pattern: Pattern, call: Call) -> Pattern:
    """In FlinkCEP `or` may be the first condition."""
    first = not pattern.stages[-1].conditions
    return pattern.where(_condition(call)) if first else pattern.or_where(_condition(call))


def _subtype(pattern: Pattern, call: Call) -> Pattern:
    (name,) = call.arguments
    return pattern.subtype(str(name))


def _times(pattern: Pattern, call: Call) -> Pattern:
    """A third argument is the loop's window."""
    counts, window = _whole_numbers(call.arguments[:2]), call.arguments[2:]
    return pattern.times(*counts, window=_window(window))


def _times_or_more(pattern: Pattern, call: Call) -> Pattern:
    (count,), window = _whole_numbers(call.arguments[:1]), call.arguments[1:]
    return pattern.times_or_more(count, window=_window(window))


def _within(pattern: Pattern, call: Call) -> Pattern:
    """The length for the whole pattern is collected by `_windows`."""
    return pattern.within_previous(_duration(call.arguments[0])) if _between_events(call) else pattern


def _between_events(call: Call) -> bool:
    return call.arguments[1:] == ("PREVIOUS_AND_CURRENT",)


def _whole_numbers(values: Sequence[Value]) -> list[int]:
    return [value for value in values if isinstance(value, int)]


def _window(given: Sequence[Value]) -> timedelta | None:
    return _duration(given[0]) if given else None


def _duration(length: Value) -> timedelta:
    assert isinstance(length, int)
    return timedelta(milliseconds=length)


CALLS: Mapping[str, Callable[[Pattern, Call], Pattern]] = {
    "where": lambda pattern, call: pattern.where(_condition(call)),
    "or": _or,
    "subtype": _subtype,
    "until": lambda pattern, call: pattern.until(_condition(call)),
    "oneOrMore": lambda pattern, call: pattern.one_or_more(window=_window(call.arguments)),
    "times": _times,
    "timesOrMore": _times_or_more,
    "optional": lambda pattern, _: pattern.optional(),
    "greedy": lambda pattern, _: pattern.greedy(),
    "consecutive": lambda pattern, _: pattern.consecutive(),
    "allowCombinations": lambda pattern, _: pattern.allow_combinations(),
    "within": _within,
}


def _skip(skip: SkipFacts) -> Skip:
    if skip.stage == GROUP:
        raise Unsupported("skip to a group")
    return Skip(SKIPS[skip.strategy], skip.stage, skip.error_on_miss)


SKIPS: Mapping[str, SkipTo] = {
    "NO_SKIP": SkipTo.NO_SKIP,
    "SKIP_TO_NEXT": SkipTo.NEXT,
    "SKIP_PAST_LAST_EVENT": SkipTo.PAST_LAST_EVENT,
    "SKIP_TO_FIRST": SkipTo.FIRST,
    "SKIP_TO_LAST": SkipTo.LAST,
}


# The events


def _table(case: Case) -> pa.Table:
    """Numbers as DOUBLE, texts as STRING; fields that occur only in conditions are columns of NULLs."""
    events = case.events
    columns = {
        "id": pa.array([event.id for event in events], pa.int64()),
        "ts": pa.array([event.ts for event in events], pa.float64()),
        TIME: pa.array([event.ts * 1000 for event in events], pa.timestamp("us", "UTC")),
        ORDER: pa.array(_ranks(events, case), pa.int64()),
    }
    texts = _fields(case.pattern)
    for name in dict.fromkeys([*(name for event in events for name in event.fields), *texts]):
        if name not in columns:
            given = [event.fields.get(name) for event in events]
            columns[name] = pa.array(given, _type(given, is_text=texts.get(name, False)))
    return pa.table(columns)


def _ranks(events: Sequence[Event], case: Case) -> list[int]:
    """The position of each event in the order of time, comparator and arrival."""
    order = sorted(events, key=lambda event: in_order(event, case.comparator))
    ranks = {event.arrival: rank for rank, event in enumerate(order)}
    return [ranks[event.arrival] for event in events]


def _type(values: list[Value], *, is_text: bool) -> pa.DataType:
    there = [value for value in values if value is not None]
    if any(isinstance(value, bool) for value in there):
        return pa.bool_()
    if any(isinstance(value, str) for value in there) or (is_text and not there):
        return pa.string()
    return pa.float64()


def _fields(pattern: PatternFacts) -> dict[str, bool]:
    """The fields that conditions read, each with whether a condition uses it as text."""
    found: dict[str, bool] = {}
    for call in _calls(pattern):
        for name, is_text in _read_by(call):
            found[name] = found.get(name, False) or is_text
    return found


def _calls(pattern: PatternFacts) -> Iterator[Call]:
    for stage in pattern.stages:
        yield from stage.calls
        if stage.group:
            yield from _calls(stage.group)


def _read_by(call: Call) -> Iterator[tuple[str, bool]]:
    if call.name == "subtype":
        yield CLASS, True
    elif call.name in ("where", "or", "until"):
        yield from fields(parse(str(call.arguments[0]))).items()


# Time


def _as_of(case: Case) -> datetime:
    if case.operator and case.final_watermark:
        return FAR
    times = case.watermarks if case.operator else [item.ts for item in case.items]
    if not case.operator and case.advance_to is not None:
        times.append(case.advance_to)
    return EPOCH + timedelta(milliseconds=max(times)) if times else BEFORE
