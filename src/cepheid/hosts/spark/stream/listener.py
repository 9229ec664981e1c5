"""Spark's listener of streaming queries, which reports the progress of those that look for patterns."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql.streaming.listener import StreamingQueryListener

from cepheid.hosts.prometheus import write
from cepheid.hosts.spark.stream.checkpoint_reader import open_by_shard
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.progress import Progress, progress_of, prometheus_text
from cepheid.hosts.spark.stream.standing import Watch
from cepheid.hosts.spark.stream.stored_state import query_of


class ProgressListener(StreamingQueryListener):
    """Calls `report` with the progress of each micro-batch, or writes it to a file. With a checkpoint, it does so only
    for that checkpoint's query.
    """

    def __init__(self, report: Callable[[Progress], object] | Path, checkpoint: str | None) -> None:
        self._report = report
        self._checkpoint = checkpoint
        self._so_far: dict[str, Progress] = {}
        """The sums of each query, by its id."""
        self._watches = defaultdict[str, Watch](Watch)
        """Those of the queries' watermarks, by the query's id."""

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        reported = json.loads(event.progress.json)
        watch = self._watches[reported["id"]]
        watch.add(reported)
        progress = progress_of(reported)
        if progress is None or not self._is_meant(progress):
            return
        progress = replace(progress, standing=watch.standing)
        if self._checkpoint is not None:
            progress = with_short(progress, self._checkpoint)
        earlier = self._so_far.get(progress.query)
        if earlier is None and progress.batch > 0 and self._checkpoint is not None:
            progress = with_open(progress, self._checkpoint)
        so_far = progress if earlier is None else progress.after(earlier)
        self._so_far[progress.query] = so_far
        if isinstance(self._report, Path):
            write(self._report, prometheus_text(self._so_far.values()))
        else:
            self._report(progress.with_open_of(so_far))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Only the file changes: a function is called for micro-batches."""
        query = str(event.id)
        so_far = self._so_far.get(query)
        if so_far is None or not isinstance(self._report, Path):
            return
        watch = self._watches[query]
        watch.idle(event.timestamp)
        self._so_far[query] = replace(so_far, standing=watch.standing)
        write(self._report, prometheus_text(self._so_far.values()))

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """If the query later continues from its checkpoint, the sums start from 0, as Prometheus' counters may."""
        self._so_far.pop(str(event.id), None)
        self._watches.pop(str(event.id), None)

    def _is_meant(self, progress: Progress) -> bool:
        if self._checkpoint is None or progress.query in self._so_far:
            return True
        try:
            return query_of(self._checkpoint) == progress.query
        except AnalysisException:  # the checkpoint's query has not started yet
            return False


def with_open(progress: Progress, checkpoint: str) -> Progress:
    """The progress with the number of open partial matches, read from the query's checkpoint."""
    known = open_by_shard(checkpoint, progress.batch)
    each = ((name, it, known.get(name, {})) for name, it in progress.patterns.items())
    patterns = {name: it if open_ is None else it.with_open(open_) for name, it, open_ in each}
    return replace(progress, patterns=patterns)


def with_short(progress: Progress, checkpoint: str) -> Progress:
    """The progress with the keys that need more copies than there are standbys, which are stored beside the query's
    checkpoint; None if they are not known.
    """
    return replace(progress, short=CopiesFolder(checkpoint).short(progress.batch))
