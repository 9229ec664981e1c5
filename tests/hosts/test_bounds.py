"""Large input in process: memory in proportion to the events, and right answers for one large key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cepheid import Pattern, Skip, detect

SECOND = 1_000_000

# A separate process, so that the peak is that of this detection. The first, small detection loads all modules.
MEASURED = """
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from cepheid import Pattern, detect

def events(rows):
    random = np.random.default_rng(7)
    device = np.sort(random.integers(0, 1_000, rows))
    at = pa.array(np.arange(rows) * 1_000_000).cast(pa.timestamp("us", "UTC"))
    kind = random.integers(0, 100, rows)
    table = pa.table({"device": device, "at": at, "kind": kind, "price": random.uniform(0, 100, rows)})
    return table if sys.argv[1] == "sorted" else table.take(pa.array(random.permutation(rows)))

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

pattern = Pattern.begin("a").where("kind = 1").followed_by("b").where("kind = 2 AND price > a.price").within("1 hour")
detect(events(1_000), pattern, key="device", time="at")
large = events(2_000_000)
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
before = peak()
detect(large, pattern, key="device", time="at")
print((peak() - before) / large.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of a process is read from /proc")
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_memory_stays_below_three_times_the_events(order: str) -> None:
    """In addition to the events, detection never uses more than three times their size in Arrow."""
    answer = subprocess.run([sys.executable, "-c", MEASURED, order], capture_output=True, text=True, check=True)
    assert float(answer.stdout) < 3


def one_key(kind: np.ndarray) -> pa.Table:
    """One event per second."""
    at = pa.array(np.arange(len(kind)) * SECOND).cast(pa.timestamp("us", "UTC"))
    return pa.table({"at": at, "kind": kind})


def test_a_key_may_have_a_million_events() -> None:
    """One key that spans many pieces has each of its matches once."""
    kind = np.tile([1, 0, 2, 2, 0], 200_000)
    pattern = (
        Pattern.begin("a").where("kind = 1").followed_by("b").where("kind = 2").next("c").where("kind = 2")
    ).skip(Skip.past_last_event())
    matches = detect(one_key(kind), pattern, time="at")
    assert matches.column("match_start").cast(pa.int64()).to_pylist() == list(range(0, 1_000_000 * SECOND, 5 * SECOND))


def test_many_partial_matches_may_be_open() -> None:
    """Thousands of partial matches, stored across pieces, time out at their deadlines or become matches."""
    rows, window = 600_000, 2_000
    ends = np.array([1_000, 262_144, 262_145, 599_999])  # at and after the border of two pieces
    kind = np.zeros(rows, np.int64)
    kind[ends] = 1
    pattern = Pattern.begin("a").where("kind = 0").followed_by_any("b").where("kind = 1").within(f"{window} seconds")
    matches = detect(one_key(kind), pattern, time="at", columns=[])
    found = np.unique(matches.column("match_end").cast(pa.int64()).to_numpy() // SECOND, return_counts=True)
    expected = [int((kind[max(0, end - window + 1) : end] == 0).sum()) for end in ends]
    assert found[0].tolist() == ends.tolist()
    assert found[1].tolist() == expected


def test_many_matches_may_wait() -> None:
    """Tens of thousands of matches that an older partial match withholds are all emitted when it ends."""
    kind = np.tile([0, 1], 50_000)
    kind[1] = 2  # the event that would complete the first partial match never comes
    pattern = (
        Pattern.begin("a").where("kind = 0").followed_by("b").where("kind = 1 AND at = a.at + INTERVAL 1 SECOND")
    ).skip(Skip.past_last_event())
    matches = detect(one_key(kind), pattern, time="at", columns=[])
    assert matches.column("match_start").cast(pa.int64()).to_pylist() == list(
        range(2 * SECOND, 100_000 * SECOND, 2 * SECOND)
    )


def test_a_condition_may_be_nested_deeply() -> None:
    """A condition may be nested as deeply as the parser allows, with a pending operand on every level."""
    deep = "kind"
    for _ in range(24):
        deep = f"kind + (a.kind - ({deep}))"
    pattern = Pattern.begin("a").where("kind = 0").next("b").where(f"kind = 1 AND a.kind < {deep}")
    assert len(detect(one_key(np.array([0, 1, 0, 1])), pattern, time="at")) == 2


# Fifty million events through one matcher, in the columns that hosts pass to it.
ENDLESS = """
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from cepheid import Pattern, Skip
from cepheid.compile.stages.compiled import compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.requests.request_of import request_of
from cepheid.events.batch import Batch, MASK, TIME, EVENT_PREFIX
from cepheid.events.order import Ordering
from cepheid.events.time import TIME_TYPE
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.hosts.in_process.detect import plans_in_process
from cepheid.matchers.finite import SortedMatcher
from cepheid.matchers.stages.detector import Detector

pattern = Pattern.begin("a").where("kind = 1").followed_by("b").where("kind = 2")
pattern = pattern.followed_by("never").where("kind = 11").within("200 seconds")
if sys.argv[1] == "one by one":
    pattern = pattern.skip(Skip.past_last_event())
request = request_of(pattern, time="at", columns="kind")
schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("kind", pa.int64())])
compiled = compile_plan(plans_in_process(schema, request, DuckDbEngine()).only)
assert choose_representation(compiled).sets == (sys.argv[1] == "in sets")
matcher = SortedMatcher(Detector(compiled), ordering=Ordering())
rows = 500_000
kind = np.random.default_rng(5).integers(0, 10, rows)
mask = pa.array((kind == 1) * 1 + (kind == 2) * 2)

def resident():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

for number in range(100):
    at = pa.array((np.arange(rows) + number * rows) * 1_000_000).cast(TIME_TYPE)
    columns = {TIME: at, MASK: mask, EVENT_PREFIX + "kind": pa.array(kind)}
    assert not any(len(rows) for rows in matcher.process(Batch(pa.RecordBatch.from_pydict(columns))))
    if number == 9:
        after_five_million = resident()
print(resident() - after_five_million)
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["one by one", "in sets"])
def test_memory_is_flat_over_fifty_million_events(form: str) -> None:
    """A pattern with a window that never completes stores only what is in the window, however long the stream is."""
    command = [sys.executable, "-c", ENDLESS, form]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert grown < 8 << 20
