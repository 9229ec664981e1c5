"""Which texts are times: those that Spark reads, and each as Spark does."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from cepheid.lang.literals import DependsOnDay, OnlyOnSpark, read_date, read_timestamp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATES = (
    *("2024", "2024-3", "2024-03", "2024-03-1", "2024-03-01", " 2024-03-01", "2024-02-30", "20240301", "2024/03/01"),
    *("+2024-03-01", "-2024-03-01", "12024-03-01", "02024-03-01", "24-03-01", "0000-01-01", ""),
)
TIMES = (
    *("", " ", "T", " 12", "T7", " 12:", " 12:00", "T12:00", "T1:2", " 12:00:00", " 12:00:00.5", " 12:00:00."),
    *(" 24:00:00", " 12:60", " 1:2:3.1234567", " 1:2:3.123456789012", "\t12:00", "  12:00", " noon", "x"),
)
ZONES = (
    *("", "Z", " Z", "UTC", " UTC", "+01:00", " +01:00", "+1", "+0100", " Europe/Paris", "GMT+1", " +19:00", "-18:00"),
    *(" \n", " nowhere", " z", "  -07:30", " EST", " PST"),
)


def read(reader: Callable[[str], Any], text: str) -> Any:
    """None if the text is refused, and the class of the error if Spark may read it."""
    try:
        return reader(text)
    except (OnlyOnSpark, DependsOnDay) as error:
        return type(error)
    except ValueError:
        return None


@pytest.mark.spark
def test_texts_are_times_as_on_spark(spark: SparkSession) -> None:
    """What is read is read so by Spark, and what Spark reads is read or known to be read by Spark."""
    texts = [(f"{day}{time}{zone}",) for day, time, zone in product(DATES, TIMES, ZONES)]
    casts = (
        "try_cast(t AS DATE) AS d",
        "try_cast(t AS DATE) IS NOT NULL AS is_d",
        "try_cast(t AS TIMESTAMP_NTZ) AS n",
        "unix_micros(try_cast(t AS TIMESTAMP)) AS z",
    )
    near = "(d IS NULL OR year(d) BETWEEN 1 AND 9999) AND (n IS NULL OR year(n) BETWEEN 1 AND 9999)"
    found = spark.createDataFrame(texts, "t string").selectExpr("t", *casts).where(near)
    rows = found.toArrow().to_pylist()
    times = {row["t"]: read(read_timestamp, row["t"]) for row in rows}
    assert sum(not isinstance(time, type) and time is not None for time in times.values()) > 300
    for row in rows:
        day, time = read(read_date, row["t"]), times[row["t"]]
        assert day == row["d"] or (isinstance(day, type) and day is not None), row
        if isinstance(time, type):
            assert time is OnlyOnSpark or "24-" not in row["t"], row
        elif time is None:
            assert row["z"] is None, row
        elif time.tzinfo is None:
            assert time == row["n"], row
        else:
            assert int(time.timestamp() * 1_000_000) == row["z"], row
            assert time.replace(tzinfo=None) == row["n"], row


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (
            read_timestamp,
            "now",
            "'now' depends on the day on which it is read. Write the timestamp itself, as in '2024-",
        ),
        (read_timestamp, " Today UTC", "' Today UTC' depends on the day on which it is read"),
        (read_timestamp, "12:30", "'12:30' depends on the day on which it is read"),
        (read_timestamp, "T12:30", "'T12:30' depends on the day"),
        (
            read_date,
            "yesterday",
            "'yesterday' depends on the day on which it is read. Write the date itself, as in '2024-12",
        ),
        (read_timestamp, "epoch", "not a timestamp: 'epoch'. Write it as '1970-01-01 00:00:00Z'"),
        (read_date, "EPOCH", "not a date: 'EPOCH'. Write it as '1970-01-01'"),
        (read_timestamp, "12024-01-01", "not a timestamp: '12024-01-01', as years here are those from 1 to 9999"),
        (read_timestamp, "2024-01-01 12:00:00 PST8", "unknown time zone: 'PST8'. Write an offset, such as +01:00"),
    ],
)
def test_what_is_not_read_says_how_to_write_it(reader: Callable[[str], Any], text: str, message: str) -> None:
    """Words that Spark reads differently each day are refused on every host."""
    with pytest.raises(ValueError, match=r"[Ww]rite|years") as caught:
        reader(text)
    assert str(caught.value).startswith(message)
