"""Pairs of events with values that systems treat differently, and a condition's outcome on each pair, in process and on
Spark.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cepheid import Pattern, detect
from cepheid.errors import ConditionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FAILED = "failed"
Outcomes: TypeAlias = list[bool | str]
"""For each pair whether the condition is true; FAILED where it fails."""

_NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
_VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int32(), [0, 1, -1, 2, 3, 7, -7, 2**31 - 1, -(2**31), None]),
    "b": (pa.int64(), [0, 1, -5, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), None]),
    "x": (pa.float64(), [0.0, -0.0, 1.0, 0.5, -2.5, 1e300, float("nan"), float("inf"), -float("inf"), 2.0**53, None]),
    "f": (pa.float32(), [0.0, -0.0, 0.1, 2.5, -1.5, float("nan"), 16777216.0, None]),
    "p": (pa.decimal128(6, 2), [*map(Decimal, ["0.00", "1.50", "-3.25", "0.01", "9999.99", "-9999.99"]), None]),
    "s": (pa.string(), ["", "a", "A", "b", "ab", "é", "日本", "a ", "10", None]),
    "digits": (pa.string(), ["1", " 12 ", "-7", "x", "2147483648", None]),
    "d": (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31), None]),
    "t": (
        pa.timestamp("us", "UTC"),
        [_NOON, _NOON + timedelta(hours=2), _NOON - timedelta(microseconds=1), datetime(1900, 1, 1, tzinfo=UTC), None],
    ),
    "u": (
        pa.timestamp("us"),
        [t.replace(tzinfo=None) for t in (_NOON, _NOON + timedelta(days=1), _NOON - timedelta(microseconds=1))]
        + [None],
    ),
    "m": (pa.bool_(), [True, False, None]),
}


def random_events(source: random.Random, pairs: int) -> pa.Table:
    """Two events per pair: rows 2i and 2i + 1 are pair i, at times 0 and 1."""
    columns = {name: pa.array(source.choices(values, k=2 * pairs), type_) for name, (type_, values) in _VALUES.items()}
    pair = pa.array([i // 2 for i in range(2 * pairs)], pa.int64())
    at = pa.array([i % 2 for i in range(2 * pairs)], pa.int64()).cast(pa.timestamp("us", "UTC"))
    return pa.table({"pair": pair, "at": at, **columns})


def detected(events: pa.Table, condition: str) -> Outcomes:
    """The outcomes in process: whether the second event of each pair is taken after the first."""
    pattern = Pattern.begin("a").next("current_").where(condition)
    pairs = events.num_rows // 2
    try:
        found = detect(events, pattern, key="pair", time="at", columns=["pair"])
    except ConditionError:
        if pairs == 1:
            return [FAILED]
        half = 2 * (pairs // 2)
        return detected(events.slice(0, half), condition) + detected(events.slice(half), condition)
    matched = set(found.column("pair").to_pylist())
    return [pair in matched for pair in events.column("pair").to_pylist()[::2]]


def side_by_side(session: SparkSession, events: pa.Table, second: int = 1) -> DataFrame:
    """The current event's columns beside a struct `a` of the first event's. With `second` 0, the current event is the
    first one.
    """
    rows = [table_of(events, 0), table_of(events, second)]
    first = pa.chunked_array([pa.StructArray.from_arrays([_whole(c) for c in rows[0].columns], rows[0].schema.names)])
    session.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    frame = session.createDataFrame(rows[1].append_column("a", first))
    session.conf.unset("spark.sql.timestampType")
    return frame.repartition(1)


def table_of(events: pa.Table, place: int) -> pa.Table:
    """The event at `place` of each pair."""
    return events.take(pa.array(range(place, events.num_rows, 2)))


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks)


def on_spark(frame: DataFrame, conditions: Sequence[str], failed: Sequence[Sequence[int]]) -> list[Outcomes]:
    """The outcomes of all conditions in one query; a condition is not evaluated on the pairs in `failed`."""
    columns = []
    for i, (condition, pairs) in enumerate(zip(conditions, failed, strict=True)):
        guarded = f"CASE WHEN pair NOT IN ({', '.join(map(str, pairs))}) THEN {condition} END" if pairs else condition
        columns.append(f"coalesce({guarded}, false) AS c{i}")
    table = frame.selectExpr("pair", *columns).orderBy("pair").toArrow()
    outcomes = [column.to_pylist() for column in table.columns[1:]]
    return [
        [FAILED if pair in pairs else outcome for pair, outcome in enumerate(found)]
        for found, pairs in zip(outcomes, failed, strict=True)
    ]


def fails_on_spark(frames: Sequence[DataFrame], condition: str, pair: int | None = None) -> bool:
    """Whether the condition fails on the pair (None: on any) in one of the frames."""
    from pyspark.errors import PySparkException

    for frame in frames:
        guarded = f"CASE WHEN pair = {pair} THEN {condition} END" if pair is not None else condition
        try:
            frame.selectExpr(f"{guarded} AS c").collect()
        except PySparkException:
            return True
    return False


def shown(events: pa.Table, pair: int) -> list[dict[str, Any]]:
    """The two events of a pair, for a message."""
    rows = events.filter(pc.equal(events.column("pair"), pair))
    strings = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in rows.columns]
    result: list[dict[str, Any]] = pa.table(strings, names=rows.schema.names).to_pylist()
    return result
