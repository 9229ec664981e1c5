"""Which patterns give a warning about growing partial matches, and that partial matches grow in these alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from cepheid.compile.stages.automaton import build_automaton
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.reference_events import Event
from cepheid.kernel.stages.reference import ReferenceMatcher
from cepheid.lang.stages.pattern import Pattern, Skip
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.growth import growth_warnings

A = Pattern.begin("a").where("x = 1")
AB = A.followed_by("b").where("x = 2")
LOOP = A.next("b").where("x = 2").one_or_more()
RUN = Pattern.begin("a").where("x < 9").next("b").where("x < 9").one_or_more().consecutive()
GROUP = Pattern.begin("c").where("x = 3").next("d")


BOUNDED = [
    A,
    A.next("b").where("x = 2"),
    A.not_next("n").where("x = 3").next("b"),
    A.followed_by("b"),
    A.times(3),
    A.where("y > 1").times(2, 4).greedy(),
    A.next("b").where("x > a.x").times(3).consecutive(),
    A.next(GROUP.times(2)),
    A.next(GROUP).times(2),
    LOOP.skip(Skip.to_next()),
    LOOP.allow_combinations().skip(Skip.to_next()),
    A.next("b").where("x = 2").times(3).allow_combinations().skip(Skip.past_last_event()),
    RUN.skip(Skip.past_last_event()),
    RUN.skip(Skip.to_next()),
    AB.within("1 hour"),
    A.followed_by_any("b").one_or_more().allow_combinations().within("1 hour"),
    AB.within_previous("1 hour"),
    AB.max_gap("1 hour"),
    A.not_followed_by("n").where("x = 3").within_previous("1 hour"),
    A.times(3, window="1 hour").allow_combinations(),
    A.next(Pattern.begin("c").followed_by("d").where("x = 2")).within_previous("1 hour"),
]


@pytest.mark.parametrize("pattern", BOUNDED)
def test_no_warnings(pattern: Pattern) -> None:
    """Strict patterns end with the next event, counted loops are soon complete, and windows bound the rest."""
    assert growth_warnings(pattern) == ()


WAIT = (
    "stage 'b': partial matches wait for it until an event matches, however long that takes, "
    "so their number can grow without bound."
)
ENDLESS = (
    "stage 'b': partial matches wait for it for ever, as followed_by_any lets them wait on after an event has matched, "
    "so their number can grow without bound."
)
NEVER = (
    "stage 'b': partial matches stay in its loop for ever, as no event ends it, so their number can grow without bound."
)
RUNNING = (
    "stage 'b': partial matches stay in its loop for as long as events match, and each of these may start another, "
    "so their number can grow without bound."
)
DOUBLED = (
    "stage 'b': each event that its loop could take doubles the partial matches in it, "
    "so their number can grow without bound."
)
GAPS = (
    "stage 'b': partial matches wait in its loop until the next event matches, however long that takes, "
    "so their number can grow without bound."
)
PREVIOUS = "Add within(…), or within_previous(…) to this stage"
UNTIL = "Add within(…), or until(…) to this stage"
SKIP = "; or a skip strategy, which drops them once a match is emitted"


GROWING: list[tuple[Pattern, list[str]]] = [
    (AB, [f"{WAIT} {PREVIOUS}."]),
    (AB.skip(Skip.past_last_event()), [f"{WAIT} {PREVIOUS}."]),
    (A.not_followed_by("n").where("x = 3").followed_by("b").where("x = 2"), [f"{WAIT} {PREVIOUS}."]),
    (A.followed_by_any("b"), [f"{ENDLESS} {PREVIOUS}{SKIP}."]),
    (A.followed_by_any("b").where("x = 2").skip(Skip.to_next()), [f"{ENDLESS} {PREVIOUS}."]),
    (LOOP, [f"{NEVER} {UNTIL}{SKIP}."]),
    (LOOP.next("c").where("x = 3").skip(Skip.to_next()), [f"{NEVER} {UNTIL}."]),
    (LOOP.next("c"), [f"{NEVER} {UNTIL}{SKIP}."]),
    (RUN, [f"{RUNNING} {UNTIL}."]),
    (RUN.longest().skip(Skip.past_last_event()), [f"{RUNNING} {UNTIL}."]),
    (RUN.next("c").where("x = 9").skip(Skip.past_last_event()), [f"{RUNNING} {UNTIL}."]),
    (Pattern.begin("a").next("b").one_or_more(window="1 hour"), [f"{RUNNING} {UNTIL}."]),
    (LOOP.allow_combinations(), [f"{DOUBLED} {UNTIL}{SKIP}."]),
    (A.next("b").times(2).allow_combinations(), [f"{DOUBLED} {PREVIOUS}{SKIP}."]),
    (Pattern.begin("a").next("b").where("x > a.x").times(2), [f"{GAPS} {PREVIOUS}."]),
    (AB.one_or_more(), [f"{WAIT} {PREVIOUS}.", f"{NEVER} {UNTIL}{SKIP}."]),
    (A.followed_by(GROUP), [f"{WAIT} {PREVIOUS}.".replace("stage 'b'", "group (c, d)")]),
    (
        Pattern.begin("a").next(Pattern.begin("c").where("x > a.x").next("d")).times(2),
        [f"{GAPS} {PREVIOUS}.".replace("stage 'b'", "group (c, d)")],
    ),
    (A.next(Pattern.begin("c").followed_by("b").where("x = 2").one_or_more().until("y > 7")), [f"{WAIT} {PREVIOUS}."]),
]


@pytest.mark.parametrize(("pattern", "warnings"), GROWING)
def test_warnings(pattern: Pattern, warnings: list[str]) -> None:
    """Each cause is reported once, with its stage and what would end partial matches."""
    assert list(growth_warnings(pattern)) == warnings


SOON = Pattern.begin("a").next("b").times(2)
"""Without a condition that compares events, any event that its loop takes advances all partial matches."""


@pytest.mark.parametrize(
    ("pattern", "compares"),
    [
        (SOON.where("s = 'a.x'"), False),
        (SOON.where("s = 'it''s a' -- a.x"), False),
        (SOON.where("s.a = 1"), False),
        (SOON.where("b(x) > 1"), False),
        (SOON.where("x > $a").with_parameters(a=1), False),
        (SOON.subtype("a").taxonomy("s"), False),
        (SOON.where(lambda event: event["a"] > 1, name="a.x"), False),
        (SOON.where(lambda event, matched: event["x"] > len(matched["a"]), name="longer"), True),
        (SOON.where("x > A . x"), True),
        (SOON.where("x > `a`.x"), True),
        (SOON.where("count(b) > 1"), True),
    ],
)
def test_what_compares_events(pattern: Pattern, *, compares: bool) -> None:
    """A stage's name in a string, as a field or as a parameter is not a comparison of events; a function that receives
    the matched events compares.
    """
    assert growth_warnings(pattern) == ((f"{GAPS} {PREVIOUS}.",) if compares else ())


FALLING = [value for top in range(50, 0, -1) for value in (top, top + 1, -99)]
CYCLES = [FALLING, [1], [1, 2], [1, 2, 3], [1, 3], [1, 2, 2], [2, 1], [1, 2, 3, 4], [1, 1, 2], [4, 3, 2, 1], [1, 3, 3]]


@pytest.mark.parametrize("pattern", BOUNDED)
def test_partial_matches_are_bounded_without_a_warning(pattern: Pattern, engine: DuckDbEngine) -> None:
    """Twice as many events give no more partial matches at any time."""
    counts = [partial_matches(pattern, cycle, 32, engine) for cycle in CYCLES]
    assert [max(count[:16]) for count in counts] == [max(count) for count in counts]


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in GROWING])
def test_partial_matches_grow_where_there_is_a_warning(pattern: Pattern, engine: DuckDbEngine) -> None:
    """There are events for which the number of partial matches grows with the number of events."""
    counts = [partial_matches(pattern, cycle, 12, engine) for cycle in CYCLES]
    assert any(max(count[:6]) < max(count) for count in counts)


@pytest.fixture(scope="module")
def engine() -> DuckDbEngine:
    return DuckDbEngine(time_zone="UTC")


def partial_matches(pattern: Pattern, cycle: list[int], count: int, engine: DuckDbEngine) -> list[int]:
    """The number of partial matches of the reference after each event. The events repeat the cycle's values as x, and
    have twice x as y.
    """
    start = datetime(2026, 3, 2, tzinfo=UTC)
    xs = [cycle[n % len(cycle)] for n in range(count)]
    times = [start + timedelta(minutes=20 * n) for n in range(count)]
    table = pa.table({"x": xs, "y": [2 * x for x in xs], "t": pa.array(times, pa.timestamp("us", "UTC"))})
    plan = build_plan(pattern, Schema(table.schema, (), "t"), engine)
    columns = [column.to_pylist() for column in engine.evaluate(table, values=(*plan.bits, *plan.values)).values]
    bits, values = columns[: len(plan.bits)], columns[len(plan.bits) :]
    matcher = ReferenceMatcher(build_automaton(pattern), plan.conditions, plan.window, plan.skip)
    counts = []
    for n, time in enumerate(table["t"].cast(pa.int64()).to_pylist()):
        mask = sum(1 << number for number, bit in enumerate(bits) if bit[n])
        matcher.process(Event(n, time, mask, tuple(value[n] for value in values)))
        counts.append(len(matcher.partial_matches))
    return counts
