"""Warnings of conditions that are true for no event, and none of conditions that may be true."""

from __future__ import annotations

import re
from itertools import product

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import CepheidWarning, IntervalPattern, OccurrencePattern, Pattern, detect
from cepheid.intervals import interval_pattern
from cepheid.plan.stages.build import odd_in

A, UP = Pattern.begin("a"), Pattern.begin("up")
NULL = "compares with NULL, and nothing is known to equal NULL. Write IS NULL"
FIRST = (
    "needs an event that the stage has already taken, and before its first it has none. Take the first one in a stage "
    "before it, or write count(up) = 0 OR …"
)


@pytest.mark.parametrize(
    ("pattern", "warning"),
    [
        (A.where("price = NULL"), f"stage 'a': the condition is never true: price = NULL {NULL}"),
        (A.where("x IS NOT NULL AND x <> NULL"), f"stage 'a': the condition is never true: x <> NULL {NULL}"),
        (A.where("x NOT IN (1, NULL)"), f"stage 'a': the condition is never true: x NOT IN (1, NULL) {NULL}"),
        (A.where("x BETWEEN NULL AND 3"), f"stage 'a': the condition is never true: x BETWEEN NULL AND 3 {NULL}"),
        (A.where("x = 3").where("y = NULL"), f"stage 'a': the condition is never true: y = NULL {NULL}"),
        (A.where("y = NULL").or_where("x = 3"), f"stage 'a': the condition is never true: y = NULL {NULL}"),
        (A.one_or_more().until("x = NULL"), f"stage 'a', until: the condition is never true: x = NULL {NULL}"),
        (
            A.begin_without("n", within="1 hour", where="kind = NULL"),
            f"begin_without 'n': the condition is never true: kind = NULL {NULL}",
        ),
        (A.where("false"), "stage 'a': the condition is never true: it is false, or NULL, for every event"),
        (UP.where("price > up.price"), f"stage 'up': the condition is never true: price > up.price {FIRST}"),
        (
            UP.where("price > 1.1 * first(up.price)").one_or_more(),
            f"stage 'up': the condition is never true: 1.1 * first(up.price) {FIRST}",
        ),
        (
            A.next("up").where("price > avg(up.price) AND price > a.price").one_or_more(),
            f"stage 'up': the condition is never true: price > avg(up.price) {FIRST}",
        ),
        (UP.where("count(up) > 2"), f"stage 'up': the condition is never true: it {FIRST}"),
        (UP.where("up.price IS NOT NULL"), f"stage 'up': the condition is never true: it {FIRST}"),
    ],
)
def test_a_condition_that_is_never_true_is_warned_of(pattern: Pattern, warning: str) -> None:
    assert odd_in(pattern) == (warning,)


@pytest.mark.parametrize(
    "pattern",
    [
        A.where("x IS NULL"),
        A.where("x <=> NULL"),
        A.where("x IN (1, NULL)"),
        A.where("coalesce(x, NULL, 3) = 3"),
        A.where("CASE WHEN x = NULL THEN false ELSE true END"),
        A.where("x > $limit"),
        UP.where("count(up) = 0 OR price > up.price").one_or_more(),
        UP.where("price > up.price").or_where("count(up) = 0").one_or_more(),
        UP.where("price > coalesce(max(up.price), 0)").one_or_more(),
        UP.where("NOT (count(up) > 2)").one_or_more(),
        A.next("up").where("price > a.price").one_or_more().until("price < up.price"),
    ],
)
def test_a_condition_that_may_be_true_is_not_warned_of(pattern: Pattern) -> None:
    assert odd_in(pattern) == ()


def test_detect_warns_once() -> None:
    events = pd.DataFrame({"at": pd.to_datetime(["2024-01-01", "2024-01-02"]), "price": [1.0, 2.0]})
    with pytest.warns(CepheidWarning, match="stage 'up': the condition is never true") as caught:
        found = detect(events, UP.where("price > up.price").one_or_more(), time="at")
    assert len(found) == 0
    assert sum("never true" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize(
    ("pattern", "warning"),
    [
        (
            OccurrencePattern.of("dear = x[price = NULL]\ndear ; y").taxonomy("kind"),
            f"type 'dear': the condition is never true: price = NULL {NULL}",
        ),
        (
            OccurrencePattern.of("(?a:x ; ?b:y)[a.price < b.price AND b.price <> NULL]").taxonomy("kind"),
            f"condition: the condition is never true: b.price <> NULL {NULL}",
        ),
        (
            interval_pattern("EVENT PAL(x a, y b) RELATE a before b WHERE a.price = NULL").taxonomy("kind"),
            f"where: the condition is never true: a.price = NULL {NULL}",
        ),
    ],
)
def test_other_kinds_of_pattern_warn_too(pattern: OccurrencePattern | IntervalPattern, warning: str) -> None:
    at = pd.to_datetime(["2024-01-01", "2024-01-02"])
    events = pd.DataFrame({"at": at, "until": at, "kind": ["x", "y"], "price": [1.0, 2.0]})
    time = ("at", "until") if isinstance(pattern, IntervalPattern) else "at"
    with pytest.warns(CepheidWarning, match=re.escape(warning)):
        detect(events, pattern, time=time)


EVENTS = pd.DataFrame(
    {
        "at": pd.date_range("2024-01-01", periods=27),
        **dict(zip("xyz", zip(*product([None, 0, 1], repeat=3), strict=True), strict=True)),
    }
).astype(dict.fromkeys("xyz", "Int64"))
"""Each combination of three values."""

comparisons = st.sampled_from(
    [
        "x = 1",
        "y <= 0",
        "z <> NULL",
        "x IN (y, NULL)",
        "x BETWEEN NULL AND y",
        "z IS NULL",
        "y = NULL",
        "x <=> y",
        "TRUE",
    ]
)
conditions = st.recursive(
    comparisons,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["AND", "OR"]), inner).map(lambda one: f"({' '.join(one)})")
        | inner.map(lambda one: f"(NOT {one})")
        | inner.map(lambda one: f"({one} IS NOT NULL)")
        | st.tuples(inner, inner).map(lambda one: f"coalesce({one[0]}, {one[1]})")
    ),
    max_leaves=6,
)


@given(conditions)
@pytest.mark.filterwarnings("ignore::cepheid.CepheidWarning")
def test_no_event_fits_a_condition_that_is_warned_of(condition: str) -> None:
    """A warning is never wrong."""
    pattern = A.where(condition)
    if odd_in(pattern):
        assert len(detect(EVENTS, pattern, time="at")) == 0
