"""What Spark computes from events before a matcher sees them: checks, counts, and one select that lifts the columns.

All of it is written as SQL, and given to Spark as few texts. With Columns, PySpark calls Java some ten times for each
function and operator. For a pattern of three stages `detect` then made 1,136 calls and took 140 ms; with SQL it makes
166 calls and takes 84 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import DateType, TimestampNTZType

from cepheid.events import batch as names
from cepheid.events.batch import mask_column
from cepheid.events.direction import Direction
from cepheid.events.time import arrow_zone, microseconds
from cepheid.hosts.spark.asked import with_questions
from cepheid.hosts.spark.engine import expression, quoted, sql_type
from cepheid.hosts.spark.lists import Lists
from cepheid.knowledge.question import Question
from cepheid.lang.expression import Name
from cepheid.lang.parameters import string_literal
from cepheid.plan.lifted import Lifted
from cepheid.plan.plan_set import LiftedFor, words_of
from cepheid.plan.tiers import Side
from cepheid.requests.request import ERROR, Nulls

_WITHOUT_CHANGES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT"})


def named(name: str) -> Column:
    """The column with exactly this name, points and quotes included."""
    return F.expr(quoted(name))


def in_direction(column: Column | str, name: str) -> Column:
    """How to sort by a column of the order, which has this name in a batch."""
    direction = Direction.of(name)
    if direction.descending:
        return F.desc_nulls_first(column) if direction.nulls_first else F.desc_nulls_last(column)
    return F.asc_nulls_first(column) if direction.nulls_first else F.asc_nulls_last(column)


def raised(message: str) -> str:
    """A condition that fails with the message. The user reads this message first, before any stack."""
    return f"CAST(raise_error({message}) AS BOOLEAN)"


def checked(rows: DataFrame) -> DataFrame:
    """The rows. If there is a worker's error among them, the query fails with it. A stream's failed batch changes
    nothing.
    """
    return rows.where(f"CASE WHEN {ERROR} IS NOT NULL THEN {raised(ERROR)} ELSE TRUE END")


def session_zone(events: DataFrame) -> str:
    return str(events.sparkSession.conf.get("spark.sql.session.timeZone"))


@dataclass(frozen=True)
class Times:
    """A time column of the events, and how it is read."""

    name: str | None
    """None: processing order, in which no time passes."""
    zone: str | None
    """None: the column holds instants (TIMESTAMP). Else the zone of its local times (TIMESTAMP_NTZ, DATE)."""
    is_date: bool = False
    """Whether the times are DATEs, which are the starts of days. A day starts in any case."""

    @staticmethod
    def of(events: DataFrame, name: str | None, zone: str | None) -> Times:
        type_ = None if name is None else events.schema[name].dataType
        if not isinstance(type_, TimestampNTZType | DateType):
            return Times(name, None)
        zone = zone or session_zone(events)
        arrow_zone(zone)  # must be known to Arrow, as workers return local times
        return Times(name, zone, isinstance(type_, DateType))

    @staticmethod
    def of_each(events: DataFrame, names: Sequence[str], zone: str | None) -> tuple[Times, ...]:
        """One time column, or those of start and end. In processing order, one without a name."""
        return tuple(Times.of(events, name, zone) for name in names) or (Times.of(events, None, zone),)

    @property
    def instants(self) -> str:
        """TIMESTAMP, or TIMESTAMP_NTZ in UTC: casting the latter to TIMESTAMP would depend on the session's zone."""
        if self.name is None:
            return "timestamp_micros(0)"
        return quoted(self.name) if self.zone is None else _moved(self._local, self.zone, "UTC")

    @property
    def _local(self) -> str:
        """TIMESTAMP_NTZ: the time that a clock showed. Where clocks change at midnight, Spark reads that of a DATE as
        the first of two midnights, or as the change.
        """
        return f"CAST({quoted(str(self.name))} AS TIMESTAMP_NTZ)"

    @property
    def watermarked(self) -> str:
        """The time as TIMESTAMP, the type that a watermark needs."""
        return self.instants if self.zone is None else f"CAST(concat({self.instants}, 'Z') AS TIMESTAMP_LTZ)"

    @property
    def missing(self) -> str:
        """Whether an event has no time."""
        return "FALSE" if self.name is None else is_null(self.name)

    def until(self, instant: datetime) -> str:
        """Whether an event's time is up to `instant`. True for an event without a time, and in processing order."""
        if self.zone is None:
            bound = f"timestamp_micros({microseconds(instant)})"
        else:
            bound = f"TIMESTAMP_NTZ '{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
        return f"({self.missing} OR {self.instants} <= {bound})"

    def checks(self) -> Iterable[tuple[str, str]]:
        """The faults that a local time may have, each with its message.

        A local time is ambiguous if the clock shows it at another instant, too. That instant is found with the zone's
        offset of a day later, as no zone changes twice within a day.
        """
        if self.name is None or self.zone is None or self.is_date or self.zone in _WITHOUT_CHANGES:
            return
        local, instant = self._local, self.instants
        day = "INTERVAL 1 DAY"
        other = f"({_moved(f'{local} + {day}', self.zone, 'UTC')} - {day})"
        yield f"{_moved(instant, 'UTC', self.zone)} != {local}", self._message("does not exist", "forward")
        is_shown_twice = f"{other} != {instant} AND {_moved(other, 'UTC', self.zone)} = {local}"
        yield is_shown_twice, self._message("is ambiguous", "back")

    def _message(self, what: str, direction: str) -> str:
        fault = f" in column {self.name!r} {what} in {self.zone}, where clocks were set {direction}. "
        advice = "Convert the column to instants (TIMESTAMP) first, where it is known which is meant"
        return f"concat('the local time ', {self._local}, {string_literal(fault + advice)})"


def _moved(time: str, source: str, target: str) -> str:
    """The local time of the zone `source` converted to the zone `target`."""
    return f"convert_timezone({string_literal(source)}, {string_literal(target)}, {time})"


def is_null(name: str) -> str:
    """Whether the column is NULL."""
    return f"{quoted(name)} IS NULL"


def counts_read(
    key: tuple[str, ...], times: Sequence[Times], nulls: Nulls, event_id: str | None = None
) -> dict[str, str]:
    """The counts of the events read, as aggregates, by name. Where unusable events are errors, none are counted: Spark
    computes each aggregate for each event by itself, which takes long. With an `event_id`, rows have no time if they
    have neither start nor end, or no id; which end before they start, only a matcher knows.
    """
    if event_id is None:
        unusable = unusable_events(key, times)
    else:
        no_key = any_of(map(is_null, key))
        no_time = any_of([_without_times(times), is_null(event_id)])
        unusable = {"null_keys": no_key, "null_times": f"NOT {no_key} AND {no_time}"}
    return {"events": "count(1)", **counted_if(unusable, is_counted=nulls == "drop")}


def counted_if(faults: Mapping[str, str], *, is_counted: bool) -> dict[str, str]:
    """How many rows have each fault, as aggregates; none if they are not counted."""
    return {name: f"count(CASE WHEN {which} THEN 1 END)" if is_counted else "0" for name, which in faults.items()}


def observed(rows: DataFrame, observation: Observation | str, counts: Mapping[str, str]) -> DataFrame:
    """The rows; the counts, which are aggregates by name, go to the observation."""
    return rows.observe(observation, *(F.expr(f"{count} AS {name}") for name, count in counts.items()))


def unusable_events(key: tuple[str, ...], times: Sequence[Times]) -> dict[str, str]:
    """Which events cannot be used, by the names of their counts. No event is counted twice."""
    no_key, no_time = any_of(map(is_null, key)), any_of(time.missing for time in times)
    found = {"null_keys": no_key, "null_times": f"NOT {no_key} AND {no_time}"}
    if len(times) == 1:
        return found
    return found | {"reversed": f"NOT {no_key} AND NOT {no_time} AND {_backwards(times)}"}


def any_of(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(conditions) or 'FALSE'})"


def _backwards(times: Sequence[Times]) -> str:
    """Whether an event ends before it starts."""
    if len(times) == 1:
        return "FALSE"
    start, end = times
    return f"{end.instants} < {start.instants}"


def missing(key: tuple[str, ...], times: Sequence[Times]) -> list[str]:
    """Whether an event has no key, no time, or ends before it starts."""
    return [*map(is_null, key), *(time.missing for time in times), _backwards(times)]


def with_sound_times(rows: DataFrame, times: Sequence[Times]) -> DataFrame:
    """The rows; a local time that is ambiguous or does not exist is an error."""
    return _chosen(rows, [(wrong, raised(message)) for time in times for wrong, message in time.checks()])


def _chosen(rows: DataFrame, cases: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows for which the first case that is true has true as its value, and those for which no case is true."""
    if not cases:
        return rows
    return rows.where(f"CASE {' '.join(f'WHEN {case} THEN {result}' for case, result in cases)} ELSE TRUE END")


def _without_times(times: Sequence[Times]) -> str:
    """Whether a row has neither start nor end."""
    return f"({' AND '.join(time.missing for time in times)})"


def usable(
    events: DataFrame,
    key: tuple[str, ...],
    times: Sequence[Times],
    nulls: Nulls,
    event_id: str | None = None,
    *,
    subject: str = "'an event'",
) -> DataFrame:
    """The events that have a key and unambiguous times, and do not end before they start. Other events are an error or
    are dropped, as `nulls` says. A local time that is ambiguous or does not exist is always an error. With an
    `event_id`, the rows that have it, and a start or an end: a row that closes an event has the start of that event.
    `subject` is what messages call an event, as SQL.
    """
    cases = [(is_null(name), _no_value(subject, name, "key", nulls)) for name in key]
    if event_id is not None:
        cases.append((is_null(event_id), _no_value(subject, event_id, "id", nulls)))
        cases.append((_without_times(times), _no_value(subject, str(times[0].name), "time", nulls)))
    for time in times:
        if time.name is not None and event_id is None:
            cases.append((time.missing, _no_value(subject, time.name, "time", nulls)))
        cases += [(wrong, raised(message)) for wrong, message in time.checks()]
    if len(times) > 1 and event_id is None:
        cases.append((_backwards(times), _reversed(subject, times, nulls)))
    return _chosen(events, cases)


def _reversed(event: str, times: Sequence[Times], nulls: Nulls) -> str:
    start, end = times
    message = f" ends before it starts: {end.name!r} is before {start.name!r}. "
    return _refused(event, message + 'Correct or drop such events before, or give nulls="drop"', nulls)


def _no_value(event: str, column: str, what: str, nulls: Nulls) -> str:
    message = f' has no {what}: {column!r} is NULL. Drop such events before, or with nulls="drop", which counts them'
    return _refused(event, message, nulls)


def _refused(event: str, message: str, nulls: Nulls) -> str:
    return "FALSE" if nulls == "drop" else raised(f"concat({event}, {string_literal(message)})")


@dataclass
class Lift:
    """The columns that are shipped to the matchers, named c0, c1, … because mapInArrow accepts no points in names."""

    shipped: list[str] = field(default_factory=list)
    """SQL with names."""
    layout: dict[str, str] = field(default_factory=dict)
    """A matcher's column → the shipped column that holds it. Several matcher's columns may share a shipped one."""
    questions: tuple[Question, ...] = ()
    _sources: dict[str, str] = field(default_factory=dict)
    _lists: Lists = field(default_factory=Lists)

    def add(self, name: str, sql: str, source: str | None = None) -> None:
        """Adds a column. If it is an unchanged event column (`source`), it is shipped only once."""
        fresh = f"c{len(self.shipped)}"
        self.layout[name] = fresh if source is None else self._sources.setdefault(source, fresh)
        if self.layout[name] == fresh:
            self.shipped.append(f"{sql} AS {fresh}")

    def __getitem__(self, name: str) -> str:
        """The shipped column that holds a matcher's column. Its name is the same as SQL."""
        return self.layout[name]

    @property
    def sub_keys(self) -> list[str]:
        """The columns that divide the events of a key."""
        return [self[name] for name in self.layout if name.startswith(names.SUB_KEY_PREFIX)]

    def add_sub_keys(self, plan: LiftedFor, sides: Iterable[Side]) -> None:
        """Adds the values that extend the key."""
        for number, side in enumerate(sides):
            name, value = f"{names.SUB_KEY_PREFIX}{number}", plan.values[side.column]
            if value.type == side.type and not pa.types.is_floating(side.type):
                self.layout[name] = self.layout[f"{names.VALUE_PREFIX}{side.column}"]
            else:
                self.add(name, compared(self.expression(value.sql), side))

    def expression(self, sql: str, place: str = "") -> str:
        """The SQL as a part of what is shipped; `place` is what messages call it."""
        return expression(self._lists.moved(sql), place)

    def select(self, events: DataFrame, *more: str) -> DataFrame:
        """The shipped columns of the events, and others, which are SQL with names."""
        return self._lists.joined(with_questions(events, self.questions)).selectExpr(*self.shipped, *more)


def compared(value: str, side: Side) -> str:
    """The value so that Spark groups exactly the values that are equal: in the type of the comparison, and without
    -0.0.
    """
    cast = f"CAST({value} AS {sql_type(side.type)})"
    return f"CASE WHEN {cast} = 0 THEN 0.0D ELSE {cast} END" if pa.types.is_floating(side.type) else cast


def lifting(plan: LiftedFor, times: Sequence[Times]) -> Lift:
    """The columns that the plan needs from the events; `times` is one time column, or start and end."""
    lift = Lift(questions=plan.questions)
    schema = plan.schema
    for i, name in enumerate(schema.key):
        lift.add(f"{names.KEY_PREFIX}{i}", quoted(name), name)
    for column, time in zip((names.TIME, names.END), times, strict=False):
        lift.add(column, time.instants, time.name if time.zone is None else None)
    for column, name in schema.ranking:
        lift.add(column, quoted(name), name)
    if schema.event_id is not None:
        lift.add(names.EVENT_ID, quoted(schema.event_id), schema.event_id)
    for word, bits in enumerate(words_of(plan.bits)):
        lift.add(mask_column(word), mask_of(_truth(lift, bit) for bit in bits))
    for name in plan.columns:
        lift.add(names.EVENT_PREFIX + name, quoted(name), name)
    for name in schema.columns.names if plan.functions else ():
        if not name.startswith(names.COMPUTED):
            lift.add(names.ROW_PREFIX + name, quoted(name), name)
    for i, value in enumerate(plan.values):
        lift.add(f"{names.VALUE_PREFIX}{i}", lift.expression(value.sql, value.written), _plain_column(value, plan))
    return lift


def _truth(lift: Lift, bit: Lifted) -> str:
    """SQL of a condition. It is cast, as a CASE takes no NULL that has no type."""
    return f"CAST({lift.expression(bit.sql, bit.written)} AS BOOLEAN)"


def _plain_column(value: Lifted, plan: LiftedFor) -> str | None:
    """The event column, if the value is just a column."""
    if not isinstance(value.expression, Name) or len(value.expression.parts) > 1:
        return None
    (written,) = value.expression.parts
    same = [name for name in plan.schema.columns.names if name.lower() == written.lower()]
    return same[0] if len(same) == 1 else None


def mask_of(bits: Iterable[str]) -> str:
    """Bit i is set where bits[i] is true, not where it is NULL."""
    return " | ".join(f"CASE WHEN {bit} THEN {1 << i}L ELSE 0L END" for i, bit in enumerate(bits)) or "0L"
