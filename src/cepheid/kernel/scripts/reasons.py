"""Why a script fails, in words. A file of its own, because `failures.py` is also imported where Numba is not."""

from __future__ import annotations

from cepheid.kernel.scripts.interpreter import CAST_FAILED, DIVISION_BY_ZERO, OUT_OF_RANGE

FAILURES = {
    OUT_OF_RANGE: "a result is out of the range of its type",
    DIVISION_BY_ZERO: "division by zero",
    CAST_FAILED: "a value cannot be cast",
}
