"""Spark's listener that gives hot keys of a stream copies and releases them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.allocation.thresholds import wanted_copies
from cepheid.errors import SnapshotError, warn
from cepheid.hosts.spark.stream.copies.assignment import Assignment, Decision, Key
from cepheid.hosts.spark.stream.copies.change import CopiesChange
from cepheid.hosts.spark.stream.copies.deciding import Figures, Loads, in_order_of_load, next_change, without_standby
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.copies.trigger import trigger_interval
from cepheid.hosts.spark.stream.placement import Placement, murmur3
from cepheid.hosts.spark.stream.progress import Progress, progress_of
from cepheid.hosts.spark.stream.stored_state import active_session, all_operators, checkpointed_patterns, query_of


class CopiesListener(StreamingQueryListener):
    """Decides on copies after each micro-batch of one query: at most one change of one key."""

    def __init__(
        self, checkpoint: str, budget: timedelta | None, report: Callable[[CopiesChange], object] | None
    ) -> None:
        self._checkpoint, self._folder = checkpoint, CopiesFolder(checkpoint)
        self._budget, self._report = budget, report
        self._loads: dict[str, Loads] = {}
        """By the pattern's name."""
        self._numbers: dict[str, int] = {}
        self._placement: Placement | None = None
        self._stored = set[str]()
        """The names of the patterns that have something stored."""
        self._short = set[tuple[str, str]]()
        """The patterns and keys that were reported as short of standbys."""
        self._has_no_standbys = False
        """Whether the query turned out to have no standbys."""
        self._run = ""
        self._interval: timedelta | None = None
        """That of the trigger in this run of the query; without a budget, it is the budget."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        reported = json.loads(event.progress.json)
        progress = progress_of(reported)
        if progress is None or not self._is_meant(progress):
            return
        placement = self._learned(progress)
        if placement is None:
            return
        assignment = self._folder.of_batch(progress.batch)
        for name, number in self._numbers.items():
            self._learn(name, number, progress, assignment, placement)
        if self._budget is None:
            self._ask_trigger(reported["runId"], progress.query)
        self._follow(progress, assignment, placement)

    def _ask_trigger(self, run: str, query: str) -> None:
        """Asks once for each run of the query: it may go on with another trigger."""
        if run != self._run:
            self._run, self._interval = run, trigger_interval(active_session(), query)

    def _is_meant(self, progress: Progress) -> bool:
        try:
            return query_of(self._checkpoint) == progress.query
        except AnalysisException:  # the checkpoint's query has not started yet
            return False

    def _learned(self, progress: Progress) -> Placement | None:
        """How the shards of the patterns with standbys are numbered; None as long as nothing is stored. Each pattern is
        stored with its first events.
        """
        begun = {name for name, one in progress.patterns.items() if any(shard.events for shard in one.shards)}
        if not self._has_no_standbys and not begun <= self._stored:
            stored = checkpointed_patterns(self._checkpoint)
            self._stored |= stored.keys()
            for name, one in stored.items():
                if one.placement.standbys:
                    self._numbers[name], self._placement = one.number, one.placement
            if stored and self._placement is None:
                self._has_no_standbys = True
                warn(_no_standbys(self._checkpoint))
        return self._placement

    def _learn(self, name: str, number: int, progress: Progress, assignment: Assignment, placement: Placement) -> None:
        pattern = progress.patterns[name]
        shares = {(one.shard, one.key): one.share for one in pattern.hottest}
        figures = Figures(
            seconds=max(progress.total.total_seconds(), 1e-3),
            useful=[one.useful.total_seconds() for one in pattern.shards],
            events=[one.events for one in pattern.shards[: placement.shards]],
            shares=shares if pattern.keys.events else None,
        )
        before = self._loads.get(name, Loads())
        self._loads[name] = before.after(figures, assignment.copies(number))

    def _follow(self, progress: Progress, assignment: Assignment, placement: Placement) -> None:
        """Makes one change of the pattern whose key has the highest load, and reports which keys lack standbys."""
        budget = self._budget or self._interval
        found, short = list[tuple[float, CopiesChange, Decision]](), list[CopiesChange]()
        for name, number in self._numbers.items():
            copies, loads = assignment.copies(number), self._loads.get(name, Loads()).keys
            of_pattern = _ReportOfPattern(progress, name, placement.standbys, budget)
            change = next_change(loads, copies, _standbys(progress, number, placement), budget=of_pattern.seconds)
            if change is not None:
                after = change.copies if budget is not None else copies.get(change.key, ())
                report = of_pattern.of(change.key, after, change.load, decided=budget is not None)
                found.append((change.load, report, Decision(number, *change.key, change.copies)))
            if budget is not None:
                keys = without_standby(loads, copies, placement.standbys, budget=of_pattern.seconds)
                short += [of_pattern.of(key, copies.get(key, ()), loads[key], decided=False) for key in keys]
        if found and assignment.decisions == self._folder.decisions:  # what was decided before has its effect now
            _, report, decision = max(found, key=lambda one: (one[0], one[1].pattern))
            if budget is not None:
                self._folder.decide(decision)
            self._emit(report)
        if budget is not None:
            self._report_short(progress.batch, short)

    def _report_short(self, batch: int, short: list[CopiesChange]) -> None:
        self._folder.report_short(batch, short)
        for one in short:
            if (one.pattern, one.key) not in self._short:
                self._emit(one)
        self._short = {(one.pattern, one.key) for one in short}

    def _emit(self, change: CopiesChange) -> None:
        if self._report is not None:
            self._report(change)


def check_standbys(checkpoint: str) -> None:
    """Checks that the checkpoint's query has standbys. A query that has not had events yet may have some.

    Raises:
        SnapshotError: it has none, or is another kind of query.
    """
    session = SparkSession.getActiveSession()
    if session is None or not all_operators(session, checkpoint):
        return
    stored = checkpointed_patterns(checkpoint).values()
    if stored and not any(one.placement.standbys for one in stored):
        raise SnapshotError(_no_standbys(checkpoint))


def _no_standbys(checkpoint: str) -> str:
    return (
        f"the query of the checkpoint at {checkpoint!r} has no standbys, so its keys cannot have copies. Their number "
        "is fixed in the checkpoint: start the query with a new one and standbys, as in detect(…, standbys=4)"
    )


class _ReportOfPattern(NamedTuple):
    """What the changes of one pattern have in common that are reported after a micro-batch."""

    progress: Progress
    pattern: str
    standbys: int
    budget: timedelta | None

    @property
    def seconds(self) -> float:
        """The budget; without one, the length of the micro-batch."""
        return (self.budget or self.progress.total).total_seconds()

    def of(self, key: Key, copies: Sequence[int], load: float, *, decided: bool) -> CopiesChange:
        return CopiesChange(
            query=self.progress.query,
            batch=self.progress.batch,
            pattern=self.pattern,
            key=key[1],
            copies=len(copies),
            wanted=wanted_copies(load, capacity=self.seconds),
            load=timedelta(seconds=load),
            decided=decided,
            standbys=self.standbys,
        )


def _standbys(progress: Progress, number: int, placement: Placement) -> list[int]:
    """The pattern's standbys, those in the least busy partitions first."""
    numbers = placement.numbers(number)[placement.shards :]
    partitions = murmur3(numbers) % progress.partitions
    busy: dict[int, float] = {}
    for pattern in progress.patterns.values():
        for shard in pattern.shards:
            if shard.partition is not None:
                busy[shard.partition] = busy.get(shard.partition, 0.0) + shard.useful.total_seconds()
    return in_order_of_load(dict(enumerate(partitions.tolist())), busy)
