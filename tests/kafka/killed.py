"""The streaming query that test_kill kills: `python killed.py FOLDER SERVERS`. It reads and writes topics."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.kafka.topics import matches_into

from cepheid.hosts.spark.kafka import connector_jars, with_jars
from cepheid.hosts.spark.session import local_session


def main(folder: Path, servers: str) -> None:
    settings = {"spark.sql.shuffle.partitions": "2", **with_jars(connector_jars())}
    spark = local_session("killed", settings=settings, time_zone="UTC")
    matches_into(spark, servers, folder / "checkpoint").awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
