"""Messages name operators as users write them, and not by the names that these have in the tree."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from cepheid import Pattern, PatternError, detect
from cepheid.lang.sql.parser import parse_expression

EVENTS = pa.table({"at": [datetime(2026, 3, 2)], "s": ["x"], "i": pa.array([1], pa.int32()), "b": [True], "x": [1.5]})  # noqa: DTZ001


LENGTH = "A length of time is written as in INTERVAL 5 MINUTES."
CHAIN = "Each comparison stands alone, as in 1 < x AND x < 3."
BOOLEAN = "A BOOLEAN is compared with TRUE or FALSE."


def problem(condition: str) -> str:
    """The message about the condition of the second stage."""
    with pytest.raises(PatternError) as raised:
        detect(EVENTS, Pattern.begin("p").next("q").where(condition), time="at")
    return str(raised.value)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("-p.b > i", "'-' cannot be applied to BOOLEAN"),
        ("+p.b > i", "'+' cannot be applied to BOOLEAN"),
        ("p.s ILIKE ANY ('x', s)", "ILIKE ANY cannot be applied across events"),
        ("trim(BOTH p.s FROM s) = 'x'", "trim(… FROM …) cannot be applied across events"),
        ("p.i IS DISTINCT FROM b", "cannot compare INT with BOOLEAN"),
        ("(i = 1) & (s = 'x')", "'&' takes integers, got BOOLEAN, BOOLEAN. Write AND"),
        ("(i = 1) | (s = 'x')", "'|' takes integers, got BOOLEAN, BOOLEAN. Write OR"),
        ("i | s", "'|' takes integers, got INT, STRING"),
        ("i IS TRUE", "'IS' needs values of one type, got INT, BOOLEAN"),
        ("overlay(s PLACING 'x' FROM 1) = 'x'", "'overlay(… PLACING …)' is not available in process"),
    ],
)
def test_operators_as_written(condition: str, message: str) -> None:
    """An operator or a function with words between its arguments is named as it is written."""
    assert problem(condition).startswith(message)


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("at > 2026-02-20", "A date is written in quotes: '2026-02-20'."),
        ("at BETWEEN 2026-02-20 AND 2026-3-1", "A date is written in quotes: '2026-02-20'."),
        ("greatest(at, p.at) > 2026-02-20", "A date is written in quotes: '2026-02-20'."),
        ("s = 'pay' || x > 1", "|| joins texts: between conditions write OR."),
        ("i > 1 || s = 'x'", "|| joins texts: between conditions write OR."),
        ("(i > 1) || (s = 'x')", "|| joins texts: between conditions write OR."),
        ("greatest(i, p.i) > 1 || s = 'x'", "|| joins texts: between conditions write OR."),
        ("s = concat('a', 1) = 3", CHAIN),
        ("b = 2026-02-30-1", None),
        ("uper(s) || 'x' = s || 'y' = i", "Did you mean 'power' or 'upper'?"),
        (
            "at - p.at < timedelta(days=1)",
            "A length of time is written as in INTERVAL 1 DAY or INTERVAL '1 12:00' DAY TO",
        ),
        ("at > datetime(2026, 1, 1)", "A time is written as text, '2026-12-31 12:00:00'."),
        ("at - p.at < '5 minutes'", "A length of time is written INTERVAL '5 minutes'."),
        ("at - at < '5 minutes'", "A length of time is written INTERVAL '5 minutes'."),
        ("INTERVAL 1 DAY > '1'", "A length of time is written INTERVAL '1'."),
        *(
            (text, LENGTH)
            for text in ("at - p.at < 300", "at - at BETWEEN 1.5 AND 9", "p.at + 300 > at", "at - 1 < at")
        ),
        *((text, CHAIN) for text in ("1 < i < 3", "1 < p.i <= i")),
        *((text, BOOLEAN) for text in ("b = 1", "b IN (0, 1)", "p.b <> 0")),
        *((text, "Write NOT.") for text in ("~b", "~(i > 1)")),
        ("~x = 1", None),
        ("x ^ 2 > 4", "A power is written power(x, 2)."),
        ("price.foo > 1", "Known here: p, q"),
        *((text, "A column of the event itself is written alone: x.") for text in ("df.x > 1", "event.x > 1")),
        ("PREV(x) < x", "An earlier event is one of an earlier stage, as in last(stage.price)."),
        ("NEXT(x, foo) < x", "A later event is one of a later stage, whose condition compares the two."),
        *(
            (text, "Another type is written as in CAST(x AS STRING).")
            for text in ("CONVERT(i, char) = s", "convert(i) = s")
        ),
        ("p[0].x > 1", "Write p.column, first(p.column, 1) for its second event, or count(p)."),
    ],
)
def test_hints_for_what_other_languages_have(condition: str, hint: str | None) -> None:
    """The last line is the hint, if what is written is known."""
    found = problem(condition).splitlines()
    assert found[-1].startswith(hint) if hint else len(found) == 3


def test_what_is_known_across_events() -> None:
    """The list of what is known across events has each operator once, as it is written."""
    hint = problem("md5(concat(s, p.s)) = 'X'").splitlines()[-1]
    assert hint.startswith("Known across events: AND, OR, NOT, =, ")
    assert "IS NULL" in hint
    assert "negate" not in hint
    assert hint.count("CASE") == 1


@pytest.mark.parametrize(
    ("condition", "written"),
    [("is_null(s)", "IS NULL"), ("negate(i) > 0", "-"), ("case_of(i, 1, 2) = 2", "CASE"), ("lambda(i)", "->")],
)
def test_names_in_the_tree_are_no_functions(condition: str, written: str) -> None:
    """A call of an operator's name in the tree is refused, as Spark has no such function."""
    with pytest.raises(PatternError, match="there is no function") as raised:
        parse_expression(condition)
    assert str(raised.value).endswith(f"Spark's SQL writes {written}.")


@pytest.mark.parametrize(
    ("condition", "word"), [("amount > in.amount", "in"), ("when = 1", "when"), ("start < end", "end")]
)
def test_a_stage_or_column_with_the_name_of_a_word(condition: str, word: str) -> None:
    """A name that is a word of SQL is written in back-quotes; the message says so."""
    with pytest.raises(PatternError, match=f"{word} is a word of SQL") as raised:
        parse_expression(condition)
    assert str(raised.value).endswith(f"a stage or column of this name is written in back-quotes, `{word}`.")


def test_a_function_without_arguments() -> None:
    """A function that needs arguments and has none is a problem of the pattern, as any other."""
    assert "coalesce" in problem("coalesce() = 1")
