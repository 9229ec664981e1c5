"""What a worker process runs: it waits for jobs and tasks, and answers each."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from cepheid.errors import LimitExceeded
from cepheid.families import family_named
from cepheid.hosts.in_process.workers.messages import Failed, Forget, Job, NamedTask, Written
from cepheid.hosts.in_process.workers.task import EXPECTED, do_task
from cepheid.hosts.worker_memory import bound_memory, exceeded


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
                    bound_memory(message.memory)
                    job = _Job(message)
                case NamedTask():
                    assert job is not None
                    reply = job.do(message)
                case Forget():
                    bound_memory(None)
                    job = None
        except EXPECTED as error:
            reply = Failed(type(error).__name__, str(error))
        except MemoryError:
            reply = Failed(LimitExceeded.__name__, exceeded(job.memory if job else None))
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
        self.memory = job.memory

    def do(self, asked: NamedTask) -> Written:
        """Does a task.

        Raises:
            ConditionError, LimitExceeded, SkipError: as `do_task`.
        """
        part = asked.task.part
        with _Files(self._job.folder / asked.name) as files:
            counted = do_task(self._parts[part], asked.task, self._job.events[part], files.add)
        return Written(files.paths, counted)


class _Files:
    """Writes rows to files, one for each pattern that has some, as they are found: none stay in memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writers: dict[int, Any] = {}
        self._open = ExitStack()
        self.paths: list[Path | None] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def add(self, tables: Sequence[pa.Table]) -> None:
        self.paths = self.paths or [None] * len(tables)
        for i, table in enumerate(tables):
            if not len(table):
                continue
            if i not in self._writers:
                self.paths[i] = self._path.with_name(f"{self._path.name}.{i}")
                self._writers[i] = self._open.enter_context(pa.ipc.new_stream(str(self.paths[i]), table.schema))
            self._writers[i].write_table(table)
