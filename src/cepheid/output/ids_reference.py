"""Ids of rows in plain Python. It defines those of `output.ids`; tests compare both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cepheid.kernel.siphash_reference import siphash_reference
from cepheid.output.ids import EVENT_KEY, purpose


class Member(NamedTuple):
    """What a record of an id is made of."""

    identity: bytes | None
    """The canonical bytes of the event; None for a member that is not an event."""
    marks: Sequence[int] = ()


def id_reference(name: str, kind: str, members: Sequence[Member]) -> str:
    """The id of a row of the pattern with this name."""
    return siphash_reference(b"".join(map(_record, members)), purpose(name, kind)).hex()


def _record(member: Member) -> bytes:
    identity, marks = member
    event = bytes(16) if identity is None else siphash_reference(identity, EVENT_KEY)
    return event + b"".join(mark.to_bytes(8, "little", signed=True) for mark in marks)
