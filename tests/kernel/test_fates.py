"""The fates of starts, at the border of the kernel: observing changes nothing, and each start has one fate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given, note
from hypothesis import strategies as st
from tests.kernel.running import Row, Visit, branches_are_counted_twice, run_compiled
from tests.kernel.running_python import rows_batch
from tests.kernel.strategies import event_rows, plans
from tests.searching import share

from cepheid import Pattern
from cepheid.compile.stages.compiled import compile_plan
from cepheid.errors import SkipError
from cepheid.events.batch import Schema
from cepheid.kernel.arrays import FOREVER, Visits
from cepheid.kernel.failures import ConditionFailed
from cepheid.kernel.stages.emitted import Emitted
from cepheid.kernel.stages.layout import MATCHED, NEGATED, TIMED_OUT
from cepheid.kernel.stages.observed.fates import Fate
from cepheid.kernel.stages.observed.kernel import ObservedKernel, TracedKernel
from cepheid.kernel.stages.observed.tally import Tally
from cepheid.kernel.stages.python_kernel import PythonKernel
from cepheid.lang.expression import Name
from cepheid.plan.lifted import Lifted, PlannedCondition
from cepheid.plan.limits import Limits
from cepheid.plan.stages.plan import Plan

KEYS = st.lists(event_rows(8), min_size=1, max_size=3)
BATCHES = st.lists(
    st.lists(st.builds(Visit, st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=4), max_size=4
)
UNTILS = st.none() | st.integers(0, 20)
LIMITS = st.sampled_from([Limits(), Limits(), Limits(3, 2, "drop")])


@share(50)
@given(plans(), KEYS, UNTILS, LIMITS)
def test_each_start_has_one_fate(plan: Plan, keys: list[list[Row]], until: int | None, limits: Limits) -> None:
    """An observed kernel and a traced one emit what others emit. Each first event of a result is a start; the starts of
    matches are matched, and each other start has one fate, which is of a kind that the pattern and its results allow.
    """
    plan = replace(plan, limits=limits)
    compiled = compile_plan(plan)
    observed = ObservedKernel(compiled)
    plain = PythonKernel(compiled)
    last = max((row[0] for rows in keys for row in rows), default=0)
    try:
        expected = _run(plain, plan, keys, FOREVER if until is None else last + until)
    except (ConditionFailed, SkipError):
        return
    emitted = _run(observed, plan, keys, FOREVER if until is None else last + until)
    traced = _run(TracedKernel(compiled), plan, keys, FOREVER if until is None else last + until)
    assert _values(emitted) == _values(traced) == _values(expected)
    first = {outcome: _first_events(emitted, outcome) for outcome in set(emitted.outcome.tolist())}
    starts = {start.position: start.end for start in observed.starts}
    assert len(starts) == len(observed.starts)
    assert {position for position, end in starts.items() if end is None} == first.get(MATCHED, set())
    assert set().union(*first.values()) <= set(starts)
    fates = {position: end.fate for position, end in starts.items() if end is not None}
    timed_out = {position for position, fate in fates.items() if fate in (Fate.OUT_OF_TIME, Fate.GAP)}
    late = first.get(TIMED_OUT, set())
    assert {position for position in timed_out if not _bounds_edges(plan)} <= late
    forbidden = {position for position, fate in fates.items() if fate is Fate.FORBIDDEN}
    assert forbidden <= set().union(*(first[outcome] for outcome in first if outcome >= NEGATED))
    assert Fate.OVER_LIMIT not in fates.values() or limits.on_limit == "drop"


@given(plans(scripted=False), KEYS, BATCHES, UNTILS, LIMITS)
def test_compiled(
    plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], until: int | None, limits: Limits
) -> None:
    """The compiled kernel counts the starts that are observed, for any visits."""
    _assert_equal(replace(plan, limits=limits), keys, batches, until)


@given(plans(), KEYS, BATCHES, UNTILS)
def test_compiled_with_scripts(
    plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], until: int | None
) -> None:
    """The same for patterns with conditions across events, unless one of them fails."""
    _assert_equal(plan, keys, batches, until)


def test_a_deadline_after_the_events_of_its_time() -> None:
    """A partial match whose gap is over when an event opens it ends after those that the event ends."""
    pattern = Pattern.begin("a").times(1, 3, window="1 microsecond").allow_combinations().next("b").next("c")
    always = PlannedCondition(None, None)
    plan = Plan(
        pattern=pattern,
        schema=Schema(pa.schema([]), (), "at"),
        bits=(Lifted("x", Name(("x",), ((0, 1),)), pa.bool_()),),
        values=(),
        conditions=(always, PlannedCondition(0, None), always),
        measures=None,
        columns=(),
        outputs=("matches",),
    )
    rows: list[Row] = [(time, 0, ()) for time in (0, 0, 0, 1)]
    expected, tallies = observed_tally(plan, [rows], FOREVER), list[Tally]()
    assert {stop.fate: count for stop, count in expected.stopped.items()} == {Fate.GAP: 3, Fate.STILL_OPEN: 1}
    assert run_compiled(plan, [rows], [], None, tallies=tallies) != "failed"
    assert tallies == [expected]


def _assert_equal(plan: Plan, keys: list[list[Row]], batches: list[list[Visit]], until: int | None) -> None:
    known = (1 << len(plan.bits)) - 1
    keys = [[(time, mask & known, values) for time, mask, values in rows] for rows in keys]
    batches = [[visit for visit in batch if visit.key < len(keys)] for batch in batches]
    last = max((row[0] for rows in keys for row in rows), default=0)
    end = None if until is None else last + until
    if plan.limits.on_limit == "drop" and branches_are_counted_twice(plan, keys):
        return
    try:
        expected = observed_tally(plan, keys, FOREVER if end is None else end)
    except (ConditionFailed, SkipError):
        return
    tallies: list[Tally] = []
    if run_compiled(plan, keys, batches, end, tallies=tallies) == "failed":
        return
    note(f"expected {expected}\n     got {tallies[0]}")
    assert tallies == [expected]


def observed_tally(plan: Plan, keys: Sequence[Sequence[Row]], until: int) -> Tally:
    """The counts of the reference."""
    observed = ObservedKernel(compile_plan(plan))
    _run(observed, plan, keys, until)
    return observed.tally()


def _values(emitted: Emitted) -> list[list[int]]:
    return [values.tolist() for values in vars(emitted).values()]


def _bounds_edges(plan: Plan) -> bool:
    """Whether an edge may have a window, which ends partial matches without a timeout."""
    return any(edge.window is not None for state in compile_plan(plan).automaton.states for edge in state.edges)


def _run(kernel: PythonKernel, plan: Plan, keys: Sequence[Sequence[Row]], until: int) -> Emitted:
    rows, ends = [row for key in keys for row in key], np.cumsum([len(key) for key in keys])
    count = len(keys)
    visits = Visits(np.zeros(count, np.int32), ends, np.full(count, until), np.ones(count, np.bool_))
    return kernel.run(rows_batch(plan, rows, range(len(rows))), visits)


def _first_events(emitted: Emitted, outcome: int) -> set[int]:
    begins = np.concatenate([[0], emitted.end[:-1]]) if len(emitted.end) else emitted.end
    return set(emitted.event[begins[emitted.outcome == outcome]].tolist())
