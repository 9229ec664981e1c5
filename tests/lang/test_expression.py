"""SQL text as an expression: what each form becomes, the span of each node, and the messages for refused texts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.errors import PatternError
from cepheid.lang.expression import Call, Expression, Literal, Name
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.sql.tokens import QUOTE_IN_TEXT, STRAIGHT


def show(expression: Expression) -> str:
    match expression:
        case Literal(value):
            return repr(value)
        case Name(parts):
            return ".".join(parts)
        case Call(function, args):
            return f"{function}({', '.join(show(arg) for arg in args)})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b is null", "is_null(=(a, b))"),
        ("a = b < c", "<(=(a, b), c)"),
        ("not a = b", "not(=(a, b))"),
        ("a or b and c and d", "or(a, and(b, c, d))"),
        ("a + b || c", "concat(+(a, b), c)"),
        ("a | b & c ^ d << 1", "|(a, ^(&(b, c), <<(d, 1)))"),
        ("-a * b", "*(negate(a), b)"),
        ("a - -1", "-(a, -1)"),
        ("a % b div c", "div(%(a, b), c)"),
        ("a <> b", "!=(a, b)"),
        ("a == b", "=(a, b)"),
        ("a between 1 and 2 and m", "and(between(a, 1, 2), m)"),
        ("a not in (1, 2)", "not(in(a, 1, 2))"),
        ("s not like 'x' || y", "not(like(s, concat('x', y)))"),
        ("s regexp 'x'", "rlike(s, 'x')"),
        ("a is not true", "not(<=>(a, True))"),
        ("a is distinct from b", "not(<=>(a, b))"),
        ("a is not null", "is_not_null(a)"),
        ("case when m then 1 end", "case(m, 1, None)"),
        ("case a when 1 then 2 else 3 end", "case_of(a, 1, 2, 3)"),
        ("cast(a as decimal(10, 2))", "cast(a, 'decimal(10, 2)')"),
        ("-a::double", "negate(cast(a, 'double'))"),
        ("late.`the city`.x", "late.the city.x"),
        ("ar[0].x", "field(index(ar, 0), 'x')"),
        ("NVL2(a, 1, 2)", "nvl2(a, 1, 2)"),
        ("trim('x' FROM a)", "trim_from('both', 'x', a)"),
        ("Substr(a, 1)", "substr(a, 1)"),
        ("exists(ar, x -> x > 1)", "exists(ar, lambda(x, >(x, 1)))"),
        ("timestampdiff(HOUR, a, b)", "timestampdiff('hour', a, b)"),
        ("interval 1 month", "interval('1 MONTH')"),
        ("a /* why */ + b -- so\n", "+(a, b)"),
    ],
)
def test_form(text: str, expected: str) -> None:
    """Each form of SQL becomes the call that Spark would make of it; functions keep the name that was written."""
    assert show(parse_expression(text)) == expected


def test_pattern_functions_keep_every_argument() -> None:
    """`last(x.price, 2)` keeps its 2, which sqlglot's own parser drops."""
    assert show(parse_expression("last(x.price, 2)")) == "last(x.price, 2)"
    assert show(parse_expression("first(x.price, 3) + count(x)")) == "+(first(x.price, 3), count(x))"


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("1", 1, pa.int32()),
        ("2147483648", 2147483648, pa.int64()),
        ("-2147483648", -2147483648, pa.int32()),
        ("99999999999999999999", Decimal(99999999999999999999), pa.decimal128(20, 0)),
        ("1L", 1, pa.int64()),
        ("5S", 5, pa.int16()),
        ("3Y", 3, pa.int8()),
        ("1.5", Decimal("1.5"), pa.decimal128(2, 1)),
        (".5", Decimal("0.5"), pa.decimal128(1, 1)),
        ("5.", Decimal(5), pa.decimal128(1, 0)),
        ("1.5D", 1.5, pa.float64()),
        ("1.5F", 1.5, pa.float32()),
        ("1e3", 1000.0, pa.float64()),
        ("1.5BD", Decimal("1.5"), pa.decimal128(2, 1)),
        ("1e2BD", Decimal(100), pa.decimal128(3, 0)),
        ("'it''s'", "it's", pa.string()),
        ("'a' 'b'", "ab", pa.string()),
        (r"'a\n\u0041\%'", "a\nA\\%", pa.string()),
        (r"r'a\n'", r"a\n", pa.string()),
        ('"x"', "x", pa.string()),
        ("x'1f'", b"\x1f", pa.binary()),
        ("date '2020-1-2'", date(2020, 1, 2), pa.date32()),
        ("timestamp_ntz'2020-01-02 03:04:05.6'", datetime(2020, 1, 2, 3, 4, 5, 600_000), pa.timestamp("us")),  # noqa: DTZ001
        ("timestamp'2020-01-02 03:04:05Z'", datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC), pa.timestamp("us", "UTC")),
        ("interval '1' day", timedelta(days=1), pa.duration("us")),
        ("interval 2 hours 3 minutes", timedelta(hours=2, minutes=3), pa.duration("us")),
        ("interval '1 day 2 hours'", timedelta(hours=26), pa.duration("us")),
        ("interval '-1 02:03:04.5' day to second", -timedelta(days=1, seconds=7384.5), pa.duration("us")),
        ("true", True, pa.bool_()),
        ("null", None, pa.null()),
    ],
)
def test_literal(text: str, value: object, type_: pa.DataType) -> None:
    """Constants have the value and the type that Spark gives them."""
    literal = parse_expression(text)
    assert isinstance(literal, Literal)
    assert (literal.value, literal.type) == (value, type_)


AT_END = "an operator or the end is expected"
AFTER_IS = "NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM is expected after IS"
GIVEN_LATER = "A value that is given later is written $name."
OF_ARRAY = "A list is written in parentheses, and a value in an array is array_contains(array, value)."
WHOLE = "only seconds have a fraction. Write smaller units, as in INTERVAL 1 HOUR 30 MINUTES"
NO_METHODS = "SQL has no methods: a function has its value as an argument, as in startswith(kind, 'p')."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a value is expected, but the text ends here (column 1)\n  \n  ^"),
        ("a +", "a value is expected, but the text ends here (column 3)\n  a +\n    ^"),
        ("a b", "an operator or the end is expected, found 'b' (column 3)\n  a b\n    ^"),
        ("(a", ") is expected, but the text ends here (column 2)\n  (a\n   ^"),
        ("a > 'x", "a quote or comment is not closed (column 1)\n  a > 'x\n  ^^^^^^"),
        ("a in ()", "a value is expected, found ')' (column 7)\n  a in ()\n        ^"),
        (
            "a; drop table x",
            "one expression is expected; a second statement is refused (column 2)\n  a; drop table x\n   ^",
        ),
        ("a && b", "an operator or the end is expected, found '&&' (column 3)\n  a && b\n    ^^\nWrite AND."),
        ("a =< 2", "a value is expected, found '<' (column 4)\n  a =< 2\n     ^\nWrite <=."),
        ("a => 2", "an operator or the end is expected, found '=>' (column 3)\n  a => 2\n    ^^\nWrite >=."),
        ("a is (1)", f"{AFTER_IS}, found '(' (column 6)\n  a is (1)\n       ^"),
        ("a is none", f"{AFTER_IS}, found 'none' (column 6)\n  a is none\n       ^^^^\nWrite IS NULL."),
        ("a.b('c')", f"an operator or the end is expected, found '(' (column 4)\n  a.b('c')\n     ^\n{NO_METHODS}"),
        ("a === 2", "a value is expected, found '=' (column 5)\n  a === 2\n      ^\nWrite =."),
        ("a in (select 1)", "subqueries are refused (column 7)\n  a in (select 1)\n        ^^^^^^"),
        (
            "sum(a) over (order by b)",
            (
                "window functions are refused after sum(…) (column 8)\n  sum(a) over (order by b)\n         ^^^^\n"
                "Refer to earlier events by their stage."
            ),
        ),
        ("sum(distinct a.b)", "DISTINCT is refused in sum(…) (column 5)\n  sum(distinct a.b)\n      ^^^^^^^^"),
        (
            "count(*)",
            (
                "'*' is refused (column 7)\n  count(*)\n        ^\n"
                "Write count(stage) for the number of events that a stage has so far."
            ),
        ),
        (
            "sum(a.b) filter (where c)",
            "FILTER is refused after sum(…) (column 10)\n  sum(a.b) filter (where c)\n           ^^^^^^",
        ),
        ("a.*", "'*' is refused: name a column (column 3)\n  a.*\n    ^"),
        (
            "rand() > 1",
            (
                "rand() does not depend on the events alone, so the same events could give different matches "
                "(column 1)\n  rand() > 1\n  ^^^^^^"
            ),
        ),
        (
            "explode(a)",
            "explode() makes rows; a condition is one value per event (column 1)\n  explode(a)\n  ^^^^^^^^^^",
        ),
        (
            "median(a.b)",
            (
                "median() is an aggregate; over a stage's events use first, last, count, sum, avg, min, max, stddev or "
                "variance (column 1)\n  median(a.b)\n  ^^^^^^^^^^^"
            ),
        ),
        (
            "date'tomorrow'",
            (
                "'tomorrow' depends on the day on which it is read. Write the date itself, as in '2024-12-31' "
                "(column 1)\n  date'tomorrow'\n  ^^^^^^^^^^^^^^"
            ),
        ),
        (
            "date'2026-02-30'",
            (
                "not a date: '2026-02-30', as day is out of range for month (column 1)\n"
                "  date'2026-02-30'\n  ^^^^^^^^^^^^^^^^"
            ),
        ),
        (
            "timestamp'99999-01-01'",
            (
                "not a timestamp: '99999-01-01', as years here are those from 1 to 9999 (column 1)\n"
                "  timestamp'99999-01-01'\n  ^^^^^^^^^^^^^^^^^^^^^^"
            ),
        ),
        ("1 > .5e", "not a number: '.5e' (column 5)\n  1 > .5e\n      ^^^"),
        ("1e40BD", "1e40 has more than 38 digits, the most of a DECIMAL (column 1)\n  1e40BD\n  ^^^^^^"),
        (
            "1e-99999999999999999999BD",
            (
                "1e-99999999999999999999 has more than 38 digits, the most of a DECIMAL (column 1)\n"
                "  1e-99999999999999999999BD\n  ^^^^^^^^^^^^^^^^^^^^^^^^^"
            ),
        ),
        ("999Y", "999 is out of range for a 8 bit integer (column 1)\n  999Y\n  ^^^^"),
        (
            "cast(a as decimal(40))",
            (
                "no such type: decimal(40). A DECIMAL has 1 to 38 digits, and at most as many after the point "
                "(column 11)\n"
                "  cast(a as decimal(40))\n            ^^^^^^^^^^^"
            ),
        ),
        ("a >\n  and b", "a value is expected, found 'and' (line 2, column 3)\n    and b\n    ^^^"),
        (
            "1 + . 22.5",
            "'. 22.5' is no number: it has two points (column 5)\n  1 + . 22.5\n      ^^^^^^\nWrite 22.5.",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    """A text that is not an expression, or uses something unsupported, is reported with its
    position and a caret under it.
    """
    with pytest.raises(PatternError) as error:
        parse_expression(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a > 1;", "an expression ends without ';'", "Leave it out."),
        ("a is nan", f"{AFTER_IS}, found 'nan'", "Write isnan(x)."),
        ("a is not nan", f"{AFTER_IS}, found 'nan'", "Write NOT isnan(x)."),
        ("a ** 2", "a value is expected, found '*'", "A power is written power(x, 2)."),
        ("a in 'x'", "( is expected, found \"'x'\"", "A list is written in parentheses: IN ('x')."),
        ("a not in 5", "( is expected, found '5'", "A list is written in parentheses: IN (5)."),
        ("a + 5 minutes", f"{AT_END}, found 'minutes'", "A length of time is written INTERVAL 5 MINUTES."),
        ("a + 2 hrs", f"{AT_END}, found 'hrs'", "A length of time is written INTERVAL 2 HOURS."),
        ("a + 2 boxes", f"{AT_END}, found 'boxes'", None),
        ("a = \u201cx\u201d", "a value is expected, found '\u201cx\u201d'", STRAIGHT),
        ("a = \u2018x y\u2019", "a value is expected, found '\u2018x'", STRAIGHT),
        ("a = 'x\u2019", "a quote or comment is not closed", STRAIGHT),
        ("a = 'it's'", "a quote or comment is not closed", QUOTE_IN_TEXT),
        ("a in ('it's', 'he's')", ") is expected, found 's'", QUOTE_IN_TEXT),
        ("a > :least", "a value is expected, found ':'", GIVEN_LATER),
        ("a between ? and 2", "a value is expected, found '?'", GIVEN_LATER),
        ("a:b > 2", f"{AT_END}, found ':'", None),
        ("a // 2 = 1", "a value is expected, found '/'", "A quotient without its fraction is written x DIV y."),
        (
            "a at time zone 'UTC' > b",
            f"{AT_END}, found 'at'",
            "The clock of another zone is from_utc_timestamp(time, 'Europe/Berlin').",
        ),
        ("'a' in tags", "( is expected, found 'tags'", OF_ARRAY),
        ("a not in `the tags`", "( is expected, found '`the tags`'", OF_ARRAY),
        ("a > 1 limit 5", f"{AT_END}, found 'limit'", "A condition is one expression: leave LIMIT out."),
        ("a > 1 order by b", f"{AT_END}, found 'order by'", "A condition is one expression: leave ORDER BY out."),
        ("where a > 1", f"{AT_END}, found 'a'", "A condition is one expression: leave WHERE out."),
        ("a > and b", "a value is expected, found 'and'", None),
        ("cast(a as varchar)", "cannot cast to varchar. Write STRING", None),
        ("a::datetime", "cannot cast to datetime. Write TIMESTAMP", None),
        ("date_diff('minutes', a, b) > 1", "the unit of date_diff is a word without quotes", "Write MINUTE."),
        (
            "timestampdiff('fortnight', a, b) > 1",
            "the unit of timestampdiff is a word without quotes",
            "Write one of YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND.",
        ),
        ("a + interval 1.5 hours", f"1.5 hours: {WHOLE}", None),
        ("a + interval '1.0' day", f"1.0 days: {WHOLE}", None),
        ("a + interval 0.1234567890 seconds", "0.1234567890 seconds: a fraction has 9 digits at most", None),
    ],
)
def test_hints_for_what_other_languages_have(text: str, message: str, hint: str | None) -> None:
    """The hint says what to write."""
    with pytest.raises(PatternError) as error:
        parse_expression(text)
    (problem,) = error.value.problems
    assert (problem.message, problem.hint) == (message, hint)


def test_deep_nesting_is_refused_before_python_fails() -> None:
    """A text with too many parentheses is a problem of the pattern, not a RecursionError."""
    with pytest.raises(PatternError, match="parentheses are nested more than 50 levels deep"):
        parse_expression("(" * 400 + "a" + ")" * 400)
    assert show(parse_expression("(" * 50 + "a" + ")" * 50)) == "a"


def test_long_chains_are_flat() -> None:
    """Thousands of ANDed conditions are one call."""
    call = parse_expression(" and ".join(["a > 1"] * 5000))
    assert isinstance(call, Call)
    assert len(call.args) == 5000


@pytest.mark.parametrize(
    ("number", "end"),
    [
        ("1e400", "a DOUBLE, which ends at 1.7976931348623157E308"),
        ("1e400d", "a DOUBLE, which ends at 1.7976931348623157E308"),
        ("1e40f", "a FLOAT, which ends at 3.4028235E38"),
        ("interval 9999999999999999999 minutes", "an INTERVAL, which ends at 106,751,991 days"),
        ("interval '999999999 00:00' day to minute", "an INTERVAL, which ends at 106,751,991 days"),
    ],
)
def test_constants_beyond_the_range_of_their_type(number: str, end: str) -> None:
    """They are refused, as on Spark, with the end of the range."""
    with pytest.raises(PatternError, match=rf"is out of range for {end} \(column 5\)"):
        parse_expression(f"a > {number}")


_LEAVES = st.sampled_from(
    [
        "a",
        "late.x",
        "`a b`.c",
        "1",
        "-2",
        "1.5",
        "1L",
        "'it''s'",
        "'x' 'y'",
        "null",
        "true",
        "interval 1 day",
        "date'2020-01-01'",
    ]
)


def _texts(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from(
        ["+", "-", "*", "/", "div", "%", "=", "<=>", "<", ">=", "!=", "||", "and", "OR", "&", "|", "^"]
    )
    space = st.sampled_from([" ", "\n ", " /* c */ "])
    return st.one_of(
        st.tuples(inner, space, binary, space, inner).map("".join),
        inner.map(lambda x: f"({x})"),
        inner.map(lambda x: f"( {x} )"),
        inner.map(lambda x: f"not ({x})"),
        inner.map(lambda x: f"- ({x})"),
        inner.map(lambda x: f"({x}) is not null"),
        inner.map(lambda x: f"cast({x} as decimal(5, 1))"),
        inner.map(lambda x: f"({x})::int"),
        st.tuples(inner, inner).map(lambda x: f"({x[0]}) not in ({x[1]}, 1)"),
        st.tuples(inner, inner, inner).map(lambda x: f"({x[0]}) between ({x[1]}) and ({x[2]})"),
        st.tuples(inner, inner, inner).map(lambda x: f"case when {x[0]} then {x[1]} else {x[2]} end"),
        st.tuples(inner, inner).map(lambda x: f"last({x[0]}, {x[1]})"),
        inner.map(lambda x: f"Foo({x})[0]"),
    )


def _nodes(expression: Expression) -> Iterator[Expression]:
    yield expression
    if not isinstance(expression, Call):
        return
    for arg in expression.args:
        if expression.function in ("cast", "try_cast") and arg is expression.args[1]:
            continue  # a type, not an expression
        if arg.span != expression.span:  # not(in(…)) is one text: x NOT IN (…)
            yield from _nodes(arg)


@settings(max_examples=300, deadline=None)
@given(st.recursive(_LEAVES, _texts, max_leaves=12))
def test_every_node_can_be_read_again_from_its_span(text: str) -> None:
    """The text of any node's span, parsed alone, gives the same node. So any part can be given to
    Spark as it was written.
    """
    try:
        expression = parse_expression(text)
    except PatternError:
        return  # the random text has two predicates on one level
    for node in _nodes(expression):
        start, end = node.span
        assert show(parse_expression(text[start:end])) == show(node)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        *(
            "i = j is null",
            "m = m < m",
            "i | j & i ^ j << 1",
            "s || i + j",
            "i - -1",
            "-i * j",
            "not m = m",
            "not i < j and m",
        ),
        *(
            "i + j || s like s || 'x'",
            "i between 1 and j + 1 and m",
            "i in (1, j) or m and not m",
            "m = (i < j) is null",
        ),
        *(
            "case i when 1 then j else 2 end + 1",
            "s not like 'a' or m",
            "i < j is not true",
            "-i::string",
            "i * j % i div j",
        ),
    ],
)
def test_precedence_is_sparks(text: str, spark: object) -> None:
    """Spark gives the same tree for a text and for the same text with all the parentheses of our tree."""
    frame = spark.createDataFrame([], "i int, j int, s string, m boolean")  # type: ignore[attr-defined]
    plain, explicit = (frame.selectExpr(t).columns for t in (text, _parenthesised(text, parse_expression(text))))
    assert plain == explicit


def _parenthesised(text: str, node: Expression) -> str:
    """The text with parentheses around every operand."""
    if not isinstance(node, Call):
        return text[slice(*node.span)]
    result, position = "", node.span[0]
    for arg in node.args:
        if arg.span == node.span:
            return _parenthesised(text, arg)
        if isinstance(arg, Call):
            result += text[position : arg.span[0]] + f"({_parenthesised(text, arg)})"
            position = arg.span[1]
    return result + text[position : node.span[1]]


@pytest.mark.parametrize("operator", [" + 1", " || 'x'", " * 2"])
def test_long_chains_of_operators(operator: str) -> None:
    """A long chain of operators meets our limit, not Python's."""
    with pytest.raises(PatternError, match="more than 100 operators in a row"):
        parse_expression("a" + operator * 500)
    parse_expression("a" + operator * 100)
