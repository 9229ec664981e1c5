"""A shard's matcher is in one worker of an executor, whichever worker is called."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.hosts.patterns_and_events import microseconds
from tests.live.events import PAIR, at, summaries
from tests.live.events import SCHEMA as PAIR_SCHEMA
from tests.live.events import events as pair_events
from tests.live.test_any_delivery import counted
from tests.live.test_refusals import DIVIDES
from tests.searching import share
from tests.stream.running import detected
from tests.stream.test_draining_shards import deliveries
from tests.stream.test_shard import FOLLOWED, Stream

from cepheid import ConditionError, Pattern, detect
from cepheid.hosts.shards.log import MatcherCache
from cepheid.hosts.shards.store import Head
from cepheid.hosts.spark.stream.advance import Call
from cepheid.hosts.spark.stream.keepers import Keepers
from cepheid.hosts.spark.stream.shard import Shard, done_for_another

Row = tuple[int, str, float, str]


@dataclass
class Worker:
    """A worker of an executor that has this folder."""

    folder: Path

    def __post_init__(self) -> None:
        self.cache = MatcherCache()
        self.keepers = Keepers(partial(done_for_another, self.cache), lambda: self.folder)


@dataclass
class Executor(Stream):
    """A stream whose shards are called in these workers."""

    worker: Worker | None = None

    def called(self, shard: int) -> Shard:
        assert self.worker is not None
        return Shard(self.states[shard], self.worker.cache, ("query", shard), keepers=self.worker.keepers)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workers"


def check_found(found: Sequence[pa.Table], batches: Sequence[Sequence[Row]], outputs: Sequence[str]) -> None:
    """A stream has found what `detect` finds in all its events."""
    rows = sorted(chain.from_iterable(batches))
    expected = detect(pair_events(*rows), PAIR, as_of=at(100), outputs=outputs, **FOLLOWED)
    emitted = [part for part in found if part.num_rows] or [expected.slice(0, 0)]
    assert counted(pa.concat_tables(emitted)) == counted(expected)


@share(20)
@given(data=st.data(), batches=deliveries())
def test_any_worker_is_called(data: st.DataObject, batches: list[list[Row]]) -> None:
    """Whichever workers are called, the matches are those of all events, and no worker restores a shard or has a
    matcher beside the keeper's.
    """
    stream = Executor(PAIR, PAIR_SCHEMA, FOLLOWED, timedelta(seconds=4), outputs=("matches", "timeouts"))
    stream.small_log = data.draw(st.sampled_from([0, 3000, stream.small_log]))
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("cepheid.hosts.spark.stream.shard.restored", lambda *_: pytest.fail("a shard is restored"))
        workers, found = [Worker(Path(name) / "workers") for _ in range(3)], list[pa.Table]()
        for batch in [*batches, [(-1, "end", 100.0, "z")]]:
            stream.worker = data.draw(st.sampled_from(workers))
            found.append(stream.batch(pair_events(*batch)))
            assert sum(len(worker.cache) for worker in workers) == len(stream.states)
        stream.watermark = 1 + microseconds(at(100)) // 1000
        found.append(stream.batch(PAIR_SCHEMA.empty_table()))
    check_found(found, batches, stream.outputs)


@share(20)
@given(data=st.data(), batches=deliveries())
def test_keepers_that_are_given_up(data: st.DataObject, batches: list[list[Row]]) -> None:
    """A keeper that was asked does the call although another worker no longer waits for it, and has restored the shard:
    the matches are those of all events, whoever is called then.
    """
    stream = Executor(PAIR, PAIR_SCHEMA, FOLLOWED, timedelta(seconds=4), outputs=("matches", "timeouts"))
    stream.small_log = data.draw(st.sampled_from([0, 3000, stream.small_log]))
    gives_up, poll = False, Connection.poll

    def polled(self: Connection, timeout: float | None = 0.0) -> bool:
        if gives_up:
            raise TimeoutError
        return poll(self, timeout)

    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "poll", polled)
        workers, found = [Worker(Path(name) / "workers") for _ in range(3)], list[pa.Table]()
        for batch in [*batches, [(-1, "end", 100.0, "z")]]:
            gives_up, stream.worker = data.draw(st.booleans()), data.draw(st.sampled_from(workers))
            found.append(stream.batch(pair_events(*batch)))
        stream.watermark = 1 + microseconds(at(100)) // 1000
        found.append(stream.batch(PAIR_SCHEMA.empty_table()))
    check_found(found, batches, stream.outputs)


def test_a_worker_that_has_ended(folder: Path) -> None:
    """Another one restores its shards, and then keeps them."""
    with subprocess.Popen([sys.executable, "-c", _KEEPS, str(folder)], stdout=subprocess.PIPE) as ended:
        assert ended.stdout is not None
        assert ended.stdout.readline() == b"open\n"
        (name,) = folder.iterdir()
        stream, one, another = _with_state(), Worker(folder), Worker(folder)
        head = stream.states[0].stored_head
        assert head is not None
        call = Call([], 0, "", of_matches=False, is_standby=False)
        assert one.keepers.ask(("query", 0), head, call) == "kept: 0"
        ended.kill()
    for stream.worker in (one, another):
        stream.batch(pair_events((1, "p", 1, "z")))
    assert [len(one.cache), len(another.cache)] == [1, 0]
    assert one.keepers.ask(("query", 0), head, call) is None
    assert name not in folder.iterdir()


@pytest.mark.parametrize("size", [0, 1 << 22])
@pytest.mark.parametrize("at_work", [False, True])
def test_a_worker_that_is_stopped(size: int, at_work: bool, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """It is not waited for, whether it has begun the call or not, and is asked again once it goes on."""
    monkeypatch.setattr("cepheid.hosts.spark.stream.keepers._PATIENCE", 0.1)
    head, (one, another) = Head(1, b"", 0, 0, 0, 0, 0, None), (Worker(folder), Worker(folder))
    call = Call([bytes(size)], 0, "", of_matches=False, is_standby=False)
    keeps = [sys.executable, "-c", _KEEPS, str(folder)]
    with subprocess.Popen(keeps, stdout=subprocess.PIPE) as kept, ExitStack() as last:
        last.callback(kept.kill)
        assert kept.stdout is not None
        assert kept.stdout.readline() == b"open\n"
        assert one.keepers.ask(("query", 0), head, call) == "kept: 0"
        with ThreadPoolExecutor() as threads:
            if at_work:
                asked = threads.submit(one.keepers.ask, ("query", 0), head, call._replace(watermark=-1))
                assert kept.stdout.readline() == b"at work\n"
            kept.send_signal(signal.SIGSTOP)
            os.waitpid(kept.pid, os.WUNTRACED)  # until it is stopped
            assert not at_work or asked.result(60) is None
        assert one.keepers.ask(("query", 0), head, call) is None
        assert another.keepers.ask(("query", 0), head, call) is None
        kept.send_signal(signal.SIGCONT)
        waits = time.monotonic() + 60
        while one.keepers.ask(("query", 0), head, call) != "kept: 0":
            assert time.monotonic() < waits


_KEEPS = """
import sys, time
from pathlib import Path
from cepheid.hosts.spark.stream.keepers import Keepers
def do(place, head, call):
    if call.watermark < 0:
        print("at work", flush=True)
        time.sleep(60)
    return f"kept: {call.watermark}"
Keepers(do, lambda: Path(sys.argv[1])).open()
print("open", flush=True)
time.sleep(60)
"""


def test_a_matcher_that_has_gone_ahead(folder: Path) -> None:
    """After a failed attempt the keeper has seen more than the state. It keeps nothing, and the shard is restored."""
    stream = _with_state()
    one, another = Worker(folder), Worker(folder)
    stream.worker = one
    stream.batch(pair_events((1, "p", 1, "z")))
    failed = replace(stream, states={0: replace(stream.states[0])}, timers={**stream.timers})
    failed.batch(pair_events((2, "p", 2, "b")))
    stream.worker = another
    stream.batch(pair_events((3, "p", 3, "b"), (4, "p", 4, "z")))
    assert [len(one.cache), len(another.cache)] == [1, 1]
    assert summaries(stream.batch(PAIR_SCHEMA.empty_table())) == [("match", (0, 3), 3.0)]


def test_a_call_that_fails_in_the_keeper(folder: Path) -> None:
    """The worker that is called finds the same error, and raises it."""
    stream = Executor(DIVIDES, PAIR_SCHEMA, FOLLOWED, timedelta(0), shards=1)
    first, second = Worker(folder), Worker(folder)
    for stream.worker, key in ((first, "p"), (second, "q")):
        stream.batch(pair_events((1, key, 1, "a")))
    stream.batch(pair_events((1, "p", 9, "b"), (3, "q", 10, "z")))
    assert [len(first.cache), len(second.cache)] == [1, 0]
    with pytest.raises(ConditionError, match="division by zero"):
        stream.batch(PAIR_SCHEMA.empty_table())


def test_a_worker_at_work(folder: Path) -> None:
    """It does no call for others meanwhile: the worker that asks restores the shard, and keeps it."""
    stream, one, another = _with_state(), Worker(folder), Worker(folder)
    stream.worker = one
    stream.batch(pair_events((1, "p", 1, "z")))
    stream.worker = another
    with one.cache.at_work:
        stream.batch(pair_events((2, "p", 2, "z")))
    assert len(another.cache) == 1
    stream.worker = one
    assert summaries(stream.batch(pair_events((3, "p", 3, "b"), (4, "p", 4, "z")))) == []
    assert summaries(stream.batch(PAIR_SCHEMA.empty_table())) == [("match", (0, 3), 3.0)]
    assert [len(one.cache), len(another.cache)] == [0, 0]


@pytest.mark.parametrize("lacks", ["sockets", "folder"])
def test_workers_that_cannot_ask(lacks: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are no sockets without files, or no place for names, each worker restores a shard for itself."""
    if lacks == "sockets":
        monkeypatch.setattr("cepheid.hosts.spark.stream.keepers._HAS_SOCKETS_WITHOUT_FILES", False)
    place = folder / "in" if lacks == "folder" else folder
    stream, workers = _with_state(), [Worker(place), Worker(place)]
    for stream.worker in workers:
        stream.batch(pair_events((1, "p", 1, "z")))
    assert [len(worker.cache) for worker in workers] == [1, 1]
    assert not folder.exists()


def test_workers_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Each shard stays in one worker of a query, whichever worker Spark calls."""
    seen = tmp_path / "seen"
    seen.mkdir()

    def is_next(event: Mapping[str, Any], _: Mapping[str, Any]) -> bool:
        (seen / f"{event['k']} {os.getpid()}").touch()
        return bool(event["x"] == "b")

    pattern = Pattern.begin("a").where("x = 'a'").followed_by("b").where(is_next, name="is next").within("10 seconds")
    batches = [pair_events(*((n, key, n, "ab"[n % 2]) for key in "pqrstuvw")) for n in range(12)]
    found = detected(spark, batches, tmp_path, pattern, lateness="1 second", **FOLLOWED)
    assert sum(map(len, found)) == 8 * 5
    keys = [path.name.split()[0] for path in seen.iterdir()]
    assert sorted(keys) == [*"pqrstuvw"]


def _with_state() -> Executor:
    """A stream with a state that no worker has."""
    stream = Executor(PAIR, PAIR_SCHEMA, FOLLOWED, timedelta(0), shards=1)
    with TemporaryDirectory() as name:
        stream.worker = Worker(Path(name) / "workers")
        stream.batch(pair_events((0, "p", 0, "a")))
    return stream
