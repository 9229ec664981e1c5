"""The ledger of a stream's checkpoint: what it was written for. Each pattern has one, in a shard of its own."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from cepheid.errors import SnapshotError
from cepheid.hosts.shards.store import FORMAT, PUT_BACK, check_format
from cepheid.matchers.snapshot import fitting

SHARD, EVENTS = "_shard", "_events"
"""The columns of a shard's input: its number, and events."""


def ledger_shard(pattern: int) -> int:
    """The number of the pattern's ledger shard. It has no events: it stores what the checkpoint was written for. It is
    called in every batch that has events.
    """
    return -1 - pattern


def pattern_of_ledger(shard: int) -> int:
    """The number of the pattern whose ledger shard this is."""
    return -1 - shard


def packed_asked(asked: Mapping[str, object]) -> str:
    """What a plan is made from, as a short text: the facts that a pattern knows may be several megabytes."""
    return b64encode(zlib.compress(json.dumps(asked).encode())).decode()


def _unpacked(asked: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(zlib.decompress(b64decode(asked)))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return found


def ledger_bytes(made_for: dict[str, Any], asked: str) -> bytes:
    """The ledger: what the checkpoint was written for, and what its plan is made from (`packed_asked`)."""
    return json.dumps({"format": FORMAT, "made_for": made_for, "packed": asked}).encode()


def from_ledger(stored: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the checkpoint was written for, and what its plan is made from.

    Raises:
        SnapshotError: it is not a ledger, or has an unknown format.
    """
    try:
        with fitting("the checkpoint's ledger"):
            content = json.loads(stored)
            written, made_for = content["format"], content["made_for"]
            # Ledgers of earlier versions have it as it is.
            asked = content["asked"] if "asked" in content else _unpacked(content["packed"])
    except SnapshotError as error:
        raise SnapshotError(f"{error}. {PUT_BACK}") from error
    check_format(written)
    return made_for, asked
