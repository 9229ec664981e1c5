"""Runs the query of `cepheid stream` and shows its progress, until it ends or is stopped."""

from __future__ import annotations

import logging
import math
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everyone imports it

from cepheid.cli.failure import Unavailable
from cepheid.cli.pattern_file import PatternFile
from cepheid.cli.stream_ends import End, written_to
from cepheid.cli.stream_view import NEWEST, View
from cepheid.detect import detect
from cepheid.hosts.spark.failures import event_failures, failure_message
from cepheid.lang.duration import parse_duration
from cepheid.streams import copy_hot_keys, supervise

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter
    from rich.console import Console

    from cepheid.cli.host.options import How
    from cepheid.hosts.spark.supervised.news import Refusal, Switch
    from cepheid.lang.parameters import ParameterValue


@dataclass(frozen=True)
class Ends:
    """The events, and where their matches go."""

    events: DataFrame
    sink: End
    checkpoint: Path | None
    once: bool
    every: str | None = None
    """The least time between the starts of two micro-batches."""

    def writer(self, rows: DataFrame, show: Callable[[DataFrame], None], *, newest: bool) -> DataStreamWriter:
        """The writer of the rows, with its trigger. With `newest`, the view gets the newest row of a micro-batch."""
        if newest:
            rows = rows.observe(NEWEST, F.max_by(F.to_json(F.struct("*")), "detected_at").alias("row"))
        writer = written_to(rows, self.sink, show)
        if self.once:
            return writer.trigger(availableNow=True)
        return writer if self.every is None else writer.trigger(processingTime=_interval(self.every))


def _interval(length: str) -> str:
    """The length of time as Spark's triggers take it."""
    return f"{math.ceil(parse_duration(length) / timedelta(milliseconds=1))} milliseconds"


class Running(Protocol):
    """A query that runs. A Supervisor is one."""

    @property
    def query(self) -> StreamingQuery:
        """The query that runs now."""

    def look(self) -> None:
        """Makes the changes that are due."""

    def stop(self) -> None: ...


Write: TypeAlias = "Callable[[DataFrame], DataStreamWriter]"
Begin: TypeAlias = Callable[[Ends, Write, View], Running]
"""Starts a query that writes its rows with `Write`."""

Listening: TypeAlias = "Callable[[Ends, View], StreamingQueryListener]"
"""Makes the listener that hears of the query's micro-batches."""


class _Unchanged:
    """A query whose pattern stays the same."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query

    def look(self) -> None: ...

    def stop(self) -> None:
        self.query.stop()


def for_pattern(opened: PatternFile, arguments: Mapping[str, Any]) -> Begin:
    """Looks for one pattern; `arguments` are those of `detect`."""

    def begin(ends: Ends, write: Write, _: View) -> Running:
        with opened.problems_located():
            rows = detect(ends.events, opened.pattern, checkpoint=ends.checkpoint, **arguments)
        writer = write(rows)
        if ends.checkpoint is not None:
            writer = writer.option("checkpointLocation", str(ends.checkpoint))
        return _Unchanged(writer.start())

    return begin


_OF_ONE_PATTERN = ("measures", "standbys", "event_id", "open_for")
"""The arguments that patterns in a folder do not have; they are refused if they are given."""


def for_folder(folder: Path, parameters: Mapping[str, ParameterValue], old: How, arguments: Mapping[str, Any]) -> Begin:
    """Looks for the patterns in a folder, which may change; `arguments` are those of `detect`."""
    given = {name: value for name, value in arguments.items() if name not in _OF_ONE_PATTERN}
    given["outputs"] = given["outputs"] or "matches"

    def begin(ends: Ends, write: Write, view: View) -> Running:
        assert ends.checkpoint is not None

        def report(news: Switch | Refusal) -> None:
            if (former := getattr(news, "former", None)) is not None:
                view.follow(former)
            view.console.print(str(news), highlight=False, soft_wrap=True, markup=False)

        return supervise(
            ends.events,
            folder,
            write,
            checkpoint=ends.checkpoint,
            old=old,
            parameters=parameters,
            report=report,
            **given,
        )

    return begin


def copying(budget: str | None) -> Listening:
    """Gives hot keys copies, or only advice if there is no budget; each change is a line of the view."""

    def listener(ends: Ends, view: View) -> StreamingQueryListener:
        assert ends.checkpoint is not None

        def report(change: object) -> None:
            view.console.print(str(change), highlight=False, soft_wrap=True, markup=False)

        return copy_hot_keys(ends.checkpoint, budget=budget, report=report)

    return listener


def follow(begin: Begin, name: str, ends: Ends, errors: Console, listening: Listening | None = None) -> None:
    """Runs the query until it ends or is stopped; the view calls it `name`."""
    view, lines, stopped = View(name, errors, ends.checkpoint), _Lines(), Event()
    reason: str | None = None
    _on_signals(stopped)
    try:
        with view.shown(), _ending_with_spark(), _heard(listening, ends, view):
            running = begin(ends, lambda rows: ends.writer(rows, lines.show, newest=errors.is_terminal), view)
            _wait(running, view, lambda: stopped.is_set() or lines.closed)
    except Unavailable as error:
        reason = str(error)
    except (Py4JError, ConnectionError) as error:
        if not stopped.is_set() and not isinstance(error, Py4JNetworkError | ConnectionError):
            raise
        reason = _told_by_java(error)
    if lines.closed:
        raise BrokenPipeError
    if reason is not None and not stopped.is_set():
        raise Unavailable(reason)
    if reason is not None:
        again = "what this micro-batch did is done again when the command is started again"
        errors.print(f"while stopping: {reason}; {again}", highlight=False, soft_wrap=True, markup=False)
    errors.print(view.summary(), highlight=False)


@contextmanager
def _ending_with_spark() -> Iterator[None]:
    """Raises what the events cause as `event_failures` does, and why else Spark ends the stream as Unavailable. If Java
    has ended, too, and cannot be asked why, its Py4JError or ConnectionError is raised.
    """
    try:
        with event_failures():
            yield
    except PySparkException as error:
        raise Unavailable(f"Spark ended the stream: {failure_message(error)}") from error


def _told_by_java(error: Py4JError | ConnectionError) -> str:
    """What Spark's Java process says, unless it cannot be asked any more."""
    if not isinstance(error, Py4JNetworkError | ConnectionError):
        with suppress(Py4JError, ConnectionError):
            return f"Spark ended the stream: {' '.join(str(error).splitlines()[:2])}"
    return "Spark's Java process has ended, and with it the stream"


@contextmanager
def _heard(listening: Listening | None, ends: Ends, view: View) -> Iterator[None]:
    """Within the block the listener, if there is one, hears of the session's queries."""
    if listening is None:
        yield
        return
    listener, streams = listening(ends, view), ends.events.sparkSession.streams
    streams.addListener(listener)
    try:
        yield
    finally:
        streams.removeListener(listener)


class _Lines:
    """Writes rows to standard output, until its reader closes it."""

    def __init__(self) -> None:
        self.closed = False

    def show(self, rows: DataFrame) -> None:
        from cepheid.cli.rows import write_json_lines

        try:
            write_json_lines(rows.toArrow(), sys.stdout)
            sys.stdout.flush()
        except BrokenPipeError:
            self.closed = True
            raise  # so that Spark does not commit a micro-batch whose rows were not read


def _on_signals(stopped: Event) -> None:
    """Makes the first Ctrl-C or SIGTERM set the event, and the second one end the process. PySpark's own handler would
    cancel the query's jobs, and the query would fail. A SIGTERM to all processes of the command ends Spark's, too, so
    that the query fails; its last micro-batch is repeated when the command is started again.
    """

    def stop(number: int, _: object) -> None:
        stopped.set()
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)  # it would log that it has lost Spark's process
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def _wait(running: Running, view: View, is_stopped: Callable[[], bool]) -> None:
    while not running.query.awaitTermination(1) and not is_stopped():
        view.follow(running.query)
        running.look()
    running.stop()
    view.follow(running.query)
