"""All problems of a pattern, its schema and its measures: their messages and positions, reported together."""

# ruff: noqa: E501 -- messages are written as they are printed

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from cepheid.errors import LimitExceeded, PatternError, SchemaError
from cepheid.events.batch import Schema
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.stages.build import check_pattern
from cepheid.plan.stages.plan import Plan

BuildPlan = Callable[..., Plan]


def two(condition: str) -> Pattern:
    return Pattern.begin("one").next("two").where(condition).one_or_more().followed_by("three")


def problems_of(plan: BuildPlan, pattern: Pattern, **options: object) -> list[str]:
    with pytest.raises(PatternError) as error:
        plan(pattern, **options)
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (
            "prise > 1",
            "no column named 'prise' (stage 'two', where, column 1)\n  prise > 1\n  ^^^^^\nDid you mean 'price'?",
        ),
        (
            "n = ones.n",
            (
                "no column or stage named 'ones' (stage 'two', where, column 5)\n  n = ones.n\n      ^^^^\n"
                "Did you mean 'one'?"
            ),
        ),
        (
            "n = one.prise",
            "no column named 'prise' (stage 'two', where, column 9)\n  n = one.prise\n          ^^^^^\nDid you mean 'price'?",
        ),
        (
            "place.cty = 'x'",
            "no field 'cty' in 'place' (stage 'two', where, column 7)\n  place.cty = 'x'\n        ^^^\nDid you mean 'city'?",
        ),
        (
            "n.x = 1",
            "'n' has no fields: it is not a STRUCT (stage 'two', where, column 3)\n  n.x = 1\n    ^",
        ),
        (
            "n = three.n",
            (
                "stage 'three' comes later, so it has no events yet (stage 'two', where, column 5)\n  n = three.n\n      ^^^^^\n"
                "Stages that can be referred to here: one, two"
            ),
        ),
        (
            "count(three) = 1",
            (
                "stage 'three' comes later, so it has no events yet (stage 'two', where, column 7)\n  count(three) = 1\n"
                "        ^^^^^\nStages that can be referred to here: one, two"
            ),
        ),
        (
            "count(ones) = 1",
            "no stage named 'ones' (stage 'two', where, column 7)\n  count(ones) = 1\n        ^^^^\nDid you mean 'one'?",
        ),
        (
            "cnt(one) > 2",
            "no function 'cnt' (stage 'two', where, column 1)\n  cnt(one) > 2\n  ^^^^^^^^\nDid you mean count(one)?",
        ),
        (
            "one = 1",
            (
                "'one' is a stage, not a value (stage 'two', where, column 1)\n  one = 1\n  ^^^\n"
                "Write one.column, first(one.column, 1) for its second event, or count(one)."
            ),
        ),
        (
            "avg(x) > 1",
            (
                "avg(…) looks over a stage's events, not the current one (stage 'two', where, column 5)\n  avg(x) > 1\n      ^\n"
                "Name the stage: avg(stage.x)."
            ),
        ),
        (
            "max(sum(two.n)) > 1",
            "sum(…) cannot stand inside max(…) (stage 'two', where, column 5)\n  max(sum(two.n)) > 1\n      ^^^^^^^^^^",
        ),
        (
            "sum(one.n + two.n) > 1",
            (
                "the argument of sum is about several stages (stage 'two', where, column 5)\n  sum(one.n + two.n) > 1\n"
                "      ^^^^^^^^^^^^^\nWrite sum(stage.column), with columns of one stage."
            ),
        ),
        (
            "sum(1) > 1",
            (
                "the argument of sum names no stage (stage 'two', where, column 5)\n  sum(1) > 1\n      ^\n"
                "Write sum(stage.column), with columns of one stage."
            ),
        ),
        (
            "last(one.n, n) > 1",
            (
                "the second argument of last is a whole number, 0 or more (stage 'two', where, column 13)\n"
                "  last(one.n, n) > 1\n              ^"
            ),
        ),
        (
            "avg(one.n, 2) > 1",
            "avg takes 1 argument (stage 'two', where, column 1)\n  avg(one.n, 2) > 1\n  ^^^^^^^^^^^^^",
        ),
        ("n + 1", "a condition must be BOOLEAN, this is INT (stage 'two', where, column 1)\n  n + 1\n  ^^^^^"),
        (
            "one.n",
            "a condition must be BOOLEAN, this is INT (stage 'two', where, column 1)\n  one.n\n  ^^^^^",
        ),
        (
            "n > ok",
            "cannot compare INT with BOOLEAN (stage 'two', where, column 1)\n  n > ok\n  ^^^^^^",
        ),
        (
            "ok = one.n",
            "cannot compare BOOLEAN with INT (stage 'two', where, column 1)\n  ok = one.n\n  ^^^^^^^^^^",
        ),
        ("foo(n) = 1", "unknown function 'foo' (stage 'two', where, column 1)\n  foo(n) = 1\n  ^^^^^^"),
        (
            "current_date > d",
            (
                "current_date does not depend on the events alone, so the same events could give different matches "
                "(stage 'two', where, column 1)\n  current_date > d\n  ^^^^^^^^^^^^"
            ),
        ),
        ("n >", "a value is expected, but the text ends here (stage 'two', where, column 3)\n  n >\n    ^"),
    ],
)
def test_condition(condition: str, expected: str, plan: BuildPlan) -> None:
    """A wrong condition is reported with the stage, the text and a caret."""
    assert problems_of(plan, two(condition)) == [expected]


def test_all_problems_come_at_once(plan: BuildPlan) -> None:
    """Problems of several conditions, names and quantifiers are one error."""
    pattern = (
        Pattern.begin("one")
        .where("m > 1 and k > 1")
        .where("(n")
        .consecutive()
        .next("ONE")
        .where("n + ok > 1")
        .or_where("foo(n)")
    )
    assert [line.splitlines()[0] for line in problems_of(plan, pattern)] == [
        "two stages are named 'ONE'",
        "consecutive needs a loop (stage 'one')",
        "no column named 'm' (stage 'one', where 1, column 1)",
        "no column named 'k' (stage 'one', where 1, column 11)",
        ") is expected, but the text ends here (stage 'one', where 2, column 2)",
        "'+' cannot be applied to INT and BOOLEAN (stage 'ONE', where 1, column 1)",
        "unknown function 'foo' (stage 'ONE', or_where 2, column 1)",
    ]


def test_names_of_columns(plan: BuildPlan) -> None:
    """A stage cannot have the name of a column of the schema."""
    assert problems_of(plan, Pattern.begin("a").next("Price")) == [
        (
            "stage 'Price' has the name of a column of the events ('price')\n"
            "Case does not count; choose another name for the stage."
        )
    ]


def test_an_optional_stage_alone_is_a_pattern(plan: BuildPlan) -> None:
    """A pattern may consist of one optional stage."""
    assert plan(Pattern.begin("a").optional()).conditions[0].bit is None


def test_too_many_conditions(plan: BuildPlan) -> None:
    """The mask of an event has 63 bits for conditions, so more are refused."""
    pattern = Pattern.begin("s0").where("n > 0")
    for i in range(1, 64):
        pattern = pattern.next(f"s{i}").where(f"n > {i}")
    with pytest.raises(LimitExceeded) as limit:
        plan(pattern)
    message = "a pattern can have at most 63 different conditions, this has 64. Split it into several"
    assert str(limit.value) == message


def test_measures(plan: BuildPlan) -> None:
    """Measures have names of their own and use stages; their problems are reported together."""
    measures = {"Key": "count(one)", "n": "n", "N": "1", "y": "oops(one.n)", "z": "one.n +", "w": "q"}
    pattern = Pattern.begin("one").next("two")
    assert problems_of(plan, pattern, measures=measures) == [
        "measure 'Key' has the name of another column of the output\nChoose another name.",
        "two measures are named 'N', as case does not count",
        "which stage's 'n'? A measure is about a whole match (measure 'n', column 1)\n  n\n  ^\nWrite one.n or two.n.",
        "a value is expected, but the text ends here (measure 'z', column 7)\n  one.n +\n        ^",
        (
            "no column named 'q' (measure 'w', column 1)\n  q\n  ^\n"
            "If it is a text, write 'q'. Known here: key, time, s, n, b, x, f, price, d, ok, place, tags"
        ),
        "unknown function 'oops' (measure 'y', column 1)\n  oops(one.n)\n  ^^^^^^^^^^^",
    ]


def test_schema(plan: BuildPlan) -> None:
    """Key, time, sequence and columns must exist and have suitable types; all problems are one error."""
    columns = pa.schema(
        [("k", pa.map_(pa.string(), pa.int32())), ("t", pa.int64()), ("q", pa.struct([("x", pa.int8())]))]
    )
    nested = pa.struct([("x", pa.list_(pa.int8()))])
    with pytest.raises(SchemaError) as error:
        plan(Pattern.begin("a"), Schema(columns, ("k", "kk"), "t", "q"), columns=["z"])
    assert str(error.value).splitlines() == [
        "key: no column named 'kk'. Did you mean 'k'?",
        "columns: no column named 'z'. Known here: k, t, q",
        (
            "key: 'k' is of type MAP<STRING, INT>; a key cannot be or hold a MAP or an ARRAY. Cast it, for example to "
            "STRING"
        ),
        "time: 't' is of type BIGINT; event time is a TIMESTAMP, TIMESTAMP_NTZ or DATE: cast it",
        "sequence: 'q' is of type STRUCT<x: TINYINT>, whose values have no order",
    ]
    with pytest.raises(SchemaError, match="a key cannot be or hold a MAP or an ARRAY"):
        plan(Pattern.begin("a"), Schema(pa.schema([("k", nested), ("t", pa.timestamp("ns"))]), ("k",), "t"))


def test_columns_default_to_all(plan: BuildPlan) -> None:
    """Without `columns` every event column is in the output; with it, only those named."""
    assert plan(Pattern.begin("a"), columns=["s"]).columns == ("s",)
    assert plan(Pattern.begin("a")).columns[:3] == ("key", "time", "s")


def test_check_without_events() -> None:
    """Without a schema, syntax, references to stages and quantifiers are checked, but columns are not."""
    pattern = (
        Pattern.begin("one").where("whatever > 1").next("two").where("n = three.x.y and count(four) = 1").next("three")
    )
    assert [str(p).splitlines()[0] for p in check_pattern(pattern.longest(), {"kind": "x.y + one.z"})] == [
        "longest needs a loop (stage 'three')",
        "measure 'kind' has the name of another column of the output",
        "stage 'three' comes later, so it has no events yet (stage 'two', where, column 5)",
        "no stage named 'four' (stage 'two', where, column 25)",
        "which stage's 'x'? A measure is about a whole match (measure 'kind', column 1)",
    ]
    assert check_pattern(Pattern.begin("one").where("a.b.c = 1 and foo(x)")) == []
