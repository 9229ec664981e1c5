"""Lengths and counts that parameters give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from cepheid import Pattern, PatternError, detect, pattern_from_text, pattern_to_yaml
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.explain import explain_plan
from cepheid.plan.stages.plan import Plan

GIVE = "Give it: with_parameters({0}=…), --parameter {0}=… on the command line, or a value in the pattern file."
POSSIBLE = "write times(n) with n at least 1, or times(a, b) with 0 <= a <= b and b at least 1"
NOTHING = "no condition, measure, length or count"
ALL = (
    Pattern.begin("a")
    .where("x = 1")
    .begin_without("old", within="$before")
    .followed_by("b")
    .where("x = 2")
    .times("$least", "$most", window="$between")
    .followed_by("c")
    .where("x = 3")
    .within_previous("$soon")
    .within("$whole")
    .max_gap("$gap")
)
VALUES: dict[str, Any] = {"before": "1 second", "least": 2, "most": 3, "between": "3 minutes", "soon": "2 minutes"}
VALUES |= {"whole": "1 hour", "gap": "10 minutes"}
PLAIN = (
    Pattern.begin("a")
    .where("x = 1")
    .begin_without("old", within="1 second")
    .followed_by("b")
    .where("x = 2")
    .times(2, 3, window="3 minutes")
    .followed_by("c")
    .where("x = 3")
    .within_previous("2 minutes")
    .within("1 hour")
    .max_gap("10 minutes")
)
START = datetime(2026, 3, 2, tzinfo=UTC)
EVENTS = pa.table(
    {
        "at": [START + timedelta(minutes=minute) for minute in range(0, 20, 2)],
        "x": [1, 2, 2, 3, 1, 2, 3, 2, 2, 3],
    }
)


def found(pattern: Pattern) -> list[Any]:
    return detect(EVENTS, pattern, time="at", measures={"start": "a.at", "n": "count(b)"}).to_pylist()


@pytest.mark.parametrize("least", [0, 1, 2])
@pytest.mark.parametrize("window", ["5 minutes", "7 minutes", "1 hour"])
def test_a_value_is_as_if_it_were_written(least: int, window: str) -> None:
    """A pattern with the value of a parameter finds what a pattern with the value itself finds."""
    start = Pattern.begin("a").where("x = 1").followed_by("b").where("x = 2")
    given = start.times("$n", "$m").followed_by("c").where("x = 3").within("$w").with_parameters(n=least, w=window, m=2)
    written = start.times(least, 2).followed_by("c").where("x = 3").within(window)
    assert found(given) == found(written)


def test_all_lengths_and_counts() -> None:
    """Every length and count may be a parameter; a new value replaces the one before."""
    given = ALL.with_parameters(**VALUES)
    assert found(given) == found(PLAIN) != []
    for change in ({"least": 3}, {"between": "1 s"}, {"whole": "4 minutes"}, {"gap": "1 s"}):
        assert found(given.with_parameters(**change)) == [], change


def test_they_are_shown_as_they_are_written(plan: Callable[..., Plan]) -> None:
    """Files, `repr` and explain have the parameter, not its value; a file is read as the same pattern."""
    given = ALL.with_parameters(**VALUES)
    text = pattern_to_yaml(given)
    assert pattern_from_text(text) == given
    assert "within: $whole\nmax_gap: $gap\n" in text
    assert "count:\n        - $least\n        - $most\n      window: $between\n" in text
    assert '.times("$least", "$most", window="$between")' in repr(given)
    shown = explain_plan(plan(Pattern.begin("one").times_or_more("$n").within("$w").with_parameters(n=2, w="1 day")))
    assert "one: begins with, $n events or more\n" in shown
    assert "Within: $w, from the first event to the last\n" in shown
    assert "Parameter: $n = 2\nParameter: $w = '1 day'\n" in shown


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        (
            {"n": 1},
            [
                f"no parameter is named 'w' (within)\n{GIVE.format('w')} Known here: n",
            ],
        ),
        (
            {"n": "2", "w": 5},
            [
                "parameter 'w': a length of time is text such as '12 hours', or a timedelta; got int: 5 (within)",
                "parameter 'n': a number of events is a whole number, got '2' (stage 'a')",
            ],
        ),
        (
            {"n": 0, "w": "1 day", "spare": 1},
            [
                f"times(0, 0) is not possible: {POSSIBLE} (stage 'a')",
                f"the parameter 'spare' is not used: {NOTHING} has $spare (parameter 'spare')\nKnown here: n, w",
            ],
        ),
    ],
)
def test_values_that_do_not_fit(values: dict[str, Any], problems: list[str]) -> None:
    """Missing, unused and wrong values are reported together, with the place of the length or count."""
    pattern = Pattern.begin("a").times("$n").within("$w").with_parameters(**values)
    assert list(map(str, check_pattern(pattern))) == problems
    with pytest.raises(PatternError):
        found(pattern)


def test_a_parameter_and_another_length() -> None:
    """Of a parameter and another length it is not known which is shorter."""
    with pytest.raises(PatternError) as error:
        Pattern.begin("a").within("1 day").within("$w")
    assert str(error.value) == (
        "within: two lengths are given, 1 day and $w (within)\n"
        "Which of them is shorter depends on the parameter: leave one out."
    )
