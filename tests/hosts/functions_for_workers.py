"""Conditions in Python that worker processes import from here."""

from __future__ import annotations

import os
from typing import Any


def dearer(event: dict[str, Any], matched: dict[str, list[dict[str, Any]]]) -> bool:
    return bool(event["n"] > matched["a"][0]["n"])


def ends_the_process(event: dict[str, Any]) -> bool:
    """Stands for whatever ends a process from outside, such as a system without memory."""
    os._exit(3 if event["n"] == 1 else 4)


def refuses(event: dict[str, Any]) -> bool:
    if event["n"] == 2:
        raise ValueError("n is 2")
    return True


class Refusing:
    """A callable that pickles but cannot be made again in another process."""

    __qualname__ = "Refusing"

    def __call__(self, event: dict[str, Any]) -> bool:
        return bool(event)

    def __reduce__(self) -> Any:
        return _not_here, (os.getpid(),)


def _not_here(pid: int) -> Refusing:
    if os.getpid() != pid:
        raise OSError("the connection is gone")
    return Refusing()
