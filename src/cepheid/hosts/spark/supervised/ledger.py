"""The ledger of a supervised query: which set of patterns its micro-batches have. It lies beside Spark's own logs.

A micro-batch that was begun but not finished is repeated with the set that it was begun with: its rows may be in the
sink already. So a set is written here before its first micro-batch begins, and begins only after the last one that
Spark has planned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from cepheid.errors import SnapshotError
from cepheid.hosts.spark.supervised.pattern_set import PatternSet, from_json, to_json
from cepheid.matchers.snapshot import fitting

T = TypeVar("T")

FORMAT = 1
"""Increased when older versions can no longer read what is written."""


class Batches(NamedTuple):
    """The numbers of micro-batches in a checkpoint; -1 without any."""

    planned: int
    """The last that Spark has begun."""
    committed: int


class SetLedger:
    """The ledger of a checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark = spark
        self._checkpoint = checkpoint
        self._folder = f"{checkpoint}/patterns"

    def sets(self) -> list[PatternSet]:
        """All sets, in the order in which they were added.

        Raises:
            SnapshotError: the ledger is damaged, or a newer version wrote it.
        """
        lines: list[str] = _unless_missing(
            lambda: [row[0] for row in self._spark.read.text(self._folder).collect()], []
        )
        with fitting("the ledger of patterns in the checkpoint"):
            entries = sorted((json.loads(line) for line in lines), key=lambda entry: entry["number"])
            for entry in entries:
                if (written := entry["format"]) != FORMAT:
                    raise SnapshotError(
                        f"the checkpoint's ledger of patterns has format {written}, and this version reads {FORMAT}. "
                        "Use the version of Cepheid that wrote it"
                    )
            return [from_json(entry) for entry in entries]

    def add(self, given: PatternSet, after: Sequence[PatternSet]) -> None:
        """Adds a set `after` all others. It is there whole, or not at all: Spark renames the file when it is whole."""
        line = json.dumps({"format": FORMAT, "number": len(after), **to_json(given)})
        self._spark.createDataFrame([(line,)], "value STRING").coalesce(1).write.mode("append").text(self._folder)

    def batches(self) -> Batches:
        """The micro-batches so far. No query may run on the checkpoint."""
        return Batches(self._last("offsets"), self._last("commits"))

    def _last(self, log: str) -> int:
        files = self._spark.read.format("binaryFile").option("pathGlobFilter", "[0-9]*")
        paths: list[str] = _unless_missing(
            lambda: [row[0] for row in files.load(f"{self._checkpoint}/{log}").select("path").collect()], []
        )
        return max((int(path.rpartition("/")[2]) for path in paths), default=-1)


def set_of(batch: int, sets: Sequence[PatternSet]) -> PatternSet:
    """The set of the micro-batch. Of sets with the same first micro-batch, the last counts."""
    return next(one for one in reversed(sets) if one.first <= batch)


def _unless_missing(read: Callable[[], T], nothing: T) -> T:
    """What is read; `nothing` if the folder does not exist yet."""
    try:
        return read()
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in (error.getCondition() or ""):
            raise
        return nothing
