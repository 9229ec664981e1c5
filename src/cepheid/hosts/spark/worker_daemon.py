"""What Spark's Python workers are forked from in a local session: `python -m cepheid.hosts.spark.worker_daemon`.

It imports once what each worker would import behind its fork, 1.5 seconds of processor time a worker: a streaming query
on two cores has four. PySpark's own daemon imports nothing, as threads do not outlive a fork; of these modules pyarrow
alone starts one, which is jemalloc's and started anew when it is needed.
"""

from __future__ import annotations

import gc
from contextlib import suppress

import pandas as pd  # noqa: F401 - PySpark's workers do
import pyspark.worker
from pyspark.daemon import manager

with suppress(ImportError):  # streams say what they lack
    import pyspark.sql.streaming.proto.StateMessage_pb2  # noqa: F401

if __name__ == "__main__":
    gc.freeze()  # PySpark's workers collect garbage behind each task, and would look through all modules each time
    manager()
