"""Functions of texts across events: what they take and return, and the few operators that they become.

No compiled kernel knows them, because it has codes of texts, not their characters. A pattern with such a condition
runs in Python, like one whose condition is a function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from cepheid.plan.conditions.script import ConstantValue, Operation, Operator, Script

STRING, INT, BOOL = pa.string(), pa.int32(), pa.bool_()
_TO_THE_END = ConstantValue(2**31 - 1, INT)
_NOTHING = ConstantValue("", STRING)


@dataclass(frozen=True)
class TextFunction:
    """A function of texts. `takes` has the type of each argument; `optional` of the last ones may be left out."""

    takes: tuple[pa.DataType, ...]
    returns: pa.DataType
    build: Callable[[Sequence[Script]], Operation]
    optional: int = 0
    any_number: bool = False
    """Whether it takes any number of arguments, and makes texts of them."""


def _plain(operator: Operator, *takes: pa.DataType, returns: pa.DataType = STRING) -> TextFunction:
    return TextFunction(takes, returns, lambda given: Operation(operator, tuple(given), returns))


def _lower(text: Script) -> Script:
    return Operation(Operator.LOWER, (text,), STRING)


def _substring(given: Sequence[Script]) -> Operation:
    return Operation(Operator.SUBSTRING, (*given, _TO_THE_END)[:3], STRING)


def _left(given: Sequence[Script]) -> Operation:
    text, length = given
    return Operation(Operator.SUBSTRING, (text, ConstantValue(1, INT), length), STRING)


def _replace(given: Sequence[Script]) -> Operation:
    return Operation(Operator.REPLACE, (*given, _NOTHING)[:3], STRING)


def _ilike(given: Sequence[Script]) -> Operation:
    return Operation(Operator.LIKE, tuple(map(_lower, given)), BOOL)


_LOCATE = TextFunction((STRING, STRING), INT, lambda given: Operation(Operator.POSITION, (given[1], given[0]), INT))
_SUBSTRING = TextFunction((STRING, INT, INT), STRING, _substring, optional=1)
_REPLACE = TextFunction((STRING, STRING, STRING), STRING, _replace, optional=1)
_LENGTH = _plain(Operator.LENGTH, STRING, returns=INT)

TEXT_FUNCTIONS: dict[str, TextFunction] = {
    "concat": TextFunction((), STRING, lambda given: Operation(Operator.CONCAT, tuple(given), STRING), any_number=True),
    "like": _plain(Operator.LIKE, STRING, STRING, returns=BOOL),
    "ilike": TextFunction((STRING, STRING), BOOL, _ilike),
    **dict.fromkeys(("lower", "lcase"), _plain(Operator.LOWER, STRING)),
    **dict.fromkeys(("upper", "ucase"), _plain(Operator.UPPER, STRING)),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), _LENGTH),
    **dict.fromkeys(("trim", "btrim"), _plain(Operator.TRIM, STRING)),
    "ltrim": _plain(Operator.TRIM_LEFT, STRING),
    "rtrim": _plain(Operator.TRIM_RIGHT, STRING),
    **dict.fromkeys(("substring", "substr", "substring_from", "substr_from"), _SUBSTRING),
    "left": TextFunction((STRING, INT), STRING, _left),
    "right": _plain(Operator.RIGHT, STRING, INT),
    "startswith": _plain(Operator.STARTS_WITH, STRING, STRING, returns=BOOL),
    "endswith": _plain(Operator.ENDS_WITH, STRING, STRING, returns=BOOL),
    "contains": _plain(Operator.CONTAINS, STRING, STRING, returns=BOOL),
    "instr": _plain(Operator.POSITION, STRING, STRING, returns=INT),
    **dict.fromkeys(("locate", "position", "position_from"), _LOCATE),
    "replace": _REPLACE,
    "reverse": _plain(Operator.REVERSE, STRING),
}
"""By their names in SQL."""


def computes_texts(script: Script | None) -> bool:
    """Whether a script has an operator that only the reference step knows."""
    if not isinstance(script, Operation):
        return False
    return script.operator.is_of_texts or any(map(computes_texts, script.operands))
