"""A process with a kernel that compiles within a second; it waits for its turn and writes the kernel's result."""

from __future__ import annotations

import sys

import numpy as np
import numpy.typing as npt

from cepheid.kernel.jit import compiling_alone, inlined, kernel


@inlined
def square(number: int) -> int:
    return number * number


@kernel
def sum_of_squares(numbers: npt.NDArray[np.int64]) -> int:
    total = 0
    for number in numbers:
        total += square(number)
    return total


if __name__ == "__main__":
    with compiling_alone("sum_of_squares"):
        sys.stdout.write(f"{sum_of_squares(np.arange(4))}\n")
