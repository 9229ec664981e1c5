"""The page of functions that are available in process: `python -m cepheid.hosts.duckdb.function_reference > page`."""

from __future__ import annotations

import sys

from cepheid.hosts.duckdb.functions.function import Function
from cepheid.hosts.duckdb.functions.table import BY_NAME

_INTRODUCTION = """# Functions available in process

On Spark every deterministic scalar function can be used in a condition. In process DuckDB computes the functions,
operators and casts of this page. Each is compared with Spark by tests that generate calls with arguments of every type
and with values at the edges: values, types and failures are the same. Anything else is refused by name. This page is
generated from the tables of functions.

The exceptions are functions of DOUBLE that Java and C round differently: logarithms, `exp`, `power`, `cbrt` and
trigonometry. Their results are within 2 units in the last place of Spark's, so that a comparison with a threshold can
differ only for values next to it.

FLOATING is FLOAT or DOUBLE. INTEGER is any integer type. LOCAL is a TIMESTAMP (read on the clock of the session's time
zone), a TIMESTAMP_NTZ or a DATE. INSTANT is a TIMESTAMP or TIMESTAMP_NTZ, TIME these or a DATE, DAY a DATE alone,
COUNT any integer type, START one up to INT. Arguments are widened as Spark widens them: integers to larger ones,
numbers to DOUBLE, a TIMESTAMP to a DATE. A text in place of a number, a truth value or a time is cast, and fails if it
is no such value, but not in place of INSTANT, TIME, DAY, COUNT, START, INTEGER and FLOATING. Other types you cast:
`upper(cast(n AS STRING))`. Times lie in the years 1 to 9999.

## Operators

| operator | notes |
|---|---|
"""
_TYPE_OF_BITS = "Integers. The result has the wider type."
OPERATOR_NOTES = (
    ("`AND`, `OR`, `NOT`", "Operands after the one that decides are not evaluated and cannot fail."),
    ("`=`, `!=`, `<`, `<=`, `>`, `>=`, `<=>`, `equal_null`", "NaN equals NaN and is the largest; -0.0 equals 0.0."),
    ("`IS NULL`, `IS NOT NULL`, `BETWEEN`, `IN`, `IS [NOT] TRUE`, `IS DISTINCT FROM`", ""),
    ("`+`, `-`, `*`, `negative`, `positive`", "Overflow of integers fails. Decimals: results of up to 38 digits."),
    ("`/`, `div`, `%`, `mod`", "Division by zero fails. `/` of integers gives DOUBLE. Decimals: up to 38 digits."),
    ("`try_add`, `try_subtract`, `try_multiply`, `try_divide`, `try_mod`", "Of numbers: NULL where they would fail."),
    ("`pmod`", "Integers, FLOAT and DOUBLE."),
    ("`&`, <code>&#124;</code>, `^`, `~`, `bit_count`", _TYPE_OF_BITS),
    ("`<<`, `>>`, `shiftleft`, `shiftright`, `shiftrightunsigned`", "By the places modulo 32, or 64 for BIGINT."),
    ("`CASE`, `if`, `coalesce`, `nvl`, `ifnull`, `nvl2`, `nullif`", "Only the branch that is taken is evaluated."),
    ("`greatest`, `least`, `abs`, `isnull`, `isnotnull`, `nullifzero`, `zeroifnull`", ""),
    (
        "`cast`, `try_cast`",
        (
            "Numbers, decimals, BOOLEAN, STRING and times; not FLOAT, DOUBLE to STRING, nor STRING to FLOAT. Text with "
            "the name of a time zone fails. `int(x)`, `bigint`, `smallint`, `tinyint`, `double`, `float`, `decimal`, "
            "`boolean`, `string`, `binary`, `date` and `timestamp` are casts, too."
        ),
    ),
    (
        "a time `+`, `-` INTERVAL; a time `-` a time; DATE `+`, `-` days",
        "Months, years and whole days are counted on the clock of the time zone.",
    ),
)
_FORMATS = (
    "`yyyy`, `yy`, `y`, `M` to `MMMM`, `d`, `dd`, `H`, `h`, `m`, `s`, `S`, `a`, `E`, `EEEE`, `D`, and text in quotes"
)
RULE_NOTES = (
    ("`round(number[, places])`", "Halves go away from zero. The places are a constant from 0."),
    ("`ceil(number)`, `ceiling`, `floor`", "BIGINT, of a DECIMAL a DECIMAL. NaN gives 0; overflow fails."),
    ("`nanvl(number, number)`", "FLOAT if both are."),
    ("`concat`, <code>&#124;&#124;</code>", "Texts, and values that can be cast to STRING; or arrays of one type."),
    ("`concat_ws(separator, …)`", "Texts, arrays of texts, and values that can be cast to STRING. NULLs are left out."),
    ("`initcap(STRING)`", "Fails on characters whose case differs, as `upper` does."),
    ("`trim(… FROM …)`, `substring(… FROM …)`, `substr(… FROM …)`, `position(… IN …)`", "Also `trim(BOTH …)`."),
    (
        "`substring_index(STRING, delimiter, count)`",
        "The delimiter is a constant of one character, the count a constant.",
    ),
    ("`sha2(value, 256)`", "STRING or BINARY."),
    ("`LIKE … ESCAPE`, `LIKE ANY`, `LIKE ALL`, `ILIKE`", "Constant patterns."),
    (
        "`RLIKE`, `REGEXP`, `regexp_like`, `regexp_count`, `regexp_substr`",
        "Constant patterns, which must mean the same in Java and RE2. `(?i)` may begin one.",
    ),
    ("`regexp_extract(STRING, pattern[, group])`, `regexp_extract_all`", "The pattern and the group are constants."),
    ("`regexp_replace(STRING, pattern, replacement)`", "`$1` in the constant replacement is the first group."),
    ("`split(STRING, pattern)`", "Without a limit. The pattern is a constant."),
    (
        "`get_json_object(STRING, path)`",
        (
            "The path is a constant of names and numbers. Fails on a text that is no JSON, and on numbers with an "
            "exponent or more than 14 digits."
        ),
    ),
    ("`date_trunc(unit, time)`, `trunc(date, unit)`", "The unit is a constant."),
    (
        "`extract(field FROM time)`, `date_part('field', time)`, `datepart`",
        "Year, yearofweek, quarter, month, week, day, dayofweek, dow_iso, doy, hour, minute, second.",
    ),
    ("`date_format(time, format)`, `from_unixtime(BIGINT[, format])`", f"A constant format of {_FORMATS}."),
    (
        (
            "`to_date(STRING[, format])`, `to_timestamp`, `to_timestamp_ntz`, `to_timestamp_ltz`, `try_to_date`, "
            "`try_to_timestamp`"
        ),
        "A constant format of `yyyy`, `M`, `d`, `H`, `m`, `s` and `S`; without one, as in a cast.",
    ),
    ("`next_day(DATE, day)`", "The day is a constant in English: `'monday'`, `'mon'`, `'mo'`."),
    ("`timestampdiff(unit, from, to)`, `datediff(unit, …)`", "Whole units on the clock, from MICROSECOND to YEAR."),
    ("`timestampadd(unit, count, time)`, `dateadd(unit, …)`", "From MICROSECOND to YEAR."),
    ("`from_utc_timestamp(time, zone)`, `to_utc_timestamp`", "The zone is a constant."),
    (
        "`array(…)`, `array[i]`, `get(array, i)`",
        "`[ ]` counts from 0 and fails outside the array; `get` is NULL there.",
    ),
    (
        "`element_at(array, i)`, `try_element_at`",
        "Counts from 1, or from the end. The first one fails outside the array.",
    ),
    ("`map[key]`, `element_at(map, key)`, `map_contains_key(map, key)`, `map_keys`, `map_values`", ""),
    ("`size(array or map)`, `cardinality`, `array_size`", "NULL for NULL."),
    ("`array_contains(array, value)`, `array_position`", "`array_contains`: NULL if not found beside a NULL."),
    ("`array_min(array)`, `array_max`, `sort_array`, `array_join(array, separator)`", "`sort_array` not of FLOATING."),
    ("`struct.field`", ""),
)


def function_reference() -> str:
    """The page, as Markdown."""
    operators = "".join(f"| {names} | {notes} |\n" for names, notes in OPERATOR_NOTES)
    rules = "".join(f"| {names} | {notes} |\n" for names, notes in RULE_NOTES)
    functions = "".join(_row(name, BY_NAME[name]) for name in sorted(BY_NAME) if not name.endswith("_from"))
    return (
        f"{_INTRODUCTION}{operators}\n## Functions of several types or with constants\n\n"
        f"| function | notes |\n|---|---|\n{rules}\n## Functions\n\n"
        f"| function | gives | notes |\n|---|---|---|\n{functions}"
    )


def _row(name: str, ways: list[Function]) -> str:
    calls = "<br>".join(f"`{name}({', '.join(way.takes)})`" for way in ways)
    gives = "<br>".join(way.gives for way in ways)
    notes = " ".join(dict.fromkeys(way.notes for way in ways if way.notes))
    return f"| {calls} | {gives} | {notes} |\n"


if __name__ == "__main__":
    sys.stdout.write(function_reference())
