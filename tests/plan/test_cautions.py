"""Warnings about stages that work as in FlinkCEP, but perhaps not as intended."""

from __future__ import annotations

import pytest

from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.cautions import cautions

A = Pattern.begin("a").where("kind = 0")
B = A.followed_by("b").where("kind = 1 AND x = a.x")
LOOP = A.followed_by("b").where("kind = 1").one_or_more()


@pytest.mark.parametrize(
    ("pattern", "others"),
    [
        (B.followed_by("c").where("y = b.y"), ("b", "c")),
        (B.next("c").where("y > B.y"), ("b", "c")),
        (A.next(Pattern.begin("g").followed_by("b").where("x = 1")).next("c").where("y = b.y"), ("b", "c")),
    ],
)
def test_only_the_first_event_is_compared(pattern: Pattern, others: tuple[str, str]) -> None:
    """A stage after followed_by whose event a later stage compares with its own is the first that matches."""
    stage, later = others
    assert [*cautions(pattern)] == [
        (
            f"stage {stage!r}: followed_by takes only the first event that matches, and stage {later!r} compares its "
            f"event with that one alone. Write followed_by_any({stage!r}) to compare it with each of them."
        )
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        B.followed_by("c").where("y = a.y"),
        A.followed_by_any("b").where("x = a.x").followed_by("c").where("y = b.y"),
        A.next("b").where("x = a.x").followed_by("c").where("y = b.y"),
        A.followed_by("b").followed_by("c").where("y = b.y"),
        B.one_or_more().followed_by("c").where("y = b.y"),
        B.not_followed_by("n").where("y = b.y").followed_by("c"),
    ],
)
def test_each_event_is_compared(pattern: Pattern) -> None:
    """There is no warning if no later stage compares, if each event that matches is taken, or if any event matches."""
    assert [*cautions(pattern)] == []


@pytest.mark.parametrize(
    ("pattern", "how", "until"),
    [
        (LOOP.followed_by("c").within_previous("5 minutes"), "may go on", "however long that takes"),
        (LOOP.followed_by("c").within_previous("5 minutes").within("1 hour"), "may go on", "until within ends"),
        (A.next("b").times(2, 3).next("c").within_previous("5 minutes"), "may go on", "however long that takes"),
        (A.next("b").optional().next("c").within_previous("5 minutes"), "is optional", "however long that takes"),
        (
            LOOP.not_followed_by("n").where("kind = 3").followed_by("c").within_previous("5 minutes"),
            "may go on",
            "however long that takes",
        ),
    ],
)
def test_no_deadline(pattern: Pattern, how: str, until: str) -> None:
    """within_previous after a loop or an optional stage sets no deadline; max_gap does."""
    assert [*cautions(pattern)] == [
        (
            f"stage 'c': within_previous sets no deadline here, as stage 'b' {how}, so partial matches wait for the "
            f"next event {until}. Add max_gap('5 minutes') to the pattern."
        )
    ]
    assert [*cautions(pattern.max_gap("5 minutes"))] == []


def test_a_deadline() -> None:
    """within_previous sets a deadline after a stage that takes a fixed number of events."""
    assert [*cautions(A.next("b").times(2).next("c").within_previous("5 minutes"))] == []
