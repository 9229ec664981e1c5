"""What a call and its worker processes send each other, pickled, through the workers' standard input and output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cepheid.hosts.in_process.workers.division import Rows, Task
from cepheid.hosts.in_process.workers.spool import Spooled


class Job(NamedTuple):
    """What all tasks of a call have in common."""

    kind: str
    """The kind of the patterns."""
    plans: bytes
    """The plans, pickled."""
    events: Sequence[Spooled]
    """Those of each part."""
    folder: Path
    """Where files of rows are written."""
    memory: int | None
    """The bytes that the worker may allocate; None: as many as there are."""


class NamedTask(NamedTuple):
    """A task; its rows are written to files whose names begin with `name`."""

    task: Task
    name: str


class Open(NamedTuple):
    """What is open at the begin and at the end of a slice: the rows that started it, ascending."""

    before: Rows
    after: Rows


class Done(NamedTuple):
    """A task's result."""

    rows: Sequence[Path | None]
    """For each pattern of the part, the file with its rows; None if the pattern has no rows."""
    counts: Mapping[str, int]
    open: Open | None = None
    """Which starts are open, if the slice hands them over."""


class Failed(NamedTuple):
    """Why a job or a task failed."""

    error: str
    """The name of the class in `cepheid.errors`; empty for any other exception."""
    message: str


class Forget(NamedTuple):
    """The job is over."""
