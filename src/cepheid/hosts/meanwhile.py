"""Matches while the kernel is compiled for the first time on a machine, which takes half a minute.

Another process compiles it. Meanwhile the plain step, which needs no compiling, looks for the matches: for some
thousands of events with few partial matches it is done in a second. If the kernel is compiled first, it starts again
from the first event, as it is a thousand times faster. Both give the same rows in the same order.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable
from functools import cached_property, partial
from time import monotonic
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import ConditionError, LimitExceeded, SkipError, WorkerFailed
from cepheid.events.batch import Batch
from cepheid.families import family_named
from cepheid.families.family import Family
from cepheid.hosts.python_process import start_python
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.requests.arguments import cores

_AT_FIRST = 16
"""After so many events it looks whether the kernel is compiled, then after twice as many as long as they take a short
time. With many partial matches a single event may take long.
"""
_SHORT = 0.1
"""Seconds."""

_COMPILING: dict[str, subprocess.Popen[bytes]] = {}
"""The processes that compile kernels, by the kernel's name."""


class Found(NamedTuple):
    """The matches in all events."""

    results: list[list[pa.Table]]
    counts: dict[str, int]
    """As a FiniteMatcher has them."""


def found_meanwhile(family: Family, compiled: Any, until: int | None, batches: Iterable[Batch]) -> Found | None:
    """The matches in the batches, by the plain step; None if the kernel is compiled, or before this is done, or if the
    plain step fails: what a kernel then says counts.
    """
    meanwhile = _Meanwhile.begun(family, compiled, until)
    if meanwhile is None or not all(map(meanwhile.process, batches)):
        return None
    return meanwhile.finish()


class PatientMatcher:
    """As the family's finite matcher, but the plain step finds the matches while the kernel is compiled. For events
    that cannot be read twice: it keeps them until the kernel has them.
    """

    def __init__(self, family: Family, compiled: Any, until: int | None) -> None:
        self._new = partial(family.finite, compiled, until)
        self._meanwhile = _Meanwhile.begun(family, compiled, until)
        self._kept: list[Batch] = []
        self.counts: dict[str, int] = {}

    def process(self, batch: Batch) -> list[pa.Table]:
        """The rows that are certain now; while the kernel is compiled, no rows.

        Raises:
            ConditionError, LimitExceeded, SkipError: as the kernel.
        """
        if self._meanwhile is None:
            return self._kernel.process(batch)
        self._kept.append(batch)
        return [] if self._meanwhile.process(batch) else self._by_kernel()

    def finish(self) -> list[pa.Table]:
        """The other rows. Raises as `process`."""
        if self._meanwhile is not None and (found := self._meanwhile.finish()) is not None:
            self.counts = found.counts
            return _joined(found.results)
        rows = _joined([self._by_kernel(), self._kernel.finish()])
        self.counts = self._kernel.counts
        return rows

    @cached_property
    def _kernel(self) -> FiniteMatcher:
        return self._new()  # waits until the kernel is compiled

    def _by_kernel(self) -> list[pa.Table]:
        """The rows for the events that were kept."""
        kept, self._kept, self._meanwhile = self._kept, [], None
        return _joined([self._kernel.process(batch) for batch in kept])


class _Meanwhile:
    """The plain step, as long as a kernel is being compiled."""

    def __init__(self, family: Family, compiled: Any, until: int | None) -> None:
        self._family, self._compiled = family, compiled
        self._matcher = family.plain(compiled, until)
        self._results: list[list[pa.Table]] = []
        self._size = _AT_FIRST

    @classmethod
    def begun(cls, family: Family, compiled: Any, until: int | None) -> _Meanwhile | None:
        """None if the kernel is compiled, or cannot be by another process."""
        missing = family.uncompiled(compiled)
        if not missing or cores() == 1 or not _compile(family, missing):
            return None
        return cls(family, compiled, until)

    def process(self, batch: Batch) -> bool:
        """Takes events. Whether it has done so: the kernel is not compiled yet, and the step has not failed."""
        start = 0
        while start < len(batch):
            if not _is_compiling(self._family.uncompiled(self._compiled)):
                return False  # the kernel is compiled, or the process has ended without that
            began, stop = monotonic(), min(start + self._size, len(batch))
            try:
                self._results.append(self._matcher.process(batch.slice(start, stop)))
            except (ConditionError, LimitExceeded, SkipError):
                return False
            start, self._size = stop, 2 * self._size if monotonic() - began < _SHORT else max(1, self._size // 2)
        return True

    def finish(self) -> Found | None:
        """What was found; None if the step fails."""
        try:
            self._results.append(self._matcher.finish())
        except (ConditionError, LimitExceeded, SkipError):
            return None
        return Found(self._results, self._matcher.counts)


def _joined(results: Iterable[list[pa.Table]]) -> list[pa.Table]:
    """One table for each pattern."""
    return [pa.concat_tables(tables) for tables in zip(*filter(None, results), strict=True)]


def _compile(family: Family, kernels: Iterable[str]) -> bool:
    """Has other processes compile these kernels, unless they do so already. False if none can be started."""
    nothing = subprocess.DEVNULL
    try:
        for kernel in kernels:
            if kernel not in _COMPILING or _COMPILING[kernel].poll() is not None:
                _COMPILING[kernel] = start_python(__name__, family.kind, kernel, stdin=nothing, stdout=nothing)
    except WorkerFailed:
        return False
    return True


def _is_compiling(kernels: Iterable[str]) -> bool:
    """Whether a process compiles one of these kernels now."""
    return any(_COMPILING[kernel].poll() is None for kernel in kernels)


def main(kind: str, kernel: str) -> None:
    """Compiles a kernel of this kind of pattern."""
    for end in (signal.SIGINT, signal.SIGHUP):  # of an interrupted program, and of Spark's workers when Spark ends
        signal.signal(end, signal.SIG_IGN)  # the kernel is still compiled next time
    family_named(kind).compile_kernel(kernel)
