"""detect with several workers: the result is that of one, and what goes wrong is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.functions_for_workers import Refusing, dearer, ends_the_process, refuses
from tests.hosts.test_time_slices import FIRST, PATTERNS, WITHIN, A, B, tables
from tests.hosts.workers import found_by_one_and_by_two
from tests.searching import share

from cepheid import (
    ConditionError,
    EventError,
    LimitExceeded,
    Limits,
    OccurrencePattern,
    Pattern,
    PatternError,
    Report,
    SchemaError,
    Skip,
    WorkerFailed,
    detect,
)
from cepheid.hosts.in_process.workers import pool
from cepheid.hosts.in_process.workers.division import WINDOWS, Division, PartEvents, divided
from cepheid.plan.division import TimeSlices

KEYED: dict[str, Any] = {"key": "key", "time": "at"}
SKIPS = [Skip(), Skip.to_next(), Skip.past_last_event(), Skip.to_first("a"), Skip.to_last("a")]


@share(20)
@given(
    events=tables(keys="pqrs"),
    name=st.sampled_from(sorted(PATTERNS)),
    within=WITHIN,
    skip=st.sampled_from(SKIPS),
    least=st.integers(1, 6),
)
def test_keys_are_divided(events: pa.Table, name: str, within: str, skip: Skip, least: int) -> None:
    """With any skip strategy, rows, their order and counts are those of one worker."""
    pattern = PATTERNS[name].within(within).skip(skip)
    one, two = found_by_one_and_by_two(events, pattern, least=least, sliced=False, **KEYED)
    assert two == one


@share(20)
@given(events=tables(keys="pq"), least=st.integers(1, 6), keyed=st.booleans())
def test_several_patterns(events: pa.Table, least: int, *, keyed: bool) -> None:
    """Several patterns have common slices; the rows of each are those of one worker."""
    patterns = {"b": B.within("3 seconds"), "c": A.not_followed_by("c").where("kind = 'c'").within("1 second")}
    key = "key" if keyed else None
    one, two = found_by_one_and_by_two(events, patterns, key=key, time="at", least=least)
    assert two == one


@share(20)
@given(events=tables(keys="pqrs"), least=st.integers(1, 6), several=st.booleans())
def test_occurrences(events: pa.Table, least: int, *, several: bool) -> None:
    """Keys of occurrences are divided in the same way."""
    pattern = OccurrencePattern.of("a; b").taxonomy("kind")
    given_ = {"ab": pattern, "ca": OccurrencePattern.of("(c; a) - b").taxonomy("kind")} if several else pattern
    one, two = found_by_one_and_by_two(events, given_, least=least, sliced=False, **KEYED)
    assert two == one


@share(20)
@given(events=tables(keys="pqrs"), least=st.integers(1, 6))
def test_processing_order(events: pa.Table, least: int) -> None:
    """Without times, keys are divided all the same."""
    one, two = found_by_one_and_by_two(events, B, key="key", time=None, least=least, sliced=False)
    assert two == one


@given(
    sizes=st.lists(st.integers(1, 30), max_size=8),
    gaps=st.lists(st.integers(0, 3), min_size=240, max_size=240),
    workers=st.integers(1, 4),
    least=st.integers(1, 20),
    before=st.integers(0, 5),
    window=st.integers(1, 9),
    settles=st.booleans(),
)
def test_division(  # noqa: PLR0917
    sizes: list[int], gaps: list[int], workers: int, least: int, before: int, window: int, *, settles: bool
) -> None:
    """Each event is an own one of exactly one task, no instant is divided, and a slice reads what it needs of its
    key.
    """
    ends = np.cumsum(sizes, dtype=np.int64)
    starts = ends - np.array(sizes, np.int64)
    times = np.concatenate(
        [np.zeros(0, np.int64), *(np.cumsum(gaps[e - s : e]) for s, e in zip(sizes, ends, strict=True))]
    )
    events = PartEvents.of(0, starts, times, TimeSlices(before, window, settles=settles))
    tasks = divided(events, Division(workers, None, least, repeated=1))
    assert [row for task in tasks for row in range(task.slice.begin if task.slice else task.first, task.end)] == [
        *range(len(times))
    ]
    windows = window if settles else WINDOWS * window
    for task in tasks:
        if task.slice is None:
            assert task.first in starts
            assert task.end in ends
            continue
        begin, is_last, certain = task.slice.begin, task.slice.is_last, task.slice.certain
        key = next((s, e) for s, e in zip(starts.tolist(), ends.tolist(), strict=True) if s <= begin < e)
        assert key[0] == task.key <= task.first <= task.slice.may_start <= begin < task.end <= key[1]
        assert begin == key[0] or times[begin - 1] <= task.slice.entered < times[begin]
        assert is_last == (task.end == key[1])
        assert certain == (settles or begin == key[0])
        assert task.until == (None if is_last else times[task.end] - 1)
        for row in range(key[0], begin):
            age = times[begin] - times[row]
            assert (row >= task.slice.may_start) == (age <= windows)
            assert (row >= task.first) == (age <= windows + before)


def events_of(count: int, *, keys: int = 5) -> pa.Table:
    numbers = np.arange(count)
    return pa.table(
        {
            "key": pa.array([f"k{number % keys}" for number in numbers]),
            "at": pa.array(
                [FIRST + timedelta(seconds=int(number) // 3) for number in numbers], pa.timestamp("us", "UTC")
            ),
            "kind": pa.array(["aab"[number % 3] for number in numbers]),
            "n": pa.array(numbers % 5),
        }
    )


def test_detect() -> None:
    """`detect` has the same result and the same report with one worker and with two, also if the number is NumPy's."""
    reports = [Report(), Report()]
    one, two = (
        detect(events_of(600), B.within("1 minute"), workers=workers, report=report, nulls="drop", **KEYED)
        for workers, report in zip((1, np.int64(2)), reports, strict=True)
    )
    assert two.equals(one)
    assert len(one) > 100
    assert reports[0].counts == reports[1].counts


def test_auto_is_one_worker_for_few_events() -> None:
    """For few events no process is started, whatever the pattern is."""
    few = events_of(60)
    assert detect(few, B, workers="auto", **KEYED).equals(detect(few, B, **KEYED))


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "many", None, np.float64(2), np.array([2, 3]), 1_000_000])
def test_wrong_numbers(workers: Any) -> None:
    """The number is whole and from 1 to 256, or "auto"."""
    with pytest.raises(SchemaError, match=r"workers: a whole number from 1 to 256, or 'auto', is expected, got "):
        detect(events_of(6), B, workers=workers, **KEYED)


@pytest.mark.parametrize(
    ("pattern", "arguments", "reason"),
    [
        (B, {}, "without within, a match may end at any later time"),
        (B.skip(Skip.past_last_event()), {}, "without within, a match may end at any later time"),
        (B, {"time": None}, "events have no times"),
        (B.within("1 minute"), {"limits": Limits(on_limit="drop")}, "on_limit='drop' counts the partial matches"),
        ({"x": B.within("1 minute"), "y": A}, {}, "pattern 'y': without within, a match may"),
        (OccurrencePattern.of("a; b").taxonomy("kind"), {}, "occurrences are divided by key and by value only"),
    ],
)
def test_what_cannot_be_divided(pattern: Any, arguments: dict[str, Any], reason: str) -> None:
    """Without a key, the clause that forbids time slices is named."""
    with pytest.raises(PatternError, match="workers: without a key, events are divided into time slices, ") as error:
        detect(events_of(6), pattern, **{"time": "at", **arguments}, workers=2)
    assert reason in str(error.value)
    assert str(error.value).endswith(". Give a key, or leave out workers")


def test_functions_that_cannot_be_sent() -> None:
    """All functions that workers could not import are named, with the reason."""
    pattern = Pattern.begin("a").where(lambda _: True, name="anything").followed_by("b").where(dearer)
    with pytest.raises(PatternError, match="function anything cannot be sent to worker processes: ") as error:
        detect(events_of(6), pattern, workers=2, **KEYED)
    assert "dearer" not in str(error.value)
    assert "Define it at the top level of a module that workers can import, or leave out workers." in str(error.value)


def test_functions_of_a_script(tmp_path: Path) -> None:
    """Functions of the script that runs are refused; without them a script needs no guard."""
    script = tmp_path / "script.py"
    script.write_text(
        "from cepheid import Pattern, detect, PatternError\n"
        "from tests.hosts.test_workers import KEYED, events_of\n"
        "def cheap(event): return True\n"
        "try: detect(events_of(6), Pattern.begin('a').where(cheap), workers=2, **KEYED)\n"
        "except PatternError as error: print(error)\n"
        "print(len(detect(events_of(6), Pattern.begin('a'), workers=2, **KEYED)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
    refused, _, count = ran.stdout.strip().splitlines()
    assert "it belongs to the script that runs (__main__), which workers do not import" in refused
    assert count == "6"
    assert not ran.stderr


def test_a_worker_that_ends() -> None:
    """A worker that ends fails the call with the reason, and the next call has new workers."""
    pattern = Pattern.begin("a").where(ends_the_process)
    with pytest.raises(WorkerFailed, match=r"worker process \d+ ended with exit code [34]; its output on standard"):
        detect(events_of(6), pattern, workers=2, **KEYED)
    assert len(detect(events_of(6), A, workers=2, **KEYED)) == 4


def test_a_worker_that_is_killed() -> None:
    """One that the system ends is said to have been ended by its signal."""
    worker = pool.PooledWorker()
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(
        WorkerFailed, match=r"was ended by SIGKILL, as the system does where memory runs out: use fewer"
    ):
        worker.ask(None)
    worker.end()


def test_a_worker_that_needs_more_memory_than_it_may() -> None:
    """It fails the call, which names the bound. The next call has no bound."""
    numbers = np.arange(2_000_000)
    at = pa.array(numbers, pa.timestamp("us", "UTC"))
    table = pa.table({"key": numbers % 4, "at": at, "kind": pa.array(np.where(numbers < 1_999_000, "a", "b"))})
    pattern = Pattern.begin("a").where("kind = 'a'").followed_by("b").where("kind = 'b' AND at > a.at")
    with pytest.raises((LimitExceeded, WorkerFailed), match=r"256,000,000 bytes \(worker_memory\)"):
        detect(table, pattern, workers=2, worker_memory="256 MB", **KEYED)
    assert not len(detect(table[:1000], pattern, workers=2, **KEYED))


@pytest.mark.parametrize("memory", [0, 1000, -5, 1.5, True, "much", "2 TB", "2", "255 MB"])
def test_wrong_memory(memory: Any) -> None:
    """A bound is a number of bytes, or has a unit, and a process can start within it."""
    with pytest.raises(SchemaError, match=r"worker_memory: at least 256,000,000 bytes are expected.*, got "):
        detect(events_of(6), B, workers=2, worker_memory=memory, **KEYED)


def test_memory_of_one_worker() -> None:
    """The calling process is not bounded, so the argument is refused."""
    with pytest.raises(SchemaError, match="worker_memory: it bounds several workers, as with workers=2; leave it out"):
        detect(events_of(6), B, worker_memory="1 GB", **KEYED)


def test_a_worker_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the interpreter is not found, the call says so."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerFailed, match=r"a worker process cannot be started: .*No such file"):
        pool.PooledWorker()


def test_errors_of_workers() -> None:
    """Errors of conditions are those of one worker, also the one that comes first; unexpected ones say what it was."""
    text = Pattern.begin("a").where("kind = 'a'").followed_by("b").where("n / (n - a.n) > 0").within("1 minute")
    for pattern, message in ((text, "division by zero"), (Pattern.begin("a").where(refuses), "n is 2")):
        errors = []
        for workers in (1, 2):
            with pytest.raises(ConditionError, match=message) as error:
                detect(events_of(200), pattern, workers=workers, **KEYED)
            errors.append(str(error.value))
        assert errors[0] == errors[1]
    with pytest.raises(WorkerFailed, match=r"(?s)a worker process failed unexpectedly:.*the connection is gone"):
        detect(events_of(6), Pattern.begin("a").where(Refusing(), name="gone"), workers=2, **KEYED)


def test_events_that_cannot_be_used() -> None:
    """Events without a key are an error before anything is divided."""
    events = events_of(6).set_column(0, "key", pa.nulls(6, pa.string()))
    with pytest.raises(EventError, match="6 with a NULL in the key"):
        detect(events, B, workers=2, **KEYED)
