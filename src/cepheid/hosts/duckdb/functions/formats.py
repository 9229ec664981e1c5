"""Times as text in a format, and text as times: `date_format`, `to_date`, `to_timestamp` and their like.

Formats are constants of Java's DateTimeFormatter. Numbers, names of days and months in English, and quoted text are
read here; other letters need Spark.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence

import pyarrow as pa
from pyarrow import types as arrow

from cepheid.hosts.duckdb.casts import Mode, cast, read_as
from cepheid.hosts.duckdb.fragment import TIMESTAMP, Fragment, bound, duckdb_type, fail, instant, local, quoted, widened
from cepheid.hosts.duckdb.rule import NotInProcess, Rule, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import TIMESTAMP_NTZ, is_string, is_time, sql_name

_TOKEN = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|([^A-Za-z'\[\]{}#]+)")
_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_FAR = 253_402_300_800
"""Seconds from 1970 to the year 10000."""


def _padded(part: str, digits: int) -> str:
    """A number of at least this many digits."""
    text = f"CAST({part} AS VARCHAR)"
    return text if digits == 1 else f"lpad({text}, CAST(greatest(length({text}), {digits}) AS INTEGER), '0')"


def _part(part: str) -> Callable[[int], str]:
    return lambda digits: _padded(part, digits)


_HOUR_OF_12 = "CASE WHEN hour(v) % 12 = 0 THEN 12 ELSE hour(v) % 12 END"
_NUMBERS: dict[str, tuple[Callable[[int], str], int]] = {
    "M": (_part("month(v)"), 2),
    "d": (_part("day(v)"), 2),
    "H": (_part("hour(v)"), 2),
    "h": (_part(_HOUR_OF_12), 2),
    "m": (_part("minute(v)"), 2),
    "s": (_part("second(v)"), 2),
    "D": (_part("dayofyear(v)"), 3),
}
"""For each letter the text of a time `v` with so many digits, and the most letters in a row."""
_OTHERS = {
    "y": _padded("year(v)", 1),
    "yy": _padded("year(v) % 100", 2),
    "yyyy": _padded("year(v)", 4),
    "a": "strftime(v, '%p')",
    "MMM": "strftime(v, '%b')",
    "MMMM": "strftime(v, '%B')",
    **dict.fromkeys(("E", "EE", "EEE"), "strftime(v, '%a')"),
    "EEEE": "strftime(v, '%A')",
}
_READ = {
    "yyyy": ("year", "[0-9]{4}"),
    "MM": ("month", "0[1-9]|1[0-2]"),
    "M": ("month", "0?[1-9]|1[0-2]"),
    "dd": ("day", "0[1-9]|[12][0-9]|3[01]"),
    "d": ("day", "0?[1-9]|[12][0-9]|3[01]"),
    "HH": ("hour", "[01][0-9]|2[0-3]"),
    "H": ("hour", "2[0-3]|[01]?[0-9]"),
    "mm": ("minute", "[0-5][0-9]"),
    "m": ("minute", "[0-5]?[0-9]"),
    "ss": ("second", "[0-5][0-9]"),
    "s": ("second", "[0-5]?[0-9]"),
    **{"S" * digits: ("fraction", f"[0-9]{{{digits}}}") for digits in range(1, 7)},
}
"""For each run of letters the part of a time that it reads, and the regular expression of its text."""


def _tokens(written: str) -> list[tuple[str, str]]:
    """Matches a run of letters, or the text between two runs: one of the two groups is empty."""
    tokens: list[tuple[str, str]] = []
    position = 0
    for token in _TOKEN.finditer(written):
        if token.start() != position:
            break
        position = token.end()
        if token[1]:
            tokens.append((token[0], ""))
        else:
            tokens.append(("", token[3] or (token[2] or "'").replace("''", "'")))
    if position != len(written) or not tokens:
        raise NotInProcess(f"the format {written!r}")
    return tokens


def _format_of(arg: Fragment) -> str:
    if arg.literal is None or not isinstance(arg.literal.value, str):
        raise NotInProcess("a format that is not a constant")
    return arg.literal.value


# Text of times


def _date_format(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    time, written = args
    moment = read_as(time, TIMESTAMP, zone)
    if moment is None:
        raise WrongArguments(f"{call.function} takes a time, got {sql_name(time.type)}")
    return _formatted(moment, _format_of(written), zone)


_OF_NAMES, _LONGEST_NAME = frozenset("GMLEQq"), 4
"""Letters that may stand for names, which Spark takes up to four times."""


def _formatted(time: Fragment, written: str, zone: str) -> Fragment:
    text = " || ".join(quoted(plain) if plain else _written_part(letters) for letters, plain in _tokens(written))
    error = fail("a year before 1 or after 9999 as text; it is available on Spark", pa.string())
    body = f"CASE WHEN v IS NULL THEN NULL WHEN year(v) NOT BETWEEN 1 AND 9999 THEN {error} ELSE {text} END"
    return guarded([time], bound(local(time, zone), body), pa.string(), fails=True)


def _written_part(letters: str) -> str:
    if letters in _OTHERS:
        return _OTHERS[letters]
    if set(letters) == {"S"} and len(letters) <= 9:
        return f"rpad(lpad(CAST(microsecond(v) % 1000000 AS VARCHAR), 6, '0'), {len(letters)}, '0')"
    number, most = _NUMBERS.get(letters[0], (None, 0))
    if letters[0] in _OF_NAMES and len(letters) > _LONGEST_NAME:
        raise WrongArguments(f"{letters!r} in a format: at most {_LONGEST_NAME} of this letter")
    if number is None or len(letters) > most:
        raise NotInProcess(f"{letters!r} in a format")
    return number(len(letters))


def _from_unixtime(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    seconds = widened(args[0], pa.int64(), zone)
    if seconds is None:
        raise WrongArguments(f"from_unixtime takes a BIGINT, got {sql_name(args[0].type)}")
    error = fail("a year before 1 or after 9999 as text; it is available on Spark", TIMESTAMP)
    made = f"CASE WHEN v NOT BETWEEN -{_FAR} AND {_FAR} THEN {error} ELSE make_timestamp(v * 1000000) END"
    moment = Fragment(bound(seconds.text, made), TIMESTAMP, raises=True)
    return _formatted(moment, _format_of(args[1]) if len(args) > 1 else _DEFAULT, zone)


# Times of text


def _to_time(call: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """`to_date`, `to_timestamp`, …; without a format the text is cast."""
    mode = Mode.LENIENT if call.function.startswith("try_") else Mode.STRICT
    type_ = _GIVEN[call.function.removeprefix("try_")]
    value = args[0]
    if len(args) > 2:
        raise WrongArguments(f"{call.function} takes a value and a format, got {len(args)} arguments")
    if len(args) == 1 or not is_string(value.type):
        if len(args) == 2:
            _format_of(args[1])
        if len(args) == 2 and TIMESTAMP_NTZ in (value.type, type_):
            raise NotInProcess(f"{call.function} of {sql_name(value.type)} with a format")
        if not (is_string(value.type) or is_time(value.type) or arrow.is_null(value.type)):
            raise NotInProcess(f"{call.function} of {sql_name(value.type)}")
        return cast(value, type_, zone, mode)
    return _parsed(value, _format_of(args[1]), type_, zone, mode)


_GIVEN = {
    "to_date": pa.date32(),
    "to_timestamp": TIMESTAMP,
    "to_timestamp_ltz": TIMESTAMP,
    "to_timestamp_ntz": TIMESTAMP_NTZ,
}


def _parsed(value: Fragment, written: str, type_: pa.DataType, zone: str, mode: Mode) -> Fragment:
    form, parts = _form(written)
    text = value.literal.value if value.literal is not None and mode is Mode.STRICT else None
    if isinstance(text, str) and not _is_read(text, form, parts):
        raise WrongArguments(f"the text {text!r} is no time of the form {written}")
    iso = " || ".join(_iso_part(name, digits, parts, form) for name, digits in _ISO)
    moment = f"TRY_CAST({iso} AS TIMESTAMP)"
    bad = "NULL" if mode is Mode.LENIENT else fail(f"the text is no time of the form {written}", pa.timestamp("us"))
    far = fail("a year after 9999; it is available on Spark", pa.timestamp("us"))
    read = f"WHEN regexp_matches(v, {quoted(form)}) AND {moment} IS NOT NULL THEN {moment}"
    body = f"CASE {read} WHEN regexp_matches(v, '[+][0-9]{{5}}') THEN {far} WHEN v IS NOT NULL THEN {bad} END"
    clock = bound(value.text, body)
    time = instant(clock, zone) if type_ == TIMESTAMP else f"CAST({clock} AS {duckdb_type(type_)})"
    return guarded([value], time, type_, fails=True)


def _is_read(text: str, form: str, parts: dict[str, int]) -> bool:
    """Whether a constant text has the form and is a day that exists. A year after 9999 is not checked."""
    if _FAR_YEAR.search(text):
        return True
    if (found := re.fullmatch(form.removeprefix(r"(?i)\A").removesuffix(r"\z"), text, re.IGNORECASE)) is None:
        return False
    year, month, day = (int(found[parts[name]]) if name in parts else 1 for name in ("year", "month", "day"))
    return day <= monthrange(year or _LEAP_YEAR, month)[1]


_FAR_YEAR = re.compile("[+][0-9]{5}")
_LEAP_YEAR = 4
"""Stands for the year 0, which Python's calendar does not have."""


_ISO = (("year", 4), ("month", 2), ("day", 2), ("hour", 2), ("minute", 2), ("second", 2), ("fraction", 6))
_BEFORE = {"year": "", "month": "-", "day": "-", "hour": " ", "minute": ":", "second": ":", "fraction": "."}


def _form(written: str) -> tuple[str, dict[str, int]]:
    """The regular expression of the format, and the number of its group for each part."""
    form, parts = "", dict[str, int]()
    before = ""
    for letters, plain in _tokens(written):
        if plain:
            form += re.escape(plain) if plain.isascii() else plain
            before = "0" if plain[-1].isdigit() else ""
            continue
        name, expression = _READ.get(letters, ("", ""))
        # Beside another number, Java reads one of any length in another way.
        if not name or name in parts or (before and 1 in (len(letters), len(before))):
            raise NotInProcess(f"{letters!r} at this place of a format that reads text")
        parts[name] = len(parts) + 1
        form += f"({expression})"
        before = letters
    if "year" not in parts:
        raise NotInProcess("a format without a year that reads text")
    return rf"(?i)\A{form}\z", parts


def _iso_part(name: str, digits: int, parts: dict[str, int], form: str) -> str:
    before = quoted(_BEFORE[name]) + " || "
    if name not in parts:
        return before + quoted({"month": "01", "day": "01"}.get(name, "0" * digits))
    found = f"regexp_extract(v, {quoted(form)}, {parts[name]})"
    return before + (f"rpad({found}, 6, '0')" if name == "fraction" else f"lpad({found}, {digits}, '0')")


FORMATS: dict[str, Rule] = {
    "date_format": _date_format,
    "from_unixtime": _from_unixtime,
    **dict.fromkeys((*_GIVEN, "try_to_date", "try_to_timestamp"), _to_time),
}
