"""Values next to values of another type, which SQL casts to that type: `at > '2026-01-01'` compares times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Literal, Span
from cepheid.lang.literals import TIMESTAMP
from cepheid.plan.conditions import resolve
from cepheid.plan.conditions.constant_texts.values import value_of_text
from cepheid.plan.conditions.resolve import Apply, Constant, Node
from cepheid.plan.conditions.result_types import (
    ARITHMETIC,
    COMPARISONS,
    cast_in_arithmetic,
    common_type,
    moves_by_days,
    texts_read,
)
from cepheid.plan.conditions.types import DURATION, TIMESTAMP_NTZ, is_string, is_time, is_zoned, sql_name

_OF_ONE_TYPE = COMPARISONS | {"in", "coalesce", "nvl", "ifnull", "least", "greatest"}


def targets_of_casts(call: Call, types: Sequence[pa.DataType], *, one_offset: bool) -> dict[int, pa.DataType]:
    """The types that operands are cast to first, by the operands' places: texts next to other values, and times next to
    times of another type. Empty once no operand is cast. Scripts convert numbers themselves. `one_offset` says that the
    session's clock never changes.

    Raises:
        PatternError: an operand would be cast to several types, or is returned as it is and compared as another type;
            with the span that is wrong.
    """
    if call.function in ARITHMETIC:
        return _in_arithmetic(call, types, one_offset=one_offset)
    if read := texts_read(call.function, types):
        return read
    found: dict[int, pa.DataType] = {}
    for group in groups_of_one_type(call.function, len(types)):
        for number, target in _in_group([types[place] for place in group]):
            place = group[number]
            if _is_result_of_nullif(call, place) or sql_name(found.get(place, target)) != sql_name(target):
                raise _is_of_two_types(call, place, target)
            found[place] = target
    return found


def _in_arithmetic(call: Call, types: Sequence[pa.DataType], *, one_offset: bool) -> dict[int, pa.DataType]:
    left, right = types
    if (text := cast_in_arithmetic(call.function, left, right)) is not None:
        place, target = text
        return {place: target}  # a DATE that it becomes is then cast like any other
    found: dict[int, pa.DataType] = {}
    if call.function == "-" and is_time(left) and is_time(right):
        target = _compared_as(left, right, one_offset=one_offset)
        found |= {place: target for place, type_ in enumerate((left, right)) if sql_name(type_) != sql_name(target)}
    if {left, right} == {pa.date32(), DURATION} and not moves_by_days(call):
        found[0 if left == pa.date32() else 1] = TIMESTAMP
    return found


def _compared_as(left: pa.DataType, right: pa.DataType, *, one_offset: bool) -> pa.DataType:
    """The type in which the second time is subtracted from the first: Spark takes what the session's clock shows at
    both, which is as far apart as the times are if the clock never changes. A DATE next to a TIMESTAMP becomes one
    before that, which is after midnight where the clock skips midnight.
    """
    common = common_type([left, right])
    assert common is not None
    return common if is_zoned(common) and (one_offset or pa.date32() in (left, right)) else TIMESTAMP_NTZ


def _in_group(types: Sequence[pa.DataType]) -> Iterator[tuple[int, pa.DataType]]:
    """Which of the values that get one type are cast, and to what."""
    common = common_type(types)
    for place, type_ in enumerate(types):
        is_text = is_string(type_) and common is not None and not is_string(common)
        if is_text or (is_time(type_) and sql_name(type_) != sql_name(common)):
            yield place, common


def is_cast_implicitly(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether there are casts of one type to the other that are not written. Every host knows them."""
    if is_string(source):
        return is_time(target) or target in (pa.bool_(), pa.int64(), pa.float64())
    return is_time(source) and is_time(target)


def _is_result_of_nullif(call: Call, place: int) -> bool:
    """Whether the operand is what `nullif` returns. It is compared in the common type and returned in its own, and a
    script has it only once.
    """
    return call.function == "nullif" and place == 0


def _is_of_two_types(call: Call, place: int, target: pa.DataType) -> PatternError:
    name = sql_name(target)
    message = f"this is compared with values of type {name}, and is used otherwise, too"
    return PatternError(Problem(message, span=call.args[place].span, hint=f"Write CAST(… AS {name})."))


def groups_of_one_type(function: str, count: int) -> Iterator[Sequence[int]]:
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
    elif function == "nvl2":
        yield range(1, count)


def cast_node(node: Node, target: pa.DataType) -> Node:
    """The cast of the node, in its place in the text; of a constant text the value in it.

    Raises:
        ValueError: a constant text is not read as a value of the type.
    """
    type_ = type_literal(target, resolve.span_of(node))
    cast = _as(node, type_, "CAST")
    if isinstance(node, Constant) and isinstance(node.literal.value, str):
        assert cast.source is not None
        return Constant(Literal(value_of_text(node.literal.value, target), target, type_.span), cast.source)
    return cast


def type_literal(type_: pa.DataType, span: Span) -> Literal:
    """The second argument of a cast to the type."""
    return Literal(sql_name(type_), type_, span)


def try_cast_node(node: Node, type_: Literal) -> Apply:
    """The cast that gives NULL where it would fail."""
    return _as(node, type_, "try_cast")


def _as(node: Node, type_: Literal, function: str) -> Apply:
    assert node.source is not None
    span = resolve.span_of(node)
    source = node.source.with_edit(span, f"{function}({resolve.sql_of(node)} AS {type_.value!s})")
    call = Call(function.lower(), (resolve.expression_of(node), type_), span)
    return Apply(call, (node, Constant(type_, source)), source)


def with_operands(node: Apply, args: Sequence[Node]) -> Apply:
    """The node with these operands."""
    call = replace(node.call, args=tuple(map(resolve.expression_of, args)))
    return replace(node, call=call, args=tuple(args))
