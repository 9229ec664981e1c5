"""Parts of the script interpreter that have a definition of their own."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from cepheid.kernel.scripts.functions import nearest_double, rounded, whole_number
from cepheid.kernel.scripts.reference import evaluate
from cepheid.plan.conditions.script import ConstantValue, Operation, Operator

DOUBLE = pa.float64()


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18))
@example(977329965204690299, 2)
@example(2**53 + 1, 18)
def test_a_decimal_becomes_the_nearest_double(unscaled: int, scale: int) -> None:
    """The value is rounded once, as when Python divides integers and when Spark converts decimals."""
    assert nearest_double(unscaled, 10**scale) == unscaled / 10**scale


@given(
    st.floats()
    | st.builds(lambda units, digits: units / 10**digits, st.integers(-(10**17), 10**17), st.integers(0, 17)),
    st.integers(0, 15),
)
@example(2.675, 2)
@example(0.49999999999999994, 0)
@example(1234567890123.45, 1)
@example(562949953421312.25, 1)
@example(-0.0, 0)
@example(-0.3, 0)
def test_a_double_is_rounded_as_its_shortest_decimal(value: float, digits: int) -> None:
    """Halves away from zero, and a half is what is written as one: 2.675 becomes 2.68."""
    script = Operation(Operator.ROUND, (ConstantValue(value, DOUBLE), ConstantValue(digits, pa.int32())), DOUBLE)
    assert repr(rounded(value, 10**digits)) == repr(evaluate(script, (), ()))


@given(st.floats())
@example(math.inf)
@example(-(2.0**63))
@example(2.0**63)
def test_a_whole_number_is_that_of_the_reference(value: float) -> None:
    """Also NaN, infinity and numbers beyond 64 bits."""
    for operator, whole in ((Operator.FLOOR, np.floor(value)), (Operator.CEIL, np.ceil(value))):
        script = Operation(operator, (ConstantValue(value, DOUBLE),), pa.int64())
        assert whole_number(whole) == evaluate(script, (), ())
