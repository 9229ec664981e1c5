"""Rebalances a checkpoint, until it is killed: `python rebalanced.py FOLDER SHARDS PARTITIONS`."""

from __future__ import annotations

import sys
from pathlib import Path

from cepheid.hosts.spark.session import local_session
from cepheid.streams import rebalance

if __name__ == "__main__":
    folder, shards, partitions = sys.argv[1:]
    local_session("rebalanced", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")
    rebalance(Path(folder) / "checkpoint", shards=int(shards), partitions=int(partitions))
