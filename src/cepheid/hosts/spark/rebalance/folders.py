"""The folders of a checkpoint that is rewritten: a copy beside it, which takes its place when it is whole.

The batch numbers and the id of the query stay the same, as sinks such as files know which micro-batches they have, and
skip these. So the copy has Spark's logs, and only the state in it is new: it is that after the last committed
micro-batch.

First of all a micro-batch without events is planned, in the checkpoint itself. Spark plans each micro-batch once, so a
query that still runs fails when it is about to begin that one, and cannot write to a state that it does not know. The
next query runs it as its first. If the rewriting ends before the copy has taken its place, nothing else has changed.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from cepheid.errors import SnapshotError
from cepheid.matchers.snapshot import fitting

PARTITIONS = "spark.sql.shuffle.partitions"
_MARK = "cepheid.rebalance"
"""A key in the settings of a planned micro-batch, which Spark does not read: BEGUN or DONE."""
BEGUN, DONE = "begun", "done"
_STATE = "state"
_OF_STORES = ("_metadata", "_stateSchema")
_EXCHANGE, _HERE = 2, -100
"""Linux: RENAME_EXCHANGE and AT_FDCWD."""


class Batch(NamedTuple):
    """A micro-batch in the log of offsets."""

    number: int
    version: str
    metadata: dict[str, Any]
    offsets: tuple[str, ...]

    @property
    def partitions(self) -> int:
        """The number of partitions of its state."""
        return int(self.metadata["conf"][PARTITIONS])

    @property
    def mark(self) -> str | None:
        """How far a rebalancing is that has planned it; None: a query has planned it."""
        mark: str | None = self.metadata["conf"].get(_MARK)
        return mark

    def with_settings(self, **settings: str) -> Batch:
        return self._replace(metadata=self.metadata | {"conf": self.metadata["conf"] | settings})

    def marked(self, mark: str) -> Batch:
        return self.with_settings(**{_MARK: mark})

    @property
    def text(self) -> str:
        """As Spark writes it."""
        return "\n".join([self.version, json.dumps(self.metadata, separators=(",", ":")), *self.offsets])


class Folder:
    """The folder of a checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def copy(self) -> Path:
        """The copy while it is written."""
        return self.path.with_name(f"{self.path.name}.rebalancing")

    def former(self, batch: int) -> Path:
        """Where the folder as it was after the micro-batch is kept."""
        return self.path.with_name(f"{self.path.name}.before-{batch + 1}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until no other process rebalances a checkpoint in the same folder, as it would remove the other's copy.
        The system ends the lock with the process.
        """
        with ExitStack() as stack:
            with suppress(OSError):  # there is no such folder, or its file system has no locks
                parent = os.open(self.path.parent, os.O_RDONLY)
                stack.callback(os.close, parent)
                fcntl.flock(parent, fcntl.LOCK_EX)
            yield

    def check_in_place(self) -> None:
        """
        Raises:
            SnapshotError: the machine stopped between two renames, so there is no checkpoint until `finish`.
        """
        if self.copy.is_dir() and not self.path.exists():
            raise SnapshotError(
                f"the checkpoint at {str(self.path)!r} is still at {str(self.copy)!r}: an earlier rebalancing was "
                "stopped before its last step. Rebalance it without the dry run, which takes this step first"
            )

    def finish(self) -> bool:
        """Takes the steps that are missing if the machine stopped between two renames. If it stopped before them,
        removes what is left of the copy. Returns whether the checkpoint was not in its place.
        """
        if not self.copy.is_dir():
            return False
        if not self.path.exists():
            self.copy.rename(self.path)
            return True
        if self._is_exchanged():
            self._keep_former(self.copy, Folder(self.copy).planned - 1)
        else:
            shutil.rmtree(self.copy)
        return False

    def _is_exchanged(self) -> bool:
        """Whether the copy has got the place of the checkpoint, and is itself the former one. Only what is whole is
        marked as done.
        """
        number = Folder(self.copy).planned
        return (self.path / "offsets" / str(number)).is_file() and self.batch(number).mark == DONE

    def _keep_former(self, folder: Path, batch: int) -> Path:
        """Gives the former checkpoint its name; the one of an earlier rebalancing after the same micro-batch goes."""
        former = self.former(batch)
        if former.exists():
            shutil.rmtree(former)
        return folder.rename(former)

    @property
    def query(self) -> str:
        """The id of the query; empty if it has never started."""
        file = self.path / "metadata"
        return str(json.loads(file.read_text())["id"]) if file.is_file() else ""

    @property
    def planned(self) -> int:
        """The number of the last micro-batch that was begun; -1 before the first."""
        return self._last("offsets")

    @property
    def committed(self) -> int:
        """The number of the last micro-batch that was finished; -1 before the first."""
        return self._last("commits")

    def batch(self, number: int) -> Batch:
        """
        Raises:
            SnapshotError: it has another form than Spark's offsets in the first version.
        """
        with fitting(f"the checkpoint's micro-batch {number}"):
            version, metadata, *offsets = (self.path / "offsets" / str(number)).read_text().splitlines()
            batch = Batch(number, version, json.loads(metadata), tuple(offsets))
            _ = batch.partitions
            return batch

    def commit(self, number: int) -> dict[str, Any]:
        """What Spark has written when it finished the micro-batch."""
        with fitting(f"the checkpoint's commit {number}"):
            found: dict[str, Any] = json.loads((self.path / "commits" / str(number)).read_text().splitlines()[1])
            return found

    def plan_nothing(self, last: Batch) -> Batch:
        """Plans the micro-batch after the last committed one, without events. If it was planned so before, returns it.

        Raises:
            SnapshotError: a query has planned it meanwhile.
        """
        number = last.number + 1
        following = self.commit(last.number)["nextBatchWatermarkMs"]
        planned = last._replace(number=number, metadata=last.metadata | {"batchWatermarkMs": following}).marked(BEGUN)
        try:
            _write_new(self.path / "offsets" / str(number), planned.text)
        except FileExistsError:
            planned = self.batch(number)
            if planned.mark is None:
                raise SnapshotError(in_use(str(self.path), number)) from None
        return planned

    def check_committed(self, batch: int) -> None:
        """
        Raises:
            SnapshotError: a query has finished another micro-batch since.
        """
        if self.committed != batch:
            raise SnapshotError(in_use(str(self.path), self.committed))

    def copy_all_but_state(self, last: Batch, planned: Batch, partitions: int) -> None:
        """Writes the copy, whose state still lacks all partitions."""
        shutil.copytree(self.path, self.copy, ignore=_left_out(self.path))
        for batch in (last, planned.marked(DONE)):
            changed = batch.with_settings(**{PARTITIONS: str(partitions)})
            (self.copy / "offsets" / str(batch.number)).write_text(changed.text)
        for file in self.copy.glob(f"{_STATE}/*/_metadata/v2/*"):
            _set_partitions(file, partitions)

    def take_state(self, written: Path, operator: int, batch: int) -> None:
        """Moves the state of a query's first micro-batch into the copy, as that of the operator after `batch`."""
        for partition in sorted(path for path in (written / _STATE / "0").iterdir() if path.name.isdigit()):
            target = self.copy / _STATE / str(operator) / partition.name
            target.mkdir()
            for path in partition.iterdir():
                if path.name == "1.zip":
                    path.rename(target / f"{batch + 1}.zip")
                elif path.name == "SSTs":
                    path.rename(target / path.name)

    def swap(self, batch: int) -> Path:
        """Gives the copy the place of the checkpoint, at once where the system can exchange two folders. Returns where
        the former one is now.
        """
        if _exchanged(self.path, self.copy):
            return self._keep_former(self.copy, batch)
        former = self._keep_former(self.path, batch)
        self.copy.rename(self.path)
        return former

    def _last(self, log: str) -> int:
        folder = self.path / log
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return max((int(name) for name in names if name.isdigit()), default=-1)


def in_use(checkpoint: str, batch: int) -> str:
    """The message for a micro-batch that is not finished."""
    return (
        f"the query of the checkpoint at {checkpoint!r} runs, or was stopped within a micro-batch: {batch} is begun "
        "and not finished. Let the query finish it, and stop it before the next one"
    )


def _left_out(root: Path) -> Any:
    """What is not copied: the partitions of the state, and checksums of files that may change."""

    def left_out(folder: str, names: list[str]) -> list[str]:
        path = Path(folder).relative_to(root)
        in_operator = len(path.parts) == 2 and path.parts[0] == _STATE
        partitions = [name for name in names if name not in _OF_STORES] if in_operator else []
        return [*partitions, *(name for name in names if name.startswith(".") and name.endswith(".crc"))]

    return left_out


def _set_partitions(file: Path, partitions: int) -> None:
    with fitting("the checkpoint's metadata of its state"):
        version, metadata = file.read_text().split("\n", 1)
        known = json.loads(metadata)
        for store in known["stateStoreInfo"]:
            store["numPartitions"] = partitions
    file.write_text(f"{version}\n{json.dumps(known, separators=(',', ':'))}")


def _write_new(path: Path, text: str) -> None:
    """Writes a file that must not exist, whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    unfinished.write_text(text)
    try:
        os.link(unfinished, path)  # unlike a rename it replaces nothing
    finally:
        unfinished.unlink()


def _exchanged(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step; false if this system, or this file system, cannot do that."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)
    return done == 0
