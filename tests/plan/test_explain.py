"""Plans and patterns as text."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cepheid.events.batch import Schema
from cepheid.lang.expression import Name
from cepheid.lang.stages.pattern import Pattern, Skip
from cepheid.plan.conditions.script import (
    Aggregate,
    ConstantValue,
    CurrentValue,
    Fold,
    Operation,
    Operator,
    Script,
    StageValue,
)
from cepheid.plan.lifted import Lifted, Measure, PlannedCondition
from cepheid.plan.stages.explain import explain_pattern, explain_plan, script_text
from cepheid.plan.stages.plan import Plan

LONG, DOUBLE, BOOLEAN, STRING = pa.int64(), pa.float64(), pa.bool_(), pa.string()


def lifted(sql: str, kind: pa.DataType) -> Lifted:
    return Lifted(sql, Name((sql,), ((0, len(sql)),)), kind)


def equal(left: Script, right: Script) -> Operation:
    return Operation(Operator.EQUAL, (left, right), BOOLEAN)


same_origin = equal(CurrentValue(0, STRING), StageValue(0, 0, STRING))
pattern = (
    Pattern.begin("late", name="chain")
    .where("arr_delay > 45")
    .next("legs")
    .where("origin = late.origin")
    .or_where("dep_delay > 30")
    .one_or_more()
    .consecutive()
    .longest()
    .followed_by_any("end of day")
    .times(0, 3)
    .within("12 hours")
    .skip(Skip.past_last_event())
)
plan = Plan(
    pattern,
    Schema(pa.schema({"tailnum": STRING, "t": pa.timestamp("us")}), ("tailnum",), "t"),
    (lifted("arr_delay > 45", BOOLEAN),),
    (lifted("origin", STRING), lifted("dep_delay * 1.1", DOUBLE)),
    (PlannedCondition(0, None), PlannedCondition(None, same_origin), PlannedCondition(None, None)),
    (
        Measure(
            "n", "count(b)", "__0 + __1", Name(("__0",), ((0, 3),)), {"__0": Aggregate(Fold.COUNT, 1, None, LONG)}, LONG
        ),
    ),
    ("origin",),
)


def test_plan_as_text() -> None:
    """The text has the whole plan: stages, lifted columns with their types, scripts, measures, window, skip strategy,
    key, order.
    """
    assert explain_plan(plan) == (
        "Pattern chain\n"
        "\n"
        "  1. late: begins with\n"
        "     lifted: bit 0, arr_delay > 45\n"
        "  2. legs: directly next, 1 event or more, consecutive, the longest loop only\n"
        "     script: origin = late.origin\n"
        "  3. end of day: followed by any that matches, 1 to 3 events, optional\n"
        "     any event\n"
        "\n"
        "Lifted columns (computed for every event by the SQL engine of the host)\n"
        "  bit 0    arr_delay > 45  (bool)\n"
        "  value 0  origin  (string)\n"
        "  value 1  dep_delay * 1.1  (double)\n"
        "\n"
        "Measures (computed once a match)\n"
        "  n = count(legs) + __1  (int64)\n"
        "\n"
        "Within: 12 hours, from the first event to the last\n"
        "Skip strategy: past_last_event\n"
        "Key: tailnum\n"
        "Order: t\n"
    )


def test_pattern_as_text() -> None:
    """Without a schema, the conditions are shown as they were written."""
    assert explain_pattern(pattern) == (
        "Pattern chain\n"
        "\n"
        "  1. late: begins with\n"
        "     where arr_delay > 45\n"
        "  2. legs: directly next, 1 event or more, consecutive, the longest loop only\n"
        "     where origin = late.origin\n"
        "     or dep_delay > 30\n"
        "  3. end of day: followed by any that matches, 1 to 3 events, optional\n"
        "     any event\n"
        "\n"
        "Within: 12 hours, from the first event to the last\n"
        "Skip strategy: past_last_event\n"
    )


grouped = (
    Pattern.begin("a", name="grouped")
    .followed_by(
        Pattern.begin("b")
        .where("x > 1")
        .one_or_more(window="10 seconds")
        .greedy()
        .until("x = b.x")
        .next(Pattern.begin("c").not_next("d").where("x < 0").next("e").times(2).allow_combinations())
    )
    .times_or_more(2)
    .consecutive()
    .longest()
    .until("x = 9")
    .within_previous("1 minute")
    .not_followed_by("f")
    .within_previous("5 minutes")
    .skip(Skip.to_last("c", error_on_miss=True))
)


def test_groups_as_text() -> None:
    """Groups are shown with their stages below them, NOT stages by the event that must not come, and windows of every
    kind.
    """
    assert explain_pattern(grouped) == (
        "Pattern grouped\n"
        "\n"
        "  1. a: begins with\n"
        "     any event\n"
        "  2. group: followed by the next that matches, 2 times or more, consecutive, the longest loop only, "
        "less than 1 minute after the event taken before\n"
        "     until x = 9\n"
        "     2.1. b: begins with, 1 event or more, greedy, each less than 10 seconds after the one before it\n"
        "          where x > 1\n"
        "          until x = b.x\n"
        "     2.2. group: directly next\n"
        "          2.2.1. c: begins with\n"
        "                 any event\n"
        "          2.2.2. d: NOT directly next\n"
        "                 where x < 0\n"
        "          2.2.3. e: directly next, 2 events, all combinations\n"
        "                 any event\n"
        "  3. f: NOT followed by any that matches, for 5 minutes after the event taken before\n"
        "     any event\n"
        "\n"
        "Within: no limit\n"
        "Skip strategy: to_last c, an error where there is no such event\n"
    )


def test_plan_of_groups_as_text() -> None:
    """The conditions of a plan are shown at their stages and loops."""
    bits = tuple(lifted(sql, BOOLEAN) for sql in ("x > 1", "x < 0", "x = 9"))
    any_event = PlannedCondition(None, None)
    leaves = (any_event, PlannedCondition(0, None), any_event, PlannedCondition(1, None), any_event, any_event)
    untils = (PlannedCondition(2, None), PlannedCondition(None, equal(CurrentValue(0, LONG), StageValue(1, 0, LONG))))
    columns = pa.schema({"x": LONG, "t": pa.timestamp("us")})
    plan = Plan(
        grouped, Schema(columns, (), "t"), bits, (lifted("x", LONG),), (*leaves, *untils), measures=None, columns=("x",)
    )
    stages, _, rest = explain_plan(plan).partition("\n\nLifted columns")
    assert stages.splitlines()[4:] == [
        (
            "  2. group: followed by the next that matches, 2 times or more, consecutive, the longest loop only, "
            "less than 1 minute after the event taken before"
        ),
        "     until, lifted: bit 2, x = 9",
        "     2.1. b: begins with, 1 event or more, greedy, each less than 10 seconds after the one before it",
        "          lifted: bit 0, x > 1",
        "          until, script: x = b.x",
        "     2.2. group: directly next",
        "          2.2.1. c: begins with",
        "                 any event",
        "          2.2.2. d: NOT directly next",
        "                 lifted: bit 1, x < 0",
        "          2.2.3. e: directly next, 2 events, all combinations",
        "                 any event",
        "  3. f: NOT followed by any that matches, for 5 minutes after the event taken before",
        "     any event",
    ]
    assert "Key: none, all events are one sequence\n" in rest


number, two = CurrentValue(1, DOUBLE), ConstantValue(2, LONG)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (ConstantValue(None, LONG), "NULL"),
        (ConstantValue(value=True, type=BOOLEAN), "TRUE"),
        (ConstantValue("it's", STRING), "'it''s'"),
        (number, "(dep_delay * 1.1)"),
        (StageValue(0, 0, STRING, back=2), "last(late.origin, 2)"),
        (StageValue(0, 0, STRING, from_first=True), "first(late.origin)"),
        (StageValue(0, 0, STRING, back=1, from_first=True), "first(late.origin, 1)"),
        (Aggregate(Fold.AVG, 2, 1, DOUBLE), "avg(`end of day`.(dep_delay * 1.1))"),
        (Aggregate(Fold.COUNT, 1, None, LONG), "count(legs)"),
        (
            Operation(Operator.AND, (same_origin, same_origin), BOOLEAN),
            "(origin = late.origin) AND (origin = late.origin)",
        ),
        (Operation(Operator.NOT, (same_origin,), BOOLEAN), "NOT (origin = late.origin)"),
        (Operation(Operator.IS_NULL, (two,), BOOLEAN), "2 IS NULL"),
        (Operation(Operator.ADD, (Operation(Operator.NEGATE, (two,), LONG), two), LONG), "(-2) + 2"),
        (Operation(Operator.INTEGER_DIVIDE, (two, two), LONG), "2 DIV 2"),
        (Operation(Operator.CAST, (two,), DOUBLE), "cast(2 AS double)"),
        (Operation(Operator.CASE, (same_origin, two, two), LONG), "CASE WHEN origin = late.origin THEN 2 ELSE 2 END"),
        (Operation(Operator.COALESCE, (two, two), LONG), "coalesce(2, 2)"),
        (Operation(Operator.FAIL_IF, (same_origin, two), LONG), "fail_if(origin = late.origin, 2)"),
    ],
)
def test_script_as_text(script: Script, text: str) -> None:
    """Each kind of node is printed as SQL."""
    assert script_text(script, plan) == text
