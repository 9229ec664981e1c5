"""Two rebalancings at the same time, and a dry run beside one: neither touches the other's copy."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from cepheid import SnapshotError
from cepheid.hosts.spark.rebalance.folders import BEGUN, DONE, PARTITIONS, Batch, Folder
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


def write_batch(checkpoint: Path, number: int, mark: str | None) -> None:
    """Plans a micro-batch in a checkpoint, as a rebalancing does that is so far."""
    offsets = checkpoint / "offsets"
    offsets.mkdir(parents=True, exist_ok=True)
    settings = {PARTITIONS: "2"} | ({} if mark is None else {"cepheid.rebalance": mark})
    (offsets / str(number)).write_text(Batch(number, "v1", {"conf": settings}, ("{}",)).text)


@pytest.mark.parametrize("later", [0, 2])
def test_the_former_checkpoint_is_kept_if_the_machine_stopped_before_its_last_name(tmp_path: Path, later: int) -> None:
    """After the exchange the folder of the copy is the former checkpoint, also when queries have gone on since."""
    folder = Folder(tmp_path / "checkpoint")
    write_batch(folder.path, 7, DONE)
    for number in range(8, 8 + later):
        write_batch(folder.path, number, None)
    write_batch(folder.copy, 7, BEGUN)
    assert not folder.finish()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "checkpoint.before-7"]
    assert Folder(folder.former(6)).batch(7).mark == BEGUN
    assert folder.batch(7).mark == DONE


@pytest.mark.parametrize("mark", [BEGUN, DONE])
def test_a_copy_that_had_not_got_its_place_is_removed(tmp_path: Path, mark: str) -> None:
    folder = Folder(tmp_path / "checkpoint")
    write_batch(folder.path, 7, BEGUN)
    write_batch(folder.copy, 7, mark)
    assert not folder.finish()
    assert [*tmp_path.iterdir()] == [folder.path]
