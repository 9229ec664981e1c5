"""What a call and its workers tell each other. To processes it travels pickled, through standard input and output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from cepheid.hosts.in_process.workers.division import Rows, Task
from cepheid.hosts.in_process.workers.spooled_events import EventsInFile


class Job(NamedTuple):
    """What all tasks of a call have in common that processes do."""

    kind: str
    """The kind of the patterns."""
    plans: bytes
    """The plans, pickled."""
    events: Sequence[EventsInFile]
    """Those of each part."""
    folder: Path
    """Where files of rows are written."""
    memory: int | None
    """The bytes that the worker may allocate; None: as many as there are."""


class NamedTask(NamedTuple):
    """A task for a process, which writes its rows to files whose names begin with `name`."""

    task: Task
    name: str


class Open(NamedTuple):
    """What is open at the begin and at the end of a slice: the rows that started it, ascending."""

    before: Rows
    after: Rows


class Counted(NamedTuple):
    """What comes of a task besides rows."""

    counts: Mapping[str, int]
    open: Open | None = None
    """Which starts are open, if the slice hands them over."""


class Written(NamedTuple):
    """A task's result, as a process gives it."""

    files: Sequence[Path | None]
    """For each pattern of the part, the file with its rows; None if the pattern has no rows."""
    counted: Counted


class Done(NamedTuple):
    """A task's result."""

    rows: Sequence[Sequence[pa.Table]]
    """For each pattern of the part, its rows. There may be fewer patterns if the last ones have no rows."""
    counts: Mapping[str, int]
    open: Open | None = None


class Failed(NamedTuple):
    """Why a job or a task failed."""

    error: str
    """The name of the class in `cepheid.errors`; empty for any other exception."""
    message: str


class Forget(NamedTuple):
    """The job is over."""
