"""The kernel of sets needs memory only for what is within the window, however long the stream and however many
matches.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.running_sets import Visit, events_at, visits_after

from cepheid.compile.stages.compiled import compile_plan
from cepheid.events.batch import Schema
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events
from cepheid.kernel.failures import PassedLimit
from cepheid.kernel.reference_events import Event
from cepheid.kernel.sets import kernel as set_kernel
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.kernel.sets.nodes import MANY_OPEN
from cepheid.kernel.stages.python_kernel import Bounds, KeyMatcher
from cepheid.lang.expression import Name
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan

A, B, C, D = 1, 2, 4, 8


def plan_of(pattern: Pattern) -> Plan:
    """Bit i of an event's mask is the condition of stage i."""
    lifted = Lifted("x", Name(("x",), ((0, 1),)), pa.bool_())
    stages = range(len(pattern.leaves))
    return Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "t"),
        bits=tuple(lifted for _ in stages),
        values=(),
        conditions=tuple(PlannedCondition(bit=stage, script=None) for stage in stages),
        measures=None,
        columns=(),
    )


def relaxed_stages(*names: str) -> Pattern:
    """Stages that follow each other, with any events in between."""
    pattern = Pattern.begin(names[0]).where("x")
    for name in names[1:]:
        pattern = pattern.followed_by_any(name).where("x")
    return pattern


def matcher_of(pattern: Pattern, most: int | None = None) -> SetKernel:
    plan = replace(plan_of(pattern), limits=Limits(max_partial_matches=most))
    return SetKernel(compile_plan(plan).tables)


def feed(matcher: SetKernel, rows: list[tuple[int, int]]) -> None:
    """Runs all rows in one visit."""
    matcher.run(events_at(rows, range(len(rows))), visits_after(0, [Visit(0, tuple(rows), NO_TIME, closes=False)]))


def test_nodes_stay_bounded() -> None:
    """With a pattern that never completes, the kernel holds the events of the window only, over millions of events and
    within one call.
    """
    matcher = matcher_of(relaxed_stages("a", "b", "c", "d").within(timedelta(microseconds=1000)))
    random = np.random.default_rng(3)
    held_time, held_mask = np.zeros((2, 0), np.int64)
    sizes = []
    for first in range(0, 3_000_000, 500_000):
        kind = random.integers(0, 10, 500_000)
        time = np.concatenate([held_time, np.arange(first, first + len(kind))])
        mask = np.concatenate([held_mask, np.where(kind < 3, 1 << kind, 0)])
        events = Events(time, mask, np.zeros((0, len(time)), np.int64), np.zeros((0, len(time)), np.bool_))
        ends = np.array([len(time)])
        visits = visits_after(0, [Visit(0, (), NO_TIME, closes=False)])._replace(end=ends)
        assert len(matcher.run(events, visits).end) == 0
        held = matcher.hold()
        held_time, held_mask = time[held], mask[held]
        assert held_time.min() > time[-1] - 1000
        sizes.append(len(matcher.sets.nodes))
    assert sizes[-1] == sizes[0] < 20_000


def test_closed_keys_free_their_nodes() -> None:
    """The nodes of a key are freed when it closes, so that many keys in one call need no more than the largest key."""
    matcher = matcher_of(relaxed_stages("a", "b", "c"))
    visits = [Visit(key, ((0, A), (1, B), (2, B)), FOREVER, closes=True) for key in range(2000)]
    rows = [row for visit in visits for row in visit.rows]
    matcher.run(events_at(rows, range(len(rows))), visits_after(0, visits))
    assert len(matcher.hold()) == matcher.open_partial_matches(NO_TIME) == 0
    assert len(matcher.sets.nodes) == 8192


def test_counting_partial_matches_in_sets() -> None:
    """The number of partial matches in the sets is computed without listing them, counts only those in time, and is
    capped.
    """
    matcher = matcher_of(relaxed_stages("a", "b", "c").within(timedelta(microseconds=1500)))
    rows = [*((i, A) for i in range(1000)), *((1000 + i, B) for i in range(1000))]
    matcher.run(events_at(rows, range(len(rows))), visits_after(0, [Visit(0, tuple(rows), NO_TIME, closes=False)]))
    in_time = range(500, 1000)  # the deadlines of the others passed before the last event
    assert matcher.open_partial_matches(NO_TIME) == len(in_time) * (1 + 1000)
    assert matcher.open_partial_matches(2498) == 1 * (1 + 1000)
    assert (matcher.due(2498).tolist(), matcher.due(2499).tolist()) == ([], [0])
    loop = relaxed_stages("a", "b").one_or_more().allow_combinations().followed_by_any("c").where("x")
    matcher = matcher_of(loop)
    rows = [(0, A), *((i, B) for i in range(1, 100))]
    matcher.run(events_at(rows, range(len(rows))), visits_after(0, [Visit(0, tuple(rows), NO_TIME, closes=False)]))
    assert matcher.open_partial_matches(NO_TIME) == MANY_OPEN
    assert matcher.due(FOREVER - 1).tolist() == []


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, A, A, B, C, A | B, B | C])), max_size=12),
    window=st.none() | st.integers(1, 20),
    loops=st.booleans(),
    most=st.integers(1, 12),
)
def test_the_limit_counts_partial_matches_in_sets(
    *, rows: list[tuple[int, int]], window: int | None, loops: bool, most: int
) -> None:
    """An error is raised exactly if a key has more partial matches than the limit after some event, counted one by
    one.
    """
    pattern = relaxed_stages("a", "b")
    pattern = (pattern.one_or_more().allow_combinations() if loops else pattern).followed_by("c").where("x")
    plan = plan_of(pattern if window is None else pattern.within(timedelta(microseconds=window)))
    times = np.cumsum([gap for gap, _ in rows]).tolist()
    events = [(time, mask) for time, (_, mask) in zip(times, rows, strict=True)]
    definition = KeyMatcher(compile_plan(plan), Bounds(Limits()))
    counts = [0]
    for position, (time, mask) in enumerate(events):
        definition.take(Event(position, time, mask, ()))
        counts.append(len(definition.partial_matches))
    matcher = matcher_of(plan.pattern, most)
    if max(counts) > most:
        with pytest.raises(PassedLimit, match="max_partial_matches"):
            feed(matcher, events)
    else:
        feed(matcher, events)


def test_a_set_near_its_limit_is_seldom_counted() -> None:
    """Many windows with almost as many partial matches as allowed, then one with more."""
    matcher = matcher_of(relaxed_stages("a", "b").within(timedelta(microseconds=1000)), 1000)
    with pytest.raises(PassedLimit) as exceeded:
        feed(matcher, [*((i, A) for i in range(200_000)), *((200_000 + i // 2, A) for i in range(200))])
    assert 199_000 <= exceeded.value.event < 200_000


@pytest.mark.parametrize("more", [0, 10, 60, 100, 160, 1000])
def test_after_a_call_the_limit_holds(more: int) -> None:
    """After a call the limit holds, although near the limit partial matches are not counted at every event."""
    matcher = matcher_of(relaxed_stages("a", "b").within(timedelta(microseconds=9_990)), 10_000)
    rows = [*((i, A) for i in range(10_012)), *((10_011, A) for _ in range(more))]
    if 9_990 + more > 10_000:
        with pytest.raises(PassedLimit, match="max_partial_matches"):
            feed(matcher, rows)
    else:
        feed(matcher, rows)
        assert matcher.open_partial_matches(NO_TIME) == 9_990 + more


def test_room_for_nodes() -> None:
    """The capacity is at most four times the number of nodes, and nothing is stored for counting if no limit
    needs it.
    """
    matcher = matcher_of(relaxed_stages("a", "b"))
    feed(matcher, [(i, A) for i in range(10_000)])
    assert matcher.size == 10_000
    assert len(matcher.sets.nodes) == len(matcher.sets.vertex) < 4 * 10_000
    assert len(matcher.sets.paths) == 0


def test_without_a_limit_given_sets_are_limited_by_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a given limit, sets may represent many more than ten million partial matches; their nodes are limited."""
    rows = [(i, 1 << i // 300) for i in range(900)]
    feed(matcher_of(relaxed_stages("a", "b", "c", "d")), rows)
    with pytest.raises(PassedLimit, match="max_partial_matches"):
        feed(matcher_of(relaxed_stages("a", "b", "c", "d"), 10_000_000), rows)
    monkeypatch.setattr(set_kernel, "MOST_NODES", 20_000)
    bounded = relaxed_stages("a", "b").within(timedelta(microseconds=1000))
    feed(matcher_of(bounded), [(i, A) for i in range(100_000)])
    with pytest.raises(PassedLimit, match="max_partial_matches"):
        feed(matcher_of(relaxed_stages("a", "b")), [(i, A) for i in range(100_000)])


def test_more_matches_than_there_was_room_for() -> None:
    """All subsets of fifteen events: the output grows, and the matches are in order, those with most events first."""
    pattern = Pattern.begin("a").where("x").followed_by_any("b").where("x").one_or_more().allow_combinations()
    matcher = matcher_of(pattern.followed_by_any("c").where("x"))
    rows = [(0, A), *((i, B) for i in range(1, 16)), (16, C)]
    visit = Visit(0, tuple(rows), FOREVER, closes=True)
    emitted = matcher.run(events_at(rows, range(len(rows))), visits_after(0, [visit]))
    lengths = np.diff(emitted.end, prepend=0)
    assert len(lengths) == 2**15 - 1
    assert (np.diff(lengths) <= 0).all()
    assert emitted.event[:17].tolist() == list(range(17))
    assert emitted.event[-3:].tolist() == [0, 15, 16]


def test_events_that_are_taken_together_are_listed_once() -> None:
    """A thousand events followed by a thousand others: every pair is a match, and is listed at its own cost only."""
    matcher = matcher_of(relaxed_stages("a", "b", "c"))
    rows = [*((i, A) for i in range(1000)), *((1000 + i, B) for i in range(1000)), (2000, C)]
    visit = Visit(0, tuple(rows), FOREVER, closes=True)
    emitted = matcher.run(events_at(rows, range(len(rows))), visits_after(0, [visit]))
    assert emitted.event[:6].tolist() == [0, 1000, 2000, 0, 1001, 2000]
    assert len(emitted.end) == 1_000_000


def test_too_many_matches_are_detected_before_they_are_built() -> None:
    """Ten thousand million pairs of edges are not enumerated to detect that there are more matches than the limit."""
    plan = replace(plan_of(relaxed_stages("a", "b", "c")), limits=Limits(max_matches_per_event=1_000_000))
    matcher = SetKernel(compile_plan(plan).tables)
    rows = [*((i, A) for i in range(100_000)), *((100_000 + i, B) for i in range(100_000)), (200_000, C)]
    events = events_at(rows, range(len(rows)))
    with pytest.raises(PassedLimit, match="max_matches_per_event"):
        matcher.run(events, visits_after(0, [Visit(0, tuple(rows), FOREVER, closes=True)]))
    assert len(matcher.graph.before) < 4_000_000
