"""Functions of dates and times."""

from __future__ import annotations

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import fail
from cepheid.hosts.duckdb.functions.function import Function, same

_FAR = fail("a year before 1 or after 9999; it is available on Spark", pa.date32())


def _clock(name: str, part: str, notes: str = "") -> Function:
    return Function(name, ("LOCAL",), "INT", f"CAST({part}({{0}}) AS INTEGER)", notes)


def _calendar(names: str, sql: str, notes: str = "") -> tuple[Function, ...]:
    return same(names, ("DATE",), "INT", f"CAST({sql} AS INTEGER)", notes)


TIMES: tuple[Function, ...] = (
    *_calendar("year", "year({0})"),
    *_calendar("quarter", "quarter({0})"),
    *_calendar("month", "month({0})"),
    *_calendar("day dayofmonth", "day({0})"),
    *_calendar("dayofweek", "dayofweek({0}) + 1", "1 is Sunday."),
    *_calendar("weekday", "isodow({0}) - 1", "0 is Monday."),
    *_calendar("dayofyear", "dayofyear({0})"),
    *_calendar("weekofyear", "weekofyear({0})", "ISO weeks."),
    _clock("hour", "hour"),
    _clock("minute", "minute"),
    _clock("second", "second"),
    Function("last_day", ("DATE",), "DATE", "last_day({0})"),
    Function("to_date", ("DATE",), "DATE", "{0}", "From text: on Spark only."),
    *same("date_add dateadd", ("DATE", "INT"), "DATE", "({0} + {1})"),
    Function("date_sub", ("DATE", "INT"), "DATE", "({0} - {1})"),
    *same("datediff date_diff", ("DATE", "DATE"), "INT", "CAST({0} - {1} AS INTEGER)", "From the second to the first."),
    Function(
        "add_months",
        ("DATE", "INT"),
        "DATE",
        "CAST({0} + to_months({1}) AS DATE)",
        "If the month is too short for the day, its last day.",
    ),
    Function("unix_timestamp", ("TIME",), "BIGINT", "epoch_us({0}) // 1000000", "Rounds towards 1970, as Spark does."),
    Function("unix_seconds", ("INSTANT",), "BIGINT", "epoch_us(date_trunc('second', {0})) // 1000000", "Rounds down."),
    Function("unix_millis", ("INSTANT",), "BIGINT", "epoch_us(date_trunc('millisecond', {0})) // 1000"),
    Function("unix_micros", ("INSTANT",), "BIGINT", "epoch_us({0})"),
    Function("unix_date", ("DAY",), "INT", "CAST({0} - CAST('1970-01-01' AS DATE) AS INTEGER)"),
    Function("dayname", ("DATE",), "STRING", "left(dayname({0}), 3)", "In English, of three letters."),
    Function("monthname", ("DATE",), "STRING", "left(monthname({0}), 3)", "In English, of three letters."),
    Function(
        "make_date",
        ("INT", "INT", "INT"),
        "DATE",
        f"CASE WHEN {{0}} NOT BETWEEN 1 AND 9999 THEN {_FAR} ELSE make_date({{0}}, {{1}}, {{2}}) END",
        "A day that does not exist fails.",
        fails=True,
    ),
    Function("date_from_unix_date", ("INT",), "DATE", "CAST('1970-01-01' AS DATE) + {0}", fails=True),
    Function("timestamp_seconds", ("COUNT",), "TIMESTAMP", "make_timestamp({0} * 1000000)", fails=True),
    Function("timestamp_millis", ("COUNT",), "TIMESTAMP", "make_timestamp({0} * 1000)", fails=True),
    Function("timestamp_micros", ("COUNT",), "TIMESTAMP", "make_timestamp({0})", fails=True),
)
