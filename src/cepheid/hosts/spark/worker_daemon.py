"""The process that Spark's Python workers are forked from: `python -m cepheid.hosts.spark.worker_daemon`.

It runs in local sessions. It imports once what each worker would otherwise import after its fork. That takes 1.5
seconds of processor time for each worker, and a streaming query on two cores has four workers. PySpark's own daemon
imports nothing, because threads do not survive a fork. Among these modules only pyarrow starts a thread: jemalloc's,
which restarts on demand.
"""

from __future__ import annotations

# ruff: noqa: E402 - the path is set before PySpark is imported
import gc
import sys
from contextlib import suppress

from cepheid.hosts.spark.archives import without_archives

sys.path[:] = without_archives(sys.path)

import pandas as pd  # noqa: F401 - PySpark's workers import it
import pyspark.worker
from pyspark.daemon import manager

import cepheid.hosts.spark.batch.blocks.find
import cepheid.hosts.spark.batch.blocks.pack
import cepheid.hosts.spark.stream.packing
import cepheid.hosts.spark.stream.processor
import cepheid.hosts.spark.stream.shard  # noqa: F401
from cepheid.families import load_matchers

load_matchers()

with suppress(ImportError):  # a stream reports it if this is missing
    import pyspark.sql.streaming.proto.StateMessage_pb2  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # PySpark's workers collect garbage after each task, and would traverse all modules each time
    manager()
