"""What a pattern does at one kind of event, in words."""

from __future__ import annotations

from typing import NamedTuple


class StepInWords(NamedTuple):
    """What happens at an event."""

    stage: str | None
    """None: it is the whole pattern's."""
    event: str
    """The condition that the event meets, or the time that passes."""
    activating: bool
    """Whether the event can start a partial match."""
    action: str
