"""A picture of a pattern: nested boxes. Each kind of pattern says what its boxes are; HTML and Mermaid are drawn from
them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Box:
    """A box with a title, further boxes in a row, and lines of text below them."""

    title: str
    lines: tuple[str, ...] = ()
    inner: tuple[Box, ...] = ()
    arrow: str | None = None
    """The words on the arrow from the box to its left; None: there is no arrow."""
    forbids: bool = False
    """Whether it stands for events that must not come."""
