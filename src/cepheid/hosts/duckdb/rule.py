"""What rules are: functions from a call and its translated arguments to its translation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import pyarrow as pa

from cepheid.hosts.duckdb.fragment import Fragment, duckdb_type, widened
from cepheid.lang.expression import Call
from cepheid.lang.literals import OnlyOnSpark
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.conditions.types import is_string, sql_name

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
        raise _unread(str(arg.literal.value), type_)
    if wide is None:
        raise NotInProcess(f"{sql_name(arg.type)} is not converted to {sql_name(type_)} here")
    return wide


def _unread(text: str, type_: pa.DataType) -> Exception:
    """Why a constant text is not a value of the type here."""
    try:
        value = value_of_text(text, type_)
    except OnlyOnSpark as error:
        return NotInProcess(str(error))
    except ValueError as error:
        return WrongArguments(str(error))
    raise AssertionError(value)


def guarded(args: Sequence[Fragment], text: str, type_: pa.DataType, *, fails: bool = False) -> Fragment:
    """`text` over `args`. NULL if an argument before one that can fail is NULL: the latter is then not evaluated."""
    last = max((i for i, arg in enumerate(args) if arg.raises), default=0)
    if nulls := " OR ".join(f"{arg.text} IS NULL" for arg in args[:last]):
        text = f"CASE WHEN {nulls} THEN CAST(NULL AS {duckdb_type(type_)}) ELSE {text} END"
    return Fragment(f"({text})", type_, raises=fails or any(arg.raises for arg in args))
