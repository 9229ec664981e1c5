"""The engine in process: its refusals and their messages, order, masks, columns and the reference page."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid.errors import ConditionError, EventError, PatternError
from cepheid.hosts.duckdb import engine
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.duckdb.function_reference import function_reference
from cepheid.hosts.duckdb.functions.table import BY_NAME
from cepheid.hosts.duckdb.lists import IN_LIST
from cepheid.hosts.duckdb.translate import RULES
from cepheid.lang.sql.parser import parse_expression
from cepheid.lang.sql.written import written_form
from cepheid.plan.condition_bits import WORD
from cepheid.plan.lifted import Lifted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "functions.md"
EVENTS = pa.table(
    {
        "n": pa.array([3, 0, None], pa.int32()),
        "price": [1.5, 2.5, None],
        "name": ["a", "b", None],
        "at": pa.array([datetime(2021, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("ms", "Europe/Berlin")),
        "place": [{"city": "Ulm"}, {"city": None}, None],
    }
)


def lifted(text: str, events: pa.Table = EVENTS) -> Lifted:
    expression = parse_expression(text)
    return Lifted(text, expression, DuckDbEngine().type_of(expression, events.schema))


def refusal(text: str) -> str:
    with pytest.raises(PatternError) as caught:
        DuckDbEngine().type_of(parse_expression(text), EVENTS.schema)
    return str(caught.value)


def test_mask_and_values_keep_the_order_of_the_rows() -> None:
    """Bit i of the mask is set where condition i is true; NULL is not true."""
    (mask,), values = DuckDbEngine().evaluate(
        EVENTS, bits=[lifted("n > 1"), lifted("name = 'b'")], values=[lifted("n + 1"), lifted("at")]
    )
    assert mask.tolist() == [1, 2, 0]
    assert values[0].to_pylist() == [4, 1, None]
    assert values[1].type == pa.timestamp("us", "UTC")
    assert values[1].to_pylist() == EVENTS["at"].to_pylist()


@pytest.mark.parametrize(
    ("count", "widths"),
    [(0, [1]), (1, [1]), (8, [1]), (9, [2]), (16, [2]), (17, [4]), (32, [4]), (33, [8]), (63, [8]), (64, [8, 1])],
)
def test_words_of_the_mask_have_as_few_bytes_as_their_bits_need(count: int, widths: list[int]) -> None:
    """The highest bit of each word is there, too."""
    numbers = pa.table({"n": pa.array(range(count + 1))})
    words = DuckDbEngine().evaluate(numbers, bits=[lifted(f"n = {i}", numbers) for i in range(count)]).masks
    assert [word.itemsize for word in words] == widths
    masks = sum(word.astype(object) << WORD * number for number, word in enumerate(words))
    assert list(masks) == [*(1 << i for i in range(count)), 0]


def test_rows_are_evaluated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What DuckDB is asked for at once is bounded. The columns are those of all rows, and an error names its event."""
    monkeypatch.setattr(engine, "_PIECE", 3)
    numbers = pa.table({"n": pa.array(range(8)), "name": [f"e{i}" for i in range(8)]})
    bits, values = [lifted("n > 4", numbers)], [lifted("n * 2", numbers), lifted("upper(name)", numbers)]
    (mask,), (doubled, upper) = DuckDbEngine().evaluate(numbers, bits=bits, values=values)
    assert mask.tolist() == [0] * 5 + [1] * 3
    assert doubled.to_pylist() == list(range(0, 16, 2))
    assert upper.to_pylist() == [f"E{i}" for i in range(8)]
    with pytest.raises(ConditionError, match="division by zero in '1 / \\(n - 7\\) > 0', at the event with n = 7"):
        DuckDbEngine().evaluate(numbers, bits=[lifted("1 / (n - 7) > 0", numbers)], shown=numbers)


def test_order_holds_over_many_row_groups() -> None:
    """Rows are returned in their order although several threads evaluate them."""
    numbers = pa.table({"n": pa.array(range(500_000), pa.int64())})
    _, (doubled,) = DuckDbEngine().evaluate(numbers, values=[lifted("n * 2", numbers)])
    assert doubled.to_numpy().tolist() == list(range(0, 1_000_000, 2))


def test_a_record_batch_without_rows_gives_none() -> None:
    """A batch without rows gives no rows, with their types."""
    none = EVENTS.to_batches()[0].slice(0, 0)
    (mask,), (values,) = DuckDbEngine().evaluate(none, bits=[lifted("n > 1")], values=[lifted("n / 2")])
    assert len(mask) == 0
    assert values.type == pa.float64()


def test_a_constant_needs_no_column() -> None:
    """A condition that names no column is evaluated for every event."""
    assert DuckDbEngine().evaluate(EVENTS, bits=[lifted("1 < 2")]).masks[0].tolist() == [1, 1, 1]


def test_fields_of_structs_are_columns() -> None:
    """A field of a struct is NULL where the struct is."""
    (cities,) = DuckDbEngine().evaluate(EVENTS, values=[lifted("place.city")]).values
    assert cities.to_pylist() == ["Ulm", None, None]


def test_columns_that_differ_in_case_only_are_ambiguous() -> None:
    """Names are compared without case, as Spark does, and never picked by chance."""
    events = pa.table({"x": [1], "X": [2]})
    with pytest.raises(PatternError, match="ambiguous column 'x'") as error:
        DuckDbEngine().type_of(parse_expression("x = 1"), events.schema)
    assert error.value.problems[0].hint == "'x' and 'X' differ only in case, which SQL ignores: rename one."


def test_a_failure_names_its_condition() -> None:
    """An error of evaluation has the text of the condition, not DuckDB's."""
    with pytest.raises(ConditionError) as caught:
        DuckDbEngine().evaluate(EVENTS, bits=[lifted("price > 1"), lifted("10 / n > 1")])
    assert str(caught.value) == "division by zero in '10 / n > 1'"


def test_times_finer_than_microseconds_are_refused() -> None:
    """Nanoseconds are not silently truncated."""
    events = pa.table({"t": pa.array([1], pa.timestamp("ns"))})
    with pytest.raises(EventError, match="Round the column to microseconds first"):
        DuckDbEngine().evaluate(events, values=[lifted("t", events)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("soundex(name) = 'A'", "'soundex' is not available in process; it is available on Spark"),
        ("nosuch(name) = 'A'", "no function named 'nosuch'"),
        ("uper(name) = 'A'", "Did you mean 'power' or 'upper'?"),
        ("levenshtien(name, 'b') < 2", "Did you mean 'levenshtein'?"),
        ("name[0] = 'A'", "[ ] takes an ARRAY and an INT, or a MAP and a key, got STRING, INT"),
        ("split(name, ',', 2) = 'A'", "split with a limit: not available in process; it is available on Spark"),
        ("regexp_extract(name, '(a', 1) = 'a'", "a '(' without ')' in a regular expression"),
        ("regexp_extract(name, 'a', 1) = 'a'", "regexp_extract of group 1: the pattern has 0. 0 is the whole match"),
        ("length(name, n) = 1", "length takes (STRING) in process, got (STRING, INT)"),
        ("pmod(n) = 1", "'pmod' does not take 1 argument"),
        ("date_format(at, name) = 'a'", "a format that is not a constant: not available in process"),
        ("date_format(at, 'yyyy-QQ') = 'a'", "'QQ' in a format: not available in process"),
        ("get_json_object(name, '$.*') = 'a'", "get_json_object with the path '$.*': not available in process"),
        ("aggregate(array(1), 0, (a, b) -> a + b) = 1", "'aggregate' is not available in process; it is available on"),
        ("substrng(name, 1) = 'A'", "Did you mean 'string' or 'substring' or 'substr'?"),
        ("cast(price as string) = '1'", "the cast of DOUBLE to STRING: not available in process"),
        ("name LIKE name", "LIKE with a pattern that is not a constant: not available in process"),
        (r"name LIKE r'a\b'", r"'\\' in a pattern of LIKE stands before %, _ or itself"),
        ("n LIKE '1%'", "LIKE takes STRING, got INT"),
        ("n RLIKE '1'", "RLIKE takes STRING, got INT"),
        ("name RLIKE '(?m)a'", "'(?' in a regular expression: not available in process"),
        ("upper(n) = 'A'", "upper takes (STRING) in process, got (INT)"),
        ("n > 'x'", "the text 'x' is not read as BIGINT. Write a number without quotes"),
        ("n > INTERVAL 1 DAY", "'>' needs values of one type, got INT, INTERVAL DAY TO SECOND"),
        ("INTERVAL 1 DAY > '1 day'", "'>' needs values of one type, got INTERVAL DAY TO SECOND, STRING"),
        ("at > 'hello'", "not a timestamp: 'hello'. Write it as '2024-12-31 23:59:59' or with a zone after it"),
        (
            "at > '2024-12-31 23:59:59 PST8'",
            "Write an offset, such as +01:00: not available in process; it is available",
        ),
        ("n AND true", "a BOOLEAN is needed here, this is INT"),
        ("date_trunc(name, at) = at", "a unit other than the constants year"),
        ("lpad(name, 3, '') = 'a'", "The padding is a constant, not empty"),
        ("pice > 1", "Did you mean 'price' or 'place'?"),
        ("place.ciy = 'Ulm'", "unknown field 'ciy'"),
    ],
)
def test_what_is_refused_says_why(text: str, message: str) -> None:
    """Functions that do not equal Spark's to the last bit are refused by name."""
    assert message in refusal(text)


def test_all_problems_are_reported_at_once() -> None:
    """Two unknown names are two problems."""
    text = refusal("a1 > 0 AND b1 > 0")
    assert "'a1'" in text
    assert "'b1'" in text


def test_the_message_does_not_claim_what_spark_refuses_too() -> None:
    """Spark is named only where it has the function."""
    assert "Spark" not in refusal("nosuch(name) = 'A'")
    assert "Spark" not in refusal("upper(n) = 'A'")


WRONG = [
    ("name RLIKE '('", "a '(' without ')' in a regular expression"),
    ("size(split(name, 'a)')) = 1", "a ')' without '(' in a regular expression"),
    (r"name LIKE r'a\'", r"'\\' in a pattern of LIKE stands before %, _ or itself"),
    ("date_format(at, 'QQQQQQQQ') = 'a'", "'QQQQQQQQ' in a format: at most 4 of this letter"),
    ("isnull(n, 0)", "'isnull' does not take 2 arguments"),
    ("lpad(name, 1, 'x', 2) = 'a'", "lpad takes (STRING, INT, STRING) or (STRING, INT) in process, got (STRING, INT"),
    ("datediff(at, at, n) = 1", "before two times or a count and a time comes a unit such as MINUTE"),
    ("name RLIKE '*x'", r"'*' repeats nothing here in a regular expression. The character is '\\*'"),
    ("name RLIKE 'x*?+'", "'+' repeats nothing here in a regular expression"),
    ("name RLIKE '[a'", "a '[' without ']' in a regular expression"),
    ("name RLIKE '[b-a]'", "in a regular expression 'b-a' has its last character first"),
    ("name RLIKE 'a{2,1}'", "in a regular expression '{2,1}' has its larger number first"),
    ("name RLIKE r'a\\'", "a regular expression ends with a backslash"),
    ("name LIKE 'a' ESCAPE 'bb'", "ESCAPE takes a text of one character, as in ESCAPE '!'"),
    ("EXTRACT(EPOCH FROM at) > 1", "extract takes YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DOY, HOUR,"),
    ("EXTRACT(YEAR FROM n) > 1", "extract takes YEAR, YEAROFWEEK, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DOY, HOUR,"),
    ("round(price, 'x') > 1", "the text 'x' is not read as INT. Write a number without quotes"),
    ("round(price, n) > 1", "round takes a constant number of places, as in round(x, 2)"),
    ("round(at) > 1", "round takes a number, got TIMESTAMP"),
]
"""Texts that are wrong everywhere, and the messages."""


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_what_is_wrong_everywhere(text: str, message: str) -> None:
    """What is wrong is said, and Spark is not named."""
    assert message in refusal(text)
    assert "Spark" not in refusal(text)


@pytest.mark.spark
def test_what_is_wrong_everywhere_is_wrong_on_spark(spark: SparkSession) -> None:
    """Spark refuses each text, or fails on an event."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    events = spark.createDataFrame(EVENTS)
    for text, _ in WRONG:
        with pytest.raises((PySparkException, Py4JError)):
            events.selectExpr(f"{text} AS c").collect()


def test_only_functions_that_can_be_called_are_suggested() -> None:
    """Names that only the parser gives are not, and each name once."""
    assert refusal("negat(n) = 1").endswith("Did you mean 'negative' or 'least'?")
    assert refusal("case_o(n) = 1").endswith("Did you mean 'ucase' or 'lcase' or 'parse_json'?")
    assert refusal("like_al(name, 'a')").endswith("Did you mean 'like' or 'rlike' or 'ilike'?")
    assert refusal("slic(array(n), 1, 1)[0] = 1").endswith("Did you mean 'split' or 'slice'?")
    assert "index" not in refusal("unhex('41') IS NULL")


def test_the_reference_page_names_each_function() -> None:
    """The page has every function and operator, also those that are no templates."""
    page = function_reference().replace("&#124;", "|")
    names = {*RULES, *BY_NAME} - {IN_LIST}
    assert [name for name in sorted(names) if written_form(name) not in page and name not in page] == []


def test_the_reference_page_is_up_to_date() -> None:
    """`docs/reference/functions.md` is generated from the table of functions."""
    assert REFERENCE.read_text(encoding="utf-8") == function_reference()
