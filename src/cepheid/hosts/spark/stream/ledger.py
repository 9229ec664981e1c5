"""The ledger of a stream's checkpoint: what it was written for. Each pattern has one, in a shard of its own."""

from __future__ import annotations

import json
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


def ledger_bytes(made_for: dict[str, Any], asked: dict[str, Any]) -> bytes:
    """The ledger: what the checkpoint was written for, and what its plan is made from."""
    return json.dumps({"format": FORMAT, "made_for": made_for, "asked": asked}).encode()


def from_ledger(stored: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments from which `ledger_bytes` made the ledger.

    Raises:
        SnapshotError: it is not a ledger, or has an unknown format.
    """
    try:
        with fitting("the checkpoint's ledger"):
            content = json.loads(stored)
            written, made_for, asked = content["format"], content["made_for"], content["asked"]
    except SnapshotError as error:
        raise SnapshotError(f"{error}. {PUT_BACK}") from error
    check_format(written)
    return made_for, asked
