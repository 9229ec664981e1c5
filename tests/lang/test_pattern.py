"""The fluent interface: what each call changes, what it does not change, and the message of every refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from cepheid.errors import CepheidWarning, PatternError
from cepheid.lang.documents import pattern_from_text
from cepheid.lang.duration import format_duration, parse_duration
from cepheid.lang.intervals.pattern import interval_pattern
from cepheid.lang.occurrences.expression import event
from cepheid.lang.occurrences.pattern import OccurrencePattern
from cepheid.lang.stages.conditions import Condition
from cepheid.lang.stages.pattern import Contiguity, Pattern, Quantifier, Skip, SkipTo, Stage, Times

ANY: Any = Pattern.begin("a")
"""Typed so that wrong arguments can be given."""
HOUR = timedelta(hours=1)


def test_begin() -> None:
    """A pattern begins with one stage that takes one event, without conditions, window or skip strategy."""
    assert Pattern((Stage("a", Contiguity.STRICT, (), Quantifier()),), skip_strategy=Skip(), name="pattern") == ANY
    assert Pattern.begin("a", name="late").name == "late"
    assert Pattern.begin("a").named("late") == Pattern.begin("a", name="late")


@pytest.mark.parametrize(
    ("call", "contiguity"),
    [
        ("next", Contiguity.STRICT),
        ("followed_by", Contiguity.RELAXED),
        ("followed_by_any", Contiguity.RELAXED_ANY),
        ("not_next", Contiguity.NOT_NEXT),
        ("not_followed_by", Contiguity.NOT_FOLLOWED_BY),
    ],
)
def test_stages(call: str, contiguity: Contiguity) -> None:
    """Each call that adds a stage adds it at the end, with the call's contiguity."""
    assert getattr(ANY, call)("b").stages == (Stage("a"), Stage("b", contiguity))
    assert contiguity.negated == call.startswith("not")


def test_groups() -> None:
    """A pattern used as a stage is a group, with the contiguity of the call and a quantifier of its own."""
    inner = Pattern.begin("b", name="not kept").where("x").followed_by("c")
    pattern = Pattern.begin("a").followed_by(inner).one_or_more().until("y").not_next("d")
    group = Stage("", Contiguity.RELAXED, (), Quantifier(Times(1, None)), Condition("y"), group=inner.stages)
    assert pattern.stages == (Stage("a"), group, Stage("d", Contiguity.NOT_NEXT))
    assert [leaf.name for leaf in pattern.leaves] == ["a", "b", "c", "d"]
    assert [part.label for part in group.parts] == ["group (b, c)", "stage 'b'", "stage 'c'"]
    assert pattern.loops_until == (group,)
    assert Pattern.begin(inner).stages == (Stage("", group=inner.stages),)


def test_conditions() -> None:
    """Conditions are stored in order, as they were written; `or_where` is ORed with all earlier ones."""
    pattern = Pattern.begin("a").where(" x > 1").where("y").or_where("z").next("b")
    assert pattern.stages[0].conditions == (Condition(" x > 1"), Condition("y"), Condition("z", alternative=True))
    assert pattern.stages[1].conditions == ()


@pytest.mark.parametrize(
    ("pattern", "expected", "minimum", "maximum", "loops"),
    [
        (ANY, Quantifier(), 1, 1, False),
        (ANY.one_or_more(), Quantifier(Times(1, None)), 1, None, True),
        (ANY.times(3), Quantifier(Times(3, 3)), 3, 3, True),
        (ANY.times(2, 4), Quantifier(Times(2, 4)), 2, 4, True),
        (ANY.times(0, 4), Quantifier(Times(1, 4), optional=True), 1, 4, True),
        (ANY.times(1), Quantifier(Times(1, 1)), 1, 1, False),
        (ANY.optional(), Quantifier(optional=True), 1, 1, False),
        (ANY.one_or_more().consecutive(), Quantifier(Times(1, None), consecutive=True), 1, None, True),
        (ANY.longest().one_or_more(), Quantifier(Times(1, None), longest=True), 1, None, True),
        (ANY.times_or_more(3), Quantifier(Times(3, None)), 3, None, True),
        (ANY.greedy().one_or_more(), Quantifier(Times(1, None), greedy=True), 1, None, True),
        (ANY.times(2).allow_combinations(), Quantifier(Times(2, 2), combinations=True), 2, 2, True),
        (ANY.one_or_more(window="1 hour"), Quantifier(Times(1, None), window=HOUR), 1, None, True),
        (ANY.times(2, 3, window=HOUR), Quantifier(Times(2, 3), window=HOUR), 2, 3, True),
        (ANY.times_or_more(2, window="60 minutes"), Quantifier(Times(2, None), window=HOUR), 2, None, True),
    ],
)
def test_quantifiers(pattern: Pattern, expected: Quantifier, minimum: int, maximum: int | None, *, loops: bool) -> None:
    """A quantifier applies to the last stage; `times(0, n)` is an optional `times(1, n)`."""
    quantifier = pattern.stages[-1].quantifier
    assert quantifier == expected
    assert (quantifier.minimum, quantifier.maximum, quantifier.loops) == (minimum, maximum, loops)


def test_the_order_of_quantifier_calls_does_not_matter() -> None:
    """Each call sets only its own part."""
    one = ANY.one_or_more().optional().consecutive().longest().greedy().until("x").within_previous(HOUR)
    assert one == ANY.within_previous(HOUR).until("x").greedy().longest().consecutive().optional().one_or_more()


def test_calls_concern_the_last_stage() -> None:
    """Earlier stages are not changed."""
    before = Pattern.begin("a").where("x").one_or_more()
    after = before.next("b").where("y").times(2).optional().consecutive().longest()
    assert after.stages[0] == before.stages[0]


def test_within_and_skip() -> None:
    """Of several windows the shortest applies; of several skip strategies the last."""
    assert ANY.within("12 hours").within(HOUR).window == HOUR
    shortest = ANY.within_previous("12 hours").within_previous(HOUR)
    assert shortest.stages[-1].window == HOUR
    assert ANY.skip(Skip.past_last_event()).skip_strategy == Skip(SkipTo.PAST_LAST_EVENT)
    assert ANY.skip(Skip.past_last_event()).skip(Skip.no_skip()).skip_strategy == Skip()


def test_patterns_are_immutable() -> None:
    """Every call returns a new pattern and does not change its own; equal patterns have equal hashes."""
    pattern = Pattern.begin("a").where("x")
    calls: list[Callable[[Pattern], Pattern]] = [
        lambda p: p.next("b"),
        lambda p: p.followed_by("b"),
        lambda p: p.followed_by_any("b"),
        lambda p: p.where("y"),
        lambda p: p.or_where("y"),
        lambda p: p.times(2),
        lambda p: p.one_or_more(),
        lambda p: p.optional(),
        lambda p: p.consecutive(),
        lambda p: p.longest(),
        lambda p: p.not_next("b"),
        lambda p: p.not_followed_by("b"),
        lambda p: p.next(p),
        lambda p: p.until("y"),
        lambda p: p.times_or_more(2),
        lambda p: p.greedy(),
        lambda p: p.allow_combinations(),
        lambda p: p.within_previous("1 day"),
        lambda p: p.skip(Skip.to_next()),
        lambda p: p.skip(Skip.to_first("a")),
        lambda p: p.skip(Skip.to_last("a", error_on_miss=True)),
        lambda p: p.within("1 day"),
        lambda p: p.skip(Skip.past_last_event()),
        lambda p: p.named("other"),
    ]
    for call in calls:
        assert call(pattern) != pattern
        assert call(pattern) == call(pattern)
        assert hash(call(pattern)) == hash(call(pattern))
        assert pattern == Pattern.begin("a").where("x")
    with pytest.raises(FrozenInstanceError):
        pattern.name = "other"  # type: ignore[misc]


_TIMES = "write times(n) with n at least 1, or times(a, b) with 0 <= a <= b and b at least 1"
_SKIPS = "Skip.no_skip(), Skip.to_next(), Skip.past_last_event(), Skip.to_first(), Skip.to_last()"
_TOO_LONG = "a length of time must be 36525000 days at most"
_UNITS = "microseconds (us, µs), milliseconds (ms), seconds (s, sec), minutes (min), hours (h), days (d), weeks"
_LENGTH = "Write a whole number and a unit, as in '12 hours'; units: " + _UNITS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.begin(None), 'a stage\'s name is text, got None (begin)\n{} begin("late").'),
        (lambda: ANY.next(5), 'a stage\'s name is text, got int: 5 (next)\n{} next("late").'),
        (lambda: ANY.followed_by(""), 'a stage\'s name must not be empty (followed_by)\n{} followed_by("late").'),
        (
            lambda: ANY.followed_by_any(["b"]),
            "a stage's name is text, got list: ['b'] (followed_by_any)\n{} followed_by_any(\"late\").",
        ),
        (lambda: ANY.named(None), "a pattern's name is text, got None"),
        (lambda: ANY.begin("a", name=None), "a pattern's name is text, got None"),
        (
            lambda: ANY.where(5),
            (
                "a condition is SQL text, semantic(…) or a function, got int: 5 (stage 'a', where)\n"
                'Write it as text, as in where("price > 100").'
            ),
        ),
        (
            lambda: ANY.where("x").or_where(None),
            (
                "a condition is SQL text, semantic(…) or a function, got None (stage 'a', or_where)\n"
                'Write it as text, as in or_where("price > 100").'
            ),
        ),
        (
            lambda: ANY.where(" \n"),
            (
                "a condition must not be empty (stage 'a', where)\n"
                "Leave the call out: a stage without conditions takes any event."
            ),
        ),
        (lambda: ANY.or_where("x"), "or_where needs a where before it: stage 'a' has no condition yet"),
        (
            lambda: ANY.times(2, np.float64(2)),
            "times takes whole numbers, got np.float64(2.0); write times(3) or times(2, 5)",
        ),
        (lambda: ANY.times("a"), "times takes whole numbers, got 'a'; write times(3) or times(2, 5)"),
        (lambda: ANY.times(1, 2.5), "times takes whole numbers, got 2.5; write times(3) or times(2, 5)"),
        (lambda: ANY.times(minimum=True), "times takes whole numbers, got True; write times(3) or times(2, 5)"),
        (lambda: ANY.times(None), "times takes whole numbers, got None; write times(3) or times(2, 5)"),
        (lambda: ANY.times_or_more("a"), "times_or_more takes a whole number, got 'a'; write times_or_more(3)"),
        (
            lambda: ANY.times_or_more(minimum=True),
            "times_or_more takes a whole number, got True; write times_or_more(3)",
        ),
        (
            lambda: ANY.times_or_more(0),
            (
                "times_or_more(0) is not possible: write times_or_more(n) with n at least 1; for none or more, "
                "one_or_more().optional()"
            ),
        ),
        (lambda: ANY.times(0), f"times(0) is not possible: {_TIMES}"),
        (lambda: ANY.times(-1, 2), f"times(-1, 2) is not possible: {_TIMES}"),
        (lambda: ANY.times(3, 2), f"times(3, 2) is not possible: {_TIMES}"),
        (lambda: ANY.times(2).times(3), "times: stage 'a' has a quantifier already"),
        (lambda: ANY.times(2).one_or_more(), "one_or_more: stage 'a' has a quantifier already"),
        (lambda: ANY.next(ANY).times(2).times_or_more(2), "times_or_more: group (a) has a quantifier already"),
        (lambda: ANY.until("x").until("y"), "until: stage 'a' has one already"),
        (
            lambda: ANY.times(2).consecutive().consecutive(),
            "consecutive: stage 'a' has it already; leave one of the two calls out",
        ),
        (
            lambda: ANY.next(ANY).allow_combinations().times(2).allow_combinations(),
            "allow_combinations: group (a) has it already; leave one of the two calls out",
        ),
        (
            lambda: ANY.until(" "),
            (
                "a condition must not be empty (stage 'a', until)\n"
                "Leave the call out: a stage without conditions takes any event."
            ),
        ),
        (
            lambda: ANY.next(ANY).where("x"),
            "where: a group has no condition of its own; give the stages in it theirs",
        ),
        (lambda: ANY.next(ANY).or_where("x"), "or_where needs a where before it: group (a) has no condition yet"),
        (
            lambda: ANY.next(ANY.within(HOUR)),
            (
                "next: within, max_gap, begin_without, skip, taxonomy, with_parameters and knowledge "
                "belong to the whole pattern, not to a group in it"
            ),
        ),
        (
            lambda: ANY.begin(ANY.skip(Skip.to_next())),
            (
                "begin: within, max_gap, begin_without, skip, taxonomy, with_parameters and knowledge "
                "belong to the whole pattern, not to a group in it"
            ),
        ),
        (lambda: ANY.not_next(ANY), "not_next takes the name of a stage, not a group"),
        (lambda: ANY.not_followed_by(ANY), "not_followed_by takes the name of a stage, not a group"),
        (lambda: ANY.one_or_more(window="0 hours"), "a length of time must be positive, got '0 hours'"),
        (lambda: ANY.within_previous("0 hours"), "a length of time must be positive, got '0 hours'"),
        (lambda: ANY.skip("x"), f"unknown skip strategy 'x'; allowed: {_SKIPS}"),
        (lambda: ANY.skip(None), f"unknown skip strategy None; allowed: {_SKIPS}"),
        (lambda: ANY.within(10), "a length of time is text such as '12 hours', or a timedelta; got int: 10"),
        (lambda: ANY.within(None), "a length of time is text such as '12 hours', or a timedelta; got NoneType: None"),
        (lambda: ANY.within("0 days"), "a length of time must be positive, got '0 days'"),
        (lambda: ANY.within(-timedelta(1)), f"a length of time must be positive, got {-timedelta(1)!r}"),
        (lambda: ANY.within("99999999999 days"), f"{_TOO_LONG}, which are 100,000 years"),
        (lambda: ANY.within("36525001 days"), f"{_TOO_LONG}, which are 100,000 years"),
        (lambda: ANY.within(timedelta.max), f"{_TOO_LONG}, which are 100,000 years"),
        *(
            (lambda text=text: ANY.within(text), f"not a length of time: {text!r}. {_LENGTH}")
            for text in ("", "5", "hours", "1.5 hours", "1 hour and", "-1 day")
        ),
    ],
)
def test_refused(call: Callable[[], Pattern], message: str) -> None:
    """A call with invalid arguments is refused at once, with the position and what to write."""
    with pytest.raises(PatternError) as error:
        call()
    assert str(error.value) == message.replace("{}", "Name the stage, as in")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("12 hours", timedelta(hours=12)),
        ("1hour", timedelta(hours=1)),
        (" 1 Minute 30 SECONDS ", timedelta(seconds=90)),
        ("1 week 1 day", timedelta(days=8)),
        ("5 milliseconds 7 microseconds", timedelta(microseconds=5007)),
        ("1 hour 1 hour", timedelta(hours=2)),
        ("2h 10min 3 sec", timedelta(hours=2, minutes=10, seconds=3)),
        ("1 D 90 s", timedelta(days=1, seconds=90)),
        ("5ms 7us 1 µs", timedelta(microseconds=5008)),
        ("2 hrs 1 hr 10 mins 3secs", timedelta(hours=3, minutes=10, seconds=3)),
        ("7 \u00b5s 1 \u03bcs", timedelta(microseconds=8)),
    ],
)
def test_duration(text: str, length: timedelta) -> None:
    """Lengths of time are sums of any units up to weeks; a printed length is read as the same length."""
    assert parse_duration(text) == length
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    "text", ["2 hours", "2 hrs", "120min", "120 mins", "1h 60 Min", "7200 sec", "7200s", "1 hour 60 minutes"]
)
def test_lengths_are_written_alike_everywhere(text: str) -> None:
    """In Python, in pattern files, and in the texts of occurrences and intervals."""
    length = timedelta(hours=2)
    assert Pattern.begin("a").within(text).window == length
    assert pattern_from_text(f"within: {text}\nstages: [{{begin: a}}]") == Pattern.begin("a").within(length)
    assert OccurrencePattern.of(f"(A)_{{{text}}} + {text}").expression == event("A").within(length).plus(length)
    assert interval_pattern(f"EVENT PAL(A a) WITHIN {text} REALTIME 0").window == length


@pytest.mark.parametrize("call", ["within", "within_previous", "max_gap"])
def test_a_length_that_has_no_effect(call: str) -> None:
    """The shorter of two lengths holds, in either order; the longer one is a warning if it comes second."""
    pattern = Pattern.begin("a").next("b")
    shorter = getattr(getattr(pattern, call)("10 minutes"), call)("5 minutes")
    assert shorter == getattr(pattern, call)("5 minutes") == getattr(shorter, call)("300 s")
    message = f"^{call}: 10 minutes has no effect, as 5 minutes was given before, and the shorter length holds$"
    with pytest.warns(CepheidWarning, match=message) as warned:
        assert getattr(shorter, call)("10 minutes") == shorter
    assert warned[0].filename == __file__


def test_whole_numbers_of_numpy_are_counts() -> None:
    assert ANY.times(np.int64(2), np.int32(3)) == ANY.times(2, 3)
    assert ANY.times_or_more(np.int64(2)) == ANY.times_or_more(2)
