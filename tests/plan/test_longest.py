"""The requirements for `longest` on a group."""

from __future__ import annotations

import pytest

from cepheid import Pattern
from cepheid.plan.stages.longest import longest_group_problems

A = Pattern.begin("a")
B = Pattern.begin("b")
STRICT, RELAXED = B.next("c"), B.followed_by("c")
ENDS_WITH_NOT = (
    "longest is not for a group that ends with a NOT: its last turn would never be certain ({})\n"
    "Put another stage, one that is not optional, after it."
)
ALIKE = (
    "longest: where {} may go on, a new turn of the group may begin as well ({})\n"
    "Leave the outer or the inner loop out, or put another stage, one that is not optional, beside it."
)
WAITS = (
    "longest needs until or within where anything in the group may wait: nothing else would end the loop ({})\n"
    "Add until(…) or within(…); or make the group and all in it strict: next(…), consecutive()."
)


def problems_of(pattern: Pattern) -> list[str]:
    groups = [stage for stage in pattern.stages if stage.group]
    return [str(problem) for problem in longest_group_problems(groups[-1], pattern)]


def many(group: Pattern) -> Pattern:
    return A.next(group).one_or_more().consecutive().longest()


@pytest.mark.parametrize(
    "pattern",
    [
        many(STRICT),
        many(STRICT).optional(),
        many(B.one_or_more().consecutive().next("c").one_or_more().consecutive()),
        many(B.next("c").optional().next("d").one_or_more().consecutive().optional()),
        many(B.times(2).consecutive()),
        many(RELAXED).within("1 hour"),
        many(RELAXED).until("x = 1"),
        many(B.followed_by_any("c").one_or_more().allow_combinations()).within_previous("1 hour"),
        A.next(STRICT).one_or_more(window="1 hour").longest(),
        A.next(STRICT).times(2, 4).consecutive().longest(),
        many(B.not_followed_by("n").next("c")),
        Pattern.begin(STRICT).one_or_more().consecutive().longest(),
    ],
)
def test_groups_that_may_be_longest(pattern: Pattern) -> None:
    """The events of a whole turn can be taken in only one way, and something ends the loop."""
    assert problems_of(pattern) == []


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (many(STRICT).next("d"), "longest is for the last stage only (group (b, c))"),
        (
            many(B.next("c").not_next("n").next("d").optional()),
            ENDS_WITH_NOT.format("group (b, c, n, d)"),
        ),
        (
            many(B.next(Pattern.begin("c").not_followed_by("n"))),
            ENDS_WITH_NOT.format("group (b, c, n)"),
        ),
        (
            A.next(B.optional()).times(1, 3).consecutive().longest(),
            "longest is not for a group that can match nothing (group (b))\nMake a stage in it not optional.",
        ),
        (many(B.one_or_more().consecutive()), ALIKE.format("stage 'b'", "group (b)")),
        (
            many(B.times(1, 2).consecutive().next("c").optional()),
            ALIKE.format("stage 'b'", "group (b, c)"),
        ),
        (
            many(Pattern.begin(STRICT).one_or_more().consecutive().next("d").optional()),
            ALIKE.format("group (b, c)", "group (b, c, d)"),
        ),
        (
            many(Pattern.begin(Pattern.begin(B.times(2, 3).consecutive()).times(2).consecutive()).next("d")),
            ALIKE.format("stage 'b'", "group (b, d)"),
        ),
        (many(RELAXED), WAITS.format("group (b, c)")),
        (many(B.one_or_more().next("c")), WAITS.format("group (b, c)")),
        (A.next(STRICT).one_or_more().longest(), WAITS.format("group (b, c)")),
        (many(B.next(Pattern.begin("c").followed_by("d"))), WAITS.format("group (b, c, d)")),
        (
            many(B.next(Pattern.begin("c").followed_by("d"))).until("x = 1"),
            WAITS.format("group (b, c, d)"),
        ),
    ],
)
def test_groups_that_may_not(pattern: Pattern, expected: str) -> None:
    """A group whose longest turn is not uniquely defined, or does not end, is refused with what to do."""
    assert problems_of(pattern) == [expected]


def test_all_problems_at_once() -> None:
    """All problems of a group are reported."""
    assert len(problems_of(A.next(B.one_or_more().not_next("n")).one_or_more().longest())) == 3
