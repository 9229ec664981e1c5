"""The host in process gives the matches of the reference, whatever the pieces, order and kind of
table of the events.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.patterns_and_events import FIRST, SCHEMA, Case, Row, by_definition, cases, events, found_in
from tests.searching import share

from cepheid import Pattern, detect
from cepheid.hosts.in_process import detect as in_process


def table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def found(rows: pa.Table, case: Case, **options: Any) -> pa.Table:
    """The matches, device by device (sorting is stable: within a device, in the order of emission)."""
    matches = detect(rows, case.pattern, key="device", time="at", sequence="id", **options)
    order = sorted(range(len(matches)), key=matches.column("device").to_pylist().__getitem__)
    return matches.take(pa.array(order, pa.int64()))


def text(matches: pa.Table) -> str:
    """The types and rows as text, in which NaN equals itself."""
    return f"{matches.schema}\n{matches.to_pylist()}"


@share(30)
@given(cases(), events(ties=True))
def test_matches_are_the_definition_s(case: Case, rows: list[Row]) -> None:
    """Patterns with SQL conditions have the matches that the reference gives with the same conditions in Python."""
    assert found_in(found(table(rows), case), case.pattern) == by_definition(case, rows)


@share(30)
@given(cases(), events(ties=True), st.integers(-1, 15).map(lambda seconds: FIRST + timedelta(seconds=seconds)))
def test_as_of_is_the_definition_s(case: Case, rows: list[Row], as_of: datetime) -> None:
    """With `as_of`, later events do not count, and time stops there."""
    assert found_in(found(table(rows), case, as_of=as_of), case.pattern) == by_definition(case, rows, as_of)


@share(30)
@given(cases(), events(ties=True), st.integers(1, 8), st.randoms(use_true_random=False))
def test_pieces_and_order_do_not_matter(case: Case, rows: list[Row], piece: int, source: Any) -> None:
    """Events in any order, processed in pieces of any size, give the same matches, rows and ids."""
    whole = found(table(rows), case)
    shuffled = source.sample(rows, len(rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_process, "PIECE", piece)
        assert text(found(table(rows), case)) == text(whole)
        assert text(found(table(shuffled), case)) == text(whole)


def test_threads_that_outlive_the_main_one() -> None:
    """If the interpreter starts no more threads, everything runs in the current one."""
    program = """
import threading
import numpy as np
import pyarrow as pa
from cepheid import Pattern, detect

events = pa.table({"x": [1, 2], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})

def found():
    print(detect(events, Pattern.begin("a").next("b"), time="at").num_rows)

def work():
    threading.main_thread().join()
    found()

found()
threading.Thread(target=work).start()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_long_lists_of_values() -> None:
    """Conditions with many values hold for the right events, also where the events are so many that several threads
    compute them.
    """
    count, kinds = 1_000_000, 50
    kind = np.random.default_rng(0).integers(0, kinds, count)
    names = pa.array([f"k{number}" for number in range(kinds)])
    many = pa.table({"number": np.arange(count), "kind": names.take(pa.array(kind))})
    some = ", ".join(f"'k{n}'" for n in range(20))
    pattern = Pattern.begin("first").where(f"kind IN ({some}) AND number % 100 = 0")
    rows = detect(many, pattern, time=None, sequence="number", measures={"number": "first.number"})
    expected = np.flatnonzero((kind < 20) & (np.arange(count) % 100 == 0))
    assert rows.column("number").to_pylist() == expected.tolist()
