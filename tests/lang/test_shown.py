"""What `repr` shows of a pattern makes the same pattern."""

from __future__ import annotations

import datetime as dt
import zoneinfo  # noqa: F401 - some calls use it
from decimal import Decimal  # noqa: F401 - as above

import pytest
from hypothesis import given
from tests.lang.strategies import patterns

from cepheid import IntervalPattern, OccurrencePattern, Pattern, Policy, Skip, event, semantic
from cepheid.intervals import interval_pattern

NAMES = {**globals(), "datetime": dt}
"""What the calls use."""
GROUP = Pattern.begin("x").where("kind = 'x'").followed_by("y")
PATTERNS = [
    Pattern.begin("a"),
    Pattern.begin("late").where("delay > 15").next("later").where("delay > late.delay").within("2 days"),
    Pattern.begin("a", name="ring", version="1.10").where('kind = "a"').or_where("kind = 'b'").subtype("payment"),
    Pattern.begin("a").one_or_more().greedy().until("price = 0").next("b").one_or_more(window="3 minutes").optional(),
    Pattern.begin("a").times(3).consecutive().next("b").times(2, 5).allow_combinations().next("c").times_or_more(2),
    Pattern.begin("a").times(0, 2).longest().not_next("b").not_followed_by("c").within_previous("1 hour"),
    Pattern.begin(GROUP).times(2, window="1 day").followed_by_any(GROUP).max_gap("90 seconds").skip(Skip.to_next()),
    Pattern.begin("a").begin_without("before", within="1 hour", where="kind = 'b'").skip(Skip.past_last_event()),
    Pattern.begin("a").skip(Skip.to_last("a", error_on_miss=True)).taxonomy("kind", {"car": ["thing", "toy"], "x": []}),
    Pattern.begin("a").where("price > $least").with_parameters(least=3, who='an "odd" one', city="x", free=True),
    OccurrencePattern.of(event("a") >> event("b") - event("c")),
    OccurrencePattern.of("dear = ?e:item[price > 3]\n(dear ; ?b:`odd name`)_10min[e.price > b.price]").named("pairs"),
    OccurrencePattern.of("a & b").policy(Policy.CHRONICLE).taxonomy("kind", {"car": "thing"}).with_parameters(x=1.5),
    IntervalPattern.pal(a="door", b="light").relate("a", "overlap", "b").where("a.room = b.room").within("1 hour"),
    interval_pattern("EVENT PAL(A a, B b) RELATE a overlap b").taxonomy("kind").named("u").with_parameters(x=1),
]


@pytest.mark.parametrize("pattern", PATTERNS, ids=range(len(PATTERNS)))
def test_the_calls_that_repr_shows_make_the_same_pattern(pattern: object) -> None:
    assert eval(repr(pattern), NAMES) == pattern  # noqa: S307 - the test's own text


@given(patterns())
def test_the_calls_that_repr_shows_make_any_pattern(pattern: Pattern) -> None:
    assert eval(repr(pattern), NAMES) == pattern  # noqa: S307 - the test's own text


def test_a_short_pattern_is_one_line_and_a_long_one_a_line_for_each_stage() -> None:
    assert repr(Pattern.begin("up").where("price > 3").next("down")) == (
        'Pattern.begin("up").where("price > 3").next("down")'
    )
    assert (
        repr(PATTERNS[6])
        == """(
    Pattern.begin(Pattern.begin("x").where("kind = 'x'").followed_by("y")).times(2, window="1 day")
    .followed_by_any(Pattern.begin("x").where("kind = 'x'").followed_by("y"))
    .max_gap("1 minute 30 seconds")
    .skip(Skip.to_next())
)"""
    )


def test_functions_are_shown_by_name_and_semantic_filters_and_dates_as_they_are_written() -> None:
    def dear(item: object) -> bool:
        return item is not None

    assert repr(Pattern.begin("a").where(dear)) == 'Pattern.begin("a").where(dear)'
    assert repr(Pattern.begin("a").where(semantic("Book(?a)"))) == 'Pattern.begin("a").where(semantic("Book(?a)"))'
    dated = Pattern.begin("a").with_parameters(day=dt.date(2024, 1, 2))
    assert repr(dated) == 'Pattern.begin("a").with_parameters(day=datetime.date(2024, 1, 2))'
