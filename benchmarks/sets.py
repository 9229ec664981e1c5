"""The kernel of sets on one core: events of one key in batches; every match is returned in flat arrays.

There is one event per second, of ten equally likely kinds; stage i takes kind i. Times are processor time of this
thread, so that other load on the machine matters less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from measuring import machine, print_table, rows_wanted

from cepheid import Pattern
from cepheid.compile.arrays import Ints
from cepheid.compile.stages.compiled import CompiledPattern, compile_plan
from cepheid.compile.stages.representation import choose_representation
from cepheid.events.batch import Schema
from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.arrays import FOREVER, NO_TIME, Events, Visits
from cepheid.kernel.sets.kernel import SetKernel
from cepheid.plan.stages.build import build_plan

KINDS = 10
SECOND = 1_000_000
BATCH = 1 << 17
SCHEMA = Schema(pa.schema([("at", pa.timestamp("us", "UTC")), ("kind", pa.int64())]), (), "at")


@dataclass(frozen=True)
class Workload:
    """Stages that follow one another with any events in between; a stage marked with `+` is a loop."""

    name: str
    stages: tuple[str, ...]
    window: int
    share: float = 1.0
    """The share of the events of a stage's kind for which its condition is true."""
    looping: float = 1 / KINDS
    """The share of all events that the loop takes."""
    batch: int = BATCH
    rows: float = 1.0
    """The share of the requested number of events with which this workload is measured."""


WORKLOADS = (
    Workload("W1 A;B;C", ("a", "b", "c"), 100),
    Workload("W2 A;B;C, half of each", ("a", "b", "c"), 1_000, share=0.5, batch=1 << 14, rows=0.1),
    *(Workload("W3 A;B;C;D, never D", ("a", "b", "c", "never"), window) for window in (100, 1_000, 10_000, 100_000)),
    Workload("W4 A;B+;C, all subsets", ("a", "b+", "c"), 30),
    Workload("P5 the same, a dozen B", ("a", "b+", "c"), 30, looping=0.4, batch=1 << 12, rows=0.01),
)


def compiled_pattern(workload: Workload) -> CompiledPattern:
    pattern: Pattern | None = None
    for number, stage in enumerate(workload.stages):
        name = stage.removesuffix("+")
        pattern = pattern.followed_by_any(name) if pattern else Pattern.begin(name)
        pattern = pattern.where(f"kind = {number}")
        if name != stage:
            pattern = pattern.one_or_more().allow_combinations()
    assert pattern is not None
    plan = build_plan(pattern.within(f"{workload.window} seconds"), SCHEMA, DuckDbEngine())
    return compile_plan(plan)


def masks(workload: Workload, compiled: CompiledPattern, rows: int) -> Ints:
    """The events' masks, as a host would compute them."""
    random = np.random.default_rng(rows)
    drawn = random.uniform(0, 1, rows)
    made = np.zeros(rows, np.int64)
    first = 0.0
    for stage, condition in zip(workload.stages, compiled.plan.conditions, strict=True):
        share = workload.looping if stage.endswith("+") else 0.0 if stage == "never" else 1 / KINDS
        assert condition.bit is not None
        made[(first <= drawn) & (drawn < first + share * workload.share)] = 1 << condition.bit
        first += share
    return made


def measure(workload: Workload, wanted: int) -> list[object]:
    compiled = compiled_pattern(workload)
    assert choose_representation(compiled).sets
    rows = int(wanted * workload.rows)
    mask = masks(workload, compiled, rows)
    run(SetKernel(compiled.tables), mask[: 4 * workload.batch], workload.batch)
    seconds, matches, nodes = min(run(SetKernel(compiled.tables), mask, workload.batch) for _ in range(3))
    return [workload.name, workload.window, rows, matches, rows / seconds / 1e6, matches / seconds / 1e6, nodes]


def run(matcher: SetKernel, mask: Ints, batch: int) -> tuple[float, int, int]:
    """The seconds in the kernel, the number of matches, and the capacity in nodes at the end."""
    seconds, matches = 0.0, 0
    at, word = np.zeros((2, 0), np.int64)
    for first in range(0, len(mask), batch):
        end = min(first + batch, len(mask))
        at = np.concatenate([at, np.arange(first, end) * SECOND])
        word = np.concatenate([word, mask[first:end]])
        last = end == len(mask)
        visits = Visits(
            key=np.zeros(1, np.int32),
            end=np.array([len(at)]),
            until=np.array([FOREVER if last else NO_TIME]),
            closes=np.array([last]),
        )
        events = Events(at, word, np.zeros((0, len(at)), np.int64), np.zeros((0, len(at)), np.bool_))
        began = time.thread_time()
        matches += len(matcher.run(events, visits).end)
        held = matcher.hold()
        seconds += time.thread_time() - began
        at, word = at[held], word[held]
    return seconds, matches, len(matcher.sets.nodes)


def main() -> None:
    rows = rows_wanted(__doc__ or "", default=5_000_000)
    print(machine())
    head = ["pattern", "window, s", "events", "matches", "M events/s", "M matches/s", "room for nodes"]
    print_table("Partial matches in sets, one core", head, [measure(workload, rows) for workload in WORKLOADS])


if __name__ == "__main__":
    main()
