"""The page of functions that are available in process: `python -m cepheid.hosts.duckdb.function_reference > page`."""

from __future__ import annotations

import sys

from cepheid.hosts.duckdb.functions import BY_NAME, Function

_INTRODUCTION = """# Functions available in process

On Spark every deterministic scalar function can be used in a condition. In process DuckDB computes the functions,
operators and casts of this page. Each has been compared with Spark: its values, types and failures. Anything else is
refused by name. This page is generated from the table of functions.

FLOATING is FLOAT or DOUBLE. INTEGER is any integer type. LOCAL is a TIMESTAMP (read on the clock of the session's time
zone), a TIMESTAMP_NTZ or a DATE. Arguments are widened as Spark widens them: integers to larger ones, numbers to
DOUBLE, a TIMESTAMP to a DATE. A text constant beside a time is read as that time when it is written in full
(`'2024-12-31'`, `'2024-12-31 23:59:59'`). Times lie in the years 1 to 9999.

## Operators

| operator | notes |
|---|---|
"""
OPERATOR_NOTES = (
    ("`AND`, `OR`, `NOT`", "Operands after the one that decides are not evaluated and cannot fail."),
    ("`=`, `!=`, `<`, `<=`, `>`, `>=`, `<=>`", "NaN equals NaN and is the largest; -0.0 equals 0.0."),
    ("`IS NULL`, `BETWEEN`, `IN`, `IS [NOT] TRUE`, `IS DISTINCT FROM`", ""),
    ("`+`, `-`, `*`", "Overflow of integers fails. Decimals: results of up to 38 digits."),
    ("`/`, `div`, `%`", "Division by zero fails. `/` of integers gives DOUBLE. Decimals: up to 38 digits."),
    ("`round(number[, places])`", "Halves go away from zero. The places are a constant from 0."),
    ("`LIKE … ESCAPE`, `RLIKE`", "Constant patterns. A regular expression must mean the same in Java and RE2."),
    ("`CASE`, `if`, `coalesce`, `nvl`, `ifnull`, `nvl2`, `nullif`", "Only the branch that is taken is evaluated."),
    ("`greatest`, `least`, `abs`, `isnull`, `isnotnull`", ""),
    ("`concat`, <code>&#124;&#124;</code>, `concat_ws`", "STRING only."),
    ("TIMESTAMP `+`, `-` INTERVAL; TIMESTAMP `-` TIMESTAMP", "By less than a day where the time zone is not UTC."),
    ("`date_trunc(unit, time)`, `trunc(date, unit)`", "The unit is a constant."),
    (
        "`cast`, `try_cast`",
        "Numbers, decimals, BOOLEAN, STRING and times; not FLOAT, DOUBLE to STRING, nor STRING to FLOAT or TIMESTAMP.",
    ),
)


def function_reference() -> str:
    """The page, as Markdown."""
    operators = "".join(f"| {names} | {notes} |\n" for names, notes in OPERATOR_NOTES)
    functions = "".join(_row(name, BY_NAME[name]) for name in sorted(BY_NAME))
    return f"{_INTRODUCTION}{operators}\n## Functions\n\n| function | gives | notes |\n|---|---|---|\n{functions}"


def _row(name: str, ways: list[Function]) -> str:
    calls = "<br>".join(f"`{name}({', '.join(way.takes)})`" for way in ways)
    gives = "<br>".join(way.gives for way in ways)
    notes = " ".join(dict.fromkeys(way.notes for way in ways if way.notes))
    return f"| {calls} | {gives} | {notes} |\n"


if __name__ == "__main__":
    sys.stdout.write(function_reference())
