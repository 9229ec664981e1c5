"""Parts of the script interpreter that have a definition of their own."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cepheid.kernel.scripts.interpreter import nearest_double


@given(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18))
@example(977329965204690299, 2)
@example(2**53 + 1, 18)
def test_a_decimal_becomes_the_nearest_double(unscaled: int, scale: int) -> None:
    """The value is rounded once, as when Python divides integers and when Spark converts decimals."""
    assert nearest_double(unscaled, 10**scale) == unscaled / 10**scale
