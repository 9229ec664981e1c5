"""Events in two rows, in a batch on Spark: one row opens the event, and another one with its end closes it.

The meaning is that of `events.openings.whole_events`. Here Spark's window functions compare the rows of an event: one
shuffle by the id, and columns of any type pass. As the rows of a DataFrame have no order, rows of one id that also have
the same times are ordered by a hash of their content. In process the order of the rows decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType, VariantType

from cepheid.events.openings import ADVICE
from cepheid.hosts.spark.engine import is_carried
from cepheid.hosts.spark.lift import (
    Times,
    counted_if,
    missing,
    named,
    raised,
    unusable_events,
    usable,
    with_sound_times,
)
from cepheid.requests.request import Nulls, Request

# Columns beside those of the rows.
_PLACE = "_by_id.place"
"""The row's place among those of its id, from 1."""
_FIRST = "_by_id.first"
"""The place of the first row that begins an event of the id, and whether that row has its end, too."""
_CLOSING = "_by_id.closing"
"""The place of the row that closes that event, and the end that it gives."""
_TOO_EARLY = "_by_id.early"
"""The place of a row that would close the event before its start."""
_PART = "_by_id.is"
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

    def counts(self) -> dict[str, Column]:
        """The counts of the rows read, as aggregates, by name."""
        of_events = {name: _is(_EVENT) & which for name, which in unusable_events(self.key, self.times).items()}
        of_rows = {_UNCLOSED: F.lit(False)} | {name: _is(name) for name in self._faults()}  # noqa: FBT003
        return {
            "events": F.count(F.when(~_is(_LATER), 1)),
            **counted_if(of_events | of_rows, is_counted=self.nulls == "drop"),
        }

    def usable(self, rows: DataFrame) -> DataFrame:
        """The events among these rows that can be used. Other rows are an error or are dropped, as `nulls` says."""
        is_event = F.when(_is(_EVENT), F.lit(True))  # noqa: FBT003
        for name, message in self._faults().items() if self.nulls == "error" else ():
            is_event = is_event.when(_is(name), raised(message))
        events = rows.where(is_event.otherwise(F.lit(False)))  # noqa: FBT003
        return usable(events, self.key, self.times, self.nulls, subject=F.concat(F.lit("event "), self._id))

    def unread(self) -> DataFrame:
        """The rows with a start that go to no worker. Rows that close an event are part of it."""
        is_unusable = _is(_EVENT) & reduce(Column.__or__, missing(self.key, self.times))
        return self.rows.where((is_unusable | ~(_is(_EVENT) | _is(_CLOSES))) & ~self.times[0].missing)

    def _faults(self) -> dict[str, Column]:
        """What rows should not be, and the message about a row that is."""
        too_early = self._message("a row closes event ", " before its start")
        faults = {
            _NO_ID: F.lit(f"a row has no id: {self.column!r} is NULL. {ADVICE}"),
            _REPEATED: F.when(~self.times[0].missing, self._message("a row has the id of event ", ", which is there"))
            .when(_first("place").isNull(), self._message("a row closes event ", ", which no row opens"))
            .when(named(_PLACE) < _first("place"), too_early)
            .otherwise(self._message("a row closes event ", ", which has ended already")),
        }
        if self.may_be_open:
            return faults
        unclosed = self._message("event ", " is opened and no row closes it")
        return faults | {_UNCLOSED: F.when(named(_TOO_EARLY).isNotNull(), too_early).otherwise(unclosed)}

    def _message(self, before: str, after: str) -> Column:
        return F.concat(F.lit(before), self._id, F.lit(f"{after} ({self.column}). {ADVICE}"))

    @property
    def _id(self) -> Column:
        """The id, as messages show it."""
        text = named(self.column).cast("string")
        is_text = isinstance(self.rows.schema[self.column].dataType, StringType)
        return F.concat(F.lit("'"), text, F.lit("'")) if is_text else text


def rows_by_id(
    events: DataFrame, request: Request, times: Sequence[Times], until: datetime | None, used: Sequence[str]
) -> RowsById:
    """The rows, and what each of them is. An opening row gets the end of the row that closes it. `used` are the columns
    that are needed. A local time that is ambiguous or does not exist is an error in any row.
    """
    column, (start, end) = str(request.event_id), times
    ends = str(end.name)
    counts = F.lit(True) if until is None else F.when(end.missing, start.until(until)).otherwise(end.until(until))  # noqa: FBT003
    # Only these open and close events. Other rows of the id must not get the place of one that does.
    takes_part = counts & named(column).isNotNull() & ~(start.missing & end.missing)
    backwards = F.coalesce(end.instants < start.instants, F.lit(False))  # noqa: FBT003
    of_id = Window.partitionBy(named(column))
    # At one instant, a row that opens the event comes before one that closes it: an event may take no time. Rows that
    # agree in their times are ordered by their content, so that the result does not depend on Spark's partitions.
    own_time, content = F.coalesce(end.instants, start.instants), F.xxhash64(*_hashable(events, used))
    order = of_id.orderBy(takes_part.desc(), own_time, end.missing.desc(), start.instants, content)
    # The least of these structs is that of the first row, as the place comes first in them.
    begins = F.struct(named(_PLACE).alias("place"), (~end.missing).alias("ended"))
    closes = F.struct(named(_PLACE).alias("place"), named(ends).alias("end"))
    is_closing = takes_part & ~end.missing & ~_first("ended") & (named(_PLACE) > _first("place"))
    is_early = takes_part & start.missing & (named(_PLACE) < _first("place"))
    # Each of these reads the column before it. All windows have the same partitions, so that Spark shuffles once.
    rows = with_sound_times(events, times).withColumn(_PLACE, F.row_number().over(order))
    rows = rows.withColumn(_FIRST, F.min(F.when(takes_part & ~start.missing & ~backwards, begins)).over(of_id))
    rows = rows.withColumns(
        {
            _CLOSING: F.min(F.when(is_closing, closes)).over(of_id),
            _TOO_EARLY: F.min(F.when(is_early, named(_PLACE))).over(of_id),
        }
    )
    is_first, is_closed = named(_PLACE) == _first("place"), named(_CLOSING).isNotNull()
    # An event that ends before its start is not usable, and counted as such; it opens nothing.
    stands_alone = backwards & (_first("place").isNull() | (named(_PLACE) < _first("place")))
    part = (
        F.when(~counts, _LATER)
        .when(named(column).isNull(), _NO_ID)
        .when((start.missing & end.missing) | (is_first & (_first("ended") | is_closed)) | stands_alone, _EVENT)
        .when(is_first, _UNCLOSED)
        .when(named(_PLACE) == named(_CLOSING)["place"], _CLOSES)
        .otherwise(_REPEATED)
    )
    known_end = F.when(is_first & is_closed, named(_CLOSING)["end"]).otherwise(named(ends))
    rows = rows.withColumns({_PART: part, ends: known_end})
    return RowsById(rows, column, request.key, times, request.nulls, may_be_open=until is not None)


def _first(field: str) -> Column:
    return named(_FIRST)[field]


def _is(part: str) -> Column:
    return named(_PART) == part


def _hashable(events: DataFrame, names: Sequence[str]) -> list[Column]:
    """The columns that Spark can hash."""
    return [named(name) for name in names if has_hash(events.schema[name].dataType)]


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
