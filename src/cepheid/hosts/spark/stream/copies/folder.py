"""The folder beside a checkpoint's logs that says which copies there are. Its files are only added, never changed,
except `short.json`.

`decisions` has what the driver has decided, numbered. `batches` has the assignment of each micro-batch. The first task
of a micro-batch writes it, with all decisions made until then; all other tasks, and all repetitions of the micro-batch,
read it. So the driver may decide at any moment: no micro-batch sees two assignments.

`short.json` has the keys that need more copies than there are standbys, for `progress`, which other processes may call.
With a budget it is written after each micro-batch, also when there are no such keys. Nothing is decided by it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from cepheid.errors import SnapshotError
from cepheid.hosts.prometheus import write
from cepheid.hosts.shards.store import check_format
from cepheid.hosts.spark.stream.copies.assignment import FORMAT, Assignment, Decision
from cepheid.hosts.spark.stream.copies.change import CopiesChange

NAME = "copies"
_KEPT = 200
"""The number of micro-batches whose assignments are kept; Spark repeats at most the last hundred."""


class CopiesFolder:
    """The folder of one checkpoint."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = Path(checkpoint.removeprefix("file://"))
        self._decisions, self._batches = (self._checkpoint / NAME / part for part in ("decisions", "batches"))
        self._short = self._checkpoint / NAME / "short.json"

    def assignment(self, batch: int, delay: int, windows: dict[int, int]) -> Assignment:
        """The assignment of a micro-batch that runs.

        Args:
            delay: Microseconds: how late events may be.
            windows: By the number of a pattern: microseconds after which a partial match has ended.

        Raises:
            SnapshotError: the checkpoint cannot be read here, or a file is damaged or of a newer version.
        """
        file = self._batches / _name(batch)
        if file.exists():
            return Assignment.of(_read(file))
        earlier = [number for number in _numbers(self._batches) if number < batch]
        before = Assignment.of(_read(self._batches / _name(earlier[-1]))) if earlier else Assignment()
        decided = [self.decision(number) for number in _numbers(self._decisions) if number > before.decisions]
        watermark = self._watermark(batch)
        ended = {pattern: watermark - window for pattern, window in windows.items()}
        reached = before.since(ended).reached(watermark, delay)
        following = reached.after(decided, reached.received)
        if not _written(file, following.document):
            return Assignment.of(_read(file))
        for number in earlier[:-_KEPT]:
            (self._batches / _name(number)).unlink(missing_ok=True)
        return following

    def decide(self, decision: Decision) -> None:
        """Adds a decision, which holds from the next micro-batch on of which no task has begun."""
        document = {"format": FORMAT, **decision._asdict()}
        while not _written(self._decisions / _name(self.decisions + 1), document):
            pass  # another process has decided, too

    @property
    def decisions(self) -> int:
        """The number of decisions."""
        return max(_numbers(self._decisions), default=0)

    def of_batch(self, batch: int) -> Assignment:
        """The assignment of a micro-batch that has run. One without events has that of the micro-batch before."""
        numbers = [number for number in _numbers(self._batches) if number <= batch]
        return Assignment.of(_read(self._batches / _name(numbers[-1]))) if numbers else Assignment()

    def decision(self, number: int) -> Decision:
        """The decision with this number, from 1."""
        document = _read(self._decisions / _name(number))
        return Decision(document["pattern"], document["shard"], document["key"], tuple(document["copies"]))

    def report_short(self, batch: int, keys: Sequence[CopiesChange]) -> None:
        """Says which keys need more copies than there are standbys after this micro-batch."""
        self._short.parent.mkdir(parents=True, exist_ok=True)
        write(self._short, json.dumps({"format": FORMAT, "batch": batch, "keys": [one.document for one in keys]}))

    def short(self, batch: int) -> tuple[CopiesChange, ...] | None:
        """The keys that need more copies than there are standbys, as of this micro-batch or the one before. None: not
        known, because no listener has written them since, or because they cannot be read here. It is never an error:
        figures of a stream must not depend on this file.
        """
        try:
            document = _read(self._short)
            is_current = document["batch"] >= batch - 1  # what is older comes from a listener that no longer runs
            return tuple(map(CopiesChange.of, document["keys"])) if is_current else None
        except (OSError, SnapshotError, KeyError, TypeError, ValueError, OverflowError):
            return None

    def _watermark(self, batch: int) -> int:
        """The watermark of a micro-batch, in microseconds, from Spark's log, which has it before its tasks begin."""
        file = self._checkpoint / "offsets" / str(batch)
        try:
            _, metadata, *_ = file.read_text("utf-8").splitlines()
            return int(json.loads(metadata)["batchWatermarkMs"]) * 1000
        except (OSError, ValueError, KeyError) as error:
            raise SnapshotError(
                f"the checkpoint cannot be read by a worker, which needs it for copies of hot keys: {file} ({error}). "
                "Put it on a file system that all workers reach under the same path, or leave out standbys="
            ) from error


def _name(number: int) -> str:
    return f"{number:012}.json"


def _numbers(folder: Path) -> list[int]:
    """The numbers of the files in the folder, ascending."""
    if not folder.exists():
        return []
    return sorted(int(file.stem) for file in folder.glob("*.json"))


def _read(file: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(file.read_text("utf-8"))
        written = int(document["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise SnapshotError(f"the file {file} is damaged. Restore the checkpoint from a copy") from error
    check_format(written, FORMAT)
    return document


def _written(file: Path, document: dict[str, Any]) -> bool:
    """Writes the file whole; False if it is there already."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".{uuid4().hex}")
    with draft.open("w", encoding="utf-8") as out:
        json.dump(document, out)
        out.flush()
        os.fsync(out.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
