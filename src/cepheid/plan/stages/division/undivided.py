"""The answer of each way to divide a key that does not fit a pattern."""

from __future__ import annotations

from typing import NamedTuple


class Undivided(NamedTuple):
    """A key cannot be divided in this way."""

    reasons: tuple[str, ...]
    """What forbids it, one clause of the pattern or option of the call each, as "its skip strategy lets …"."""

    @property
    def text(self) -> str:
        return "; ".join(self.reasons)
