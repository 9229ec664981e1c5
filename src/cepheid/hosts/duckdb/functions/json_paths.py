"""`get_json_object`: the value at a path of a JSON text."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import Fragment, bound, quoted, widened
from cepheid.hosts.duckdb.rule import NotInProcess, WrongArguments, guarded
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import sql_name

_STEP = re.compile(r"\.(?P<name>[^.\[\]'\"*?\\$]+)|\[(?P<place>[0-9]+)\]|\['(?P<quoted>[^'\[\]\"?*\\]+)'\]")
# Java writes these doubles without an exponent, and with no more digits than they need.
_PLAIN = r"^(-?[0-9]{1,7}[.][0-9]*[1-9]|-?[0-9]{1,7}[.]0)0*$"
_MOST_DIGITS = 15


def get_json_object(_: Call, args: Sequence[Fragment], zone: str) -> Fragment:
    """The text of a string, otherwise JSON. NULL where nothing is, and for a null. It fails where Spark is more
    tolerant (a text that is no JSON) or writes numbers in another form.
    """
    value, path = args
    text = widened(value, pa.string(), zone)
    if text is None:
        raise WrongArguments(f"get_json_object takes STRING, got {sql_name(value.type)}")
    if path.literal is None or not isinstance(path.literal.value, str):
        raise NotInProcess("get_json_object with a path that is not a constant")
    place = quoted(_path(path.literal.value))
    unknown = _failure("get_json_object of a text that is no JSON, such as with single quotes")
    kind, found = f"json_type(v, {place})", f"json_extract_string(v, {place})"
    whens = (
        r"WHEN NOT regexp_matches(v, '^[ \t\n\r]*[{\[]') THEN NULL",
        f"WHEN NOT json_valid(v) THEN {unknown}",
        f"WHEN {kind} = 'DOUBLE' THEN {bound(found, _number())}",
        f"WHEN {kind} IN ('OBJECT', 'ARRAY') THEN {bound(found, _container())}",
    )
    return guarded([text], bound(text.text, f"CASE {' '.join(whens)} ELSE {found} END"), pa.string(), fails=True)


def _path(written: str) -> str:
    """DuckDB's form of the path, which has names and numbers alone."""
    position, path = 1, "$"
    while step := _STEP.match(written, position):
        position = step.end()
        name = step["name"] or step["quoted"]
        path += f"[{step['place']}]" if name is None else f'."{name}"'
    if not written.startswith("$") or position == 1 or position != len(written):
        raise NotInProcess(f"get_json_object with the path {written!r}")
    return path


def _number() -> str:
    """The number `v` with the digits that a double needs, if Java writes them so."""
    unknown = _failure("get_json_object of a number with so many digits or an exponent")
    short = f"regexp_matches(v, '{_PLAIN}') AND length(v) <= {_MOST_DIGITS} AND abs(CAST(v AS DOUBLE)) >= 0.001"
    return rf"CASE WHEN v IN ('0.0', '-0.0') OR {short} THEN regexp_replace(v, '{_PLAIN}', '\1') ELSE {unknown} END"


def _container() -> str:
    """The JSON `v`, if it has no number with a fraction and nothing that is escaped."""
    unknown = _failure("get_json_object of an object or array with fractions or escaped characters")
    return rf"CASE WHEN regexp_matches(v, '[0-9][.eE]|\\') THEN {unknown} ELSE v END"


def _failure(message: str) -> str:
    return f"CAST(error({quoted(f'{message}: it is available on Spark')}) AS VARCHAR)"
