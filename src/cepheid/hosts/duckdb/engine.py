"""The SQL engine of the in-process host: DuckDB over Arrow tables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import types as arrow

from cepheid.errors import ConditionError, PatternError, Problem
from cepheid.events.batch import row_shown
from cepheid.hosts.duckdb.columns import EventColumns, viewed
from cepheid.hosts.duckdb.fragment import Fragment, held_type
from cepheid.hosts.duckdb.lists import Lists
from cepheid.hosts.duckdb.translate import translate
from cepheid.lang.expression import Expression
from cepheid.output.values import columns_text, event_text
from cepheid.plan.lifted import Lifted
from cepheid.plan.plan_set import words_of

_SETTINGS = {
    # Each of these may remove an operation that would have failed (`a + 1 > 5` becomes `a > 4`), unlike Spark.
    "disabled_optimizers": "expression_rewriter,statistics_propagation",
    "TimeZone": "UTC",
    # The wheel contains all that is used here; nothing may be downloaded.
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


_OF_CASTS = (
    (re.compile(r"""Could not convert string (''|"") to .*"""), "the text is not a number"),
    (re.compile(r'invalid date field format: "".*'), "the text is not a DATE"),
    (re.compile(r'date field value out of range: "(.*)"'), r"the text '\1' is not a DATE"),
    (re.compile(r"""Could not convert string ['"](.+)['"] to .*"""), r"the number '\1' is out of range for the cast"),
    (re.compile(r"Type \w+ with value (\S+) can't be cast because.*"), r"the number \1 is out of range for the cast"),
)
"""What DuckDB says of casts, and what we say. The empty text stands for a text that Spark cannot cast (`casts`)."""
_NO_MEMORY_IN_ARROW = "exporting a stream from the object registered as 'events' failed: MemoryError:"
"""How DuckDB reports that Arrow has not found the memory for its events."""
_ROW = "row_number_of_event"
"""The column with the number of each row."""
_PIECE = 1 << 20
"""The rows of a query: so many that a query costs almost nothing beside them, and so few that what DuckDB needs for
them is little beside the events.
"""
_UNSIGNED = {8: "UTINYINT", 16: "USMALLINT", 32: "UINTEGER", 64: "UBIGINT"}
"""DuckDB's unsigned numbers, by their bits."""


class Evaluated(NamedTuple):
    """Lifted columns of a table of events, in the table's order."""

    masks: tuple[NDArray[Any], ...]
    """Words of the mask, as unsigned numbers of as few bytes as their bits need. Bit i of the first word is set where
    bits[i] is true.
    """
    values: tuple[pa.ChunkedArray, ...]

    def in_one_piece(self) -> Evaluated:
        """The same, each column of numbers or times in one chunk: else Arrow would join the chunks at each `take`."""
        return self._replace(values=tuple(map(_in_one_chunk, self.values)))

    def take(self, rows: pa.Array) -> Evaluated:
        return Evaluated(
            tuple(mask.take(rows.to_numpy()) for mask in self.masks), tuple(column.take(rows) for column in self.values)
        )


def _in_one_chunk(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not arrow.is_primitive(column.type) or column.num_chunks < 2:
        return column  # texts may be too long for one chunk
    return pa.chunked_array([pa.concat_arrays(column.chunks)])


class _Translation(NamedTuple):
    """The latest request, and its SQL."""

    bits: Sequence[Lifted]
    values: Sequence[Lifted]
    schema: pa.Schema
    columns: EventColumns
    fragments: list[Fragment]
    lists: Lists


class DuckDbEngine:
    """Types and evaluates expressions over columns. It has its own connection; only one thread may use it at a time."""

    computes_rows_alone = False

    def __init__(self, *, time_zone: str = "UTC") -> None:
        self.time_zone = time_zone
        self._connection = _database(os.getpid()).cursor()
        self._latest: _Translation | None = None

    def type_of(self, expression: Expression, columns: pa.Schema) -> pa.DataType:
        """The expression's type, as in Spark. Raises PatternError with all problems and their spans."""
        return translate(expression, EventColumns(columns).resolve, self.time_zone).type

    def types_of(
        self, questions: Sequence[tuple[Expression, str]], columns: pa.Schema
    ) -> Sequence[pa.DataType | Problem]:
        """The type of each expression (its text is not needed here), or the first reason why it is not available."""
        return [self._type_or_problem(expression, columns) for expression, _ in questions]

    def _type_or_problem(self, expression: Expression, columns: pa.Schema) -> pa.DataType | Problem:
        try:
            return self.type_of(expression, columns)
        except PatternError as error:
            return error.problems[0]

    def to_sql(self, expression: Expression, columns: pa.Schema) -> str:
        """The DuckDB SQL of the expression. Columns are c0, c1, … in the order in which the expression names them."""
        return translate(expression, EventColumns(columns).resolve, self.time_zone).text

    def may_fail(self, lifted: Sequence[Lifted], columns: pa.Schema) -> bool:
        """Whether one of the columns may fail on an event."""
        known = EventColumns(columns)
        return any(translate(one.expression, known.resolve, self.time_zone).raises for one in lifted)

    def evaluate(
        self,
        events: pa.Table | pa.RecordBatch,
        *,
        bits: Sequence[Lifted] = (),
        values: Sequence[Lifted] = (),
        shown: pa.Table | None = None,
    ) -> Evaluated:
        """All lifted columns, computed by one query over the columns that they name. Numbers and times that are lifted
        as they are stay where they are.

        Raises:
            ConditionError: one of them fails on an event, as it would on Spark. The message has its text, and the event
                as it appears in `shown`.
        """
        table = events if isinstance(events, pa.Table) else pa.Table.from_batches([events])
        columns, fragments, lists = self._translated(bits, values, table.schema)
        held = lists.looked_up(columns.taken_from(table), self._value)
        words = [*map(_mask, words_of(fragments[: len(bits)]))]
        texts = [fragment.text for fragment in fragments[len(bits) :]]
        known = {name: held.column(name) for name in texts if _is_there(held, name)}
        computed = [text for text in texts if text not in known]
        try:
            result = self._query([*words, *computed], held)
        except duckdb.Error as error:
            raise self._explained(error, [*bits, *values], fragments, held, shown) from error
        masks = (result.column(i).to_numpy() for i in range(len(words)))
        known |= {text: result.column(len(words) + i) for i, text in enumerate(computed)}
        typed = (as_type(known[text], lifted.type) for text, lifted in zip(texts, values, strict=True))
        return Evaluated(tuple(masks), tuple(typed))

    def _translated(
        self, bits: Sequence[Lifted], values: Sequence[Lifted], schema: pa.Schema
    ) -> tuple[EventColumns, list[Fragment], Lists]:
        """The SQL of the lifted columns. The latest is stored, because a live matcher makes the same request for every
        few events.
        """
        latest = self._latest
        if latest is None or latest.bits is not bits or latest.values is not values or latest.schema != schema:
            columns, zone = EventColumns(schema), self.time_zone  # not `self`, which has this in `_latest`
            lists = Lists(lambda one: translate(one, columns.resolve, zone))
            expressions = [lists.moved(one.expression) for one in (*bits, *values)]
            fragments = [translate(one, columns.resolve, self.time_zone) for one in expressions]
            self._latest = latest = _Translation(bits, values, schema, columns, fragments, lists)
        return latest.columns, latest.fragments, latest.lists

    def _value(self, text: str, held: pa.Table) -> pa.ChunkedArray:
        """The value of SQL text for each row."""
        return self._query([text], held).column(0)

    def _query(self, selected: Sequence[str], held: pa.Table) -> pa.Table:
        """The values of SQL texts for each row.

        Raises:
            duckdb.Error: a text cannot be evaluated on a row.
            MemoryError: the values do not fit into memory.
        """
        starts = range(0, max(1, held.num_rows), _PIECE)
        return pa.concat_tables([self._query_of_piece(selected, held.slice(start, _PIECE)) for start in starts])

    def _query_of_piece(self, selected: Sequence[str], held: pa.Table) -> pa.Table:
        # DuckDB makes a join of IN with some ten values, and then threads return their rows in any order.
        numbered = held.append_column(_ROW, pa.array(np.arange(held.num_rows, dtype=np.int32)))
        self._connection.register("events", numbered)
        try:
            columns = ", ".join([*(f"{text} AS v{i}" for i, text in enumerate(selected)), _ROW])
            query = f"SELECT {columns} FROM events"  # noqa: S608 - the text is made here, constants are quoted
            result = self._connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            if isinstance(error, duckdb.OutOfMemoryException) or _NO_MEMORY_IN_ARROW in str(error).splitlines()[0]:
                raise MemoryError(str(error)) from error
            raise
        finally:
            self._connection.unregister("events")
        rows = result.column(_ROW).to_numpy()
        result = result.drop_columns(_ROW)
        return result if (rows[1:] > rows[:-1]).all() else result.take(_places(rows))

    def _explained(
        self,
        error: duckdb.Error,
        lifted: Sequence[Lifted],
        fragments: Sequence[Fragment],
        held: pa.Table,
        shown: pa.Table | None,
    ) -> ConditionError:
        """The error that says which condition failed on which event. Each one that can fail is evaluated alone."""
        for one, fragment in zip(lifted, fragments, strict=True):
            alone = self._failure(fragment, held) if fragment.raises else None
            if alone is None:
                continue
            message = f"{_reason(alone)} in {one.written or repr(one.sql)}"
            if shown is not None:
                message += f", at {event_text(columns_text(row_shown(shown, self._first_failing(fragment, held))))}"
            return ConditionError(message)
        return ConditionError(_reason(error))

    def _failure(self, fragment: Fragment, held: pa.Table) -> duckdb.Error | None:
        try:
            self._query([fragment.text], held)
        except duckdb.Error as error:
            return error
        return None

    def _first_failing(self, fragment: Fragment, held: pa.Table) -> int:
        """The first row on which the fragment fails; there is at least one."""
        first, stop = 0, held.num_rows
        while stop - first > 1:
            middle = (first + stop) // 2
            if self._failure(fragment, held.slice(first, middle - first)) is None:
                first = middle
            else:
                stop = middle
        return first


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a forked process has none of its threads
    """The process's only database, without tables: to start one takes longer than a query over some thousand events."""
    database = duckdb.connect()
    for setting, value in _SETTINGS.items():
        database.execute(f"SET GLOBAL {setting} = '{value}'")
    return database


def _is_there(held: pa.Table, text: str) -> bool:
    """Whether SQL text is a column of fixed width, which DuckDB would return as it is."""
    return text in held.column_names and bool(arrow.is_primitive(held.schema.field(text).type))


def _places(rows: NDArray[Any]) -> pa.Array:
    """The places of the rows, by their numbers."""
    places = np.empty(len(rows), np.int64)
    places[rows] = np.arange(len(rows))
    return pa.array(places)


def _mask(conditions: Sequence[Fragment]) -> str:
    type_ = _UNSIGNED[max(8, 1 << (len(conditions) - 1).bit_length())]
    zero = f"CAST(0 AS {type_})"
    bits = (f"CASE WHEN {c.text} THEN CAST({1 << i} AS {type_}) ELSE {zero} END" for i, c in enumerate(conditions))
    return " | ".join(bits) or zero


def _reason(error: duckdb.Error) -> str:
    """DuckDB's message without its class and without the place in SQL that the user did not write."""
    first = str(error).splitlines()[0]
    message = first.split("Error: ", 1)[-1].split(". Use TRY", 1)[0].split(" when casting", 1)[0]
    found = ((theirs.fullmatch(message), ours) for theirs, ours in _OF_CASTS)
    return next((match.expand(ours) for match, ours in found if match), message)


def as_type(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """A column of a result, converted from DuckDB's form to its Arrow type."""
    if arrow.is_null(type_):  # DuckDB returns a column of another type
        return pa.chunked_array([pa.nulls(len(column))])
    if arrow.is_timestamp(type_):
        return viewed(column, pa.timestamp("us", type_.tz))
    if arrow.is_duration(type_):
        return viewed(column, type_)
    if arrow.is_map(type_):  # Arrow casts a map only if its parts have the types already
        return column.cast(held_type(type_)).cast(type_)
    return column.cast(type_)
