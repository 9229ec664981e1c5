"""What a supervisor runs: events, a folder of patterns, a sink, and the arguments of `detect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from cepheid.hosts.spark.stream.detect import detect_on_stream
from cepheid.hosts.spark.supervised.news import Report
from cepheid.hosts.spark.supervised.pattern_set import PatternSet
from cepheid.lang.parameters import GivenValue
from cepheid.plan.pattern_request import PatternRequest
from cepheid.requests.request_of import request_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from cepheid.hosts.durable.host import Old


@dataclass(frozen=True)
class Supervised:
    """What a supervisor runs."""

    events: DataFrame
    folder: Path
    parameters: Mapping[str, GivenValue]
    write: Callable[[DataFrame], DataStreamWriter]
    """The writer of the rows, without the checkpoint."""
    checkpoint: str
    old: Old
    arguments: Mapping[str, Any]
    """Of `detect`: all but the events and the patterns."""
    report: Report
    even: bool = True
    """Whether shards are numbered for even placement, as in `Places`."""

    def rows(self, given: PatternSet) -> DataFrame:
        """The rows of the set's patterns.

        Raises:
            PatternError, SchemaError, LimitExceeded: as `detect`.
        """
        running = {name: one.pattern for name, one in given.running.items()}
        request = request_of(running, endless=True, **self.arguments)
        draining = (PatternRequest(request.family.endless(one.pattern)) for one in given.draining)
        every = replace(request, patterns=(*request.patterns, *draining))
        return detect_on_stream(self.events, every, given.places._replace(even=self.even))

    def start(self, rows: DataFrame, **trigger: Any) -> StreamingQuery:
        """Starts a query. `trigger` replaces the writer's own."""
        writer = self.write(rows).option("checkpointLocation", self.checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()
