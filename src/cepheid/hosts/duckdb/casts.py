"""Casts with Spark's ANSI results. Casts that are missing here (double to string, …) need Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.decimals import as_decimal
from cepheid.hosts.duckdb.fragment import Fragment, as_double, bound, duckdb_type, fail, local, widened
from cepheid.hosts.duckdb.rule import NotInProcess, converted
from cepheid.hosts.duckdb.text_times import timestamp_of_text
from cepheid.plan.conditions.types import (
    is_binary,
    is_decimal,
    is_float,
    is_integer,
    is_numeric,
    is_string,
    is_time,
    sql_name,
)

# What Spark trims around a number or date in text.
_SPACE = r"[\x00-\x20\x7f]*"
_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_INTEGER = rf"\A{_SPACE}([+-]?[0-9]+){_SPACE}\z"
_DECIMAL = rf"\A{_SPACE}({_NUMBER}){_SPACE}\z"
# For a DOUBLE, Java trims the text. To Java, 0x7f is not a space, and an F or D may follow the number.
_BLANK = r"[\x00-\x20]*"
_DOUBLE = rf"\A{_BLANK}({_NUMBER})[dDfF]?{_BLANK}\z"
_HEXADECIMAL = rf"\A{_BLANK}[+-]?0[xX][0-9a-fA-F.]*[pP]"
_NAN = rf"\A{_BLANK}(?:(?i:nan)|[+-]NaN){_BLANK}\z"
_INFINITY = rf"\A{_BLANK}([+-]?)(?i:inf|infinity){_BLANK}\z"
_AFTER = rf"(?:[ T](?s:.*))?{_SPACE}\z"
_YEAR = rf"\A{_SPACE}\+?0{{0,3}}([0-9]{{4}}){_SPACE}\z"
_MONTH = rf"\A{_SPACE}\+?0{{0,3}}([0-9]{{4}}-[0-9]{{1,2}}){_SPACE}\z"
_DATE = rf"\A{_SPACE}\+?0{{0,3}}([0-9]{{4}}-[0-9]{{1,2}}-[0-9]{{1,2}}){_AFTER}"
_FAR = rf"\A{_SPACE}(?:-[0-9]{{4,7}}|\+?[0-9]{{5,7}})(?:{_SPACE}\z|-)"
_TRUE = rf"(?i)\A{_SPACE}(?:t|true|y|yes|1){_SPACE}\z"
_FALSE = rf"(?i)\A{_SPACE}(?:f|false|n|no|0){_SPACE}\z"


_LONG_DIGITS = 18


class Mode(Enum):
    """What happens on a row whose value cannot be cast."""

    STRICT = "cast"
    """The cast fails."""
    LENIENT = "try_cast"
    """The cast gives NULL."""


def cast(value: Fragment, type_: pa.DataType, zone: str, mode: Mode) -> Fragment:
    """`value` as `type_`; on a row where that fails, an error or NULL, depending on the mode."""
    wide = None if is_decimal(type_) and value.type != type_ else widened(value, type_, zone)
    if wide is not None and not (is_string(value.type) and arrow.is_timestamp(type_) and value.literal is None):
        return replace(wide, literal=None)
    for accepts, rule in _RULES:
        if accepts(value.type, type_):
            return rule(value, type_, zone, mode)
    raise NotInProcess(f"the cast of {sql_name(value.type)} to {sql_name(type_)}")


def read_as(value: Fragment, type_: pa.DataType, zone: str) -> Fragment | None:
    """The value in another type, if Spark converts it implicitly; otherwise None. A text that is not a constant is
    cast, which fails where it is no such value.
    """
    if is_string(value.type) and value.literal is None and not is_string(type_):
        return cast(value, type_, zone, Mode.STRICT)
    return widened(value, type_, zone)


def as_type(value: Fragment, type_: pa.DataType, zone: str) -> Fragment:
    """The value in a type that Spark converts it to."""
    return read_as(value, type_, zone) or converted(value, type_, zone)


def _plain(text: str, value: Fragment, type_: pa.DataType, mode: Mode) -> Fragment:
    text = f"{_word(mode)}({text} AS {duckdb_type(type_)})"
    return Fragment(text, type_, raises=value.raises or mode is Mode.STRICT)


def _word(mode: Mode) -> str:
    return "TRY_CAST" if mode is Mode.LENIENT else "CAST"


def _number_to_number(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    if is_integer(type_) and is_float(value.type):
        return _float_to_integer(value, type_, mode)
    if is_integer(type_) and is_decimal(value.type):
        # Spark rounds a long decimal to a double first, except for BIGINT.
        rounds = value.type.precision > _LONG_DIGITS and type_ != pa.int64()
        number = as_double(value) if rounds else value.text
        return _plain(f"trunc({number})", value, type_, mode)
    if is_float(value.type):
        return _float_to_decimal(value, type_, mode)
    return _plain(value.text, value, type_, mode)


def _float_to_integer(value: Fragment, type_: pa.DataType, mode: Mode) -> Fragment:
    number = as_double(value)
    cut = _plain(f"trunc({number})", value, type_, mode)
    if type_ != pa.int64():
        return cut
    # Spark's check accepts 2^63, because it compares with the double nearest to the largest BIGINT.
    text = f"CASE WHEN {number} = 9223372036854775808 THEN CAST(9223372036854775807 AS BIGINT) ELSE {cut.text} END"
    return replace(cut, text=text)


def _float_to_decimal(value: Fragment, type_: pa.DataType, mode: Mode) -> Fragment:
    text = as_decimal(value, type_, _word(mode))
    return Fragment(text, type_, raises=value.raises or mode is Mode.STRICT)


def _exact_to_text(value: Fragment, type_: pa.DataType, _: str, __: Mode) -> Fragment:
    text = f"CAST({value.text} AS VARCHAR)"
    if is_decimal(value.type) and value.type.precision == value.type.scale:
        text = f"regexp_replace({text}, '^(-?)[.]', '\\10.')"
    return Fragment(text, type_, raises=value.raises)


def _number_to_boolean(value: Fragment, type_: pa.DataType, _: str, __: Mode) -> Fragment:
    return Fragment(f"({value.text} <> 0)", type_, raises=value.raises)


def _boolean_to_number(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    return _plain(f"CAST({value.text} AS TINYINT)", value, type_, mode)


def _text_to_number(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    form = _INTEGER if is_integer(type_) else _DECIMAL
    # Text in another form gives '', which every cast refuses.
    return _plain(f"regexp_extract({value.text}, '{form}', 1)", value, type_, mode)


def _text_to_double(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    number = f"{_word(mode)}(regexp_extract(v, '{_DOUBLE}', 1) AS DOUBLE)"
    hexadecimal = fail("a hexadecimal number; it is available on Spark", type_)
    infinite = f"CAST(regexp_extract(v, '{_INFINITY}', 1) || 'inf' AS DOUBLE)"
    forms = ((_NAN, "CAST('NaN' AS DOUBLE)"), (_INFINITY, infinite), (_HEXADECIMAL, hexadecimal))
    body = f"CASE {_when_matches(forms)} ELSE {number} END"
    return Fragment(bound(value.text, body), type_, raises=True)


def _when_matches(forms: Sequence[tuple[str, str]]) -> str:
    """The branches of a CASE over the text `v`: pairs of a regular expression and its result."""
    return " ".join(f"WHEN regexp_matches(v, '{form}') THEN {result}" for form, result in forms)


def _text_to_boolean(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    other = "NULL" if mode is Mode.LENIENT else fail("the text is not a BOOLEAN", type_)
    forms = ((_TRUE, "TRUE"), (_FALSE, "FALSE"))
    whens = " ".join(f"WHEN regexp_matches({value.text}, '{form}') THEN {truth}" for form, truth in forms)
    text = f"CASE {whens} WHEN {value.text} IS NOT NULL THEN {other} END"
    return Fragment(text, type_, raises=value.raises or mode is Mode.STRICT)


def _text_to_date(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    shorter = ((_YEAR, "-01-01"), (_MONTH, "-01"))
    far = fail("a year before 0 or after 9999; it is available on Spark", pa.string())
    day = f"regexp_extract(v, '{_DATE}', 1)"
    forms = (*((form, f"regexp_extract(v, '{form}', 1) || '{rest}'") for form, rest in shorter), (_DATE, day))
    day = f"CASE {_when_matches((*forms, (_FAR, far)))} ELSE {day} END"
    return replace(_plain(bound(value.text, day), value, type_, mode), raises=True)


def _text_to_timestamp(value: Fragment, type_: pa.DataType, zone: str, mode: Mode) -> Fragment:
    return timestamp_of_text(value, type_, zone, fails=mode is Mode.STRICT)


def _text_to_binary(value: Fragment, type_: pa.DataType, _: str, __: Mode) -> Fragment:
    return Fragment(f"encode({value.text})", type_, raises=value.raises)


def _time_to_text(value: Fragment, type_: pa.DataType, zone: str, __: Mode) -> Fragment:
    clock = value.text if value.type == pa.date32() else local(value, zone)
    error = fail("a year before 1 or after 9999 as text; it is available on Spark", type_)
    text = f"CASE WHEN year({clock}) NOT BETWEEN 1 AND 9999 THEN {error} ELSE CAST({clock} AS VARCHAR) END"
    return Fragment(text, type_, raises=True)


def _timestamp_to_number(value: Fragment, type_: pa.DataType, _: str, mode: Mode) -> Fragment:
    if type_ == pa.float64():
        return Fragment(f"(CAST(epoch_us({value.text}) AS DOUBLE) / 1000000)", type_, raises=value.raises)
    return _plain(f"epoch_us(date_trunc('second', {value.text})) // 1000000", value, type_, mode)


def _between_numbers(source: pa.DataType, target: pa.DataType) -> bool:
    if is_float(source):
        return is_integer(target) or is_decimal(target)
    return (is_numeric(source) or arrow.is_null(source)) and (is_integer(target) or is_decimal(target))


def _is_zoned(type_: pa.DataType) -> bool:
    return bool(arrow.is_timestamp(type_)) and type_.tz is not None


_Accepts = Callable[[pa.DataType, pa.DataType], bool]
_Rule = Callable[[Fragment, pa.DataType, str, Mode], Fragment]
_RULES: tuple[tuple[_Accepts, _Rule], ...] = (
    (_between_numbers, _number_to_number),
    (lambda s, t: (is_integer(s) or is_decimal(s) or arrow.is_boolean(s)) and is_string(t), _exact_to_text),
    (lambda s, t: is_numeric(s) and arrow.is_boolean(t), _number_to_boolean),
    (lambda s, t: arrow.is_boolean(s) and is_numeric(t), _boolean_to_number),
    (lambda s, t: is_string(s) and (is_integer(t) or is_decimal(t)), _text_to_number),
    (lambda s, t: is_string(s) and t == pa.float64(), _text_to_double),
    (lambda s, t: is_string(s) and arrow.is_boolean(t), _text_to_boolean),
    (lambda s, t: is_string(s) and t == pa.date32(), _text_to_date),
    (lambda s, t: is_string(s) and arrow.is_timestamp(t), _text_to_timestamp),
    (lambda s, t: is_string(s) and is_binary(t), _text_to_binary),
    (lambda s, t: is_time(s) and is_string(t), _time_to_text),
    (lambda s, t: _is_zoned(s) and (t in (pa.int64(), pa.float64())), _timestamp_to_number),
)
