"""Random patterns made with the public interface, random events, and their matches by the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st
from tests.conditions.stage_conditions import ACROSS, CURRENT, Check

from cepheid import Pattern, Skip
from cepheid.compile.stages.automaton import build_automaton
from cepheid.kernel.reference_events import Event
from cepheid.kernel.scripts.reference import Taken
from cepheid.kernel.stages.reference import Match, ReferenceMatcher
from cepheid.plan.lifted import PlannedCondition

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("device", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("price", pa.decimal128(6, 2)),
    ]
)
Row: TypeAlias = Mapping[str, Any]
Found: TypeAlias = list[tuple[Any, ...]]
"""For each match the ids of each stage's events, and detected_at."""


@dataclass(frozen=True)
class Case:
    """A pattern and, for each of its stages and for `begin_without`, if it has that, the conditions as Python functions
    with the stage that each one reads.
    """

    pattern: Pattern
    checks: tuple[tuple[tuple[Check, int], ...], ...]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.integers(1, 3))
    names = [f"s{i}" for i in range(count)]
    checks: list[tuple[tuple[Check, int], ...]] = []
    pattern = Pattern.begin(names[0])
    within = draw(st.sampled_from([None, "4 seconds", "9 seconds"]))
    for i in range(count):
        if i:
            pattern = draw(st.sampled_from([pattern.next, pattern.followed_by, pattern.followed_by_any]))(names[i])
        chosen = draw(st.lists(_conditions(i), max_size=2))
        for text, _, _ in chosen:
            pattern = pattern.where(text)
        checks.append(tuple((check, stage) for _, check, stage in chosen))
        pattern = draw(_quantified(pattern, last=i == count - 1, windowed=within is not None))
    if within:
        pattern = pattern.within(within)
    if gap := draw(st.sampled_from([None, None, "2 seconds", "5 seconds"])):
        pattern = pattern.max_gap(gap)
    if before := draw(st.sampled_from([None, None, "1 second", "3 seconds", "6 seconds"])):
        always = pattern.stages[0].quantifier.optional is False
        chosen = draw(st.lists(_conditions(0) if always else _alone(0), max_size=1))
        pattern = pattern.begin_without("before", where=chosen[0][0] if chosen else None, within=before)
        checks.append(tuple((check, stage) for _, check, stage in chosen))
    return Case(
        pattern.skip(draw(st.sampled_from([Skip.no_skip(), Skip.to_next(), Skip.past_last_event()]))), tuple(checks)
    )


def _conditions(stage: int) -> st.SearchStrategy[tuple[str, Check, int]]:
    across = st.tuples(st.sampled_from(sorted(ACROSS)), st.integers(0, stage)).map(
        lambda drawn: (drawn[0].format(s=f"s{drawn[1]}"), ACROSS[drawn[0]], drawn[1])
    )
    return _alone(stage) | across


def _alone(stage: int) -> st.SearchStrategy[tuple[str, Check, int]]:
    return st.sampled_from(sorted(CURRENT)).map(lambda text: (text, CURRENT[text], stage))


@st.composite
def _quantified(draw: st.DrawFn, pattern: Pattern, *, last: bool, windowed: bool) -> Pattern:
    loop = draw(st.sampled_from(["", "", "one_or_more", "times(2)", "times(1, 3)"]))
    if loop:
        pattern = {
            "one_or_more": pattern.one_or_more,
            "times(2)": lambda: pattern.times(2),
            "times(1, 3)": lambda: pattern.times(1, 3),
        }[loop]()
        consecutive = draw(st.booleans())
        pattern = pattern.consecutive() if consecutive else pattern
        if last and (consecutive or windowed) and draw(st.booleans()):
            pattern = pattern.longest()
    return pattern.optional() if draw(st.booleans()) else pattern


@st.composite
def events(draw: st.DrawFn, *, ties: bool = False) -> list[Row]:
    """Rows in the order of device, time and id; with `ties`, times may repeat within a device."""
    rows = []
    for device in draw(st.lists(st.sampled_from(["p", "q", "r"]), unique=True, max_size=3)):
        time = FIRST
        for _ in range(draw(st.integers(1, 9))):
            time += timedelta(seconds=draw(st.integers(0 if ties else 1, 3)))
            rows.append(
                {
                    "id": len(rows),
                    "device": device,
                    "at": time,
                    "kind": draw(st.sampled_from(["a", "a", "b", None])),
                    "n": draw(st.sampled_from([0, 1, 2, 3, None])),
                    "x": draw(st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan"), None])),
                    "price": draw(st.sampled_from([Decimal("0.50"), Decimal("1.00"), Decimal("2.25"), None])),
                }
            )
    return rows


class Definition(ReferenceMatcher):
    """The reference, with conditions in Python; an event's values are its row."""

    def __init__(self, case: Case) -> None:
        pattern = case.pattern
        window = None if pattern.window is None else pattern.window // timedelta(microseconds=1)
        nothing = [PlannedCondition(None, None)] * len(case.checks)
        super().__init__(build_automaton(pattern), nothing, window, pattern.skip_strategy)
        self.checks = case.checks

    def _condition(self, stage: int, taken: Taken, event: Event) -> bool:
        row: Any = event.values[0]
        return all(
            check(row, [e.values[0] for s, e in taken if s == looked_at])  # type: ignore[misc]
            for check, looked_at in self.checks[stage]
        )


def by_definition(case: Case, rows: Sequence[Row], as_of: datetime | None = None) -> Found:
    """The matches by the reference, in the order of device and emission."""
    found: Found = []
    for device in sorted({row["device"] for row in rows}):
        matcher = Definition(case)
        matches: list[Match] = []
        for row in rows:
            if row["device"] == device and (as_of is None or row["at"] <= as_of):
                matches += matcher.process(Event(row["id"], microseconds(row["at"]), 0, (row,)))  # type: ignore[arg-type]
        matches += matcher.finish() if as_of is None else matcher.advance_time(microseconds(as_of))
        stages = range(len(case.pattern.stages))
        found += [(*(tuple(i for s, i in m.taken if s == stage) for stage in stages), m.detected_at) for m in matches]
    return found


def microseconds(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def found_in(matches: pa.Table, pattern: Pattern) -> Found:
    """The same for the matches that `detect` gives."""
    found: Found = []
    for row in matches.to_pylist():
        detected = None if row["detected_at"] is None else microseconds(row["detected_at"])
        found.append((*(_ids(row[stage.name]) for stage in pattern.stages), detected))
    return found


def _ids(stage: Any) -> tuple[int, ...]:
    taken = stage if isinstance(stage, list) else [stage]
    return tuple(event["id"] for event in taken if event is not None)
