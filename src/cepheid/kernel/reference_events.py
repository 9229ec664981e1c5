"""Events for the definitions in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cepheid.kernel.scripts.python_functions import Value


@dataclass(frozen=True)
class Event:
    """An event as the kernel sees it: time, mask of lifted conditions, values of lifted columns (None: NULL)."""

    position: int
    time: int
    mask: int
    values: tuple[Value, ...]


TakenEvents: TypeAlias = tuple[tuple[int, Event], ...]
"""Events with the stages that took them, in order."""
