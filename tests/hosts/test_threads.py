"""Several threads find the matches of different keys; the rows are those of one thread."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from signal import SIGINT
from subprocess import PIPE, Popen
from time import sleep
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import (
    CepheidWarning,
    ConditionError,
    EventError,
    IntervalPattern,
    OccurrencePattern,
    Pattern,
    Report,
    detect,
)
from cepheid.hosts import meanwhile
from cepheid.hosts.in_process import threads
from cepheid.hosts.in_process.sort import KeysInOrder
from cepheid.hosts.in_process.threads import divided
from cepheid.hosts.in_process.workers import in_place as module
from cepheid.hosts.in_process.workers import worker_groups

ROOT = Path(__file__).parents[2]
T = datetime(2026, 3, 2, 8, tzinfo=UTC)
STAGES = Pattern.begin("a").where("x = 0").followed_by("b").where("x = 1 AND n > a.n")
INTERVALS = IntervalPattern.of("EVENT PAL(A overlap B) WITHIN 5 seconds").taxonomy("t")
OCCURRENCES = OccurrencePattern.of("A; C").taxonomy("t")


def events(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Events with a key, a second and a number."""
    at = pa.array([T + timedelta(seconds=second) for _, second, _ in rows], pa.timestamp("us", "UTC"))
    names = ["ABC"[min(x, 2)] for _, _, x in rows]
    keys, numbers = [key for key, _, _ in rows], [x for _, _, x in rows]
    return pa.table({"k": keys, "at": at, "x": numbers, "t": names, "n": range(len(rows))})


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=30),
    ordered=st.booleans(),
    pattern=st.sampled_from([STAGES, OCCURRENCES]),
    workers=st.sampled_from([1, 2]),
)
def test_the_rows_are_those_of_one_thread(
    *, rows: list[tuple[int, int, int]], ordered: bool, pattern: Pattern | OccurrencePattern, workers: int
) -> None:
    """Rows, their order and the counts do not depend on the number of threads, whether the events are in order or not;
    threads do what two workers would.
    """
    table = events(sorted(rows) if ordered else rows)
    found = []
    for least, of in ((len(rows) + 1, 1), (1, workers)):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(threads, "LEAST", least)
            report = Report()
            rows_found = detect(table, pattern, key="k", time="at", sequence="n", report=report, workers=of)
        found.append((rows_found.to_pylist(), report.counts))
    assert found[0] == found[1]


@pytest.mark.parametrize("key", [[], ["k"]], ids=["without a key", "one hot key"])
@pytest.mark.parametrize("pattern", [STAGES.within("5 seconds"), INTERVALS], ids=["stages", "intervals"])
def test_two_workers_are_threads(
    key: list[str], pattern: Pattern | IntervalPattern, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time slices of many events are divided among two threads, and no process is started."""
    monkeypatch.setattr(threads, "LEAST", 1)
    monkeypatch.setattr(worker_groups, "take_workers", None)
    table = events([(int(i % 50 == 0), i // 8, i % 3) for i in range(40_000)])
    table = table.append_column("end", pc.add(table["at"], pa.scalar(timedelta(seconds=2))))
    interval = isinstance(pattern, IntervalPattern)
    find = partial(detect, table, pattern, key=key, time=("at", "end") if interval else "at")
    one, two = (find(sequence=None if interval else "n", workers=workers) for workers in (1, 2))
    assert len(one) > 1000
    assert two.equals(one)


@pytest.mark.parametrize("kind", ["x = 0", "x = 5"], ids=["matches", "no match"])
def test_threads_order_the_events_of_their_tasks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of one hot key in any order, many at a time, are in the order of one worker, and ties are counted once."""
    monkeypatch.setattr(threads, "LEAST", 1)
    used = list[meanwhile.Found]()

    def found_in_place(*given: Any, **named: Any) -> meanwhile.Found:
        used.append(module.found_in_place(*given, **named))
        return used[-1]

    monkeypatch.setattr("cepheid.hosts.in_process.detect.found_in_place", found_in_place)
    numbers = np.random.default_rng(1).permutation(40_000)
    table = events([(int(i % 50 == 0), int(i) // 8, int(i) % 3) for i in numbers])
    pattern = Pattern.begin("a").where(kind).followed_by("b").where("x = 1 AND n > a.n").within("5 seconds")
    reports = [Report(), Report()]
    with pytest.warns(CepheidWarning, match="events agree in key and time with another"):
        one, two = (
            detect(table, pattern, key="k", time="at", workers=workers, report=report)
            for workers, report in zip((1, 2), reports, strict=True)
        )
    assert two.equals(one)
    assert reports[0].counts == reports[1].counts
    assert (len(one) > 1000) == (kind == "x = 0")
    assert len(used) == 1


def test_a_time_that_is_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the same error in a thread that orders events as with one worker."""
    monkeypatch.setattr(threads, "LEAST", 1)
    for time in ((1 << 62) + 1, -(1 << 63)):
        times = np.arange(40_000)[::-1].copy()
        times[7] = time
        table = pa.table({"k": np.arange(40_000) // 39_000, "at": pa.array(times, pa.timestamp("us", "UTC"))})
        for workers in (1, 2):
            with pytest.raises(EventError, match="an event's time is further than 100,000 years from 1970"):
                detect(table, Pattern.begin("a").within("1 second"), key="k", time="at", columns=[], workers=workers)


def test_the_first_error_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """If conditions fail on events of several keys, the error is that of the first key, as with one thread."""
    monkeypatch.setattr(threads, "LEAST", 1)
    pattern = Pattern.begin("a").where("x = 0").next("b").where("n / (x - a.x - 1) > 0")
    table = events([(key, second, second) for key in range(40) for second in range(2)])
    with pytest.raises(ConditionError, match="at the event with k = 0,"):
        detect(table, pattern, key="k", time="at")


@pytest.mark.parametrize(
    ("skip", "keys", "workers"), [("no_skip", 2, 1), ("past_last_event", 2, 1), ("past_last_event", 1, 2)]
)
def test_ctrl_c_ends_all_threads(skip: str, keys: int, workers: int) -> None:
    """A pattern with billions of matches ends soon after it is interrupted, before they take 3 GiB. It has a process of
    its own that may have 8 GiB: it would take all memory of the machine if a thread went on.
    """
    found = Popen([sys.executable, "-c", MANY_MATCHES, skip, str(keys), str(workers)], cwd=ROOT, stdout=PIPE, text=True)
    assert found.stdout is not None
    assert found.stdout.readline() == "begins\n"
    sleep(1)
    found.send_signal(SIGINT)
    taken, _ = found.communicate(timeout=120)
    assert int(taken) < 3 << 20


MANY_MATCHES = """
import resource, sys
from functools import partial
from cepheid import Pattern, Skip, detect
from cepheid.hosts.in_process import threads
from tests.hosts.test_threads import events

resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
threads.LEAST = 1
skip = getattr(Skip, sys.argv[1])()
pattern = Pattern.begin("a").followed_by_any("b").followed_by_any("c").followed_by_any("d").within("1 day").skip(skip)
if sys.argv[1] != "no_skip":
    pattern = pattern.followed_by("e").where("x <> 0")
find = partial(detect, pattern=pattern, key="k", time="at", columns=[], workers=int(sys.argv[3]))
find(events([(0, 0, 0)]))  # loads the kernel
many = events([(key, second, 0) for key in range(int(sys.argv[2])) for second in range(2000)])
print("begins", flush=True)
try:
    find(many)
except KeyboardInterrupt:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # in KiB
"""


@given(sizes=st.lists(st.integers(1, 9), max_size=20), parts=st.integers(1, 4), reversed_=st.booleans())
def test_no_key_is_divided(*, sizes: list[int], parts: int, reversed_: bool) -> None:
    """Parts end with keys, and none has more than three quarters of the events unless there is only one."""
    keys = np.repeat(np.arange(len(sizes)), sizes)
    rows = pa.array(np.arange(len(keys))[::-1]) if reversed_ else None
    ends = divided(KeysInOrder([pa.array(keys)], rows, len(keys)), parts)
    in_order = keys[::-1] if reversed_ else keys
    assert all(in_order[end - 1] != in_order[end] for end in ends[:-1])
    assert ends[-1:] == [len(keys)]
    assert len(ends) == 1 or max(np.diff(ends, prepend=0)) <= 0.75 * len(keys)
    assert len(ends) <= parts
