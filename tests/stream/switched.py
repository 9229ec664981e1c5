"""The supervised query that test_supervised kills: `python switched.py FOLDER`. Each start deploys another version."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.stream.supervised import pair, put, supervised

from cepheid.hosts.spark.session import local_session
from cepheid.hosts.spark.supervised.ledger import SetLedger


def main(folder: Path) -> None:
    spark = local_session("switched", settings={"spark.sql.shuffle.partitions": "2"}, time_zone="UTC")
    version = 1 + len(SetLedger(spark, str(folder / "checkpoint")).sets())
    put(folder / "patterns", pair("stays", "c"), pair("ab", "bz"[version % 2], version))
    supervised(spark, folder, []).query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
