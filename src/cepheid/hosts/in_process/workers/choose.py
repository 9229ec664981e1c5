"""Whether one worker finds the matches or several do, which are threads or processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from cepheid.errors import PatternError
from cepheid.families.family import CompiledSet, Family
from cepheid.hosts.in_process.workers.division import Division
from cepheid.hosts.in_process.workers.matcher import DividedMatcher
from cepheid.hosts.in_process.workers.packing import packed
from cepheid.hosts.in_process.workers.worker_groups import Processes, Threads, WorkerGroup
from cepheid.matchers.protocols import FiniteMatcher
from cepheid.plan.plan_set import PlanSet
from cepheid.requests.arguments import cores
from cepheid.requests.request import Workers

LEAST_TO_PAY = 2_000_000
"""With fewer events than this, "auto" is one worker. To start a worker takes 1.6 seconds of processor time; in these
one process finds the matches in about so many events of P8, a pattern in docs/performance.md.
"""


@contextmanager
def matcher_for(
    family: Family, plans: PlanSet[Any], compiled: CompiledSet, *, size: int, division: Division, in_threads: bool
) -> Iterator[FiniteMatcher]:
    """The matcher for events of about `size` bytes. Several workers take the events in order, whatever the kind of
    pattern is.

    Raises:
        PatternError: the pattern cannot be sent to other processes.
    """
    if division.workers == 1:
        yield family.finite(compiled, division.until)
        return
    group: WorkerGroup
    if in_threads:
        group = Threads(family.parts(compiled), count=division.workers)
    else:
        group = Processes(family.kind, packed(plans), count=division.workers, memory=division.memory, size=size)
    with closing(group):
        yield DividedMatcher(family, plans, compiled, division=division, group=group)


def number_of_workers(family: Family, plans: PlanSet[Any], *, events: int, asked: Workers) -> int:
    """How many workers there are for this number of events.

    Raises:
        PatternError: several are asked for, and the events cannot be divided.
    """
    if asked == 1:
        return 1
    obstacle = _obstacle(family, plans)
    if asked != "auto":
        if obstacle is not None:
            raise PatternError(f"workers: {obstacle}, or leave out workers")
        return asked
    if events < LEAST_TO_PAY or obstacle is not None:
        return 1
    try:
        packed(plans)
    except PatternError:
        return 1
    return cores()


def _obstacle(family: Family, plans: PlanSet[Any]) -> str | None:
    """Why the events cannot be divided among workers; None if they can."""
    if plans.schema.key or not isinstance(slices := family.time_slices(plans), str):
        return None
    return f"without a key, events are divided into time slices, which is not possible here: {slices}. Give a key"
