"""SWRL's built-ins for times and durations as SQL.

A time with a zone is an instant. SQL's own sums and differences of such times depend on the zone of the session; so
they are computed as microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.knowledge.filters.values import Duration, value_of
from cepheid.plan.semantics.comparisons import in_microseconds
from cepheid.plan.semantics.inert import NotLifted
from cepheid.plan.semantics.numbers import Computation
from cepheid.plan.semantics.values import BIGINT, MICROSECONDS, SqlValue

_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""The first microsecond of the year 1, and the last one of the year 9999, since 1970."""


def _between(given: Sequence[SqlValue]) -> SqlValue | None:
    one, other = given
    if {one.kind, other.kind} == {"zoned"}:
        left, right = map(in_microseconds, given)
        sql, type_ = f"({left.sql} - {right.sql})", MICROSECONDS
    elif {one.kind, other.kind} == {"local"}:
        sql, type_ = f"({one.sql} - {other.sql})", pa.duration("us")
    else:
        return None
    events, conditions = one.events | other.events, one.conditions + other.conditions
    return SqlValue(sql, "duration", type_, events, BIGINT, conditions)


def _later(sign: str) -> Computation:
    """A time with a zone, and a constant duration later or earlier."""

    def compute(given: Sequence[SqlValue]) -> SqlValue | None:
        time, duration = given
        if time.kind not in ("zoned", "local") or duration.kind != "duration":
            return None
        if time.kind == "local" or duration.literal is None:
            raise NotLifted("a duration that is no constant is added, or to a time without a zone")
        value = value_of(duration.literal)
        assert isinstance(value, Duration)
        length = int(value.amount * 1_000_000)
        if abs(length) > _YEARS[1] - _YEARS[0]:
            return None  # there is no such year
        at = in_microseconds(time)
        sql = f"({at.sql} {sign} {length})"
        return replace(at, sql=sql, conditions=(*at.conditions, f"{sql} BETWEEN {_YEARS[0]} AND {_YEARS[1]}"))

    return compute


COMPUTED: Mapping[str, Computation] = {
    "subtractDateTimesYieldingDayTimeDuration": _between,
    "addDayTimeDurationToDateTime": _later("+"),
    "subtractDayTimeDurationFromDateTime": _later("-"),
}
