"""Two rebalancings at the same time, and a dry run beside one: neither touches the other's copy."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from cepheid import SnapshotError
from cepheid.hosts.spark.rebalance.folders import Folder
from cepheid.streams import rebalance


def test_one_at_a_time(tmp_path: Path) -> None:
    """While a checkpoint is rebalanced, other processes wait, and then go on."""
    parent = os.open(tmp_path, os.O_RDONLY)
    with Folder(tmp_path / "checkpoint").alone(), pytest.raises(BlockingIOError):
        fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(parent)


def test_without_a_folder() -> None:
    """Where there is no such folder there is nothing to wait for; what is missing is said later."""
    with Folder(Path("/nowhere/at/all/checkpoint")).alone():
        pass


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    """A dry run leaves the copy that a rebalancing is writing, and does not finish one that was stopped."""
    copy = tmp_path / "checkpoint.rebalancing"
    copy.mkdir()
    with pytest.raises(SnapshotError, match=r"is still at '.*checkpoint\.rebalancing': an earlier rebalancing was"):
        rebalance(tmp_path / "checkpoint", shards=8, dry_run=True)
    assert [*tmp_path.iterdir()] == [copy]
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(Exception):  # noqa: B017, PT011 - it is no checkpoint
        rebalance(tmp_path / "checkpoint", shards=8, dry_run=True)
    assert copy.is_dir()
