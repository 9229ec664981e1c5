"""How one key can be divided, and which clause forbids it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid import Limits, Pattern, Skip
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.plan.condition_bits import MAX_CONDITIONS
from cepheid.plan.division import TimeSlices
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.division.explain import division_text
from cepheid.plan.stages.division.slices import slices_of_all, slices_text
from cepheid.plan.stages.division.starts import Starts, starts_of, starts_text
from cepheid.plan.stages.division.sub_keys import sub_keys_of_all, sub_keys_text
from cepheid.plan.stages.plan import Plan
from cepheid.plan.stages.plans import build_plans
from cepheid.plan.tiers import Side
from cepheid.plan.undivided import Undivided

COLUMNS = {"k": pa.string(), "t": pa.timestamp("us"), "x": pa.int64(), "y": pa.int64(), "s": pa.string()}
SCHEMA = Schema(pa.schema(COLUMNS), ("k",), "t")
A = Pattern.begin("a").where("x > 0")
TIED = A.followed_by("b").where("y > 1 AND x = a.x")


def plan_of(made: Pattern, **options: Any) -> Plan:
    return build_plan(made, SCHEMA, DuckDbEngine(), **options)


def by_value(made: Pattern, **options: Any) -> str:
    return sub_keys_text(plan_of(made, **options))


def by_start(made: Pattern, **options: Any) -> str:
    return starts_text(plan_of(made, **options))


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (TIED, "x"),
        (TIED.one_or_more().until("x = a.x AND y = 0"), "x"),
        (TIED.not_followed_by("n").where("x = b.x").followed_by_any("c").where("x = first(a.x)"), "x"),
        (A.followed_by(Pattern.begin("b").where("x = a.x").followed_by("c").where("a.x = x")).times(1, 3), "x"),
        (A.optional().followed_by("b").where("x = a.x"), "x"),
        (A.followed_by("b").where("x = a.x AND s = a.s"), "x and s"),
        (A.followed_by("b").where("upper(s) = upper(a.s)"), "(upper(s))"),
    ],
)
def test_an_equality_of_all_conditions_extends_the_key(made: Pattern, values: str) -> None:
    """Stages, loops, groups, NOT stages and `until` may all demand the same value."""
    text = f"by {values}: Spark does so in any case, because all events of a match have the same value"
    assert by_value(made) == text


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (A.followed_by("b").where("x > a.x"), "stage 'b' has no equality with the same column of an earlier event"),
        (A.followed_by("b").where("x = a.y"), "stage 'b' has no equality with the same column of an earlier event"),
        (
            A.followed_by("b").followed_by("c").followed_by("d").where("x = a.x"),
            "stage 'b' and stage 'c' have no equality with the same column of an earlier event",
        ),
        (TIED.followed_by("c"), "stage 'c' has no equality with the same column of an earlier event"),
        (TIED.followed_by("c").where("y = b.y"), "no equality is common to all of its conditions"),
        (
            TIED.one_or_more().until("y = 0"),
            "the until of stage 'b' has no equality with the same column of an earlier event",
        ),
        (
            A.followed_by("b").where("x = a.x AND y > 3 * a.y + y"),
            "the condition of stage 'b' can fail, and its equality may be NULL",
        ),
        (A.next("b").where("x = a.x"), "stage 'b' takes the directly next event"),
        (TIED.one_or_more().consecutive(), "stage 'b' takes the directly next event"),
        (TIED.not_next("n").where("x = a.x").followed_by("c").where("x = a.x"), "stage 'n' takes the directly next"),
        (
            A.followed_by(Pattern.begin("b").where("x = a.x").next("c").where("x = a.x")),
            "stage 'c' takes the directly next event",
        ),
        (
            A.one_or_more().followed_by("b").where("x = a.x"),
            "stage 'a' is first and may take several events, of which nothing ties the first",
        ),
        (
            TIED.one_or_more().not_followed_by("n").where("x = a.x").within("1 hour"),
            "stage 'b' may branch at any event, and stage 'n' does not end all branches",
        ),
        (TIED.one_or_more().greedy().followed_by("c").where("x = a.x"), "stage 'b' is greedy"),
        (TIED.skip(Skip.to_next()), "its skip strategy lets matches exclude each other"),
        (
            TIED.begin_without("w", where="x = a.x", within="1 hour"),
            "begin_without 'w' looks at events before the match",
        ),
        (TIED.where(lambda event: event["x"] > 0, name="f"), "a condition is a Python function"),
        (A, "it has one stage"),
    ],
)
def test_what_forbids_sub_keys(made: Pattern, reason: str) -> None:
    """The reason names the clause."""
    assert by_value(made).startswith(f"by a value: cannot, because {reason}")


def test_options_that_forbid_sub_keys() -> None:
    """Outputs, limits and chosen columns may forbid them, too; all reasons are given."""
    loop = TIED.one_or_more().within("1 hour")
    timeouts = "stage 'b' may branch at any event, which shows in timeouts"
    assert by_value(loop, outputs=("matches", "timeouts")) == f"by a value: cannot, because {timeouts}"
    limits = Limits(max_partial_matches=9)
    assert by_value(loop, outputs=("timeouts",), limits=limits) == (
        f"by a value: cannot, because {timeouts}; limits count the partial matches of a key"
    )
    assert by_value(TIED, columns=["y"]) == (
        "by a value: cannot, because x is not among the columns that identify an event: choose it with columns="
    )


def _together(*patterns: Pattern) -> tuple[Side, ...] | Undivided:
    named = [PatternRequest(made.named(f"p{number}")) for number, made in enumerate(patterns)]
    return sub_keys_of_all(build_plans(named, SCHEMA, DuckDbEngine(), PlanOptions(named=True)))


def test_several_patterns_need_a_common_value() -> None:
    """The common column has its number among the columns of all patterns."""
    assert _together(TIED, A.followed_by("b").where("s = a.s AND y > a.y AND x = a.x")) == (Side(0, pa.int64()),)
    other = A.followed_by("b").where("s = a.s")
    assert _together(TIED, other) == Undivided(("the patterns have no equality in common",))
    assert _together(TIED, A) == Undivided(("pattern 'p1': it has one stage",))


def test_a_pattern_with_a_deadline_can_be_divided_by_start() -> None:
    """Loops, NOT stages, strict contiguity and functions are no obstacle; a partial match ends within the window."""
    made = A.next("b").one_or_more().where(lambda event: event["x"] > 0, name="f").not_followed_by("n")
    assert starts_of(plan_of(made.within("1 hour"))) == Starts(3_600_000_000)
    assert by_start(made.within("1 hour")) == (
        "by start: streams can, because partial matches of different first events do not affect each other and end "
        "within 1 hour"
    )


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (TIED, "it has no within, so a copy would never be released"),
        (TIED.max_gap("1 hour"), "it has no within, so a copy would never be released"),
        (TIED.within("1 hour").skip(Skip.to_next()), "SKIP_TO_NEXT ties starts together"),
        (TIED.within("1 hour").skip(Skip.past_last_event()), "SKIP_PAST_LAST_EVENT ties starts together"),
        (TIED.within("1 hour").skip(Skip.to_first("a")), "SKIP_TO_FIRST ties starts together"),
        (TIED.within("1 hour").skip(Skip.to_last("a")), "SKIP_TO_LAST ties starts together"),
        (
            TIED.within("1 hour").begin_without("w", within="1 hour"),
            "begin_without 'w' looks at events before the start, which a new copy has not received",
        ),
    ],
)
def test_what_forbids_copies_by_start(made: Pattern, reason: str) -> None:
    """The reason names the clause."""
    assert by_start(made) == f"by start: cannot, because {reason}"


def test_options_that_forbid_copies_by_start() -> None:
    """Limits count all partial matches of a key; a mask without a free bit marks no starts. All reasons are given."""
    within = TIED.within("1 hour")
    limits = "limits count the partial matches of a key"
    for options in (Limits(max_partial_matches=9), Limits(on_limit="drop")):
        assert by_start(within, limits=options) == f"by start: cannot, because {limits}"
    assert by_start(TIED, limits=Limits(on_limit="drop")).endswith(
        f"{limits}; it has no within, so a copy would never be released"
    )
    many = within
    for number in range(MAX_CONDITIONS // 2):
        many = many.followed_by(f"s{number}").where(f"x > {number + 5}")
    assert by_start(many) == "by start: cannot, because its conditions leave no bit of the mask free"


def by_time(skip: Skip) -> str:
    return slices_text(plan_of(TIED.within("1 hour").skip(skip)))


def test_a_pattern_with_a_window_can_be_divided_by_time() -> None:
    """The skip strategy decides whether a slice needs the one before."""
    can = "by time: finite input can, in process and on Spark (without a key, or with slices=True), because"
    waits = "SKIP_TO_NEXT lets a match only wait for partial matches that started earlier"
    assert by_time(Skip()) == (
        f"{can} partial matches of different first events do not affect each other and end within 1 hour"
    )
    assert by_time(Skip.to_next()) == (f"{can} {waits}, and they end within 1 hour")
    assert by_time(Skip.to_last("b")) == (
        "by time: finite input can in process, where each slice is told which starts the one before left open; not on "
        "Spark, because SKIP_TO_LAST lets a match drop partial matches that started after it"
    )


def test_common_slices_of_several_patterns() -> None:
    """They read what each needs, and settle if all do."""
    before = A.begin_without("w", where="y = 1", within="5 seconds").followed_by("b").within("1 minute")
    last = A.followed_by("b").within("2 minutes").skip(Skip.past_last_event())
    plans = build_plans(
        [PatternRequest(made.named(name)) for name, made in (("p", before), ("q", last))],
        SCHEMA,
        DuckDbEngine(),
        PlanOptions(named=True),
    )
    assert slices_of_all(plans) == TimeSlices(5_000_000, 120_000_000, waits=True, settles=False)


def test_all_ways_are_explained() -> None:
    """One line a way."""
    assert division_text(plan_of(TIED)) == (
        "Dividing one key by x: Spark does so in any case, because all events of a match have the same value\n"
        "Dividing one key by start: cannot, because it has no within, so a copy would never be released\n"
        "Dividing one key by time: cannot, because without within, a match may end at any later time\n"
    )
