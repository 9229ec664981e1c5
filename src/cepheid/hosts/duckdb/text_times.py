"""Text as TIMESTAMP and TIMESTAMP_NTZ, in the forms that Spark's casts read.

The date may end after the year or the month, and the time after the hour or the minute. A zone may follow the seconds:
Z, UTC, GMT or an offset are read here. Other zones, a time without a date, and years that are not of four digits need
Spark.
"""

from __future__ import annotations

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import UTC_NAMES, Fragment, bound, fail, instant

_SPACE = r"[\x00-\x20\x7f]*"
_HOUR, _SIXTY = "2[0-3]|[01]?[0-9]", "[0-5]?[0-9]"
_TIME = rf"({_HOUR})(?::({_SIXTY})(?::({_SIXTY})(?:[.]([0-9]*))?)?)?"
_DAY = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
_FORM = rf"\A{_SPACE}[+]?([0-9]{{4}})(?:-([0-9]{{1,2}})(?:-([0-9]{{1,2}})(?:[ T]{_TIME})?)?)?{_SPACE}\z"
_SECONDS = rf"[ T]({_HOUR}):({_SIXTY}):({_SIXTY})(?:[.]([0-9]*))?"
_OFFSET = r"(?:Z|UTC|GMT|([+-])([0-9]{1,2})(?::?([0-9]{2})|:([0-9]))?)"
_ZONED = rf"\A{_SPACE}[+]?{_DAY}{_SECONDS} *{_OFFSET}{_SPACE}\z"
_OTHER_ZONE = rf"\A{_SPACE}[+]?{_DAY}{_SECONDS} *[A-Za-z+-]"
_FAR = rf"\A{_SPACE}(?:-[0-9]{{4,6}}|[+]?[0-9]{{5,6}})(?:-|{_SPACE}\z)"
_NO_DATE = rf"\A{_SPACE}T?[0-9]{{1,2}}:[0-9]"
_LARGEST_OFFSET = 18 * 60


def timestamp_of_text(value: Fragment, type_: pa.DataType, zone: str, *, fails: bool) -> Fragment:
    """The time in the text; on other texts NULL or, if `fails`, an error."""
    clock = pa.timestamp("us")
    bad = fail("the text is not a time", clock) if fails else "NULL"
    unknown = fail("a time zone, a time without a date, or a far year; it is available on Spark", clock)
    local, zoned, valid = _clock(_FORM), _clock(_ZONED), f"abs({_offset()}) <= {_LARGEST_OFFSET}"
    if type_.tz:
        local = local if zone in UTC_NAMES else bound(local, instant("v", zone))
        zoned = f"({zoned} - to_minutes({_offset()}))"
    whens = (
        f"WHEN regexp_matches(v, '{_FORM}') THEN coalesce({local}, {bad})",
        f"WHEN regexp_matches(v, '{_ZONED}') AND {valid} THEN coalesce({zoned}, {bad})",
        f"WHEN regexp_matches(v, '{_OTHER_ZONE}|{_FAR}|{_NO_DATE}') THEN {unknown}",
        f"WHEN v IS NOT NULL THEN {bad}",
    )
    return Fragment(bound(value.text, f"CASE {' '.join(whens)} END"), type_, raises=True)


def _clock(form: str) -> str:
    """The time on the clock that the text `v` has in the form; NULL if there is no such day."""
    defaults = ("", "01", "01", "00", "00", "00")
    parts = (_part(form, i + 1, default) for i, default in enumerate(defaults))
    year, month, day, hour, minute, second = parts
    fraction = f"rpad(left(regexp_extract(v, '{form}', 7), 6), 6, '0')"
    text = f"{year} || '-' || {month} || '-' || {day} || ' ' || {hour} || ':' || {minute} || ':' || {second}"
    return f"TRY_CAST({text} || '.' || {fraction} AS TIMESTAMP)"


def _part(form: str, group: int, default: str) -> str:
    found = f"regexp_extract(v, '{form}', {group})"
    return f"lpad(CASE WHEN {found} = '' THEN '{default}' ELSE {found} END, {2 if default else 4}, '0')"


def _offset() -> str:
    """The minutes that the clock is ahead of UTC."""
    form = rf"{_OFFSET}{_SPACE}\z"  # alone, because DuckDB reads nine groups at most
    sign, hours, minutes, minute = (f"regexp_extract(v, '{form}', {group})" for group in range(1, 5))
    count = f"coalesce(TRY_CAST({hours} AS INTEGER), 0) * 60 + coalesce(TRY_CAST({minutes} || {minute} AS INTEGER), 0)"
    return f"(CASE WHEN {sign} = '-' THEN -1 ELSE 1 END * ({count}))"
