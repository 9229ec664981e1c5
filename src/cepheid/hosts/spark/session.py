"""The local Spark session that Cepheid starts itself: for the demo, the command line, tests and benchmarks."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from cepheid.hosts.spark.java import find_java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def local_session(
    name: str = "cepheid",
    *,
    cores: int | None = None,
    time_zone: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session in this process, on all cores unless `cores` says how many.

    A session that is already active is used unchanged, so that its owner's settings stay. If another time zone is
    given, a new session beside it gets that zone. `settings` are Spark's, and override those made here. The session
    ends with the process, or with its `stop()`.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return _in_zone(active, time_zone)
    _prepare_environment()
    _silence_query_contexts()
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName(name)
    zone = {"spark.sql.session.timeZone": time_zone} if time_zone else {}
    for key, value in {**_settings(cores or os.cpu_count() or 1), **zone, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _in_zone(session: SparkSession, time_zone: str | None) -> SparkSession:
    if time_zone is None or session.conf.get("spark.sql.session.timeZone") == time_zone:
        return session
    other = session.newSession()
    other.conf.set("spark.sql.session.timeZone", time_zone)
    return other


def _prepare_environment() -> None:
    """Set what PySpark reads only from the environment, not from its settings."""
    # Otherwise workers use the first python3 on the path, which may be another version and lack cepheid.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Spark would stop or warn if the host's name does not resolve, as in many containers. No other host connects here.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    java_home = find_java_home()
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)


def _silence_query_contexts() -> None:
    """PySpark writes the message of an error in a query as JSON, too. Users get the exception."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def _settings(cores: int) -> dict[str, str]:
    logging = files("cepheid.hosts.spark") / "log4j2.properties"
    return {
        # Nothing listens on the network, and it starts half a second sooner.
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # The caller shows progress. Spark's own bar would be drawn over it.
        "spark.ui.showConsoleProgress": "false",
        # Spark's default, 200, is for clusters: on small data most of the time would go into starting tasks. A few
        # partitions per core even out keys of different sizes.
        "spark.sql.shuffle.partitions": str(4 * cores),
        # In local mode the driver does all the work. With its default of 1 GB it would spill early. Python's workers
        # and the page cache need the rest of the memory.
        "spark.driver.memory": f"{_quarter_of_memory()}m",
        # Workers are forked from a process that has imported what they need.
        "spark.python.daemon.module": "cepheid.hosts.spark.worker_daemon",
        # toPandas and createDataFrame go through Arrow, not row by row.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # With any other value, Spark 4.3 adds up a batch's bytes again before each of its rows, which takes two thirds
        # of the time of handing rows to Python. The number of rows bounds a batch, too: 10,000 rows exceed the limit of
        # 2 GB only if a row has more than 200 kB.
        "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
        # Streaming state of Python operators needs this store.
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        # The first setting: a micro-batch uploads what it changed, not whole files, which halves the time of its
        # commit. The second: it does not read each entry before writing it, which would only count the entries.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
        # Only errors are logged: in every run Spark warns of its own missing native library and of the host name. Also
        # tried and dropped: -XX:TieredStopAtLevel=1 starts half a second sooner (4.9 against 5.4 s) but then shuffles
        # and sorts 20 M rows at little more than half the speed (4.5-5.7 against 2.8 s); ParallelGC starts no sooner.
        "spark.driver.extraJavaOptions": shlex.join([f"-Dlog4j2.configurationFile=file:{logging}"]),
    }


def _quarter_of_memory() -> int:
    """A quarter of the machine's memory in megabytes, at least the gigabyte that is Spark's default."""
    return max(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4 // 2**20)
