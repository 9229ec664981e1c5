"""Values next to values of another type, which SQL casts to that type: `at > '2026-01-01'` compares times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Literal
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.resolve import Apply, Constant, Node
from cepheid.plan.conditions.result_types import COMPARISONS, common_type
from cepheid.plan.conditions.types import TIMESTAMP_NTZ, is_string, is_time, sql_name

_OF_ONE_TYPE = COMPARISONS | {"in", "coalesce", "nvl", "ifnull", "least", "greatest"}


def targets_of_casts(call: Call, types: Sequence[pa.DataType]) -> dict[int, pa.DataType]:
    """The types that operands are cast to, by the operands' places: texts next to other values, and times next to
    times of another type. Scripts convert numbers themselves.

    Raises:
        PatternError: an operand would be cast to several types; with the span that is wrong.
    """
    found: dict[int, pa.DataType] = {}
    for group in _groups(call.function, len(types)):
        for place, target in _in_group([types[place] for place in group]):
            _add(found, call, group[place], target)
    if call.function == "-" and pa.date32() in types and all(map(is_time, types)):
        common = TIMESTAMP_NTZ if types[0] == types[1] else common_type(types)
        found = {place: common for place, type_ in enumerate(types) if type_ == pa.date32()}
    return found


def _in_group(types: Sequence[pa.DataType]) -> Iterator[tuple[int, pa.DataType]]:
    """Which of the values that get one type are cast, and to what."""
    common = common_type(types)
    for place, type_ in enumerate(types):
        is_text = is_string(type_) and common is not None and not is_string(common)
        if is_text or (is_time(type_) and sql_name(type_) != sql_name(common)):
            yield place, common


def _add(found: dict[int, pa.DataType], call: Call, place: int, target: pa.DataType) -> None:
    """Adds the cast of an operand."""
    name = sql_name(target)
    if sql_name(found.setdefault(place, target)) != name or (call.function, place) == ("nullif", 0):
        message = f"this is compared with values of type {name}, and is used otherwise, too"
        raise PatternError(Problem(message, span=call.args[place].span, hint=f"Write CAST(… AS {name})."))


def _groups(function: str, count: int) -> Iterator[Sequence[int]]:
    """The places of the operands that get one type, for each operation that the function consists of."""
    if function in _OF_ONE_TYPE:
        yield range(count)
    elif function in ("between", "nullif"):
        yield from ((0, place) for place in range(1, count))
    elif function == "case_of":
        yield from ((0, place) for place in range(1, count - 1, 2))
        yield (*range(2, count - 1, 2), count - 1)
    elif function in ("case", "if"):
        yield (*range(1, count - 1, 2), count - 1)


def cast_node(node: Node, target: pa.DataType) -> Apply:
    """The cast of the node, in its place in the text."""
    assert node.source is not None
    span, name = resolve.span_of(node), sql_name(target)
    type_ = Literal(name, target, span)
    source = node.source.with_edit(span, f"CAST({resolve.sql_of(node)} AS {name})")
    return Apply(Call("cast", (resolve.expression_of(node), type_), span), (node, Constant(type_, source)), source)


def with_operands(node: Apply, args: Sequence[Node]) -> Apply:
    """The node with these operands."""
    call = replace(node.call, args=tuple(map(resolve.expression_of, args)))
    return replace(node, call=call, args=tuple(args))
