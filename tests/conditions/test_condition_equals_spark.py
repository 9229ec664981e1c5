"""A stage takes an event exactly where Spark evaluates its whole condition, not split, to true, and fails exactly where
Spark fails.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conditions.pairs import (
    FAILED,
    Outcomes,
    detected,
    fails_on_spark,
    on_spark,
    random_events,
    shown,
    side_by_side,
)
from tests.conditions.random_conditions import random_condition

from cepheid.errors import PatternError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONDITIONS = 40
PAIRS = 24
FAILURES_CHECKED = 2
"""Pairs for each condition on which Spark is asked whether it fails too: each costs a query."""


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    # With it Spark evaluates `10 / n` before `n != 0 AND 10 / n > 1` if another column of the query contains it, too.
    session.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    return session


def conditions_with_outcomes(source: random.Random, events: pa.Table) -> Iterator[tuple[str, Outcomes]]:
    """Random conditions that are available in process, with their outcomes."""
    count = 0
    while count < CONDITIONS:
        condition = random_condition(source)
        try:
            outcomes = detected(events, condition)
        except PatternError:
            continue
        count += 1
        yield condition, outcomes


def differences(session: SparkSession, events: pa.Table, found: dict[str, Outcomes]) -> list[str]:
    """The differences between the two, one line each."""
    frame, on_first = side_by_side(session, events), side_by_side(session, events, second=0)
    failed = {c: [pair for pair, outcome in enumerate(outcomes) if outcome is FAILED] for c, outcomes in found.items()}
    # A part about the current event alone is computed for every event, so it may fail on the first one too.
    differing = [
        f"{condition}: fails, not on Spark: {shown(events, pair)}"
        for condition, pairs in failed.items()
        for pair in pairs[:FAILURES_CHECKED]
        if not fails_on_spark([frame, on_first], condition, pair)
    ]
    for condition, theirs in _spark_outcomes(frame, failed):
        differing += [
            f"{condition}: {ours}, on Spark {outcome}: {shown(events, pair)}"
            for pair, (ours, outcome) in enumerate(zip(found[condition], theirs, strict=True))
            if ours != outcome
        ]
    return differing


def _spark_outcomes(frame: object, failed: dict[str, list[int]]) -> Iterator[tuple[str, Outcomes]]:
    """Outcomes on the pairs that did not fail in process. If a query over all conditions fails, the conditions are
    halved until each failing one is found.
    """
    from pyspark.errors import PySparkException

    conditions = list(failed)
    try:
        outcomes = on_spark(frame, conditions, [failed[c] for c in conditions])  # type: ignore[arg-type]
    except PySparkException as error:
        if len(conditions) == 1:
            outcomes = [[str(error).split("\n")[0]] * PAIRS]
        else:
            half = len(conditions) // 2
            for part in (conditions[:half], conditions[half:]):
                yield from _spark_outcomes(frame, {c: failed[c] for c in part})
            return
    yield from zip(conditions, outcomes, strict=True)


# A seed, not the conditions themselves: one query has far too many conditions to be shrunk.
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_condition_equals_spark(session: SparkSession, seed: int) -> None:
    """Random conditions on random pairs of events give the same matches and the same failures as Spark's select over
    both events.
    """
    source = random.Random(seed)
    events = random_events(source, PAIRS)
    assert differences(session, events, dict(conditions_with_outcomes(source, events))) == []
