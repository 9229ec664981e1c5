"""Constant texts that SQL casts to another type and cannot, which Spark reports only while it runs, and texts such as
'now', which are other times on other days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.literals import TIMESTAMP, DependsOnDay, OnlyOnSpark
from cepheid.lang.sql.habits import habit_of_refused
from cepheid.lang.type_names import read_type
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.conditions.resolve import Apply, Column, Constant, Node, Pick, Shape
from cepheid.plan.conditions.types import TIMESTAMP_NTZ, is_string
from cepheid.plan.conditions.value_casts import targets_of_casts

_CASTS = {"cast": None, "try_cast": None, "to_date": pa.date32(), "to_timestamp_ntz": TIMESTAMP_NTZ}
_CASTS |= dict.fromkeys(("to_timestamp", "to_timestamp_ltz"), TIMESTAMP)
_CASTS |= {name: read_type(name) for name in ("tinyint", "smallint", "int", "bigint", "double", "boolean")}
_CASTS |= {name: read_type(name) for name in ("date", "timestamp")}
"""Functions of one text, and the type that they cast it to; None: the type that is written, the second argument. With a
format, a text is read otherwise.
"""


def text_problems(nodes: Sequence[Node], types: Mapping[Shape, pa.DataType]) -> Iterator[Problem]:
    """The problems in the parts of the nodes that are about one event and have a type in `types`."""
    for whole, part in ((node, part) for node in nodes for part in resolve.walk(node)):
        if not isinstance(part, Apply) or part.source is None or not resolve.is_of_one_event(part):
            continue
        for text, target in _casts_of_texts(part, types):
            message = _problem(text, target, is_tried=part.call.function == "try_cast")
            if message is not None:
                hint = habit_of_refused(resolve.expression_of(whole), part.call, text.source.text)
                yield Problem(message, text.source.where, text.source.text, text.literal.span, hint)


def _problem(text: Constant, target: pa.DataType, *, is_tried: bool) -> str | None:
    """What is wrong with the text, None if it is cast. A `try_cast` gives NULL for a text that is no such value."""
    try:
        value_of_text(str(text.literal.value), target)
    except OnlyOnSpark:
        return None
    except ValueError as error:
        return None if is_tried and not isinstance(error, DependsOnDay) else str(error)
    return None


def _casts_of_texts(node: Apply, types: Mapping[Shape, pa.DataType]) -> Iterator[tuple[Constant, pa.DataType]]:
    """The constant texts among the operands, and what they are cast to."""
    texts = {place: arg for place, arg in enumerate(node.args) if isinstance(arg, Constant) and _is_text(arg)}
    targets = _targets(node, types) if texts else {}
    yield from ((texts[place], target) for place, target in targets.items() if place in texts)


def _is_text(constant: Constant) -> bool:
    return isinstance(constant.literal.value, str) and is_string(constant.literal.type)


def _targets(node: Apply, types: Mapping[Shape, pa.DataType]) -> Mapping[int, pa.DataType]:
    given = [type_ for arg in node.args if (type_ := known_type(arg, types)) is not None]
    if len(given) < len(node.args):
        return {}
    if node.call.function in _CASTS:
        target = _CASTS[node.call.function]
        return {0: target or given[-1]} if target is None or len(given) == 1 else {}
    try:
        return targets_of_casts(node.call, given, one_offset=True)
    except PatternError:
        return {}  # across events only, it has two types


def known_type(node: Node, types: Mapping[Shape, pa.DataType]) -> pa.DataType | None:
    """The type of a node about one event, None if it is not known."""
    match node:
        case Constant(literal):
            return literal.type
        case Column(type=type_):
            return type_
        case Pick(argument):
            return known_type(argument, types)
        case Apply() if node.source is not None:
            return types.get(resolve.shape_of(resolve.tree_of(node)))
    return None
