"""Spark's listener that gives hot keys of a stream copies and releases them."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.allocation.thresholds import wanted_copies
from cepheid.hosts.spark.stream.copies.assignment import Assignment, Decision
from cepheid.hosts.spark.stream.copies.change import CopiesChange
from cepheid.hosts.spark.stream.copies.deciding import Figures, Loads, in_order_of_load, next_change
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.placement import Placement, murmur3
from cepheid.hosts.spark.stream.progress import Progress, progress_of
from cepheid.hosts.spark.stream.stored_state import checkpointed_patterns, query_of


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

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = progress_of(json.loads(event.progress.json))
        if progress is None or not self._is_meant(progress):
            return
        placement = self._learned()
        if placement is None:
            return
        assignment = self._folder.of_batch(progress.batch)
        for name, number in self._numbers.items():
            self._learn(name, number, progress, assignment, placement)
        if assignment.decisions == self._folder.decisions:  # what was decided before has its effect now
            self._decide(progress, assignment, placement)

    def _is_meant(self, progress: Progress) -> bool:
        try:
            return query_of(self._checkpoint) == progress.query
        except AnalysisException:  # the checkpoint's query has not started yet
            return False

    def _learned(self) -> Placement | None:
        """How the shards of the patterns with standbys are numbered; None as long as nothing is stored."""
        if self._placement is None:
            for name, stored in checkpointed_patterns(self._checkpoint).items():
                if stored.placement.standbys:
                    self._numbers[name], self._placement = stored.number, stored.placement
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

    def _decide(self, progress: Progress, assignment: Assignment, placement: Placement) -> None:
        """One change of the pattern whose key has the highest load."""
        budget = self._budget
        found = []
        for name, number in self._numbers.items():
            standbys = _standbys(progress, number, placement)
            copies, loads = assignment.copies(number), self._loads.get(name, Loads()).keys
            seconds = (budget or progress.total).total_seconds()
            change = next_change(loads, copies, standbys, budget=seconds)
            if change is not None:
                found.append((change.load, name, number, change, wanted_copies(change.load, capacity=seconds)))
        if not found:
            return
        load, name, number, change, wanted = max(found)
        shard, digest = change.key
        if budget is not None:
            self._folder.decide(Decision(number, shard, digest, change.copies))
        if self._report is not None:
            copies_now = change.copies if budget is not None else assignment.copies(number).get(change.key, ())
            seconds_ = timedelta(seconds=load)
            self._report(
                CopiesChange(
                    progress.query, progress.batch, name, digest, len(copies_now), wanted, seconds_, budget is not None
                )
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
