"""The SQL engine of the Spark hosts: Spark's own analyzer, used only through the public DataFrame API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException, PySparkException, PySparkTypeError
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import ArrayType, DataType, DayTimeIntervalType, MapType, StringType, StructType

from cepheid.errors import Problem
from cepheid.hosts.spark.lists import with_short_lists
from cepheid.hosts.spark.places import remember
from cepheid.hosts.spark.shipping import IN_UTC
from cepheid.lang.parameters import string_literal
from cepheid.lang.sql.tokens import Kind, tokenize
from cepheid.plan.engine import Question
from cepheid.plan.semantics import names_sql

_BINARY_ORDER = "UTF8_BINARY"
_VARIABLE = "${"
_DOLLAR = re.compile(r"\\?\$(?=\{)|\\.", re.DOTALL)
"""In a text's SQL: a dollar sign before a brace, or another escaped character."""


def arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type of a Spark type. A type that Arrow does not carry becomes an opaque one, which nothing accepts."""
    if not is_carried(type_):
        return pa.opaque(pa.null(), sql_name(type_), "Spark")
    return to_arrow_type(type_, **IN_UTC)


def sql_name(type_: DataType) -> str:
    return type_.simpleString().upper()


def arrow_schema(schema: StructType) -> pa.Schema:
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in schema])


def is_carried(type_: DataType) -> bool:
    """Whether values of the type come back from a worker unchanged.

    Intervals of months, and types that Spark knows by name only, do not. Strings with a collation do not either: a
    worker would compare them as bytes.
    """
    match type_:
        case ArrayType():
            return is_carried(type_.elementType)
        case MapType():
            return is_carried(type_.keyType) and is_carried(type_.valueType)
        case StructType():
            return all(is_carried(field.dataType) for field in type_)
        case StringType():
            return type_.collation == _BINARY_ORDER
    try:
        return from_arrow_type(to_arrow_type(type_, **IN_UTC), prefer_timestamp_ntz=True) == type_
    except PySparkTypeError:
        return False


class SparkEngine:
    """Types expressions over the columns of `events`, or over columns of given Arrow types."""

    def __init__(self, events: DataFrame, *, computes_rows_alone: bool = False) -> None:
        self._events = events
        self._columns = arrow_schema(events.schema)
        self._computes_rows_alone = computes_rows_alone

    @property
    def computes_rows_alone(self) -> bool:
        return self._computes_rows_alone

    @property
    def time_zone(self) -> str:
        """The session's zone."""
        return str(self._events.sparkSession.conf.get("spark.sql.session.timeZone"))

    def types_of(self, questions: Sequence[Question], columns: pa.Schema) -> Sequence[pa.DataType | Problem]:
        """The type of each expression, or Spark's reason for refusing it.

        All expressions are analyzed at once, because over Spark Connect each analysis is a round trip. If that fails,
        each half of them is analyzed.
        """
        count = len(self._columns)
        if pa.schema([*columns][:count]).equals(self._columns):
            frame = self._events.select("*", *_nulls([*columns][count:])) if len(columns) > count else self._events
        else:
            frame = self._of_types(columns)
        with _quiet():
            return self._answers(frame, [with_short_lists(sql) for _, sql in questions])

    def _of_types(self, columns: pa.Schema) -> DataFrame:
        return self._events.sparkSession.range(0).select(*_nulls(columns))

    def _answers(self, frame: DataFrame, texts: Sequence[str]) -> list[pa.DataType | Problem]:
        if not texts:
            return []
        try:
            return list(_types(frame, texts))
        except (AnalysisException, ParseException) as error:
            if len(texts) == 1:
                return [Problem(_reason(error))]
        middle = len(texts) // 2
        return self._answers(frame, texts[:middle]) + self._answers(frame, texts[middle:])


def _nulls(columns: Iterable[pa.Field]) -> Iterator[Column]:
    """Columns of these types."""
    return (F.lit(None).cast(from_arrow_type(f.type, prefer_timestamp_ntz=True)).alias(f.name) for f in columns)


def _types(frame: DataFrame, texts: Sequence[str]) -> Iterator[pa.DataType]:
    """The types of the expressions. These also go into a join's condition: nothing else in Spark refuses aggregates,
    windows, generators and nondeterministic expressions before anything runs.
    """
    condition = " AND ".join(f"{expression(text)} IS NOT NULL" for text in texts)
    nothing = frame.sparkSession.range(0).select()
    checked = frame.join(nothing, F.expr(condition)).selectExpr(
        *(f"{expression(text)} AS c{i}" for i, text in enumerate(texts))
    )
    return (_computed_type(field.dataType) for field in checked.schema)


def _computed_type(type_: DataType) -> pa.DataType:
    """The Arrow type of computed values. A difference of dates is an INTERVAL DAY; workers get all lengths alike."""
    return arrow_type(DayTimeIntervalType() if isinstance(type_, DayTimeIntervalType) else type_)


def expression(text: str, place: str = "") -> str:
    """The user's text as a part of SQL; it may end in a comment. `place` is what messages call it."""
    sql = f"({_without_variables(text)}\n)"
    if place:
        remember(sql, place)
    return f"\n{sql}"


def _without_variables(text: str) -> str:
    """The text written so that Spark, before it parses, substitutes no variables for `${…}`: these could be settings of
    the session or of the environment.
    """
    if _VARIABLE not in text:
        return text
    parts, end = [], 0
    for token in tokenize(text):
        written = text[token.start : token.end]
        before, end = text[end : token.start], token.end
        parts.append(before.replace(_VARIABLE, "$ {"))  # comments
        if token.kind is Kind.QUOTED:
            written = quoted(token.text)
        elif token.kind is Kind.STRING and written[0] in "rR":
            written = string_literal(written[2:-1])
        elif token.kind is Kind.STRING:
            written = _DOLLAR.sub(lambda found: "\\u0024" if found[0].endswith("$") else found[0], written)
        elif text.startswith(_VARIABLE, token.start):  # Spark then refuses it, as it is no SQL
            written += " "
        parts.append(written)
    return "".join(parts)


def quoted(name: str) -> str:
    """SQL: the column with exactly this name, points and quotes included."""
    sql = names_sql.quoted(name)
    # Before it parses, Spark substitutes variables for `${…}`, also in names.
    return f"IDENTIFIER({string_literal(sql)})" if _VARIABLE in name else sql


def sql_type(type_: pa.DataType) -> str:
    """The type as SQL. TIMESTAMP alone would be what a session says (spark.sql.timestampType)."""
    name = from_arrow_type(type_, prefer_timestamp_ntz=True).simpleString()
    return "timestamp_ltz" if name == "timestamp" else name


def _reason(error: PySparkException) -> str:
    """Spark's message without its error class, SQL state, place and plan."""
    message = (error.getMessage() or str(error)).strip()
    message = re.sub(r"^\[[A-Z0-9_.]+\]\s*", "", message)
    message = re.split(r"\s*SQLSTATE:|\n", message)[0].rstrip(".; ")
    return f"Spark refuses this: {message}"


@contextmanager
def _quiet() -> Iterator[None]:
    """PySpark logs each refusal, with its stack, on standard error; here a refusal is a normal answer."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")  # logging.getLogger would make one of another class
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before
