"""What Spark computes of events before a matcher sees them: checks, counts, and one select that lifts the columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it
from pyspark.sql.types import TimestampNTZType

from cepheid.events.batch import (
    EVENT_PREFIX,
    KEY_PREFIX,
    ROW_PREFIX,
    SEQUENCE_PREFIX,
    TIME,
    VALUE_PREFIX,
    mask_column,
    microseconds,
)
from cepheid.hosts.spark.engine import expression
from cepheid.lang.expression import Name
from cepheid.plan.plan_set import LiftedFor, words_of
from cepheid.plan.stages.plan import Lifted
from cepheid.requests.request import Nulls

_WITHOUT_CHANGES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT"})


def named(name: str) -> Column:
    """The column of exactly this name, points and quotes included."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def raised(message: Column) -> Column:
    """A condition that fails with the message, which the user then reads first, before any stack."""
    return F.raise_error(message).cast("boolean")


def session_zone(events: DataFrame) -> str:
    return str(events.sparkSession.conf.get("spark.sql.session.timeZone"))


@dataclass(frozen=True)
class Times:
    """The events' time column, and how it is read."""

    name: str | None
    """None: processing order, in which no time passes."""
    zone: str | None
    """None: the column holds instants (TIMESTAMP). Else the zone of its local times (TIMESTAMP_NTZ)."""

    @staticmethod
    def of(events: DataFrame, name: str | None, zone: str | None) -> Times:
        if name is None or not isinstance(events.schema[name].dataType, TimestampNTZType):
            return Times(name, None)
        return Times(name, zone or session_zone(events))

    @property
    def instants(self) -> Column:
        """TIMESTAMP, or TIMESTAMP_NTZ on UTC's clock: casting that to TIMESTAMP would depend on the session's zone."""
        if self.name is None:
            return F.expr("timestamp_micros(0)")
        return named(self.name) if self.zone is None else _moved(named(self.name), self.zone, "UTC")

    @property
    def watermarked(self) -> Column:
        """TIMESTAMP, as a watermark must be on."""
        return (
            self.instants if self.zone is None else F.concat(self.instants.cast("string"), F.lit("Z")).cast("timestamp")
        )

    @property
    def missing(self) -> Column:
        """Whether an event has no time."""
        return F.lit(False) if self.name is None else named(self.name).isNull()  # noqa: FBT003

    def until(self, instant: datetime) -> Column:
        """Whether an event's time is not later; true without a time."""
        if self.zone is None:
            bound = F.expr(f"timestamp_micros({microseconds(instant)})")
        else:
            bound = F.expr(f"TIMESTAMP_NTZ '{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'")
        return self.missing | (self.instants <= bound)

    def checks(self) -> Iterable[tuple[Column, Column]]:
        """What a local time must not be, each with the message that says so.

        A local time is ambiguous if another instant shows it too. That instant is found by the offset of a day later,
        as no zone changes twice within a day.
        """
        if self.name is None or self.zone is None or self.zone in _WITHOUT_CHANGES:
            return
        local, instant = named(self.name), self.instants
        day = F.expr("INTERVAL 1 DAY")
        other = _moved(local + day, self.zone, "UTC") - day
        yield _moved(instant, "UTC", self.zone) != local, self._message(local, "does not exist", "forward")
        yield (
            (other != instant) & (_moved(other, "UTC", self.zone) == local),
            self._message(local, "is ambiguous", "back"),
        )

    def _message(self, local: Column, what: str, direction: str) -> Column:
        told = f" in column {self.name!r} {what} in {self.zone}, where clocks were set {direction}. "
        advice = "Convert the column to instants (TIMESTAMP) first, where it is known which is meant"
        return F.concat(F.lit("the local time "), local.cast("string"), F.lit(told + advice))


def _moved(time: Column, source: str, target: str) -> Column:
    """The local time of `source` as that of `target`."""
    return F.convert_timezone(F.lit(source), F.lit(target), time)


def without_key(key: tuple[str, ...]) -> Column:
    return reduce(Column.__or__, [named(name).isNull() for name in key], F.lit(False))  # noqa: FBT003


def usable(events: DataFrame, key: tuple[str, ...], times: Times, nulls: Nulls) -> DataFrame:
    """The events that have a key and a certain time; others fail or, those without key or time, are dropped."""
    cases = [(named(name).isNull(), _no_value(name, "key", nulls)) for name in key]
    if times.name is not None:
        cases.append((times.missing, _no_value(times.name, "time", nulls)))
    cases += [(wrong, raised(message)) for wrong, message in times.checks()]
    if not cases:
        return events
    (first, result), *others = cases
    kept = reduce(lambda chain, case: chain.when(*case), others, F.when(first, result))
    return events.where(kept.otherwise(F.lit(True)))  # noqa: FBT003


def _no_value(column: str, what: str, nulls: Nulls) -> Column:
    if nulls == "drop":
        return F.lit(False)  # noqa: FBT003
    message = f'an event has no {what}: {column!r} is NULL. Drop such events before, or with nulls="drop", '
    return raised(F.lit(message + "which counts them"))


@dataclass
class Lift:
    """The columns that are shipped to the matchers, named c0, c1, … because mapInArrow takes no points in names."""

    shipped: list[Column] = field(default_factory=list)
    layout: dict[str, str] = field(default_factory=dict)
    """A matcher's column → the shipped column that holds it; one may hold several."""
    _sources: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, column: Column, source: str | None = None) -> None:
        """Adds a column; one that is an event column as it is (`source`) goes only once."""
        fresh = f"c{len(self.shipped)}"
        self.layout[name] = fresh if source is None else self._sources.setdefault(source, fresh)
        if self.layout[name] == fresh:
            self.shipped.append(column.alias(fresh))

    def __getitem__(self, name: str) -> Column:
        return F.col(self.layout[name])


def lifting(plan: LiftedFor, times: Times) -> Lift:
    lift = Lift()
    schema = plan.schema
    for i, name in enumerate(schema.key):
        lift.add(f"{KEY_PREFIX}{i}", named(name), name)
    lift.add(TIME, times.instants, times.name if times.zone is None else None)
    for i, name in enumerate(schema.sequence):
        lift.add(f"{SEQUENCE_PREFIX}{i}", named(name), name)
    for word, bits in enumerate(words_of(plan.bits)):
        lift.add(mask_column(word), mask_of(bits))
    for name in plan.columns:
        lift.add(EVENT_PREFIX + name, named(name), name)
    for name in schema.columns.names if plan.functions else ():
        lift.add(ROW_PREFIX + name, named(name), name)
    for i, value in enumerate(plan.values):
        lift.add(f"{VALUE_PREFIX}{i}", expression(value.sql), _plain_column(value, plan))
    return lift


def _plain_column(value: Lifted, plan: LiftedFor) -> str | None:
    """The event column that the value is, if it is no more than that."""
    if not isinstance(value.expression, Name) or len(value.expression.parts) > 1:
        return None
    (written,) = value.expression.parts
    found = [name for name in plan.schema.columns.names if name.lower() == written.lower()]
    return found[0] if len(found) == 1 else None


def mask_of(bits: Sequence[Lifted]) -> Column:
    """Bit i is set where bits[i] is true, not where it is NULL."""
    words = [F.when(expression(bit.sql), F.lit(1 << i)).otherwise(F.lit(0)).cast("long") for i, bit in enumerate(bits)]
    return reduce(lambda mask, word: mask.bitwiseOR(word), words, F.lit(0).cast("long"))
