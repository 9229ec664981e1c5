"""Functions of one or two numbers, compiled, and how numbers are rounded."""

from __future__ import annotations

import math

import numpy as np

from cepheid.compile.arrays import Ints
from cepheid.compile.instructions import Op
from cepheid.kernel.jit import kernel

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_EXACT = 2**53
"""Integers up to this are exact as doubles."""
_BEYOND = 2.0**63
"""The least double above all 64-bit integers."""


@kernel
def apply_function(op: int, a: int, top: int, stack: Ints, constants: Ints) -> bool:
    """Replaces a value by a function of it, and returns whether that is NULL."""
    doubles = stack.view(np.float64)
    value = doubles[top]
    if op == Op.SQRT_F:
        doubles[top] = math.sqrt(value)
    elif op == Op.EXP_F:
        doubles[top] = math.exp(value)
    elif op == Op.ROUND_F:
        doubles[top] = rounded(value, constants[a])
    elif op == Op.FLOOR_F:
        stack[top] = whole_number(np.floor(value))
    elif op == Op.CEIL_F:
        stack[top] = whole_number(np.ceil(value))
    elif op == Op.FLOOR_I:
        stack[top] = stack[top] // constants[a]
    elif op == Op.CEIL_I:
        stack[top] = -(-stack[top] // constants[a])
    elif value <= 0.0:
        return True
    elif op == Op.LN_F:
        doubles[top] = math.log(value)
    else:
        doubles[top] = math.log10(value)
    return False


@kernel
def power(base: float, exponent: float) -> float:
    """As Java's: unlike C's, it is NaN if the exponent is NaN, or if it is infinite and the base is 1 or -1."""
    if math.isnan(exponent) or (math.isinf(exponent) and abs(base) == 1.0):
        return math.nan
    return math.pow(base, exponent)


@kernel
def whole_number(value: float) -> int:
    """A whole double as a 64-bit integer: NaN is 0, and numbers beyond the range become its ends, as in Java."""
    if math.isnan(value):
        return 0
    if value >= _BEYOND:
        return _GREATEST
    return _LEAST if value < -_BEYOND else int(value)


@kernel
def rounded(value: float, unit: int) -> float:
    """Rounded to a multiple of 1 / unit, a power of ten up to 10^15; halves away from zero. As in Spark, what is
    rounded is the shortest decimal that the double stands for: 2.675 becomes 2.68.
    """
    size = abs(value)
    if not size * unit < _EXACT:
        return value  # it has no further digits, or is infinite or NaN
    units = int(size * unit)
    for near in range(max(units - 1, 0), units + 2):
        if nearest_double(near, unit) == size:
            return value + 0.0
    # The shortest decimal is a half exactly if the double is the one nearest to the half.
    while nearest_double(10 * units + 5, 10 * unit) <= size:
        units += 1
    while units > 0 and nearest_double(10 * units - 5, 10 * unit) > size:
        units -= 1
    nearest = nearest_double(units, unit)
    return nearest if value >= 0.0 or units == 0 else -nearest


@kernel
def nearest_double(value: int, unit: int) -> float:
    """The double nearest to value / unit, where both are below 2^60 and the unit is a power of ten."""
    if abs(value) <= _EXACT or unit == 1:
        return np.float64(value) / np.float64(unit)  # both are exact, so this is rounded once
    quotient, rest, scale = abs(value) // unit, abs(value) % unit, 1.0
    while quotient < 4 * _EXACT:  # two bits more than a double has, and one bit for all further ones
        rest *= 2
        quotient, rest, scale = 2 * quotient + rest // unit, rest % unit, scale / 2
    nearest = np.float64(quotient | np.int64(rest != 0)) * scale
    return nearest if value >= 0 else -nearest


@kernel
def divide_half_up(left: int, right: int) -> int:
    """Rounded to the nearest integer, halves away from zero; |left| and |right| are below 2^62."""
    quotient, remainder = abs(left) // abs(right), abs(left) % abs(right)
    if 2 * remainder >= abs(right):
        quotient += 1
    return quotient if (left < 0) == (right < 0) else -quotient
