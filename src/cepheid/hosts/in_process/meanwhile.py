"""Matches while the kernel is compiled for the first time on a machine, which takes half a minute.

Another process compiles it. Meanwhile the plain step, which needs no compiling, looks for the matches: for some
thousands of events with few partial matches it is done in a second. If the kernel is compiled first, it starts again
from the first event, as it is a thousand times faster. Both give the same rows in the same order.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterable
from time import monotonic
from typing import Any, NamedTuple

import pyarrow as pa

from cepheid.errors import ConditionError, LimitExceeded, SkipError, WorkerFailed
from cepheid.events.batch import Batch
from cepheid.families import family_named
from cepheid.families.family import Family
from cepheid.hosts.python_process import start_python
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
    missing = family.uncompiled(compiled)
    if not missing or cores() == 1 or not _compile(family, missing):
        return None
    matcher = family.plain(compiled, until)
    results = list[list[pa.Table]]()
    size = _AT_FIRST
    try:
        for batch in batches:
            start = 0
            while start < len(batch):
                if not family.uncompiled(compiled):
                    return None
                began, stop = monotonic(), min(start + size, len(batch))
                results.append(matcher.process(batch.slice(start, stop)))
                start, size = stop, 2 * size if monotonic() - began < _SHORT else max(1, size // 2)
        results.append(matcher.finish())
    except (ConditionError, LimitExceeded, SkipError):
        return None
    return Found(results, matcher.counts)


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


def main(kind: str, kernel: str) -> None:
    """Compiles a kernel of this kind of pattern."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted program still finds the kernel compiled next time
    family_named(kind).compile_kernel(kernel)
