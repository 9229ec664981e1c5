"""Streaming queries: the open partial matches in a checkpoint, progress, and what is done with the rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepheid.detect import is_spark
from cepheid.errors import SchemaError, warn
from cepheid.hosts.spark.stream.progress import Progress, progress_of
from cepheid.hosts.spark.stream.standing import Watch
from cepheid.hosts.spark.supervised.news import Refusal, Switch
from cepheid.lang.arguments import brief
from cepheid.lang.documents import pattern_from_text
from cepheid.lang.known_arguments import known_arguments, known_fields
from cepheid.lang.parameters import GivenValue
from cepheid.lang.stages.pattern import Pattern
from cepheid.plan.lifted import OutputName
from cepheid.plan.limits import Limits
from cepheid.plan.reserved import STAGE_POSITION, VERSION
from cepheid.requests.arguments import checked_lateness, checked_outputs
from cepheid.requests.request import MOST_LISTED, SHARDS, Nulls, checked_most

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from cepheid.hosts.durable.host import Old
    from cepheid.hosts.durable.routing.subscription import DeadLetter, Letter
    from cepheid.hosts.spark.rebalance.plan import Rebalancing
    from cepheid.hosts.spark.stream.copies.change import CopiesChange
    from cepheid.hosts.spark.supervised.supervisor import Supervisor


@contextmanager
def event_failures() -> Iterator[None]:
    """Wraps an action on what `detect` returns on Spark, or waiting for its query, in place of Spark's trace.

    Raises:
        ConditionError: a condition or a measure fails on an event, as in a division by zero. The message names it and
            its stage.
        EventError: another failure that events cause, such as one without a key.

    Other exceptions stay as they are.
    """
    from cepheid.hosts.spark.failures import event_failures as mapped

    with mapped():
        yield


@known_arguments()
def partial_matches(
    checkpoint: str | PathLike[str], pattern: Pattern | str | None = None, *, most: int = MOST_LISTED
) -> DataFrame:
    """The open partial matches of a streaming query of `detect` after the last committed micro-batch, read from its
    checkpoint with the active Spark session; the query may be running.

    Args:
        checkpoint: The query's checkpointLocation.
        pattern: The pattern's name, if the query has several patterns, in one tier or in several; "name@version" for a
            version in a supervised query, such as one that drains; the pattern itself, if it has conditions in
            Python, which a checkpoint does not store.
        most: The maximum number of partial matches to list per key: those that started last. A few events may make very
            many.

    Returns:
        One row per partial match: pattern (the name), the key columns, stage (the last that took an event),
        match_start, deadline (NULL if none is set), and stages (a map from each stage's name to its events so far).
        Branches that have taken the same events, with the same deadline, are one row. Events still waiting for the
        watermark are not part of any partial match. Complete matches that are being withheld are not listed.

    Raises:
        SnapshotError: there is no checkpoint of a query of `detect`, it has another pattern, or it has several patterns
            and none is named.
        SchemaError: an argument is wrong; the pattern itself is needed, as it has conditions in Python; a key column
            has the name of another column of the rows; no Spark session is active; or the pattern is a pattern of
            occurrences or intervals, which have no partial matches to list.

    If the state is damaged, an action on the rows raises Spark's exceptions, with our message first.
    """
    from cepheid.hosts.spark.stream.checkpoint_reader import (
        checkpointed_pattern,
        open_partial_matches,
        request_of_stored,
    )

    checked_most(most)
    if not isinstance(pattern, Pattern | str | None):
        raise SchemaError(f"pattern: a Pattern or the name of one is expected, got {brief(pattern)}")
    stored = checkpointed_pattern(fspath(checkpoint), pattern.name if isinstance(pattern, Pattern) else pattern)
    if (kind := stored.asked.get("kind")) is not None:
        raise SchemaError(
            f"pattern: {stored.name!r} is a pattern of {kind}, which has no stages and so no partial matches to list. "
            "progress(query, checkpoint) has the number that is open"
        )
    if not isinstance(pattern, Pattern):
        pattern = _stored_pattern(stored.asked["pattern"], stored.asked["functions"])
    return open_partial_matches(stored, request_of_stored([stored], [pattern]), most)


def _stored_pattern(document: dict[str, object], functions: list[str]) -> Pattern:
    if functions:
        raise SchemaError(
            f"pattern: {document['name']!r} has conditions in Python ({', '.join(functions)}), which a checkpoint does "
            "not store. Give the pattern: partial_matches(checkpoint, pattern)"
        )
    pattern = pattern_from_text(json.dumps(document), source="the checkpoint's pattern")
    assert isinstance(pattern, Pattern), "other patterns have a kind"
    return pattern


@known_arguments()
def progress(query: StreamingQuery, checkpoint: str | PathLike[str] | None = None) -> Progress | None:
    """The progress of the query's last micro-batch; None before there is one, or if the query has no pattern.

    With the query's `checkpoint`, the number of open partial matches is read from it; without one, it is known only in
    the query's first micro-batch. The keys that need more copies than there are standbys are known only with it.

    Raises:
        SchemaError: `query` is not a StreamingQuery.
    """
    if not hasattr(query, "recentProgress"):
        raise SchemaError(f"query: a StreamingQuery is expected, as start() gives it, got {brief(query)}")
    latest, watch = None, Watch()
    for reported in (json.loads(one.json) for one in query.recentProgress):
        watch.add(reported)
        latest = progress_of(reported) or latest  # None for a trigger that had nothing to do
    if latest is not None:
        latest = replace(latest, standing=watch.standing)
    if latest is None or checkpoint is None:
        return latest
    from cepheid.hosts.spark.stream.listener import with_open, with_short

    return with_short(with_open(latest, fspath(checkpoint)), fspath(checkpoint))


@known_arguments()
def progress_listener(
    to: Callable[[Progress], object] | str | PathLike[str], checkpoint: str | PathLike[str] | None = None
) -> StreamingQueryListener:
    """A listener for `spark.streams.addListener` that reports each micro-batch of the session's queries of `detect`.

    Args:
        to: A function that is called with each Progress; or a local file, which is replaced by the Prometheus text of
            all micro-batches since the query started, for the textfile collector of the node exporter.
        checkpoint: The checkpoint, if only one query is reported. If the query continues from it, the number of open
            partial matches is read once and updated from then on. Without a checkpoint the number is known only for new
            queries.
    """
    from cepheid.hosts.spark.stream.listener import ProgressListener

    path = None if checkpoint is None else fspath(checkpoint)
    return ProgressListener(to if callable(to) else Path(to), path)


@known_arguments()
def copy_hot_keys(
    checkpoint: str | PathLike[str],
    *,
    budget: timedelta | str | None = None,
    report: Callable[[CopiesChange], object] | None = None,
) -> StreamingQueryListener:
    """A listener for `spark.streams.addListener` that gives hot keys of a query copies in its standbys, and releases
    them when they cool. The query is one of `detect(…, standbys=…)`.

    Args:
        checkpoint: The query's checkpointLocation.
        budget: The time that a shard may take for a key in a micro-batch. A key gets one more copy while it takes more
            than 80 % of what its shards may take together, and loses one under 40 %. None: the interval of the query's
            trigger. With another trigger, such as availableNow, and with Spark Connect, which does not say, nothing is
            changed, and `report` gets advice, with the length of the last micro-batch as the budget.
        report: Called with a CopiesChange whenever a key gets or loses a copy, or should; and once when it needs more
            copies than there are standbys, which `progress(query, checkpoint)` has as long as that is so.

    Raises:
        SchemaError: `budget` is not a duration.
        SnapshotError: the checkpoint's query was started without standbys. A checkpoint that is still empty does not
            say: then there is a warning after the first micro-batch.
    """
    from cepheid.hosts.spark.stream.copies.listener import CopiesListener, check_standbys

    faults: list[str] = []
    allowed = None if budget is None else checked_lateness(budget, faults, "budget")
    if allowed == timedelta(0):
        faults.append("budget: a time above zero is expected")
    if faults:
        raise SchemaError("\n".join(faults))
    check_standbys(fspath(checkpoint))
    return CopiesListener(fspath(checkpoint), allowed, report)


_NEEDED = {"kind", "match_id", "match_start", "detected_at"}
_EITHER = {"event", STAGE_POSITION}
"""The columns of late events: in one column, or in rows of events."""


@known_arguments()
def split(rows: DataFrame, *outputs: OutputName) -> tuple[DataFrame, ...]:
    """The rows of each of these outputs, with only the columns of that output.

    Args:
        rows: The rows that `detect` returned on Spark with `outputs`, for several patterns, or for intervals on a
            stream; all rows, or those of a micro-batch in foreachBatch.
        outputs: "matches" (for intervals, insertions and retractions), "timeouts", "no_match", "inconsistent" or
            "late".

    Returns:
        A DataFrame for each of `outputs`, in their order. All have the same columns, but `cause` and `event`; late
        events have kind, pattern, match_id, the key columns, detected_at and event or, with rows of events, the event's
        columns.

    Raises:
        SchemaError: `rows` is not a Spark DataFrame or lacks the columns of several outputs, an output is unknown, or
            none is named.
    """
    faults: list[str] = []
    wanted = checked_outputs(outputs, faults)
    if not is_spark(rows) or not _NEEDED.issubset(rows.columns) or _EITHER.isdisjoint(rows.columns):
        faults.append(f"rows: a Spark DataFrame is expected that detect gave with outputs=…, got {brief(rows)}")
    if faults:
        raise SchemaError("\n".join(faults))
    from cepheid.hosts.spark.split import rows_of_output

    return tuple(rows_of_output(rows, output) for output in wanted)


@known_arguments()
def supervise(
    events: DataFrame,
    patterns: str | PathLike[str],
    write: Callable[[DataFrame], DataStreamWriter],
    *,
    checkpoint: str | PathLike[str],
    old: Old = "drain",
    parameters: Mapping[str, GivenValue] | None = None,
    report: Callable[[Switch | Refusal], object] | None = None,
    key: str | Sequence[str] | None = None,
    time: str | Sequence[str],
    sequence: str | Sequence[str] | None = None,
    columns: str | Sequence[str] | None = None,
    outputs: OutputName | Sequence[OutputName] = "matches",
    limits: Limits | None = None,
    time_zone: str | None = None,
    nulls: Nulls = "error",
    lateness: timedelta | str | None = None,
    shards: int = SHARDS,
    show_keys: bool = False,
) -> Supervisor:
    """Starts a query for the patterns in a folder, and returns its supervisor. While `Supervisor.run` runs, the query
    follows the folder: new files deploy patterns, changed files replace versions, and removed files retire patterns.

    Spark freezes the plan of a running query, so for each change the supervisor stops it after a micro-batch and starts
    it again on the same checkpoint. A new pattern takes the events from that micro-batch on. The state of patterns that
    stay is kept. Exactly-once sinks stay so.

    Args:
        events: A streaming DataFrame.
        patterns: The folder, on this machine. Files whose names end in .yaml, .yml or .json are pattern files; a YAML
            file may have several documents. Content counts once it is the same for a second.
        write: Is called with the rows of each query; returns their `writeStream`, with sink and trigger. The rows have
            the columns of several patterns, with `version` after `pattern`.
        checkpoint: The checkpointLocation. Called again with it, the query continues with the patterns that it had.
        old: What becomes of what is open of a version that is replaced, and of a pattern whose file is removed: "drain"
            lets it go on, but starts nothing more; "drop" forgets it.
        parameters: Values of parameters, for the patterns that use them.
        report: Is called with a Switch whenever the set of patterns has changed, and with a Refusal for files that are
            wrong, which change nothing. By default a Refusal is a warning.

    The other arguments are as in `detect`, for all patterns.

    Raises:
        PatternError, SchemaError: there is no former set of patterns, and the files in the folder are wrong; lists all
            problems. Also for wrong arguments.
        SnapshotError: the checkpoint belongs to a query without a supervisor, or is damaged.
    """
    faults: list[str] = []
    if not is_spark(events) or not events.isStreaming:
        faults.append(f"events: a streaming DataFrame is expected, got {brief(events)}")
    if old not in ("drain", "drop"):
        faults.append(f"old: 'drain' or 'drop' is expected, got {brief(old)}")
    faults += [
        f"key: {name!r} is the name of a column that the output has itself; rename the key's"
        for name in ([key] if isinstance(key, str) else key or [])
        if str(name).lower() == VERSION
    ]
    if faults:
        raise SchemaError("\n".join(faults))
    from cepheid.hosts.spark.supervised.supervised import Supervised
    from cepheid.hosts.spark.supervised.supervisor import Supervisor

    def warned(news: Switch | Refusal) -> None:
        if isinstance(news, Refusal):
            warn(str(news))

    arguments: dict[str, Any] = {"key": key, "time": time, "sequence": sequence, "columns": columns, "outputs": outputs}
    arguments |= {"limits": limits, "time_zone": time_zone, "nulls": nulls, "lateness": lateness, "shards": shards}
    arguments["show_keys"] = show_keys
    given = Supervised(
        events=events,
        folder=Path(patterns),
        parameters=dict(parameters or {}),
        write=write,
        checkpoint=fspath(checkpoint),
        old=old,
        arguments=arguments,
        report=report or warned,
    )
    return Supervisor(given)


@known_arguments()
def rebalance(
    checkpoint: str | PathLike[str],
    *,
    shards: int | None = None,
    partitions: int | None = None,
    patterns: Pattern | Sequence[Pattern] | None = None,
    dry_run: bool = False,
) -> Rebalancing:
    """Gives a stopped query other numbers of shards and partitions. Call `detect` with the new number of shards then:
    the query continues from its checkpoint, and its rows and their ids are as they would have been.

    The checkpoint is written anew beside the former one, and then takes its place. The former one is kept.

    Args:
        checkpoint: The query's checkpointLocation, in a folder of this machine. The query must have been stopped after
            a micro-batch was finished.
        shards: The number of parts into which keys are divided; None: as before.
        partitions: The number of Spark's partitions, which are tasks and state stores; None: as before.
        patterns: The patterns that have conditions in Python, which a checkpoint does not store.
        dry_run: Only says what would be done.

    Returns:
        What was done, or would be. As text, it is a message for people.

    Raises:
        SchemaError: an argument is wrong, or nothing would change.
        SnapshotError: the query is running, or is not one of `detect`; the checkpoint has a newer format; or its state
            cannot be divided. Nothing has changed.
    """
    from cepheid.hosts.spark.rebalance.plan import checked_patterns
    from cepheid.hosts.spark.rebalance.rebalance import rebalanced

    given = checked_patterns(patterns)
    return rebalanced(fspath(checkpoint), shards, partitions, given, dry_run=dry_run)


@known_fields
@dataclass(frozen=True)
class Subscriber:
    """Who gets matches of a stream. The fields mean what the arguments of `Host.subscribe` mean."""

    name: str
    to: Callable[[Letter], Any] | str
    """A function, "module:function", "https://host/path", "kafka://host:port/topic", or the store and the input of a
    durable host that runs, as in "sqlite:///alerts.db#pairs".
    """
    pattern: str | Sequence[str] = "*"
    where: str | None = None
    """Spark's SQL over the columns of the rows."""
    secret: str | None = None
    timeout: timedelta | str = "10 seconds"
    attempts: int = 8
    pause: timedelta | str = "1 second"


@known_arguments()
def deliver(
    rows: DataFrame,
    *subscribers: Subscriber,
    allow: Iterable[str] = (),
    kafka_options: Mapping[str, str] | None = None,
    dead: Callable[[str, DeadLetter], object] | None = None,
) -> Callable[[DataFrame, int], None]:
    """The function for `foreachBatch` that sends the rows of each micro-batch to subscribers, from the driver.

    Each subscriber gets its rows in the order of their detection within a micro-batch, at least once: when a query is
    restarted, Spark repeats its last micro-batch, with the same ids and numbers. Another host gets each exactly once.

    Args:
        rows: What `detect` gave for the stream.
        allow: What may be reached, as in `open_host`.
        dead: Called with the name of the subscriber and each letter that was given up. Without it such letters end the
            query, after everything else was sent; its restart repeats the micro-batch.

    Raises:
        SchemaError, PatternError: an argument is wrong, or a condition does not fit the rows; with all problems.
    """
    faults: list[str] = []
    if not is_spark(rows) or "match_id" not in rows.columns:
        raise SchemaError(f"rows: a Spark DataFrame is expected that detect gave, got {brief(rows)}")
    from cepheid.hosts.spark.stream.delivery import checked_subscribers, delivering

    given = [dict(one.__dict__) for one in subscribers]
    names = [one.name for one in subscribers]
    faults += [f"two subscribers are named {name!r}" for name in dict.fromkeys(names) if names.count(name) > 1]
    return delivering(checked_subscribers(rows, given, allow, kafka_options or {}, faults), dead)
