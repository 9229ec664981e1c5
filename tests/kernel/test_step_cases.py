"""Single cases for the compiled kernel that random patterns rarely produce."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.kernel.running import run_compiled, run_reference

from cepheid import Pattern
from cepheid.compile.stages.compiled import compile_plan
from cepheid.events.batch import Schema
from cepheid.kernel.arrays import FOREVER, Events, Visits
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.kernel import CompiledKernel
from cepheid.plan.lifted import PlannedCondition
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan

HOUR = 3_600_000_000
A = Pattern.begin("a")


def plan_of(pattern: Pattern) -> Plan:
    """A plan whose stages, and until conditions, each have a bit; they are true for the events with that bit."""
    size = len(pattern.leaves) + len(pattern.loops_until)
    return Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "t"),
        bits=(),
        values=(),
        conditions=tuple(PlannedCondition(bit, None) for bit in range(size)),
        measures=None,
        columns=(),
        outputs=("matches",),
    )


def emitted(plan: Plan, masks: list[list[int]], *, closes: bool) -> Emitted:
    """The output for some keys with one event per microsecond each, with the smallest possible initial capacity."""
    lengths = [len(key) for key in masks]
    size, keys = sum(lengths), len(masks)
    events = Events(
        time=np.arange(size, dtype=np.int64),
        mask=np.array([mask for key in masks for mask in key], np.int64),
        values=np.zeros((0, size), np.int64),
        missing=np.zeros((0, size), np.bool_),
    )
    until = np.full(keys, FOREVER if closes else 0)
    visits = Visits(np.arange(keys, dtype=np.int32), np.cumsum(lengths), until, np.full(keys, closes))
    return CompiledKernel(compile_plan(plan).tables, capacity=1).run(events, visits)


def test_room_where_nothing_is_open_for_the_key() -> None:
    """Matches of single events have room even if another key has an open partial match."""
    plan = plan_of(A.optional().followed_by("b"))
    assert len(emitted(plan, [[1], [2] * 1000], closes=False).end) == 1000


def test_room_for_the_first_event() -> None:
    """The start state may become more partial matches than the initial capacity."""
    plan = plan_of(Pattern.begin(A.optional().next("b").optional()).times(0, 5).next("c"))
    expected = run_reference(plan, [[(0, 7, ()), (1, 4, ())]])
    assert run_compiled(plan, [[(0, 7, ()), (1, 4, ())]], capacity=1) == expected


def loop_after(pattern: Pattern) -> Pattern:
    return pattern.next("b").one_or_more().consecutive().optional().longest()


OPTIONAL = A.next("o").optional()
TURNS = A.next(Pattern.begin("g").next("h").optional()).one_or_more().consecutive().until("z")


@pytest.mark.parametrize(
    ("pattern", "masks"),
    [
        (loop_after(OPTIONAL).within_previous("1 microsecond"), [7, 7]),
        (loop_after(OPTIONAL), [1, 8]),
        (loop_after(TURNS), [1, 2, 16]),
    ],
)
def test_what_breaks_a_loop_before_it_begins(pattern: Pattern, masks: list[int]) -> None:
    """A loop that needs no event is broken before its first event as in the reference: by its window, but not by the
    `until` of an earlier loop.
    """
    plan = plan_of(pattern)
    rows = [(time, mask, ()) for time, mask in enumerate(masks)]
    assert run_compiled(plan, [rows]) == run_reference(plan, [rows])


@pytest.mark.parametrize("masks", [[3, 1], [1, 1], [1, 3]])
def test_a_stop_in_the_start_state(masks: list[int]) -> None:
    """If everything before a NOT is optional, the forbidden event starts nothing, as in the reference."""
    plan = plan_of(Pattern.begin(A.optional()).not_next("n"))
    rows = [(time, mask, ()) for time, mask in enumerate(masks)]
    assert run_compiled(plan, [rows]) == run_reference(plan, [rows])


@pytest.mark.parametrize(("most", "at"), [(5, HOUR), (4, HOUR), (3, 5)])
def test_a_match_is_certain_when_a_limit_drops_its_last_continuation(most: int, at: int) -> None:
    """With longest on a group, a match is certain when a limit drops the last partial match that may continue it, not
    before.
    """
    group = Pattern.begin("b").followed_by_any("c").followed_by_any("d")
    plan = plan_of(A.next(group).one_or_more().longest().within("1 hour"))
    few = replace(plan, limits=Limits(max_partial_matches=most, on_limit="drop"))
    # a b c d b c: two of the five partial matches may continue the first four events, and are the oldest.
    found = emitted(few, [[1, 2, 4, 8, 2, 4]], closes=True)
    assert (found.end.tolist(), found.detected_at.tolist()) == ([4], [at])
