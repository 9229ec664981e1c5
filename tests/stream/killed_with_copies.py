"""The streaming query with copies of keys that test_kill kills: `python killed_with_copies.py FOLDER`. While it runs,
its keys get copies and lose them at random, at any moment.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener
from tests.stream.killed import SHARDS, session, started

from cepheid.hosts.spark.stream.copies.assignment import Decision
from cepheid.hosts.spark.stream.copies.folder import CopiesFolder
from cepheid.hosts.spark.stream.load.hot_keys import key_hash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

KEYS, STANDBYS = 4, 3
COPIES = [(), (0,), (1,), (2, 0), (0, 1, 2), (1, 2)]


class AnyCopies(StreamingQueryListener):
    """Decides at random, whenever Spark reports progress."""

    def __init__(self, folder: Path) -> None:
        self._copies = CopiesFolder(str(folder / "checkpoint"))

    def decide(self) -> None:
        """Changes the copies of one key, in each shard in which it might be."""
        key = key_hash((f"k{random.randrange(KEYS)}",))
        copies = random.choice(COPIES)
        for shard in range(SHARDS):
            self._copies.decide(Decision(0, shard, key, copies))

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: ARG002, N802
        self.decide()

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


def with_copies(spark: SparkSession, folder: Path) -> StreamingQuery:
    """The query over all events in the folder, started."""
    return started(spark, folder, standbys=STANDBYS, checkpoint=folder / "checkpoint")


def main(folder: Path) -> None:
    spark, listener = session(), AnyCopies(folder)
    listener.decide()
    spark.streams.addListener(listener)
    with_copies(spark, folder).awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
