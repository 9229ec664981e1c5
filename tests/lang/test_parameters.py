"""Parameters of patterns: their values as SQL literals, and where a `$name` is a parameter."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid.errors import PatternError
from cepheid.lang.documents import pattern_from_text, pattern_to_yaml
from cepheid.lang.expression import Call, Literal, Name
from cepheid.lang.parameters import make_parameter, string_literal
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.sql.tokens import Kind, tokenize
from cepheid.lang.stages.pattern import Pattern

ANY = Pattern.begin("a")
EXPECTED = "a number, text, True or False, a date, a datetime, a timedelta or a list of these is expected"
ITEM_EXPECTED = "a number, text, True or False, a date, a datetime or a timedelta is expected"
NOON = datetime(2026, 1, 31, 12)  # noqa: DTZ001 intentionally without a zone


@pytest.mark.parametrize(
    ("value", "sql", "type_"),
    [
        (5, "(5)", pa.int32()),
        (-5, "(-5)", pa.int32()),
        (1 << 40, "(1099511627776)", pa.int64()),
        (10**20, "(100000000000000000000)", pa.decimal128(21, 0)),
        (True, "(TRUE)", pa.bool_()),
        (0.1, "(0.1D)", pa.float64()),
        (-1e-7, "(-1e-07D)", pa.float64()),
        (Decimal("1.50"), "(1.50BD)", pa.decimal128(3, 2)),
        (Decimal("1E+3"), "(1000BD)", pa.decimal128(4, 0)),
        ("it's", r"'it\'s'", pa.string()),
        ("${env:HOME} \\", "'\\u0024{env:HOME} \\\\'", pa.string()),
        (date(2026, 1, 31), "(DATE '2026-01-31')", pa.date32()),
        (timedelta(minutes=90), "(INTERVAL '0 01:30:00' DAY TO SECOND)", pa.duration("us")),
        (timedelta(microseconds=-1), "(INTERVAL '-0 00:00:00.000001' DAY TO SECOND)", pa.duration("us")),
        (NOON, "(TIMESTAMP_NTZ '2026-01-31 12:00:00')", pa.timestamp("us")),
        (
            NOON.replace(tzinfo=timezone(timedelta(hours=1))),
            "(TIMESTAMP '2026-01-31 11:00:00Z')",
            pa.timestamp("us", "UTC"),
        ),
    ],
)
def test_values_are_typed_literals(value: Any, sql: str, type_: pa.DataType) -> None:
    """Each kind of value has its own SQL, which the parser reads as that value and type."""
    assert make_parameter("x", value).sql == sql
    literal = parse_expression(sql)
    assert isinstance(literal, Literal)
    assert (literal.value, literal.type) == (value, type_)


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.text("'\"\\u0024{}%_n$\n"))
def test_any_text_is_one_string(text: str) -> None:
    """Any text is written as one string token and read as the same text."""
    literal = parse_expression(string_literal(text))
    assert isinstance(literal, Literal)
    assert literal.value == text


@pytest.mark.parametrize(
    ("values", "messages"),
    [
        ({"x": None}, ["a value is expected, got None (parameter 'x')"]),
        (
            {"x": [[1]], "y": float("nan"), "z": Decimal("inf"), "t": 1j},
            [
                f"item 1: {ITEM_EXPECTED}, got list: [1] (parameter 'x')",
                f"{EXPECTED}, got float: nan (parameter 'y')",
                (f"{EXPECTED}, got Decimal: Decimal('Infinity') (parameter 'z')"),
                (f"{EXPECTED}, got complex: 1j (parameter 't')"),
            ],
        ),
        ({"x": 10**38}, [f"{10**38} has more than 38 digits, the most of a DECIMAL (parameter 'x')"]),
        ({"1x": 1}, ["'1x' cannot be the name of a parameter"]),
    ],
)
def test_refused_values(values: dict[str, Any], messages: list[str]) -> None:
    """All values that no literal can express are reported together."""
    with pytest.raises(PatternError) as error:
        ANY.with_parameters(**values)
    assert [str(problem).splitlines()[0] for problem in error.value.problems] == messages


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int8(-5), -5),
        (np.uint64(1 << 63), 1 << 63),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.bool_(1), True),
        (np.str_("x"), "x"),
        (np.datetime64("2026-01-31"), date(2026, 1, 31)),
        (np.datetime64("2026-01-31T12", "h"), NOON),
        (np.datetime64("2026-01-31T12", "ns"), NOON),
        (pd.Timestamp(NOON), NOON),
        (pd.Timestamp(NOON, tz="Europe/Berlin"), datetime(2026, 1, 31, 11, tzinfo=UTC)),
    ],
)
def test_values_of_numpy_and_pandas(value: Any, plain: Any) -> None:
    """They give the same literals as Python's own values."""
    given = make_parameter("x", value)
    assert (given, type(given.value)) == (make_parameter("x", plain), type(plain))


@pytest.mark.parametrize(
    "value", [np.datetime64("2026-01-31T12:00:00.000000001"), pd.Timestamp("2026-01-31 12:00:00.000000001")]
)
def test_nanoseconds_are_not_cut(value: Any) -> None:
    """A time with a fraction of a microsecond is refused, as in columns of events."""
    with pytest.raises(PatternError) as error:
        make_parameter("x", value)
    assert str(error.value) == "2026-01-31T12:00:00.000000001 has nanoseconds: round it to microseconds (parameter 'x')"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (pd.NaT, "NaT is not a time"),
        (np.datetime64("NaT"), "NaT is not a time"),
        (
            np.float64("nan"),
            f"{EXPECTED}, got float64",
        ),
        (
            np.complex128(1),
            f"{EXPECTED}, got complex128",
        ),
        (
            np.array([[1, 2]]),
            f"{EXPECTED}, got ndarray: a numpy.ndarray",
        ),
        (
            pd.DataFrame({"a": [1]}),
            f"{EXPECTED}, got DataFrame: a pandas.DataFrame of shape",
        ),
        ({"a": 1}, f"{EXPECTED}, got dict"),
        (b"ab", f"{EXPECTED}, got bytes"),
        ([], "the list is empty: IN takes at least one value"),
        (["a", None], "item 2 is None: leave it out, as IN is never true for NULL"),
        (
            np.array([0.5, np.nan]),
            f"item 2: {ITEM_EXPECTED}, got float64",
        ),
    ],
)
def test_values_that_cannot_be_used(value: Any, message: str) -> None:
    """A value that is not a single value, or that no literal can express, is refused."""
    with pytest.raises(PatternError, match=message):
        make_parameter("x", value)


@pytest.mark.parametrize(
    ("values", "stored", "sql"),
    [
        (["it's", "b", "it's"], ("it's", "b"), r"'it\'s', 'b'"),
        ((1, 1.0, True, Decimal("1.0")), (1, 1.0, True, Decimal("1.0")), "1, 1.0D, TRUE, 1.0BD"),
        ({3, 1, 2}, (1, 2, 3), "1, 2, 3"),
        (range(-1, 1), (-1, 0), "-1, 0"),
        (np.array(["2026-01-31"], "datetime64[D]"), (date(2026, 1, 31),), "DATE '2026-01-31'"),
        (pd.Series([NOON]), (NOON,), "TIMESTAMP_NTZ '2026-01-31 12:00:00'"),
        (pa.chunked_array([["a"], ["b"]]), ("a", "b"), "'a', 'b'"),
        (pl.Series(["a", "b"]), ("a", "b"), "'a', 'b'"),
    ],
)
def test_lists(values: Any, stored: tuple[Any, ...], sql: str) -> None:
    """A list, a set or a column of a table becomes the literals of its items; equal items count once."""
    given = make_parameter("x", values)
    assert (given.value, given.sql) == (stored, sql)
    assert isinstance(given.value, tuple)
    assert [*map(type, given.value)] == [*map(type, stored)]


def test_a_list_is_the_values_of_in() -> None:
    """The tree has the list's values where the list of IN or of LIKE ANY has its name, beside other items."""
    values = tuple(Literal(value, pa.int32(), (0, 1)) for value in (5, 6))
    found = parse_expression("a IN (1, $x)", {"x": values})
    assert found == Call(
        "in",
        (
            Name(("a",), ((0, 1),)),
            Literal(1, pa.int32(), (6, 7)),
            Literal(5, pa.int32(), (9, 11)),
            Literal(6, pa.int32(), (9, 11)),
        ),
        (0, 12),
    )


@pytest.mark.parametrize("text", ["a = $x", "a IN ($x + 1)", "$x", "f($x)", "a IN (($x))", "a BETWEEN 1 AND $x"])
def test_a_list_elsewhere_is_refused(text: str) -> None:
    """A list stands alone between the parentheses and commas of a list of SQL."""
    message = (
        r"the parameter 'x' is a list, which is for IN only .*\n.*\n.*\nWrite it alone, as in `column IN \(\$x\)`\."
    )
    with pytest.raises(PatternError, match=message):
        parse_expression(text, {"x": (Literal(5, pa.int32(), (0, 1)),)})


def test_later_values_replace_earlier_ones() -> None:
    """A later call replaces the values that it names and leaves the others; values that Python considers equal are
    distinguished.
    """
    pattern = ANY.with_parameters(x=1, y="a").with_parameters(x=2)
    assert [(parameter.name, parameter.value) for parameter in pattern.parameters] == [("x", 2), ("y", "a")]
    assert len({ANY.with_parameters(x=1), ANY.with_parameters(x=1.0), ANY.with_parameters(x=True)}) == 3


@pytest.mark.parametrize("text", ["'$x'", '"$x"', "`$x`", "r'$x'", "a /* $x */", "a -- $x", "a > 1 AND s = '$x'"])
def test_no_parameter_inside_quotes_and_comments(text: str) -> None:
    """A `$` in a string, a quoted name or a comment is text."""
    assert Kind.PARAMETER not in [token.kind for token in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "written"),
    [("a>$x", "$x"), ("$limit_1+a", "$limit_1"), ("a = $Größe -- b", "$Größe"), ("f('$', $x)", "$x"), ("`$`+$x", "$x")],
)
def test_places_of_parameters(text: str, written: str) -> None:
    """A parameter's token is its `$` and its name."""
    (token,) = [token for token in tokenize(text) if token.kind is Kind.PARAMETER]
    assert text[slice(*token.span)] == token.text == written


def test_a_parameter_is_a_literal_at_its_place() -> None:
    """The tree has the value where the text has the name."""
    literal = Literal(5, pa.int32(), (0, 1))
    assert parse_expression("a > $x", {"x": literal}) == Call(
        ">", (Name(("a",), ((0, 1),)), Literal(5, pa.int32(), (4, 6))), (0, 6)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a > $y", "no parameter named 'y' (column 5)\n  a > $y\n      ^^\nDid you mean 'yy'?"),
        ("a > $", "a value is expected, found '$' (column 5)\n  a > $\n      ^"),
        ("a > $ yy", "a value is expected, found '$' (column 5)\n  a > $ yy\n      ^"),
        ("a > $1", "a value is expected, found '$' (column 5)\n  a > $1\n      ^"),
        ("a $yy", "an operator or the end is expected, found '$yy' (column 3)\n  a $yy\n    ^^^"),
        ("'a' $yy", "an operator or the end is expected, found '$yy' (column 5)\n  'a' $yy\n      ^^^"),
        (
            "a > DATE $yy",
            (
                "DATE is for text in quotes, not for a parameter (column 5)\n  a > DATE $yy\n      ^^^^^^^^\n"
                "Write $yy alone, and give it a date."
            ),
        ),
        (
            "timestamp $yy",
            (
                "TIMESTAMP is for text in quotes, not for a parameter (column 1)\n  timestamp $yy\n  ^^^^^^^^^^^^^\n"
                "Write $yy alone, and give it a datetime."
            ),
        ),
        ("s.$yy", "a name is expected after the point, found '$yy' (column 3)\n  s.$yy\n    ^^^"),
        ("$yy()", "an operator or the end is expected, found '(' (column 4)\n  $yy()\n     ^"),
        ("cast(a AS $yy)", "a type is expected, found '$yy' (column 11)\n  cast(a AS $yy)\n            ^^^"),
    ],
)
def test_refused_texts(text: str, message: str) -> None:
    """A parameter stands for a value only: not for a name, a type, or a part of a literal."""
    with pytest.raises(PatternError) as error:
        parse_expression(text, {"yy": Literal(5, pa.int32(), (0, 1))})
    assert str(error.value) == message


def test_instants_are_stored_in_utc() -> None:
    """The same instant in two zones is the same value."""
    utc, other = NOON.replace(tzinfo=UTC), datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    assert ANY.with_parameters(x=utc) == ANY.with_parameters(x=other)


def test_a_length_is_an_interval_and_a_window() -> None:
    """A timedelta fits a condition and a length, and a document has it as text."""
    pattern = Pattern.begin("a").followed_by("b").where("at - a.at < $most").within("$window")
    given = pattern.with_parameters(most=timedelta(days=1, seconds=5), window=timedelta(hours=2))
    text = pattern_to_yaml(given)
    assert "interval: 1 00:00:05" in text
    assert pattern_from_text(text) == given
    shorter = pattern_from_text(text.replace("1 00:00:05", "90 minutes"))
    assert shorter.parameters[0].value == timedelta(minutes=90)
    with pytest.raises(PatternError, match="the length of months varies"):
        pattern_from_text(text.replace("1 00:00:05", "2 months"))


def test_a_length_beyond_sql_is_refused() -> None:
    """Python's lengths reach farther than SQL's."""
    with pytest.raises(PatternError, match=r"out of range for an INTERVAL, which ends at 106,751,991 days"):
        make_parameter("x", timedelta.max)
