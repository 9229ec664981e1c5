"""What rules are: functions from a call and its translated arguments to its translation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import Fragment, duckdb_type, widened
from cepheid.lang.expression import Call
from cepheid.plan.conditions.types import is_numeric, is_string, is_time, sql_name

Rule: TypeAlias = Callable[[Call, Sequence[Fragment], str], Fragment]
"""Takes the call, its translated arguments and the time zone."""


class NotInProcess(Exception):
    """An expression of Spark that cannot be translated with exactly Spark's result; the message says what and why."""


class WrongArguments(Exception):
    """Arguments that are not taken here, and mostly not on Spark; the message says which are taken."""


def converted(arg: Fragment, type_: pa.DataType, zone: str) -> Fragment:
    """The value in a type that Spark converts it to."""
    wide = widened(arg, type_, zone)
    if wide is None and arg.literal is not None and is_string(arg.type):
        text, name = arg.literal.value, sql_name(type_)
        raise WrongArguments(f"the text {text!r} is not read as {name} here{_how_to_write(type_)}")
    if wide is None:
        raise NotInProcess(f"{sql_name(arg.type)} is not converted to {sql_name(type_)} here")
    return wide


def _how_to_write(type_: pa.DataType) -> str:
    if type_ == pa.date32():
        return ". Write it as '2024-12-31'"
    if is_time(type_):
        return ". Write it as '2024-12-31 23:59:59'"
    return ". Write it without quotes" if is_numeric(type_) else ""


def guarded(args: Sequence[Fragment], text: str, type_: pa.DataType, *, fails: bool = False) -> Fragment:
    """`text` over `args`. NULL if an argument before one that can fail is NULL: the latter is then not evaluated."""
    last = max((i for i, arg in enumerate(args) if arg.raises), default=0)
    if nulls := " OR ".join(f"{arg.text} IS NULL" for arg in args[:last]):
        text = f"CASE WHEN {nulls} THEN CAST(NULL AS {duckdb_type(type_)}) ELSE {text} END"
    return Fragment(f"({text})", type_, raises=fails or any(arg.raises for arg in args))
