"""SQL's operators over scripts → the few operators that scripts have, on operands of one type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from cepheid.errors import PatternError, Problem
from cepheid.lang.expression import Call, Expression, Literal
from cepheid.lang.sql.habits import MULTIPLE
from cepheid.plan.conditions.coerce import check_script_type, coerce
from cepheid.plan.conditions.resolve import Apply
from cepheid.plan.conditions.result_types import (
    arithmetic_type,
    common_type,
    digits_of,
    operand_types,
    type_of_call,
)
from cepheid.plan.conditions.script import ConstantValue, Operation, Operator, Script, can_fail
from cepheid.plan.conditions.types import as_decimal, is_decimal, is_float, is_integer, is_numeric, is_zoned

_OPERATORS = {"+": Operator.ADD, "-": Operator.SUBTRACT, "*": Operator.MULTIPLY, "/": Operator.DIVIDE}
_OPERATORS |= {"div": Operator.INTEGER_DIVIDE, "%": Operator.REMAINDER}


_DAY = timedelta(days=1)


def knows_arithmetic(call: Call, types: Sequence[pa.DataType], *, one_offset: bool) -> bool:
    """Whether scripts do this arithmetic on values of these types: on numbers, and moving times by lengths. In a zone
    whose clock changes, days of the clock have different lengths; scripts do not know these.
    """
    if all(is_numeric(t) or pa.types.is_null(t) for t in types):
        return True
    if call.function not in ("+", "-") or not all(pa.types.is_timestamp(t) or pa.types.is_duration(t) for t in types):
        return False
    return one_offset or not any(map(is_zoned, types)) or any(map(_is_less_than_a_day, call.args))


def _is_less_than_a_day(length: Expression) -> bool:
    return isinstance(length, Literal) and isinstance(length.value, timedelta) and abs(length.value) < _DAY


def _boolean(operator: Operator, *operands: Script) -> Operation:
    return Operation(operator, operands, pa.bool_())


def _arithmetic(node: Apply, operands: Sequence[Script]) -> Script:
    function, span = node.call.function, node.call.span
    left, right = operands
    # A constant next to a decimal has as many digits as are written, as in Spark.
    types = operand_types(node.call, [o.type for o in operands])
    result = arithmetic_type(function, *types)
    assert result is not None, node
    check_script_type(result, span)
    if is_decimal(result) or (function == "div" and any(is_decimal(t) for t in types)):
        if function == "div":
            raise PatternError(
                Problem("div of decimals is not known across events", span=span, hint="Cast both to BIGINT.")
            )
        exact = [check_script_type(t, span) for t in _decimal_operand_types(function, types, result)]
        return Operation(
            _OPERATORS[function], tuple(coerce(o, t, span) for o, t in zip(operands, exact, strict=True)), result
        )
    if is_float(result) or is_integer(result):
        return Operation(_OPERATORS[function], (coerce(left, result, span), coerce(right, result, span)), result)
    return _time_arithmetic(node, operands, result)


def _decimal_operand_types(function: str, types: Sequence[pa.DataType], result: pa.DataType) -> list[pa.DataType]:
    """The operands' types as decimals, as the operator needs them: one scale for +, - and %; their own for * and /."""
    own = [as_decimal(t) for t in types]
    if function in ("*", "/"):
        return own
    if function in ("+", "-"):
        return [result, result]
    common = common_type(own)
    return [common, common]


def _time_arithmetic(node: Apply, operands: Sequence[Script], result: pa.DataType) -> Script:
    left, right = operands
    if not all(pa.types.is_timestamp(o.type) or pa.types.is_duration(o.type) for o in operands):
        message = "an interval cannot be multiplied or divided across events"
        raise PatternError(Problem(message, span=node.call.span, hint=MULTIPLE))
    if pa.types.is_timestamp(left.type) and pa.types.is_timestamp(right.type):
        right = coerce(right, left.type, node.call.span)
    return Operation(_OPERATORS[node.call.function], (left, right), result)


def _agreed(node: Apply, operands: Sequence[Script]) -> list[Script]:
    """The operands in their common type."""
    types = operand_types(node.call, [o.type for o in operands])
    common = common_type(types)
    assert common is not None, node
    check_script_type(common, node.call.span)
    common = pa.float64() if is_float(common) else common
    return [coerce(operand, common, node.call.span) for operand in operands]


def _compare(
    operator: Operator, *, swapped: bool = False, negated: bool = False
) -> Callable[[Apply, Sequence[Script]], Script]:
    def build(node: Apply, operands: Sequence[Script]) -> Script:
        left, right = _agreed(node, operands)
        result = _swapped(operator, left, right) if swapped else _boolean(operator, left, right)
        return _boolean(Operator.NOT, result) if negated else result

    return build


def _swapped(operator: Operator, left: Script, right: Script) -> Script:
    """`left > right` for LESS, `left >= right` for LESS_OR_EQUAL."""
    if can_fail(left) or can_fail(right):
        # Spark evaluates the left operand first, and the right one only if the left one is not NULL.
        opposite = Operator.LESS_OR_EQUAL if operator is Operator.LESS else Operator.LESS
        return _boolean(Operator.NOT, _boolean(opposite, left, right))
    return _boolean(operator, right, left)


def _between(node: Apply, operands: Sequence[Script]) -> Script:
    value, low, high = operands
    floor = _agreed(_with_operands(node, 0, 1), (value, low))
    ceiling = _agreed(_with_operands(node, 0, 2), (value, high))
    reached = _swapped(Operator.LESS_OR_EQUAL, *floor)
    return _boolean(Operator.AND, reached, _boolean(Operator.LESS_OR_EQUAL, *ceiling))


def _with_operands(node: Apply, *chosen: int) -> Apply:
    """The node with only these of its operands."""
    call = replace(node.call, args=tuple(node.call.args[i] for i in chosen))
    return Apply(call, tuple(node.args[i] for i in chosen), node.source)


def _in(node: Apply, operands: Sequence[Script]) -> Script:
    value, *items = _agreed(node, operands)
    found = [_boolean(Operator.EQUAL, value, item) for item in items]
    return found[0] if len(found) == 1 else _boolean(Operator.OR, *found)


def _case(node: Apply, operands: Sequence[Script]) -> Script:
    span = node.call.span
    results = [*operands[1:-1:2], operands[-1]]
    common = common_type([r.type for r in results])
    assert common is not None, node
    check_script_type(common, span)
    pairs = zip(operands[:-1:2], operands[1:-1:2], strict=True)
    flat = [x for c, r in pairs for x in (coerce(c, pa.bool_(), span), coerce(r, common, span))]
    return Operation(Operator.CASE, (*flat, coerce(operands[-1], common, span)), common)


def _case_of(node: Apply, operands: Sequence[Script]) -> Script:
    flat: list[Script] = []
    for i in range(1, len(operands) - 1, 2):
        pair = _agreed(_with_operands(node, 0, i), (operands[0], operands[i]))
        flat += [_boolean(Operator.EQUAL, *pair), operands[i + 1]]
    return _case(node, [*flat, operands[-1]])


def _nvl2(node: Apply, operands: Sequence[Script]) -> Script:
    return _case(node, [_boolean(Operator.NOT, _boolean(Operator.IS_NULL, operands[0])), *operands[1:]])


def _nullif(node: Apply, operands: Sequence[Script]) -> Script:
    null = ConstantValue(None, operands[0].type)
    return Operation(
        Operator.CASE, (_boolean(Operator.EQUAL, *_agreed(node, operands)), null, operands[0]), operands[0].type
    )


def _same_type(operator: Operator) -> Callable[[Apply, Sequence[Script]], Script]:
    def build(node: Apply, operands: Sequence[Script]) -> Script:
        agreed = _agreed(node, operands)
        return Operation(operator, tuple(agreed), agreed[0].type)

    return build


def _is_null(node: Apply, operands: Sequence[Script]) -> Script:
    result = _boolean(Operator.IS_NULL, operands[0])
    return _boolean(Operator.NOT, result) if node.call.function == "is_not_null" else result


def _positive(_: Apply, operands: Sequence[Script]) -> Script:
    return operands[0]


def _function(operator: Operator) -> Callable[[Apply, Sequence[Script]], Script]:
    """A function of numbers, computed with doubles."""

    def build(node: Apply, operands: Sequence[Script]) -> Script:
        return _of_doubles(operator, *(coerce(operand, pa.float64(), node.call.span) for operand in operands))

    return build


def _of_doubles(operator: Operator, *operands: Script) -> Operation:
    return Operation(operator, operands, pa.float64())


def _log(node: Apply, operands: Sequence[Script]) -> Script:
    """The natural logarithm, or that to a base, which comes first."""
    *bases, value = (_of_doubles(Operator.LN, coerce(o, pa.float64(), node.call.span)) for o in operands)
    return _quotient(value, bases[0]) if bases else value


def _log2(node: Apply, operands: Sequence[Script]) -> Script:
    base = ConstantValue(math.log(2.0), pa.float64())
    return _of_doubles(Operator.DIVIDE, _log(node, operands), base)


def _quotient(left: Script, right: Script) -> Script:
    """The quotient of doubles as Java computes it: infinite or NaN, where a division in SQL would fail."""
    zero, infinity = (ConstantValue(value, pa.float64()) for value in (0.0, math.inf))
    by_zero = _of_doubles(Operator.MULTIPLY, left, infinity)
    quotient = _of_doubles(Operator.DIVIDE, left, right)
    return Operation(Operator.CASE, (_boolean(Operator.EQUAL, right, zero), by_zero, quotient), pa.float64())


def _sign(node: Apply, operands: Sequence[Script]) -> Script:
    """1, -1 or, for 0, -0 and NaN, the number itself."""
    value = coerce(operands[0], pa.float64(), node.call.span)
    zero, one, less, nan = (ConstantValue(number, pa.float64()) for number in (0.0, 1.0, -1.0, math.nan))
    is_more = _boolean(Operator.LESS, zero, value), _boolean(Operator.LESS, value, nan)
    branches = _boolean(Operator.AND, *is_more), one, _boolean(Operator.LESS, value, zero), less
    return Operation(Operator.CASE, (*branches, value), pa.float64())


def _whole(operator: Operator) -> Callable[[Apply, Sequence[Script]], Script]:
    def build(node: Apply, operands: Sequence[Script]) -> Script:
        value = operands[0]
        type_ = type_of_call(node.call, [value.type])
        if is_decimal(value.type):
            return Operation(operator, (value,), type_) if value.type.scale else value
        if is_float(value.type):
            return Operation(operator, (value,), type_)
        return coerce(value, type_, node.call.span)

    return build


def _round(node: Apply, operands: Sequence[Script]) -> Script:
    value, digits = operands[0], digits_of(node.call)
    if is_float(value.type):
        return Operation(Operator.ROUND, (value, ConstantValue(digits, pa.int32())), pa.float64())
    return coerce(value, type_of_call(node.call, [o.type for o in operands]), node.call.span)


OPERATIONS: dict[str, Callable[[Apply, Sequence[Script]], Script]] = {
    **dict.fromkeys(_OPERATORS, _arithmetic),
    "=": _compare(Operator.EQUAL),
    "!=": _compare(Operator.EQUAL, negated=True),
    "<=>": _compare(Operator.NULL_SAFE_EQUAL),
    "<": _compare(Operator.LESS),
    "<=": _compare(Operator.LESS_OR_EQUAL),
    ">": _compare(Operator.LESS, swapped=True),
    ">=": _compare(Operator.LESS_OR_EQUAL, swapped=True),
    "between": _between,
    "in": _in,
    "case": _case,
    "if": _case,
    "case_of": _case_of,
    "nullif": _nullif,
    "nvl2": _nvl2,
    "negate": _same_type(Operator.NEGATE),
    "abs": _same_type(Operator.ABS),
    "coalesce": _same_type(Operator.COALESCE),
    "nvl": _same_type(Operator.COALESCE),
    "ifnull": _same_type(Operator.COALESCE),
    "least": _same_type(Operator.LEAST),
    "greatest": _same_type(Operator.GREATEST),
    "is_null": _is_null,
    "is_not_null": _is_null,
    "positive": _positive,
    "sqrt": _function(Operator.SQRT),
    "exp": _function(Operator.EXP),
    "ln": _function(Operator.LN),
    "log": _log,
    "floor": _whole(Operator.FLOOR),
    "ceil": _whole(Operator.CEIL),
    "ceiling": _whole(Operator.CEIL),
    "round": _round,
    "sign": _sign,
    "signum": _sign,
    "log10": _function(Operator.LOG10),
    "log2": _log2,
    "power": _function(Operator.POWER),
    "pow": _function(Operator.POWER),
}
