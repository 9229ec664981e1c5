"""While the kernel is compiled for the first time, the plain step finds the same rows in the same order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepheid import LimitExceeded, Limits, Pattern, Skip, detect
from cepheid.events.batch import Batch
from cepheid.families.family import Family
from cepheid.hosts import meanwhile
from cepheid.hosts.in_process.detect import prepared
from cepheid.hosts.meanwhile import PatientMatcher, found_meanwhile
from cepheid.kernel.stages.warm_up import KINDS, is_compiled
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.requests.request_of import request_of

T = datetime(2026, 1, 1, tzinfo=UTC)
SHORT = "10 seconds"
PATTERNS = {
    "across events": Pattern.begin("a").where("x = 1").followed_by("b").where("x > a.x").within(SHORT),
    "in sets": Pattern.begin("a").where("x = 1").one_or_more().followed_by_any("b").where("x = 2").within(SHORT),
    "looking back": Pattern.begin("a")
    .where("x = 1")
    .begin_without("w", within="2 seconds", where="x = 0")
    .next("b")
    .within(SHORT),
    "skipping": Pattern.begin("a").followed_by_any("b").where("x >= 2").within(SHORT).skip(Skip.past_last_event()),
}
PROGRAM = """
from tests.hosts.test_meanwhile import PATTERNS, events
from cepheid import detect

rows = [(number, number % 3, number * 7 % 4) for number in range(3000)]
print(detect(events(rows), PATTERNS["across events"], key="k", time="at").num_rows, flush=True)
"""


def events(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Events with a second, a key and a number."""
    at = pa.array([T + timedelta(seconds=second) for second, _, _ in rows], pa.timestamp("us", "UTC"))
    return pa.table({"at": at, "k": [key for _, key, _ in rows], "x": [x for _, _, x in rows], "n": range(len(rows))})


def plainly(table: pa.Table, pattern: Pattern, **arguments: Any) -> list[pa.Table]:
    """The rows of the plain step."""
    ready = prepared(table, request_of(pattern, key="k", time="at", sequence="n", **arguments))
    matcher = ready.request.family.plain(ready.compiled, ready.until)
    results = [matcher.process(batch) for batch in ready.batches(ordered=True)]
    return [tables[0] for tables in [*results, matcher.finish()]]


@given(st.sampled_from([*PATTERNS]), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1), st.integers(0, 3))))
def test_the_same_rows_in_the_same_order(name: str, rows: list[tuple[int, int, int]]) -> None:
    """Rows, ids and order are those of the compiled kernels."""
    table = events(sorted(rows))
    found = detect(table, PATTERNS[name], key="k", time="at", sequence="n")
    plain = pa.concat_tables([found.slice(0, 0), *plainly(table, PATTERNS[name])])
    assert plain.to_pylist() == found.to_pylist()


class Compiling:
    """A family whose kernel is compiled once a host has looked for it so many times."""

    def __init__(self, family: Family, looks: int) -> None:
        self._family, self._looks = family, looks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)

    def uncompiled(self, compiled: Any) -> list[str]:  # noqa: ARG002
        self._looks -= 1
        return ["a kernel"] if self._looks >= 0 else []

    def finite(self, compiled: Any, until: int | None) -> FiniteMatcher:
        """This would wait for the kernel."""
        assert self._looks < 0
        return self._family.finite(compiled, until)


@given(
    name=st.sampled_from([*PATTERNS]),
    rows=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1), st.integers(0, 3)), min_size=20, max_size=80),
    looks=st.sampled_from([0, 1, 2, 4, 6, 1000]),
)
def test_a_kernel_that_is_compiled_meanwhile(name: str, rows: list[tuple[int, int, int]], looks: int) -> None:
    """Rows, their order and counts do not depend on when it is compiled, if it ever is before the events end."""
    ready = prepared(events(sorted(rows)), request_of(PATTERNS[name], key="k", time="at", sequence="n"))
    family, compiled = ready.request.family, ready.compiled
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(meanwhile, "_compile", lambda *_: True)
        patched.setattr(meanwhile, "_is_compiling", bool)
        matchers = [family.finite(compiled, None), PatientMatcher(Compiling(family, looks), compiled, None)]
        found = [rows_and_counts(matcher, ready.batches(ordered=True)) for matcher in matchers]
    assert found[0] == found[1]


def test_a_kernel_whose_process_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain step does not go on for ever: the kernel is compiled where the matches are looked for."""

    class Uncompiled(Compiling):
        def finite(self, compiled: Any, until: int | None) -> FiniteMatcher:
            return self._family.finite(compiled, until)

    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    monkeypatch.setattr(meanwhile, "start_python", lambda *_, **__: ended)
    ready = prepared(events([(0, 0, 1), (1, 0, 3)]), request_of(PATTERNS["across events"], key="k", time="at"))
    family = Uncompiled(ready.request.family, looks=1000)
    matcher = PatientMatcher(family, ready.compiled, None)
    assert len(rows_and_counts(matcher, ready.batches(ordered=True))[0]) == 1
    assert matcher._meanwhile is None  # noqa: SLF001


def rows_and_counts(matcher: FiniteMatcher, batches: Iterable[Batch]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """What the matcher finds in the batches, of which it has 15 events at a time."""
    parts = [batch.slice(at, min(at + 15, len(batch))) for batch in batches for at in range(0, len(batch), 15)]
    results = [*map(matcher.process, parts), matcher.finish()]
    return [row for tables in results for table in tables for row in table.to_pylist()], matcher.counts


def test_a_compiled_kernel_has_no_plain_step() -> None:
    """Where the kernels are compiled, as before these tests, nothing is done twice."""
    assert all(map(is_compiled, KINDS.values()))
    ready = prepared(events([(0, 0, 1)]), request_of(PATTERNS["in sets"], key="k", time="at"))
    assert found_meanwhile(ready.request.family, ready.compiled, None, ready.batches(ordered=True)) is None


def test_limits_hold_in_the_plain_step() -> None:
    """A pattern whose partial matches are counted has the same limit."""
    table = events([(second, 0, 1) for second in range(5)])
    limits = Limits(max_partial_matches=3)
    for find in (plainly, detect):
        arguments = {} if find is plainly else {"key": "k", "time": "at", "sequence": "n"}
        with pytest.raises(LimitExceeded, match="more than 3 partial matches are open"):
            find(table, PATTERNS["across events"], limits=limits, **arguments)


def test_the_first_detection_does_not_wait(tmp_path: Path) -> None:
    """With an empty cache a detection has its answer while another process compiles, and it is the right one."""
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    program = [sys.executable, "-c", PROGRAM]
    process = subprocess.Popen(program, env=given, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert process.stdout is not None
        found = int(process.stdout.readline())
        assert not [*tmp_path.rglob("*.compiled")]
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # also the process that compiles
        process.communicate()
    rows = [(number, number % 3, number * 7 % 4) for number in range(3000)]
    assert found == detect(events(rows), PATTERNS["across events"], key="k", time="at").num_rows > 0
