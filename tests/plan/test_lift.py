"""Which parts of a condition become bits, lifted columns and scripts, written as text."""

# ruff: noqa: E501 -- one case a line is easiest to read

from __future__ import annotations

from collections.abc import Callable

import pytest

from cepheid.errors import PatternError
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.conditions.script import Aggregate, ConstantValue, CurrentValue, Operation, Script, StageValue
from cepheid.plan.conditions.types import sql_name
from cepheid.plan.stages.plan import Plan


def show(script: Script, plan: Plan) -> str:
    match script:
        case ConstantValue(value):
            return repr(value)
        case CurrentValue(column):
            return f"[{plan.values[column].sql}]"
        case StageValue(stage, column, _, back, from_first):
            which = "first" if from_first else "last"
            return f"{which}{back or ''} {plan.pattern.stages[stage].name} [{plan.values[column].sql}]"
        case Aggregate(fold, stage, column):
            what = "*" if column is None else f"[{plan.values[column].sql}]"
            return f"{fold.value} {plan.pattern.stages[stage].name} {what}"
        case Operation(operator, operands, type_):
            to = f" {sql_name(type_)}" if operator.value == "cast" else ""
            return f"({operator.value}{to} {', '.join(show(operand, plan) for operand in operands)})"


OF_ONE_EVENT = "Take the value of a single event: last(stage.time) in place of max(stage.time)."


def of(condition: str, plan: Callable[..., Plan]) -> str:
    """`bit | script` of a condition of stage `two`, a loop after stage `one`."""
    built = plan(Pattern.begin("one").followed_by("two").where(condition).one_or_more())
    bit, script = built.conditions[1].bit, built.conditions[1].script
    return " | ".join(["-" if bit is None else built.bits[bit].sql, "-" if script is None else show(script, built)])


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n > 1 and s = 'a'", "n > 1 and s = 'a' | -"),
        ("n > 1 and one.s = s and ok", "(n > 1) AND (ok) | (= last one [s], [s])"),
        ("one.s = s or ok", "- | (or (= last one [s], [s]), [ok])"),
        ("x > one.x * 1.5D", "- | (< last one [x * 1.5D], [x])"),
        ("x > avg(two.x * 2)", "- | (< avg two [x * 2], [x])"),
        ("price * 1.1 > one.price", "- | (< (cast DECIMAL(11, 3) last one [price]), [price * 1.1])"),
        ("one.place.city = place.city", "- | (= last one [place.city], [place.city])"),
        ("first(two.n) = last(two.n, 2)", "- | (= first two [(n)], last2 two [(n)])"),
        (
            "count(two) < 3 and count(two.s) = 0",
            "- | (and (< count two *, 3), (= count two [CASE WHEN (s) IS NOT NULL THEN TRUE END], 0))",
        ),
        ("n != one.n", "- | (not (= [n], last one [n]))"),
        ("n between one.n and 9", "- | (and (<= last one [n], [n]), (<= [n], 9))"),
        (
            "d - one.d > interval 1 day",
            "- | (not (<= (- [CAST(d AS TIMESTAMP_NTZ)], last one [CAST(d AS TIMESTAMP_NTZ)]), 86400000000))",
        ),
        ("time > one.d", "- | (< last one [CAST(d AS TIMESTAMP)], [time])"),
        ("one.time > '2024-01-01' or n > one.n", "- | (or last one [time > '2024-01-01'], (< last one [n], [n]))"),
        (
            "greatest(time, one.time) > '2024-01-01'",
            "- | (< [CAST('2024-01-01' AS TIMESTAMP)], (greatest [time], last one [time]))",
        ),
        (
            "one.time > one.s or n > one.n",
            "- | (or (not (<= last one [time], (fail if (and (is null last one [try_cast(s AS TIMESTAMP)]), (not last one [(s) IS NULL])), last one [try_cast(s AS TIMESTAMP)]))), (< last one [n], [n]))",
        ),
        ("n in (one.n, 3)", "- | (or (= [n], last one [n]), (= [n], 3))"),
        ("time - one.time < interval 2 hours", "- | (< (- [time], last one [time]), 7200000000)"),
        ("nullif(n, one.n) is not null", "- | (not (is null (case (= [n], last one [n]), None, [n])))"),
        ("case n when 1 then one.n else 2 end = 2", "- | (= (case (= [n], 1), last one [n], 2), 2)"),
        ("f > one.f", "- | (< last one [CAST(f AS DOUBLE)], [CAST(f AS DOUBLE)])"),
        ("ONE.N = n", "- | (= last one [N], [N])"),
        # A part that can fail stays after its guard.
        ("n <> 0 and 1 / n > 2", "n <> 0 and 1 / n > 2 | -"),
        ("n <> 0 and one.n > 7 div n", "n <> 0 | (not (<= (cast BIGINT last one [n]), (div 7, (cast BIGINT [n]))))"),
        ("n = one.n and 1 / n > 2", "- | (and (= [n], last one [n]), (not (<= (/ 1.0, (cast DOUBLE [n])), 2.0)))"),
        ("one.n + 1 > n", "- | (not (<= (+ last one [n], 1), [n]))"),
        (
            "cast(one.s as int) = n",
            "- | (= (fail if (and (is null last one [try_cast(s AS int)]), (not last one [(s) IS NULL])), last one [try_cast(s AS int)]), [n])",
        ),
        ("n + 1 > one.n", "- | (< last one [n], [n + 1])"),
        ("ok and sum(10 / two.n) > n", "ok | (< (cast DOUBLE [n]), sum two [CASE WHEN (ok) THEN (10 / n) END])"),
        # A missing event gives NULL, except in operations that turn NULL into a value.
        ("coalesce(one.n, 0) = n", "- | (= last one [coalesce(n, 0)], [n])"),
        ("coalesce(two.n, 0) = n", "- | (= (coalesce last two [n], 0), [n])"),
        ("two.n is null", "- | (is null last two [n])"),
        ("last(coalesce(two.n, 0)) = n", "- | (= last two [(coalesce(n, 0))], [n])"),
    ],
)
def test_lifted(condition: str, expected: str, plan: Callable[..., Plan]) -> None:
    """The largest parts about one event are the user's own text, without stages; the rest is a script."""
    assert of(condition, plan) == expected


def test_equal_parts_are_shared(plan: Callable[..., Plan]) -> None:
    """Parts with the same meaning are one bit or one column, however they are written."""
    built = plan(
        Pattern.begin("one").where("n > 1").next("two").where("N>1 and s = one.s").next("three").where("two.s = one.s")
    )
    assert [c.bit for c in built.conditions] == [0, 0, None]
    assert [(v.sql) for v in built.values] == ["s"]


def test_or_where_is_or_with_everything_before(plan: Callable[..., Plan]) -> None:
    """where, or_where, where is (a OR b) AND c; each text is put in parentheses."""
    built = plan(Pattern.begin("one").where("n > 1").or_where("ok").where("x > 2 or ok"))
    assert [b.sql for b in built.bits] == ["((n > 1) OR (ok)) AND (x > 2 or ok)"]
    built = plan(Pattern.begin("one").next("two").where("n > 1").or_where("s = one.s"))
    script = built.conditions[1].script
    assert script is not None
    assert show(script, built) == "(or [n > 1], (= [s], last one [s]))"


def test_measures_have_slots(plan: Callable[..., Plan]) -> None:
    """A measure is an expression over values of the stages' events; these values may have any type."""
    measures = {"n": "count(one)", "total": "sum(one.x * 2) + 1", "tags": "first(one.tags)", "same": "one.n + one.n"}
    built = plan(Pattern.begin("one").one_or_more(), measures=measures)
    assert built.measures is not None
    shown = {m.name: (m.sql, {k: show(v, built) for k, v in m.slots.items()}, sql_name(m.type)) for m in built.measures}
    assert shown == {
        "n": ("_slot0", {"_slot0": "count one *"}, "BIGINT"),
        "total": ("_slot1 + 1", {"_slot1": "sum one [x * 2]"}, "DOUBLE"),
        "tags": ("_slot2", {"_slot2": "first one [(tags)]"}, "ARRAY<STRING>"),
        "same": ("_slot3 + _slot3", {"_slot3": "last one [n]"}, "INT"),
    }


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "b * 1.1 > one.b",
            "DECIMAL(23, 1) has more than 18 digits, too many for a condition across events",
            "Cast the values in it to DOUBLE or to DECIMAL(18, 1).",
        ),
        (
            "one.tags = tags",
            "a condition across events cannot hold ARRAY<STRING>",
            "It can hold BOOLEAN, numbers, STRING, DATE, TIMESTAMP, TIMESTAMP_NTZ and INTERVAL DAY TO SECOND.",
        ),
        ("f * one.f > 1", "'*' on FLOAT is not known across events", "Cast one side to DOUBLE."),
        ("max(one.d) + n > d", "'+' of DATE and INT is not known across events", OF_ONE_EVENT),
        ("price div one.price > 1", "div of decimals is not known across events", "Cast both to BIGINT."),
        (
            "(time - one.time) * 2 > interval 1 day",
            "an interval cannot be multiplied or divided across events",
            "Lengths of time are added, x + x, and compared with a constant: x > INTERVAL 30 MINUTES.",
        ),
        (
            "cast(greatest(n, one.n) as date) > d",
            "INT cannot become DATE in a condition across events",
            "Cast one side, so that both have one type; the host can compute a cast of one event's value.",
        ),
        ("sum(two.s) = 'a'", "sum cannot be applied to STRING", None),
        (
            "avg(cast(two.price as decimal(18, 2))) > 1",
            "avg cannot be applied to DECIMAL(18, 2)",
            "Cast it to DOUBLE or to DECIMAL(14, 2).",
        ),
    ],
)
def test_refused_across_events(condition: str, message: str, hint: str | None, plan: Callable[..., Plan]) -> None:
    """Types and operations that scripts do not support are refused with the type and what to do instead."""
    with pytest.raises(PatternError) as error:
        of(condition, plan)
    assert [(p.message, p.hint) for p in error.value.problems] == [(message, hint)]


def test_unknown_function_across_events_names_the_known_ones(plan: Callable[..., Plan]) -> None:
    """A function of one event is the host's; for several events only functions of scripts are possible."""
    with pytest.raises(PatternError) as error:
        of("md5(s || one.s) = 'a'", plan)
    (problem,) = error.value.problems
    assert problem.message == "md5 cannot be applied across events"
    assert str(problem.hint).startswith("Known across events: AND, OR, NOT, =, <=>")
