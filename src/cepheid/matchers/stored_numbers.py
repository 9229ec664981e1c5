"""Numbers in the header of a snapshot, which JSON gives in any size and of any kind."""

from __future__ import annotations

from collections.abc import Mapping

_BEYOND = 2**63


def stored_number(value: object) -> int:
    """The number; ValueError if the value is not a whole number of 64 bits."""
    if type(value) is not int or not -_BEYOND <= value < _BEYOND:
        raise ValueError(f"{value!r} is not a whole number of 64 bits")
    return value


def stored_numbers(values: Mapping[str, object]) -> dict[str, int]:
    """The numbers by their names; ValueError as `stored_number`."""
    return {name: stored_number(value) for name, value in values.items()}
