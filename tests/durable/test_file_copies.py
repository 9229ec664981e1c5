"""Crashes while a host in files is backed up or restored: what they leave is the whole, or is refused as a store and as
a backup.
"""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from tests.durable.crashes import Operation, RecordingDisk, State, states_after_crashes, write_state
from tests.durable.file_host import Shown, feed_rest, opened, shown
from tests.durable.test_file_crashes import MOST
from tests.durable.test_stores import largest_file

from cepheid.errors import SnapshotError, StoreError
from cepheid.host import restore_host
from cepheid.hosts.durable.stores.files.copies import restore
from cepheid.hosts.durable.stores.files.disk import Sync

Left: TypeAlias = tuple[bool, frozenset[tuple[Path, bytes | None]]]
"""Whether the copy had been reported, and what a crash has left of it."""


class Copied(NamedTuple):
    """A backup, or a store that was made from one."""

    folder: Path
    operations: list[Operation]
    """What made it."""
    shown: Shown


@pytest.fixture(scope="module", params=["backup", "restored"])
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Copied:
    """A backup, and a store that was made from it."""
    folder, operations = tmp_path_factory.mktemp("copied"), list[Operation]()
    disk = RecordingDisk(operations)
    with closing(opened(folder / "store")) as host:
        for _ in feed_rest(host):
            pass
    with closing(opened(folder / "store", disk)) as host:
        host.backup(folder / "backup")
        found = shown(host)
    restore(folder / "backup", folder / "restored", disk)
    copy = folder / request.param
    begun = operations.index(Operation("make_folder", copy))
    after = [one for one in operations[begun:] if copy in (one.path, *one.path.parents)]
    return Copied(copy, [*after, Operation("sync_folder", folder, place=Sync.PARENT)], found)


def states(operations: list[Operation]) -> set[Left]:
    """What crashes may leave of the copy, and whether it had been reported."""
    return {(done == len(operations), frozenset(state.items())) for done, state in states_after_crashes(operations)}


def drawn(found: set[Left]) -> list[Left]:
    """Some of them in any order."""
    in_order = sorted(found, key=lambda one: (one[0], sorted((str(path), content or b"") for path, content in one[1])))
    return random.Random(1).sample(in_order, min(MOST, len(in_order)))


def check(folder: Path, copied: Copied, state: State, *, is_reported: bool) -> None:
    """What is left is the whole copy, or is refused as a store and as a backup; or the copy was not begun."""
    copy, again = folder / copied.folder.name, folder / "again"
    for path in (copy, again):
        shutil.rmtree(path, ignore_errors=True)
    write_state(state, copied.folder.parent, folder)
    try:
        restore_host(copy, f"file://{again}")
    except (SnapshotError, StoreError):
        assert not is_reported
        if copy.exists() and [*copy.iterdir()]:
            with pytest.raises((SnapshotError, StoreError), match=r"store\.json is missing"):
                opened(copy)
    else:
        for made in (copy, again):
            with closing(opened(made)) as host:
                assert shown(host) == copied.shown


def test_whatever_a_crash_leaves_of_a_copy(copied: Copied, tmp_path: Path) -> None:
    """A copy is whole once it was reported; before, what there is of it is never taken for a store or a backup."""
    for is_reported, state in drawn(states(copied.operations)):
        check(tmp_path, copied, dict(state), is_reported=is_reported)


@pytest.mark.parametrize("place", [Sync.COPY, Sync.COPY_NAMES, Sync.STORE, Sync.STORE_NAME, Sync.PARENT])
def test_each_sync_of_a_copy_is_needed(copied: Copied, tmp_path: Path, place: Sync) -> None:
    """Without the syncs of any one place a crash may leave a copy that is reported, or opens, and is not whole."""
    without = [one if one.place != place else Operation("nothing", one.path) for one in copied.operations]
    for is_reported, state in drawn(states(without) - states(copied.operations)):
        try:
            check(tmp_path, copied, dict(state), is_reported=is_reported)
        except (AssertionError, pytest.fail.Exception, SnapshotError, StoreError):
            return
    pytest.fail(f"no crash spoils a copy without: {place}")


def test_failed_copy(tmp_path: Path) -> None:
    """A backup for which there is no room leaves nothing, and the host goes on."""
    with closing(opened(tmp_path / "store")) as host:
        for _ in feed_rest(host, 3):
            pass
        message = r"cannot be written: File too large.*\. Make room on the disk, then repeat the step"
        with largest_file(1000), pytest.raises(StoreError, match=message):
            host.backup(tmp_path / "backup")
        assert not (tmp_path / "backup").exists()
        for _ in feed_rest(host):
            pass
        host.backup(tmp_path / "backup")
