"""Crashes of a host in files: whatever a crash leaves on the disk, all that was acknowledged is there."""

from __future__ import annotations

import os
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from tests.durable.crashes import Killed, Operation, RecordingDisk, State, states_after_crashes, write_state
from tests.durable.file_host import FEEDS, Shown, expected, feed_rest, opened, shown

from cepheid.errors import SnapshotError, StoreError
from cepheid.hosts.durable.stores.files.disk import Disk, Sync


class History(NamedTuple):
    """A host's life: what it did to the disk, and what it showed after so many operations."""

    operations: list[Operation]
    acknowledged: list[tuple[int, Shown]]


def history(folder: Path) -> History:
    """A host is opened and fed, closed, opened again and fed, killed within a commit, opened and fed."""
    operations: list[Operation] = []
    acknowledged: list[tuple[int, Shown]] = []

    def live(until: int, killed_at: Sync | None = None) -> None:
        disk = RecordingDisk(operations)
        with closing(opened(folder, disk)) as host:
            acknowledged.append((len(operations), shown(host)))
            for _ in feed_rest(host, until):
                acknowledged.append((len(operations), shown(host)))  # noqa: PERF401 - each while the host is there
            if killed_at is not None:
                disk.killed_at = killed_at
                with pytest.raises(Killed):
                    for _ in feed_rest(host):
                        pass

    live(3)
    live(4)
    live(5, killed_at=Sync.COMMIT)
    live(len(FEEDS))
    return History(operations, acknowledged)


States: TypeAlias = dict[tuple[int, frozenset[tuple[Path, bytes | None]]], State]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> History:
    """The history of a host."""
    return history(tmp_path_factory.mktemp("lived") / "store")


@pytest.fixture(scope="module")
def states(lived: History) -> States:
    """What crashes of that host may leave."""
    return distinct(lived)


def distinct(lived: History) -> States:
    """The states that crashes may leave, by themselves and by how much had been acknowledged."""
    found = {}
    for done, state in states_after_crashes(lived.operations):
        last = max((i for i, (at, _) in enumerate(lived.acknowledged) if at <= done), default=-1)
        found[last, frozenset(state.items())] = state
    return found


def check(folder: Path, lived: History, last: int, state: State) -> None:
    """Opens the store from a state. The host shows what was acknowledged last, or also what it was about to
    acknowledge; fed again it finds what `detect` finds.
    """
    shutil.rmtree(folder, ignore_errors=True)
    write_state(state, lived.operations[0].path.parent, folder.parent)
    with closing(opened(folder, Disk())) as host:
        assert last < 0 or shown(host) in [one for _, one in lived.acknowledged[last : last + 2]]
        for _ in feed_rest(host):
            pass
        stored = host.sql("SELECT match_id FROM matches_pairs ORDER BY match_id").column("match_id").to_pylist()
    assert stored == expected()


OF_COPIES = {Sync.COPY, Sync.COPY_NAMES}
"""Where a host does not wait while it runs."""
MOST = int(os.environ.get("CEPHEID_CRASHES", "60"))
"""The number of states that are tried."""


def test_whatever_a_crash_leaves(lived: History, states: States, tmp_path: Path) -> None:
    """After a crash at any point, all that was acknowledged is there, and the host goes on to the matches of detect."""
    assert {one.place for one in lived.operations if one.place is not None} == {*Sync} - OF_COPIES
    for (last, _), state in random.Random(1).sample([*states.items()], min(MOST, len(states))):
        check(tmp_path / "store", lived, last, state)


@pytest.mark.parametrize("place", sorted({*Sync} - OF_COPIES))
def test_each_sync_is_needed(lived: History, states: States, tmp_path: Path, place: Sync) -> None:
    """Without the syncs of any one place a crash may leave more states, and in one of them the check fails."""
    without = [one if one.place != place else Operation("nothing", one.path) for one in lived.operations]
    more = distinct(History(without, lived.acknowledged))
    tried = [(key, state) for key, state in more.items() if key not in states]
    random.Random(1).shuffle(tried)  # most of the additional states come before anything depends on them
    for (last, _), state in tried[:MOST]:
        try:
            check(tmp_path / "store", lived, last, state)
        except (AssertionError, SnapshotError, StoreError):
            return
    pytest.fail(f"no crash loses anything without: {place}")
