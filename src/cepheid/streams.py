"""See inside a streaming query: what is open in its checkpoint, and how it goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from cepheid.detect import request_of
from cepheid.errors import SchemaError
from cepheid.hosts.spark.stream.progress import Progress, progress_of
from cepheid.lang.stages.document import pattern_from_text
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.limits import Limits
from cepheid.requests.request import MOST_LISTED, checked_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery


def partial_matches(
    checkpoint: str | PathLike[str], pattern: Pattern | str | None = None, *, most: int = MOST_LISTED
) -> DataFrame:
    """The open partial matches of a streaming query of `detect`, read from its checkpoint with the active Spark
    session, behind the last micro-batch that was committed; the query may run on.

    Args:
        checkpoint: The query's checkpointLocation.
        pattern: Its name, where the query has several, in one tier or in several; the pattern itself, where it has
            conditions in Python, which no checkpoint keeps.
        most: Of each key, list no more than so many: those that started last. A few events may make very many.

    Returns:
        A row a partial match: pattern (the name), the key columns, stage (the last that took an event), match_start,
        deadline (NULL where none is set), and stages (a map from each stage's name to its events so far). Branches
        that have taken the same events, with the same deadline, are one row. Events that wait for the watermark are
        in none; matches that are found and wait are none any more.

    Raises:
        SnapshotError: there is no checkpoint of a query of `detect` there, one of another pattern, or one of several
            patterns of which none is named.
        SchemaError: an argument is wrong, the pattern itself is needed, as it has conditions in Python, a column of the
            key has the name of another column of the rows, no Spark session is active, or the pattern is one of
            occurrences or intervals, which has none.

    An action on the rows raises Spark's exceptions, with our message first, where the state is damaged.
    """
    from cepheid.hosts.spark.stream.checkpoint_reader import kept_in, open_in

    checked_most(most)
    if not isinstance(pattern, Pattern | str | None):
        raise SchemaError(f"pattern: a Pattern or the name of one is expected, got {pattern!r}")
    kept = kept_in(fspath(checkpoint), pattern.name if isinstance(pattern, Pattern) else pattern)
    if (kind := kept.asked.get("kind")) is not None:
        raise SchemaError(
            f"pattern: {kept.name!r} is one of {kind}, which has no stages and so no partial matches to list. How many "
            "are open is in progress(query, checkpoint)"
        )
    if not isinstance(pattern, Pattern):
        pattern = _kept_pattern(kept.asked["pattern"], kept.asked["functions"])
    arguments = dict(kept.asked["arguments"])
    zone = arguments.pop("time_zone")  # the session's may be an offset, which is no zone to ask for
    request = replace(request_of(pattern, limits=Limits(**kept.asked["limits"]), **arguments), time_zone=zone)
    return open_in(kept, request, most)


def _kept_pattern(document: dict[str, object], functions: list[str]) -> Pattern:
    if functions:
        raise SchemaError(
            f"pattern: {document['name']!r} has conditions in Python ({', '.join(functions)}), which no checkpoint "
            "keeps. Give the pattern: partial_matches(checkpoint, pattern)"
        )
    kept = pattern_from_text(json.dumps(document), source="the checkpoint's pattern")
    assert isinstance(kept, Pattern), "of others only the kind is kept"
    return kept


def progress(query: StreamingQuery, checkpoint: str | PathLike[str] | None = None) -> Progress | None:
    """How the query's last micro-batch went; None before there is one, or where the query looks for no pattern.

    With the query's `checkpoint`, the number of open partial matches is read from it; without, it is known in the
    query's first micro-batch only.

    Raises:
        SchemaError: the query is none.
    """
    if not hasattr(query, "recentProgress"):
        raise SchemaError(f"query: a StreamingQuery is expected, as start() gives it, got {query!r}")
    # A trigger without anything to do tells a progress, too.
    each = (progress_of(json.loads(one.json)) for one in reversed(query.recentProgress))
    told = next((one for one in each if one is not None), None)
    if told is None or checkpoint is None:
        return told
    from cepheid.hosts.spark.stream.listener import with_open

    return with_open(told, fspath(checkpoint))


def progress_listener(
    to: Callable[[Progress], object] | str | PathLike[str], checkpoint: str | PathLike[str] | None = None
) -> StreamingQueryListener:
    """A listener for `spark.streams.addListener`: it tells each micro-batch of the session's queries of `detect`.

    Args:
        to: What is called with each Progress; or a local file, which is replaced by the Prometheus text of all
            micro-batches since the query started, as the collector of text files of its node exporter reads it.
        checkpoint: Of the one query that is to be told. Where that goes on from there, its open partial matches are
            read once, and counted from then on; without a checkpoint they are known of queries that start anew.
    """
    from cepheid.hosts.spark.stream.listener import ProgressListener

    kept = None if checkpoint is None else fspath(checkpoint)
    return ProgressListener(to if callable(to) else Path(to), kept)
