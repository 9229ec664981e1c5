"""The local session that Cepheid starts."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from cepheid.hosts.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def interpreters(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row per task: the worker's interpreter, and the path of its cepheid."""
    import cepheid

    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [str(cepheid.__file__)]})


def test_workers_run_the_same_python_and_find_cepheid(spark: SparkSession) -> None:
    """A worker runs the interpreter that started the session, so it has the same packages."""
    import cepheid

    rows = spark.range(2).repartition(1).mapInArrow(interpreters, "python string, package string").collect()
    assert [tuple(row) for row in rows] == [(sys.executable, cepheid.__file__)]


def beginnings(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The main module of the worker's process, its number of objects excluded from garbage collection, and where its
    PySpark is.
    """
    for _ in batches:
        pass
    began, pyspark = sys.modules["__main__"].__spec__, sys.modules["pyspark"].__file__
    columns = {"began": [began.name if began else ""], "frozen": [gc.get_freeze_count()], "pyspark": [pyspark]}
    yield pa.RecordBatch.from_pydict(columns)


def test_workers_are_forked_with_their_imports(spark: SparkSession) -> None:
    """Workers are forked from Cepheid's own process, which has imported their modules and excluded them from garbage
    collection. PySpark is imported from where it is installed, not from its archive, where it is compiled anew.
    """
    import pyspark

    rows = spark.range(1).mapInArrow(beginnings, "began string, frozen long, pyspark string").collect()
    assert {row.began for row in rows} == {"cepheid.hosts.spark.worker_daemon"}
    assert all(row.frozen > 10_000 for row in rows)
    assert {row.pyspark for row in rows} == {pyspark.__file__}


def test_an_active_session_is_used_as_it_is(spark: SparkSession) -> None:
    """A second call gives the active session; another time zone is set in a new session, not in the active one."""
    spark.createDataFrame([(1,)], "n int")  # makes its session the active one: an earlier test may have left another
    assert local_session() is spark
    beside = local_session(time_zone="America/New_York")
    assert beside.conf.get("spark.sql.session.timeZone") == "America/New_York"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
