"""By which values a host divides the events of a pattern without key, and why it cannot divide others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from cepheid import Limits, Pattern, Skip
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.plan.pattern_request import PatternRequest, PlanOptions
from cepheid.plan.stages.build import build_plan
from cepheid.plan.stages.plans import build_plans
from cepheid.plan.stages.tiers import tiers_of, tiers_of_all, tiers_text
from cepheid.plan.tiers import Link, Side, Tier

COLUMNS = {"t": pa.timestamp("us"), "x": pa.int64(), "y": pa.int64(), "small": pa.int32(), "p": pa.float64()}
SCHEMA = Schema(pa.schema({**COLUMNS, "f": pa.float32(), "d": pa.decimal128(6, 2), "s": pa.string()}), (), "t")


def pattern(b: str, *others: str) -> Pattern:
    made = Pattern.begin("a").where("x > 0").followed_by("b").where(b)
    for name, condition in zip("ce", others, strict=False):
        made = made.followed_by_any(name).where(condition)
    return made


def text(made: Pattern, **options: Any) -> str:
    host, how = tiers_text(build_plan(made, SCHEMA, DuckDbEngine(), **options)).split(": ", 1)
    assert host == ("Spark batch (streams in one task)" if how.startswith("in tiers") else "Spark")
    return how


AS_KEY = ", as if it were the key, because all events of a match have the same value"


@pytest.mark.parametrize(
    ("conditions", "described"),
    [
        (["x = a.x"], f"by x{AS_KEY}"),
        (["y > 1 AND x = a.x", "x = a.x AND p > b.p"], f"by x{AS_KEY}"),
        (["x = a.x", "x = b.x", "c.x = x"], f"by x{AS_KEY}"),
        (["x = a.x AND s = a.s", "s = b.s AND x = b.x"], f"by x and s{AS_KEY}"),
        (["x = a.x AND s = a.s", "s = b.s"], f"by s{AS_KEY}"),
        (["upper(s) = upper(a.s)"], f"by (upper(s)){AS_KEY}"),
        (["f = a.f"], f"by (CAST(f AS DOUBLE)){AS_KEY}"),
        (["x = a.x", "y = b.y"], "in tiers: a, b by x; then c by y = b.y"),
        (["x = a.x", "y = a.y"], "in tiers: a, b by x; then c by y"),
        (["x = a.x", "y = b.x"], "in tiers: a, b by x; then c by y = a.x"),
        (["x = a.x", "y = b.y", "y = c.y"], "in tiers: a, b by x; then c, e by y = b.y"),
        (["x = a.x", "y = b.y AND s = a.s", "s = c.s"], "in tiers: a, b by x; then c, e by s"),
        (["x = a.x", "y = b.y", "s = c.s"], "in tiers: a, b by x; then c by y = b.y; then e by s = c.s"),
        (["x = a.x", "small = b.x"], "in tiers: a, b by x; then c by small = a.x"),
        (["x = a.x", "p = b.small"], "in tiers: a, b by x; then c by p = b.small"),
        (["x = a.y"], "in tiers: a; then b by x = a.y"),
        (["-p = -a.p"], "in tiers: a; then b by (-p)"),
        (["x = a.y", "x = b.x", "y = b.y"], "in tiers: a; then b, c by x = a.y; then e by y = b.y"),
        (["x = a.x", "s = upper(b.s)"], "in tiers: a, b by x; then c by s = b.(upper(s))"),
    ],
)
def test_ties_decide_the_tiers(conditions: list[str], described: str) -> None:
    """One equality that all stages have is a sub-key; otherwise each further equality begins a tier."""
    assert text(pattern(*conditions)) == described


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (["x > a.x"], "stage 'b' has no equality with a column of an earlier stage"),
        (["x = a.x OR y = a.y"], "stage 'b' has no equality with a column of an earlier stage"),
        (["x <=> a.x"], "stage 'b' has no equality with a column of an earlier stage"),
        (["p = p + a.p"], "stage 'b' has no equality with a column of an earlier stage"),
        (["x = a.x", "y > 1"], "stage 'c' has no equality with a column of an earlier stage"),
        (["x = a.x", "d = b.p"], "stage 'c' has no equality with a column of an earlier stage"),
        (["x = a.x AND y > 3 * a.y + 1 + y"], "the condition of stage 'b' can fail, and its equality may be NULL"),
    ],
)
def test_without_an_equality_there_is_one_task(conditions: list[str], reason: str) -> None:
    """If a stage has no equality that a host can compute, the reason names the stage."""
    assert text(pattern(*conditions)) == f"in one task, as {reason}"


def test_a_condition_may_fail_where_its_equality_is_not_null() -> None:
    """If both stages demand that the value is not NULL, and nothing fails before the equality, the rest may fail."""
    fails, reason = "y > 3 * a.y", "the condition of stage 'b' can fail, and its equality may be NULL"
    known, may_be_null = Pattern.begin("a").where("x > 0 AND x IS NOT NULL"), Pattern.begin("a").where("x > 0")
    assert text(known.followed_by("b").where(f"x IS NOT NULL AND x = a.x AND {fails}")) == f"by x{AS_KEY}"
    after = known.followed_by("b").where(f"x IS NOT NULL AND {fails} AND x = a.x")
    assert text(after) == "in one task, as stage 'b' has no equality with a column of an earlier stage"
    assert text(known.followed_by("b").where(f"s IS NOT NULL AND x = a.x AND {fails}")) == f"in one task, as {reason}"
    assert text(may_be_null.followed_by("b").where(f"x IS NOT NULL AND x = a.x AND {fails}")).startswith("in one task")


TIED = pattern("x = a.x")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (Pattern.begin("a").next("b").where("x = a.x"), "stage 'b' takes the directly next event"),
        (TIED.one_or_more().within("1 hour"), "stage 'b' may take several events, or none"),
        (TIED.optional(), "stage 'b' may take several events, or none"),
        (TIED.not_followed_by("n").within("1 hour"), "stage 'n' takes no event"),
        (TIED.skip(Skip.past_last_event()), "the skip strategy lets matches exclude each other"),
        (
            TIED.begin_without("w", where="x = a.x", within="1 hour"),
            "begin_without 'w' looks at events before the match",
        ),
        (TIED.where(lambda event: event["x"] > 0, name="f"), "a condition is a Python function"),
        (Pattern.begin("a").where("x > 0"), "it has one stage"),
    ],
)
def test_clauses_that_other_events_decide_cannot_be_divided(made: Pattern, reason: str) -> None:
    """Clauses for which events of other values matter forbid tiers."""
    assert tiers_of(build_plan(made, SCHEMA, DuckDbEngine())) == reason


def test_outputs_and_limits_may_prevent_tiers() -> None:
    """Timeouts, and limits that drop, forbid tiers. Sub-keys find timeouts, too."""
    within = TIED.within("1 hour")
    timeouts = build_plan(within, SCHEMA, DuckDbEngine(), outputs=("matches", "timeouts"))
    assert tiers_of(timeouts) == "timeouts are requested"
    assert text(within, outputs=("matches", "timeouts")) == f"by x{AS_KEY}"
    assert text(TIED.one_or_more().within("1 hour")) == f"by x{AS_KEY}"
    dropping = text(TIED, limits=Limits(on_limit="drop"))
    assert dropping == "in one task, as limits that drop partial matches compare all of them"


def test_events_are_identified_by_the_chosen_columns() -> None:
    """A sub-key must be one of the chosen columns or of the sequence. Otherwise a tier of its own numbers the events
    that are equal in these.
    """
    assert text(TIED, columns=["y"]) == "in tiers: a; then b by x"
    assert text(TIED, columns=["y", "x"]) == f"by x{AS_KEY}"
    with_sequence = Schema(SCHEMA.columns, (), "t", ("x",))
    assert tiers_text(build_plan(TIED, with_sequence, DuckDbEngine(), columns=["y"])) == f"Spark: by x{AS_KEY}"


def _tiers(*patterns: Pattern) -> tuple[Tier, ...] | str:
    named = [PatternRequest(made.named(f"p{number}")) for number, made in enumerate(patterns)]
    return tiers_of_all(build_plans(named, SCHEMA, DuckDbEngine(), PlanOptions(named=True)))


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        (["x = a.x", "y = a.y"], "the patterns have no equality in common"),
        (["x = a.x", "y > a.y"], "pattern 'p1': stage 'b' has no equality with a column of an earlier stage"),
    ],
)
def test_several_patterns_need_a_common_value(conditions: list[str], reason: str) -> None:
    """Several patterns are divided by values that all of them have, or not at all."""
    assert _tiers(*map(pattern, conditions)) == reason


def test_several_patterns_share_a_sub_key() -> None:
    """The common column has its number among the columns of all patterns."""
    side = Side(0, pa.int64())
    found = _tiers(pattern("x = a.x"), pattern("s = a.s AND p > a.p AND x = a.x"))
    assert found == (Tier(0, 0, (Link(0, side, side),)),)
    tiered = pattern("x = a.x", "y = b.y")
    assert _tiers(pattern("x = a.x"), tiered) == "pattern 'p1' has several tiers, and there are other patterns"
