"""What a worker process runs: it waits for jobs and tasks, and answers each."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from cepheid.errors import ConditionError, EventError, LimitExceeded, SkipError, in_pattern
from cepheid.events.order import Ordered
from cepheid.families import family_named
from cepheid.hosts.in_process.workers.division import Task
from cepheid.hosts.in_process.workers.messages import Asked, Done, Failed, Forget, Job
from cepheid.matchers.finite import OrderedMatcher
from cepheid.matchers.parts import OrderedPart


def main() -> None:
    """Answers what comes through the standard input, until it ends. What functions print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupted call ends its workers itself
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    job: _Job | None = None
    while True:
        try:
            message = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that has started this one
        except EOFError:
            return
        reply: object = None
        try:
            match message:
                case Job():
                    job = _Job(message)
                case Asked():
                    assert job is not None
                    reply = job.do(message)
                case Forget():
                    job = None
        except (ConditionError, EventError, LimitExceeded, SkipError) as error:
            reply = Failed(type(error).__name__, str(error))
        except Exception:  # noqa: BLE001 - whatever it is, the call must hear of it
            reply = Failed("", traceback.format_exc())
        pickle.dump(reply, replies)
        replies.flush()


class _Job:
    """The patterns of a call, ready to run."""

    def __init__(self, job: Job) -> None:
        family = family_named(job.kind)
        self._parts = family.parts(family.compile(pickle.loads(job.plans)))  # noqa: S301 - as above
        self._job = job

    def do(self, asked: Asked) -> Done:
        """Runs a task.

        Raises:
            ConditionError, LimitExceeded, SkipError: as a detector, with the pattern's name in the message.
        """
        part = self._parts[asked.task.part]
        with in_pattern(part.pattern or "", named=part.pattern is not None):
            return self._run(part, asked)

    def _run(self, part: OrderedPart, asked: Asked) -> Done:
        task = asked.task
        detector = part.detector() if task.starts is None else part.slice_detector(task.first)
        matcher = OrderedMatcher(detector, until=task.until)
        with _Rows(self._job.folder / asked.name, detector.schemas) as rows:
            row = task.first
            for ordered in self._job.events[task.part].read(task.first, task.end):
                rows.add(matcher.run([_marked(part, task, ordered, row)]))
                row += len(ordered.batch)
            rows.add(matcher.end())
        return Done(rows.paths, asdict(detector.found))


def _marked(part: OrderedPart, task: Task, events: Ordered, row: int) -> Ordered:
    """The events, with marks on those that may start. The first is at `row`."""
    if task.starts is None:
        return events
    rows = row + np.arange(len(events.batch))
    first, end = task.starts
    return Ordered(part.marked(events.batch, (rows >= first) & (rows < end)), events.key_start)


class _Rows:
    """Writes rows to files, one for each pattern that has some, as they are found: none stay in memory."""

    def __init__(self, path: Path, schemas: Sequence[pa.Schema]) -> None:
        self._path, self._schemas = path, schemas
        self._writers: list[Any] = [None] * len(schemas)
        self._open = ExitStack()
        self.paths: list[Path | None] = [None] * len(schemas)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def add(self, tables: Sequence[pa.Table]) -> None:
        for i, table in enumerate(tables):
            if not len(table):
                continue
            if self._writers[i] is None:
                self.paths[i] = self._path.with_name(f"{self._path.name}.{i}")
                self._writers[i] = self._open.enter_context(pa.ipc.new_stream(str(self.paths[i]), self._schemas[i]))
            self._writers[i].write_table(table)
