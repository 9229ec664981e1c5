"""Patterns that are invalid for any events: each message has the position and what to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from typing import TypeAlias

import pytest
from hypothesis import given
from tests.lang.strategies import FLAGS, patterns

from cepheid.lang.documents import located_in_document, pattern_from_text
from cepheid.lang.stages.pattern import Contiguity, Pattern, Skip, SkipTo, Stage
from cepheid.plan.reserved import RESERVED
from cepheid.plan.stages.check import pattern_problems

Change: TypeAlias = Callable[[Pattern], Pattern]

A = Pattern.begin("a").where("x > 1")
AB = A.next("b")
ONE_OR_MORE = "Add one_or_more() or times(…) to the stage."


def problems_of(pattern: Pattern, *columns: str) -> list[str]:
    return [str(problem) for problem in pattern_problems(pattern, columns)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.next("A"), "two stages are named 'A'\nEvery stage needs a name of its own."),
        (AB.next(Pattern.begin("c").next(A)), "two stages are named 'a'\nEvery stage needs a name of its own."),
        (A.not_next("a").next("b"), "two stages are named 'a'\nEvery stage needs a name of its own."),
        (
            A.next(Pattern.begin("Price")),
            (
                "stage 'Price' has the name of a column of the events ('price')\n"
                "Case does not count; choose another name for the stage."
            ),
        ),
        *(
            (
                Pattern.begin(name.upper()),
                (
                    f"stage {name.upper()!r} has the name of a column of the output\n"
                    "Case does not count; choose another name for the stage."
                ),
            )
            for name in RESERVED
        ),
    ],
)
def test_names(pattern: Pattern, expected: str) -> None:
    """Stages, also those in groups and NOT stages, have unique names, which differ from those of columns."""
    assert problems_of(pattern, "x", "price") == [expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.greedy(), f"greedy needs a loop (stage 'a')\n{ONE_OR_MORE}"),
        (A.consecutive(), f"consecutive needs a loop (stage 'a')\n{ONE_OR_MORE}"),
        (A.optional().allow_combinations(), f"allow_combinations needs a loop (stage 'a')\n{ONE_OR_MORE}"),
        (A.longest(), f"longest needs a loop (stage 'a')\n{ONE_OR_MORE}"),
        (
            Pattern.begin(AB).consecutive(),
            "consecutive needs a loop (group (a, b))\nAdd one_or_more() or times(…) to the group.",
        ),
        (
            A.until("x = 2"),
            (
                "until needs a loop without a largest number of events (stage 'a')\n"
                "Add one_or_more() or times_or_more(…), or leave until out."
            ),
        ),
        (
            Pattern.begin(AB).times(2, 3).until("x = 2"),
            (
                "until needs a loop without a largest number of events (group (a, b))\n"
                "Add one_or_more() or times_or_more(…), or leave until out."
            ),
        ),
        (
            A.one_or_more().consecutive().allow_combinations(),
            (
                "consecutive and allow_combinations exclude each other (stage 'a')\n"
                "allow_combinations also skips events that match, consecutive skips no event: choose one."
            ),
        ),
        (
            A.one_or_more().greedy().allow_combinations(),
            (
                "greedy and allow_combinations exclude each other (stage 'a')\n"
                "allow_combinations also skips events that match, "
                "greedy takes every event that it can: choose one."
            ),
        ),
        (
            A.one_or_more().allow_combinations().longest().within("1 hour"),
            (
                "longest and allow_combinations exclude each other (stage 'a')\n"
                "allow_combinations also skips events that match, longest gives one loop: choose one."
            ),
        ),
        (
            Pattern.begin(AB).one_or_more().greedy(),
            "greedy is not for groups (group (a, b))\nMake loops in the group greedy.",
        ),
        (
            A.next(Pattern.begin("b").optional().next(Pattern.begin("c").times(0, 2))).times_or_more(2),
            (
                "a loop over a group that can match nothing would never end (group (b, c))\n"
                "Make a stage in it not optional, or say how often: times(…)."
            ),
        ),
    ],
)
def test_quantifiers(pattern: Pattern, expected: str) -> None:
    """The requirements of loops, quantifiers that exclude each other, and loops that would never end."""
    assert problems_of(pattern) == [expected]


LONGEST_WITHIN = (
    "longest without consecutive needs until or within: nothing else would end the loop ({})\n"
    "Add consecutive(), so that an event that does not match ends the loop, until(…) or within(…)."
)
RELAXED = Pattern.begin("b").followed_by("c")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.one_or_more().consecutive().longest().next("c"), "longest is for the last stage only (stage 'a')"),
        (
            A.one_or_more().consecutive().longest().not_followed_by("c").within("1 hour"),
            "longest is for the last stage only (stage 'a')",
        ),
        (
            A.next(Pattern.begin("b").one_or_more().consecutive().longest()),
            "longest is for the last stage only (stage 'b')",
        ),
        (A.one_or_more().longest(), LONGEST_WITHIN.format("stage 'a'")),
        (A.times(2, 4).longest(), LONGEST_WITHIN.format("stage 'a'")),
    ],
)
def test_longest(pattern: Pattern, expected: str) -> None:
    """`longest` applies to the last stage only, and something must end its loop."""
    assert problems_of(pattern) == [expected]


@pytest.mark.parametrize(
    "pattern",
    [
        A.one_or_more().consecutive().longest(),
        A.one_or_more().longest().until("x = 2"),
        A.one_or_more().longest().within("1 hour"),
        A.one_or_more(window="1 hour").longest(),
        A.next("b").one_or_more().longest().within_previous("1 hour"),
        A.times(3).longest(),
    ],
)
def test_loops_that_end(pattern: Pattern) -> None:
    """An event that does not match, `until`, a window or the count ends the longest loop."""
    assert problems_of(pattern) == []


@pytest.mark.parametrize("call", ["not_next", "not_followed_by"])
@pytest.mark.parametrize(
    ("change", "given"),
    [
        (Pattern.one_or_more, "one_or_more"),
        (lambda p: p.times(2), "times"),
        (lambda p: p.times_or_more(2), "times_or_more"),
        (Pattern.optional, "optional"),
        (Pattern.greedy, "greedy"),
        (lambda p: p.times(0, 2).consecutive().until("x = 2"), "times, optional, consecutive, until"),
        (lambda p: p.one_or_more().allow_combinations().longest(), "one_or_more, allow_combinations, longest"),
    ],
)
def test_quantified_not_stages(call: str, change: Change, given: str) -> None:
    """A NOT stage takes no event, so it has no quantifier; this is the only problem reported for it."""
    pattern = change(getattr(A, call)("n")).next("b")
    assert problems_of(pattern) == [f"{call} takes no event, so it cannot have {given} (stage 'n')\nLeave that out."]


LAST_NOT = (
    "not_followed_by as the last stage needs within: until when may no such event come? (stage 'n')\n"
    "Add within(…) or, to count from the event before it, max_gap(…) or within_previous(…)."
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (A.not_followed_by("n"), LAST_NOT),
        (A.not_next("m").not_followed_by("n"), LAST_NOT),
        (A.next(Pattern.begin("b").next(Pattern.begin("c").not_followed_by("n")).one_or_more()), LAST_NOT),
        (
            AB.optional().not_next("n").next("c"),
            (
                "not_next cannot follow the optional stage 'b' (stage 'n')\n"
                "Use two patterns: one with the optional stage, not optional there, and one without it."
            ),
        ),
        (
            A.next(Pattern.begin("b").next("c")).times(0, 2).not_followed_by("n").next("d"),
            (
                "not_followed_by cannot follow the optional group (b, c) (stage 'n')\n"
                "Use two patterns: one with the optional stage, not optional there, and one without it."
            ),
        ),
        (
            A.next(Pattern.begin("b").optional().not_next("n").next("c")),
            (
                "not_next cannot follow the optional stage 'b' (stage 'n')\n"
                "Use two patterns: one with the optional stage, not optional there, and one without it."
            ),
        ),
        (
            Pattern((Stage("n", Contiguity.NOT_NEXT), Stage("a"))),
            (
                "not_next cannot be the first stage (stage 'n')\n"
                "Begin with the stage after which no such event may come."
            ),
        ),
    ],
)
def test_places_of_not_stages(pattern: Pattern, expected: str) -> None:
    """Some places are not allowed for a NOT stage, and a last `not_followed_by` needs an end."""
    assert problems_of(pattern) == [expected]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Pattern((), window=timedelta(0)), "within must be longer than zero, got 0:00:00"),
        (
            Pattern((replace(A.stages[0], window=-timedelta(1)),)),
            "within_previous must be longer than zero, got -1 day, 0:00:00 (stage 'a')",
        ),
        (
            AB.within_previous("2 hours").within("1 hour"),
            (
                "within_previous is longer than within: 2 hours, 1 hour (stage 'b')\n"
                "An event so late would be after the end of the match: make it shorter, or leave it out."
            ),
        ),
        (
            A.next(A.next("b").one_or_more(window="2 hours")).within("1 hour"),
            (
                "the loop's window is longer than within: 2 hours, 1 hour (stage 'b')\n"
                "An event so late would be after the end of the match: make it shorter, or leave it out."
            ),
        ),
    ],
)
def test_windows(pattern: Pattern, expected: str) -> None:
    """Windows are longer than zero, and windows between events are not longer than that of the whole pattern."""
    assert [problem for problem in problems_of(pattern) if not problem.startswith("two stages")] == [expected]


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        (Skip.to_first("bb"), "to_first: no stage named 'bb' (skip)\nDid you mean 'b'?"),
        (Skip.to_last("zz"), "to_last: no stage named 'zz' (skip)\nKnown here: a, n, b, c"),
        (Skip.to_first("B"), "to_first: no stage named 'B' (skip)\nDid you mean 'b'?"),
        (Skip(SkipTo.FIRST), "to_first: no stage named None (skip)\nKnown here: a, n, b, c"),
    ],
)
def test_skip_strategies(skip: Skip, expected: str) -> None:
    """The stage of a skip strategy must exist."""
    pattern = A.not_next("n").next(Pattern.begin("b").next("c"))
    assert problems_of(pattern.skip(skip)) == [expected]


@pytest.mark.parametrize(
    "pattern",
    [
        A.not_next("n"),
        A.not_followed_by("n").within("1 hour"),
        A.not_followed_by("n").within_previous("1 hour"),
        A.not_followed_by("m").not_followed_by("n").not_next("o").next("b"),
        A.not_followed_by("n").within_previous("1 hour").next("b"),
        A.next(Pattern.begin("b").not_followed_by("n")).one_or_more().next("c"),
        A.next(Pattern.begin("b").not_followed_by("n")).one_or_more().within("1 hour"),
        A.next(Pattern.begin("b").optional()).not_next("n").next("c"),
        A.one_or_more().greedy().next("b").optional().next("c").times(0, 2),
        A.optional().one_or_more().optional(),
        A.optional().next("b").times(0, 2),
        A.next(Pattern.begin("b").optional()).times(2, 3),
        A.next(Pattern.begin("b").optional().next("c")).one_or_more().allow_combinations(),
        A.times(1).consecutive().greedy(),
        A.times_or_more(2, window="1 hour").until("x = 2").within("1 hour"),
        A.within_previous("1 hour").within("1 hour"),
        A.next(Pattern.begin("b")).skip(Skip.to_last("b")),
        A.skip(Skip.to_first("a", error_on_miss=True)),
        Pattern.begin("$endState$"),
    ],
)
def test_valid_patterns(pattern: Pattern) -> None:
    """Valid patterns that are close to a problem."""
    assert problems_of(pattern) == []


@pytest.mark.parametrize(("first", "second"), [*permutations(FLAGS, 2)])
def test_the_order_of_calls_does_not_matter(first: Change, second: Change) -> None:
    """If calls on a stage are refused in one order, they are refused in the other."""
    one = second(first(A)).one_or_more().within("1 hour")
    other = first(second(A.one_or_more())).within("1 hour")
    assert problems_of(one) == problems_of(other)


def test_all_problems_come_at_once() -> None:
    """The order of problems: windows, names, then stage by stage, the end of the pattern, the skip strategy."""
    group = Pattern.begin("b").until("x").next("c").greedy()
    pattern = A.consecutive().within_previous("2 days").next(group).not_followed_by("A").optional()
    pattern = pattern.within("1 day").skip(Skip.to_first("d"))
    assert [line.splitlines()[0] for line in problems_of(pattern)] == [
        "within_previous is longer than within: 2 days, 1 day (stage 'a')",
        "two stages are named 'A'",
        "consecutive needs a loop (stage 'a')",
        "until needs a loop without a largest number of events (stage 'b')",
        "greedy needs a loop (stage 'c')",
        "not_followed_by takes no event, so it cannot have optional (stage 'A')",
        "to_first: no stage named 'd' (skip)",
    ]


def test_problems_have_places_in_pattern_files() -> None:
    """A problem of a stage, a group or the skip strategy is located in the document."""
    document = """\
skip: {to_first: d}
stages:
  - begin: a
    longest: true
  - next: [{begin: b, until: x}]
    one_or_more: true
    greedy: true
"""
    problems = pattern_problems(pattern_from_text(document), [])
    placed = [str(located_in_document(problem, document, source="p.yaml")).splitlines()[0] for problem in problems]
    assert placed == [
        "longest needs a loop (p.yaml, stage 'a', line 3, column 12)",
        "longest is for the last stage only (p.yaml, stage 'a', line 3, column 12)",
        "greedy is not for groups (p.yaml, group (b), line 5, column 5)",
        "until needs a loop without a largest number of events (p.yaml, stage 'b', line 5, column 20)",
        "to_first: no stage named 'd' (p.yaml, skip, line 1, column 7)",
    ]


@given(patterns())
def test_any_pattern_is_checked(pattern: Pattern) -> None:
    """The check never fails with another error, and every problem can be printed."""
    assert all(str(problem) for problem in pattern_problems(pattern, ["x"]))


def test_size() -> None:
    """Every turn is a state, so the number of turns has a limit."""
    pattern = A.next(Pattern.begin("b").times(100).next("c")).times(100)
    (problem,) = problems_of(pattern)
    assert problem == (
        "the pattern would have 10,101 states, at most 5,000 are possible\n"
        "Every turn of times(…) is a state: use one_or_more() and count(stage) instead."
    )
