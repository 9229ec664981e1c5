"""Crashes of a host in files: whatever a crash leaves on the disk, all that was acknowledged is there."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pytest
from tests.durable.crashes import Killed, Operation, RecordingDisk, states_after_crashes

import cepheid
from cepheid import detect
from cepheid.errors import SnapshotError, StoreError
from cepheid.host import Host, open_host
from cepheid.hosts.durable.host import DurableHost
from cepheid.hosts.durable.routing.reach import Reach
from cepheid.hosts.durable.stores.files.disk import Disk, Sync
from cepheid.hosts.durable.stores.files.store import FileStore

START = datetime(2024, 3, 4, 10, tzinfo=UTC)
COLUMNS = pa.schema(
    [("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("user", pa.string()), ("what", pa.string())]
)
PATTERN = (
    cepheid.Pattern.begin("a", name="pairs")
    .where("what = 'a'")
    .followed_by("b")
    .where("what = 'b'")
    .within("10 minutes")
)
FEEDS = ("aab", "bca", "cab", "bab", "acb", "bba", "abb")
"""What each feed has; users take turns."""
FEED = 3
"""The events of a feed."""
LOG_SIZE = 4000
"""Bytes: a snapshot comes every second or third feed."""


def feed(number: int) -> pa.Table:
    rows = [
        {"id": i, "at": START + timedelta(minutes=i), "user": f"u{i % 2}", "what": what}
        for i, what in enumerate(FEEDS[number], FEED * number)
    ]
    return pa.Table.from_pylist(rows, COLUMNS)


def opened(folder: Path, disk: Disk) -> Host:
    host = DurableHost(FileStore(folder, disk, LOG_SIZE))
    try:
        return Host(host, Reach((), {}, open_host))
    except BaseException:
        host.close()
        raise


def fed_from(host: Host) -> int:
    """The number of feeds that are stored."""
    if "events" not in host.inputs:
        return 0
    position = host.inputs["events"].position
    assert position is None or isinstance(position, int)
    return (position or 0) // FEED


def feed_rest(host: Host, until: int = len(FEEDS)) -> Iterator[None]:
    """Does and feeds what is not stored; stops after each call."""
    host.input("events", COLUMNS, time="at", sequence="id", keep="5 minutes")
    yield
    if not host.sql("SELECT name FROM patterns").num_rows:
        host.deploy(PATTERN, input="events", key="user", outputs=("matches", "timeouts"))
        yield
    for number in range(fed_from(host), until):
        host.feed(feed(number), input="events", position=FEED * (number + 1))
        yield


class Shown(NamedTuple):
    """What a host shows of what it has stored."""

    inputs: list[dict[str, Any]]
    patterns: list[dict[str, Any]]
    open: list[dict[str, Any]]
    found: list[dict[str, Any]]
    outbox: list[dict[str, Any]]


def shown(host: Host) -> Shown:
    has_patterns = host.sql("SELECT name FROM patterns").num_rows > 0

    def rows(query: str, *, always: bool = False) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = host.sql(query).to_pylist() if always or has_patterns else []
        return listed

    return Shown(
        rows("SELECT name, position, watermark, events FROM inputs", always=True),
        rows("SELECT number, name, status FROM patterns", always=True),
        rows("SELECT id, stage, wakeup FROM open_pairs ORDER BY id"),
        rows("SELECT match_id FROM matches_pairs ORDER BY match_id")
        + rows("SELECT match_id FROM timeouts_pairs ORDER BY match_id"),
        rows("SELECT number, kind, match_id FROM outbox ORDER BY number", always=True),
    )


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


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> History:
    """The history of a host."""
    return history(tmp_path_factory.mktemp("lived") / "store")


State: TypeAlias = dict[Path, bytes | None]


def distinct(lived: History) -> dict[tuple[int, frozenset[tuple[Path, bytes | None]]], State]:
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
    for path in sorted(state):  # folders before what is in them
        content, copy = state[path], folder.parent / path.relative_to(lived.operations[0].path.parent)
        if content is None:
            copy.mkdir()
        else:
            copy.write_bytes(content)
    with closing(opened(folder, Disk())) as host:
        assert last < 0 or shown(host) in [one for _, one in lived.acknowledged[last : last + 2]]
        for _ in feed_rest(host):
            pass
        stored = host.sql("SELECT match_id FROM matches_pairs ORDER BY match_id").column("match_id").to_pylist()
    assert stored == expected()


@cache
def expected() -> list[str]:
    events = pa.concat_tables(feed(number) for number in range(len(FEEDS)))
    return sorted(detect(events, PATTERN, key="user", time="at", sequence="id").column("match_id").to_pylist())


MOST = int(os.environ.get("CEPHEID_CRASHES", "60"))
"""The number of states that are tried."""


def test_whatever_a_crash_leaves(lived: History, tmp_path: Path) -> None:
    """After a crash at any point, all that was acknowledged is there, and the host goes on to the matches of detect."""
    assert {one.place for one in lived.operations if one.place is not None} == {*Sync}
    states = [*distinct(lived).items()]
    for (last, _), state in random.Random(1).sample(states, min(MOST, len(states))):
        check(tmp_path / "store", lived, last, state)


@pytest.mark.parametrize("place", Sync)
def test_each_sync_is_needed(lived: History, tmp_path: Path, place: Sync) -> None:
    """Without the syncs of any one place a crash may leave more states, and in one of them the check fails."""
    without = [one if one.place != place else Operation("nothing", one.path) for one in lived.operations]
    more = distinct(History(without, lived.acknowledged))
    for key in distinct(lived):
        more.pop(key, None)
    tried = [*more.items()]
    random.Random(1).shuffle(tried)  # most of the additional states come before anything depends on them
    for (last, _), state in tried[:MOST]:
        try:
            check(tmp_path / "store", lived, last, state)
        except (AssertionError, SnapshotError, StoreError):
            return
    pytest.fail(f"no crash loses anything without: {place}")
