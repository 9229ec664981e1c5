"""The ways to divide a key: their text, and the answer of those that do not fit a pattern."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Undivided(NamedTuple):
    """A key cannot be divided in this way."""

    reasons: tuple[str, ...]
    """What forbids it, one clause of the pattern or option of the call each, as "its skip strategy lets …"."""

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)


def division_lines(ways: Iterable[str]) -> str:
    """For each way to divide a key, whether it fits the pattern and why, one line each."""
    return "".join(f"Dividing one key {way}\n" for way in ways)
