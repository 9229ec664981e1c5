"""Positions in a source: how far its events are stored."""

from __future__ import annotations

from collections.abc import Mapping

from cepheid.errors import EventError
from cepheid.hosts.durable.state import Input, Position


def is_stored_already(known: Input, position: Position, events: int) -> bool:
    """Whether all events of a feed that ends at `position` were stored before.

    Raises:
        EventError: some of them were, or the position is of another kind than those before.
    """
    if known.position is None:
        return False
    if _kind(known.position) is not _kind(position):
        raise EventError(
            f"the position of input {known.name!r} was {known.position!r} and is {position!r}: use "
            "numbers, or maps from partition to number, or names, always"
        )
    if isinstance(position, str):
        return position <= str(known.position)
    before, now = _partitions(known.position), _partitions(position)
    steps = {partition: number - before.get(partition, 0) for partition, number in now.items()}
    if all(step <= 0 for step in steps.values()):
        return True
    if min(steps.values()) < 0 or 0 < sum(steps.values()) < events:
        raise EventError(
            f"events of input {known.name!r} up to {known.position!r} are stored already, and some of these {events} "
            f"events, up to {position!r}, are among them. Feed the events after the stored position"
        )
    return False


def joined(before: Position | None, position: Position | None) -> Position | None:
    """The position after a feed that ends at `position`."""
    if isinstance(before, Mapping) and isinstance(position, Mapping):
        return {**before, **position}
    return before if position is None else position


def _kind(position: Position) -> type:
    return next(kind for kind in (int, str, Mapping) if isinstance(position, kind))


def _partitions(position: Position) -> Mapping[str, int]:
    """The position as a map; only names are none."""
    assert not isinstance(position, str)
    return position if isinstance(position, Mapping) else {"": position}
