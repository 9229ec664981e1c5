"""A case → what Cepheid is asked: a pattern with SQL conditions, a table of events, and up to when they count.

What a case needs and Cepheid has not yet is raised as `Unsupported`. New features go into `STARTS`, `CALLS`, `SKIPS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from tests.conformance.case import Answer, Call, Case, PatternFacts, SkipFacts, StageFacts, Value
from tests.conformance.condition import fields, parse, quoted, to_sql

from cepheid import Pattern, Skip

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR = datetime(9000, 1, 1, tzinfo=UTC)
"""After every deadline of every case."""
BEFORE = datetime(1000, 1, 1, tzinfo=UTC)
"""Before every event: no watermark has come."""
TIME = "event_time"
CLASS = "class"
"""The field that names an event's type."""


class Unsupported(Exception):
    """The case uses `feature`, which Cepheid has not yet."""

    def __init__(self, feature: str) -> None:
        super().__init__(feature)
        self.feature = feature


@dataclass(frozen=True)
class Question:
    """What `detect` is called with; the sequence column is `id`, and the event's time is a plain column `ts` too."""

    pattern: Pattern
    events: pa.Table
    key: str | None
    as_of: datetime


def translate(case: Case) -> Question:
    """The case as a question to Cepheid.

    Raises:
        Unsupported: it cannot be asked yet.
        PatternError: Cepheid refuses the pattern.
    """
    pattern = to_pattern(case.pattern)
    if case.comparator is not None:
        raise Unsupported("comparator (columns that order ties)")
    if not case.operator and any(a.ts > b.ts for a, b in zip(case.items, case.items[1:], strict=False)):
        raise Unsupported("events out of the order of time, without an operator")
    return Question(pattern, _table(case), case.key, _as_of(case))


# The pattern


def to_pattern(facts: PatternFacts) -> Pattern:
    pattern: Pattern | None = None
    for stage in facts.stages:
        pattern = _with_stage(pattern, stage)
        for call in stage.calls:
            if call.name not in CALLS:
                raise Unsupported(call.name)
            pattern = CALLS[call.name](pattern, call)
    assert pattern is not None, "a case has a stage"
    return pattern.skip(_skip(facts.skip))


def _with_stage(pattern: Pattern | None, stage: StageFacts) -> Pattern:
    if stage.name is None:
        raise Unsupported("group")
    if pattern is None:
        return Pattern.begin(stage.name)
    if stage.contiguity not in STARTS:
        raise Unsupported(stage.contiguity)
    return STARTS[stage.contiguity](pattern, stage.name)


STARTS: Mapping[str, Callable[[Pattern, str], Pattern]] = {
    "next": Pattern.next,
    "followedBy": Pattern.followed_by,
    "followedByAny": Pattern.followed_by_any,
}


def _condition(call: Call) -> str:
    (text,) = call.arguments
    assert isinstance(text, str)
    return to_sql(parse(text))


def _where(pattern: Pattern, call: Call) -> Pattern:
    return pattern.where(_condition(call))


def _or(pattern: Pattern, call: Call) -> Pattern:
    """In FlinkCEP `or` may be the first condition."""
    first = not pattern.stages[-1].conditions
    return pattern.where(_condition(call)) if first else pattern.or_where(_condition(call))


def _subtype(pattern: Pattern, call: Call) -> Pattern:
    (name,) = call.arguments
    return pattern.where(f"{quoted(CLASS)} <=> '{name}'")


def _one_or_more(pattern: Pattern, call: Call) -> Pattern:
    if call.arguments:
        raise Unsupported("window of oneOrMore")
    return pattern.one_or_more()


def _times(pattern: Pattern, call: Call) -> Pattern:
    counts = [count for count in call.arguments if isinstance(count, int)]
    if len(counts) > 2:
        raise Unsupported("window of times")
    return pattern.times(*counts)


def _within(pattern: Pattern, call: Call) -> Pattern:
    length, *kind = call.arguments
    assert isinstance(length, int)
    if kind == ["PREVIOUS_AND_CURRENT"]:
        raise Unsupported("within between events")
    return pattern.within(timedelta(milliseconds=length))


CALLS: Mapping[str, Callable[[Pattern, Call], Pattern]] = {
    "where": _where,
    "or": _or,
    "subtype": _subtype,
    "oneOrMore": _one_or_more,
    "times": _times,
    "optional": lambda pattern, _: pattern.optional(),
    "consecutive": lambda pattern, _: pattern.consecutive(),
    "within": _within,
}


def _skip(skip: SkipFacts) -> Skip:
    if skip.strategy not in SKIPS:
        raise Unsupported(skip.strategy)
    return SKIPS[skip.strategy]


SKIPS: Mapping[str, Skip] = {"NO_SKIP": Skip.no_skip(), "SKIP_PAST_LAST_EVENT": Skip.past_last_event()}


# The events


def _table(case: Case) -> pa.Table:
    """Numbers as DOUBLE, texts as STRING; the fields that conditions name and no event has are columns of NULLs."""
    late = case.expected.late if isinstance(case.expected, Answer) else frozenset()
    events = [event for event in case.events if event.id not in late]
    columns = {
        "id": pa.array([event.id for event in events], pa.int64()),
        "ts": pa.array([event.ts for event in events], pa.float64()),
        TIME: pa.array([event.ts * 1000 for event in events], pa.timestamp("us", "UTC")),
    }
    texts = _fields(case.pattern)
    for name in dict.fromkeys([*(name for event in case.events for name in event.fields), *texts]):
        if name not in columns:
            type_ = _type([event.fields.get(name) for event in case.events], is_text=texts.get(name, False))
            columns[name] = pa.array([event.fields.get(name) for event in events], type_)
    return pa.table(columns)


def _type(values: list[Value], *, is_text: bool) -> pa.DataType:
    there = [value for value in values if value is not None]
    if any(isinstance(value, bool) for value in there):
        return pa.bool_()
    if any(isinstance(value, str) for value in there) or (is_text and not there):
        return pa.string()
    return pa.float64()


def _fields(pattern: PatternFacts) -> dict[str, bool]:
    """The fields that conditions read, each with whether one uses it as a text."""
    found: dict[str, bool] = {}
    for stage in pattern.stages:
        for call in stage.calls:
            for name, is_text in _read_by(call):
                found[name] = found.get(name, False) or is_text
    return found


def _read_by(call: Call) -> Iterator[tuple[str, bool]]:
    if call.name == "subtype":
        yield CLASS, True
    elif call.name in ("where", "or"):
        yield from fields(parse(str(call.arguments[0]))).items()


# Time


def _as_of(case: Case) -> datetime:
    if case.operator and case.final_watermark:
        return FAR
    told = case.watermarks if case.operator else [item.ts for item in case.items]
    if not case.operator and case.advance_to is not None:
        told.append(case.advance_to)
    return EPOCH + timedelta(milliseconds=max(told)) if told else BEFORE
