"""Events in two rows, in a batch on Spark: one row opens the event, and another one with its end closes it.

The meaning is that of `events.openings.whole_events`. Here Spark's window functions compare the rows of an event: one
shuffle by the id, and columns of any type pass. As the rows of a DataFrame have no order, rows of one id that also have
the same times are ordered by a hash of their content. In process the order of the rows decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from cepheid.events.openings import ADVICE
from cepheid.hosts.spark.engine import is_carried, quoted
from cepheid.hosts.spark.lift import (
    Times,
    any_of,
    counted_if,
    is_null,
    missing,
    raised,
    unusable_events,
    usable,
    with_sound_times,
)
from cepheid.lang.parameters import string_literal
from cepheid.requests.request import Nulls, Request

# Columns beside those of the rows, as SQL.
_PLACE = "`_by_id.place`"
"""The row's place among those of its id, from 1."""
_FIRST = "`_by_id.first`"
"""The place of the first row that begins an event of the id, and whether that row has its end, too."""
_CLOSING = "`_by_id.closing`"
"""The place of the row that closes that event, and the end that it gives."""
_TOO_EARLY = "`_by_id.early`"
"""The place of a row that would close the event before its start."""
_PART = "`_by_id.is`"
"""What the row is: one of the following."""

_EVENT, _CLOSES, _LATER = "event", "closes", "later"
"""What a row is: an event, or the opening row of one, which has its end by now; the row with that end; a row that does
not count, as it comes after `until`.
"""

_UNCLOSED, _NO_ID, _REPEATED = "unclosed", "null_ids", "repeated"
"""What else a row is, by the names of the counts: the opening row of an event that no row closes; a row without an id;
a further row of an event, or one that closes what is not open.
"""


@dataclass(frozen=True)
class RowsById:
    """Rows, with what they are."""

    rows: DataFrame
    """All of them."""
    column: str
    """The column of ids."""
    key: tuple[str, ...]
    times: Sequence[Times]
    nulls: Nulls
    may_be_open: bool
    """Whether events may be unclosed, because their ends may come after `until`."""

    def counts(self) -> dict[str, str]:
        """The counts of the rows read, as aggregates, by name."""
        unusable = unusable_events(self.key, self.times)
        of_events = {name: f"{_is(_EVENT)} AND {which}" for name, which in unusable.items()}
        of_rows = {_UNCLOSED: "FALSE"} | {name: _is(name) for name in self._faults()}
        return {
            "events": f"count(CASE WHEN NOT {_is(_LATER)} THEN 1 END)",
            **counted_if(of_events | of_rows, is_counted=self.nulls == "drop"),
        }

    def usable(self, rows: DataFrame) -> DataFrame:
        """The events among these rows that can be used. Other rows are an error or are dropped, as `nulls` says."""
        faults = self._faults().items() if self.nulls == "error" else ()
        refused = " ".join(f"WHEN {_is(name)} THEN {raised(message)}" for name, message in faults)
        events = rows.where(f"CASE WHEN {_is(_EVENT)} THEN TRUE {refused} ELSE FALSE END")
        return usable(events, self.key, self.times, self.nulls, subject=f"concat('event ', {self._id})")

    def unread(self) -> DataFrame:
        """The rows with a start that go to no worker. Rows that close an event are part of it."""
        is_unusable = f"{_is(_EVENT)} AND {any_of(missing(self.key, self.times))}"
        is_in_none = f"NOT ({_is(_EVENT)} OR {_is(_CLOSES)})"
        return self.rows.where(f"{any_of([is_unusable, is_in_none])} AND NOT {self.times[0].missing}")

    def _faults(self) -> dict[str, str]:
        """What rows should not be, and the message about a row that is."""
        too_early = self._message("a row closes event ", " before its start")
        faults = {
            _NO_ID: string_literal(f"a row has no id: {self.column!r} is NULL. {ADVICE}"),
            _REPEATED: (
                f"CASE WHEN NOT {self.times[0].missing} THEN "
                f"{self._message('a row has the id of event ', ', which is there')} "
                f"WHEN {_FIRST}.place IS NULL THEN {self._message('a row closes event ', ', which no row opens')} "
                f"WHEN {_PLACE} < {_FIRST}.place THEN {too_early} "
                f"ELSE {self._message('a row closes event ', ', which has ended already')} END"
            ),
        }
        if self.may_be_open:
            return faults
        unclosed = self._message("event ", " is opened and no row closes it")
        return faults | {_UNCLOSED: f"CASE WHEN {_TOO_EARLY} IS NOT NULL THEN {too_early} ELSE {unclosed} END"}

    def _message(self, before: str, after: str) -> str:
        return f"concat({string_literal(before)}, {self._id}, {string_literal(f'{after} ({self.column}). {ADVICE}')})"

    @property
    def _id(self) -> str:
        """The id, as messages show it."""
        text = f"CAST({quoted(self.column)} AS STRING)"
        is_text = isinstance(self.rows.schema[self.column].dataType, StringType)
        quote = string_literal("'")
        return f"concat({quote}, {text}, {quote})" if is_text else text


def rows_by_id(
    events: DataFrame, request: Request, times: Sequence[Times], until: datetime | None, used: Sequence[str]
) -> RowsById:
    """The rows, and what each of them is. An opening row gets the end of the row that closes it. `used` are the columns
    that are needed. A local time that is ambiguous or does not exist is an error in any row.
    """
    column, (start, end) = str(request.event_id), times
    ends = str(end.name)
    counts = "TRUE"
    if until is not None:
        counts = f"CASE WHEN {end.missing} THEN {start.until(until)} ELSE {end.until(until)} END"
    has_no_time = f"({start.missing} AND {end.missing})"
    # Only these open and close events. Other rows of the id must not get the place of one that does.
    takes_part = f"({counts} AND NOT {is_null(column)} AND NOT {has_no_time})"
    backwards = f"coalesce({end.instants} < {start.instants}, FALSE)"
    of_id = f"PARTITION BY {quoted(column)}"
    # At one instant, a row that opens the event comes before one that closes it: an event may take no time. Rows that
    # agree in their times are ordered by their content, so that the result does not depend on Spark's partitions.
    own_time, content = f"coalesce({end.instants}, {start.instants})", f"xxhash64({', '.join(_hashable(events, used))})"
    order = f"{takes_part} DESC, {own_time}, {end.missing} DESC, {start.instants}, {content}"
    # The least of these structs is that of the first row, as the place comes first in them.
    begins = f"named_struct('place', {_PLACE}, 'ended', NOT {end.missing})"
    closes = f"named_struct('place', {_PLACE}, 'ends', {quoted(ends)})"
    is_beginning = f"{takes_part} AND NOT {start.missing} AND NOT {backwards}"
    is_closing = f"{takes_part} AND NOT {end.missing} AND NOT {_FIRST}.ended AND {_PLACE} > {_FIRST}.place"
    is_early = f"{takes_part} AND {start.missing} AND {_PLACE} < {_FIRST}.place"
    # Each of these reads the column before it. All windows have the same partitions, so that Spark shuffles once.
    rows = with_sound_times(events, times)
    rows = rows.selectExpr("*", f"row_number() OVER ({of_id} ORDER BY {order}) AS {_PLACE}")
    rows = rows.selectExpr("*", f"min(CASE WHEN {is_beginning} THEN {begins} END) OVER ({of_id}) AS {_FIRST}")
    rows = rows.selectExpr(
        "*",
        f"min(CASE WHEN {is_closing} THEN {closes} END) OVER ({of_id}) AS {_CLOSING}",
        f"min(CASE WHEN {is_early} THEN {_PLACE} END) OVER ({of_id}) AS {_TOO_EARLY}",
    )
    is_first, is_closed = f"{_PLACE} = {_FIRST}.place", f"{_CLOSING} IS NOT NULL"
    is_whole = f"{is_first} AND ({_FIRST}.ended OR {is_closed})"
    # An event that ends before its start is not usable, and counted as such; it opens nothing.
    stands_alone = f"{backwards} AND ({_FIRST}.place IS NULL OR {_PLACE} < {_FIRST}.place)"
    part = (
        f"CASE WHEN NOT {counts} THEN '{_LATER}' "
        f"WHEN {is_null(column)} THEN '{_NO_ID}' "
        f"WHEN {any_of([has_no_time, is_whole, stands_alone])} THEN '{_EVENT}' "
        f"WHEN {is_first} THEN '{_UNCLOSED}' "
        f"WHEN {_PLACE} = {_CLOSING}.place THEN '{_CLOSES}' "
        f"ELSE '{_REPEATED}' END"
    )
    known_end = f"CASE WHEN {is_first} AND {is_closed} THEN {_CLOSING}.ends ELSE {quoted(ends)} END"
    rows = rows.selectExpr("*", f"{part} AS {_PART}").withColumn(ends, F.expr(known_end))
    return RowsById(rows, column, request.key, times, request.nulls, may_be_open=until is not None)


def _is(part: str) -> str:
    return f"{_PART} = '{part}'"


def _hashable(events: DataFrame, names: Sequence[str]) -> list[str]:
    """The columns that Spark can hash."""
    return [quoted(name) for name in names if has_hash(events.schema[name].dataType)]


def has_hash(type_: DataType) -> bool:
    """Whether Spark computes a hash of values of the type. Windows are divided only by columns of such types."""
    match type_:
        case MapType() | VariantType():
            return False
        case ArrayType():
            return has_hash(type_.elementType)
        case StructType():
            return all(has_hash(field.dataType) for field in type_)
    return is_carried(type_)
