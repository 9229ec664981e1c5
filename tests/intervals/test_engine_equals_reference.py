"""The engine emits what the reference emits, for any pattern, events, order, delay and switches."""

from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.intervals.running import DELAYS, ENGINE, as_intervals, batch_of, log_of, same_steps
from tests.intervals.strategies import SECOND, forbidding_patterns, patterns, tables
from tests.searching import share

from cepheid.compile.intervals.compiled import compile_intervals
from cepheid.errors import PatternError
from cepheid.events.batch import Schema
from cepheid.kernel.consistency_reference import Arrival, emission_log
from cepheid.kernel.intervals.reference import by_acceptance
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.intervals.pattern import IntervalPattern
from cepheid.plan.intervals.build import build_interval_plan
from cepheid.plan.intervals.plan import IntervalPlan


def planned(pattern: IntervalPattern, events: pa.Table) -> IntervalPlan:
    """The plan of the pattern; a pattern that contradicts itself is rejected as an example."""
    plan = None
    with suppress(PatternError):
        typed = pattern.taxonomy("type")
        plan = build_interval_plan(typed, Schema(events.schema, (), "start", end="end"), ENGINE)
    assume(plan is not None)
    assert plan is not None
    return plan


@pytest.mark.slow
@share(25)
@given(
    pattern=patterns() | forbidding_patterns(),
    events=tables(),
    delay=st.sampled_from(DELAYS),
    lateness=st.sampled_from(End),
    switches=st.dictionaries(st.integers(0, 8), st.sampled_from(Consistency), max_size=2),
    cuts=st.lists(st.integers(1, 8), max_size=2),
    restoring=st.booleans(),
    buffer=st.sampled_from([None, None, 0, 1, 2, 5]),
)
def test_logs_are_those_of_the_definition(  # noqa: PLR0917 - drawn by Hypothesis
    pattern: IntervalPattern,
    events: pa.Table,
    delay: int | None,
    lateness: End,
    switches: dict[int, Consistency],
    cuts: list[int],
    restoring: bool,  # noqa: FBT001
    buffer: int | None,
) -> None:
    """Each step of the log is the same, also when the matcher forgets or is restored in between, and if lateness is a
    number of events.
    """
    plan = planned(pattern, events)
    most = None if delay is None or buffer is not None else delay * SECOND
    compiled = compile_intervals(plan, delay=most, lateness=lateness, buffer=buffer)
    got = log_of(
        compiled,
        batch_of(plan, events),
        consistency=pattern.consistency,
        switches=switches,
        cuts=cuts,
        restoring=restoring,
    )
    known = as_intervals(plan, events)
    expected = list(
        emission_log(
            [Arrival(event.start, event.end) for event in known],
            by_acceptance(plan, known, lateness),
            delay=float("inf") if delay is None else delay * SECOND,
            lateness=lateness,
            consistency=pattern.consistency,
            switches=switches,
            buffer=buffer,
        )
    )
    assert same_steps(got, expected), f"{pattern}\n{events.to_pylist()}\ngot {got}\nexpected {expected}"
