"""Random patterns in SQL and random events, for near misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st
from tests.kernel.strategies import patterns as shapes

from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import Pattern, Skip, Stage
from cepheid.plan.stages.build import check_pattern

CONDITIONS = [
    "kind = 'a'",
    "kind = 'b'",
    "kind IN ('a', 'b')",
    "v > 1",
    "v BETWEEN 1 AND 2",
    "kind <> 'c' AND v > 0",
    "v >= s0.v",
    "v < first(s0.v) + 2 AND kind <> 'd'",
    "v >= 0 AND (kind = 'c' OR v = 2)",
]
START = datetime(2026, 1, 1, tzinfo=UTC)
Row = tuple[str, int, str, int | None]
"""Key, microseconds after START, kind and value."""

rows = st.lists(
    st.tuples(st.sampled_from("xxy"), st.integers(1, 3), st.sampled_from("aabbcd"), st.none() | st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """Valid patterns with conditions on `kind` and `v`, of all shapes."""
    shape = draw(shapes())
    pattern = replace(shape, stages=tuple(draw(conditioned(stage)) for stage in shape.stages))
    if pattern.without is not None:
        pattern = replace(pattern, without=replace(pattern.without, condition=Condition("kind = 'd'")))
    pattern = replace(pattern, skip_strategy=replace(pattern.skip_strategy, error_on_miss=False))
    assume(not check_pattern(pattern))
    return pattern


@st.composite
def conditioned(draw: st.DrawFn, stage: Stage) -> Stage:
    """The stage with conditions, and those within a group."""
    if stage.until is not None:
        stage = replace(stage, until=Condition("kind = 'd'"))
    if stage.group:
        return replace(stage, group=tuple(draw(conditioned(inner)) for inner in stage.group))
    texts = draw(st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2))
    alternative = len(texts) > 1 and draw(st.integers(0, 4)) == 0
    return replace(
        stage, conditions=tuple(Condition(text, alternative=alternative and n > 0) for n, text in enumerate(texts))
    )


def events_of(rows: Sequence[Row], *, tied: bool = False) -> pa.Table:
    """The events, in the order of their times: each comes some microseconds after the one before; if they are `tied`,
    one less, so that some times agree.
    """
    at, times = START, []
    for _, after, _, _ in rows:
        at += timedelta(microseconds=after - tied)
        times.append(at)
    return pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "kind": pa.array([row[2] for row in rows], pa.string()),
            "v": pa.array([row[3] for row in rows], pa.int64()),
        }
    )


def without_skip(pattern: Pattern) -> Pattern:
    return pattern.skip(Skip.no_skip())
